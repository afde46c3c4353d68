//! The futures of DataFusion's table traits, written out instead of by `async_trait`.
//!
//! A future that holds an expression, a plan or a session must be shown to be `Send`, and for each such method the compiler
//! walks the whole syntax tree of SQL, three times: seconds a method. Futures that hold only their result spare it
//! that, and where one must hold more, a generic function makes it one walk less.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;
use futures::future::BoxFuture;

/// A plan to come.
pub(crate) type PlanFuture<'a> = BoxFuture<'a, Result<Arc<dyn ExecutionPlan>>>;

/// Returns a plan that is there already.
pub(crate) fn ready<'a>(plan: Result<Arc<dyn ExecutionPlan>>) -> PlanFuture<'a> {
    Box::pin(std::future::ready(plan))
}

/// Boxes a future.
pub(crate) fn boxed<'a, F: Future + Send + 'a>(future: F) -> BoxFuture<'a, F::Output> {
    Box::pin(future)
}
