//! COPY … TO: the whole file or nothing, by way of a [staging](crate::execution::staging).

use std::path::Path;
use std::sync::Arc;

use datafusion::logical_expr::dml::CopyTo;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::sql::parser::{CopyToStatement, Statement as SqlStatement};

use crate::Error;
use crate::execution::staging::{StagedExec, StagingUrl, WriteTarget};
use crate::tables::location::FileKind;

/// Fills in the format that DataFusion does not know by the extension.
pub(crate) fn infer_format(statement: SqlStatement) -> SqlStatement {
    match statement {
        SqlStatement::CopyTo(CopyToStatement { stored_as: None, target, source, partitioned_by, options }) => {
            let kind = FileKind::of(Path::new(&target)).filter(|_| !target.to_lowercase().ends_with(".gz"));
            let stored_as = kind.map(|kind| kind.to_string().to_uppercase());
            SqlStatement::CopyTo(CopyToStatement { stored_as, target, source, partitioned_by, options })
        }
        other => other,
    }
}

/// Where the rows of one COPY go, by way of which staging.
pub(crate) struct Redirected {
    target: WriteTarget,
    url: StagingUrl,
}

impl Redirected {
    /// Redirects a COPY to a staging, which is made when the plan runs.
    ///
    /// # Errors
    /// If the target is not a local file, or its directory is missing.
    pub(crate) fn new(copy: &mut CopyTo) -> Result<Redirected, Error> {
        let path = copy.output_url.strip_prefix("file://").unwrap_or(&copy.output_url).to_string();
        if path.contains("://") {
            return Err(Error::unsupported(format!(
                "COPY writes local files only; name a file without a scheme: {path}"
            )));
        }
        let explicit = copy.options.get("single_file_output").map(|value| value.trim() == "true");
        let named = Path::new(&path);
        let single = explicit.unwrap_or_else(|| {
            let one = copy.partition_by.is_empty() && !path.ends_with('/') && named.extension().is_some();
            one || matches!(WriteTarget::file(named), Ok(WriteTarget::Special { .. }))
        });
        let target = if single { WriteTarget::file(named)? } else { WriteTarget::directory(named)? };
        let url = StagingUrl::new();
        copy.output_url = url.output(single);
        if single {
            copy.options.insert("single_file_output".into(), "true".into());
        }
        Ok(Redirected { target, url })
    }

    /// Makes the plan that runs the COPY and puts its files in place.
    pub(crate) fn above(self, plan: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        Arc::new(StagedExec::new(plan, self.target, self.url))
    }
}
