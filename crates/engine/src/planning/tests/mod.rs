//! Planning as a whole: SQL in, captured pipelines and reasons out.

mod capture;
mod graphs;
mod lower;
mod optimize;
mod rewrite;
