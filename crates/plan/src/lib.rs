//! From a pipeline and statistics to a physical pipeline: plain data that the CPU runs, a generator renders as a kernel,
//! the runtime places, and EXPLAIN prints.
//!
//! [`plan`] is the only way to a [`Physical`]; [`outline`] says what it decides before the builds are there. It reads the
//! statistics of the source and of the builds that exist, and makes every choice that depends on them: predicates become ranges
//! and sets of codes, probes of dense builds become filters on their key's column, group keys become places of an array, checks
//! that can never fail are left out, blocks that no row survives are skipped. Executors add nothing to these choices; what only one of them needs (the bits of a set laid out for
//! a column's codes, the places of a kernel's table) they derive from this value.

#![forbid(unsafe_code)]

mod body;
mod build;
mod coded;
mod domain;
mod filter;
mod hash;
mod narrow;
mod outline;
mod physical;
mod planner;
mod set;
pub mod sink;

pub use body::{Action, Body, Lookup, Origin, PhysicalProbe, PhysicalStep, Way};
pub use build::{Build, KeyIndex, dense_domain};
pub use domain::{Domain, has_nulls};
pub use filter::{Candidates, Selector};
pub use hash::{HashTable, Keys, Packed, spread};
pub use narrow::{Narrowing, NullSide, RangeCondition, RunColumns, RunOrder};
pub use outline::{Outline, OutlineItem, OutlineLine};
pub use physical::{Morsel, Physical};
pub use planner::{Planning, outline, plan};
pub use set::Set;
pub use sink::SinkPlan;
