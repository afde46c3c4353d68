//! From a physical pipeline to the text of one kernel, for OpenCL C and CUDA C: a pure function.
//!
//! The body is written once, in the C that both share; a prelude per target defines the rest (`prelude/`). How rows are
//! dealt out is the device's choice: a run of rows for each work-item on CPUs, rows in turn on GPUs. Literals, bases
//! and bounds are arguments, so that a query with other literals has the same text, and the same binary.
//!
//! [`generate`] returns the text and what each argument of the kernel is bound to: the launch plan.

#![forbid(unsafe_code)]

mod accumulators;
mod contribution;
mod expression;
mod finish;
mod frame;
mod groups;
mod hash_key;
mod hashed;
mod held;
mod kernel;
mod mapping;
mod operators;
mod partition;
mod probe;
mod read;
mod rows;
mod running;
mod sink;
mod slice;
mod sorted;
mod spread;
mod text;
mod total;
mod unmatched;
mod window;

use tandem_column::{Column, Data, Remote, RemoteForm, Result};
use tandem_pipeline::SlotId;
use tandem_plan::Origin;

pub use finish::finish;
pub use hash_key::{HashKey, KeyOf, PLACE_BITS};
pub use kernel::{GeneratedKernel, KernelInput, KernelOutput, generate};
pub use mapping::Mapping;
pub use operators::{operator, operators};
pub use rows::RowColumn;
pub use running::{Running, RunningKind};
pub use sink::{AccumulatorWords, BitOperation, KernelSink, MOST_HALVES, NO_CENTER, OrderKey, ROWS_COUNT, ValueGroups};
pub use slice::{MOST_SLICE, TextBase, slice_bounds};
pub use unmatched::generate_unmatched;
pub use window::{WindowBinding, WindowInput, WindowKernels, windows};

/// How the values of a column lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// Unsigned offsets from a base, or codes of a dictionary, of so many bytes.
    Code(usize),
    /// IEEE single precision.
    Float32,
    /// IEEE double precision.
    Float64,
    /// 128-bit integers, lower half first.
    Wide,
    /// Text or bytes: where each value begins, 64 bits, in the bytes of all of them.
    Bytes,
}

/// What a kernel must know of a column to read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ColumnLayout {
    /// How its values lie in memory.
    pub form: Form,
    /// It has a validity bitmap.
    pub nullable: bool,
}

impl ColumnLayout {
    /// Reads the layout of a column.
    ///
    /// # Errors
    /// Unsupported, for values that kernels do not read yet.
    pub fn of(column: &Column) -> Result<ColumnLayout> {
        let form = match &column.data {
            Data::Int { codes, .. } | Data::Dictionary { codes, .. } => Form::Code(codes.width()),
            Data::Float32(_) => Form::Float32,
            Data::Float64(_) => Form::Float64,
            Data::Wide(_) => Form::Wide,
            Data::Bytes { .. } => Form::Bytes,
            Data::Remote(Remote { form, .. }) => match form {
                RemoteForm::Int { width, .. } | RemoteForm::Dictionary { width, .. } => Form::Code(*width),
                RemoteForm::Wide => Form::Wide,
                RemoteForm::Float64 => Form::Float64,
            },
        };
        Ok(ColumnLayout { form, nullable: column.is_nullable() })
    }
}

/// What a device can do, as far as kernels depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Traits {
    /// Each work-item takes a run of rows, with a table of groups of its own; otherwise work-items take rows in turn and
    /// share one table.
    pub chunked: bool,
    /// Double precision.
    pub fp64: bool,
    /// Atomic operations on 64 bits.
    pub int64_atomics: bool,
    /// Every read of a source column is noted: which sectors of memory a query touches.
    pub traced: bool,
}

/// Bytes that a device reads at once, and so the least it reads of host memory.
pub const SECTOR: usize = 32;

/// The language of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KernelLanguage {
    /// OpenCL C 1.2 and later.
    OpenCl,
    /// CUDA C++, compiled at run time.
    Cuda,
}

/// What an argument of the kernel is bound to at launch.
#[derive(Clone, Debug, PartialEq)]
pub enum Binding {
    /// The number of rows of the part, or of entries of a build, 32 bits.
    Rows,
    /// Whether this launch writes rows, or only counts them, 32 bits.
    Writes,
    /// How many rows earlier parts of the table have, 32 bits; for build rows, how many it has.
    FirstRow,
    /// The values of a source column.
    Column(usize),
    /// The validity words of a source column.
    Validity(usize),
    /// A byte for each sector of a source column's values, set when it is read.
    Touched(usize),
    /// What code 0 of a source column stands for, 64 bits.
    Base(usize),
    /// The first code of a range step that is kept, as wide as its column's codes.
    Low(usize),
    /// How many codes behind the first are kept, as wide as its column's codes.
    Span(usize),
    /// The bits of a set, from the smallest value of its column on.
    Set(usize),
    /// The same with a byte for each value, for codes of at most 16 bits.
    SetBytes(usize),
    /// A source column's base minus the value of bit 0 of a set, 32 bits.
    SetShift {
        /// Which set.
        set: usize,
        /// The source column.
        column: usize,
    },
    /// A source column's base minus the value of entry 0 of a lookup, 64 bits.
    LookupShift(usize),
    /// The values of a payload column.
    Payload {
        /// Which lookup.
        lookup: usize,
        /// Which of its columns.
        payload: usize,
    },
    /// The validity words of a payload column.
    PayloadValidity {
        /// Which lookup.
        lookup: usize,
        /// Which of its columns.
        payload: usize,
    },
    /// What code 0 of a payload column stands for, 64 bits.
    PayloadBase {
        /// Which lookup.
        lookup: usize,
        /// Which of its columns.
        payload: usize,
    },
    /// The keys of a lookup's build as bits, from its smallest on.
    KeyBits(usize),
    /// Where the entries of each place or bucket of a lookup's build begin, 32 bits.
    Starts(usize),
    /// The packed key of each entry of a lookup's build, 64 bits.
    PackedKeys(usize),
    /// A byte for each entry of a lookup's build, set where it has a row.
    Matched(usize),
    /// The bytes of a column of text.
    Bytes(Origin),
    /// The bytes of a text.
    Text(Vec<u8>),
    /// What a text must be like, 16 bits each: see [`Matcher::codes`].
    ///
    /// [`Matcher::codes`]: tandem_pipeline::scalar::like::Matcher::codes
    Pattern(Vec<u16>),
    /// What an expression gives for each word of a dictionary, that of null first: 64-bit numbers, bytes for
    /// booleans.
    Mapped(Mapping),
    /// Its null flags, a byte each.
    MappedNulls(Mapping),
    /// Where each text begins that an expression gives for the words of a dictionary, that of null first, 64 bits.
    MappedTexts(Mapping),
    /// The bytes of those texts.
    MappedBytes(Mapping),
    /// A constant, 64 bits (of a float: its bits).
    Constant(i64),
    /// The tables of groups, 64-bit numbers.
    Groups,
    /// The first table of groups that is a launch's, 32 bits: those that run at once have tables of their own.
    FirstTable,
    /// How many tables of groups there are, 32 bits.
    Tables,
    /// The number of each place of a hash table of groups, 64 bits; all ones where it has none.
    GroupNumbers,
    /// The same of a hash table of earlier numbers, whose places stand for them in later ones.
    EarlierNumbers(usize),
    /// Where each text of a hash table of a slot's texts lies, 64 bits; all ones where there is none.
    Texts(SlotId),
    /// How many places a hash table of groups has, less one, 32 bits.
    GroupMask,
    /// One 32-bit number, set when a hash table of groups is too small.
    Full,
    /// How many rows each work-item of each part keeps, 32 bits; then where each begins to write.
    Counts,
    /// Where the part's counts begin, 32 bits.
    CountsFrom,
    /// An ordinal of each row, 64 bits.
    Ordinal(usize),
    /// The values of an output column, 64 bits each; 32 for numbers of rows and entries.
    Values(usize),
    /// The null flags of an output column, a byte each.
    Nulls(usize),
    /// What only kernels of window functions read and write.
    Window(WindowBinding),
    /// One 32-bit number, set when a row has no value: the CPU then finds the row and the message.
    Failed,
}
