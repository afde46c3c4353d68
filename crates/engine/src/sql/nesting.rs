//! How deeply a statement may be nested: beyond that it fails with a sentence, before the stack of a thread overflows.
//!
//! Parser, planner and optimiser walk trees by recursion, and even dropping a tree recurses; an overflow would end the
//! process with all resident tables. Depth is bounded three times, each bound making the next step safe: in the text
//! (the longest chain of operators, which the parser turns into a tree as deep), in the syntax tree, and in the plan,
//! where views and WITH have been put in place. A plan's depth is that of its longest path, each operator with its
//! deepest expression, since the optimiser merges the expressions of operators that follow each other.

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::expr::{Exists, InSubquery};
use datafusion::logical_expr::{Expr, LogicalPlan, Operator};
use datafusion::sql::parser::{CopyToSource, Statement as SqlStatement};
use datafusion::sql::sqlparser::ast::{self, SetExpr, Visit, Visitor};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::Token;

use crate::error::FromHost;
use crate::sql::syntax;
use crate::{Error, Result};

/// Levels of a plan, or of an expression before planning. Measured: an eighth of [`STACK_BYTES`] suffices for so long
/// chains of `+`, `||`, OR, AND, casts and WITH, in every mode, and a quarter of the usual stack for the workers.
const LEVELS: usize = 2_000;
/// ANDs of a chain that count as one level: joins of many tables have thousands of conditions, and walks take a chain of
/// this many times [`LEVELS`] with half of [`STACK_BYTES`].
const ANDS: usize = 4;
/// Set operations above each other, tables of one FROM, queries of one WITH: planning takes the square of their number.
const QUERIES: usize = 1_000;
/// Operators in a row within one pair of parentheses of a text: parsing and dropping so deep a tree takes less than half
/// of [`STACK_BYTES`].
const CHAIN: usize = 20_000;
/// Operators of a plan in all, where WITH and views occur several times: more would take minutes to optimise.
const OPERATORS: usize = 1_000_000;
/// Levels of a type such as `INT[][]`, which no walk of expressions sees, and of parentheses.
const BRACKETS: usize = 100;

/// The stack of a thread that plans or runs statements; the system gives memory only to what is used of it.
pub(crate) const STACK_BYTES: usize = 64 << 20;

fn too_deep() -> Error {
    Error::input(
        "the statement is nested too deeply; compute a part of it first with CREATE TABLE … AS, \
         or write long chains as IN (…), VALUES or CASE with several WHEN",
    )
}

/// Checks a text before it is parsed.
///
/// # Errors
/// If a chain of operators or types is too long.
pub(crate) fn check_text(sql: &str) -> Result<()> {
    // What is no SQL is the parser's to report.
    let Ok(tokens) = syntax::tokens(sql) else { return Ok(()) };
    let tokens = tokens.iter().map(|token| &token.token).filter(|token| !matches!(token, Token::Whitespace(_)));
    // Of each open pair: the operators since the last comma, and those that connect lists with commas in them.
    let mut open = vec![(0_usize, 0_usize)];
    let (mut types, mut empty) = (0_usize, 0_usize);
    let mut last = &Token::EOF;
    for token in tokens {
        let top = open.last_mut().expect("the outermost level is never closed");
        match token {
            Token::Comma => top.0 = 0,
            Token::LParen | Token::LBracket | Token::LBrace => open.push((0, 0)),
            Token::RParen | Token::RBracket | Token::RBrace => {
                if open.len() > 1 {
                    open.pop();
                }
                open.last_mut().expect("the outermost level is never closed").0 += 1;
            }
            Token::Word(word) => match word.keyword {
                Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT | Keyword::MINUS => top.1 += 1,
                Keyword::NoKeyword => {}
                _ => top.0 += 1,
            },
            Token::Number(..) | Token::SingleQuotedString(_) | Token::Period | Token::Placeholder(_) | Token::EOF => {}
            _ => top.0 += 1,
        }
        // `INT[][]` and `ARRAY<ARRAY<INT>>`.
        empty = match (last, token) {
            (Token::LBracket, Token::RBracket) => empty + 1,
            (_, Token::LBracket) => empty,
            _ => 0,
        };
        types = match (last, token) {
            (Token::Word(word), Token::Lt) if is_type(word.keyword) => types + 1,
            (_, Token::Gt) => types.saturating_sub(1),
            (_, Token::ShiftRight) => types.saturating_sub(2),
            _ => types,
        };
        let (chain, connected) = *open.last().expect("the outermost level is never closed");
        if chain > CHAIN || connected > CHAIN || open.len() > 10 * BRACKETS || types > BRACKETS || empty > BRACKETS {
            return Err(too_deep());
        }
        last = token;
    }
    Ok(())
}

fn is_type(keyword: Keyword) -> bool {
    matches!(keyword, Keyword::ARRAY | Keyword::STRUCT | Keyword::MAP | Keyword::NESTED)
}

/// Checks a parsed statement before it is planned.
///
/// # Errors
/// If an expression, a chain of queries or a list of joins is too deep.
pub(crate) fn check_statement(statement: &SqlStatement) -> Result<()> {
    let mut depth = SyntaxDepth::default();
    let flow = match statement {
        SqlStatement::Statement(statement) => statement.visit(&mut depth),
        SqlStatement::CopyTo(copy) => match &copy.source {
            CopyToSource::Query(query) => query.visit(&mut depth),
            CopyToSource::Relation(_) => ControlFlow::Continue(()),
        },
        SqlStatement::Explain(explain) => return check_statement(&explain.statement),
        _ => ControlFlow::Continue(()),
    };
    if flow.is_break() { Err(too_deep()) } else { Ok(()) }
}

/// Returns how much of a level an expression is below another, in shares.
fn shares(is_and: bool, below_and: bool) -> usize {
    if is_and && below_and { 1 } else { ANDS }
}

/// Counts the levels above the part of a syntax tree that is visited.
#[derive(Default)]
struct SyntaxDepth {
    /// In shares of a level, [`ANDS`] of which are one.
    shares: usize,
    /// Of each expression and query above: whether it is an AND, and its shares.
    above: Vec<(bool, usize)>,
    /// Operators that planning may put above each other, of the whole statement.
    operators: usize,
}

impl SyntaxDepth {
    fn enter(&mut self, is_and: bool) -> ControlFlow<()> {
        let shares = shares(is_and, self.above.last().is_some_and(|(is_and, _)| *is_and));
        self.above.push((is_and, shares));
        self.shares += shares;
        if self.shares > LEVELS * ANDS { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn leave(&mut self) -> ControlFlow<()> {
        let (_, shares) = self.above.pop().expect("what is left was entered");
        self.shares -= shares;
        ControlFlow::Continue(())
    }

    /// Counts operators of one query.
    fn count(&mut self, operators: usize) -> ControlFlow<()> {
        self.operators += operators;
        if operators > QUERIES || self.operators > CHAIN { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl Visitor for SyntaxDepth {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &ast::Expr) -> ControlFlow<()> {
        self.enter(matches!(expr, ast::Expr::BinaryOp { op: ast::BinaryOperator::And, .. }))
    }

    fn post_visit_expr(&mut self, _: &ast::Expr) -> ControlFlow<()> {
        self.leave()
    }

    fn pre_visit_query(&mut self, query: &ast::Query) -> ControlFlow<()> {
        self.enter(false)?;
        self.count(query.with.as_ref().map_or(0, |with| with.cte_tables.len()) + query.pipe_operators.len())?;
        let mut bodies = vec![(query.body.as_ref(), 0)];
        while let Some((body, level)) = bodies.pop() {
            if level > QUERIES {
                return ControlFlow::Break(());
            }
            if let SetExpr::SetOperation { left, right, .. } = body {
                self.count(1)?;
                bodies.extend([(left.as_ref(), level + 1), (right.as_ref(), level + 1)]);
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &ast::Query) -> ControlFlow<()> {
        self.leave()
    }

    fn pre_visit_select(&mut self, select: &ast::Select) -> ControlFlow<()> {
        let joins: usize = select.from.iter().map(|table| 1 + table.joins.len()).sum();
        self.count(joins.saturating_sub(1))
    }
}

/// Checks a plan before it is optimised; returns how many ANDs the expression with most of them has.
///
/// # Errors
/// If a path through it is too deep, or it has too many operators.
pub(crate) fn check_plan(plan: &LogicalPlan) -> Result<usize> {
    let mut depth = PlanDepth::default();
    depth.check(plan, 0)?;
    while let Some((subquery, above)) = depth.subqueries.pop() {
        depth.check(&subquery, above)?;
    }
    Ok(depth.ands)
}

/// What is left to do of a plan, and how much of it was seen.
#[derive(Default)]
struct PlanDepth {
    subqueries: Vec<(Arc<LogicalPlan>, usize)>,
    operators: usize,
    /// The ANDs of the expression with most of them.
    ands: usize,
}

impl PlanDepth {
    /// Checks a tree without its subqueries, which are put on the list.
    fn check(&mut self, plan: &LogicalPlan, above: usize) -> Result<()> {
        let mut plans = vec![(plan, above)];
        while let Some((plan, above)) = plans.pop() {
            let mut deepest = 0;
            plan.apply_expressions(|expression| {
                deepest = deepest.max(self.expression(expression, above)?);
                Ok(TreeNodeRecursion::Continue)
            })
            .out_of_host()?;
            let level = above + 1 + deepest;
            self.operators += 1;
            if level > LEVELS || self.operators > OPERATORS {
                return Err(too_deep());
            }
            plans.extend(plan.inputs().into_iter().map(|input| (input, level)));
        }
        Ok(())
    }

    /// Returns the depth of an expression below an operator.
    fn expression(&mut self, expression: &Expr, above: usize) -> Result<usize, DataFusionError> {
        let is_and = |expression: &Expr| matches!(expression, Expr::BinaryExpr(binary) if binary.op == Operator::And);
        let (mut expressions, mut deepest, mut ands) = (vec![(expression, ANDS)], 0, 0);
        while let Some((expression, depth)) = expressions.pop() {
            deepest = deepest.max(depth);
            if let Expr::ScalarSubquery(subquery)
            | Expr::InSubquery(InSubquery { subquery, .. })
            | Expr::Exists(Exists { subquery, .. }) = expression
            {
                self.subqueries.push((subquery.subquery.clone(), above + depth.div_ceil(ANDS)));
            }
            let below_and = is_and(expression);
            ands += usize::from(below_and);
            expression.apply_children(|child| {
                expressions.push((child, depth + shares(is_and(child), below_and)));
                Ok(TreeNodeRecursion::Continue)
            })?;
        }
        self.ands = self.ands.max(ands);
        Ok(deepest.div_ceil(ANDS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(term: &str, operator: &str, length: usize) -> String {
        vec![term; length].join(operator)
    }

    #[test]
    fn lists_are_no_chains() {
        for list in [
            format!("SELECT a FROM t WHERE a IN ({})", chain("-1 + 2", ", ", 3 * CHAIN)),
            format!("SELECT {}", chain("a + b", ", ", 3 * CHAIN)),
            format!("INSERT INTO t VALUES {}", chain("(1 + 1, 'x')", ", ", 3 * CHAIN)),
            format!("SELECT {}", chain("(a = 1 AND b = 2)", " OR ", 1_000)),
            format!("SELECT CASE {} END", chain("WHEN a = 1 THEN 2", " ", 1_000)),
            format!("SELECT x{}, CAST(a AS ARRAY<ARRAY<INT>>)", "[1]".repeat(10)),
        ] {
            check_text(&list).unwrap();
        }
    }

    #[test]
    fn long_chains_are_found_in_the_text() {
        for text in [
            format!("SELECT {}", chain("1", " + ", 2 * CHAIN)),
            format!("SELECT {}", chain("'a'", "||", 2 * CHAIN)),
            chain("SELECT a, b", " UNION ALL ", 2 * CHAIN),
            format!("SELECT f({})", chain("a", " OR ", 2 * CHAIN)),
            format!("SELECT a{}", "::INT".repeat(2 * CHAIN)),
            format!("SELECT a{}", " IS NULL".repeat(2 * CHAIN)),
            format!("SELECT a{}", "[1]".repeat(2 * CHAIN)),
            format!("SELECT CAST(NULL AS INT{})", "[]".repeat(2 * BRACKETS)),
            format!("SELECT CAST(NULL AS {}INT{})", "ARRAY<".repeat(2 * BRACKETS), ">".repeat(2 * BRACKETS)),
            format!("SELECT {}1{}", "(".repeat(20 * BRACKETS), ")".repeat(20 * BRACKETS)),
        ] {
            let error = check_text(&text).unwrap_err();
            assert!(error.message.contains("nested too deeply"), "{error}");
        }
    }
}
