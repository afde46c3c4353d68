//! The node: a daemon that holds columns and runs pipelines for all clients of a machine, and a client for it.
//!
//! Clients send *commands*: a query in the protobuf form of pipelines, the splits of files that its tables read, and the names of blocks
//! (build sides) that it can send. The daemon reads the files itself, keeps decoded columns and blocks for later commands of anyone,
//! runs the query on one pool of workers and sends the result as Arrow. [`serve`] is the daemon, [`Client`] its client;
//! `proto/node.proto` is the protocol's reference and `docs/adr/008-node.md` says why it is so.
//!
//! Bytes from clients are untrusted: nothing they send ends the daemon, and what is wrong is answered with a sentence.
#![forbid(unsafe_code)]

mod arrival;
mod blocks;
mod bounds;
mod client;
mod command;
mod connection;
mod connections;
mod daemon;
mod deadline;
pub mod frame;
mod log;
mod metrics;
mod node;
mod options;
pub mod proto;
mod serve;
mod socket;
mod tls;
mod trust;

pub use client::{BuildBlock, Client, Failed, Outcome, Stop};
pub use node::Node;
pub use options::{Executor, LogLevel, NodeOptions};
pub use serve::serve;
pub use tandem_column::{Class, Error, Result};
