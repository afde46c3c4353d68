//! Memory that tasks write at the same time, each its own places.

use std::{marker::PhantomData, mem::MaybeUninit, ops::Range};

/// A slice whose places tasks write without a lock, since no two write the same.
pub(crate) struct Disjoint<'a, T> {
    first: *mut T,
    length: usize,
    slice: PhantomData<&'a mut [T]>,
}

// SAFETY: it only hands out places; whoever takes one promises that nobody else has it.
unsafe impl<T: Send> Sync for Disjoint<'_, T> {}

impl<'a, T: Copy> Disjoint<'a, T> {
    /// Shares a slice.
    pub(crate) fn new(slice: &'a mut [T]) -> Disjoint<'a, T> {
        Disjoint { first: slice.as_mut_ptr(), length: slice.len(), slice: PhantomData }
    }

    /// Shares places that hold nothing yet.
    pub(crate) fn unwritten(slice: &'a mut [MaybeUninit<T>]) -> Disjoint<'a, T> {
        Disjoint { first: slice.as_mut_ptr().cast(), length: slice.len(), slice: PhantomData }
    }

    /// Writes one place.
    ///
    /// # Safety
    /// It is a place of the slice, and no other task reads or writes it meanwhile.
    #[inline]
    pub(crate) unsafe fn write(&self, place: usize, value: T) {
        debug_assert!(place < self.length, "a place of the slice");
        // SAFETY: the caller promises a place of the slice, which is borrowed for as long as this lives.
        unsafe { self.first.add(place).write(value) };
    }

    /// Returns some places, which must have been written.
    ///
    /// # Safety
    /// No other task reads or writes them while the result is used.
    #[allow(clippy::mut_from_ref)] // the caller promises that nobody else has these places
    pub(crate) unsafe fn slice(&self, range: Range<usize>) -> &mut [T] {
        assert!(range.start <= range.end && range.end <= self.length, "places of the slice");
        // SAFETY: the places are within the slice, and the caller is the only one to use them.
        unsafe { std::slice::from_raw_parts_mut(self.first.add(range.start), range.len()) }
    }
}

/// Makes a vector whose places `fill` writes, all of them unless it fails.
///
/// # Safety
/// If `fill` succeeds, it has written every place.
///
/// # Errors
/// Those of `fill`.
pub(crate) unsafe fn filled<T: Copy, E>(
    length: usize,
    fill: impl FnOnce(&Disjoint<'_, T>) -> Result<(), E>,
) -> Result<Vec<T>, E> {
    let mut out = Vec::with_capacity(length);
    fill(&Disjoint::unwritten(&mut out.spare_capacity_mut()[..length]))?;
    // SAFETY: the caller promises that all places were written.
    unsafe { out.set_len(length) };
    Ok(out)
}
