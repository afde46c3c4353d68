//! One statement, dispatched by what it is.

use std::sync::Arc;

use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, SessionState};
use datafusion::logical_expr::Statement as PlanStatement;
use datafusion::logical_expr::{DdlStatement, ExplainFormat, LogicalPlan};
use datafusion::physical_plan::execute_stream;

use crate::error::IntoHost;
use crate::error::translate::ErrorContext;
use crate::explain::analyze::{explain, explain_analyze, explain_kernel};
use crate::planning::cross_joins::find_keys_early;
use crate::planning::planner::{files, plan};
use crate::session::{Inner, nothing, ready};
use crate::sql::balance::{LONG, balance};
use crate::sql::copy::infer_format;
use crate::sql::ddl::{create_external, create_table};
use crate::sql::parameters::bind;
use crate::sql::statement::Statement;
use crate::sql::{asof, exclusion, nesting, syntax};
use crate::{Error, Mode};

/// A statement that is under way.
pub(crate) struct Ran {
    pub(crate) stream: SendableRecordBatchStream,
    /// What its errors are worded with.
    pub(crate) context: ErrorContext,
}

/// Runs a statement up to the point where rows are read. Called on the host's threads.
pub(crate) async fn run(inner: &Inner, sql: &str, statement: &Arc<Statement>) -> Result<Ran, Error> {
    let mut words = inner.words(sql);
    match dispatch(inner, sql, statement, &mut words).await {
        Ok(stream) => Ok(Ran { stream, context: words }),
        Err(error) => Err(words.translate(&error)),
    }
}

async fn dispatch(
    inner: &Inner,
    sql: &str,
    statement: &Arc<Statement>,
    words: &mut ErrorContext,
) -> Result<SendableRecordBatchStream, DataFusionError> {
    let state = inner.context.state();
    let dialect = state.config_options().sql_parser.dialect;
    let (sql, kernel) = syntax::explain_kernel(sql).map_or((sql, false), |query| (query, true));
    nesting::check_text(sql).into_host()?;
    let (parsed, has_asof) = asof::parse(&state, &exclusion::mark(sql), &dialect)?;
    let parsed = infer_format(parsed);
    nesting::check_statement(&parsed).into_host()?;
    let mut logical = bind(state.statement_to_plan(parsed).await?, &statement.values).into_host()?;
    if has_asof {
        logical = asof::expand(logical)?;
    }
    if nesting::check_plan(&logical).into_host()? > LONG {
        logical = balance(find_keys_early(logical)?)?;
    }
    words.files = files(&logical);
    if let LogicalPlan::Copy(copy) = &logical {
        words.target = Some(copy.output_url.clone());
    }
    let (mode, on_fallback) = (statement.config.mode, statement.config.on_fallback);
    if kernel {
        let rows = explain_kernel(&logical, &state, statement).await?;
        return Ok(ready(rows.schema(), vec![rows]));
    }
    match logical {
        LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(create)) => {
            create_table(create, &inner.context, &state, statement).await?;
            Ok(nothing())
        }
        LogicalPlan::Ddl(DdlStatement::CreateExternalTable(create)) => {
            words.files = create.locations.clone();
            create_external(*create, &inner.context, &state).await?;
            Ok(nothing())
        }
        LogicalPlan::Explain(_) | LogicalPlan::Analyze(_) if mode == Mode::Host => {
            explain_of_host(&logical, &state).await
        }
        LogicalPlan::Explain(plan) => {
            check_explained(&plan.plan)?;
            if plan.explain_format != ExplainFormat::Indent {
                return Err(Error::unsupported(format!(
                    "EXPLAIN shows Tandem's plan in one form only; leave out FORMAT, or see DataFusion's plan with --mode \
                     host: FORMAT {}",
                    plan.explain_format
                ))
                .into_host());
            }
            let rows = explain(&plan.plan, plan.verbose, &state, statement).await?;
            Ok(ready(rows.schema(), vec![rows]))
        }
        LogicalPlan::Analyze(plan) => {
            check_explained(&plan.input)?;
            let rows = explain_analyze(&plan.input, plan.verbose, &state, statement).await?;
            Ok(ready(rows.schema(), vec![rows]))
        }
        LogicalPlan::Statement(PlanStatement::Execute(_)) => {
            // Fills in the parameters; what comes back is the query.
            let prepared = inner.context.execute_logical_plan(logical).await?;
            nesting::check_plan(prepared.logical_plan()).into_host()?;
            let planned = plan(prepared.logical_plan(), &state, statement, on_fallback).await?;
            planned.start(&state)
        }
        LogicalPlan::Statement(PlanStatement::SetVariable(ref set)) => {
            let (name, value) = (set.variable.clone(), set.value.clone());
            inner.context.execute_logical_plan(logical).await.map_err(|error| match error.find_root() {
                DataFusionError::External(_) => {
                    Error::input(format!("invalid value for the setting {name}; SHOW {name} tells its form: {value}"))
                        .into_host()
                }
                _ => error,
            })?;
            Ok(nothing())
        }
        LogicalPlan::Statement(
            PlanStatement::ResetVariable(_) | PlanStatement::Prepare(_) | PlanStatement::Deallocate(_),
        )
        | LogicalPlan::Ddl(_) => {
            inner.context.execute_logical_plan(logical).await?;
            Ok(nothing())
        }
        LogicalPlan::Statement(other) => {
            Err(Error::unsupported(format!("the statement is not supported: {}", other.name())).into_host())
        }
        query => {
            let planned = plan(&query, &state, statement, on_fallback).await?;
            planned.start(&state)
        }
    }
}

/// Refuses to explain a statement that defines or sets something: only what it reads, if anything, has a plan.
fn check_explained(statement: &LogicalPlan) -> Result<(), DataFusionError> {
    match statement {
        LogicalPlan::Ddl(_) | LogicalPlan::Statement(_) => Err(Error::unsupported(
            "EXPLAIN shows the plan of a query, INSERT or COPY; explain the query that the statement has",
        )
        .into_host()),
        _ => Ok(()),
    }
}

/// Runs an EXPLAIN, with or without ANALYZE, of DataFusion's plan.
async fn explain_of_host(
    explain: &LogicalPlan,
    state: &SessionState,
) -> Result<SendableRecordBatchStream, DataFusionError> {
    if let LogicalPlan::Analyze(plan) = explain
        && matches!(*plan.input, LogicalPlan::Copy(_))
    {
        let reason = "EXPLAIN ANALYZE of COPY needs --mode auto or cpu; run the COPY itself instead";
        return Err(Error::unsupported(reason).into_host());
    }
    execute_stream(state.create_physical_plan(explain).await?, state.task_ctx())
}
