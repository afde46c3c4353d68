//! Columns on a device: *passive*, read where they are as far as a kernel touches them, or *active*, copied once and kept
//! while they live. Columns of large tables that one pass reads are passive where the device can read host memory; what
//! builds are made of, and all that probes look up at random, is active. Where reads are counted, a passive column of which a
//! kernel has read nearly all becomes active when it is needed again: a copy moves no more, and only once.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use tandem_column::{Buffer, Column, Data, Error, Result};
use tandem_device::{Device, Event, Memory, Queue};

use super::{DeviceMetrics, DeviceSettings};

/// Columns that are on the device.
#[derive(Debug, Default)]
pub(super) struct Resident {
    columns: Mutex<HashMap<usize, Known>>,
}

#[derive(Debug)]
struct Known {
    column: Weak<Column>,
    held: HeldColumn,
    /// It is read in place, and the last kernel read nearly all of it.
    worth_copying: bool,
}

/// The memory of one column.
#[derive(Clone, Debug)]
pub(super) struct HeldColumn {
    pub(super) values: Memory,
    pub(super) validity: Option<Memory>,
    /// The bytes of text.
    pub(super) bytes: Option<Memory>,
    /// Copies that fill it, of any queue: a kernel that reads it waits for those that are not over.
    pub(super) ready: Vec<Event>,
}

impl Known {
    /// Forgets copies that are over; tells whether none has failed and the column lives.
    fn is_good(&mut self) -> bool {
        let mut good = self.column.strong_count() > 0;
        self.held.ready.retain(|copy| match copy.poll() {
            Ok(over) => !over,
            Err(_) => {
                good = false;
                false
            }
        });
        good
    }
}

impl Resident {
    /// Returns the memory of a table's column, which is kept for as long as the column lives.
    pub(super) fn hold(&self, column: &Arc<Column>, passive: bool, mover: &mut Mover<'_>) -> Result<HeldColumn> {
        let address = Arc::as_ptr(column) as usize;
        let mut columns = self.columns.lock();
        if let Some(known) = columns.get_mut(&address)
            && known.is_good()
        {
            // Where there is no room for a copy, it stays as it is.
            if known.worth_copying
                && let Ok(held) = mover.place(column, false)
            {
                *known = Known { column: Arc::downgrade(column), held, worth_copying: false };
            }
            mover.metrics.bytes_shared += if known.held.values.is_shared() { column.byte_len() as u64 } else { 0 };
            return Ok(known.held.clone());
        }
        columns.retain(|_, known| known.column.strong_count() > 0);
        let held = mover.place(column, passive)?;
        columns.insert(address, Known { column: Arc::downgrade(column), held: held.clone(), worth_copying: false });
        Ok(held)
    }

    /// Notes how many of a column's bytes a kernel has read, of how many.
    pub(super) fn note(&self, column: &Arc<Column>, read: usize, bytes: usize) {
        if let Some(known) = self.columns.lock().get_mut(&(Arc::as_ptr(column) as usize)) {
            known.worth_copying = known.held.values.is_shared() && read * 10 > bytes * 9;
        }
    }

    /// Returns the memory of a column that is on the device.
    pub(super) fn known(&self, column: &Arc<Column>) -> Option<HeldColumn> {
        let columns = self.columns.lock();
        let known = columns.get(&(Arc::as_ptr(column) as usize))?;
        known.column.upgrade().filter(|alive| Arc::ptr_eq(alive, column)).map(|_| known.held.clone())
    }

    /// Keeps the memory of a column that was computed on the device.
    pub(super) fn keep(&self, column: &Arc<Column>, held: HeldColumn) {
        let known = Known { column: Arc::downgrade(column), held, worth_copying: false };
        self.columns.lock().insert(Arc::as_ptr(column) as usize, known);
    }
}

/// Moves bytes to a device, and counts them.
pub(super) struct Mover<'r> {
    pub(super) device: &'r dyn Device,
    pub(super) settings: DeviceSettings,
    pub(super) queue: &'r mut Queue,
    pub(super) metrics: &'r mut DeviceMetrics,
    /// All copies so far.
    pub(super) copies: &'r mut Vec<Event>,
}

impl Mover<'_> {
    /// Puts a column on the device.
    fn place(&mut self, column: &Column, passive: bool) -> Result<HeldColumn> {
        let first = self.copies.len();
        let mut put = |bytes: Buffer<u8>| self.place_bytes(bytes, passive);
        let values = match &column.data {
            Data::Int { codes, .. } | Data::Dictionary { codes, .. } => put(codes.bytes())?,
            Data::Float32(values) => put(values.bytes())?,
            Data::Float64(values) => put(values.bytes())?,
            Data::Wide(values) => put(values.bytes())?,
            Data::Bytes { offsets, .. } => put(offsets.bytes())?,
            Data::Remote(_) => return Err(Error::internal("the values of a column are on another device")),
        };
        let bytes = match &column.data {
            Data::Bytes { bytes, .. } => Some(put(at_least_one(bytes.clone()))?),
            _ => None,
        };
        let validity = column.validity.as_ref().map(|validity| put(validity.buffer().bytes())).transpose()?;
        Ok(HeldColumn { values, validity, bytes, ready: self.copies[first..].to_vec() })
    }

    /// Puts bytes on the device, for commands of the mover's queue; others wait for the last copy.
    pub(super) fn place_bytes(&mut self, bytes: Buffer<u8>, passive: bool) -> Result<Memory> {
        let length = bytes.len();
        if length > 0 && self.settings.in_place(self.device.info(), passive) {
            self.metrics.bytes_shared += length as u64;
            return self.device.share(&bytes);
        }
        let memory = self.device.allocate(length)?;
        self.copies.push(self.queue.write(&memory, 0, bytes, &[])?);
        self.metrics.bytes_to += length as u64;
        Ok(memory)
    }
}

/// Devices have no memory of no bytes.
pub(super) fn at_least_one(bytes: Buffer<u8>) -> Buffer<u8> {
    if bytes.is_empty() { std::iter::once(0).collect() } else { bytes }
}
