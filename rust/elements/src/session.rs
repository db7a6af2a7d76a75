//! The connection to the accessibility bus, and the thread that receives events.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use link::{Interrupt, Nudge, WAIT_SLICE, locked};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::process::geteuid;
use rustix::time::Timespec;
use thiserror::Error;

use crate::ask::BUS;
use crate::collector::Collector;
use crate::node::Snapshot;
use crate::seen::Seen;
use crate::wire::{self, Kind, Malformed};

const PIECE: usize = 256 << 10;
/// Messages that are handled between two looks at the clock.
const PIECES: usize = 16;
const LONGEST_LINE: usize = 16 << 10;
/// Time after which a connection that accepts no data is given up.
const STUCK: Duration = Duration::from_secs(5);

/// Why the elements cannot be read.
#[derive(Debug, Error)]
pub enum Error {
    /// The bus has ended the connection, or was ended.
    #[error("the accessibility bus has gone")]
    Gone,
    /// The bus did not answer in time.
    #[error("the accessibility bus did not answer in time")]
    Silent,
    /// The bus refuses the connection.
    #[error("the accessibility bus refused the connection: {0}")]
    Refused(String),
    /// What it sent is not D-Bus.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The caller wants to stop.
    #[error("interrupted")]
    Interrupted,
    /// The system refused something.
    #[error("the connection to the accessibility bus failed: {0}")]
    System(#[from] Errno),
}

type Result<T> = std::result::Result<T, Error>;

/// What was read of the socket and is not handled yet.
#[derive(Default)]
struct Inbox {
    bytes: Vec<u8>,
    at: usize,
    /// Of a message that is too long to keep.
    leave_out: usize,
}

impl Inbox {
    /// Takes what is there now; false when nothing was.
    fn fill(&mut self, stream: &OwnedFd) -> Result<bool> {
        if self.at > 0 {
            self.bytes.drain(..self.at);
            self.at = 0;
        }
        let old = self.bytes.len();
        self.bytes.resize(old + PIECE, 0);
        let got = recv(stream, &mut self.bytes[old..], RecvFlags::DONTWAIT);
        let count = match got {
            Ok((0, _)) | Err(Errno::CONNRESET | Errno::PIPE) => Err(Error::Gone),
            Ok((count, _)) => Ok(count),
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            Err(error) => Err(error.into()),
        };
        self.bytes.truncate(old + count.as_ref().map_or(0, |count| *count));
        let count = count?;
        let skipped = self.leave_out.min(self.bytes.len() - old);
        if skipped > 0 {
            self.bytes.drain(old..old + skipped);
            self.leave_out -= skipped;
        }
        Ok(count > 0)
    }

    /// The next whole message; what is too long is left out.
    fn next(&mut self) -> Result<Option<&[u8]>> {
        let rest = &self.bytes[self.at..];
        let Some(length) = wire::length(rest)? else { return Ok(None) };
        if length > wire::LONGEST_MESSAGE {
            self.leave_out = length - rest.len().min(length);
            self.at = self.bytes.len().min(self.at + length);
            return Ok(None);
        }
        if rest.len() < length {
            return Ok(None);
        }
        let at = self.at;
        self.at += length;
        Ok(Some(&self.bytes[at..at + length]))
    }
}

struct State {
    collector: Collector,
    inbox: Inbox,
    /// What the socket has not taken yet.
    outbox: Vec<u8>,
    gone: bool,
    ending: bool,
}

struct Shared {
    stream: OwnedFd,
    nudge: Nudge,
    state: Mutex<State>,
}

/// A connection to the accessibility bus of one desktop.
pub struct Session {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Session {
    /// Begins a session on a socket that is connected to the bus.
    ///
    /// # Errors
    /// When the bus refuses the connection, or does not answer within `limit`.
    pub fn open(stream: OwnedFd, limit: Duration, stop: &Interrupt) -> Result<Self> {
        let inbox = greet(&stream, Instant::now() + limit, stop)?;
        let state = State { collector: Collector::new(), inbox, outbox: Vec::new(), gone: false, ending: false };
        let shared = Arc::new(Shared { stream, nudge: Nudge::new()?, state: Mutex::new(state) });
        let reader = Arc::clone(&shared);
        let thread = thread::Builder::new().name("deskhand-elements".into()).spawn(move || listen(&reader));
        let thread = thread.map_err(|_| Error::System(Errno::AGAIN))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Reads what is not known, or may be different, and returns all that shows.
    ///
    /// An application that has not answered within `limit` keeps its earlier elements, and is named.
    ///
    /// # Errors
    /// When the bus has gone, or the caller wants to stop.
    pub fn read(&self, seen: Seen, limit: Duration, stop: &Interrupt) -> Result<Snapshot> {
        let mut state = locked(&self.shared.state);
        if state.gone {
            return Err(Error::Gone);
        }
        let begun = Instant::now();
        state.collector.begin(seen, begun);
        let done = self.await_answers(&mut state, begun + limit, stop, Collector::is_done);
        state.collector.end();
        done?;
        Ok(state.collector.snapshot())
    }

    /// Asks an application to scroll an element to where it can be seen; false where it cannot, or does not answer in time.
    ///
    /// # Errors
    /// When the bus has gone, or the caller wants to stop.
    pub fn scroll_to(&self, reference: u64, limit: Duration, stop: &Interrupt) -> Result<bool> {
        let mut state = locked(&self.shared.state);
        if state.gone {
            return Err(Error::Gone);
        }
        state.collector.scroll_to(reference);
        let answered = |collector: &Collector| collector.scrolled().is_some();
        self.await_answers(&mut state, Instant::now() + limit, stop, answered)?;
        Ok(state.collector.scrolled() == Some(true))
    }

    /// How long ago a line was written in, in the application of an element; see [`Collector::since_written`].
    #[must_use]
    pub fn since_written(&self, reference: u64) -> Option<Duration> {
        locked(&self.shared.state).collector.since_written(reference, Instant::now())
    }

    fn await_answers(
        &self,
        state: &mut State,
        deadline: Instant,
        stop: &Interrupt,
        done: impl Fn(&Collector) -> bool,
    ) -> Result<()> {
        loop {
            let now = Instant::now();
            self.shared.handle(state, now)?;
            let next = state.collector.tick(now);
            self.shared.flush(state)?;
            if done(&state.collector) && state.outbox.is_empty() || now >= deadline {
                return Ok(());
            }
            let until = next.map_or(deadline, |next| next.min(deadline)).min(now + WAIT_SLICE);
            wait(&self.shared.stream, !state.outbox.is_empty(), until.saturating_duration_since(now))?;
            if stop.requested() {
                return Err(Error::Interrupted);
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        locked(&self.shared.state).ending = true;
        self.shared.nudge.send();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Handles all messages that have come.
    fn handle(&self, state: &mut State, now: Instant) -> Result<()> {
        let result = self.take(state, now);
        if result.is_err() {
            state.gone = true;
        }
        result
    }

    fn take(&self, state: &mut State, now: Instant) -> Result<()> {
        // A sender without end must not keep the caller waiting.
        for _ in 0..PIECES {
            let more = state.inbox.fill(&self.stream)?;
            while let Some(bytes) = state.inbox.next()? {
                state.collector.take(&wire::parse(bytes)?, now);
            }
            if !more {
                break;
            }
            // Answers make questions; they go out before the next are read.
            self.flush(state)?;
        }
        Ok(())
    }

    fn flush(&self, state: &mut State) -> Result<()> {
        state.outbox.append(&mut state.collector.take_output());
        while !state.outbox.is_empty() {
            match send(&self.stream, &state.outbox, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(count) => drop(state.outbox.drain(..count)),
                Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
                Err(_) => {
                    state.gone = true;
                    return Err(Error::Gone);
                }
            }
        }
        Ok(())
    }
}

/// Receives events between readings, so that they do not queue up on the bus.
fn listen(shared: &Shared) {
    loop {
        let mut fds = [PollFd::new(&shared.stream, PollFlags::IN), PollFd::new(&shared.nudge, PollFlags::IN)];
        if poll(&mut fds, None).is_err_and(|error| error != Errno::INTR) {
            return;
        }
        let mut state = locked(&shared.state);
        shared.nudge.take();
        if state.ending || state.gone || shared.handle(&mut state, Instant::now()).is_err() {
            return;
        }
        let _ = shared.flush(&mut state);
    }
}

fn wait(stream: &OwnedFd, output: bool, limit: Duration) -> Result<()> {
    let flags = if output { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
    let mut fds = [PollFd::new(stream, flags)];
    let limit = Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: i64::from(limit.subsec_nanos()) };
    match poll(&mut fds, Some(&limit)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn send_all(stream: &OwnedFd, mut bytes: &[u8]) -> Result<()> {
    let deadline = Instant::now() + STUCK;
    while !bytes.is_empty() {
        match send(stream, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::AGAIN | Errno::INTR) if Instant::now() < deadline => wait(stream, true, WAIT_SLICE)?,
            Err(_) => return Err(Error::Gone),
        }
    }
    Ok(())
}

/// Authenticates (SASL EXTERNAL, as in the D-Bus specification) and begins.
fn greet(stream: &OwnedFd, deadline: Instant, stop: &Interrupt) -> Result<Inbox> {
    // The digits of our number, each as its code in hexadecimal: 3 and the digit.
    let user: String = geteuid().as_raw().to_string().chars().flat_map(|digit| ['3', digit]).collect();
    send_all(stream, format!("\0AUTH EXTERNAL {user}\r\n").as_bytes())?;
    let mut inbox = Inbox::default();
    let line = loop {
        if let Some(end) = inbox.bytes.windows(2).position(|pair| pair == b"\r\n") {
            let line = String::from_utf8_lossy(&inbox.bytes[..end]).into_owned();
            inbox.bytes.drain(..end + 2);
            break line;
        }
        if inbox.bytes.len() > LONGEST_LINE {
            return Err(Error::Refused("its greeting is too long".into()));
        }
        more(&mut inbox, stream, deadline, stop)?;
    };
    if !line.starts_with("OK ") {
        return Err(Error::Refused(line.chars().filter(|sign| !sign.is_control()).take(200).collect()));
    }
    let mut out = b"BEGIN\r\n".to_vec();
    // Numbers of the collector begin at 1, and nobody answers this one to it.
    wire::call(&mut out, u32::MAX, (BUS, "/org/freedesktop/DBus"), (BUS, "Hello"), &[]);
    send_all(stream, &out)?;
    answer(&mut inbox, stream, u32::MAX, deadline, stop)?;
    Ok(inbox)
}

fn more(inbox: &mut Inbox, stream: &OwnedFd, deadline: Instant, stop: &Interrupt) -> Result<()> {
    while !inbox.fill(stream)? {
        let now = Instant::now();
        if now >= deadline {
            return Err(Error::Silent);
        }
        if stop.requested() {
            return Err(Error::Interrupted);
        }
        wait(stream, false, WAIT_SLICE.min(deadline - now))?;
    }
    Ok(())
}

/// The text that a call's answer begins with.
fn answer(inbox: &mut Inbox, stream: &OwnedFd, serial: u32, deadline: Instant, stop: &Interrupt) -> Result<String> {
    loop {
        while let Some(bytes) = inbox.next()? {
            let message = wire::parse(bytes)?;
            if message.reply_to == serial {
                let text = message.body().str()?.to_owned();
                return if message.kind == Kind::Return { Ok(text) } else { Err(Error::Refused(text)) };
            }
        }
        more(inbox, stream, deadline, stop)?;
    }
}

/// The address of the accessibility bus, asked of the session bus that `stream` is connected to.
///
/// # Errors
/// When there is none, or no answer comes within `limit`.
pub fn accessibility_address(stream: impl AsFd + Into<OwnedFd>, limit: Duration, stop: &Interrupt) -> Result<String> {
    let stream: OwnedFd = stream.into();
    let deadline = Instant::now() + limit;
    let mut inbox = greet(&stream, deadline, stop)?;
    let mut out = Vec::new();
    wire::call(&mut out, 1, ("org.a11y.Bus", "/org/a11y/bus"), ("org.a11y.Bus", "GetAddress"), &[]);
    send_all(&stream, &out)?;
    answer(&mut inbox, &stream, 1, deadline, stop)
}
