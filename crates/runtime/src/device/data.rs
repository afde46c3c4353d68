//! Columns on a device: *passive*, read where they are as far as a kernel touches them, or *active*, copied once and kept
//! while they live. Columns of large tables that one pass reads are passive where the device can read host memory; what
//! builds are made of, and all that probes look up at random, is active.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use tandem_column::{Buffer, Column, Data, Error, Result};
use tandem_cpu::is_away;
use tandem_device::{Device, Kind, Memory, Queue};

use super::DeviceMetrics;

/// Columns that are on the device.
#[derive(Debug, Default)]
pub(super) struct Resident {
    columns: Mutex<HashMap<usize, Known>>,
}

#[derive(Debug)]
struct Known {
    column: Weak<Column>,
    held: Held,
}

/// The memory of one column.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) values: Memory,
    pub(super) validity: Option<Memory>,
    /// The bytes of text.
    pub(super) bytes: Option<Memory>,
}

impl Resident {
    /// Returns the memory of a table's column, which is kept for as long as the column lives.
    pub(super) fn hold(
        &self,
        column: &Arc<Column>,
        passive: bool,
        device: &dyn Device,
        queue: &mut dyn Queue,
        metrics: &mut DeviceMetrics,
    ) -> Result<Held> {
        let address = Arc::as_ptr(column) as usize;
        let mut columns = self.columns.lock();
        columns.retain(|_, known| known.column.strong_count() > 0);
        if let Some(known) = columns.get(&address) {
            metrics.bytes_shared += if known.held.values.is_shared() { column.byte_len() as u64 } else { 0 };
            return Ok(known.held.clone());
        }
        if is_away(column) {
            return Err(Error::internal("the values of a column are on another device"));
        }
        let held = place(column, passive, device, queue, metrics)?;
        columns.insert(address, Known { column: Arc::downgrade(column), held: held.clone() });
        Ok(held)
    }

    /// Returns the memory of a column that is on the device.
    pub(super) fn known(&self, column: &Arc<Column>) -> Option<Held> {
        let columns = self.columns.lock();
        let known = columns.get(&(Arc::as_ptr(column) as usize))?;
        known.column.upgrade().filter(|alive| Arc::ptr_eq(alive, column)).map(|_| known.held.clone())
    }

    /// Keeps the memory of a column that was computed on the device.
    pub(super) fn keep(&self, column: &Arc<Column>, held: Held) {
        let known = Known { column: Arc::downgrade(column), held };
        self.columns.lock().insert(Arc::as_ptr(column) as usize, known);
    }
}

/// Puts a column on the device.
fn place(
    column: &Column,
    passive: bool,
    device: &dyn Device,
    queue: &mut dyn Queue,
    metrics: &mut DeviceMetrics,
) -> Result<Held> {
    let mut put = |bytes: Buffer<u8>| place_bytes(bytes, passive, device, queue, metrics);
    let values = match &column.data {
        Data::Int { codes, .. } | Data::Dictionary { codes, .. } => put(codes.bytes())?,
        Data::Float32(values) => put(values.bytes())?,
        Data::Float64(values) => put(values.bytes())?,
        Data::Wide(values) => put(values.bytes())?,
        Data::Bytes { offsets, .. } => put(offsets.bytes())?,
    };
    let bytes = match &column.data {
        Data::Bytes { bytes, .. } => Some(put(at_least_one(bytes.clone()))?),
        _ => None,
    };
    let validity = column.validity.as_ref().map(|validity| put(validity.buffer().bytes())).transpose()?;
    Ok(Held { values, validity, bytes })
}

/// Devices have no memory of no bytes.
pub(super) fn at_least_one(bytes: Buffer<u8>) -> Buffer<u8> {
    if bytes.is_empty() { std::iter::once(0).collect() } else { bytes }
}

/// Puts bytes on the device.
pub(super) fn place_bytes(
    bytes: Buffer<u8>,
    passive: bool,
    device: &dyn Device,
    queue: &mut dyn Queue,
    metrics: &mut DeviceMetrics,
) -> Result<Memory> {
    let length = bytes.len();
    let info = device.info();
    // A processor's memory is the host's: nothing is won by a copy.
    if info.shared_memory && length > 0 && (passive || info.kind == Kind::Cpu) {
        metrics.bytes_shared += length as u64;
        return device.share(&bytes);
    }
    let memory = device.allocate(length)?;
    queue.write(&memory, 0, bytes, &[])?;
    metrics.bytes_to += length as u64;
    Ok(memory)
}
