//! What messages of all kinds are made of: texts of any length, of which only the beginning is kept.

use crate::input::Input;
use crate::limits::Limits;
use crate::violation::{Problem, limit};

/// Bytes that come as they come, of which the first are kept and the others skipped.
pub(crate) struct Collected {
    pub kept: Vec<u8>,
    /// Whether some were skipped.
    pub truncated: bool,
    room: usize,
    left: u64,
}

impl Collected {
    /// For `len` bytes, of which `room` are kept and `skipped` more accepted.
    ///
    /// # Errors
    /// When there are more.
    pub(crate) fn new(what: &'static str, len: u64, room: usize, skipped: u64) -> Result<Self, Problem> {
        limit(what, len, room as u64 + skipped)?;
        Ok(Self { kept: Vec::new(), truncated: len > room as u64, room, left: len })
    }

    /// For the desktop's name, or a reason.
    pub(crate) fn name(what: &'static str, len: u32, limits: &Limits) -> Result<Self, Problem> {
        Self::new(what, len.into(), limits.name, limits.name_skipped)
    }

    /// Takes what is here; returns whether that was all.
    pub(crate) fn step(&mut self, input: &mut Input) -> bool {
        while self.left > 0 && self.kept.len() < self.room {
            let room = self.room - self.kept.len();
            let here = input.some(usize::try_from(self.left).unwrap_or(usize::MAX).min(room));
            let count = here.len();
            if count == 0 {
                return false;
            }
            self.kept.extend_from_slice(here);
            input.consume(count);
            self.left -= count as u64;
        }
        self.left -= input.skip(self.left);
        self.left == 0
    }
}

/// Text in Latin-1.
pub(crate) fn latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}
