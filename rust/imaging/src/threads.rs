//! The threads that compute. A process that was forked has none of its parent's, and makes its own.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::ThreadPool;

/// How often this process, and those that it comes from, were forked.
static FORKS: AtomicUsize = AtomicUsize::new(0);
static FIRST: OnceLock<Box<After>> = OnceLock::new();

/// The threads after one fork. Nothing is ever freed: the parent's thread that made them may have been cut off in the middle.
#[derive(Default)]
struct After {
    pool: OnceLock<ThreadPool>,
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

/// Does `work` where rayon's parallel iterators find threads.
///
/// # Panics
///
/// A process that was forked can start no thread.
pub(crate) fn in_parallel<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let forks = forks();
    if forks == 0 {
        return work();
    }
    let mut after = FIRST.get_or_init(Box::default);
    for _ in 1..forks {
        after = after.next.get_or_init(Box::default);
    }
    let pool = after.pool.get_or_init(|| rayon::ThreadPoolBuilder::new().build().expect("threads can be started"));
    pool.install(work)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fork_has_threads_of_its_own() {
        let thread = || in_parallel(|| rayon::join(|| (), rayon::current_num_threads).1);
        for _ in 0..3 {
            forked();
            assert!(thread() >= 1);
        }
        assert_eq!(forks(), 3);
    }
}
