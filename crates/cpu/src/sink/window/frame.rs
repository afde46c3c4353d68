//! The frame of each row: runs of rows, of those that lie in order. What is excluded from a frame cuts it into pieces, of which each only
//! moves forward where the frame does.

use std::cmp::Ordering;

use tandem_pipeline::{FrameBound, FrameExclusion, FrameUnit, SlotId, SortKey, WindowFrame};

use super::marks::Marks;
use crate::{Values, Vector, sink::order::compare};

/// The rows of one piece of a frame: its first, and the one behind its last.
pub(super) type Piece = (u32, u32);

/// The frames of all rows.
pub(super) struct Frames {
    /// Pieces of each row's frame, in order; without exclusion there is one.
    pub(super) pieces: Vec<Vec<Piece>>,
    /// No end of a piece is before that of the row before.
    pub(super) forward: bool,
}

impl Frames {
    /// Returns the pieces of a row's frame.
    pub(super) fn of(&self, row: usize) -> impl Iterator<Item = Piece> + '_ {
        self.pieces.iter().map(move |pieces| pieces[row])
    }

    /// Returns how many rows have a frame.
    pub(super) fn rows(&self) -> usize {
        self.pieces.first().map_or(0, Vec::len)
    }

    /// Returns the frames of other places: each end becomes what it maps to.
    pub(super) fn map(&self, end: impl Fn(u32) -> u32) -> Frames {
        let map = |pieces: &Vec<Piece>| pieces.iter().map(|(from, to)| (end(*from), end(*to))).collect();
        Frames { pieces: self.pieces.iter().map(map).collect(), forward: self.forward }
    }
}

/// Returns each row's frame; `vector` gives the values of the order's first key, and of the slots that the frame names.
pub(super) fn frames<'v>(
    frame: &WindowFrame,
    marks: &Marks<'_>,
    order: &[SortKey],
    vector: &dyn Fn(SlotId) -> &'v Vector,
) -> Frames {
    let edges = Edges { unit: frame.unit, marks, key: order.first().map(|key| (key, vector(key.slot))) };
    let mut whole: Vec<Piece> = Vec::with_capacity(marks.rows());
    edges.find(frame.start, false, vector, |start| whole.push((start, start)));
    let mut row = 0;
    edges.find(frame.end, true, vector, |end| {
        // One that ends before it starts is empty.
        whole[row].1 = end.max(whole[row].0);
        row += 1;
    });
    let forward = whole.is_sorted_by(|before, next| before.0 <= next.0 && before.1 <= next.1);
    Frames { pieces: cut(whole, frame.exclusion, marks), forward }
}

/// Leaves out what is excluded.
fn cut(whole: Vec<Piece>, exclusion: FrameExclusion, marks: &Marks<'_>) -> Vec<Vec<Piece>> {
    if exclusion == FrameExclusion::NoOthers {
        return vec![whole];
    }
    let (mut before, mut within, mut behind) = (Vec::new(), Vec::new(), Vec::new());
    marks.peers(|_, peers, _| {
        for row in peers.clone() {
            let (start, end) = whole[row];
            let clamp = |row: usize| (row as u32).clamp(start, end);
            let left_out = if exclusion == FrameExclusion::CurrentRow { row..row + 1 } else { peers.clone() };
            before.push((start, clamp(left_out.start)));
            behind.push((clamp(left_out.end), end));
            if exclusion == FrameExclusion::Ties {
                within.push((clamp(row), clamp(row + 1)));
            }
        }
    });
    let pieces = [before, within, behind].into_iter();
    if exclusion == FrameExclusion::Ties {
        pieces.collect()
    } else {
        pieces.filter(|piece| !piece.is_empty()).collect()
    }
}

/// What ends of frames are found by.
struct Edges<'e> {
    unit: FrameUnit,
    marks: &'e Marks<'e>,
    /// The order's first key and its values.
    key: Option<(&'e SortKey, &'e Vector)>,
}

impl Edges<'_> {
    /// Gives `emit` one end of each row's frame: its first row, or the one behind its last.
    fn find<'v>(
        &self,
        bound: FrameBound,
        last: bool,
        vector: &dyn Fn(SlotId) -> &'v Vector,
        mut emit: impl FnMut(u32),
    ) {
        match (self.unit, bound, self.key) {
            (FrameUnit::Rows, FrameBound::At(distance), _) => {
                for partition in self.marks.partitions() {
                    let (first, end) = (partition.start as i128, partition.end as i128);
                    let moved = i128::from(distance) + i128::from(last);
                    partition.for_each(|row| emit((row as i128 + moved).clamp(first, end) as u32));
                }
            }
            (FrameUnit::Range, FrameBound::Value(slot), Some((key, values))) => {
                let wanted = vector(slot);
                self.search(last, &|place, row| compare::values(key, (values, place), (wanted, row)), emit);
            }
            (
                FrameUnit::Range,
                FrameBound::At(distance),
                Some((key, Vector { values: Values::Int(values), valid })),
            ) if distance != 0 => {
                let ascending = |value: i64| if key.descending { -i128::from(value) } else { value.into() };
                let is_valid = |row: usize| valid.as_ref().is_none_or(|valid| valid[row] != 0);
                let compare = |place: usize, row: usize| match (is_valid(place), is_valid(row)) {
                    (true, true) => ascending(values[place]).cmp(&(ascending(values[row]) + i128::from(distance))),
                    (false, false) => Ordering::Equal,
                    // Nulls are together, before or behind all values, and only they are in reach of each other.
                    (place_is_valid, _) if place_is_valid == key.nulls_first => Ordering::Greater,
                    _ => Ordering::Less,
                };
                self.search(last, &compare, emit);
            }
            (FrameUnit::Range | FrameUnit::Groups, FrameBound::At(distance), _) => {
                self.groups(distance, last, emit);
            }
            (_, FrameBound::Unbounded | FrameBound::Value(_), _) => {
                for partition in self.marks.partitions() {
                    let edge = if last { partition.end } else { partition.start } as u32;
                    partition.for_each(|_| emit(edge));
                }
            }
        }
    }

    /// Finds ends by comparing the row at a place with what a row's frame reaches to. Where that does not move back, neither does the
    /// search.
    fn search(&self, last: bool, compare: &dyn Fn(usize, usize) -> Ordering, mut emit: impl FnMut(u32)) {
        for partition in self.marks.partitions() {
            let mut place = partition.start;
            for row in partition.clone() {
                let before = |place: usize| match compare(place, row) {
                    Ordering::Less => true,
                    Ordering::Equal => last,
                    Ordering::Greater => false,
                };
                if place > partition.start && !before(place - 1) {
                    place = partition.start + partition_point(partition.start..place, &before);
                }
                while place < partition.end && before(place) {
                    place += 1;
                }
                emit(place as u32);
            }
        }
    }

    /// Finds ends by groups of peers.
    fn groups(&self, distance: i64, last: bool, mut emit: impl FnMut(u32)) {
        // The first rows of the groups of a partition, and the end of the last.
        let mut ends: Vec<usize> = Vec::new();
        let mut flush = |ends: &mut Vec<usize>| {
            let groups = ends.len().saturating_sub(1);
            for group in 0..groups {
                let found = group as i128 + i128::from(distance) + i128::from(last);
                let edge = ends[found.clamp(0, groups as i128) as usize] as u32;
                (ends[group]..ends[group + 1]).for_each(|_| emit(edge));
            }
            ends.clear();
        };
        self.marks.peers(|_, peers, group| {
            if group == 0 {
                flush(&mut ends);
                ends.push(peers.start);
            }
            ends.push(peers.end);
        });
        flush(&mut ends);
    }
}

/// Returns how many of some places come before all others, where those do that satisfy a condition.
fn partition_point(places: std::ops::Range<usize>, before: &dyn Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, places.len());
    while low < high {
        let middle = (low + high) / 2;
        if before(places.start + middle) { low = middle + 1 } else { high = middle }
    }
    low
}
