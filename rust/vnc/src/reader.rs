//! The thread that reads: it takes in at once all that the server sends, and wakes waiting callers.

use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use imaging::Screen;
use link::{Nudge, TIGHTEN_AFTER, locked, now, tighten_one};
use rfb::Session;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

use crate::offer::encodings;
use crate::state::State;
use crate::{Error, Result};

/// A server that answers nothing for this long is not coming back: one that was stopped for five seconds must be waited for.
pub(crate) const SILENCE_LIMIT: f64 = 10.0;
/// How often a message under way is checked to go on, and a server to take what it is sent.
const CHECK_PERIOD: Duration = Duration::from_millis(500);
/// While calls look repeatedly, and this long after, the server gets a probe this often.
const HEARTBEAT: f64 = 0.05;
const HEARTBEAT_UNTIL: f64 = 0.5;
/// The usual size of a socket's buffer.
const PIECE: usize = 256 << 10;

pub(crate) struct Shared {
    pub(crate) stream: OwnedFd,
    pub(crate) nudge: Nudge,
    pub(crate) screen: Arc<Mutex<Screen>>,
    pub(crate) state: Mutex<State>,
    pub(crate) told: Condvar,
    /// Bytes have been, or are about to be, taken from the socket that are not on the screen yet.
    pub(crate) reading: AtomicBool,
    /// When the latest call began, until the reader has done all there was to do after it.
    pub(crate) called: Mutex<Option<Instant>>,
}

impl Shared {
    /// Sends what has gathered; the reader sends what the socket does not take now.
    pub(crate) fn flush(&self, state: &mut State) -> Result<()> {
        if state.flush(&self.stream)? {
            self.nudge.send();
        }
        Ok(())
    }

    /// Whether all that the server has sent is on the screen.
    pub(crate) fn drained(&self) -> bool {
        // In this order: the reader sets its flag before it reads anything.
        !self.has(PollFlags::IN) && !self.reading.load(Ordering::SeqCst)
    }

    /// Whether the server has gone, also when the reader has not noticed yet.
    pub(crate) fn hung_up(&self) -> bool {
        self.has(PollFlags::RDHUP)
    }

    fn has(&self, happened: PollFlags) -> bool {
        let mut fds = [PollFd::new(&self.stream, happened)];
        !matches!(poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })), Ok(0))
    }

    /// Sends a probe if one is due; returns the time until the next.
    fn beat(&self) -> Result<Duration> {
        let mut state = locked(&self.state);
        let at = now();
        if !state.features.fence || at - state.looked > HEARTBEAT_UNTIL {
            return Ok(CHECK_PERIOD);
        }
        if state.waiting_since().is_some() {
            return Ok(CHECK_PERIOD);
        }
        if at - state.probed >= HEARTBEAT {
            state.probe(at);
            state.flush(&self.stream)?;
        }
        Ok(Duration::from_secs_f64((state.probed + HEARTBEAT - at).clamp(0.0, HEARTBEAT)))
    }

    fn end(&self, error: Error) {
        let mut state = locked(&self.state);
        state.ended.get_or_insert(error);
        state.ticks += 1;
        drop(state);
        self.told.notify_all();
    }
}

/// Ends the connection when the reader ends by a panic, which would go unnoticed otherwise.
struct Ended<'a>(&'a Shared);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.end(Error::Lost("a bug in deskhand ended the thread that reads".into()));
        }
    }
}

/// The reader's life, from the bytes that came with the handshake to the end of the connection.
pub(crate) fn read(shared: &Shared, session: &mut Session, rest: &[u8], local: bool) {
    let _ended = Ended(shared);
    let result = feed(shared, session, rest).and_then(|()| {
        let mut buffer = vec![0; PIECE];
        while !session.features().fence {
            turn(shared, session, &mut buffer)?;
        }
        session.offer(&encodings(local, true));
        feed(shared, session, &[])?;
        locked(&shared.state).offered_all = true;
        shared.told.notify_all();
        loop {
            turn(shared, session, &mut buffer)?;
        }
    });
    if let Err::<(), Error>(error) = result {
        shared.end(error);
    }
}

fn turn(shared: &Shared, session: &mut Session, buffer: &mut [u8]) -> Result<()> {
    let mut wanted = PollFlags::IN;
    {
        let state = locked(&shared.state);
        state.check()?;
        if state.stuck().is_some_and(|since| since.elapsed().as_secs_f64() > SILENCE_LIMIT) {
            return Err(Error::Lost(format!("the server has taken no input for {SILENCE_LIMIT:.0} s")));
        }
        wanted.set(PollFlags::OUT, state.has_output());
    }
    let rest = tighten(shared).min(shared.beat()?);
    let timeout = Timespec { tv_sec: 0, tv_nsec: rest.subsec_nanos().into() };
    let (came, takes) = {
        let mut fds = [PollFd::new(&shared.stream, wanted), PollFd::new(&shared.nudge, PollFlags::IN)];
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(Error::Lost(format!("the connection broke: {error}"))),
        }
        let happened = fds[0].revents();
        if !fds[1].revents().is_empty() {
            shared.nudge.take();
        }
        (happened.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR), happened.contains(PollFlags::OUT))
    };
    if came {
        shared.reading.store(true, Ordering::SeqCst);
        match rustix::io::read(&shared.stream, &mut *buffer) {
            Ok(0) => return Err(Error::Lost("the server closed the connection".into())),
            Ok(count) => feed(shared, session, &buffer[..count])?,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
            Err(error) if error.kind() == ErrorKind::TimedOut => {
                return Err(Error::Lost("the server's machine does not answer any more".into()));
            }
            Err(error) => return Err(Error::Lost(format!("the connection broke: {error}"))),
        }
        shared.reading.store(false, Ordering::SeqCst);
    } else {
        session.check(now())?;
    }
    if takes {
        locked(&shared.state).flush(&shared.stream)?;
    }
    Ok(())
}

fn feed(shared: &Shared, session: &mut Session, bytes: &[u8]) -> Result<()> {
    let at = now();
    // Messages from before the server broke the protocol count too.
    let (events, broken) = match session.feed(bytes, at) {
        Ok(events) => (events, None),
        Err(violation) => (session.unread(), Some(violation)),
    };
    let answers = session.to_send();
    let mut state = locked(&shared.state);
    let (before, pointer) = (state.ticks, state.pointer);
    for event in events {
        state.absorb(event, at);
    }
    state.skipped.clear();
    state.skipped.extend_from_slice(session.skipped());
    if session.under_way() {
        state.arriving = at;
    }
    state.answer_with(&answers);
    let sent = if state.has_output() { shared.flush(&mut state).and_then(|()| state.check_unread()) } else { Ok(()) };
    let news = state.ticks != before;
    if state.pointer != pointer {
        state.point(&shared.screen);
    }
    drop(state);
    if news {
        shared.told.notify_all();
    }
    // A server that breaks the protocol and goes: the first is why.
    broken.map_or(sent, |violation| Err(violation.into()))
}

/// Makes requested files smaller, when there was no call for a while: one strip at a time, without the screen's lock.
/// Returns for how long there is nothing to do.
fn tighten(shared: &Shared) -> Duration {
    let Some(called) = *locked(&shared.called) else { return CHECK_PERIOD };
    let rest = TIGHTEN_AFTER.saturating_sub(called.elapsed());
    if !rest.is_zero() {
        return rest.min(CHECK_PERIOD);
    }
    if tighten_one(&shared.screen).unwrap_or(false) {
        return Duration::ZERO;
    }
    let mut latest = locked(&shared.called);
    if *latest == Some(called) {
        *latest = None;
        locked(&shared.screen).rest();
    }
    CHECK_PERIOD
}
