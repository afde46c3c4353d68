//! Lowers the operators of a logical plan to relational nodes.

use std::sync::Arc;

use datafusion::{
    common::{DFSchema, JoinType, NullEquality},
    logical_expr::{
        Distinct, Expr, Filter, Join as PlanJoin, Limit, LogicalPlan, Projection, SortExpr, TableScan, Union, Values,
        expr::Alias,
        logical_plan::{FetchType, SkipType},
    },
};
use tandem_column::Type;
use tandem_pipeline::{Expr as Lowered, Slot};

use super::{context::LoweringContext, expression::Scope, literal::kind_of, typed::Typed};
use crate::planning::{
    reason::Reason,
    tree::{
        InputInfo, ScanInfo, TreeColumn,
        node::{ColumnId, Join, JoinRows, Node, OrderBy, conjuncts},
    },
};

/// A lowered plan: its node, and the column of each field of the plan's schema.
pub(crate) struct Relation {
    pub node: Node,
    pub columns: Vec<ColumnId>,
}

/// Returns the name of an operator as reasons give it.
pub(crate) fn name(plan: &LogicalPlan) -> String {
    match plan {
        LogicalPlan::TableScan(scan) => format!("TableScan of {}", scan.table_name),
        LogicalPlan::Join(join) => format!("{} Join", join.join_type),
        LogicalPlan::Window(_) => "Window".to_string(),
        LogicalPlan::Extension(extension) => extension.node.name().to_string(),
        other => {
            let text = other.display().to_string();
            text.split([':', ' ', '(']).next().unwrap_or("Plan").to_string()
        }
    }
}

impl LoweringContext<'_> {
    /// Lowers a plan, or tells why its root cannot be lowered.
    pub(crate) fn plan(&mut self, plan: &LogicalPlan) -> Result<Relation, Reason> {
        // What cannot be lowered whatever is below it is found first: what is below is then lowered on its own, and only then.
        if !self.alone && !matches!(plan, LogicalPlan::SubqueryAlias(_)) && !plan.inputs().is_empty() {
            let mark = self.registry.mark();
            self.alone = true;
            let possible = self.node(plan);
            self.alone = false;
            self.registry.rollback(mark);
            possible?;
        }
        self.node(plan)
    }

    /// Lowers an operator, with what is below it unless it is looked at alone.
    fn node(&mut self, plan: &LogicalPlan) -> Result<Relation, Reason> {
        let result = match plan {
            LogicalPlan::TableScan(scan) => self.scan(scan),
            LogicalPlan::Projection(projection) => self.projection(projection),
            LogicalPlan::Filter(filter) => self.filter(filter),
            LogicalPlan::SubqueryAlias(alias) => return self.plan(&alias.input),
            LogicalPlan::Join(join) => self.join(join),
            LogicalPlan::Aggregate(aggregate) => self.aggregate(aggregate),
            LogicalPlan::Distinct(Distinct::All(input)) => self.distinct(input),
            LogicalPlan::Distinct(Distinct::On(_)) => Err("DISTINCT ON runs on the host".to_string()),
            LogicalPlan::Sort(sort) => self.sort(&sort.input, &sort.expr, sort.fetch),
            LogicalPlan::Limit(limit) => self.limit(limit),
            LogicalPlan::Union(union) => self.union(union),
            LogicalPlan::Values(values) => self.values(values),
            LogicalPlan::EmptyRelation(empty) => {
                let columns = self.fields(&empty.schema);
                let rows = if empty.produce_one_row { vec![vec![]] } else { vec![] };
                Ok(Relation { node: Node::Values { columns: columns.clone(), rows }, columns })
            }
            LogicalPlan::Window(window) => self.window(window),
            LogicalPlan::Unnest(_) => Err("nested values run on the host".to_string()),
            LogicalPlan::RecursiveQuery(_) => Err("recursive queries run on the host".to_string()),
            LogicalPlan::Subquery(_) => Err("correlated subqueries run on the host".to_string()),
            LogicalPlan::Repartition(_) => Err("rows are repartitioned on the host".to_string()),
            LogicalPlan::Extension(_) => Err("extensions run on the host".to_string()),
            _ => Err("statements run on the host".to_string()),
        };
        result.map_err(|reason| Reason::new(name(plan), reason))
    }

    /// Lowers a child; if that cannot be done, the host runs it and its rows are an input.
    pub(crate) fn child(&mut self, plan: &LogicalPlan) -> Relation {
        if self.alone {
            let columns = self.fields(plan.schema());
            return Relation { node: Node::Values { columns: columns.clone(), rows: vec![] }, columns };
        }
        let mark = self.registry.mark();
        match self.plan(plan) {
            Ok(relation) => relation,
            Err(reason) => {
                self.registry.rollback(mark);
                self.input(plan, reason)
            }
        }
    }

    /// Makes a plan that the host runs an input.
    fn input(&mut self, plan: &LogicalPlan, reason: Reason) -> Relation {
        let columns = self.fields(plan.schema());
        let first = columns.first().copied().unwrap_or(self.registry.columns.len());
        self.registry.inputs.push(InputInfo { plan: plan.clone(), reason, first });
        Relation { node: Node::Input { input: self.registry.inputs.len() - 1 }, columns }
    }

    /// Makes a column for each field of a schema.
    fn fields(&mut self, schema: &DFSchema) -> Vec<ColumnId> {
        let field = |field: &Arc<arrow::datatypes::Field>| TreeColumn {
            name: field.name().clone(),
            kind: kind_of(field.data_type()),
            nullable: field.is_nullable(),
            origin: None,
        };
        let first = self.registry.columns.len();
        self.registry.columns.extend(schema.fields().iter().map(field));
        (first..self.registry.columns.len()).collect()
    }

    fn scan(&mut self, scan: &TableScan) -> Result<Relation, String> {
        let stats = self.resolver.resolve(&scan.source, &scan.table_name).ok_or("only the host can read this table")?;
        let schema = scan.source.schema();
        if stats.fields.len() != schema.fields().len() {
            return Err("the table's columns changed since it was registered".to_string());
        }
        let (first, index) = (self.registry.columns.len(), self.registry.scans.len());
        for (position, (field, held)) in schema.fields().iter().zip(stats.fields.iter()).enumerate() {
            let kind = kind_of(field.data_type()).and_then(|kind| {
                if kind == held.kind { Ok(kind) } else { Err(format!("it is held as {}", held.kind)) }
            });
            self.registry.columns.push(TreeColumn {
                name: field.name().clone(),
                kind,
                nullable: field.is_nullable(),
                origin: Some((index, position)),
            });
        }
        self.registry.scans.push(ScanInfo {
            table: scan.table_name.clone(),
            source: scan.source.clone(),
            stats,
            first,
            tried: Default::default(),
        });
        let all: Vec<ColumnId> = (first..self.registry.columns.len()).collect();
        let mut node = Node::Scan { scan: index, filters: vec![] };
        if !scan.filters.is_empty() {
            let full = DFSchema::try_from_qualified_schema(scan.table_name.clone(), &schema)
                .map_err(|error| error.strip_backtrace())?;
            let mut scope = Scope::new(&full, &all);
            let filters = self.conditions(&mut scope, &scan.filters)?;
            node = self.attach(node, scope)?.filter(filters);
        }
        if let Some(fetch) = scan.fetch {
            node = node.limit(0, Some(fetch));
        }
        let columns = match &scan.projection {
            Some(projection) => projection.iter().map(|position| first + position).collect(),
            None => all,
        };
        Ok(Relation { node, columns })
    }

    fn projection(&mut self, projection: &Projection) -> Result<Relation, String> {
        let input = self.child(&projection.input);
        self.project(input, projection.input.schema(), &projection.expr)
    }

    /// Computes expressions over a relation; plain columns keep their ids.
    fn project(&mut self, input: Relation, schema: &DFSchema, exprs: &[Expr]) -> Result<Relation, String> {
        let mut scope = Scope::new(schema, &input.columns);
        let mut computed = Vec::new();
        let mut columns = Vec::new();
        for expr in exprs {
            columns.push(self.place(&mut scope, expr, &mut computed)?);
        }
        let node = self.attach(input.node, scope)?.extend(computed);
        Ok(Relation { node, columns })
    }

    /// Returns the column of an expression: its own if it is one, else a new one, added to `computed`.
    pub(crate) fn place(
        &mut self,
        scope: &mut Scope<'_>,
        expr: &Expr,
        computed: &mut Vec<(ColumnId, Lowered)>,
    ) -> Result<ColumnId, String> {
        let bare = unalias(expr);
        if let Expr::Column(column) = bare {
            return scope.column(column);
        }
        let lowered = self.expression(scope, bare)?;
        self.check(&lowered.expr)?;
        if let Lowered::Slot(column) = lowered.expr {
            return Ok(column);
        }
        if let Some((column, _)) = computed.iter().find(|(_, known)| *known == lowered.expr) {
            return Ok(*column);
        }
        let column = self.column(expr.schema_name().to_string(), lowered.kind, lowered.nullable);
        computed.push((column, lowered.expr));
        Ok(column)
    }

    /// Lowers conditions and splits them at their ANDs.
    fn conditions(&mut self, scope: &mut Scope<'_>, exprs: &[Expr]) -> Result<Vec<Lowered>, String> {
        let mut predicates = Vec::new();
        for expr in exprs {
            predicates.extend(conjuncts(self.condition(scope, expr)?));
        }
        predicates.iter().try_for_each(|predicate| self.check(predicate))?;
        Ok(predicates)
    }

    /// Asks the executor whether it can evaluate an expression, so that only the operator that has it is left to the host.
    fn check(&self, expr: &Lowered) -> Result<(), String> {
        let columns: Vec<ColumnId> = expr.slots().into_iter().collect();
        let slots = columns.iter().map(|column| {
            let info = &self.registry.columns[*column];
            Ok(Slot { name: info.name.clone(), kind: self.kind(*column)?, nullable: info.nullable })
        });
        let slots = slots.collect::<Result<Vec<_>, String>>()?;
        let position = |column: ColumnId| columns.binary_search(&column).unwrap_or_default();
        tandem_cpu::evaluate::supports(&expr.map_slots(&position), &slots).map_err(|error| error.message)
    }

    fn filter(&mut self, filter: &Filter) -> Result<Relation, String> {
        let input = self.child(&filter.input);
        let mut scope = Scope::new(filter.input.schema(), &input.columns);
        let predicates = self.conditions(&mut scope, std::slice::from_ref(&filter.predicate))?;
        let node = self.attach(input.node, scope)?.filter(predicates);
        Ok(Relation { node, columns: input.columns })
    }

    /// Joins the scalar subqueries of a scope to the node their values are used above.
    pub(crate) fn attach(&mut self, mut node: Node, scope: Scope<'_>) -> Result<Node, String> {
        for (_, subquery, _) in scope.subqueries {
            node = Node::Join(Box::new(Join {
                kind: JoinRows::Left,
                left: node,
                right: subquery,
                on: vec![],
                residual: None,
                null_equals_null: false,
                null_aware: false,
                swap: false,
                estimate: None,
            }));
        }
        Ok(node)
    }

    fn join(&mut self, join: &PlanJoin) -> Result<Relation, String> {
        let left = self.child(&join.left);
        let right = self.child(&join.right);
        let mut on = Vec::new();
        for (left_key, right_key) in &join.on {
            let mut left_scope = Scope::new(join.left.schema(), &left.columns);
            let mut right_scope = Scope::new(join.right.schema(), &right.columns);
            let left_key = self.expression(&mut left_scope, left_key)?;
            let right_key = self.expression(&mut right_scope, right_key)?;
            if !left_scope.subqueries.is_empty() || !right_scope.subqueries.is_empty() {
                return Err("subqueries in join conditions run on the host".to_string());
            }
            if left_key.kind != right_key.kind {
                return Err(format!("joins of {} with {} run on the host", left_key.kind, right_key.kind));
            }
            if left_key.kind == Type::Null || left_key.kind == Type::Interval {
                return Err(format!("joins by keys of type {} run on the host", left_key.kind));
            }
            self.check(&left_key.expr)?;
            self.check(&right_key.expr)?;
            on.push((left_key.one_zero().expr, right_key.one_zero().expr));
        }
        let residual = match &join.filter {
            None => None,
            Some(filter) => {
                let schema = join.left.schema().join(join.right.schema()).map_err(|error| error.strip_backtrace())?;
                let columns: Vec<ColumnId> = left.columns.iter().chain(&right.columns).copied().collect();
                let mut scope = Scope::new(&schema, &columns);
                let residual = self.condition(&mut scope, filter)?;
                self.check(&residual)?;
                if !scope.subqueries.is_empty() {
                    return Err("subqueries in join conditions run on the host".to_string());
                }
                Some(residual)
            }
        };
        if join.null_aware && (on.len() != 1 || residual.is_some()) {
            return Err("NOT IN with further conditions runs on the host".to_string());
        }
        self.make_join(join, left, right, on, residual)
    }

    /// Makes a join node whose left side is the one that outer, semi, anti and mark joins keep.
    fn make_join(
        &mut self,
        join: &PlanJoin,
        left: Relation,
        right: Relation,
        on: Vec<(Lowered, Lowered)>,
        residual: Option<Lowered>,
    ) -> Result<Relation, String> {
        use JoinType::*;
        let both = || left.columns.iter().chain(&right.columns).copied().collect::<Vec<_>>();
        let (mut null_left, mut null_right) = (false, false);
        let (kind, flip, columns) = match join.join_type {
            Inner => (JoinRows::Inner, false, both()),
            Left => {
                null_right = true;
                (JoinRows::Left, false, both())
            }
            Right => {
                null_left = true;
                (JoinRows::Left, true, both())
            }
            Full => {
                (null_left, null_right) = (true, true);
                (JoinRows::Full, false, both())
            }
            LeftSemi => (JoinRows::Semi, false, left.columns.clone()),
            RightSemi => (JoinRows::Semi, true, right.columns.clone()),
            LeftAnti => (JoinRows::Anti, false, left.columns.clone()),
            RightAnti => (JoinRows::Anti, true, right.columns.clone()),
            LeftMark | RightMark => {
                let flip = join.join_type == RightMark;
                let mark = self.column("mark", Type::Boolean, false);
                let mut columns = if flip { right.columns.clone() } else { left.columns.clone() };
                columns.push(mark);
                (JoinRows::Mark(mark), flip, columns)
            }
        };
        for (set, side) in [(null_left, &left), (null_right, &right)] {
            if set {
                side.columns.iter().for_each(|column| self.registry.columns[*column].nullable = true);
            }
        }
        let (left, right, on) = if flip {
            (right.node, left.node, on.into_iter().map(|(left, right)| (right, left)).collect())
        } else {
            (left.node, right.node, on)
        };
        let node = Node::Join(Box::new(Join {
            kind,
            left,
            right,
            on,
            residual,
            null_equals_null: join.null_equality == NullEquality::NullEqualsNull,
            null_aware: join.null_aware,
            swap: false,
            estimate: None,
        }));
        Ok(Relation { node: simplify(node), columns })
    }

    fn distinct(&mut self, input: &LogicalPlan) -> Result<Relation, String> {
        let input = self.child(input);
        let mut computed = Vec::new();
        let mut columns = Vec::with_capacity(input.columns.len());
        for column in input.columns {
            columns.push(self.group_key(column, &mut computed)?);
        }
        let mut keys = columns.clone();
        keys.sort_unstable();
        keys.dedup();
        let node = Node::Aggregate { input: Box::new(input.node.extend(computed)), keys, aggregates: vec![] };
        Ok(Relation { node, columns })
    }

    /// Returns the column to group by for a column: itself, or for floats one that has a single zero.
    pub(crate) fn group_key(
        &mut self,
        column: ColumnId,
        computed: &mut Vec<(ColumnId, Lowered)>,
    ) -> Result<ColumnId, String> {
        let kind = self.kind(column)?;
        if matches!(kind, Type::Interval | Type::Null) {
            return Err(format!("grouping by {kind} runs on the host"));
        }
        if !kind.is_float() {
            return Ok(column);
        }
        let (name, nullable) = (self.registry.columns[column].name.clone(), self.registry.columns[column].nullable);
        // A column that is computed here cannot be read by another one of the same step.
        let value = computed.iter().find(|(known, _)| *known == column).map(|(_, expr)| expr.clone());
        let value = value.unwrap_or(Lowered::Slot(column));
        let value = Typed::new(value, kind.clone(), nullable).one_zero().expr;
        if let Some((known, _)) = computed.iter().find(|(_, expr)| *expr == value) {
            return Ok(*known);
        }
        let key = self.column(name, kind, nullable);
        computed.push((key, value));
        Ok(key)
    }

    fn sort(&mut self, input: &LogicalPlan, by: &[SortExpr], fetch: Option<usize>) -> Result<Relation, String> {
        let relation = self.child(input);
        let mut scope = Scope::new(input.schema(), &relation.columns);
        let mut computed = Vec::new();
        let mut keys = Vec::new();
        for key in by {
            let column = self.place(&mut scope, &key.expr, &mut computed)?;
            let kind = self.kind(column)?;
            if kind == Type::Interval {
                return Err("intervals are ordered on the host".to_string());
            }
            keys.push(OrderBy { column, descending: !key.asc, nulls_first: key.nulls_first });
        }
        let input = self.attach(relation.node, scope)?.extend(computed);
        let node = Node::Sort { input: Box::new(input), keys, skip: 0, fetch };
        Ok(Relation { node, columns: relation.columns })
    }

    fn limit(&mut self, limit: &Limit) -> Result<Relation, String> {
        let skip = match limit.get_skip_type().map_err(|error| error.strip_backtrace())? {
            SkipType::Literal(skip) => skip,
            SkipType::UnsupportedExpr => return Err("OFFSET by an expression runs on the host".to_string()),
        };
        let fetch = match limit.get_fetch_type().map_err(|error| error.strip_backtrace())? {
            FetchType::Literal(fetch) => fetch,
            FetchType::UnsupportedExpr => return Err("LIMIT by an expression runs on the host".to_string()),
        };
        let input = self.child(&limit.input);
        Ok(Relation { node: input.node.limit(skip, fetch), columns: input.columns })
    }

    fn union(&mut self, union: &Union) -> Result<Relation, String> {
        let mut inputs = Vec::new();
        for input in &union.inputs {
            let relation = self.child(input);
            inputs.push((relation.node, relation.columns));
        }
        let columns = self.fields(&union.schema);
        for (position, column) in columns.iter().enumerate() {
            // A column that Tandem cannot compute with fails only where it is used.
            let Ok(kind) = self.kind(*column) else { continue };
            for (_, from) in &inputs {
                let found = self.kind(from[position])?;
                if found != kind {
                    return Err(format!("unions of {found} with {kind} run on the host"));
                }
                self.registry.columns[*column].nullable |= self.registry.columns[from[position]].nullable;
            }
        }
        Ok(Relation { node: Node::Union { inputs, columns: columns.clone() }, columns })
    }

    fn values(&mut self, values: &Values) -> Result<Relation, String> {
        let columns = self.fields(&values.schema);
        let empty = DFSchema::empty();
        let mut rows = Vec::with_capacity(values.values.len());
        for row in &values.values {
            let mut lowered = Vec::with_capacity(row.len());
            for (expr, column) in row.iter().zip(&columns) {
                let value = self.expression(&mut Scope::new(&empty, &[]), expr)?;
                match value.expr {
                    Lowered::Literal(value, kind) if kind == self.kind(*column)? || kind == Type::Null => {
                        lowered.push(value);
                    }
                    _ => return Err("VALUES that are not constants run on the host".to_string()),
                }
            }
            rows.push(lowered);
        }
        columns.iter().for_each(|column| self.registry.columns[*column].nullable = true);
        Ok(Relation { node: Node::Values { columns: columns.clone(), rows }, columns })
    }
}

/// Moves what an inner join's residual says about equality to its keys.
fn simplify(node: Node) -> Node {
    match node {
        Node::Join(mut join) if join.kind == JoinRows::Inner && join.on.is_empty() && !join.null_equals_null => {
            // Equalities hidden in a residual are found again when joins are ordered; here it becomes a filter.
            match join.residual.take() {
                Some(residual) => Node::Join(join).filter(conjuncts(residual)),
                None => Node::Join(join),
            }
        }
        other => other,
    }
}

/// Returns an expression without its aliases.
pub(crate) fn unalias(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(Alias { expr, .. }) => unalias(expr),
        other => other,
    }
}
