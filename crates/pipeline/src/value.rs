//! A single value, as literals carry it and the interpreter computes with it.

use std::sync::Arc;

/// A value without its type: what holds it follows [`tandem_column::Type::repr`].
#[derive(Clone, Debug)]
pub enum Value {
    Null,
    Boolean(bool),
    Integer(i128), // every integer, date, time, timestamp, and decimal (scaled)
    Float(f64),    // float32 too, already rounded
    String(Arc<str>),
    Binary(Arc<[u8]>),
    Interval { months: i32, days: i32, nanoseconds: i64 },
    List(Arc<[Value]>),
}
