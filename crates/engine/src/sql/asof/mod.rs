//! `ASOF JOIN`: of the rows that match a row of the left side, the nearest by one inequality.
//!
//! Two forms are known: DuckDB's, `a ASOF [LEFT] JOIN b ON a.k = b.k AND a.t >= b.t`, and Snowflake's, which keeps rows without a
//! match, `a ASOF JOIN b MATCH_CONDITION (a.t >= b.t) [ON a.k = b.k]`. DataFusion plans neither, and its parser knows the second
//! only. So the parser meets the first under another word that it takes before any join. What it parsed becomes an inner or left
//! join whose condition is the argument of [`MARK`], so that DataFusion finds names and types; of that, `plan` makes a join
//! of operators that there are.

mod plan;

use std::ops::ControlFlow;

use datafusion::arrow::datatypes::DataType;
use datafusion::config::Dialect;
use datafusion::error::DataFusionError;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{ColumnarValue, ScalarUDF, Volatility, create_udf};
use datafusion::sql::parser::{CopyToSource, DFParserBuilder, Statement as SqlStatement};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident, Join,
    JoinConstraint, JoinOperator, ObjectName, Select, TableFactor, VisitMut, VisitorMut,
};
use datafusion::sql::sqlparser::dialect::dialect_from_str;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::ParserError;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use crate::Error;
use crate::error::IntoHost;
pub(crate) use plan::expand;

/// The function around the condition of an ASOF join, while it is planned.
const MARK: &str = "asof_condition";

/// Makes the function. It is never called: no plan has it when it runs.
pub(crate) fn mark() -> ScalarUDF {
    let call = |_: &[ColumnarValue]| Err(misplaced().into_host());
    create_udf(MARK, vec![DataType::Boolean], DataType::Boolean, Volatility::Volatile, std::sync::Arc::new(call))
}

fn misplaced() -> Error {
    Error::input(format!("{MARK} has a meaning within an ASOF JOIN only: leave it out"))
}

/// Parses a statement; tells whether it has ASOF joins, whose conditions are then marked.
pub(crate) fn parse(
    state: &SessionState,
    sql: &str,
    dialect: &Dialect,
) -> Result<(SqlStatement, bool), DataFusionError> {
    let named = sql.as_bytes().windows(4).any(|word| word.eq_ignore_ascii_case(b"asof"));
    let known = dialect_from_str(dialect).filter(|_| named);
    let Some(known) = known else { return Ok((state.sql_to_statement(sql, dialect)?, false)) };
    let tokens = Tokenizer::new(&*known, sql).tokenize_with_location().map_err(ParserError::from)?;
    let Some(tokens) = replace(tokens) else { return Ok((state.sql_to_statement(sql, dialect)?, false)) };
    let limit = state.config_options().sql_parser.recursion_limit.get();
    let parser = DFParserBuilder::new(tokens).with_dialect(&*known).with_recursion_limit(limit);
    let mut statements = parser.build()?.parse_statements()?;
    let (Some(mut statement), true) = (statements.pop_front(), statements.is_empty()) else {
        return Err(Error::input("one statement is run at a time").into_host());
    };
    match visit(&mut statement) {
        ControlFlow::Continue(()) => Ok((statement, true)),
        ControlFlow::Break(error) => Err(error.into_host()),
    }
}

/// Writes `GLOBAL`, which the parser takes before a join of any kind, for the `ASOF` of joins that it does not know; `None` if
/// there is no ASOF join, or if the text itself has that word.
fn replace(mut tokens: Vec<TokenWithSpan>) -> Option<Vec<TokenWithSpan>> {
    let words: Vec<usize> = (0..tokens.len()).filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_))).collect();
    let keyword = |at: usize| words.get(at).map_or(Keyword::NoKeyword, |at| keyword(&tokens[*at].token));
    if (0..words.len()).any(|at| keyword(at) == Keyword::GLOBAL) {
        return None;
    }
    let (mut known, mut replaced) = (false, Vec::new());
    // Behind AS it is a name.
    let named = |at: usize| at.checked_sub(1).is_some_and(|before| keyword(before) == Keyword::AS);
    for at in (0..words.len()).filter(|at| keyword(*at) == Keyword::ASOF && !named(*at)) {
        match keyword(at + 1) {
            Keyword::JOIN if has_match_condition(&tokens, &words[at + 2..]) => known = true,
            Keyword::JOIN | Keyword::INNER | Keyword::LEFT | Keyword::RIGHT | Keyword::FULL => replaced.push(words[at]),
            _ => {}
        }
    }
    known |= !replaced.is_empty();
    replaced.into_iter().for_each(|at| tokens[at].token = Token::make_keyword("GLOBAL"));
    known.then_some(tokens)
}

fn keyword(token: &Token) -> Keyword {
    match token {
        Token::Word(word) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    }
}

/// Tells whether the join whose right side begins at the first of these tokens has a MATCH_CONDITION.
fn has_match_condition(tokens: &[TokenWithSpan], words: &[usize]) -> bool {
    let mut open = 0usize;
    for at in words {
        match &tokens[*at].token {
            Token::LParen => open += 1,
            Token::RParen if open == 0 => return false,
            Token::RParen => open -= 1,
            Token::SemiColon => return false,
            word if open == 0 => match keyword(word) {
                Keyword::MATCH_CONDITION => return true,
                Keyword::ON | Keyword::USING | Keyword::JOIN | Keyword::WHERE => return false,
                _ => {}
            },
            _ => {}
        }
    }
    false
}

/// Marks the ASOF joins of a statement.
fn visit(statement: &mut SqlStatement) -> ControlFlow<Error> {
    match statement {
        SqlStatement::Statement(statement) => statement.visit(&mut Marking),
        SqlStatement::CopyTo(copy) => match &mut copy.source {
            CopyToSource::Query(query) => query.visit(&mut Marking),
            CopyToSource::Relation(_) => ControlFlow::Continue(()),
        },
        SqlStatement::Explain(explain) => visit(&mut explain.statement),
        _ => ControlFlow::Continue(()),
    }
}

struct Marking;

impl VisitorMut for Marking {
    type Break = Error;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        select.from.iter_mut().flat_map(|table| &mut table.joins).try_for_each(mark_join)
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        match factor {
            TableFactor::NestedJoin { table_with_joins, .. } => {
                table_with_joins.joins.iter_mut().try_for_each(mark_join)
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

/// Makes an inner or left join of an ASOF join.
fn mark_join(join: &mut Join) -> ControlFlow<Error> {
    use JoinConstraint::{None as Nothing, On};
    use JoinOperator::{AsOf, Inner, Join as Plain, Left, LeftOuter};
    let other = || ControlFlow::Break(Error::unsupported("an ASOF JOIN is an inner or a left one, with ON"));
    join.join_operator = match (join.global, join.join_operator.clone()) {
        (_, AsOf { match_condition, constraint: Nothing }) => LeftOuter(On(marked(match_condition))),
        (_, AsOf { match_condition, constraint: On(condition) }) => {
            let (left, right) = (Box::new(nested(condition)), Box::new(nested(match_condition)));
            LeftOuter(On(marked(Expr::BinaryOp { left, op: BinaryOperator::And, right })))
        }
        (true, Plain(On(condition)) | Inner(On(condition))) => Inner(On(marked(condition))),
        (true, Left(On(condition)) | LeftOuter(On(condition))) => LeftOuter(On(marked(condition))),
        (true, _) | (_, AsOf { .. }) => return other(),
        (false, _) => return ControlFlow::Continue(()),
    };
    join.global = false;
    ControlFlow::Continue(())
}

fn nested(expr: Expr) -> Expr {
    Expr::Nested(Box::new(expr))
}

fn marked(condition: Expr) -> Expr {
    let args = vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(condition))];
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(MARK)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList { duplicate_treatment: None, args, clauses: Vec::new() }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}
