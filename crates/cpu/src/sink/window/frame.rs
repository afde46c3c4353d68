//! The frame of each row: from one row to another, of those that lie in order. Both ends only move forward within a partition.

use std::ops::Range;

use tandem_pipeline::{FrameUnit, WindowFrame};

use super::marks::Marks;
use crate::{Values, Vector};

/// Returns the first row of each row's frame, and the one behind its last; `key` is the order's first, and whether it descends.
pub(super) fn frames(frame: &WindowFrame, marks: &Marks<'_>, key: Option<(&Vector, bool)>) -> Vec<(u32, u32)> {
    let mut frames = Vec::with_capacity(marks.rows());
    match frame.unit {
        FrameUnit::Rows => marks.partitions().for_each(|partition| by_rows(frame, partition, &mut frames)),
        FrameUnit::Range => match key {
            Some((Vector { values: Values::Int(values), valid }, descending)) if is_measured(frame) => {
                let distance = |row: usize| if descending { -i128::from(values[row]) } else { values[row].into() };
                let valid = |row: &usize| valid.as_ref().is_none_or(|valid| valid[*row] != 0);
                for partition in marks.partitions() {
                    by_distance(frame, partition, &distance, &valid, &mut frames);
                }
            }
            _ => by_groups(frame, marks, &mut frames),
        },
        FrameUnit::Groups => by_groups(frame, marks, &mut frames),
    }
    frames
}

/// Tells whether a frame's ends are further than peers.
fn is_measured(frame: &WindowFrame) -> bool {
    [frame.start, frame.end].into_iter().flatten().any(|bound| bound != 0)
}

/// Adds a frame; one that ends before it starts is empty.
fn add(frames: &mut Vec<(u32, u32)>, start: usize, end: usize) {
    frames.push((start as u32, end.max(start) as u32));
}

fn by_rows(frame: &WindowFrame, partition: Range<usize>, frames: &mut Vec<(u32, u32)>) {
    let within = |row: usize, bound: i64, more: i128| {
        (row as i128 + i128::from(bound) + more).clamp(partition.start as i128, partition.end as i128) as usize
    };
    for row in partition.clone() {
        let start = frame.start.map_or(partition.start, |start| within(row, start, 0));
        let end = frame.end.map_or(partition.end, |end| within(row, end, 1));
        add(frames, start, end);
    }
}

fn by_groups(frame: &WindowFrame, marks: &Marks<'_>, frames: &mut Vec<(u32, u32)>) {
    // The first rows of the groups of a partition, and the end of the last.
    let mut ends: Vec<usize> = Vec::new();
    let mut flush = |ends: &mut Vec<usize>| {
        let groups = ends.len().saturating_sub(1);
        let at = |group: usize, bound: i64, more: i128| {
            ends[(group as i128 + i128::from(bound) + more).clamp(0, groups as i128) as usize]
        };
        for group in 0..groups {
            let start = frame.start.map_or(ends[0], |start| at(group, start, 0));
            let end = frame.end.map_or(ends[groups], |end| at(group, end, 1));
            (ends[group]..ends[group + 1]).for_each(|_| add(frames, start, end));
        }
        ends.clear();
    };
    marks.peers(|_, peers, group| {
        if group == 0 {
            flush(&mut ends);
            ends.push(peers.start);
        }
        ends.push(peers.end);
    });
    flush(&mut ends);
}

fn by_distance(
    frame: &WindowFrame,
    partition: Range<usize>,
    distance: &dyn Fn(usize) -> i128,
    valid: &dyn Fn(&usize) -> bool,
    frames: &mut Vec<(u32, u32)>,
) {
    // Nulls are together, before or behind all values, and only they are in reach of each other.
    let first = partition.clone().find(valid).unwrap_or(partition.end);
    let behind = partition.clone().rev().find(valid).map_or(first, |last| last + 1);
    let nulls = |rows: Range<usize>, frames: &mut Vec<(u32, u32)>| {
        let start = if frame.start.is_none() { partition.start } else { rows.start };
        let end = if frame.end.is_none() { partition.end } else { rows.end };
        rows.for_each(|_| add(frames, start, end));
    };
    nulls(partition.start..first, frames);
    let (mut start, mut end) = (first, first);
    for row in first..behind {
        if let Some(bound) = frame.start {
            let least = distance(row) + i128::from(bound);
            while start < behind && distance(start) < least {
                start += 1;
            }
        }
        if let Some(bound) = frame.end {
            let most = distance(row) + i128::from(bound);
            while end < behind && distance(end) <= most {
                end += 1;
            }
        }
        let start = if frame.start.is_none() { partition.start } else { start };
        add(frames, start, if frame.end.is_none() { partition.end } else { end });
    }
    nulls(behind..partition.end, frames);
}
