//! Tables: the catalogue, resident columns, files, and what a session tells of them.

pub(crate) mod catalog;
pub(crate) mod external;
pub(crate) mod files;
pub(crate) mod info;
pub(crate) mod inspected;
pub(crate) mod load;
pub(crate) mod location;
pub(crate) mod provider_future;
pub(crate) mod resident;
pub(crate) mod resident_exec;
