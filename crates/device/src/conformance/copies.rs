//! Memory: copies, fills, sharing, limits.

use tandem_column::{Buffer, Class};

use super::Check;
use crate::{Argument, Memory, Shape};

/// Makes bytes that differ from their neighbours and repeat late.
fn pattern(length: usize, seed: usize) -> Vec<u8> {
    (0..length).map(|i| (i.wrapping_mul(31).wrapping_add(i >> 8).wrapping_add(seed)) as u8).collect()
}

impl Check {
    fn allocate(&self, bytes: usize) -> Memory {
        self.device.allocate(bytes).expect("a small allocation fits")
    }

    fn read_all(&mut self, memory: &Memory) -> Vec<u8> {
        let mut bytes = vec![0xEE; memory.len()];
        self.queue.read(memory, 0, &mut bytes, &[]).expect("memory can be read");
        bytes
    }

    pub(super) fn copies_round_trip(&mut self) {
        for length in [1, 7, 64, 4095, 4096, 4097, 1_000_003] {
            let memory = self.allocate(length);
            assert_eq!((memory.len(), memory.is_empty(), memory.is_shared()), (length, false, false));
            let bytes = pattern(length, length);
            // The queue keeps the only handle to the source.
            let event = self.queue.write(&memory, 0, Buffer::from(bytes.clone()), &[]).expect("memory can be written");
            assert_eq!(self.read_all(&memory), bytes);
            event.wait().expect("the copy is done");
        }
    }

    pub(super) fn copies_at_offsets(&mut self) {
        let memory = self.allocate(10_000);
        let mut expected = pattern(10_000, 1);
        self.queue.write(&memory, 0, Buffer::from(expected.clone()), &[]).expect("memory can be written");
        for (at, length) in [(0, 3), (5, 1), (4093, 10), (9_999, 1), (7, 5000)] {
            let part = pattern(length, at);
            expected[at..at + length].copy_from_slice(&part);
            self.queue.write(&memory, at, Buffer::from(part), &[]).expect("memory can be written");
        }
        assert_eq!(self.read_all(&memory), expected);
        let mut part = [0; 100];
        self.queue.read(&memory, 4090, &mut part, &[]).expect("memory can be read");
        assert_eq!(part, expected[4090..4190]);
    }

    pub(super) fn copies_nothing(&mut self) {
        let empty = self.allocate(0);
        assert!(empty.is_empty());
        let memory = self.allocate(16);
        for (memory, at) in [(&empty, 0), (&memory, 0), (&memory, 16)] {
            let written = self.queue.write(memory, at, Buffer::default(), &[]).expect("nothing can be written");
            let filled = self.queue.fill(memory, at, 0, 1, &[written]).expect("nothing can be filled");
            let read = self.queue.read(memory, at, &mut [], &[filled]).expect("nothing can be read");
            read.wait().expect("nothing is soon done");
        }
    }

    pub(super) fn copies_much(&mut self) {
        let length = (64 << 20).min(self.device.info().largest_allocation);
        let memory = self.allocate(length);
        assert!(self.device.used() >= length);
        let bytes = Buffer::from(pattern(length, 5));
        self.queue.write(&memory, 0, bytes.clone(), &[]).expect("memory can be written");
        assert!(self.read_all(&memory) == bytes.as_slice(), "a large copy round-trips");
    }

    pub(super) fn fills(&mut self) {
        let memory = self.allocate(10_000);
        self.queue.fill(&memory, 0, 10_000, 0xAB, &[]).expect("memory can be filled");
        self.queue.fill(&memory, 3, 4097, 0, &[]).expect("memory can be filled");
        let mut expected = vec![0xAB; 10_000];
        expected[3..4100].fill(0);
        assert_eq!(self.read_all(&memory), expected);
    }

    pub(super) fn refuses_what_does_not_fit(&mut self) {
        let memory = self.allocate(100);
        let errors = [
            self.queue.write(&memory, 99, Buffer::from(vec![1, 2]), &[]).expect_err("it leaves the memory"),
            self.queue.read(&memory, usize::MAX, &mut [0], &[]).expect_err("it leaves the memory"),
            self.queue.fill(&memory, 0, 101, 0, &[]).expect_err("it leaves the memory"),
        ];
        for error in errors {
            assert_eq!(error.class, Class::Internal, "{error}");
        }
    }

    pub(super) fn shares(&mut self) {
        for length in [0, 1, 4096, 100_001] {
            let bytes = pattern(length, 9);
            let used = self.device.used();
            let buffer = Buffer::from(bytes.clone());
            let memory = match self.device.share(&buffer) {
                Ok(memory) => memory,
                Err(error) => {
                    assert!(!self.device.info().shared_memory, "{error}");
                    assert_eq!(error.class, Class::Unsupported, "{error}");
                    return;
                }
            };
            assert!(self.device.info().shared_memory && memory.is_shared() && memory.len() == length);
            assert_eq!(self.device.used(), used, "shared memory takes none of the device's");
            let twice = self.device.share(&buffer).expect("a buffer can be shared twice");
            drop(buffer);
            assert_eq!(self.read_all(&memory), bytes);
            let sum = self.sum(memory);
            assert_eq!(sum, bytes.iter().map(|byte| u32::from(*byte)).sum::<u32>());
            if length > 0 {
                let error = self.queue.fill(&twice, 0, 1, 0, &[]).expect_err("shared memory is read-only");
                assert_eq!(error.class, Class::Internal, "{error}");
            }
        }
    }

    /// Sums memory by a kernel and lets it go before the kernel is done.
    fn sum(&mut self, memory: Memory) -> u32 {
        let kernel = self.program.kernel("sum_bytes").expect("there is such a kernel");
        let total = self.allocate(4);
        self.queue.fill(&total, 0, 4, 0, &[]).expect("memory can be filled");
        let count = memory.len() as u64;
        let arguments = [Argument::Memory(&memory), Argument::U64(count), Argument::Memory(&total)];
        self.queue.launch(&kernel, &arguments, Shape { groups: 4, items: 1 }, &[]).expect("the kernel runs");
        drop(memory);
        let mut sum = [0; 4];
        self.queue.read(&total, 0, &mut sum, &[]).expect("memory can be read");
        u32::from_ne_bytes(sum)
    }

    pub(super) fn is_exhausted_and_recovers(&mut self) {
        let info = self.device.info().clone();
        let error = self.device.allocate(info.memory + 1).expect_err("more than all does not fit");
        assert_eq!(error.class, Class::Exhausted, "{error}");
        assert!(error.message.contains(&(info.memory + 1).to_string()), "{error}");
        let error = self.device.allocate(usize::MAX).expect_err("more than all does not fit");
        assert_eq!(error.class, Class::Exhausted, "{error}");
        // Pieces until it is full. They are not touched, so a CPU device needs no memory for them.
        let used = self.device.used();
        let mut pieces = Vec::new();
        let error = loop {
            match self.device.allocate(info.largest_allocation) {
                Ok(piece) => pieces.push(piece),
                Err(error) => break error,
            }
            assert!(pieces.len() * info.largest_allocation <= info.memory, "a device does not give more than it has");
        };
        assert_eq!(error.class, Class::Exhausted, "{error}");
        assert!(error.message.contains(&info.largest_allocation.to_string()), "{error}");
        drop(pieces);
        assert_eq!(self.device.used(), used, "dropped memory is free again");
        self.fills();
    }
}
