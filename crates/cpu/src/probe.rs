//! Looking rows up in a build: all join kinds, with or without a residual condition.
//!
//! A lookup gives each active row a range of build entries. Joins to at most one entry keep the frame's shape; others
//! repeat rows, a bounded number of pairs at a time, each batch sent on through the remaining steps.

use std::{
    cell::RefCell,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
};

use tandem_column::{Result, Type};
use tandem_pipeline::{Expr, JoinKind, SlotId, UserFunction, scalar::pattern::Patterns};
use tandem_plan::{Build, PhysicalProbe};

use crate::{
    Reservation, Values, Vector,
    evaluate::{self, Slots},
    frame::{Frame, Matches, NO_MATCH, fetch_matches, text_bytes},
    kernel::RowRun,
    lookup::{self, ordinals},
    settings::Settings,
};

/// Pairs made at once when rows repeat: a few vectors' worth, so that a cross join stays in cache.
const PAIRS: usize = 1 << 14;

/// A probe made ready.
pub(crate) struct ProbeStep {
    /// The pipeline's step.
    pub(crate) step: usize,
    /// Which counter it reports to.
    pub(crate) counter: usize,
    pub(crate) probe: PhysicalProbe,
    pub(crate) build: Arc<Build>,
    /// Set for each entry that found a row, where the kind asks for it.
    pub(crate) matched: Option<Vec<AtomicU8>>,
}

/// Where a probe sends its frames.
pub(crate) type Next<'n, 'a> = &'n mut dyn FnMut(Frame<'a>) -> Result<()>;

impl ProbeStep {
    pub(crate) fn new(step: usize, counter: usize, probe: &PhysicalProbe, build: &Arc<Build>) -> ProbeStep {
        let matched = probe.kind.emits_build_rows().then(|| (0..build.entries()).map(|_| AtomicU8::new(0)).collect());
        ProbeStep { step, counter, probe: probe.clone(), build: build.clone(), matched }
    }

    pub(crate) fn run<'a>(
        &self,
        frame: Frame<'a>,
        functions: &[Arc<UserFunction>],
        settings: &Settings,
        next: Next<'_, 'a>,
    ) -> Result<()> {
        let keys =
            self.probe.keys.iter().map(|key| evaluate::evaluate(key, &frame, functions)).collect::<Result<Vec<_>>>()?;
        let single = self.residual().is_none() && (self.build.is_unique() || self.only_existence());
        let first = self.build.is_unique() || single && self.probe.narrowing.is_none();
        let asked = lookup::Asked { null_equals_null: self.probe.null_equals_null, first };
        let mut found = lookup::find(&self.build, &keys, frame.count(), asked);
        self.narrow(&frame, &mut found)?;
        if single {
            return self.run_single(frame, &keys, &found, next);
        }
        let mut hit = vec![0u8; frame.count()];
        self.pairs(&frame, &found, functions, &mut |pairs_of, entries| {
            settings.cancel.check()?;
            if self.probe.kind != JoinKind::Inner {
                pairs_of.iter().for_each(|position| hit[*position as usize] = 1);
            }
            self.mark(entries.iter().copied());
            if matches!(self.probe.kind, JoinKind::Inner | JoinKind::Left | JoinKind::Right | JoinKind::Full)
                && !pairs_of.is_empty()
            {
                let mut pairs = frame.take(pairs_of, self.step)?;
                pairs.set_matches(self.probe.lookup, Matches::Listed(Rc::new(entries.to_vec())));
                next(pairs)?;
            }
            Ok(())
        })?;
        match self.probe.kind {
            JoinKind::Inner | JoinKind::Right | JoinKind::RightSemi | JoinKind::RightAnti => Ok(()),
            JoinKind::Left | JoinKind::Full => {
                let rest = positions(&hit, 0);
                if rest.is_empty() {
                    return Ok(());
                }
                let mut unmatched = frame.take(&rest, self.step)?;
                unmatched.set_matches(self.probe.lookup, Matches::Listed(Rc::new(vec![NO_MATCH; rest.len()])));
                next(unmatched)
            }
            JoinKind::Semi | JoinKind::Anti | JoinKind::Mark => self.existence(frame, &keys, hit, next),
        }
    }

    /// Returns what pairs have to fulfil once they are found.
    fn residual(&self) -> Option<&Expr> {
        match &self.probe.narrowing {
            Some(narrowing) => narrowing.rest.as_ref(),
            None => self.probe.residual.as_ref(),
        }
    }

    /// Leaves, of the entries that each row's key has, those that inequalities do not exclude.
    fn narrow(&self, frame: &Frame<'_>, found: &mut [(u32, u32)]) -> Result<()> {
        let (Some(narrowing), Some(order)) = (&self.probe.narrowing, &self.build.order) else { return Ok(()) };
        for condition in &narrowing.conditions {
            let vector = frame.vector(condition.slot)?;
            let values = ordinals(&vector, 0);
            let entries = found.iter_mut().zip(values.iter()).enumerate().filter(|(_, (range, _))| range.0 < range.1);
            for (row, (range, value)) in entries {
                *range = match vector.is_valid(row) {
                    true => order.narrow(*range, condition, *value),
                    // Nothing is less or greater than null; where null is enough, whichever it is, all may be.
                    false if condition.or_null.is_some() => *range,
                    false => (0, 0),
                };
            }
        }
        Ok(())
    }

    /// Tells whether the rows that come out depend only on whether a match exists.
    fn only_existence(&self) -> bool {
        matches!(self.probe.kind, JoinKind::Semi | JoinKind::Anti | JoinKind::Mark)
    }

    /// Runs a probe that finds at most one entry a row, without a residual.
    fn run_single<'a>(
        &self,
        mut frame: Frame<'a>,
        keys: &[Rc<Vector>],
        found: &[(u32, u32)],
        next: Next<'_, 'a>,
    ) -> Result<()> {
        self.mark(found.iter().filter(|(start, end)| start < end).map(|(start, _)| *start));
        match self.probe.kind {
            JoinKind::Inner | JoinKind::Right => {
                let (mut kept, mut entries) = (Vec::with_capacity(found.len()), Vec::with_capacity(found.len()));
                for (position, (start, end)) in found.iter().enumerate() {
                    if start < end {
                        kept.push(position as u32);
                        entries.push(*start);
                    }
                }
                if kept.is_empty() {
                    return Ok(());
                }
                if kept.len() < found.len() {
                    frame = frame.take(&kept, self.step)?;
                }
                frame.set_matches(self.probe.lookup, Matches::Listed(Rc::new(entries)));
                next(frame)
            }
            JoinKind::Left | JoinKind::Full => {
                let entries = found.iter().map(|(start, end)| if start < end { *start } else { NO_MATCH });
                frame.set_matches(self.probe.lookup, Matches::Listed(Rc::new(entries.collect())));
                next(frame)
            }
            JoinKind::Semi | JoinKind::Anti | JoinKind::Mark => {
                let hit = found.iter().map(|(start, end)| (start < end) as u8).collect();
                self.existence(frame, keys, hit, next)
            }
            JoinKind::RightSemi | JoinKind::RightAnti => Ok(()),
        }
    }

    /// Emits rows by whether they have a match.
    fn existence<'a>(&self, mut frame: Frame<'a>, keys: &[Rc<Vector>], hit: Vec<u8>, next: Next<'_, 'a>) -> Result<()> {
        let unknown = |row: usize| {
            self.probe.null_aware
                && self.build.rows > 0
                && hit[row] == 0
                && (self.build.null_key || keys.iter().any(|key| !key.is_valid(row)))
        };
        match self.probe.kind {
            JoinKind::Mark => {
                let valid: Vec<u8> = (0..hit.len()).map(|row| !unknown(row) as u8).collect();
                let valid = valid.contains(&0).then_some(valid);
                frame.store(self.probe.first, Rc::new(Vector { values: Values::Boolean(hit), valid }));
                next(frame)
            }
            kind => {
                let kept = match kind {
                    JoinKind::Semi => positions(&hit, 1),
                    _ => positions(&hit, 0).into_iter().filter(|row| !unknown(*row as usize)).collect(),
                };
                match kept.len() {
                    0 => Ok(()),
                    all if all == hit.len() => next(frame),
                    _ => next(frame.take(&kept, self.step)?),
                }
            }
        }
    }

    /// Calls `each` with batches of pairs (position in the frame, entry) that satisfy the residual.
    fn pairs(
        &self,
        frame: &Frame<'_>,
        found: &[(u32, u32)],
        functions: &[Arc<UserFunction>],
        each: &mut dyn FnMut(&[u32], &[u32]) -> Result<()>,
    ) -> Result<()> {
        let (mut positions, mut entries) = (Vec::with_capacity(PAIRS), Vec::with_capacity(PAIRS));
        let mut flush = |positions: &mut Vec<u32>, entries: &mut Vec<u32>| -> Result<()> {
            if let (Some(residual), false) = (self.residual(), positions.is_empty()) {
                let text = frame.layout.text();
                let pairs = Pairs { frame, first: self.probe.first, positions, entries, build: &self.build, text };
                let kept = evaluate::select(residual, &pairs, functions)?;
                let pick = |list: &[u32]| kept.iter().map(|k| list[*k as usize]).collect::<Vec<_>>();
                (*positions, *entries) = (pick(positions), pick(entries));
            }
            each(positions, entries)?;
            positions.clear();
            entries.clear();
            Ok(())
        };
        for (position, (start, end)) in found.iter().enumerate() {
            let mut start = *start;
            while start < *end {
                let some = (*end - start).min((PAIRS - positions.len()) as u32);
                positions.resize(positions.len() + some as usize, position as u32);
                entries.extend(start..start + some);
                start += some;
                if positions.len() == PAIRS {
                    flush(&mut positions, &mut entries)?;
                }
            }
        }
        flush(&mut positions, &mut entries)
    }

    fn mark(&self, entries: impl Iterator<Item = u32>) {
        if let Some(matched) = &self.matched {
            entries.for_each(|entry| matched[entry as usize].store(1, Ordering::Relaxed));
        }
    }

    /// Notes entries with a flag that is not 0.
    pub(crate) fn mark_flags(&self, flags: &[u8]) {
        self.mark(flags.iter().enumerate().filter(|(_, flag)| **flag != 0).map(|(entry, _)| entry as u32));
    }

    /// Returns a flag for each entry: 1 if it found a row.
    pub(crate) fn flags(&self) -> Vec<u8> {
        self.matched.iter().flatten().map(|matched| matched.load(Ordering::Relaxed)).collect()
    }

    /// Returns the entries that are emitted after the last row.
    pub(crate) fn unmatched(&self) -> Vec<u32> {
        let Some(matched) = &self.matched else { return Vec::new() };
        let wanted = (self.probe.kind == JoinKind::RightSemi) as u8;
        let entries = (0..self.build.entries()).filter(|e| self.build.is_entry(*e));
        entries.filter(|e| matched[*e].load(Ordering::Relaxed) == wanted).map(|e| e as u32).collect()
    }
}

fn positions(flags: &[u8], wanted: u8) -> Vec<u32> {
    flags.iter().enumerate().filter(|(_, flag)| **flag == wanted).map(|(row, _)| row as u32).collect()
}

/// Pairs of a row and a build entry, as a residual sees them: the row's slots, then all payload.
struct Pairs<'p, 'a> {
    frame: &'p Frame<'a>,
    first: SlotId,
    positions: &'p [u32],
    entries: &'p [u32],
    build: &'p Build,
    text: RefCell<Reservation>,
}

impl Slots for Pairs<'_, '_> {
    fn rows(&self) -> usize {
        self.positions.len()
    }
    fn vector(&self, slot: SlotId) -> Result<Rc<Vector>> {
        Ok(Rc::new(match slot.checked_sub(self.first) {
            None => {
                let all = self.frame.vector(slot)?;
                self.reserve(all.text_bytes(self.positions))?;
                all.take(self.positions)
            }
            Some(payload) => {
                let column = &self.build.payload[payload];
                self.reserve(text_bytes(column, RowRun::List(self.entries)))?;
                fetch_matches(column, self.entries)
            }
        }))
    }
    fn reserve(&self, bytes: usize) -> Result<()> {
        self.text.borrow_mut().add(bytes)
    }
    fn patterns(&self) -> Option<&Patterns> {
        self.frame.patterns()
    }
    fn kind(&self, slot: SlotId) -> &Type {
        match slot.checked_sub(self.first) {
            None => self.frame.kind(slot),
            Some(payload) => &self.build.payload[payload].kind,
        }
    }
}
