//! What ends a wait before its time.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::locked;

/// Checks whether the caller wants to stop waiting: a flag set from another thread, or a check of its own (signals).
#[derive(Clone)]
pub struct Interrupt {
    flag: Arc<AtomicBool>,
    shield: Arc<AtomicUsize>,
    check: Arc<dyn Fn() -> bool + Send + Sync>,
    patience: Arc<Mutex<Option<Patience>>>,
}

/// How long to wait for the other side.
#[derive(Clone, Copy)]
struct Patience {
    until: Instant,
    given: Duration,
}

impl Interrupt {
    /// `check` is called now and then from the waiting thread.
    pub fn new(check: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { flag: Arc::default(), shield: Arc::default(), check: Arc::new(check), patience: Arc::default() }
    }

    /// Never stops by itself.
    #[must_use]
    pub fn never() -> Self {
        Self::new(|| false)
    }

    /// Makes the wait that is under way, or the next one, stop; [`Interrupt::clear`] takes it back.
    pub fn set(&self) {
        self.flag.store(true, Ordering::SeqCst);
    }

    /// Forgets an earlier [`Interrupt::set`].
    pub fn clear(&self) {
        self.flag.store(false, Ordering::SeqCst);
    }

    /// From now on, makes waits give up once `limit` is over; `None` takes the limit away.
    pub fn allow(&self, limit: Option<Duration>) {
        let patience = limit.and_then(|given| Some(Patience { until: Instant::now().checked_add(given)?, given }));
        *locked(&self.patience) = patience;
    }

    /// Something that was waited for has come: the time begins again.
    pub fn renew(&self) {
        if let Some(patience) = &mut *locked(&self.patience) {
            patience.until = Instant::now() + patience.given;
        }
    }

    /// What is left of that time; `limit` where less is.
    #[must_use]
    pub fn left(&self, limit: Duration) -> Duration {
        let until = locked(&self.patience).map(|patience| patience.until);
        until.map_or(limit, |until| limit.min(until.saturating_duration_since(Instant::now())))
    }

    /// That time, if it is over.
    #[must_use]
    pub fn over(&self) -> Option<Duration> {
        locked(&self.patience).filter(|patience| Instant::now() >= patience.until).map(|patience| patience.given)
    }

    /// Whether the caller wants to stop waiting now.
    #[must_use]
    pub fn requested(&self) -> bool {
        self.shield.load(Ordering::SeqCst) == 0 && (self.flag.load(Ordering::SeqCst) || (self.check)())
    }

    /// Does `work` to its end, as the release of held keys must be: it cannot be stopped, and a signal is handled afterwards.
    pub fn shielded<T>(&self, work: impl FnOnce() -> T) -> T {
        self.shield.fetch_add(1, Ordering::SeqCst);
        let _shield = Shield(&self.shield);
        work()
    }
}

/// Taken away when dropped, also by a panic.
struct Shield<'a>(&'a AtomicUsize);

impl Drop for Shield<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
