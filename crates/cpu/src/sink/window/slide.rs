//! What is known of a frame from what was known of the frame before.
//!
//! States that can only be merged are kept in two halves, of which the older is added up from its end: each row is merged at most twice,
//! whatever the frame. Sets of rows follow the frame: each row enters and leaves each piece once. Frames that move back, which only
//! ranges to given values do, are taken in from their beginning.

use tandem_column::{Cancel, Result};

use super::frame::{Frames, Piece};

/// Rows that are taken in between two looks at cancellation.
const LOOK_AFTER: usize = 1 << 16;

/// Looks at cancellation now and then.
pub(super) struct Watch<'w> {
    cancel: &'w Cancel,
    done: usize,
}

impl<'w> Watch<'w> {
    pub(super) fn new(cancel: &'w Cancel) -> Watch<'w> {
        Watch { cancel, done: 0 }
    }

    /// Notes that so many rows were taken in.
    ///
    /// # Errors
    /// Cancellation.
    pub(super) fn work(&mut self, rows: usize) -> Result<()> {
        self.done += rows;
        if self.done < LOOK_AFTER {
            return Ok(());
        }
        self.done = 0;
        self.cancel.check()
    }
}

/// Brings the state of each frame to `emit`.
///
/// # Errors
/// Cancellation.
pub(super) fn slide<S: Copy>(
    frames: &Frames,
    empty: S,
    leaf: impl Fn(usize) -> S,
    merge: impl Fn(S, S) -> S,
    mut emit: impl FnMut(S),
    cancel: &Cancel,
) -> Result<()> {
    let mut watch = Watch::new(cancel);
    let mut piece = |pieces: &[Piece], emit: &mut dyn FnMut(S)| match frames.forward {
        true => slide_forward(pieces, empty, &leaf, &merge, emit, &mut watch),
        false => pieces.iter().try_for_each(|(start, end)| {
            watch.work((end - start) as usize)?;
            emit((*start as usize..*end as usize).fold(empty, |state, row| merge(state, leaf(row))));
            Ok(())
        }),
    };
    if let [pieces] = &frames.pieces[..] {
        return piece(pieces, &mut emit);
    }
    let mut states = vec![empty; frames.rows()];
    for pieces in &frames.pieces {
        let mut into = states.iter_mut();
        piece(pieces, &mut |state| into.next().into_iter().for_each(|into| *into = merge(*into, state)))?;
    }
    states.into_iter().for_each(emit);
    Ok(())
}

/// Brings the state of each piece to `emit`. Rows from `split` on are in `running`; of those before, `older` has the states from each to
/// `split`, the nearest first.
fn slide_forward<S: Copy>(
    pieces: &[Piece],
    empty: S,
    leaf: &impl Fn(usize) -> S,
    merge: &impl Fn(S, S) -> S,
    emit: &mut dyn FnMut(S),
    watch: &mut Watch<'_>,
) -> Result<()> {
    let (mut split, mut behind) = (0, 0);
    let (mut older, mut running) = (Vec::new(), empty);
    for (start, end) in pieces.iter().map(|(start, end)| (*start as usize, *end as usize)) {
        watch.work(1)?;
        if start >= end {
            emit(empty);
            continue;
        }
        while behind < end {
            running = merge(running, leaf(behind));
            behind += 1;
        }
        if start > split {
            older.clear();
            let mut state = empty;
            for row in (start..behind).rev() {
                state = merge(leaf(row), state);
                older.push(state);
            }
            (split, running) = (behind, empty);
        }
        emit(if start < split { merge(older[split - 1 - start], running) } else { running });
    }
    Ok(())
}

/// A set of rows, in which a row may be several times.
pub(super) trait RowSet {
    /// Adds a row.
    fn add(&mut self, row: usize);
    /// Removes a row that was added.
    fn remove(&mut self, row: usize);
}

/// Brings a set to each frame's rows in turn, and calls `emit` with it.
///
/// # Errors
/// Cancellation, and what `emit` fails with.
pub(super) fn follow<S: RowSet>(
    frames: &Frames,
    set: &mut S,
    mut emit: impl FnMut(&S) -> Result<()>,
    cancel: &Cancel,
) -> Result<()> {
    let mut watch = Watch::new(cancel);
    let mut held = vec![(0, 0); frames.pieces.len()];
    for row in 0..frames.rows() {
        for ((from, to), (start, end)) in held.iter_mut().zip(frames.of(row)) {
            let apart = end <= *from || *to <= start;
            let kept = if apart { (start, start) } else { (start.max(*from), end.min(*to)) };
            // What is kept lies in both; what is left of the old piece goes, and the rest of the new one comes.
            let (left, right) = if apart { (*from..*to, 0..0) } else { (*from..kept.0, kept.1..*to) };
            let (new_left, new_right) = (start..kept.0, kept.1..end);
            watch.work(left.len() + right.len() + new_left.len() + new_right.len())?;
            new_left.chain(new_right).for_each(|row| set.add(row as usize));
            left.chain(right).for_each(|row| set.remove(row as usize));
            (*from, *to) = (start, end);
        }
        watch.work(1)?;
        emit(set)?;
    }
    Ok(())
}
