//! `tandem bench spark`: plain Spark against Spark with Tandem, from the same files. What is measured is in `bench/spark.py`; this
//! brings data, a Python with Spark, the plugin and a daemon (ourselves) together.

use std::{fs, path::PathBuf, process::Command};

use clap::Args;

use super::{data, suite::Suite, venv::Venv};
use crate::failure::Failure;

/// The version of Spark that the plugin is built for.
const SPARK: &str = "pyspark==4.3.0";

/// What `tandem bench spark` is told.
#[derive(Clone, Debug, Args)]
pub struct SparkArguments {
    /// Which benchmark.
    #[arg(long, value_enum, default_value_t = Suite::Ssb)]
    pub suite: Suite,
    /// Scale factor of the data, from 0.01; of h2o and windows, 1 is ten million rows.
    #[arg(long, default_value_t = 1.0, value_name = "N")]
    pub sf: f64,
    /// Measured runs of each query; the best counts.
    #[arg(long, default_value_t = 3, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    /// Queries to run, as `1.1,2.1`, or whole flights, as `3` [default: all].
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub queries: Vec<String>,
    /// Spark's master.
    #[arg(long, default_value = "local[2]", value_name = "URL", conflicts_with = "cluster")]
    pub master: String,
    /// Start a cluster of two workers on loopback instead.
    #[arg(long)]
    pub cluster: bool,
    /// Memory of Spark's driver and of each executor.
    #[arg(long, default_value = "4g", value_name = "BYTES")]
    pub memory: String,
    /// Write everything measured to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Directory of the Parquet files; generated where they are missing [default: data/SUITE-sfN].
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// The plugin, as `dev/build-spark` makes it [default: the one under hosts/spark/target].
    #[arg(long, value_name = "FILE")]
    pub jar: Option<PathBuf>,
    /// Python environment with Spark, made where it is missing.
    #[arg(long, default_value = ".venv", value_name = "DIR")]
    pub venv: PathBuf,
}

/// Runs the benchmark; it prints what comes out as it goes.
///
/// # Errors
/// Bad arguments, no data, no plugin, no Spark, or rows that differ from plain Spark's.
pub fn run(arguments: SparkArguments) -> Result<(), Failure> {
    let suite = arguments.suite;
    let queries = suite.choose(&arguments.queries).map_err(|name| super::unknown_query(suite, &name))?;
    let options = suite.options(arguments.sf);
    tandem_generator::check(&options).map_err(|error| Failure::Usage(error.to_string()))?;
    let jar = match arguments.jar {
        Some(jar) => jar,
        None => built_jar().ok_or_else(|| {
            Failure::Statement(
                "the plugin is not built; run dev/build-spark in the checkout, or name it with --jar".into(),
            )
        })?,
    };
    let dir = arguments.data.unwrap_or_else(|| suite.default_data(suite.size(&options)));
    data::prepare(suite, &options, &dir, &queries)?;
    let venv = Venv::prepare(&arguments.venv).map_err(Failure::Statement)?;
    venv.install_module("pyspark", SPARK).map_err(Failure::Statement)?;

    let failed = |what: &str, error: &dyn std::fmt::Display| Failure::Statement(format!("{what}: {error}"));
    let texts = tempfile::tempdir().map_err(|e| failed("no directory for the queries could be made", &e))?;
    for query in &queries {
        let path = texts.path().join(format!("{}.sql", query.name));
        fs::write(&path, query.sql).map_err(|e| Failure::write(&path.display().to_string(), &e))?;
    }
    let daemon = std::env::current_exe().map_err(|e| failed("this program's own file was not found", &e))?;
    let mut spark = Command::new(&venv.python);
    spark.arg(venv.programs.join("spark.py")).args(["--suite", suite.name(), "--sf", &arguments.sf.to_string()]);
    spark.arg("--data").arg(&dir).arg("--queries").arg(texts.path()).arg("--jar").arg(&jar);
    spark.args(["--runs", &arguments.repeat.to_string(), "--memory", &arguments.memory]);
    match arguments.cluster {
        true => spark.arg("--cluster"),
        false => spark.args(["--master", &arguments.master]),
    };
    if let Some(json) = &arguments.json {
        spark.arg("--json").arg(json);
    }
    spark.arg("--node").arg(daemon).arg("serve");
    let status = spark.status().map_err(|e| failed("Python could not be started", &e))?;
    match status.success() {
        true => Ok(()),
        false => Err(Failure::Statement("the benchmark under Spark did not end well; what it said is above".into())),
    }
}

fn built_jar() -> Option<PathBuf> {
    let files = fs::read_dir("hosts/spark/target").ok()?;
    let is_plugin = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("tandem-spark_") && name.ends_with(".jar")
    };
    files.filter_map(|entry| Some(entry.ok()?.path())).find(is_plugin)
}
