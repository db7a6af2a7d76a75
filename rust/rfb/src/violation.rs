//! How a server can break the protocol. The rule: a message names what was wrong, what came, and what was expected.

use imaging::{Rect, Size};

/// A server broke the protocol, or went beyond a limit; nothing it sends later can be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{context} at byte {offset} of the server's stream: {problem}")]
pub struct Violation {
    /// Where the message or rectangle begins that was wrong, in bytes since the parser was made.
    pub offset: u64,
    /// What was being read.
    pub context: String,
    /// What was wrong with it.
    pub problem: Problem,
}

/// What was wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// A field has a value that it cannot have.
    #[error("{what} is {got}; expected {expected}")]
    Value {
        /// The field.
        what: &'static str,
        /// Its value.
        got: i64,
        /// What would have been right.
        expected: &'static str,
    },
    /// A field has a value beyond what is accepted.
    #[error("{what}: {got}, of which at most {max} are accepted")]
    Limit {
        /// What is limited.
        what: &'static str,
        /// What was demanded.
        got: u64,
        /// What is accepted.
        max: u64,
    },
    /// A rectangle reaches over an edge.
    #[error("{what} {rect} is not inside {bounds}")]
    Outside {
        /// The owner of the rectangle.
        what: &'static str,
        /// The rectangle.
        rect: Rect,
        /// What it should be inside of.
        bounds: Size,
    },
    /// Compressed data cannot be decompressed, or gives too much or too little.
    #[error("{what}: {reason}")]
    Data {
        /// Which data.
        what: &'static str,
        /// What the decompressor says of it.
        reason: String,
    },
    /// A message that has begun does not come to its end.
    #[error("{received} bytes in {seconds:.0} s; expected {expected}")]
    Stalled {
        /// Bytes that came meanwhile.
        received: u64,
        /// Whole seconds since it began.
        seconds: u32,
        /// What would have been enough.
        expected: &'static str,
    },
}

/// Refuses `got` above `max`.
pub(crate) fn limit(what: &'static str, got: u64, max: u64) -> Result<(), Problem> {
    if got > max { Err(Problem::Limit { what, got, max }) } else { Ok(()) }
}

/// Refuses a rectangle that reaches over an edge. Both axes on their own: an area says nothing about a side.
pub(crate) fn inside(what: &'static str, rect: Rect, bounds: Size) -> Result<(), Problem> {
    if bounds.rect().contains(rect) { Ok(()) } else { Err(Problem::Outside { what, rect, bounds }) }
}

/// A field with a value that it cannot have.
pub(crate) fn value(what: &'static str, got: impl Into<i64>, expected: &'static str) -> Problem {
    Problem::Value { what, got: got.into(), expected }
}

/// Data that cannot be decompressed as it should.
pub(crate) fn data(what: &'static str, reason: impl Into<String>) -> Problem {
    Problem::Data { what, reason: reason.into() }
}
