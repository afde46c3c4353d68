//! Waiting for a kernel that takes too long.

use std::thread;
use std::time::{Duration, Instant};

use tandem_column::{Buffer, Class};

use super::Check;
use crate::{Argument, Backend, Event, Memory, Patience, Queue, Shape};

/// How long the kernel takes, as a multiple of the patience.
const TIMES: u64 = 20;
/// The patience: 100 ms, more than a loaded machine takes to run a thread.
const LIMIT: Duration = Duration::from_millis(100);
/// Within this time a kernel of two seconds ends on any machine.
const LONG: Duration = Duration::from_secs(120);

impl Check {
    /// Whoever gives up gets an error, drops all, and the device keeps what it uses until it is done.
    pub(super) fn gives_up_waiting(&mut self) {
        // Commands of the shim are over when their calls return; a simulated device's are another one's.
        if matches!(self.device.info().backend, Backend::Shim | Backend::Sim) {
            return;
        }
        let rounds = self.rounds(LIMIT) * TIMES;
        let before = self.device.used();
        let stopped = Patience::default();
        stopped.cancel.cancel();
        let mut cancelled = self.queue_with(stopped);
        let used = self.churn(&mut cancelled, rounds);
        assert!(cancelled.finish().expect_err("it is cancelled").is_cancelled());
        drop((used, cancelled));
        assert!(self.device.used() > before, "the kernel runs, and nobody waited for it");

        let mut hasty = self.queue_with(Patience { limit: LIMIT, ..Patience::default() });
        let (bytes, out, event) = self.churn(&mut hasty, rounds);
        let error = hasty.read(&out, 0, &mut [0; 4], &[]).expect_err("it takes longer than that");
        assert_eq!(error.class, Class::Device, "{error}");
        assert!(error.message.contains("did not answer within 0.1 s"), "{error}");
        drop((bytes, out, event, hasty));
        assert!(self.device.used() > before, "memory is the kernel's while it runs");

        let began = Instant::now();
        while self.device.used() > before && began.elapsed() < LONG {
            thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(self.device.used(), before, "all memory is given back when the kernel has ended");
        self.fills();
    }

    fn queue_with(&self, patience: Patience) -> Queue {
        self.device.queue().expect("a device has several queues").with_patience(patience)
    }

    /// Starts a kernel of so many rounds; returns what it uses, host memory if it can.
    fn churn(&mut self, queue: &mut Queue, rounds: u64) -> (Memory, Memory, Event) {
        let kernel = self.program.kernel("churn").expect("there is such a kernel");
        let host = Buffer::from((0..4096).map(|i| i as u8).collect::<Vec<u8>>());
        let bytes = self.device.share(&host).unwrap_or_else(|_| {
            let bytes = self.device.allocate(4096).expect("a small allocation fits");
            queue.write(&bytes, 0, host, &[]).expect("memory can be written");
            bytes
        });
        let out = self.device.allocate(4).expect("a small allocation fits");
        let arguments = [Argument::Memory(&bytes), Argument::U64(rounds), Argument::Memory(&out)];
        let shape = Shape { groups: 1, items: 1 };
        let event = queue.launch(&kernel, &arguments, shape, &[]).expect("the kernel runs");
        (bytes, out, event)
    }

    /// Finds how many rounds take so long on the device.
    fn rounds(&mut self, time: Duration) -> u64 {
        let mut queue = self.queue_with(Patience::default());
        let mut rounds = 1 << 16;
        loop {
            let (_, _, event) = self.churn(&mut queue, rounds);
            queue.finish().expect("it ends");
            if event.times().expect("it ended").duration() >= time.as_nanos() as u64 {
                return rounds;
            }
            rounds *= 2;
        }
    }
}
