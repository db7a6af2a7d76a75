//! One VNC connection per desktop, from the end of the handshake on: the socket, the thread that reads it, input, and waits.
//!
//! [`Connection`] is what callers see. A thread of its own feeds an [`rfb::Session`] with all that the server sends, at once,
//! so that the server is never kept waiting and changes have the times at which they came. Callers wait for what it notes.
//!
//! What must never appear here: the protocol's bytes (see `rfb`), a decision of when a screen has settled, Python.
#![forbid(unsafe_code)]

mod connection;
mod input;
mod lock;
mod looking;
mod offer;
mod pacing;
mod reader;
mod state;

pub use connection::Connection;
pub use offer::encodings;
pub use rfb::Violation;

/// Every failure of this crate.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The connection is gone, or the server has been silent for longer than a live one can be.
    #[error("{0}")]
    Lost(String),
    /// The server broke the protocol; the connection has been closed.
    #[error(transparent)]
    Violation(#[from] Violation),
    /// The caller's thread was asked to stop waiting (a signal, or a cancelled task).
    #[error("interrupted")]
    Interrupted,
    /// A wait reached its limit.
    #[error("waited {seconds} s for {what}")]
    Timeout {
        /// What was awaited.
        what: &'static str,
        /// The limit.
        seconds: f64,
    },
    /// The server lacks, or refused, what was requested; the connection is fine.
    #[error("{0}")]
    Refused(String),
}

/// What the functions of this crate return.
pub type Result<T> = std::result::Result<T, Error>;
