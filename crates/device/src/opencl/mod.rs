//! Devices through OpenCL 1.2 or later.
//!
//! `library` loads the OpenCL library and fills a table of its functions, once; `platform` lists the devices; `device`,
//! `program`, `queue` and `event` implement the traits on that table. A device has a context of its own, so each object
//! belongs to exactly one device. Every raw object is owned by a [`handle`] that releases it.

mod device;
mod event;
mod handle;
mod library;
mod platform;
mod program;
mod query;
mod queue;
mod status;

pub(crate) use platform::discover;
