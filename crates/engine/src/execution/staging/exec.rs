//! The node above a plan that writes files: makes the staging, runs the plan into it, and puts the files in place.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, PlanProperties};
use futures::TryStreamExt;

use super::store::StagingStore;
use super::{SINGLE, Staging, Unfinished, WriteTarget};
use crate::Error;
use crate::error::IntoHost;

/// Where a plan writes to: the address of a staging that is made when the plan runs.
#[derive(Clone, Debug)]
pub(crate) struct StagingUrl(String);

impl StagingUrl {
    /// Makes an address that no other staging has.
    pub(crate) fn new() -> StagingUrl {
        StagingUrl(format!("tandem-staging://{:016x}", RandomState::new().hash_one("staging")))
    }

    /// Returns the address for DataFusion's writers: of one file, or of a directory.
    pub(crate) fn output(&self, single: bool) -> String {
        self.named(if single { SINGLE } else { "" })
    }

    /// Returns the address of a file.
    pub(crate) fn named(&self, name: &str) -> String {
        format!("{}/{name}", self.0)
    }

    /// Returns the address of the store.
    pub(crate) fn store(&self) -> Result<ObjectStoreUrl> {
        Ok(ListingTableUrl::parse(self.output(false))?.object_store())
    }
}

/// Runs a plan that writes files, whole or not at all.
#[derive(Debug)]
pub(crate) struct StagedExec {
    input: Arc<dyn ExecutionPlan>,
    target: WriteTarget,
    url: StagingUrl,
}

impl StagedExec {
    /// Makes the node above a plan that writes to the given address.
    pub(crate) fn new(input: Arc<dyn ExecutionPlan>, target: WriteTarget, url: StagingUrl) -> StagedExec {
        StagedExec { input, target, url }
    }
}

/// A store that the environment knows while this lives.
struct Registered {
    environment: Arc<RuntimeEnv>,
    url: ObjectStoreUrl,
}

impl Drop for Registered {
    fn drop(&mut self) {
        // It was registered, and nobody else takes it away.
        let _ = self.environment.deregister_object_store(self.url.as_ref());
    }
}

impl DisplayAs for StagedExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StagedExec: whole or not at all")
    }
}

impl ExecutionPlan for StagedExec {
    fn name(&self) -> &str {
        "StagedExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![Distribution::SinglePartition]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let [input] =
            <[_; 1]>::try_from(children).map_err(|_| Error::internal("one plan is staged at a time")).into_host()?;
        Ok(Arc::new(StagedExec { input, target: self.target.clone(), url: self.url.clone() }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (input, target, url) = (self.input.clone(), self.target.clone(), self.url.store()?);
        let unfinished = context.session_config().get_extension::<Unfinished>().unwrap_or_default();
        let written = async move {
            let created = tokio::task::spawn_blocking(move || Staging::create(target, &unfinished));
            let (staging, ended) = created.await.map_err(join_error)?.into_host()?;
            let environment = context.runtime_env();
            environment.register_object_store(url.as_ref(), Arc::new(StagingStore(staging.clone())));
            let registered = Registered { environment, url };
            let counts = match input.execute(partition, context) {
                Ok(rows) => rows.try_collect::<Vec<_>>().await,
                Err(error) => Err(error),
            };
            drop(registered);
            let outcome = match counts {
                Ok(counts) => {
                    let staging = staging.clone();
                    let committed = tokio::task::spawn_blocking(move || staging.commit());
                    committed.await.map_err(join_error)?.map(|()| counts).into_host()
                }
                // Writers say little about what the system said to them.
                Err(error) => Err(staging.fault().map_or(error, Error::into_host)),
            };
            // The statement ends when the last writer has, and nothing is left of it.
            drop(staging);
            let _ = ended.await;
            outcome.map(|counts| futures::stream::iter(counts.into_iter().map(Ok)))
        };
        let stream = futures::stream::once(written).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), stream)))
    }
}

fn join_error(error: tokio::task::JoinError) -> DataFusionError {
    DataFusionError::ExecutionJoin(Box::new(error))
}
