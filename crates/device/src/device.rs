//! The two traits that a backend implements.
//!
//! A [`Device`] hands out memory, programs and queues and may be used by many threads at once. A [`Queue`] belongs to one
//! thread at a time and runs its commands in the order they were given; commands of different queues run in any order
//! unless `after` says otherwise. Objects of one device are of no use to another, except events: a queue that is given
//! a foreign event waits for it on the host.

use std::fmt::Debug;

use tandem_column::{Buffer, Error, Result};

use crate::{Event, Info, Kernel, Memory, Program};

/// A processor with memory of its own, or that pretends to have some. All methods may be called from several threads.
pub trait Device: Send + Sync + Debug {
    /// Returns its properties.
    fn info(&self) -> &Info;

    /// Allocates device memory, whose contents are undefined. Zero bytes are allowed.
    ///
    /// # Errors
    /// `Exhausted` when it does not fit; the message names the bytes asked for and the limit.
    fn allocate(&self, bytes: usize) -> Result<Memory>;

    /// Makes host memory readable for kernels without a copy. It lives as long as a kernel may read it, and neither
    /// kernels nor commands may write to it.
    ///
    /// # Errors
    /// `Unsupported` where the device cannot read host memory in place.
    fn share(&self, bytes: &Buffer<u8>) -> Result<Memory>;

    /// Compiles kernel text: OpenCL C for `opencl` and `sim`, CUDA C++ for `cuda`. `options` are the compiler's own,
    /// separated by spaces.
    ///
    /// # Errors
    /// `Device` with the first lines of the compiler's log.
    fn compile(&self, source: &str, options: &str) -> Result<Program>;

    /// Loads what [`Program::binary`] gave, on this or an equal device with an equal driver.
    ///
    /// # Errors
    /// `Unsupported` if it does not fit this device: compile the text again.
    fn load(&self, binary: &[u8], options: &str) -> Result<Program>;

    /// Makes an in-order queue. Several may exist, for instance one for copies and one for kernels.
    ///
    /// # Errors
    /// `Device` or `Exhausted` if the driver refuses.
    fn queue(&self) -> Result<Box<dyn Queue>>;

    /// Returns the bytes of device memory that are allocated now; shared memory does not count.
    fn used(&self) -> usize;
}

/// An in-order list of commands. Commands start without further calls; only `read` and `finish` block, and dropping the
/// queue, which waits for its commands. Any error of class `Device` may mean that the device is lost.
pub trait Queue: Send + Debug {
    /// Copies all of `from` to `to`, from its byte `at` on; keeps `from` alive until that is done.
    ///
    /// # Errors
    /// `Internal` if it does not fit or the memory is shared; `Exhausted` or `Device` if the driver fails.
    fn write(&mut self, to: &Memory, at: usize, from: Buffer<u8>, after: &[Event]) -> Result<Event>;

    /// Fills `into` with the bytes of `from` from `at` on, and waits for that.
    ///
    /// # Errors
    /// As [`Queue::write`], and what earlier commands failed with.
    fn read(&mut self, from: &Memory, at: usize, into: &mut [u8], after: &[Event]) -> Result<Event>;

    /// Sets `bytes` bytes from `at` on to `byte`.
    ///
    /// # Errors
    /// As [`Queue::write`].
    fn fill(&mut self, memory: &Memory, at: usize, bytes: usize, byte: u8, after: &[Event]) -> Result<Event>;

    /// Runs a kernel. Scalars and sizes must be what the kernel's text declares: not every backend can check.
    ///
    /// # Errors
    /// `Internal` for arguments or a shape that do not fit; `Exhausted` or `Device` if the driver fails.
    fn launch(&mut self, kernel: &Kernel, arguments: &[Argument<'_>], shape: Shape, after: &[Event]) -> Result<Event>;

    /// Waits for all commands.
    ///
    /// # Errors
    /// `Device` if the device failed.
    fn finish(&mut self) -> Result<()>;
}

/// An argument of a kernel.
#[derive(Clone, Copy, Debug)]
pub enum Argument<'a> {
    /// A pointer to device or shared memory.
    Memory(&'a Memory),
    /// A null pointer.
    Null,
    /// An unsigned 8-bit number.
    U8(u8),
    /// An unsigned 16-bit number.
    U16(u16),
    /// A signed 32-bit number.
    I32(i32),
    /// An unsigned 32-bit number.
    U32(u32),
    /// A signed 64-bit number.
    I64(i64),
    /// An unsigned 64-bit number.
    U64(u64),
    /// So many bytes of local memory for each group. OpenCL passes a pointer to them; CUDA passes nothing and adds them,
    /// rounded up to 16, to the kernel's dynamic shared memory.
    Local(usize),
}

/// How many work-items run: `groups` groups of `items` items each. No groups means nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Groups.
    pub groups: usize,
    /// Items in each group.
    pub items: usize,
}

impl Shape {
    /// Checks that the device can run groups of this size.
    pub(crate) fn check(self, info: &Info) -> Result<()> {
        if self.items == 0 || self.items > info.group_items {
            let (items, most) = (self.items, info.group_items);
            return Err(Error::internal(format!("a group has 1 to {most} work-items on this device, not {items}")));
        }
        if self.groups.checked_mul(self.items).is_none() {
            return Err(Error::internal(format!("too many work-items: {} groups of {}", self.groups, self.items)));
        }
        Ok(())
    }
}

/// Checks that bytes `at..at + bytes` lie within the memory.
pub(crate) fn check_range(memory: &Memory, at: usize, bytes: usize) -> Result<()> {
    if at.checked_add(bytes).is_some_and(|end| end <= memory.len()) {
        return Ok(());
    }
    let length = memory.len();
    Err(Error::internal(format!("a command leaves its memory of {length} bytes: {bytes} bytes at {at}")))
}

/// Checks the same for a command that writes, which shared memory does not allow.
pub(crate) fn check_writable(memory: &Memory, at: usize, bytes: usize) -> Result<()> {
    if memory.is_shared() {
        return Err(Error::internal("shared host memory is read-only: copy it into device memory first"));
    }
    check_range(memory, at, bytes)
}
