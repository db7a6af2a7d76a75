//! What a connection to a desktop has, whatever protocol it speaks: input events, what ends its waits, its clock, what wakes the thread
//! that reads it, and how that thread makes a screen's files smaller.
//!
//! What must never appear here: a protocol, a thread, Python.
#![forbid(unsafe_code)]

mod clock;
mod event;
mod interrupt;
mod lock;
mod nudge;
mod tighten;

use std::time::Duration;

pub use clock::now;
pub use event::Event;
pub use interrupt::Interrupt;
pub use lock::locked;
pub use nudge::Nudge;
pub use tighten::{TIGHTEN_AFTER, tighten_one};

/// Whoever waits is asked at least this often whether it wants to stop.
pub const WAIT_SLICE: Duration = Duration::from_millis(50);
