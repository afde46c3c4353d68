//! A device that fails on purpose, for tests of what runs on devices.
//!
//! [`Faulty`] wraps a device and counts its operations; a [`Fault`] names the one to fail, or the number after which the
//! device is lost. Errors have the class that the real thing would have.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tandem_column::{Buffer, Class, Error, Result};

use crate::object::EventPart;
use crate::patience::pause;
use crate::queue::{Landing, QueuePart};
use crate::{Argument, Device, Event, Info, Kernel, Memory, Program, Queue, Shape, Times};

/// An operation that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// [`Device::allocate`]; fails as exhausted.
    Allocate,
    /// [`Device::share`]; fails as unsupported.
    Share,
    /// [`Device::compile`]; fails as the device.
    Compile,
    /// [`Device::load`]; fails as unsupported.
    Load,
    /// [`Queue::write`]; fails as the device.
    Write,
    /// [`Queue::read`]; fails as the device.
    Read,
    /// [`Queue::fill`]; fails as the device.
    Fill,
    /// [`Queue::launch`]; fails as the device.
    Launch,
}

impl Operation {
    const COUNT: usize = Operation::Launch as usize + 1;

    fn error(self) -> Error {
        let class = match self {
            Operation::Allocate => Class::Exhausted,
            Operation::Share | Operation::Load => Class::Unsupported,
            Operation::Compile | Operation::Write | Operation::Read | Operation::Fill | Operation::Launch => {
                Class::Device
            }
        };
        Error::new(class, format!("an operation failed because a test asked for it: {self:?}"))
    }
}

/// What goes wrong, and when. Operations count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The n-th operation of a kind fails; those after it work.
    At(Operation, usize),
    /// All operations of a kind from the n-th on fail.
    From(Operation, usize),
    /// The n-th operation of a kind, one of a queue, never ends, nor does what waits for it.
    Hang(Operation, usize),
    /// After so many operations of any kind the device is lost: every operation, wait and queue fails.
    LostAfter(usize),
}

/// A device that fails on purpose.
#[derive(Debug)]
pub struct Faulty {
    inner: Arc<dyn Device>,
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    faults: Mutex<Vec<Fault>>,
    counts: Mutex<[usize; Operation::COUNT]>,
}

impl Faulty {
    /// Wraps a device.
    pub fn new(inner: &Arc<dyn Device>, faults: &[Fault]) -> Faulty {
        let state = State { faults: Mutex::new(faults.to_vec()), counts: Mutex::default() };
        Faulty { inner: inner.clone(), state: Arc::new(state) }
    }

    /// Adds a fault; its count includes the operations so far.
    pub fn inject(&self, fault: Fault) {
        self.state.faults.lock().push(fault);
    }

    /// Returns how many operations of a kind were asked for.
    pub fn count(&self, operation: Operation) -> usize {
        self.state.counts.lock()[operation as usize]
    }

    /// Returns how many operations were asked for.
    pub fn operations(&self) -> usize {
        self.state.counts.lock().iter().sum()
    }
}

impl State {
    /// Counts an operation; fails it if a fault says so, and tells whether one makes it hang.
    fn begin(&self, operation: Operation) -> Result<bool> {
        let mut counts = self.counts.lock();
        counts[operation as usize] += 1;
        let (count, total) = (counts[operation as usize], counts.iter().sum::<usize>());
        let mut hangs = false;
        for fault in &*self.faults.lock() {
            match *fault {
                Fault::Hang(of, at) if of == operation && at == count => hangs = true,
                Fault::At(of, at) if of == operation && at == count => return Err(operation.error()),
                Fault::From(of, from) if of == operation && count >= from => return Err(operation.error()),
                Fault::LostAfter(after) if total > after => return Err(lost()),
                _ => {}
            }
        }
        Ok(hangs)
    }

    /// Fails if the device is lost.
    fn check(&self) -> Result<()> {
        let total: usize = self.counts.lock().iter().sum();
        let gone = |fault: &Fault| matches!(*fault, Fault::LostAfter(after) if total > after);
        if self.faults.lock().iter().any(gone) { Err(lost()) } else { Ok(()) }
    }
}

fn lost() -> Error {
    Error::new(Class::Device, "the device was lost because a test asked for it")
}

impl Device for Faulty {
    fn info(&self) -> &Info {
        self.inner.info()
    }

    fn allocate(&self, bytes: usize) -> Result<Memory> {
        self.state.begin(Operation::Allocate)?;
        self.inner.allocate(bytes)
    }

    fn share(&self, bytes: &Buffer<u8>) -> Result<Memory> {
        self.state.begin(Operation::Share)?;
        self.inner.share(bytes)
    }

    fn compile(&self, source: &str, options: &str) -> Result<Program> {
        self.state.begin(Operation::Compile)?;
        self.inner.compile(source, options)
    }

    fn load(&self, binary: &[u8], options: &str) -> Result<Program> {
        self.state.begin(Operation::Load)?;
        self.inner.load(binary, options)
    }

    fn queue(&self) -> Result<Queue> {
        self.state.check()?;
        Ok(Queue::new(FaultyQueue { inner: self.inner.queue()?, state: self.state.clone(), hangs: false }))
    }

    fn used(&self) -> usize {
        self.inner.used()
    }
}

#[derive(Debug)]
struct FaultyQueue {
    inner: Queue,
    state: Arc<State>,
    /// A command of it never ends.
    hangs: bool,
}

#[derive(Debug)]
struct FaultyEvent {
    /// None for a command that never ends; the device does not even get it.
    inner: Option<Event>,
    state: Arc<State>,
}

impl EventPart for FaultyEvent {
    fn poll(&self) -> Result<bool> {
        self.state.check()?;
        self.inner.as_ref().map_or(Ok(false), Event::ended)
    }

    fn times(&self) -> Option<Times> {
        self.inner.as_ref()?.times()
    }

    fn rest(&self, waited: Duration) {
        self.inner.as_ref().map_or_else(|| pause(waited), |inner| inner.rest(waited));
    }

    fn waited(&self) {
        self.inner.iter().for_each(Event::waited);
    }

    fn is_due(&self) -> bool {
        self.inner.as_ref().is_none_or(Event::is_due)
    }
}

impl FaultyQueue {
    /// Counts an operation and runs it on the inner queue.
    fn run(
        &mut self,
        operation: Operation,
        after: &[Event],
        run: impl FnOnce(&mut Queue, &[Event]) -> Result<Event>,
    ) -> Result<Event> {
        self.hangs |= self.state.begin(operation)?;
        let mut waits = Vec::with_capacity(after.len());
        for event in after {
            match event.part::<FaultyEvent>() {
                Some(FaultyEvent { inner: Some(inner), .. }) => waits.push(inner.clone()),
                Some(_) => self.hangs = true,
                None => waits.push(event.clone()),
            }
        }
        let inner = if self.hangs { None } else { Some(run(&mut self.inner, &waits)?) };
        Ok(Event::new(FaultyEvent { inner, state: self.state.clone() }))
    }
}

impl QueuePart for FaultyQueue {
    fn write(&mut self, to: &Memory, at: usize, from: &Buffer<u8>, after: &[Event]) -> Result<Event> {
        self.run(Operation::Write, after, |queue, after| queue.write(to, at, from.clone(), after))
    }

    fn read(&mut self, from: &Memory, at: usize, into: &Landing, after: &[Event]) -> Result<Event> {
        self.run(Operation::Read, after, |queue, after| queue.fetch(from, at, into, after))
    }

    fn fill(&mut self, memory: &Memory, at: usize, bytes: usize, byte: u8, after: &[Event]) -> Result<Event> {
        self.run(Operation::Fill, after, |queue, after| queue.fill(memory, at, bytes, byte, after))
    }

    fn launch(&mut self, kernel: &Kernel, arguments: &[Argument<'_>], shape: Shape, after: &[Event]) -> Result<Event> {
        self.run(Operation::Launch, after, |queue, after| queue.launch(kernel, arguments, shape, after))
    }
}
