//! The trait that a backend implements, and what launches are given.
//!
//! A [`Device`] hands out memory, programs and queues and may be used by many threads at once. A [`Queue`] belongs to one
//! thread at a time and runs its commands in the order they were given; commands of different queues run in any order
//! unless `after` says otherwise. Objects of one device are of no use to another, except events: a queue that is given
//! a foreign event waits for it on the host.

use std::fmt::Debug;

use tandem_column::{Buffer, Error, Result};

use crate::{Info, Memory, Program, Queue};

/// A GPU, an accelerator or a CPU, with memory of its own or pretending to have some. All methods may be called from several
/// threads.
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
    fn queue(&self) -> Result<Queue>;

    /// Returns the bytes of device memory that are allocated now; shared memory does not count.
    fn used(&self) -> usize;
}

/// An argument of a kernel.
#[derive(Clone, Copy, Debug)]
pub enum Argument<'a> {
    /// A pointer to device or shared memory.
    Memory(&'a Memory),
    /// A pointer to memory in which the kernel marks what it reads of another argument.
    Marks(Marks<'a>),
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

/// Memory in which a kernel marks what it reads of another argument. A simulated device charges what is marked rather than
/// the whole.
#[derive(Clone, Copy, Debug)]
pub struct Marks<'a> {
    /// A byte for each unit of what is read, 0 before the launch; another value says that the unit was read.
    pub memory: &'a Memory,
    /// What is read, an argument of the same launch.
    pub of: &'a Memory,
    /// The bytes of a unit.
    pub unit: usize,
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

/// A launch as CUDA's drivers take it.
#[cfg(any(test, feature = "shim", feature = "cuda"))]
pub(crate) struct Launch {
    pub(crate) groups: u32,
    pub(crate) items: u32,
    /// Bytes of dynamic shared memory.
    pub(crate) local: u32,
    /// Each argument in a place of eight bytes, of which the kernel reads what it declares, the low ones first; and the bytes
    /// that it is meant to have.
    pub(crate) values: Vec<(u64, u8)>,
}

#[cfg(any(test, feature = "shim", feature = "cuda"))]
impl Launch {
    /// The alignment of each local argument within dynamic shared memory, in bytes: that of the widest vector type.
    const LOCAL_ALIGNMENT: usize = 16;

    /// Checks a launch on a device that gives memory an address.
    pub(crate) fn new(
        info: &Info,
        arguments: &[Argument<'_>],
        shape: Shape,
        address: impl Fn(&Memory) -> Result<u64>,
    ) -> Result<Launch> {
        shape.check(info)?;
        let many = |_| Error::internal(format!("too many work-items: {} groups of {}", shape.groups, shape.items));
        let (groups, items) = (u32::try_from(shape.groups).map_err(many)?, u32::try_from(shape.items).map_err(many)?);
        let (mut values, mut local) = (Vec::with_capacity(arguments.len()), 0usize);
        for argument in arguments {
            values.push(match argument {
                Argument::Memory(memory) | Argument::Marks(Marks { memory, .. }) => (address(memory)?, 8),
                Argument::Null => (0, 8),
                Argument::U8(value) => (u64::from(*value), 1),
                Argument::U16(value) => (u64::from(*value), 2),
                Argument::I32(value) => (u64::from(*value as u32), 4),
                Argument::U32(value) => (u64::from(*value), 4),
                Argument::I64(value) => (*value as u64, 8),
                Argument::U64(value) => (*value, 8),
                Argument::Local(bytes) => {
                    local += bytes.next_multiple_of(Self::LOCAL_ALIGNMENT);
                    continue;
                }
            });
        }
        let local = u32::try_from(local)
            .map_err(|_| Error::internal(format!("too much local memory for a kernel: {local} bytes")))?;
        Ok(Launch { groups, items, local, values })
    }
}
