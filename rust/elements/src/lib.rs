//! The accessibility tree of a desktop: what its applications say of their windows and widgets over D-Bus (AT-SPI).
//!
//! [`wire`] is the messages, [`Collector`] decides what is asked and keeps what was answered or heard (both do no I/O), and
//! [`Session`] is the connection. Everything that an application sends is untrusted: what is kept of it has a bound, and an
//! application that does not answer is not waited for again until it does.
//!
//! What must never appear here: pixels, a click, Python.
#![forbid(unsafe_code)]

mod ask;
mod codes;
mod collector;
mod events;
mod grid;
mod node;
mod seen;
mod session;
mod toolkit;
mod tree;
pub mod wire;

pub use collector::Collector;
pub use node::{Application, Area, Element, Snapshot};
pub use seen::{Cover, Seen, Window};
pub use session::{Error, Session, accessibility_address};
