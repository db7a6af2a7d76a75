//! What one connection shares between its callers and the watcher thread, and whose turn it is.
//!
//! Whoever calls works on the caller's own thread, under one lock. Between calls the watcher reads what the server sends, so that
//! changes nobody asked for (a caret, a clock) are known as such before the next action, and a dead server is noticed.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use imaging::{ImagingError, Screen};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::time::Timespec;

use crate::error::{Error, Result};
use crate::server::{Server, Target};
use crate::state::State;
use crate::stream::Interrupt;

/// A video that nobody looks at costs ten captures a second.
const WATCH_PERIOD: Duration = Duration::from_millis(100);
/// Nobody who has not called for this long is about to: there is time to make the files that were looked at smaller.
const TIGHTEN_AFTER: Duration = Duration::from_millis(300);
const WAIT_SLICE: Duration = Duration::from_millis(50);
/// A note may hold what a server says.
const MAX_NOTES: usize = 32;

/// What one connection shares between its callers and its watcher.
pub(crate) struct Shared {
    pub(crate) server: Arc<Server>,
    pub(crate) target: Target,
    pub(crate) interrupt: Interrupt,
    pub(crate) screen: Arc<Mutex<Screen>>,
    pub(crate) state: Mutex<State>,
    pub(crate) turn: Mutex<Turn>,
    pub(crate) turned: Condvar,
    pub(crate) nudge: OwnedFd,
    /// Why there is no connection any more.
    pub(crate) lost: OnceLock<String>,
    pub(crate) notes: Mutex<Vec<String>>,
}

#[derive(Default)]
pub(crate) struct Turn {
    pub(crate) callers: usize,
    /// A caller makes several calls in a row. Not counted: a signal may come between two lines of its Python code, and an `end`
    /// that was missed once must not keep the watcher off for ever.
    pub(crate) held: bool,
    pub(crate) stop: bool,
    /// When the latest call ended; `None` once the watcher has done all there was to do after it.
    called: Option<Instant>,
    /// The watcher sleeps until something arrives, and does not know of calls that began since.
    asleep: bool,
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
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

    pub(crate) fn nudge(&self) {
        // It can only fail when the counter is full, and then the watcher has been nudged.
        let _ = rustix::io::write(&self.nudge, &1_u64.to_ne_bytes());
    }

    /// Takes note that the connection is of no use any more, where that is so.
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

    /// Keeps the watcher off for as long as the value lives.
    pub(crate) fn take_turn(&self) -> TakenTurn<'_> {
        locked(&self.turn).callers += 1;
        TakenTurn(self)
    }

    fn give_turn(&self) {
        let mut turn = locked(&self.turn);
        turn.callers -= 1;
        turn.called = Some(Instant::now());
        if std::mem::take(&mut turn.asleep) {
            self.nudge();
        }
        drop(turn);
        self.turned.notify_all();
    }
}

/// A caller's turn, given back when dropped. Where that is by a panic, nobody knows what the server was told: the connection is of no
/// use any more.
pub(crate) struct TakenTurn<'a>(&'a Shared);

impl Drop for TakenTurn<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.lose("a bug in deskhand ended a call");
        }
        self.0.give_turn();
    }
}

/// Says so when the watcher ends by a panic.
pub(crate) struct Ended<'a>(pub(crate) &'a Shared);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.lose("a bug in deskhand ended the thread that watches the screen");
        }
    }
}

/// The watcher's life.
pub(crate) fn watch(shared: &Shared) {
    let mut last = Instant::now();
    loop {
        {
            let mut turn = locked(&shared.turn);
            loop {
                if turn.stop {
                    return;
                }
                let rest = WATCH_PERIOD.saturating_sub(last.elapsed());
                if turn.callers > 0 || turn.held {
                    turn = shared.turned.wait(turn).unwrap_or_else(PoisonError::into_inner);
                } else if !rest.is_zero() {
                    (turn, _) = shared.turned.wait_timeout(turn, rest).unwrap_or_else(PoisonError::into_inner);
                } else {
                    break;
                }
            }
        }
        // A request that failed (a window gone, the screen just resized) is tried again with the next event.
        if let Err(error) = watch_once(shared)
            && error.is_fatal()
        {
            shared.note_end(&error);
            return;
        }
        last = Instant::now();
        let timeout =
            tighten(shared).map(|rest| Timespec { tv_sec: rest.as_secs() as i64, tv_nsec: rest.subsec_nanos().into() });
        poll_both(shared, timeout.as_ref());
        let _ = rustix::io::read(&shared.nudge, &mut [0; 8]);
    }
}

/// Waits for a nudge or for bytes from the server; whether there are any.
fn poll_both(shared: &Shared, timeout: Option<&Timespec>) -> bool {
    let mut fds = [
        PollFd::new(&shared.nudge, PollFlags::IN),
        PollFd::from_borrowed_fd(shared.server.conn.stream().as_fd(), PollFlags::IN),
    ];
    !matches!(poll(&mut fds, timeout), Ok(0))
}

/// Makes the files that were looked at smaller, when nobody has called for a while and nothing happens: a strip at a time and
/// without the screen's lock, so that whoever calls meanwhile waits for nothing. Returns when to come back for more.
fn tighten(shared: &Shared) -> Option<Duration> {
    let called = {
        let mut turn = locked(&shared.turn);
        turn.asleep = turn.called.is_none();
        turn.called?
    };
    let rest = TIGHTEN_AFTER.saturating_sub(called.elapsed());
    if !rest.is_zero() {
        return Some(rest);
    }
    let undisturbed = |turn: &Turn| turn.called == Some(called) && turn.callers == 0 && !turn.held && !turn.stop;
    while undisturbed(&locked(&shared.turn)) && !poll_both(shared, Some(&Timespec::default())) {
        if tighten_one(&shared.screen).unwrap_or(false) {
            continue;
        }
        let mut turn = locked(&shared.turn);
        if undisturbed(&turn) {
            (turn.called, turn.asleep) = (None, true);
            locked(&shared.screen).rest();
            return None;
        }
    }
    Some(TIGHTEN_AFTER)
}

fn tighten_one(screen: &Mutex<Screen>) -> std::result::Result<bool, ImagingError> {
    let Some(slack) = locked(screen).slack()? else { return Ok(false) };
    let strip = slack.tighten()?;
    locked(screen).install(strip);
    Ok(true)
}

/// One turn of the watcher.
fn watch_once(shared: &Shared) -> Result<()> {
    let Ok(mut state) = shared.state.try_lock() else { return Ok(()) };
    state.pump(shared)
}
