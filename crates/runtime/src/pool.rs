//! The worker pool: a fixed number of threads that share the work of several callers fairly, one task at a time.
//!
//! A task set is what one caller wants done: a number of tasks. Workers take the set at the head of the queue, claim one
//! task of it, put the set back at the tail and run the task; so any number of queries advance together, task by task,
//! whatever their size. The caller of [`Pool::run`] blocks until every claimed task has ended, which is what makes lending
//! it borrowed data sound. A call from one of the pool's own threads runs its tasks in place.

use std::{
    cell::Cell,
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
};

use tandem_column::{Error, Result};

use crate::Cancel;

thread_local! {
    /// Which worker of a pool this thread is.
    static WORKER: Cell<Option<usize>> = const { Cell::new(None) };
}

/// A fixed set of worker threads.
pub(crate) struct Pool {
    shared: Arc<PoolState>,
    threads: Vec<JoinHandle<()>>,
}

struct PoolState {
    queue: Mutex<TaskQueue>,
    work: Condvar,
}

struct TaskQueue {
    sets: VecDeque<Arc<TaskSet>>,
    closed: bool,
    /// Workers from this number on wait.
    active: usize,
}

/// What a task does: gets the worker's index and the task's index.
type Task<'a> = dyn Fn(usize, usize) -> Result<()> + Sync + 'a;

struct TaskSet {
    task: &'static Task<'static>,
    tasks: usize,
    cancel: Cancel,
    state: Mutex<TaskSetState>,
    ended: Condvar,
}

#[derive(Default)]
struct TaskSetState {
    claimed: usize,
    running: usize,
    error: Option<Error>,
}

/// Runs a task; its panic becomes an error of the statement.
fn guarded(task: &Task<'_>, worker: usize, index: usize) -> Result<()> {
    catch_unwind(AssertUnwindSafe(|| task(worker, index)))
        .unwrap_or_else(|panic| Err(Error::panicked("a worker", panic.as_ref())))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    pub(crate) fn new(threads: usize) -> Pool {
        let queue = TaskQueue { sets: VecDeque::new(), closed: false, active: threads.max(1) };
        let shared = Arc::new(PoolState { queue: Mutex::new(queue), work: Condvar::new() });
        let threads = (0..threads.max(1))
            .map(|index| {
                let shared = shared.clone();
                std::thread::Builder::new()
                    .name(format!("tandem-{index}"))
                    .spawn(move || {
                        WORKER.set(Some(index));
                        shared.work(index);
                    })
                    .expect("the system lets us start a thread")
            })
            .collect();
        Pool { shared, threads }
    }

    pub(crate) fn threads(&self) -> usize {
        self.threads.len()
    }

    pub(crate) fn active(&self) -> usize {
        lock(&self.shared.queue).active.min(self.threads())
    }

    /// Lets only so many workers run (at least one); the others wait after their current task.
    pub(crate) fn set_active(&self, workers: usize) {
        lock(&self.shared.queue).active = workers.max(1);
        self.shared.work.notify_all();
    }

    /// Runs `task(worker, 0..tasks)`; stops claiming at the first error or cancellation and returns it.
    #[allow(unsafe_code, reason = "lending borrowed data to the workers: docs/adr/003-unsafe-in-the-pool.md")]
    pub(crate) fn run(&self, tasks: usize, cancel: &Cancel, task: &Task<'_>) -> Result<()> {
        let inside = WORKER.get();
        if inside.is_some() || tasks == 1 {
            for index in 0..tasks {
                cancel.check()?;
                guarded(task, inside.unwrap_or(0), index)?;
            }
            return Ok(());
        }
        if tasks == 0 {
            return Ok(());
        }
        // SAFETY: the set is dropped from the queue, and no task of it runs any more, before this function returns:
        // the wait below ends only when nothing is running and nothing can be claimed.
        let task: &'static Task<'static> = unsafe { std::mem::transmute::<&Task<'_>, &'static Task<'static>>(task) };
        let set =
            Arc::new(TaskSet { task, tasks, cancel: cancel.clone(), state: Mutex::default(), ended: Condvar::new() });
        lock(&self.shared.queue).sets.push_back(set.clone());
        self.shared.work.notify_all();
        let mut state = lock(&set.state);
        while state.claimed < set.tasks || state.running > 0 {
            state = set.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        match state.error.take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        lock(&self.shared.queue).closed = true;
        self.shared.work.notify_all();
        for thread in self.threads.drain(..) {
            // A worker catches panics of its tasks and gives them to who waits for the set: nothing is lost here.
            let _ = thread.join();
        }
    }
}

impl PoolState {
    fn work(&self, worker: usize) {
        while let Some((set, index)) = self.claim(worker) {
            let result = guarded(set.task, worker, index);
            set.ended(result);
        }
    }

    /// Waits for a task: takes the set at the head, claims one task and puts the set back at the tail.
    fn claim(&self, worker: usize) -> Option<(Arc<TaskSet>, usize)> {
        let mut queue = lock(&self.queue);
        loop {
            while worker < queue.active
                && let Some(set) = queue.sets.pop_front()
            {
                let Some((index, more)) = set.claim() else { continue };
                if more {
                    queue.sets.push_back(set.clone());
                }
                return Some((set, index));
            }
            if queue.closed {
                return None;
            }
            queue = self.work.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl TaskSet {
    /// Claims the next task; tells its index and whether more are left.
    fn claim(&self) -> Option<(usize, bool)> {
        let mut state = lock(&self.state);
        if self.cancel.is_cancelled() && state.claimed < self.tasks {
            state.error.get_or_insert_with(Error::cancelled);
            state.claimed = self.tasks;
        }
        if state.claimed == self.tasks {
            if state.running == 0 {
                self.ended.notify_all();
            }
            return None;
        }
        state.claimed += 1;
        state.running += 1;
        Some((state.claimed - 1, state.claimed < self.tasks))
    }

    fn ended(&self, result: Result<()>) {
        let mut state = lock(&self.state);
        state.running -= 1;
        if let Err(error) = result {
            state.error.get_or_insert(error);
            state.claimed = self.tasks;
        }
        if state.running == 0 && state.claimed == self.tasks {
            self.ended.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn every_task_runs_once() {
        let pool = Pool::new(3);
        let runs: Vec<AtomicUsize> = (0..1000).map(|_| AtomicUsize::new(0)).collect();
        pool.run(runs.len(), &Cancel::new(), &|_, task| {
            runs[task].fetch_add(1, Ordering::Relaxed);
            Ok(())
        })
        .unwrap();
        assert!(runs.iter().all(|n| n.load(Ordering::Relaxed) == 1));
    }

    #[test]
    fn the_first_error_stops_the_rest() {
        let pool = Pool::new(2);
        let ran = AtomicUsize::new(0);
        let error = pool.run(1_000_000, &Cancel::new(), &|_, task| {
            ran.fetch_add(1, Ordering::Relaxed);
            if task == 10 { Err(Error::input("ten")) } else { Ok(()) }
        });
        assert_eq!(error.unwrap_err().message, "ten");
        assert!(ran.load(Ordering::Relaxed) < 1_000_000);
    }

    #[test]
    fn a_panic_becomes_an_error_and_the_pool_lives_on() {
        let pool = Pool::new(2);
        let error = pool.run(4, &Cancel::new(), &|_, task| if task == 2 { panic!("two") } else { Ok(()) });
        assert!(error.unwrap_err().message.contains("two"));
        pool.run(4, &Cancel::new(), &|_, _| Ok(())).unwrap();
        // Also of a set of one task, which the caller's thread runs, and within a task.
        let error = pool.run(1, &Cancel::new(), &|_, _| panic!("one")).unwrap_err();
        assert_eq!((error.class, error.message.contains("one")), (tandem_column::Class::Internal, true));
        let within = pool.run(2, &Cancel::new(), &|_, _| pool.run(3, &Cancel::new(), &|_, _| panic!("three")));
        assert!(within.unwrap_err().message.contains("three"));
    }

    #[test]
    fn cancelling_stops_soon() {
        let pool = Pool::new(2);
        let cancel = Cancel::new();
        let error = pool.run(usize::MAX, &cancel, &|_, task| {
            if task == 100 {
                cancel.cancel();
            }
            Ok(())
        });
        assert!(error.unwrap_err().is_cancelled());
    }

    #[test]
    fn only_active_workers_run() {
        let pool = Pool::new(3);
        pool.set_active(1);
        let (seen, all) = (Mutex::new(Vec::new()), 100);
        let run = || {
            lock(&seen).clear();
            let note = |worker, _| {
                lock(&seen).push(worker);
                Ok(())
            };
            pool.run(all, &Cancel::new(), &note).unwrap();
        };
        run();
        assert_eq!(*lock(&seen), vec![0; all]);
        pool.set_active(0);
        run();
        assert_eq!(*lock(&seen), vec![0; all]);
    }

    #[test]
    fn a_small_job_does_not_wait_for_a_large_one() {
        let pool = Pool::new(1);
        let large = Cancel::new();
        let (begun, wait) = std::sync::mpsc::channel();
        let begun = Mutex::new(begun);
        std::thread::scope(|scope| {
            let pool = &pool;
            let (large, begun) = (&large, &begun);
            let handle = scope.spawn(move || {
                pool.run(usize::MAX, large, &|_, task| {
                    if task == 0 {
                        lock(begun).send(()).unwrap();
                    }
                    Ok(())
                })
            });
            wait.recv().unwrap();
            // The large set never ends by itself: this returns only because tasks of both take turns.
            pool.run(10, &Cancel::new(), &|_, _| Ok(())).unwrap();
            large.cancel();
            assert!(handle.join().unwrap().unwrap_err().is_cancelled());
        });
    }
}
