//! Loads a source straight into resident columns: each thread makes a group and encodes it as one part of the table.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tandem_column::{Field, LoadOptions, Loader, PartBuilder, Result, Table};

use crate::source::{Counter, TableSource, in_order};

/// Generates all of `source` as a table.
pub fn load(source: &dyn TableSource, threads: usize, progress: &Counter<'_>) -> Result<Table> {
    let fields: Result<Vec<Field>> = source.schema().fields().iter().map(|field| Field::from_arrow(field)).collect();
    let schema: Arc<[Field]> = fields?.into();
    let loader =
        Loader::new(Arc::clone(&schema), LoadOptions { name: source.name().to_string(), ..LoadOptions::default() });
    in_order(
        source.groups(),
        threads,
        |group| {
            let mut part = PartBuilder::new(Arc::clone(&schema));
            source.generate(group, &mut |batch| {
                progress.add(batch.num_rows());
                part.push(batch)
            })?;
            loader.append_part(group as u64, part.finish()?)
        },
        Ok,
    )?;
    loader.finish_with(&|tasks, run| on_threads(threads, tasks, run))
}

/// Runs `run` for each of `tasks` on up to `threads` threads.
fn on_threads(threads: usize, tasks: usize, run: &(dyn Fn(usize) + Sync)) {
    let next = AtomicUsize::new(0);
    let work = || {
        loop {
            let task = next.fetch_add(1, Ordering::Relaxed);
            if task >= tasks {
                return;
            }
            run(task);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(tasks) {
            scope.spawn(work);
        }
        work();
    });
}
