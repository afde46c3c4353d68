//! The daemon from outside: what commands give, what it keeps, and what it withstands.

mod commands;
mod crowd;
mod depth;
mod faults;
mod fixture;
mod hostile;
mod process;
mod remote;
mod trust;
