//! Programs, kernels, order and events.

use std::{slice, thread};

use tandem_column::{Buffer, Class};

use super::{Check, SOURCE};
use crate::{Argument, Kernel, Memory, Shape, Times};

const ONE: Shape = Shape { groups: 1, items: 1 };

fn to_bytes(values: impl IntoIterator<Item = u32>) -> Buffer<u8> {
    values.into_iter().flat_map(u32::to_ne_bytes).collect()
}

fn read_u32(check: &mut Check, memory: &Memory) -> Vec<u32> {
    let mut bytes = vec![0; memory.len()];
    check.queue.read(memory, 0, &mut bytes, &[]).expect("memory can be read");
    bytes.chunks_exact(4).map(|value| u32::from_ne_bytes([value[0], value[1], value[2], value[3]])).collect()
}

fn ordered(times: Times) -> bool {
    times.queued <= times.submitted && times.submitted <= times.started && times.started <= times.ended
}

impl Check {
    fn kernel(&self, name: &str) -> Kernel {
        self.program.kernel(name).expect("there is such a kernel")
    }

    /// Allocates numbers, all of one value.
    fn numbers(&mut self, count: usize, value: u32) -> Memory {
        let memory = self.device.allocate(count * 4).expect("a small allocation fits");
        self.queue.write(&memory, 0, to_bytes((0..count).map(|_| value)), &[]).expect("memory can be written");
        memory
    }

    pub(super) fn reports_compile_errors(&mut self) {
        let text = SOURCE.replace("ATOMIC_ADD(sum, mine)", "no_such_function_42(sum, mine)");
        let error = self.device.compile(&text, "").expect_err("the text is wrong");
        assert_eq!(error.class, Class::Device, "{error}");
        assert!(error.message.contains("no_such_function_42"), "the log is in the message: {error}");
        assert!(self.device.compile("this is not a program", "").is_err());
        let error = self.program.kernel("no_such_kernel").expect_err("there is no such kernel");
        assert_eq!(error.class, Class::Internal, "{error}");
        assert!(error.message.contains("no_such_kernel"), "{error}");
    }

    pub(super) fn passes_all_arguments(&mut self) {
        let kernel = self.kernel("all_arguments");
        let items = self.device.info().group_items.min(8);
        let shape = Shape { groups: 3, items };
        let out = self.device.allocate(shape.groups * items * 8).expect("a small allocation fits");
        let arguments = [
            Argument::Memory(&out),
            Argument::Null,
            Argument::I32(-7),
            Argument::U32(u32::MAX),
            Argument::I64(i64::MIN + 1),
            Argument::U64(1 << 63),
            Argument::Local(items * 4),
        ];
        self.queue.launch(&kernel, &arguments, shape, &[]).expect("the kernel runs");
        let mut bytes = vec![0; out.len()];
        self.queue.read(&out, 0, &mut bytes, &[]).expect("memory can be read");
        let scalars = (-7i64).wrapping_add(i64::MIN + 1) as u64;
        let scalars = scalars.wrapping_add(u64::from(u32::MAX)).wrapping_add(1 << 63).wrapping_add(1000);
        for (index, value) in bytes.chunks_exact(8).enumerate() {
            let next = ((index % items + 1) % items) as u64;
            assert_eq!(value, scalars.wrapping_add(next).to_ne_bytes(), "place {index}");
        }
        // Nothing to do, and a group that is too large.
        let none = Shape { groups: 0, items };
        let event = self.queue.launch(&kernel, &arguments, none, &[]).expect("no groups are fine");
        event.wait().expect("nothing is soon done");
        let large = Shape { groups: 1, items: self.device.info().group_items + 1 };
        let error = self.queue.launch(&kernel, &arguments, large, &[]).expect_err("the group is too large");
        assert_eq!(error.class, Class::Internal, "{error}");
    }

    pub(super) fn has_local_memory(&mut self) {
        let kernel = self.kernel("reverse_groups");
        let items = self.device.info().group_items.min(64);
        let shape = Shape { groups: 10, items };
        let count = (shape.groups * items) as u32;
        let (input, output) = (self.numbers(count as usize, 0), self.numbers(count as usize, 0));
        self.queue.write(&input, 0, to_bytes(0..count), &[]).expect("memory can be written");
        let arguments = [Argument::Memory(&input), Argument::Memory(&output), Argument::Local(items * 4)];
        self.queue.launch(&kernel, &arguments, shape, &[]).expect("the kernel runs");
        let items = items as u32;
        let expected: Vec<u32> = (0..count).map(|i| i / items * items + items - 1 - i % items).collect();
        assert_eq!(read_u32(self, &output), expected);
    }

    pub(super) fn runs_in_order(&mut self) {
        let kernel = self.kernel("multiply_add");
        let memory = self.numbers(10_000, 1);
        let mut expected = 1u32;
        for step in 0..50u32 {
            let (factor, term) = if step % 2 == 0 { (3, step) } else { (1, 7) };
            let arguments =
                [Argument::Memory(&memory), Argument::U32(10_000), Argument::U32(factor), Argument::U32(term)];
            self.queue.launch(&kernel, &arguments, Shape { groups: 4, items: 2 }, &[]).expect("the kernel runs");
            expected = expected.wrapping_mul(factor).wrapping_add(term);
            if step == 20 {
                self.queue.fill(&memory, 0, 40_000, 1, &[]).expect("memory can be filled");
                expected = 0x0101_0101;
            }
        }
        self.queue.finish().expect("commands end");
        assert!(read_u32(self, &memory).iter().all(|value| *value == expected));
    }

    pub(super) fn orders_events(&mut self) {
        let kernel = self.kernel("multiply_add");
        let memory = self.numbers(1000, 1);
        let arguments = [Argument::Memory(&memory), Argument::U32(1000), Argument::U32(2), Argument::U32(1)];
        let mut last = 0;
        for round in 0..20 {
            let event = match round % 3 {
                0 => self.queue.launch(&kernel, &arguments, ONE, &[]),
                1 => self.queue.fill(&memory, 0, 4000, 3, &[]),
                _ => self.queue.write(&memory, 0, to_bytes(0..1000), &[]),
            };
            let event = event.expect("the command runs");
            event.wait().expect("the command ends");
            event.wait().expect("an event can be waited for twice");
            let times = event.times().expect("a command that ended has times");
            assert!(ordered(times), "{times:?}");
            assert!(times.started >= last, "commands of a queue start in order: {times:?}, {last}");
            last = times.started;
        }
    }

    pub(super) fn waits_across_queues(&mut self) {
        let kernel = self.kernel("multiply_add");
        let mut compute = self.device.queue().expect("a device has several queues");
        let count = 100_000;
        let (first, second) = (self.numbers(count, 0), self.numbers(count, 0));
        self.queue.finish().expect("commands end");
        let mut free = [None, None];
        for round in 0..20u32 {
            // Copies go by one queue, kernels by the other; two memories take turns.
            let slot = (round % 2) as usize;
            let memory = if slot == 0 { &first } else { &second };
            let after: Vec<_> = free[slot].take().into_iter().collect();
            let source = to_bytes((0..count as u32).map(|i| i + round));
            let copied = self.queue.write(memory, 0, source, &after).expect("memory can be written");
            let arguments =
                [Argument::Memory(memory), Argument::U32(count as u32), Argument::U32(5), Argument::U32(round)];
            let shape = Shape { groups: 2, items: 1 };
            let ran = compute.launch(&kernel, &arguments, shape, slice::from_ref(&copied)).expect("the kernel runs");
            ran.wait().expect("the kernel ends");
            let (copied, times) = (copied.times().expect("it ended"), ran.times().expect("it ended"));
            assert!(times.started >= copied.ended, "a command starts after what it waits for: {copied:?}, {times:?}");
            free[slot] = Some(ran);
            if round >= 18 {
                let expected: Vec<u32> = (0..count as u32).map(|i| (i + round) * 5 + round).collect();
                assert!(read_u32(self, memory) == expected, "round {round}");
            }
        }
        compute.finish().expect("commands end");
    }

    pub(super) fn round_trips_binaries(&mut self) {
        let binary = self.program.binary().expect("a device gives binaries");
        assert!(!binary.is_empty());
        let kernel = self.device.load(&binary, "").expect("its own binary fits").kernel("multiply_add");
        let memory = self.numbers(10, 4);
        let arguments = [Argument::Memory(&memory), Argument::U32(10), Argument::U32(10), Argument::U32(2)];
        self.queue.launch(&kernel.expect("the kernel is in it"), &arguments, ONE, &[]).expect("the kernel runs");
        assert_eq!(read_u32(self, &memory), [42; 10]);
        let error = self.device.load(b"this is not a program", "").expect_err("it is no binary");
        assert_eq!(error.class, Class::Unsupported, "{error}");
    }

    pub(super) fn holds_two_programs(&mut self) {
        let text = SOURCE.replace("values[i] * factor + term", "values[i] * factor - term");
        let other = self.device.compile(&text, "-DUNUSED=1").expect("the text is right");
        let kernels = [self.kernel("multiply_add"), other.kernel("multiply_add").expect("there is such a kernel")];
        drop(other);
        let memory = self.numbers(100, 10);
        let arguments = [Argument::Memory(&memory), Argument::U32(100), Argument::U32(2), Argument::U32(5)];
        for kernel in &kernels {
            self.queue.launch(kernel, &arguments, ONE, &[]).expect("the kernel runs");
        }
        assert_eq!(read_u32(self, &memory), [45; 100], "plus in one, minus in the other");
    }

    pub(super) fn launches_often(&mut self) {
        let kernel = self.kernel("multiply_add");
        let memory = self.numbers(16, 0);
        let arguments = [Argument::Memory(&memory), Argument::U32(16), Argument::U32(1), Argument::U32(1)];
        for _ in 0..1000 {
            self.queue.launch(&kernel, &arguments, ONE, &[]).expect("the kernel runs");
        }
        assert_eq!(read_u32(self, &memory), [1000; 16]);
    }

    pub(super) fn is_shared_by_threads(&mut self) {
        let kernel = self.kernel("multiply_add");
        thread::scope(|scope| {
            for number in 1..=4u32 {
                let (device, kernel) = (&self.device, &kernel);
                scope.spawn(move || {
                    let mut queue = device.queue().expect("a device has several queues");
                    let memory = device.allocate(4000).expect("a small allocation fits");
                    queue.write(&memory, 0, to_bytes((0..1000).map(|_| 0)), &[]).expect("memory can be written");
                    // One kernel, different arguments in each thread.
                    let arguments =
                        [Argument::Memory(&memory), Argument::U32(1000), Argument::U32(1), Argument::U32(number)];
                    for _ in 0..50 {
                        queue.launch(kernel, &arguments, ONE, &[]).expect("the kernel runs");
                    }
                    let mut bytes = vec![0; 4000];
                    queue.read(&memory, 0, &mut bytes, &[]).expect("memory can be read");
                    assert!(bytes.chunks_exact(4).all(|value| value == (50 * number).to_ne_bytes()));
                });
            }
        });
    }
}
