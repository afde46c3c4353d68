//! How a session is made: settings first, all with defaults, then [`SessionBuilder::build`].

use std::sync::Arc;

use tandem_runtime::Devices;

use super::Session;
use crate::testing::Switches;
use crate::{Config, Error, Mode, OnFallback};

/// The settings of a session that is to be made.
///
/// ```
/// use tandem_engine::{Mode, Session};
///
/// let session = Session::builder().threads(2).memory_limit(1 << 30).mode(Mode::Cpu).build()?;
/// assert_eq!(session.config().threads, 2);
/// # Ok::<(), tandem_engine::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "a session is made by build()"]
pub struct SessionBuilder {
    config: Config,
    switches: Switches,
    devices: Arc<Devices>,
}

impl SessionBuilder {
    /// Takes all settings from those of another session.
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// Sets where statements run; [`Mode::Auto`] unless told.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.config.mode = mode;
        self
    }

    /// Sets what happens when a part of a statement is left to the host engine; [`OnFallback::Warn`] unless told.
    pub fn on_fallback(mut self, on_fallback: OnFallback) -> Self {
        self.config.on_fallback = on_fallback;
        self
    }

    /// Sets the number of worker threads; all cores unless told.
    pub fn threads(mut self, threads: usize) -> Self {
        self.config.threads = threads.max(1);
        self
    }

    /// Sets how many bytes statements, resident tables and cached columns may take together; four fifths of the
    /// machine's memory unless told.
    pub fn memory_limit(mut self, bytes: usize) -> Self {
        self.config.memory_limit = Some(bytes);
        self
    }

    /// Sets how many bytes cached columns of scanned files may take; a quarter of the machine's memory, or half of the
    /// memory limit if that is less, unless told.
    pub fn cache_limit(mut self, bytes: usize) -> Self {
        self.config.cache_limit = Some(bytes);
        self
    }

    /// Sets the devices that statements in [`Mode::Gpu`] run on, which sessions may share; every device of this machine
    /// unless told, with compiled kernels that are not kept on disk. [`Devices::from_environment`] is as the command line
    /// has them.
    pub fn devices(mut self, devices: Arc<Devices>) -> Self {
        self.devices = devices;
        self
    }

    /// Sets what only tests change.
    #[doc(hidden)]
    pub fn switches(mut self, switches: Switches) -> Self {
        self.switches = switches;
        self
    }

    /// Makes the session, without tables.
    ///
    /// # Errors
    /// If the system refuses threads.
    pub fn build(self) -> Result<Session, Error> {
        Session::new(self.config, self.switches, self.devices)
    }
}
