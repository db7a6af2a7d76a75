//! One connection as all its parts use it: the server, the screen that is kept current, and what ends a wait.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use imaging::Screen;
use link::{Interrupt, Nudge, WAIT_SLICE, locked};

use crate::error::{Error, Result};
use crate::server::{Server, Target};

/// A note may contain text of a server.
const MAX_NOTES: usize = 32;

/// The parts of a connection that do not depend on whose turn it is.
pub(crate) struct Wire {
    pub(crate) server: Arc<Server>,
    pub(crate) target: Target,
    pub(crate) interrupt: Interrupt,
    pub(crate) screen: Arc<Mutex<Screen>>,
    /// Wakes the watcher.
    pub(crate) nudge: Nudge,
    /// Why there is no connection any more.
    pub(crate) lost: OnceLock<String>,
    pub(crate) notes: Mutex<Vec<String>>,
}

impl Wire {
    /// Waits for bytes from the server, or a signal, for at most one slice.
    pub(crate) fn wait_readable(&self, timeout: Duration) -> Result<bool> {
        let readable = self.server.conn.stream().wait_readable(timeout.min(WAIT_SLICE))?;
        if !readable {
            self.check_interrupt()?;
        }
        Ok(readable)
    }

    pub(crate) fn check_interrupt(&self) -> Result<()> {
        if self.interrupt.requested() { Err(Error::Interrupted) } else { Ok(()) }
    }

    /// Does nothing for `duration`, unless interrupted.
    pub(crate) fn pause(&self, duration: Duration) -> Result<()> {
        let deadline = Instant::now() + duration;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(WAIT_SLICE));
            self.check_interrupt()?;
        }
    }

    /// Adds a line to [`Display::status`], once.
    pub(crate) fn note(&self, text: &str) {
        let mut notes = locked(&self.notes);
        if notes.len() < MAX_NOTES && !notes.iter().any(|note| note == text) {
            notes.push(text.to_owned());
        }
    }

    /// Records that the connection has ended, if this error means that.
    pub(crate) fn note_end(&self, error: &Error) {
        match error {
            Error::Lost(why) => self.lose(why),
            Error::Violation(_) => self.lose(&error.to_string()),
            _ => {}
        }
    }

    pub(crate) fn lose(&self, why: &str) {
        // The first reason is the one that led to the others.
        self.lost.get_or_init(|| why.to_owned());
    }
}
