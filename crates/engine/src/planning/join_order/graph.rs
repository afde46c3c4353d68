//! The graph of a region: relations, what must be equal between them, and how many rows any set of them has joined.
//!
//! Pure: it sees only numbers. A set of relations is a bit mask. The rows of a set do not depend on how it is joined:
//! the product of its relations' rows and of the selectivities of all equalities and conditions within it. It is computed in
//! logarithms, since the product of 64 tables' rows is beyond what a number holds.

use std::cell::Cell;

/// Relations that a mask holds.
pub(crate) const MOST_RELATIONS: usize = 64;
/// Rows at which estimates end, so that costs made of them stay numbers.
const MOST_ROWS: f64 = 1e300;

/// What is to be joined.
#[derive(Clone, Debug, Default)]
pub(crate) struct Graph {
    /// Each relation's rows after its own filters.
    pub rows: Vec<f64>,
    /// Each relation's rows before them.
    pub base: Vec<f64>,
    /// Sets of expressions that must be equal: the relation of each and its distinct values before filters.
    pub classes: Vec<Vec<(usize, f64)>>,
    /// Conditions on several relations: which, and the share of rows that fulfil them.
    pub conditions: Vec<(u64, f64)>,
}

/// Counts what ordering joins did, for tests: time is never asserted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Work {
    /// Sets of relations whose rows were estimated.
    pub estimates: usize,
    /// Pairs of plans that were weighed as a join.
    pub joins: usize,
}

/// A graph made ready for many questions: what depends on two relations only is worked out once.
pub(super) struct Weighed<'g> {
    pub(super) graph: &'g Graph,
    /// The relations that share an equality with each relation.
    pub(super) neighbours: Vec<u64>,
    /// The logarithms of the relations' rows.
    rows: Vec<f64>,
    /// The logarithm of what two relations' equalities leave of their product, by `pair`, and which pairs have one.
    factors: Vec<f64>,
    linked: Vec<u64>,
    /// Classes that are no equality of just two relations: members, with the logarithms of their distinct values.
    wide: Vec<Vec<(usize, f64)>>,
    pub(super) work: Cell<Work>,
}

/// Returns the relations in a mask, in ascending order.
pub(super) fn members(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lowest = (mask != 0).then(|| mask.trailing_zeros() as usize)?;
        mask &= mask - 1;
        Some(lowest)
    })
}

impl<'g> Weighed<'g> {
    pub(super) fn new(graph: &'g Graph) -> Self {
        let count = graph.rows.len();
        let mut weighed = Weighed {
            graph,
            neighbours: vec![0; count],
            rows: graph.rows.iter().map(|rows| rows.ln()).collect(),
            factors: vec![0.0; count * count],
            linked: vec![0; count],
            wide: Vec::new(),
            work: Cell::default(),
        };
        for class in &graph.classes {
            let all = class.iter().fold(0u64, |mask, (relation, _)| mask | 1 << relation);
            for (relation, _) in class {
                weighed.neighbours[*relation] |= all & !(1 << relation);
            }
            match class[..] {
                [(a, in_a), (b, in_b)] if a != b => weighed.link(a, b, -in_a.max(in_b).max(1.0).ln()),
                _ => weighed.wide.push(class.iter().map(|(relation, d)| (*relation, d.max(1.0).ln())).collect()),
            }
        }
        weighed.correct_composites();
        weighed
    }

    /// Multiplies what two relations' equalities leave by a factor, given as its logarithm.
    fn link(&mut self, a: usize, b: usize, factor: f64) {
        let (low, high) = (a.min(b), a.max(b));
        self.linked[low] |= 1 << high;
        self.factors[low * self.graph.rows.len() + high] += factor;
    }

    /// Two relations equal in several expressions: together these have no more distinct values than there are rows.
    fn correct_composites(&mut self) {
        /// The products of both sides' distinct values, and what the product of rows is divided by.
        #[derive(Clone, Copy)]
        struct Shared(f64, f64, f64, usize);

        let (graph, count) = (self.graph, self.graph.rows.len());
        let mut shared = vec![Shared(1.0, 1.0, 1.0, 0); count * count];
        for class in &graph.classes {
            for (position, (a, in_a)) in class.iter().enumerate() {
                // A relation that is there twice counts once.
                if class[..position].iter().any(|(known, _)| known == a) {
                    continue;
                }
                for (later, (b, in_b)) in class.iter().enumerate().skip(position + 1) {
                    if a == b || class[..later].iter().any(|(known, _)| known == b) {
                        continue;
                    }
                    let ((a, in_a), (b, in_b)) = if a < b { ((a, in_a), (b, in_b)) } else { ((b, in_b), (a, in_a)) };
                    let (in_a, in_b) = (in_a.max(1.0), in_b.max(1.0));
                    let Shared(product_a, product_b, divided, classes) = &mut shared[a * count + b];
                    *product_a *= in_a;
                    *product_b *= in_b;
                    *divided *= in_a.max(in_b);
                    *classes += 1;
                }
            }
        }
        for (pair, Shared(product_a, product_b, divided, classes)) in shared.into_iter().enumerate() {
            let (a, b) = (pair / count, pair % count);
            if classes > 1 {
                let possible = f64::max(product_a.min(graph.base[a]), product_b.min(graph.base[b])).max(1.0);
                self.link(a, b, (divided / possible).max(1.0).ln());
            }
        }
    }

    /// Counts a pair of plans that is weighed.
    pub(super) fn count_join(&self) {
        let work = self.work.get();
        self.work.set(Work { joins: work.joins + 1, ..work });
    }

    /// Estimates the rows of a set of relations joined, with the conditions that hold of them.
    pub(super) fn cardinality(&self, mask: u64) -> f64 {
        self.estimate(mask, |relations| relations & mask == relations)
    }

    /// Estimates the rows of two sets joined, before the conditions that need both.
    pub(super) fn joined(&self, probe: u64, build: u64) -> f64 {
        self.estimate(probe | build, |relations| relations & probe == relations || relations & build == relations)
    }

    fn estimate(&self, mask: u64, holds: impl Fn(u64) -> bool) -> f64 {
        let work = self.work.get();
        self.work.set(Work { estimates: work.estimates + 1, ..work });
        let count = self.graph.rows.len();
        let mut rows = 0.0;
        for relation in members(mask) {
            rows += self.rows[relation];
            for other in members(mask & self.linked[relation]) {
                rows += self.factors[relation * count + other];
            }
        }
        for class in &self.wide {
            // Of k equal expressions the smallest domain is kept; each other one divides.
            let (mut all, mut smallest) = (0.0, f64::INFINITY);
            for (_, domain) in class.iter().filter(|(relation, _)| mask & (1 << relation) != 0) {
                all += domain;
                smallest = smallest.min(*domain);
            }
            if smallest.is_finite() {
                rows -= all - smallest;
            }
        }
        for (relations, selectivity) in &self.graph.conditions {
            if holds(*relations) {
                rows += selectivity.ln();
            }
        }
        rows.exp().min(MOST_ROWS)
    }

    /// Estimates the share of pairs of two relations that are equal in all that they share.
    pub(super) fn selectivity(&self, a: usize, b: usize) -> f64 {
        let (low, high) = (a.min(b), a.max(b));
        let mut factor = self.factors[low * self.graph.rows.len() + high];
        for class in &self.wide {
            let of = |wanted: usize| class.iter().find(|(relation, _)| *relation == wanted).map(|(_, domain)| *domain);
            if let (Some(in_a), Some(in_b)) = (of(a), of(b)) {
                factor -= in_a.max(in_b);
            }
        }
        factor.exp()
    }

    /// Returns the relations that equalities connect with a set, itself included or not.
    pub(super) fn around(&self, mask: u64) -> u64 {
        members(mask).fold(0, |around, relation| around | self.neighbours[relation])
    }

    /// Returns the sets of relations that equalities connect.
    pub(super) fn components(&self) -> Vec<u64> {
        let mut left: u64 = (0..self.graph.rows.len()).fold(0, |mask, relation| mask | 1 << relation);
        let mut found = Vec::new();
        while left != 0 {
            let mut component = left & left.wrapping_neg();
            loop {
                let grown = component | self.around(component);
                if grown == component {
                    break;
                }
                component = grown;
            }
            found.push(component);
            left &= !component;
        }
        found
    }
}
