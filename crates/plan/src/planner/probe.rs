//! The way of a probe into its build.

use std::sync::Arc;

use tandem_pipeline::{Expr, JoinKind, Probe, SlotId, Step};

use super::{Decided, Fate, Planner};
use crate::{
    Action, Build, Domain, KeyIndex, Lookup, Narrowing, Origin, PhysicalProbe, Way, coded, domain,
    filter::{self, Filter},
    outline::{kept, waits_for},
};

/// A filter ahead of a look-up has to drop at least half of the rows, as far as one can tell.
const MOST_KEPT: f64 = 0.5;

/// Setting a key's bit costs about as much as testing four.
const LEAST_ROWS_PER_KEY: usize = 4;

impl Planner<'_> {
    /// Plans a probe.
    pub(super) fn probe(&mut self, step: usize, first: SlotId, probe: &Probe, build: Arc<Build>) {
        let lookup = self.body.lookups.len();
        let (origins, collide) = (&self.body.origins, self.planning.collide);
        let asked = coded::Asked { table: self.table, rows: self.expected_rows(), origins, collide };
        let coded = asked.by_code(probe, &build, self.planning.selector);
        let (build, codes) = coded.map_or((build, None), |(coded, column)| (coded, Some(column)));
        let nullable = matches!(probe.kind, JoinKind::Left | JoinKind::Full);
        for (i, payload) in probe.adds.iter().enumerate() {
            if probe.kind == JoinKind::Mark {
                break;
            }
            let column = &build.payload[*payload];
            self.body.origins[first + i] = Origin::Payload { lookup, payload: *payload };
            self.body.domains[first + i] = Domain {
                kind: Some(column.kind.clone()),
                range: build.ranges[*payload],
                nullable: nullable || column.is_nullable(),
                dictionary: column.dictionary().cloned(),
            };
        }
        if self.probe_directly(step, probe, &build) {
            return;
        }
        self.filter_ahead(step, probe, &build);
        self.keep_unmatched(first, probe);
        let most = if build.is_unique() { 1 } else { build.rows.max(1) };
        self.most_rows = self.most_rows.saturating_mul(most).saturating_add(build.rows);
        let payload: Vec<_> = build.payload.iter().map(|column| column.kind.clone()).collect();
        let search = |order| Narrowing::new(order, probe, first, &self.body.slots, &payload);
        let narrowing = build.order.as_ref().and_then(search);
        let searched = if narrowing.is_some() { ", searched by inequality" } else { "" };
        let choice = Some(format!("{}{searched}", build.note()));
        self.body.lookups.push(Lookup { codes, ..build.lookup(None) });
        self.builds.push(build);
        let physical = PhysicalProbe {
            lookup,
            kind: probe.kind,
            keys: probe.keys.iter().map(|key| domain::drop_checks(key, &self.body.domains)).collect(),
            residual: probe.residual.clone(),
            narrowing,
            first,
            null_equals_null: probe.null_equals_null,
            null_aware: probe.null_aware,
        };
        self.push(step, choice, Fate::Runs(Action::Probe(physical)));
    }

    /// Guesses how many of the source's rows are left by what is decided so far.
    fn expected_rows(&self) -> usize {
        let kept = self.decided.iter().map(|decided| match decided.fate {
            Fate::Front(kept, _) => kept.min(1.0),
            Fate::Runs(Action::Filter(_)) => 0.25,
            _ => 1.0,
        });
        (self.table.rows() as f64 * kept.product::<f64>()) as usize
    }

    /// Leaves a probe, and what depends on its payload, until its build is there.
    pub(super) fn wait(&mut self, step: usize, first: SlotId, probe: &Probe) {
        self.open[first..first + Step::Probe(probe.clone()).adds()].fill(true);
        self.keep_unmatched(first, probe);
        self.most_rows = usize::MAX;
        self.waiting.push(probe.build);
        self.push(step, Some(waits_for(&[probe.build])), Fate::Waits);
    }

    /// Notes what a probe that emits build rows at the end means for what comes before and behind it.
    fn keep_unmatched(&mut self, first: SlotId, probe: &Probe) {
        if probe.kind.emits_build_rows() {
            self.outer = true;
            self.body.domains[..first].iter_mut().for_each(|domain| domain.nullable = true);
        }
    }

    /// Turns an inner or semi probe of a dense build by a source column into a filter; its payload is then found by the
    /// column's value alone.
    fn probe_directly(&mut self, step: usize, probe: &Probe, build: &Arc<Build>) -> bool {
        let (KeyIndex::Unique(set), [Expr::Slot(key)], None) = (&build.index, probe.keys.as_slice(), &probe.residual)
        else {
            return false;
        };
        let Some(column) = self.filtered_column(*key, build) else { return false };
        if !matches!(probe.kind, JoinKind::Inner | JoinKind::Semi) {
            return false;
        }
        if !probe.adds.is_empty() {
            self.body.lookups.push(build.lookup(Some(Way::Column { column, min: set.min })));
            self.builds.push(build.clone());
        }
        let (slots, note) = (&self.pipeline.slots, build.note());
        let name = &slots[*key].name;
        let (choice, fate) = match filter::membership(column, self.table, set) {
            None => {
                self.never = true;
                ("no row has a match".to_string(), Fate::Removed)
            }
            Some(None) => (format!("{note}; every {name} has a match"), Fate::Removed),
            Some(Some(filter)) => {
                let kept = kept(&filter, slots, &self.body.domains).unwrap_or_default();
                (format!("{note}; a filter of {name}: {kept}"), self.select(filter))
            }
        };
        self.push(step, Some(choice), fate);
        true
    }

    /// Returns the source column whose codes tell whether a row has a match, if a filter of it may come first.
    fn filtered_column(&self, key: SlotId, build: &Build) -> Option<usize> {
        let Origin::Column(column) = self.body.origins[key] else { return None };
        let mut encoded = self.table.parts.iter().map(|part| &part.columns[column]);
        let encoded =
            encoded.all(|column| column.code_form().is_some() && column.dictionary().is_some() == build.coded);
        (!self.outer && encoded).then_some(column)
    }

    /// Drops rows by a bit for each key before they are looked up, where few are likely to have a match: a bit costs a tenth of
    /// a look-up in a hash table, and other columns are then read for fewer rows.
    fn filter_ahead(&mut self, step: usize, probe: &Probe, build: &Arc<Build>) {
        use JoinKind::{Inner, Right, RightAnti, RightSemi, Semi};
        let drops = matches!(probe.kind, Inner | Semi | Right | RightSemi | RightAnti) && !probe.null_equals_null;
        let ([Expr::Slot(key)], true) = (probe.keys.as_slice(), drops) else { return };
        let Some(column) = self.filtered_column(*key, build) else { return };
        let values = self.table.statistics[column].distinct.unwrap_or(f64::INFINITY);
        if build.rows as f64 > values * MOST_KEPT || build.rows > self.table.rows() / LEAST_ROWS_PER_KEY {
            return;
        }
        let Some(set) = build.key_set() else { return };
        let filter = Filter::Member { column, set: set.clone() };
        let text = format!("filter {}, the key of build {}", self.pipeline.slots[*key].name, probe.build);
        let choice = kept(&filter, &self.pipeline.slots, &self.body.domains);
        let fate = self.select(filter);
        self.decided.push(Decided { of: step, text, choice, fate });
    }
}
