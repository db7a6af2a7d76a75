//! The common parts of connections to a desktop, for any protocol: input events, what ends waits, the clock, what wakes the thread
//! that reads, and how that thread makes a screen's files smaller.
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

/// How often, at least, a waiting caller is checked for a stop.
pub const WAIT_SLICE: Duration = Duration::from_millis(50);
