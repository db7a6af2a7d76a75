//! The state that one connection shares between its callers and the watcher thread, and the turns of both.
//!
//! A call runs in the caller's own thread, under one lock. Between calls the watcher reads what the server sends, so that
//! changes without an action (a caret, a clock) are known as such before the next action, and a dead server is noticed.

use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use link::{TIGHTEN_AFTER, locked, tighten_one};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::AsFd;
use rustix::time::Timespec;

use crate::error::Result;
use crate::state::State;
use crate::wire::Wire;

/// A video costs ten captures a second between calls.
const WATCH_PERIOD: Duration = Duration::from_millis(100);

/// The state that one connection shares between its callers and its watcher.
pub(crate) struct Shared {
    pub(crate) wire: Wire,
    pub(crate) state: Mutex<State>,
    pub(crate) turn: Mutex<Turn>,
    pub(crate) turned: Condvar,
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

impl Shared {
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
            self.wire.nudge.send();
        }
        drop(turn);
        self.turned.notify_all();
    }
}

/// A caller's turn, given back when dropped. After a panic it is unknown what the server was sent: the connection is of no
/// use any more.
pub(crate) struct TakenTurn<'a>(&'a Shared);

impl Drop for TakenTurn<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.wire.lose("a bug in deskhand ended a call");
        }
        self.0.give_turn();
    }
}

/// Ends the connection when the watcher ends by a panic.
pub(crate) struct Ended<'a>(pub(crate) &'a Shared);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.wire.lose("a bug in deskhand ended the thread that watches the screen");
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
            shared.wire.note_end(&error);
            return;
        }
        last = Instant::now();
        let timeout =
            tighten(shared).map(|rest| Timespec { tv_sec: rest.as_secs() as i64, tv_nsec: rest.subsec_nanos().into() });
        poll_both(shared, timeout.as_ref());
        shared.wire.nudge.take();
    }
}

/// Waits for a nudge or for bytes from the server; whether there are any.
fn poll_both(shared: &Shared, timeout: Option<&Timespec>) -> bool {
    let mut fds = [
        PollFd::new(&shared.wire.nudge, PollFlags::IN),
        PollFd::from_borrowed_fd(shared.wire.server.conn.stream().as_fd(), PollFlags::IN),
    ];
    !matches!(poll(&mut fds, timeout), Ok(0))
}

/// Makes the files that were looked at smaller, when there was no call for a while and nothing happens: a strip at a time and
/// without the screen's lock, so that no caller has to wait for it. Returns when to come back for more.
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
        if tighten_one(&shared.wire.screen).unwrap_or(false) {
            continue;
        }
        let mut turn = locked(&shared.turn);
        if undisturbed(&turn) {
            (turn.called, turn.asleep) = (None, true);
            locked(&shared.wire.screen).rest();
            return None;
        }
    }
    Some(TIGHTEN_AFTER)
}

/// One turn of the watcher.
fn watch_once(shared: &Shared) -> Result<()> {
    let Ok(mut state) = shared.state.try_lock() else { return Ok(()) };
    state.pump(&shared.wire)
}
