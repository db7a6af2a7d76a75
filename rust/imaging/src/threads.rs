//! The threads that compute. A process that was forked has none of its parent's, and makes its own.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::available_parallelism;

use rayon::{ThreadPool, ThreadPoolBuilder};

/// How often this process, and those that it comes from, were forked.
static FORKS: AtomicUsize = AtomicUsize::new(0);
static FIRST: OnceLock<Box<After>> = OnceLock::new();

/// The threads after so many forks. Nothing is ever freed: the parent's thread that made them may have been cut off in the middle.
#[derive(Default)]
struct After {
    helpers: OnceLock<Option<ThreadPool>>,
    next: OnceLock<Box<Self>>,
}

/// To be called in a process that was just forked.
pub fn forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// How often [`forked`] was called; what was made at another count belongs to the parent.
#[must_use]
pub fn forks() -> usize {
    FORKS.load(Ordering::Relaxed)
}

/// How many threads [`each`] may use: one for each processor, with the caller's own.
pub(crate) fn threads() -> usize {
    1 + helpers().map_or(0, ThreadPool::current_num_threads)
}

/// Calls `work` with each of `items`, in this thread and in others beside it; returns the results in the order of the items.
///
/// This thread works from the first moment on: one that sleeps needs a tenth of a millisecond to begin, and sometimes
/// the scheduler's whole tick.
///
/// # Panics
///
/// When `work` does, and in a forked process that can start no thread.
pub(crate) fn each<I: Send, T: Send>(items: Vec<I>, work: impl Fn(I) -> T + Sync) -> Vec<T> {
    let count = items.len();
    let mut done: Vec<Option<T>> = Vec::new();
    done.resize_with(count, || None);
    let todo = Mutex::new(items.into_iter().zip(&mut done));
    let run = || {
        let next = || todo.lock().unwrap_or_else(PoisonError::into_inner).next();
        while let Some((item, place)) = next() {
            *place = Some(work(item));
        }
    };
    match helpers() {
        Some(helpers) if count > 1 => helpers.in_place_scope(|scope| {
            for _ in 1..count.min(threads()) {
                scope.spawn(|_| run());
            }
            run();
        }),
        _ => run(),
    }
    done.into_iter().map(|result| result.expect("each item was taken, and its work has ended")).collect()
}

/// The threads of this process beside the caller's; `None` where there is one processor.
fn helpers() -> Option<&'static ThreadPool> {
    let mut after = FIRST.get_or_init(Box::default);
    for _ in 0..forks() {
        after = after.next.get_or_init(Box::default);
    }
    let helpers = after.helpers.get_or_init(|| {
        let count = available_parallelism().map_or(1, usize::from) - 1;
        let build = || ThreadPoolBuilder::new().num_threads(count).build().expect("threads can be started");
        (count > 0).then(build)
    });
    helpers.as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_item_once_and_in_order() {
        for count in [0, 1, 2, 3, 100] {
            let found = each((0..count).collect(), |i: usize| i * i);
            assert_eq!(found, (0..count).map(|i| i * i).collect::<Vec<_>>());
        }
    }

    #[test]
    fn parts_of_one_slice() {
        let mut out = [0; 100];
        each(out.chunks_mut(7).enumerate().collect(), |(i, part): (usize, &mut [usize])| part.fill(i));
        assert_eq!(out[..8], [0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(out[99], 14);
    }

    #[test]
    fn each_fork_has_threads_of_its_own() {
        for _ in 0..3 {
            let parent = helpers().map(std::ptr::from_ref);
            forked();
            assert_eq!(each(vec![1, 2, 3], |i| i + 1), [2, 3, 4]);
            assert!(helpers().is_none() || helpers().map(std::ptr::from_ref) != parent);
        }
        assert_eq!(forks(), 3);
    }
}
