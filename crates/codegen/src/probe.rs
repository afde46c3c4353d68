//! Joins: a row leads to a run of a build's entries, and what follows the probe is within a loop over them.

use tandem_column::{Error, Repr, Result};
use tandem_pipeline::{Expr, JoinKind};
use tandem_plan::{Lookup, Packed, PhysicalProbe, Way};

use crate::{Binding, expression::Term, kernel::Generator};

/// The entries that a row leads to, as C: from the first, up to the second.
struct Run {
    start: String,
    end: String,
}

impl<'f> Generator<'f> {
    /// Writes a probe. Where a row may lead to several entries, a loop over them stays open for what follows.
    pub(crate) fn probe(&mut self, probe: &'f PhysicalProbe) -> Result<()> {
        let lookup = &self.input.body.lookups[probe.lookup];
        if probe.null_aware && probe.residual.is_some() {
            return Err(Error::unsupported("NOT IN with a further condition is not on the device yet"));
        }
        let mut keys = Vec::with_capacity(probe.keys.len());
        for key in &probe.keys {
            let term = self.expression(key)?;
            let code = lookup.codes.is_some() && !term.is_text();
            if !code && !matches!(term.kind.repr(), Repr::Int | Repr::Boolean) {
                return Err(Error::unsupported(format!("a join by {} is not on the device yet", term.kind)));
            }
            keys.push(term);
        }
        let run = self.find(probe, lookup, &keys)?;
        // What the condition reads of the row is read before any block that only the condition is in.
        for slot in probe.residual.iter().flat_map(Expr::slots).filter(|slot| *slot < probe.first).collect::<Vec<_>>() {
            self.slot(slot)?;
        }
        let single = lookup.unique && probe.residual.is_none();
        match probe.kind {
            JoinKind::Inner | JoinKind::Right if single => {
                self.text.line(format!("if ({} == {}) continue;", run.start, run.end));
                self.entries[probe.lookup] = Some(run.start);
                self.mark(probe);
            }
            JoinKind::Inner | JoinKind::Right => {
                self.each(probe, &run);
                self.only_if_pair(probe)?;
                self.mark(probe);
                self.loops += 1;
            }
            JoinKind::Left | JoinKind::Full if single => {
                let absent = self.text.define("int", &format!("{} == {}", run.start, run.end));
                self.entries[probe.lookup] = Some(run.start);
                self.text.open(&format!("if (!{absent}) {{"));
                self.mark(probe);
                self.text.close();
                self.absent[probe.lookup] = Some(absent);
            }
            JoinKind::Left | JoinKind::Full => self.each_or_none(probe, &run)?,
            JoinKind::Semi | JoinKind::Anti | JoinKind::Mark => self.existence(probe, lookup, &run, &keys)?,
            JoinKind::RightSemi | JoinKind::RightAnti => {
                self.each(probe, &run);
                self.only_if_pair(probe)?;
                self.mark(probe);
                self.text.close();
                self.text.line("continue;");
                self.entries[probe.lookup] = Some("0".into());
            }
        }
        Ok(())
    }

    /// Finds the entries of the row's keys; none where a key is null and nulls do not match.
    fn find(&mut self, probe: &PhysicalProbe, lookup: &Lookup, keys: &[Term]) -> Result<Run> {
        let at = probe.lookup;
        let (start, end) = (format!("start{at}"), format!("end{at}"));
        let nulls: Vec<&String> = keys.iter().filter_map(|key| key.null.as_ref()).collect();
        let present = match nulls.is_empty() {
            true => String::new(),
            false => nulls.iter().map(|null| format!("!{null} && ")).collect(),
        };
        match &lookup.way {
            Way::Bytes => {
                return Err(Error::unsupported("joins by keys that do not fit 64 bits are not on the device yet"));
            }
            Way::Column { .. } => return Err(Error::internal("a source column leads here without a probe")),
            Way::All(rows) => {
                let rows = self.constant(*rows as i64);
                self.text.line(format!("const u32 {start} = 0, {end} = (u32){rows};"));
            }
            Way::Unique { min, domain } => {
                let place = self.place(keys, *min)?;
                let domain = self.constant(*domain as i64);
                let bits = self.lookup_argument(Binding::KeyBits(at), "u32", "bits", at);
                let found = format!("{present}{place} < (u64){domain} && IN_SET({bits}, {place})");
                let found = self.text.define("int", &found);
                self.text.line(format!("const u32 {start} = {found} ? (u32){place} : 0, {end} = {start} + {found};"));
            }
            Way::Dense { min, domain } => {
                let place = self.place(keys, *min)?;
                let domain = self.constant(*domain as i64);
                let starts = self.lookup_argument(Binding::Starts(at), "u32", "starts", at);
                let within = self.text.define("int", &format!("{present}{place} < (u64){domain}"));
                self.text.line(format!("const u32 {start} = {within} ? {starts}[{place}] : 0;"));
                self.text.line(format!("const u32 {end} = {within} ? {starts}[{place} + 1] : 0;"));
            }
            Way::Hash { packing, bits } => {
                let (packed, found) = self.pack(packing, keys, probe.null_equals_null)?;
                let bits = self.constant(i64::from(*bits));
                let starts = self.lookup_argument(Binding::Starts(at), "u32", "starts", at);
                let hashed = self.lookup_argument(Binding::PackedKeys(at), "u64", "keys", at);
                self.text.line(format!("u32 {start} = 0, {end} = 0;"));
                let find = format!("{start} = find_hashed({starts}, {hashed}, (u32){bits}, {packed}, &{end});");
                self.text.line(format!("if ({found}) {find}"));
            }
            Way::Sorted { packing, keyed } => {
                let (packed, found) = self.pack(packing, keys, probe.null_equals_null)?;
                let keyed = self.constant(*keyed as i64);
                let sorted = self.lookup_argument(Binding::PackedKeys(at), "u64", "keys", at);
                self.text.declare_first(&format!("u32 cursor{at} = 0;"));
                self.text.line(format!("u32 {start} = 0, {end} = 0;"));
                let find = format!("{start} = find_sorted({sorted}, (u32){keyed}, {packed}, &cursor{at}, &{end});");
                self.text.line(format!("if ({found}) {find}"));
            }
        }
        Ok(Run { start, end })
    }

    pub(crate) fn lookup_argument(&mut self, binding: Binding, kind: &str, name: &str, lookup: usize) -> String {
        self.text.argument(binding, &format!("GLOBAL const {kind} *"), &format!("{name}{lookup}"), "")
    }

    /// Returns how far the only key is from the smallest.
    fn place(&mut self, keys: &[Term], min: i64) -> Result<String> {
        let [key] = keys else { return Err(Error::internal("a dense build has one key")) };
        let min = self.constant(min);
        Ok(self.text.define("u64", &format!("(u64)(i64){} - (u64){min}", key.value)))
    }

    /// Packs keys into 64 bits; tells, too, whether the build may have them.
    fn pack(&mut self, packing: &[Packed], keys: &[Term], nulls_match: bool) -> Result<(String, String)> {
        let (mut packed, mut found) = (Vec::new(), vec!["1".to_string()]);
        for (Packed { min, span, shift }, key) in packing.iter().zip(keys) {
            let (min, span) = (self.constant(*min), self.constant(*span as i64));
            let shift = self.constant(i64::from(*shift));
            let value = self.text.define("i64", &format!("(i64){}", key.value));
            let offset = self.text.define("u64", &format!("(u64){value} - (u64){min}"));
            let mut within = format!("({value} >= {min} && {offset} < (u64){span})");
            let mut bits = format!("(({offset} + 1) << {shift})");
            match &key.null {
                Some(null) if nulls_match => {
                    within = format!("({null} || {within})");
                    bits = format!("({null} ? 0 : {bits})");
                }
                Some(null) => within = format!("(!{null} && {within})"),
                None => {}
            }
            packed.push(bits);
            found.push(within);
        }
        let packed = if packed.is_empty() { "0".into() } else { packed.join(" | ") };
        Ok((self.text.define("u64", &packed), self.text.define("int", &found.join(" && "))))
    }

    /// Opens a loop over the entries.
    fn each(&mut self, probe: &PhysicalProbe, run: &Run) {
        let entry = format!("entry{}", probe.lookup);
        self.text.open(&format!("for (u32 {entry} = {}; {entry} < {}; {entry}++) {{", run.start, run.end));
        self.entries[probe.lookup] = Some(entry);
    }

    /// Opens a loop over the entries and, if no pair is among them, one more turn without an entry.
    fn each_or_none(&mut self, probe: &'f PhysicalProbe, run: &Run) -> Result<()> {
        let (entry, end) = (format!("entry{}", probe.lookup), &run.end);
        let hit = self.text.declare("int", "0");
        self.text.open(&format!("for (u32 {entry} = {}; {entry} <= {end}; {entry}++) {{", run.start));
        self.entries[probe.lookup] = Some(entry.clone());
        let absent = self.text.define("int", &format!("{entry} == {end}"));
        self.text.line(format!("if ({absent} && {hit}) continue;"));
        self.text.open(&format!("if (!{absent}) {{"));
        self.only_if_pair(probe)?;
        self.text.line(format!("{hit} = 1;"));
        self.mark(probe);
        self.text.close();
        self.absent[probe.lookup] = Some(absent);
        self.loops += 1;
        Ok(())
    }

    /// Goes on with the next entry unless the further condition holds.
    fn only_if_pair(&mut self, probe: &'f PhysicalProbe) -> Result<()> {
        if let Some(residual) = &probe.residual {
            let holds = self.pair(probe, residual)?;
            self.text.line(format!("if (!({holds})) continue;"));
        }
        Ok(())
    }

    /// Computes a condition on a pair.
    fn pair(&mut self, probe: &PhysicalProbe, residual: &Expr) -> Result<String> {
        self.pair = Some((probe.first, probe.lookup));
        let term = self.expression(residual);
        self.pair = None;
        let term = term?;
        Ok(match term.null {
            Some(null) => format!("{} & !{null}", term.value),
            None => term.value,
        })
    }

    /// Notes that an entry has a row, where build rows come out, too.
    fn mark(&mut self, probe: &PhysicalProbe) {
        if let (true, Some(entry)) = (probe.kind.emits_build_rows(), self.entries[probe.lookup].clone()) {
            let matched = self.matched(probe);
            self.text.line(format!("{matched}[{entry}] = 1;"));
        }
    }

    /// Returns the flags that entries have a row.
    pub(crate) fn matched(&mut self, probe: &PhysicalProbe) -> String {
        let name = format!("matched{}", probe.lookup);
        self.text.argument(Binding::Matched(probe.lookup), "GLOBAL u8 *", &name, "set where an entry has a row")
    }

    /// Writes a probe that only asks whether a match exists.
    fn existence(&mut self, probe: &'f PhysicalProbe, lookup: &Lookup, run: &Run, keys: &[Term]) -> Result<()> {
        let found = match &probe.residual {
            None => self.text.define("int", &format!("{} != {}", run.start, run.end)),
            Some(residual) => {
                let found = self.text.declare("int", "0");
                self.each(probe, run);
                let holds = self.pair(probe, residual)?;
                self.text.line(format!("if ({holds}) {{ {found} = 1; break; }}"));
                self.text.close();
                found
            }
        };
        // Against a build with a null key, or with a null key of its own, a row without a match is neither in nor out.
        let mut unknown = Vec::new();
        if probe.null_aware && !lookup.empty {
            unknown.extend(lookup.null_key.then(|| "1".to_string()));
            unknown.extend(keys.iter().filter_map(|key| key.null.clone()));
        }
        let unknown = (!unknown.is_empty()).then(|| format!("(!{found} & ({}))", unknown.join(" | ")));
        match probe.kind {
            JoinKind::Semi => self.text.line(format!("if (!{found}) continue;")),
            JoinKind::Anti => {
                let dropped = unknown.map_or(found.clone(), |unknown| format!("{found} | {unknown}"));
                self.text.line(format!("if ({dropped}) continue;"));
            }
            _ => {
                let kind = self.input.body.slots[probe.first].kind.clone();
                let null = unknown.map(|unknown| self.text.define("int", &unknown));
                self.values[probe.first] = Some(Term::new(found, null, kind));
            }
        }
        Ok(())
    }

    /// Closes the row's loops.
    pub(crate) fn close_row(&mut self) {
        for _ in 0..=self.loops {
            self.text.close();
        }
    }

    /// Forgets the row's values: another kernel reads them again.
    pub(crate) fn start_over(&mut self) {
        self.values.fill(None);
        self.entries.fill(None);
        self.absent.fill(None);
        self.loops = 0;
    }
}
