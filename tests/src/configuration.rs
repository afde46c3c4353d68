//! Test configurations: `configs/*.toml`, each a way to run all of `sql/*.slt` that must not change a result.
//!
//! A configuration has the session's flags, an environment for its devices, what the machine must have for it, and the files
//! that it leaves out, each with a reason. Its name is that of its file.

use std::{collections::BTreeMap, fs, path::Path, sync::Arc};

use serde::Deserialize;
use tandem_device::testing;
use tandem_engine::{DeviceOptions, Devices, Error, KernelCache, OnFallback, Session, testing::Switches};

/// One way to run the tests of SQL.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Configuration {
    /// The file's name without its ending; records may name it in `onlyif` and `skipif`.
    #[serde(skip)]
    pub name: String,
    /// Says in a line what it is for.
    pub about: String,
    /// Changes the session's configuration.
    pub flags: Flags,
    /// What the machine must have; the tests are passed over, and say so, where it has not.
    pub needs: Option<Need>,
    /// How many devices must have run pipelines at the end.
    #[serde(default)]
    pub devices: usize,
    /// Names the folder that compiled kernels are kept in for later runs. One holds fewer than all configurations make.
    pub kernels: Option<String>,
    /// Which devices are looked for; all real ones unless told.
    #[serde(default)]
    pub search: Search,
    /// Variables that a driver reads when it is loaded: such a configuration runs in a process of its own.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Files that do not run.
    #[serde(default)]
    pub skip: Vec<Skip>,
}

/// What differs from the session's default configuration.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flags {
    /// `auto`, `cpu`, `gpu` or `host`.
    pub mode: String,
    /// Worker threads.
    pub threads: Option<usize>,
    /// Rows that flow through a pipeline at a time.
    pub vector_rows: Option<usize>,
    /// Gives all keys of hash tables one hash.
    #[serde(default)]
    pub force_collisions: bool,
}

/// Which devices are looked for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Search {
    /// Only these, as `opencl:0`.
    pub only: Option<String>,
    /// Simulated ones of these profiles, too.
    pub simulate: Option<String>,
    /// Denies double precision and 64-bit atomic operations.
    #[serde(default)]
    pub poor: bool,
}

/// What a machine may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Need {
    /// An OpenCL device.
    Opencl,
    /// PoCL, whose devices can be doubled.
    Pocl,
}

/// A file that a configuration leaves out.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Skip {
    /// Its name in `sql/`.
    pub file: String,
    /// Why.
    pub reason: String,
}

impl Configuration {
    /// Reads all files of a folder, in the order of their names.
    ///
    /// # Panics
    /// If one is not as it should be: these are sources of tests.
    pub fn read_all(folder: &Path) -> Vec<Configuration> {
        let entries = fs::read_dir(folder).expect("the folder of configurations exists");
        let mut paths: Vec<_> = entries.map(|entry| entry.expect("the folder is readable").path()).collect();
        paths.sort();
        let read = |path: &std::path::PathBuf| {
            let text = fs::read_to_string(path).expect("configurations are text");
            let parsed: Result<Configuration, _> = basic_toml::from_str(&text);
            let mut configuration = parsed.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            configuration.name = path.file_stem().expect("it has a name").to_string_lossy().into_owned();
            for Skip { file, reason } in &configuration.skip {
                let there = folder.join("../sql").join(file).is_file();
                assert!(there && !reason.is_empty(), "{}: no file {file} to skip, or no reason", path.display());
            }
            configuration
        };
        paths.iter().filter(|path| path.extension().is_some_and(|end| end == "toml")).map(read).collect()
    }

    /// Makes a session as the flags say.
    ///
    /// # Errors
    /// What the session cannot be made for.
    pub fn open(&self, devices: &Arc<Devices>) -> Result<Session, Error> {
        let Flags { mode, threads, vector_rows, force_collisions } = &self.flags;
        let mut switches = Switches { force_collisions: *force_collisions, ..Switches::default() };
        if let Some(rows) = vector_rows {
            switches.vector_rows = *rows;
        }
        let mut session = Session::builder().mode(mode.parse()?).on_fallback(OnFallback::Silent).switches(switches);
        session = session.devices(devices.clone());
        if let Some(threads) = threads {
            session = session.threads(*threads);
        }
        session.build()
    }

    /// Makes the devices, which are looked for when a session asks for them. Compiled kernels are kept for later runs in a
    /// folder of this one.
    pub fn devices(&self, kept: &Path) -> Arc<Devices> {
        let Search { only, simulate, poor } = self.search.clone();
        let mut options = DeviceOptions::default().poor(poor);
        if let Some(only) = only {
            options = options.only(only);
        }
        if let Some(simulate) = simulate {
            options = options.simulate(simulate);
        }
        if let Some(kernels) = &self.kernels {
            options = options.kernels(KernelCache::at(kept.join(kernels)));
        }
        Arc::new(Devices::new(options))
    }

    /// Tells whether a file runs.
    pub fn takes(&self, file: &Path) -> bool {
        !self.skip.iter().any(|skip| file.ends_with(&skip.file))
    }

    /// Tells whether the machine has what is needed; fails where the environment requires it.
    pub fn can_run(&self) -> bool {
        match self.needs {
            None => true,
            Some(Need::Opencl) => crate::has_device(),
            Some(Need::Pocl) => {
                crate::has_device() && testing::is_pocl(&tandem_device::Search::from_environment().run())
            }
        }
    }
}
