//! How much of a device's memory is allocated.
//!
//! Drivers overcommit or fail late, so every backend counts for itself: a [`DeviceReservation`] is taken before the driver is
//! asked and given back when the memory is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tandem_column::{Error, Result};

use crate::Info;

/// The memory of one device.
#[derive(Debug)]
pub(crate) struct Capacity {
    total: usize,
    largest: usize,
    used: AtomicUsize,
}

/// Bytes taken from a [`Capacity`] until dropped.
#[derive(Debug)]
pub(crate) struct DeviceReservation {
    capacity: Arc<Capacity>,
    bytes: usize,
}

impl Capacity {
    /// Makes the empty memory of a device.
    pub(crate) fn new(info: &Info) -> Arc<Capacity> {
        Arc::new(Capacity { total: info.memory, largest: info.largest_allocation, used: AtomicUsize::new(0) })
    }

    /// Returns the bytes that are taken.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Takes `bytes`, or fails as exhausted.
    pub(crate) fn reserve(self: &Arc<Self>, bytes: usize) -> Result<DeviceReservation> {
        if bytes > self.largest {
            let largest = self.largest;
            return Err(Error::exhausted(format!(
                "the device does not allocate so much at once, split it: {bytes} bytes asked for, the limit is {largest}"
            )));
        }
        let more = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= self.total);
        match self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(_) => Ok(DeviceReservation { capacity: self.clone(), bytes }),
            Err(used) => Err(Error::exhausted(format!(
                "the device's memory is full: {bytes} bytes asked for, {used} of {} in use",
                self.total
            ))),
        }
    }
}

impl DeviceReservation {
    /// Makes the error of a driver that refuses what fitted by our count.
    pub(crate) fn refused(&self, reason: &str) -> Error {
        let Capacity { total, .. } = *self.capacity;
        let (bytes, others) = (self.bytes, self.capacity.used().saturating_sub(self.bytes));
        Error::exhausted(format!(
            "the device's memory is full by its driver: {bytes} bytes asked for, {others} of {total} in use, {reason}"
        ))
    }
}

impl Drop for DeviceReservation {
    fn drop(&mut self) {
        self.capacity.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
