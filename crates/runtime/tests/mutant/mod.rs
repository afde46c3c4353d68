//! A device whose kernels have a mistake: a checker that runs the corpus on it must find it.

use std::sync::Arc;

use tandem_device::{Buffer, Device, Info, Memory, Program, Queue, Result};

/// A mistake in what is generated.
#[derive(Clone, Copy, Debug)]
pub enum Mutation {
    /// Loops over rows take one row too many.
    OneRowMore,
    /// Work-items that share a table of groups add to it without atomic operations.
    PlainSums,
}

/// Another device with a mistake in its kernels.
#[derive(Debug)]
pub struct Mutant {
    inner: Arc<dyn Device>,
    info: Info,
    mutation: Mutation,
}

impl Mutant {
    /// Makes a device of another one.
    pub fn new(inner: Arc<dyn Device>, mutation: Mutation) -> Mutant {
        // Under a name of its own, so that no store of kernels takes one for the other.
        let info = Info { name: format!("{} with {mutation:?}", inner.info().name), ..inner.info().clone() };
        Mutant { inner, info, mutation }
    }
}

impl Device for Mutant {
    fn info(&self) -> &Info {
        &self.info
    }

    fn allocate(&self, bytes: usize) -> Result<Memory> {
        self.inner.allocate(bytes)
    }

    fn share(&self, bytes: &Buffer<u8>) -> Result<Memory> {
        self.inner.share(bytes)
    }

    fn compile(&self, source: &str, options: &str) -> Result<Program> {
        let mutated = match self.mutation {
            Mutation::OneRowMore => source.replace("FOR_ROWS(row, rows) {", "FOR_ROWS(row, rows + 1) {"),
            Mutation::PlainSums => {
                let plain = "#undef ADD\n#define ADD(place, value) (*(place) += (value))\nKERNEL void";
                source.replacen("KERNEL void", plain, 1)
            }
        };
        // Operators are not generated.
        let generated = !source.contains("KERNEL void gather_64(");
        assert!(mutated != source || !generated, "the mistake fits what is generated");
        self.inner.compile(&mutated, options)
    }

    fn load(&self, binary: &[u8], options: &str) -> Result<Program> {
        self.inner.load(binary, options)
    }

    fn queue(&self) -> Result<Queue> {
        self.inner.queue()
    }

    fn used(&self) -> usize {
        self.inner.used()
    }
}
