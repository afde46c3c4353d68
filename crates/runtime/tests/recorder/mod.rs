//! A device that looks like one of NVIDIA's and only takes down the kernels that it is given.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, PoisonError},
};

use tandem_device::{Backend, Buffer, Device, DeviceKind, Error, Info, Memory, Program, Queue, Result, shim::Shim};

/// The device. It has programs but no memory, so that the CPU does the work once all kernels are known.
#[derive(Debug)]
pub struct Recorder {
    info: Info,
    texts: Mutex<BTreeSet<String>>,
    /// Programs of empty kernels, by the names of these.
    programs: Mutex<BTreeMap<Vec<String>, Program>>,
    shim: Shim,
}

impl Recorder {
    /// Makes the device.
    pub fn new() -> Result<Recorder> {
        let info = Info {
            backend: Backend::Cuda,
            index: 0,
            kind: DeviceKind::Gpu,
            name: "recorder".into(),
            vendor: "Tandem".into(),
            driver: "none".into(),
            version: "none".into(),
            memory: 1 << 30,
            largest_allocation: 1 << 30,
            units: 1,
            group_items: 1024,
            local_memory: 48 << 10,
            fp64: true,
            int64_atomics: true,
            shared_memory: false,
            simulated: false,
        };
        Ok(Recorder { info, texts: Mutex::default(), programs: Mutex::default(), shim: Shim::open()? })
    }

    /// Returns the texts so far.
    pub fn texts(&self) -> BTreeSet<String> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn refuse<T>() -> Result<T> {
    Err(Error::unsupported("the device only takes kernels down"))
}

impl Device for Recorder {
    fn info(&self) -> &Info {
        &self.info
    }

    fn allocate(&self, _: usize) -> Result<Memory> {
        refuse()
    }

    fn share(&self, _: &Buffer<u8>) -> Result<Memory> {
        refuse()
    }

    fn compile(&self, source: &str, _: &str) -> Result<Program> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner).insert(source.to_owned());
        let names = source
            .split("KERNEL void ")
            .skip(1)
            .filter_map(|rest| rest.split_once('('))
            .map(|(name, _)| name.to_owned());
        let names: Vec<String> = names.collect();
        let mut programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(program) = programs.get(&names) {
            return Ok(program.clone());
        }
        let empty: String = names.iter().map(|name| format!("extern \"C\" __global__ void {name}() {{}}\n")).collect();
        let program = self.shim.compile(&empty, "")?;
        programs.insert(names, program.clone());
        Ok(program)
    }

    fn load(&self, _: &[u8], _: &str) -> Result<Program> {
        refuse()
    }

    fn queue(&self) -> Result<Queue> {
        self.shim.queue()
    }

    fn used(&self) -> usize {
        0
    }
}
