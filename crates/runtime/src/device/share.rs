//! One job on several devices: each computes a contiguous share of the parts and contributes what it comes to.
//!
//! Which part goes where depends on the table and the pipeline only, so that a column is copied to one device and found
//! there by the next query. If any device fails, the CPU computes the whole job.

use std::{panic::resume_unwind, sync::Arc, thread};

use tandem_column::Result;
use tandem_cpu::{Contribution, Job};

use super::{Accelerator, DeviceMetrics, DeviceSink};

/// What one device is to compute of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    /// Every part, and then the unmatched build rows that joins emit at the end.
    Whole,
    /// These parts, while others compute the rest.
    Parts(Vec<usize>),
    /// The unmatched build rows, once every part is done.
    Unmatched,
}

/// Runs a job, which is pipeline `id` of its query, on devices (at least one) that have not failed yet.
///
/// # Errors
/// As [`Accelerator::run`].
pub(crate) fn share(
    devices: &[Arc<Accelerator>],
    id: usize,
    job: &Job,
    sink: &DeviceSink,
) -> Result<(Vec<Contribution>, DeviceMetrics)> {
    let mut working: Vec<&Arc<Accelerator>> = devices.iter().filter(|accelerator| !accelerator.is_lost()).collect();
    if working.is_empty() {
        // It says that it failed.
        working = vec![&devices[0]];
    }
    if sink.is_indivisible() {
        working = vec![working[id % working.len()]];
    }
    let shares =
        working.iter().copied().zip(divide(&job.physical().parts(), job.table().parts.len(), working.len(), id));
    let mut shares: Vec<(&Arc<Accelerator>, Vec<usize>)> = shares.filter(|(_, parts)| !parts.is_empty()).collect();
    let (here, parts) = shares.pop().unwrap_or((working[0], Vec::new()));
    let shared = !shares.is_empty();
    let last = if shared { Share::Parts(parts) } else { Share::Whole };
    let mut ran = thread::scope(|scope| {
        let threads: Vec<_> = shares
            .into_iter()
            .map(|(device, parts)| scope.spawn(move || device.run(job, sink, Share::Parts(parts))))
            .collect();
        let last = here.run(job, sink, last);
        let others = threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        others.chain([last]).collect::<Result<Vec<_>>>()
    })?;
    // Which build rows have met no row is known only now.
    if shared && job.physical().body.emits_build_rows() {
        let (contribution, mut more) = here.run(job, sink, Share::Unmatched)?;
        // It is named already.
        more.names.clear();
        ran.push((contribution, more));
    }
    let mut metrics = DeviceMetrics::default();
    let contributions = ran.into_iter().map(|(contribution, more)| {
        metrics.add(more);
        contribution
    });
    Ok((contributions.collect(), metrics))
}

/// Divides parts, out of `count` that a table has, into a share for each of `devices` devices: contiguous runs of the table's
/// parts, or, for a table of too few parts, all of them to the device whose turn it is.
fn divide(parts: &[usize], count: usize, devices: usize, turn: usize) -> Vec<Vec<usize>> {
    let mut shares = vec![Vec::new(); devices];
    for &part in parts {
        let device = if count < devices { turn % devices } else { part * devices / count };
        shares[device].push(part);
    }
    shares
}

impl DeviceMetrics {
    /// Adds what another device did.
    pub(super) fn add(&mut self, other: DeviceMetrics) {
        self.names.extend(other.names);
        self.launches += other.launches;
        self.bytes_to += other.bytes_to;
        self.bytes_shared += other.bytes_shared;
        self.bytes_back += other.bytes_back;
        self.programs.extend(other.programs);
        self.remarks.extend(other.remarks);
        self.kernels += other.kernels;
        self.copies += other.copies;
        self.overlapped += other.overlapped;
        self.traffic.extend(other.traffic);
        for text in other.texts {
            if !self.texts.contains(&text) {
                self.texts.push(text);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::divide;

    #[test]
    fn shares_are_contiguous_and_stay_where_they_are() {
        assert_eq!(divide(&[0, 1, 2, 3, 4], 5, 2, 0), [vec![0, 1, 2], vec![3, 4]]);
        // Parts that statistics exclude do not move the others.
        assert_eq!(divide(&[2, 4], 5, 2, 7), [vec![2], vec![4]]);
        assert_eq!(divide(&[0, 1, 2], 3, 3, 1), [vec![0], vec![1], vec![2]]);
    }

    #[test]
    fn small_tables_go_to_devices_in_turn() {
        assert_eq!(divide(&[0], 1, 2, 0), [vec![0], vec![]]);
        assert_eq!(divide(&[0], 1, 2, 1), [vec![], vec![0]]);
        assert_eq!(divide(&[0, 1], 2, 3, 2), [vec![], vec![], vec![0, 1]]);
        assert!(divide(&[], 0, 2, 1).iter().all(Vec::is_empty));
    }
}
