//! Lowers the host's expressions: the same value for every row, or a reason.
//!
//! The host has already resolved names and made types agree, so operands of one operation are of one type. What SQL leaves
//! to engines is written into the operation here: overflow, division by zero and failed casts are errors.

use datafusion::{
    common::{Column, DFSchema},
    logical_expr::{Between, BinaryExpr, Case, Expr, ExprSchemable, Like, Operator, Subquery, expr::InList},
};
use tandem_column::Type;
use tandem_pipeline::{
    Arithmetic, ArithmeticOperator, Comparison, Expr as Lowered, Failure, Function, Overflow, Value,
};

use super::{
    context::LoweringContext,
    literal::{kind_of, literal},
    plan::unalias,
    typed::{Typed, comparison},
};
use crate::planning::tree::node::{ColumnId, Node};

/// How deeply expressions may be nested: what the verifier takes, less what lowering wraps around them.
const DEPTH_LIMIT: usize = tandem_pipeline::verify::DEPTH_LIMIT / 2;

/// Where names are looked up: a schema, the column of each of its fields, and the subqueries met on the way.
pub(crate) struct Scope<'s> {
    pub schema: &'s DFSchema,
    pub columns: &'s [ColumnId],
    pub subqueries: Vec<(Subquery, Node, ColumnId)>,
}

impl<'s> Scope<'s> {
    pub(crate) fn new(schema: &'s DFSchema, columns: &'s [ColumnId]) -> Self {
        Scope { schema, columns, subqueries: vec![] }
    }

    /// Returns the column a name stands for.
    pub(crate) fn column(&self, column: &Column) -> Result<ColumnId, String> {
        let position = self.schema.index_of_column(column).map_err(|error| error.strip_backtrace())?;
        Ok(self.columns[position])
    }
}

impl LoweringContext<'_> {
    /// Lowers a boolean expression.
    pub(crate) fn condition(&mut self, scope: &mut Scope<'_>, expr: &Expr) -> Result<Lowered, String> {
        Ok(self.truth(scope, expr)?.expr)
    }

    fn truth(&mut self, scope: &mut Scope<'_>, expr: &Expr) -> Result<Typed, String> {
        let lowered = self.expression(scope, expr)?.adopt(&Type::Boolean);
        if lowered.kind != Type::Boolean {
            return Err(format!("conditions of type {} run on the host", lowered.kind));
        }
        Ok(lowered)
    }

    /// Lowers an expression.
    pub(crate) fn expression(&mut self, scope: &mut Scope<'_>, expr: &Expr) -> Result<Typed, String> {
        if self.depth >= DEPTH_LIMIT {
            return Err(format!("expressions nested more than {DEPTH_LIMIT} deep run on the host"));
        }
        self.depth += 1;
        let lowered = self.lower_expression(scope, expr);
        self.depth -= 1;
        lowered
    }

    fn lower_expression(&mut self, scope: &mut Scope<'_>, expr: &Expr) -> Result<Typed, String> {
        match expr {
            Expr::Alias(_) => self.expression(scope, unalias(expr)),
            Expr::Column(column) => {
                let column = scope.column(column)?;
                Ok(Typed::new(Lowered::Slot(column), self.kind(column)?, self.registry.columns[column].nullable))
            }
            Expr::Literal(value, _) => {
                let (value, kind) = literal(value)?;
                Ok(Typed::literal(value, kind))
            }
            Expr::BinaryExpr(binary) => self.binary(scope, binary, expr),
            Expr::Like(like) => self.like(scope, like),
            Expr::Not(input) => {
                let input = self.truth(scope, input)?;
                Ok(Typed::boolean(Lowered::Not(Box::new(input.expr)), input.nullable))
            }
            Expr::IsNull(input) | Expr::IsUnknown(input) => self.is_null(scope, input),
            Expr::IsNotNull(input) | Expr::IsNotUnknown(input) => {
                let test = self.is_null(scope, input)?;
                Ok(Typed::boolean(Lowered::Not(Box::new(test.expr)), false))
            }
            Expr::IsTrue(input) => self.is(scope, input, true, true),
            Expr::IsFalse(input) => self.is(scope, input, false, true),
            Expr::IsNotTrue(input) => self.is(scope, input, true, false),
            Expr::IsNotFalse(input) => self.is(scope, input, false, false),
            Expr::Negative(input) => {
                let input = self.expression(scope, input)?;
                if !input.kind.is_numeric() {
                    return Err(format!("negation of {} runs on the host", input.kind));
                }
                Ok(Typed::new(Lowered::Negate(Box::new(input.expr), Overflow::Error), input.kind, input.nullable))
            }
            Expr::Between(between) => self.between(scope, between),
            Expr::InList(list) => self.in_list(scope, list),
            Expr::Case(case) => self.case(scope, case, expr),
            Expr::Cast(cast) => self.cast(scope, &cast.expr, cast.field.data_type(), Failure::Error),
            Expr::TryCast(cast) => self.cast(scope, &cast.expr, cast.field.data_type(), Failure::Null),
            Expr::ScalarFunction(function) => self.function(scope, function, expr),
            Expr::ScalarSubquery(subquery) => self.subquery(scope, subquery),
            Expr::SimilarTo(_) => Err("SIMILAR TO runs on the host".to_string()),
            Expr::Exists(_) | Expr::InSubquery(_) | Expr::SetComparison(_) | Expr::OuterReferenceColumn(..) => {
                Err("correlated subqueries run on the host".to_string())
            }
            Expr::WindowFunction(_) => Err("window functions run on the host".to_string()),
            Expr::Placeholder(_) | Expr::ScalarVariable(..) => Err("variables run on the host".to_string()),
            Expr::Unnest(_) => Err("nested values run on the host".to_string()),
            other => Err(format!("the expression {other} runs on the host")),
        }
    }

    /// Returns Tandem's type for the type the host gives an expression.
    pub(crate) fn result_kind(&self, scope: &Scope<'_>, expr: &Expr) -> Result<Type, String> {
        kind_of(&expr.get_type(scope.schema).map_err(|error| error.strip_backtrace())?)
    }

    fn is_null(&mut self, scope: &mut Scope<'_>, input: &Expr) -> Result<Typed, String> {
        if let Some(matches) = self.matches(scope, input)? {
            return Ok(Typed::boolean(Lowered::Not(Box::new(matches)), false));
        }
        let input = self.expression(scope, input)?;
        Ok(Typed::boolean(Lowered::IsNull(Box::new(input.expr)), false))
    }

    /// Tests for one truth value: `x IS [NOT] TRUE` is `x IS [NOT] DISTINCT FROM TRUE`.
    fn is(&mut self, scope: &mut Scope<'_>, input: &Expr, value: bool, equal: bool) -> Result<Typed, String> {
        let input = self.condition(scope, input)?;
        let value = Lowered::Literal(Value::Boolean(value), Type::Boolean);
        let distinct = Lowered::Distinct(Box::new(input), Box::new(value));
        Ok(Typed::boolean(if equal { Lowered::Not(Box::new(distinct)) } else { distinct }, false))
    }

    /// Lowers two operands and checks that they are of one type.
    fn pair(&mut self, scope: &mut Scope<'_>, left: &Expr, right: &Expr) -> Result<(Typed, Typed), String> {
        let left = self.expression(scope, left)?;
        let right = self.expression(scope, right)?;
        let (left, right) = (left.clone().adopt(&right.kind), right.adopt(&left.kind));
        if left.kind != right.kind {
            return Err(format!("comparing {} with {} runs on the host", left.kind, right.kind));
        }
        if left.kind == Type::Interval {
            return Err("intervals are compared on the host".to_string());
        }
        Ok((left, right))
    }

    fn compare(
        &mut self,
        scope: &mut Scope<'_>,
        operator: Comparison,
        left: &Expr,
        right: &Expr,
    ) -> Result<Typed, String> {
        let (left, right) = self.pair(scope, left, right)?;
        Ok(comparison(operator, left, right))
    }

    fn binary(&mut self, scope: &mut Scope<'_>, binary: &BinaryExpr, whole: &Expr) -> Result<Typed, String> {
        let BinaryExpr { left, op, right } = binary;
        match op {
            Operator::And | Operator::Or => {
                let mut parts = Vec::new();
                let mut nullable = false;
                for operand in operands(whole, *op) {
                    let operand = self.truth(scope, operand)?;
                    nullable |= operand.nullable;
                    parts.push(operand.expr);
                }
                let expr = if *op == Operator::And { Lowered::And(parts) } else { Lowered::Or(parts) };
                Ok(Typed::boolean(expr, nullable))
            }
            Operator::Eq => self.compare(scope, Comparison::Equal, left, right),
            Operator::NotEq => self.compare(scope, Comparison::NotEqual, left, right),
            Operator::Lt => self.compare(scope, Comparison::Less, left, right),
            Operator::LtEq => self.compare(scope, Comparison::LessOrEqual, left, right),
            Operator::Gt => self.compare(scope, Comparison::Greater, left, right),
            Operator::GtEq => self.compare(scope, Comparison::GreaterOrEqual, left, right),
            Operator::IsDistinctFrom | Operator::IsNotDistinctFrom => {
                let (left, right) = self.pair(scope, left, right)?;
                let distinct = Lowered::Distinct(Box::new(left.one_zero().expr), Box::new(right.one_zero().expr));
                let equal = *op == Operator::IsNotDistinctFrom;
                Ok(Typed::boolean(if equal { Lowered::Not(Box::new(distinct)) } else { distinct }, false))
            }
            Operator::Plus => self.arithmetic(scope, ArithmeticOperator::Add, left, right, whole),
            Operator::Minus => self.arithmetic(scope, ArithmeticOperator::Subtract, left, right, whole),
            Operator::Multiply => self.arithmetic(scope, ArithmeticOperator::Multiply, left, right, whole),
            Operator::Divide => self.arithmetic(scope, ArithmeticOperator::Divide, left, right, whole),
            Operator::Modulo => self.arithmetic(scope, ArithmeticOperator::Remainder, left, right, whole),
            Operator::StringConcat => self.concatenate(scope, left, right),
            Operator::RegexMatch | Operator::RegexIMatch | Operator::RegexNotMatch | Operator::RegexNotIMatch => {
                let ignore_case = matches!(op, Operator::RegexIMatch | Operator::RegexNotIMatch);
                let negated = matches!(op, Operator::RegexNotMatch | Operator::RegexNotIMatch);
                self.regexp(scope, [left, right], ignore_case, negated)
            }
            Operator::BitwiseAnd => self.operator(scope, "&", [left, right], whole),
            Operator::BitwiseOr => self.operator(scope, "|", [left, right], whole),
            Operator::BitwiseXor => self.operator(scope, "^", [left, right], whole),
            Operator::BitwiseShiftLeft => self.operator(scope, "<<", [left, right], whole),
            Operator::BitwiseShiftRight => self.operator(scope, ">>", [left, right], whole),
            Operator::LikeMatch | Operator::ILikeMatch | Operator::NotLikeMatch | Operator::NotILikeMatch => {
                let like = Like {
                    negated: matches!(op, Operator::NotLikeMatch | Operator::NotILikeMatch),
                    expr: left.clone(),
                    pattern: right.clone(),
                    escape_char: None,
                    case_insensitive: matches!(op, Operator::ILikeMatch | Operator::NotILikeMatch),
                };
                self.like(scope, &like)
            }
            other => Err(format!("the operator {other} runs on the host")),
        }
    }

    fn arithmetic(
        &mut self,
        scope: &mut Scope<'_>,
        operator: ArithmeticOperator,
        left: &Expr,
        right: &Expr,
        whole: &Expr,
    ) -> Result<Typed, String> {
        let kind = self.result_kind(scope, whole)?;
        let left = self.expression(scope, left)?;
        let right = self.expression(scope, right)?;
        let (left, right) = (left.clone().adopt(&right.kind), right.adopt(&left.kind));
        let decimal = |kind: &Type| matches!(kind, Type::Decimal { .. });
        let dated = |kind: &Type| matches!(kind, Type::Date | Type::Timestamp(_, None));
        let fits = match (&left.kind, &right.kind) {
            (a, b) if decimal(a) && decimal(b) => decimal(&kind),
            (a, b) if a.is_numeric() => a == b && *a == kind,
            (a, Type::Interval) if dated(a) => {
                *a == kind && matches!(operator, ArithmeticOperator::Add | ArithmeticOperator::Subtract)
            }
            _ => false,
        };
        if !fits {
            return Err(format!("arithmetic of {} with {} giving {kind} runs on the host", left.kind, right.kind));
        }
        let nullable = left.nullable || right.nullable;
        let operation = Arithmetic {
            operator,
            left: left.expr,
            right: right.expr,
            kind: kind.clone(),
            overflow: Overflow::Error,
            zero: Failure::Error,
        };
        Ok(Typed::new(Lowered::Arithmetic(Box::new(operation)), kind, nullable))
    }

    /// Lowers `left || right`, which unlike the function is null if either side is.
    fn concatenate(&mut self, scope: &mut Scope<'_>, left: &Expr, right: &Expr) -> Result<Typed, String> {
        let left = self.expression(scope, left)?.adopt(&Type::String);
        let right = self.expression(scope, right)?.adopt(&Type::String);
        if left.kind != Type::String || right.kind != Type::String {
            return Err(format!("joining {} with {} as text runs on the host", left.kind, right.kind));
        }
        let nulls: Vec<Lowered> = [&left, &right]
            .into_iter()
            .filter(|side| side.nullable)
            .map(|side| Lowered::IsNull(Box::new(side.expr.clone())))
            .collect();
        let joined = Lowered::Function {
            function: Function::Concat,
            arguments: vec![left.expr, right.expr],
            kind: Type::String,
        };
        if nulls.is_empty() {
            return Ok(Typed::new(joined, Type::String, false));
        }
        let expr = Lowered::Case {
            branches: vec![(Lowered::Or(nulls), Lowered::Literal(Value::Null, Type::String))],
            otherwise: Some(Box::new(joined)),
            kind: Type::String,
        };
        Ok(Typed::new(expr, Type::String, true))
    }

    fn like(&mut self, scope: &mut Scope<'_>, like: &Like) -> Result<Typed, String> {
        let input = self.expression(scope, &like.expr)?;
        let pattern = self.expression(scope, &like.pattern)?;
        let Lowered::Literal(Value::String(pattern), _) = pattern.expr else {
            return Err("LIKE with a pattern that is not a constant runs on the host".to_string());
        };
        if input.kind != Type::String {
            return Err(format!("LIKE on {} runs on the host", input.kind));
        }
        // The host escapes with a backslash and knows no other way.
        if like.escape_char.is_some_and(|escape| escape != '\\') {
            return Err("LIKE with another escape than \\ runs on the host".to_string());
        }
        let expr = Lowered::Like {
            input: Box::new(input.expr),
            pattern,
            escape: Some('\\'),
            ignore_case: like.case_insensitive,
        };
        let expr = if like.negated { Lowered::Not(Box::new(expr)) } else { expr };
        Ok(Typed::boolean(expr, input.nullable))
    }

    fn between(&mut self, scope: &mut Scope<'_>, between: &Between) -> Result<Typed, String> {
        let low = self.compare(scope, Comparison::GreaterOrEqual, &between.expr, &between.low)?;
        let high = self.compare(scope, Comparison::LessOrEqual, &between.expr, &between.high)?;
        let expr = Lowered::And(vec![low.expr, high.expr]);
        let expr = if between.negated { Lowered::Not(Box::new(expr)) } else { expr };
        Ok(Typed::boolean(expr, low.nullable || high.nullable))
    }

    fn in_list(&mut self, scope: &mut Scope<'_>, list: &InList) -> Result<Typed, String> {
        let input = self.expression(scope, &list.expr)?;
        let mut nullable = input.nullable;
        let mut literals = Vec::new();
        let mut tests = Vec::new();
        for item in &list.list {
            let lowered = self.expression(scope, item)?.adopt(&input.kind);
            if lowered.kind != input.kind || input.kind == Type::Interval {
                return Err(format!("comparing {} with {} runs on the host", input.kind, lowered.kind));
            }
            nullable |= lowered.nullable;
            match lowered.expr {
                Lowered::Literal(value, _) => literals.push(value),
                _ => tests.push(comparison(Comparison::Equal, input.clone(), lowered).expr),
            }
        }
        if !literals.is_empty() || tests.is_empty() {
            tests.insert(0, Lowered::In { input: Box::new(input.expr.clone()), list: literals });
        }
        let expr = if tests.len() == 1 { tests.remove(0) } else { Lowered::Or(tests) };
        let expr = if list.negated { Lowered::Not(Box::new(expr)) } else { expr };
        Ok(Typed::boolean(expr, nullable))
    }

    fn case(&mut self, scope: &mut Scope<'_>, case: &Case, whole: &Expr) -> Result<Typed, String> {
        let kind = self.result_kind(scope, whole)?;
        let mut nullable = case.else_expr.is_none();
        let mut branch = |context: &mut Self, scope: &mut Scope<'_>, expr: &Expr| {
            let value = context.expression(scope, expr)?.adopt(&kind);
            if value.kind != kind {
                return Err(format!("CASE of {} and {kind} runs on the host", value.kind));
            }
            nullable |= value.nullable;
            Ok(value.expr)
        };
        let mut branches = Vec::with_capacity(case.when_then_expr.len());
        for (when, then) in &case.when_then_expr {
            let condition = match &case.expr {
                Some(base) => {
                    let (base, when) = self.pair(scope, base, when)?;
                    Lowered::Compare(Comparison::Equal, Box::new(base.expr), Box::new(when.expr))
                }
                None => self.condition(scope, when)?,
            };
            branches.push((condition, branch(self, scope, then)?));
        }
        let otherwise = match &case.else_expr {
            Some(expr) => Some(Box::new(branch(self, scope, expr)?)),
            None => None,
        };
        Ok(Typed::new(Lowered::Case { branches, otherwise, kind: kind.clone() }, kind, nullable))
    }

    fn cast(
        &mut self,
        scope: &mut Scope<'_>,
        input: &Expr,
        to: &arrow::datatypes::DataType,
        failure: Failure,
    ) -> Result<Typed, String> {
        let kind = kind_of(to)?;
        let input = self.expression(scope, input)?.adopt(&kind);
        if input.kind == kind {
            return Ok(input);
        }
        if !castable(&input.kind, &kind) {
            return Err(format!("casts from {} to {kind} run on the host", input.kind));
        }
        Ok(input.cast(&kind, failure))
    }

    /// Lowers an uncorrelated scalar subquery of at most one row: its value is a column that a join without keys adds.
    fn subquery(&mut self, scope: &mut Scope<'_>, subquery: &Subquery) -> Result<Typed, String> {
        if !subquery.outer_ref_columns.is_empty() {
            return Err("correlated subqueries run on the host".to_string());
        }
        let column = match scope.subqueries.iter().find(|(known, ..)| known == subquery) {
            Some((.., column)) => *column,
            None => {
                if subquery.subquery.max_rows().is_none_or(|rows| rows > 1) {
                    return Err("subqueries that may give several rows run on the host".to_string());
                }
                let relation = self.plan(&subquery.subquery).map_err(|reason| reason.to_string())?;
                let [column] = relation.columns[..] else {
                    return Err("subqueries of several columns run on the host".to_string());
                };
                self.registry.columns[column].nullable = true;
                scope.subqueries.push((subquery.clone(), relation.node, column));
                column
            }
        };
        Ok(Typed::new(Lowered::Slot(column), self.kind(column)?, true))
    }
}

/// Returns the operands of a chain of ANDs or ORs, in order, without recursion: generated conditions may be long.
fn operands(expr: &Expr, operator: Operator) -> Vec<&Expr> {
    let mut found = Vec::new();
    let mut left = vec![expr];
    while let Some(expr) = left.pop() {
        match expr {
            Expr::BinaryExpr(binary) if binary.op == operator => left.extend([&*binary.right, &*binary.left]),
            other => found.push(other),
        }
    }
    found
}

/// Tells whether a cast is one that both engines leave to the same rules.
fn castable(from: &Type, to: &Type) -> bool {
    let zoned = |kind: &Type| matches!(kind, Type::Timestamp(_, Some(_)));
    let plain = |kind: &Type| !matches!(kind, Type::Interval | Type::List(_)) && !zoned(kind);
    plain(from) && plain(to) && tandem_pipeline::scalar::cast::castable(from, to)
}
