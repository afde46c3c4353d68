//! Inequalities between the sides of a join become conditions that a probe searches by.
//!
//! A condition such as `a.time >= b.start` above a join belongs to it, where a key may have several entries: the build is then
//! put in the order of its side (`tandem_plan::RunOrder`) and pairs that do not fulfil it are never made. Sides that are
//! computed, as `b.start + 5`, become columns of their inputs.

use std::collections::BTreeSet;

use tandem_column::Repr;
use tandem_pipeline::{ArithmeticOperator, Comparison, Expr, Slot};

use super::Estimator;
use crate::planning::tree::{
    Registry, TreeColumn, may_fail,
    node::{ColumnId, Join, JoinRows, Node, conjuncts, references},
    visit,
};

/// Moves inequalities of a tree to its joins, which are in their order; returns the columns added to the registry's.
pub(crate) fn search_by_inequality(registry: &Registry, node: &mut Node) -> Vec<TreeColumn> {
    let mut moving = Moving { registry, estimator: Estimator::new(registry), added: Vec::new() };
    moving.node(node);
    moving.added
}

struct Moving<'a> {
    registry: &'a Registry,
    estimator: Estimator<'a>,
    added: Vec<TreeColumn>,
}

/// The columns of a join's sides.
struct Sides {
    left: BTreeSet<ColumnId>,
    right: BTreeSet<ColumnId>,
    /// The join has keys: not every row meets one of the other side.
    keyed: bool,
}

impl Sides {
    /// Tells whether an expression may be computed of all rows of its side: it cannot fail, or no key keeps a row from it and
    /// it fails of nothing but sums beyond their type.
    fn is_computed_ahead(&self, expr: &Expr) -> bool {
        let mut sums = true;
        visit(expr, &mut |expr| {
            sums &= match expr {
                Expr::Slot(_) | Expr::Literal(..) | Expr::Cast { .. } => true,
                Expr::Arithmetic(one) => matches!(one.operator, ArithmeticOperator::Add | ArithmeticOperator::Subtract),
                _ => false,
            };
        });
        !may_fail(expr) || sums && !self.keyed
    }

    /// Tells whether an expression reads columns of one side only; true of the left one, false of the right one.
    fn is_left(&self, expr: &Expr) -> Option<bool> {
        let columns = references(expr);
        match (columns.is_subset(&self.left), columns.is_subset(&self.right)) {
            (true, false) => Some(true),
            (false, true) => Some(false),
            _ => None,
        }
    }
}

impl Moving<'_> {
    fn node(&mut self, node: &mut Node) {
        let mut child = 0;
        while let Some(below) = node.child_mut(child) {
            self.node(below);
            child += 1;
        }
        let taken = match node {
            Node::Filter { input, predicates } => match &mut **input {
                Node::Join(join) if join.kind == JoinRows::Inner => Some((join, Some(predicates))),
                _ => None,
            },
            Node::Join(join) => Some((join, None)),
            _ => None,
        };
        let Some((join, above)) = taken else { return };
        if above.is_none() && join.residual.is_none() {
            return;
        }
        if join.null_aware || !self.repeats(join) {
            return;
        }
        let (left, right) = (self.estimator.produced(&join.left), self.estimator.produced(&join.right));
        let sides = Sides { left, right, keyed: !join.on.is_empty() };
        if let Some(predicates) = above {
            let taken = std::mem::take(predicates).into_iter();
            let (mut conditions, kept): (Vec<_>, Vec<_>) = taken.partition(|one| self.is_searched(one, &sides));
            *predicates = kept;
            conditions.extend(join.residual.take().into_iter().flat_map(conjuncts));
            join.residual = all(conditions);
        }
        self.compute_sides(join, &sides);
        if let Node::Filter { input, predicates } = node
            && predicates.is_empty()
        {
            let below = std::mem::replace(&mut **input, Node::Values { columns: vec![], rows: vec![] });
            *node = below;
        }
    }

    /// Tells whether a key of the side that is built may have several entries.
    fn repeats(&self, join: &Join) -> bool {
        let keys = join.on.iter().map(|(left, right)| if join.swap { left } else { right });
        let build = if join.swap { &join.left } else { &join.right };
        join.on.is_empty() || !self.estimator.unique(build, &keys.collect::<Vec<_>>())
    }

    /// Tells whether a condition is an inequality of numbers between the sides, which may be computed ahead.
    fn is_searched(&self, condition: &Expr, sides: &Sides) -> bool {
        let Some((condition, null)) = condition.as_comparison() else { return false };
        let Expr::Compare(comparison, left, right) = condition else { return false };
        if null.is_some_and(|null| !matches!(null, Expr::Slot(_))) {
            return false;
        }
        let inequality = !matches!(comparison, Comparison::Equal | Comparison::NotEqual);
        let across = matches!((sides.is_left(left), sides.is_left(right)), (Some(a), Some(b)) if a != b);
        let number = |slot: Slot| matches!(slot.kind.repr(), Repr::Int | Repr::Float);
        let ahead = |expr: &Expr| self.value(expr).is_some_and(number) && sides.is_computed_ahead(expr);
        inequality && across && ahead(left) && ahead(right)
    }

    /// Makes columns of the computed sides of a join's inequalities.
    fn compute_sides(&mut self, join: &mut Join, sides: &Sides) {
        let Some(residual) = join.residual.take() else { return };
        let (mut left, mut right) = (Vec::new(), Vec::new());
        let mut conditions = conjuncts(residual);
        for condition in &mut conditions {
            if !self.is_searched(condition, sides) {
                continue;
            }
            let Some((one, other)) = sides_of(condition) else { continue };
            for side in [one, other] {
                if matches!(side, Expr::Slot(_)) {
                    continue;
                }
                let (Some(slot), Some(is_left)) = (self.value(side), sides.is_left(side)) else { continue };
                let columns: &mut Vec<(ColumnId, Expr)> = if is_left { &mut left } else { &mut right };
                let known = columns.iter().find(|(_, known)| known == side).map(|(column, _)| *column);
                let column = known.unwrap_or_else(|| {
                    let column = self.registry.columns.len() + self.added.len();
                    let Slot { name, kind, nullable } = slot;
                    self.added.push(TreeColumn { name, kind: Ok(kind), nullable, origin: None });
                    columns.push((column, side.clone()));
                    column
                });
                *side = Expr::Slot(column);
            }
        }
        join.residual = all(conditions);
        for (side, columns) in [(&mut join.left, left), (&mut join.right, right)] {
            let node = std::mem::replace(side, Node::Values { columns: vec![], rows: vec![] });
            *side = node.extend(columns);
        }
    }

    /// Describes the value of an expression; `None` if it reads a column that Tandem cannot compute with.
    fn value(&self, expr: &Expr) -> Option<Slot> {
        let columns: Vec<ColumnId> = references(expr).into_iter().collect();
        let slot = |column: &ColumnId| {
            let TreeColumn { name, kind, nullable, .. } = self.registry.columns.get(*column)?;
            Some(Slot { name: name.clone(), kind: kind.clone().ok()?, nullable: *nullable })
        };
        let slots = columns.iter().map(slot).collect::<Option<Vec<_>>>()?;
        let expr = expr.map_slots(&|column| columns.binary_search(&column).unwrap_or_default());
        Some(Slot { name: expr.display(&slots).to_string(), kind: expr.kind(&slots), nullable: expr.nullable(&slots) })
    }
}

/// Returns the sides of a condition that is searched by.
fn sides_of(condition: &mut Expr) -> Option<(&mut Expr, &mut Expr)> {
    match condition {
        Expr::Compare(_, one, other) => Some((one, other)),
        Expr::Or(inputs) => inputs.iter_mut().find_map(sides_of),
        _ => None,
    }
}

/// Joins conditions by AND.
fn all(mut conditions: Vec<Expr>) -> Option<Expr> {
    if conditions.len() > 1 { Some(Expr::And(conditions)) } else { conditions.pop() }
}
