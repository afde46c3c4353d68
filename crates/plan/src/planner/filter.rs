//! Where filters run: on codes at the very front, or in their place.

use tandem_pipeline::Expr;

use super::{Decided, Fate, Planner};
use crate::{
    Action, domain,
    filter::{Compiled, Compiler, Filter},
    outline::{dropped_checks, kept},
};

impl Planner<'_> {
    /// Plans a filter step.
    pub(super) fn filter(&mut self, step: usize, expr: &Expr) {
        let rewritten = domain::drop_checks(expr, &self.body.domains);
        let unchecked = dropped_checks(std::slice::from_ref(expr), std::slice::from_ref(&rewritten));
        // Statistics do not know the nulls of unmatched build rows, which reach this filter too.
        if self.outer {
            return self.push(step, unchecked, Fate::Runs(Action::Filter(rewritten)));
        }
        let (slots, origins) = (&self.pipeline.slots, &self.body.origins);
        let compiler = Compiler { slots, origins, table: self.table, selector: self.planning.selector };
        let Some(compiled) = compiler.compile(&rewritten) else {
            self.never = true;
            return self.push(step, Some("no row satisfies it".into()), Fate::Removed);
        };
        for Compiled { of, filter } in compiled {
            let display = |expr: &Expr| expr.display_with(slots, &self.query.functions).to_string();
            let text = format!("filter {}", of.iter().map(display).collect::<Vec<_>>().join(" and "));
            let (choice, fate) = match filter {
                None => (Some("every row satisfies it".into()), Fate::Removed),
                Some(Filter::General(expr)) => (unchecked.clone(), Fate::Runs(Action::Filter(expr))),
                Some(filter) => (kept(&filter, slots, &self.body.domains), self.select(filter)),
            };
            self.decided.push(Decided { of: step, text, choice, fate });
        }
    }

    /// Puts a filter where it runs: on codes at the very front, others where they are.
    pub(super) fn select(&mut self, filter: Filter) -> Fate {
        // As if values were spread evenly.
        let span = |low: i64, high: i64| high as f64 - low as f64 + 1.0;
        let whole =
            |column: usize| self.body.domains[column].range.map_or(f64::INFINITY, |(low, high)| span(low, high));
        match filter {
            Filter::General(expr) => Fate::Runs(Action::Filter(expr)),
            Filter::Between { column, low, high } => {
                Fate::Front(span(low, high) / whole(column), Action::Between { column, low, high })
            }
            Filter::Member { column, set } => {
                let kept = set.len() as f64 / whole(column);
                self.sets.push(set);
                Fate::Front(kept, Action::Member { column, set: self.sets.len() - 1 })
            }
        }
    }
}
