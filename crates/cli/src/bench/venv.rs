//! The Python environment of the peers: made where it is missing, with just the packages that are asked for.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::peer::PeerKind;

/// The workers' programs, written beside the environment so that the binary needs nothing else.
const PROGRAMS: [(&str, &str); 8] = [
    ("peer.py", include_str!("../../../../bench/peers/peer.py")),
    ("engine_duckdb.py", include_str!("../../../../bench/peers/engine_duckdb.py")),
    ("engine_hyper.py", include_str!("../../../../bench/peers/engine_hyper.py")),
    ("engine_polars.py", include_str!("../../../../bench/peers/engine_polars.py")),
    ("engine_datafusion.py", include_str!("../../../../bench/peers/engine_datafusion.py")),
    ("engine_clickhouse.py", include_str!("../../../../bench/peers/engine_clickhouse.py")),
    ("spark.py", include_str!("../../../../bench/spark.py")),
    ("cluster.py", include_str!("../../../../hosts/spark/tests/cluster.py")),
];

/// An environment that exists.
pub struct Venv {
    /// Its Python.
    pub python: PathBuf,
    /// The directory of the workers' programs.
    pub programs: PathBuf,
}

impl Venv {
    /// Makes the environment where it is missing.
    ///
    /// # Errors
    /// One sentence of why there is none.
    pub fn prepare(dir: &Path) -> Result<Venv, String> {
        let python = dir.join("bin/python");
        if !python.is_file() {
            eprintln!("making a Python environment in {}", dir.display());
            run(Command::new("python3").args(["-m", "venv"]).arg(dir)).map_err(|error| {
                format!("no Python environment could be made ({error}); install the packages python3 and python3-venv")
            })?;
        }
        let python = std::path::absolute(python).map_err(|error| error.to_string())?;
        let programs = dir.join("tandem-peers");
        let write = || -> std::io::Result<()> {
            fs::create_dir_all(&programs)?;
            PROGRAMS.iter().try_for_each(|(name, text)| fs::write(programs.join(name), text))
        };
        write()
            .map_err(|error| format!("the workers' programs cannot be written to {}: {error}", programs.display()))?;
        Ok(Venv { python, programs })
    }

    /// Installs an engine's packages where they are missing.
    ///
    /// # Errors
    /// One sentence of why they cannot be.
    pub fn install(&self, kind: PeerKind) -> Result<(), String> {
        let missing: Vec<&str> = kind.packages().iter().copied().filter(|package| !self.has(package)).collect();
        self.install_packages(&missing)
    }

    /// Installs a package where its module is missing.
    ///
    /// # Errors
    /// One sentence of why it cannot be.
    pub fn install_module(&self, module: &str, package: &str) -> Result<(), String> {
        if self.has(module) { Ok(()) } else { self.install_packages(&[package]) }
    }

    fn install_packages(&self, missing: &[&str]) -> Result<(), String> {
        if missing.is_empty() {
            return Ok(());
        }
        eprintln!("installing {} in the Python environment", missing.join(", "));
        let mut pip = Command::new(&self.python);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(missing);
        run(&mut pip).map_err(|error| format!("pip could not install {}: {error}", missing.join(", ")))
    }

    fn has(&self, package: &str) -> bool {
        let program = format!("import importlib.util, sys; sys.exit(importlib.util.find_spec({package:?}) is None)");
        run(Command::new(&self.python).args(["-c", &program])).is_ok()
    }
}

/// Runs a program to its end; its last line of complaint is the error.
fn run(command: &mut Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    Err(text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no reason given").trim().to_string())
}
