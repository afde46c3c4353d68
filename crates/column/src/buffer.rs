//! Aligned, immutable memory for column values.
//!
//! Every buffer starts on a 4096-byte boundary and its allocation is a multiple of 4096 bytes, so a device can map it
//! without a copy and SIMD loads may run up to the end of the last page: the bytes between the last value and that end
//! are zero. [`AlignedVec`] is where values are written; [`AlignedVec::into_buffer`] seals it into a [`Buffer`], which
//! is shared by reference count and never changes again.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::fmt;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// Alignment and granularity of every allocation, in bytes: the page size that devices map.
pub const PAGE: usize = 4096;

/// Allocations from here on ask for huge pages: two of 2 MiB, so that at least one fits whatever the start.
#[cfg(target_os = "linux")]
const HUGE: usize = 4 << 20;

mod sealed {
    pub trait Sealed {}
}

/// A number that any bits are a value of, without padding. Sealed: the safety of buffers rests on it.
pub trait Plain: sealed::Sealed + Copy + Default + PartialEq + fmt::Debug + Send + Sync + 'static {}

macro_rules! plain {
    ($($t:ty)*) => { $(impl sealed::Sealed for $t {} impl Plain for $t {})* };
}
plain!(u8 u16 u32 u64 i8 i16 i32 i64 i128 f32 f64);

/// One page-aligned allocation; `capacity` is a multiple of [`PAGE`], and no memory is held when it is 0.
struct Memory {
    start: NonNull<u8>,
    capacity: usize,
}

// SAFETY: `Memory` owns its allocation and gives no access by itself; `AlignedVec` guards writes by `&mut`, `Buffer`
// only reads.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// The layout of a non-empty allocation.
    fn layout(capacity: usize) -> Layout {
        Layout::from_size_align(capacity, PAGE).expect("a column buffer is smaller than the address space")
    }

    /// Allocates at least `bytes` bytes, whose contents are undefined.
    fn new(bytes: usize) -> Memory {
        if bytes == 0 {
            let start = NonNull::new(ptr::without_provenance_mut(PAGE)).expect("the page size is not zero");
            return Memory { start, capacity: 0 };
        }
        let capacity = bytes.checked_next_multiple_of(PAGE).expect("a column buffer is smaller than the address space");
        let layout = Self::layout(capacity);
        // SAFETY: the layout's size is not zero.
        let start = unsafe { alloc(layout) };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        #[cfg(target_os = "linux")]
        if capacity >= HUGE {
            // SAFETY: the range is whole pages of an allocation of ours; the advice does not change its contents.
            // A refusal only means smaller pages.
            unsafe { libc::madvise(start.as_ptr().cast(), capacity, libc::MADV_HUGEPAGE) };
        }
        Memory { start, capacity }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.capacity != 0 {
            // SAFETY: allocated in `new` with this very layout.
            unsafe { dealloc(self.start.as_ptr(), Self::layout(self.capacity)) }
        }
    }
}

/// A growable run of values in page-aligned memory.
pub struct AlignedVec<T: Plain> {
    memory: Memory,
    length: usize,
    marker: PhantomData<T>,
}

impl<T: Plain> AlignedVec<T> {
    /// Makes an empty one without memory.
    pub fn new() -> Self {
        Self::with_capacity(0)
    }

    /// Makes an empty one with room for `capacity` values.
    pub fn with_capacity(capacity: usize) -> Self {
        let bytes = capacity.checked_mul(size_of::<T>()).expect("a column buffer is smaller than the address space");
        AlignedVec { memory: Memory::new(bytes), length: 0, marker: PhantomData }
    }

    /// Makes one of `length` zeros.
    pub fn zeroed(length: usize) -> Self {
        let mut new = Self::with_capacity(length);
        // SAFETY: the capacity holds `length` values; all bits zero is a value of every plain type.
        unsafe { ptr::write_bytes(new.memory.start.as_ptr(), 0, length * size_of::<T>()) };
        new.length = length;
        new
    }

    /// Returns how many values there are.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Tells whether there are none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns how many values fit without growing.
    pub fn capacity(&self) -> usize {
        self.memory.capacity / size_of::<T>()
    }

    /// Makes room for `additional` more values, at least doubling if it must grow.
    pub fn reserve(&mut self, additional: usize) {
        let wanted = self.length.checked_add(additional).expect("a column buffer is smaller than the address space");
        if wanted > self.capacity() {
            self.grow(wanted.max(self.capacity() * 2));
        }
    }

    #[cold]
    fn grow(&mut self, capacity: usize) {
        let mut new = Self::with_capacity(capacity);
        // SAFETY: both hold at least `length` values and are different allocations.
        unsafe { ptr::copy_nonoverlapping(self.as_ptr(), new.as_mut_ptr(), self.length) };
        new.length = self.length;
        *self = new;
    }

    fn as_ptr(&self) -> *const T {
        self.memory.start.as_ptr().cast::<T>().cast_const()
    }

    fn as_mut_ptr(&mut self) -> *mut T {
        self.memory.start.as_ptr().cast()
    }

    /// Adds a value.
    #[inline]
    pub fn push(&mut self, value: T) {
        if self.length == self.capacity() {
            self.reserve(1);
        }
        // SAFETY: there is room for one more after the check above.
        unsafe { self.as_mut_ptr().add(self.length).write(value) };
        self.length += 1;
    }

    /// Adds all of `values`.
    #[inline]
    pub fn extend_from_slice(&mut self, values: &[T]) {
        self.reserve(values.len());
        // SAFETY: there is room for them; a slice borrowed from elsewhere cannot overlap memory borrowed mutably.
        unsafe { ptr::copy_nonoverlapping(values.as_ptr(), self.as_mut_ptr().add(self.length), values.len()) };
        self.length += values.len();
    }

    /// Makes the length `length`, by dropping values or adding copies of `value`.
    pub fn resize(&mut self, length: usize, value: T) {
        if length > self.length {
            let additional = length - self.length;
            self.reserve(additional);
            let start = self.as_mut_ptr().cast::<MaybeUninit<T>>();
            // SAFETY: as many values as were reserved, behind those that are there; they may be uninitialised.
            let spare = unsafe { std::slice::from_raw_parts_mut(start.add(self.length), additional) };
            spare.fill(MaybeUninit::new(value));
        }
        self.length = length;
    }

    /// Keeps the first `length` values, if there are more.
    pub fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    /// Drops all values and keeps the memory.
    pub fn clear(&mut self) {
        self.length = 0;
    }

    /// Returns the values.
    #[inline]
    pub fn as_slice(&self) -> &[T] {
        // SAFETY: the first `length` values are written; the memory lives as long as the borrow.
        unsafe { std::slice::from_raw_parts(self.as_ptr(), self.length) }
    }

    /// Returns the values for writing.
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        // SAFETY: as in `as_slice`, and the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.as_mut_ptr(), self.length) }
    }

    /// Seals the values, without copying them.
    pub fn into_buffer(self) -> Buffer<T> {
        let used = self.length * size_of::<T>();
        let end = used.next_multiple_of(PAGE).min(self.memory.capacity);
        // SAFETY: `used..end` is within the allocation, which nobody else sees yet.
        unsafe { ptr::write_bytes(self.memory.start.as_ptr().add(used), 0, end - used) };
        let AlignedVec { memory, length, .. } = self;
        Buffer { start: memory.start.cast(), length, memory: Arc::new(memory) }
    }
}

impl<T: Plain> Default for AlignedVec<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Plain> Clone for AlignedVec<T> {
    fn clone(&self) -> Self {
        Self::from(self.as_slice())
    }
}

impl<T: Plain> fmt::Debug for AlignedVec<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().fmt(f)
    }
}

impl<T: Plain> Deref for AlignedVec<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        self.as_slice()
    }
}

impl<T: Plain> DerefMut for AlignedVec<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.as_mut_slice()
    }
}

impl<T: Plain> From<&[T]> for AlignedVec<T> {
    fn from(values: &[T]) -> Self {
        let mut new = Self::with_capacity(values.len());
        new.extend_from_slice(values);
        new
    }
}

impl<T: Plain> From<Vec<T>> for AlignedVec<T> {
    fn from(values: Vec<T>) -> Self {
        Self::from(values.as_slice())
    }
}

impl<T: Plain> FromIterator<T> for AlignedVec<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut new = Self::new();
        new.extend(values);
        new
    }
}

impl<T: Plain> Extend<T> for AlignedVec<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, values: I) {
        let values = values.into_iter();
        self.reserve(values.size_hint().0);
        for value in values {
            self.push(value);
        }
    }
}

/// Immutable values in page-aligned memory, shared by reference count.
pub struct Buffer<T: Plain> {
    start: NonNull<T>,
    length: usize,
    memory: Arc<Memory>,
}

// SAFETY: a buffer only reads memory that it keeps alive and that nobody writes any more.
unsafe impl<T: Plain> Send for Buffer<T> {}
// SAFETY: as above.
unsafe impl<T: Plain> Sync for Buffer<T> {}

impl<T: Plain> Buffer<T> {
    /// Copies `values` into a new buffer.
    pub fn from_slice(values: &[T]) -> Self {
        AlignedVec::from(values).into_buffer()
    }

    /// Returns the values.
    #[inline]
    pub fn as_slice(&self) -> &[T] {
        // SAFETY: `start` points to `length` written values that `memory` keeps alive, aligned and unchanged.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }

    /// Returns the memory that is held, in bytes.
    pub fn byte_len(&self) -> usize {
        self.memory.capacity
    }

    /// Views the same bytes as values of another type of the same size, without a copy.
    pub fn reinterpret<U: Plain>(&self) -> Buffer<U> {
        const { assert!(size_of::<T>() == size_of::<U>()) };
        Buffer { start: self.start.cast(), length: self.length, memory: self.memory.clone() }
    }

    /// Views the values as bytes, without a copy.
    pub fn bytes(&self) -> Buffer<u8> {
        Buffer { start: self.start.cast(), length: self.length * size_of::<T>(), memory: self.memory.clone() }
    }

    /// Tells whether both are views of the same memory.
    pub fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.memory, &other.memory)
    }

    /// Shares the values with Arrow, without a copy.
    pub fn to_arrow(&self) -> arrow_buffer::Buffer {
        let bytes = self.length * size_of::<T>();
        // SAFETY: `start` points to `bytes` initialised bytes that stay alive and unchanged as long as the owner that
        // is handed along.
        unsafe { arrow_buffer::Buffer::from_custom_allocation(self.start.cast(), bytes, self.memory.clone()) }
    }
}

impl<T: Plain> Clone for Buffer<T> {
    fn clone(&self) -> Self {
        Buffer { start: self.start, length: self.length, memory: self.memory.clone() }
    }
}

impl<T: Plain> Deref for Buffer<T> {
    type Target = [T];
    #[inline]
    fn deref(&self) -> &[T] {
        self.as_slice()
    }
}

impl<T: Plain> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().fmt(f)
    }
}

impl<T: Plain> PartialEq for Buffer<T> {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl<T: Plain> Default for Buffer<T> {
    fn default() -> Self {
        AlignedVec::new().into_buffer()
    }
}

impl<T: Plain> From<Vec<T>> for Buffer<T> {
    fn from(values: Vec<T>) -> Self {
        Self::from_slice(&values)
    }
}

impl<T: Plain> From<&[T]> for Buffer<T> {
    fn from(values: &[T]) -> Self {
        Self::from_slice(values)
    }
}

impl<T: Plain> From<AlignedVec<T>> for Buffer<T> {
    fn from(values: AlignedVec<T>) -> Self {
        values.into_buffer()
    }
}

impl<T: Plain> FromIterator<T> for Buffer<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        values.into_iter().collect::<AlignedVec<T>>().into_buffer()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_and_end_in_zeros() {
        for length in [0usize, 1, 7, 511, 512, 513, 5000, 600_000] {
            let mut values = AlignedVec::new();
            (0..length as u64).for_each(|value| values.push(value));
            let start = values.as_slice().as_ptr();
            let buffer = values.into_buffer();
            assert_eq!(buffer.as_ptr(), start, "sealing does not copy");
            assert_eq!(buffer.as_ptr().addr() % PAGE, 0);
            assert_eq!(buffer.byte_len() % PAGE, 0);
            assert!(buffer.iter().copied().eq(0..length as u64));
            let end = (length * 8).next_multiple_of(PAGE) / 8;
            // SAFETY: sealing zeroes the rest of the last page.
            let page = unsafe { std::slice::from_raw_parts(buffer.as_ptr(), end) };
            assert!(page[length..].iter().all(|value| *value == 0));
        }
    }

    #[test]
    fn vectors_grow_and_shrink() {
        let mut values = AlignedVec::with_capacity(2);
        values.extend_from_slice(&[1u16, 2, 3]);
        values.resize(5000, 9);
        assert_eq!((values.len(), values[2], values[4999]), (5000, 3, 9));
        values.truncate(4);
        values.resize(3, 0);
        assert_eq!(values.as_slice(), [1, 2, 3]);
        values.as_mut_slice()[0] = 7;
        assert_eq!(values.clone().into_buffer(), Buffer::from(vec![7u16, 2, 3]));
        values.clear();
        assert!(values.is_empty() && values.into_buffer().is_empty());
        assert_eq!(AlignedVec::<f64>::zeroed(3).as_slice(), [0.0; 3]);
    }

    #[test]
    fn views_outlive_the_buffer() {
        let buffer = Buffer::from(vec![1u64, u64::MAX, 3]);
        let signed: Buffer<i64> = buffer.reinterpret();
        let arrow = buffer.to_arrow();
        assert_eq!(arrow.as_ptr(), buffer.as_ptr().cast());
        drop(buffer);
        assert_eq!(signed.as_slice(), [1, -1, 3]);
        drop(signed);
        assert_eq!(arrow.typed_data::<u64>(), [1, u64::MAX, 3]);
        let empty = Buffer::<i128>::default().to_arrow();
        assert!(empty.is_empty());
    }

    #[test]
    fn buffers_cross_threads() {
        let buffer: Buffer<u32> = (0..100_000).collect();
        let sums: Vec<u64> = std::thread::scope(|scope| {
            let sum = |buffer: Buffer<u32>| buffer.iter().map(|v| u64::from(*v)).sum();
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn({
                        let b = buffer.clone();
                        move || sum(b)
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("the thread ends")).collect()
        });
        assert_eq!(sums, [4_999_950_000; 4]);
    }
}
