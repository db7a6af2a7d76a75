//! One X11 connection per desktop: input, keymap, damage, shared-memory capture, cursor, pings, windows; and its clipboard.
//!
//! It owns the socket and the shared memory, and turns them into calls that wait for a bounded time, can be interrupted, and
//! fail with a typed error. It fills an [`imaging::Screen`] and decides nothing about pixels.
//!
//! What must never appear here: Python, a decision of when a screen has settled, or process-wide state. Several displays in one
//! process are independent of each other.

mod bindings;
mod clients;
mod clipboard;
mod conn;
mod consumption;
mod display;
mod dropping;
mod error;
mod family;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod grab;
mod inbox;
mod incoming;
mod input;
mod jobs;
mod keyboard;
mod keymap;
mod keymap_writer;
mod layout;
mod lease;
mod locks;
mod manager;
mod monitors;
mod offers;
mod options;
mod pings;
mod popups;
mod reach;
mod replies;
mod resize;
mod sample;
mod selection;
mod server;
mod serving;
mod sock_diag;
mod started;
mod stat;
mod state;
mod steps;
mod stream;
mod traffic;
mod typing;
mod watcher;
mod windows;
mod wire;
mod work;
mod xsettings;

pub use clipboard::Clipboard;
pub use display::Display;
pub use error::{Error, Result};
pub use grab::Method;
pub use lease::{Glance, glance};
pub use monitors::MonitorInfo;
pub use options::Options;
pub use popups::Cover;
pub use reach::{Missed, Obstacle};
pub use selection::{kinds as clipboard_kinds, read as read_clipboard, read_kind as read_clipboard_kind};
pub use server::Target;
pub use stream::SILENCE_LIMIT;
pub use windows::WindowInfo;
pub use work::Activity;
