//! The clock on which a desktop's changes have their times.

use rustix::time::{ClockId, Timespec, clock_gettime};

/// Seconds of the monotonic clock, which is Python's `time.monotonic` too.
#[must_use]
pub fn now() -> f64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Monotonic);
    tv_sec as f64 + tv_nsec as f64 * 1e-9
}
