//! The clipboard, both ways, on a connection of its own: a selection must be served for as long as its text may be pasted, also
//! while nobody calls.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use x11rb::connection::Connection;
use x11rb::protocol::Event as XEvent;
use x11rb::protocol::xfixes::{ConnectionExt as _, SelectionEvent, SelectionEventMask};
use x11rb::protocol::xproto::{
    Atom, AtomEnum, ChangeWindowAttributesAux, ConnectionExt as _, CreateWindowAux, EventMask, PropMode, Property,
    SELECTION_NOTIFY_EVENT, SelectionNotifyEvent, SelectionRequestEvent, Timestamp, Window, WindowClass,
};
use x11rb::wrapper::ConnectionExt as _;

use crate::error::{Error, Result};
use crate::replies;
use crate::server::{Server, Target};
use crate::stream::{Interrupt, SILENCE_LIMIT};
use crate::windows::gone;

/// Above this a text goes in pieces (ICCCM §2.5 "large data transfers"); every server accepts properties of this size.
const PIECE: usize = 256 * 1024;
/// As much of a property is read at once.
const PART: u32 = 1 << 20;
/// A clipboard bigger than this is not text that somebody copied.
const READ_LIMIT: usize = 64 * 1024 * 1024;
/// Windows that a long text is on its way to.
const MOST_TRANSFERS: usize = 64;
/// Windows whose requests are remembered, and pairs of one request for several kinds.
const MOST_TAKERS: usize = 256;
const MOST_PAIRS: u32 = 64;
const WAIT_SLICE: Duration = Duration::from_millis(50);

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A connection with one invisible window that can own or ask for a selection.
struct Party {
    server: Server,
    window: Window,
}

impl Party {
    fn open(target: &Target, interrupt: &Interrupt) -> Result<Self> {
        // The desktop's first connection was made: that this one cannot be says that the server has gone since.
        let server = Server::open(target, interrupt).map_err(|error| match error {
            Error::Connect { reason, .. } => Error::Lost(reason),
            other => other,
        })?;
        Self::on(server)
    }

    fn on(server: Server) -> Result<Self> {
        let window = server.conn.generate_id()?;
        let events = CreateWindowAux::new().event_mask(EventMask::PROPERTY_CHANGE);
        server.conn.create_window(0, window, server.root, -1, -1, 1, 1, 0, WindowClass::INPUT_ONLY, 0, &events)?;
        server.conn.flush()?;
        Ok(Self { server, window })
    }

    fn next_event(&self, deadline: Instant, interrupt: &Interrupt, what: &str, limit: Duration) -> Result<XEvent> {
        loop {
            // Before the event: there may always be another one that says nothing.
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Error::Timeout { what: what.to_owned(), seconds: limit.as_secs_f64() });
            }
            if let Some(event) = self.server.conn.poll_for_event()? {
                return Ok(event);
            }
            self.server.conn.stream().events_read();
            if !self.server.conn.stream().wait_readable(left.min(WAIT_SLICE))? && interrupt.requested() {
                return Err(Error::Interrupted);
            }
        }
    }
}

/// The clipboard's text; `None` when it is empty or holds no text.
///
/// # Errors
///
/// [`Error::Timeout`] when the owner does not deliver in time, [`Error::Unsupported`] beyond 64 MiB, [`Error::Lost`].
pub fn read(target: &Target, timeout: Duration, interrupt: &Interrupt) -> Result<Option<String>> {
    read_through(&Party::open(target, interrupt)?, timeout, interrupt)
}

/// The same through a connection that is there.
#[cfg(feature = "fuzzing")]
pub(crate) fn read_on(server: Server, timeout: Duration) -> Result<Option<String>> {
    read_through(&Party::on(server)?, timeout, &Interrupt::never())
}

fn read_through(party: &Party, timeout: Duration, interrupt: &Interrupt) -> Result<Option<String>> {
    let atoms = &party.server.atoms;
    let latin1 = u32::from(AtomEnum::STRING);
    let changes = SelectionEventMask::SET_SELECTION_OWNER
        | SelectionEventMask::SELECTION_WINDOW_DESTROY
        | SelectionEventMask::SELECTION_CLIENT_CLOSE;
    party.server.conn.xfixes_select_selection_input(party.window, atoms.CLIPBOARD, changes)?;
    // Some owners (xclip) hand out whatever they have, a picture too, under any name that they are asked for.
    let offered = read_as(party, atoms.TARGETS, timeout, interrupt)?.map(|bytes| {
        bytes.chunks_exact(4).map(|atom| Atom::from_ne_bytes([atom[0], atom[1], atom[2], atom[3]])).collect::<Vec<_>>()
    });
    for kind in [atoms.UTF8_STRING, atoms.TEXT_PLAIN_UTF8, latin1] {
        if offered.as_ref().is_some_and(|offered| !offered.contains(&kind)) {
            continue;
        }
        if let Some(bytes) = read_as(party, kind, timeout, interrupt)? {
            let text = if kind == latin1 {
                bytes.iter().map(|&byte| char::from(byte)).collect()
            } else {
                String::from_utf8_lossy(&bytes).into_owned()
            };
            return Ok(Some(text));
        }
    }
    Ok(None)
}

fn read_as(party: &Party, kind: Atom, timeout: Duration, interrupt: &Interrupt) -> Result<Option<Vec<u8>>> {
    let Party { server, window } = party;
    let (conn, atoms) = (&server.conn, &server.atoms);
    let slot = atoms._DESKHAND_CLIPBOARD;
    let deadline = Instant::now() + timeout;
    let awaited = "the owner of the clipboard";
    let ask = || -> Result<()> {
        conn.convert_selection(*window, atoms.CLIPBOARD, kind, slot, x11rb::CURRENT_TIME)?;
        Ok(conn.flush()?)
    };
    ask()?;
    loop {
        match party.next_event(deadline, interrupt, awaited, timeout)? {
            XEvent::SelectionNotify(notify) if notify.target != kind => {}
            XEvent::SelectionNotify(notify) if notify.property == x11rb::NONE => return Ok(None),
            XEvent::SelectionNotify(_) => break,
            // Whoever was asked may have gone without an answer; for one who is no more, the server answers.
            XEvent::XfixesSelectionNotify(_) => ask()?,
            _ => {}
        }
    }
    // The server deletes the property with the part that has nothing after it.
    let take = || -> Result<(Atom, Vec<u8>)> {
        let (mut value, mut offset) = (Vec::new(), 0);
        loop {
            let reply = conn.get_property(true, *window, slot, AtomEnum::ANY, offset, PART / 4)?.reply()?;
            value.extend_from_slice(&replies::at_most(reply.value, PART));
            if reply.bytes_after == 0 {
                return Ok((reply.type_, value));
            }
            offset += PART / 4;
            // A part that is not the last one is whole.
            if value.len() != 4 * offset as usize || value.len() > READ_LIMIT {
                return Err(too_big());
            }
        }
    };
    let (type_, value) = take()?;
    if type_ != atoms.INCR {
        return Ok(Some(value));
    }
    let mut text = Vec::new();
    loop {
        let change = match party.next_event(deadline, interrupt, awaited, timeout)? {
            XEvent::PropertyNotify(change) => change,
            XEvent::XfixesSelectionNotify(change) if change.subtype == SelectionEvent::SELECTION_CLIENT_CLOSE => {
                return Ok(None);
            }
            _ => continue,
        };
        if change.atom != slot || change.state != Property::NEW_VALUE {
            continue;
        }
        let (_, piece) = take()?;
        if piece.is_empty() {
            return Ok(Some(text));
        }
        text.extend_from_slice(&piece);
        if text.len() > READ_LIMIT {
            return Err(too_big());
        }
    }
}

fn too_big() -> Error {
    Error::Unsupported(format!("the clipboard holds more than {} MiB", READ_LIMIT >> 20))
}

#[derive(Default)]
struct Offer {
    text: Option<Arc<[u8]>>,
    version: u64,
    owned: u64,
    /// How often it was handed to anybody in full, and when last to which window.
    served: u64,
    takers: HashMap<Window, Instant>,
    /// Requests answered, of every kind.
    answered: u64,
    /// How often somebody has asked for all that have come to be answered, and up to which time they are.
    wanted: u64,
    caught_up: u64,
    ended: bool,
    stop: bool,
}

#[derive(Default)]
struct Shared {
    offer: Mutex<Offer>,
    changed: Condvar,
}

/// Says that the thread has ended, when it ends, also by a panic.
struct Ended<'a>(&'a Shared);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        locked(&self.0.offer).ended = true;
        self.0.changed.notify_all();
    }
}

/// A text that does not fit one property, on its way to one window.
struct Transfer {
    window: Window,
    property: Atom,
    kind: Atom,
    text: Arc<[u8]>,
    sent: usize,
    version: u64,
}

/// Owns the clipboard once something was written to it, and serves it from a thread.
pub struct Clipboard {
    shared: Arc<Shared>,
    nudge: Arc<OwnedFd>,
    party: Arc<Party>,
    thread: Option<JoinHandle<()>>,
}

impl Clipboard {
    /// Opens the connection; nothing is owned yet.
    ///
    /// # Errors
    ///
    /// As [`Server::open`].
    pub fn open(target: &Target, caller: &Interrupt) -> Result<Self> {
        // The connection is served when nobody calls, too: only to open it is what the caller waits for.
        let interrupt = Interrupt::never();
        interrupt.allow(Some(caller.left(SILENCE_LIMIT)));
        let party = Arc::new(Party::open(target, &interrupt)?);
        interrupt.allow(None);
        let shared = Arc::new(Shared::default());
        let nudge = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|errno| Error::Unsupported(format!("eventfd: {errno}")))?;
        let nudge = Arc::new(nudge);
        let thread = std::thread::Builder::new().name("deskhand-clipboard".into()).spawn({
            let (shared, nudge, party) = (Arc::clone(&shared), Arc::clone(&nudge), Arc::clone(&party));
            move || {
                let _ended = Ended(&shared);
                let _ = serve(&party, &shared, &nudge);
            }
        });
        let thread = Some(thread.map_err(|error| Error::Unsupported(format!("no thread: {error}")))?);
        Ok(Self { shared, nudge, party, thread })
    }

    /// Its connection's socket.
    #[must_use]
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.party.server.conn.stream().as_fd()
    }

    fn wait(&self, timeout: Duration, interrupt: &Interrupt, what: &str, done: impl Fn(&Offer) -> bool) -> Result<()> {
        let limit = interrupt.left(timeout);
        let deadline = Instant::now() + limit;
        let mut offer = locked(&self.shared.offer);
        loop {
            if done(&offer) {
                return Ok(());
            }
            if offer.ended {
                return Err(Error::Lost("the clipboard's connection ended".into()));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Error::Timeout { what: what.to_owned(), seconds: limit.as_secs_f64() });
            }
            if interrupt.requested() {
                return Err(Error::Interrupted);
            }
            let slice = left.min(WAIT_SLICE);
            (offer, _) = self.shared.changed.wait_timeout(offer, slice).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Owns the clipboard with this text from when this returns.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`], [`Error::Interrupted`].
    pub fn write(&self, text: &str, timeout: Duration, interrupt: &Interrupt) -> Result<()> {
        let version = {
            let mut offer = locked(&self.shared.offer);
            offer.text = Some(text.as_bytes().into());
            offer.version += 1;
            offer.served = 0;
            offer.takers.clear();
            offer.version
        };
        let _ = rustix::io::write(&*self.nudge, &1_u64.to_ne_bytes());
        self.wait(timeout, interrupt, "owning the clipboard", |offer| offer.owned >= version)
    }

    /// How many requests were answered, once all are that the server has passed on so far.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], [`Error::Lost`], [`Error::Interrupted`].
    pub fn answered(&self, timeout: Duration, interrupt: &Interrupt) -> Result<u64> {
        let wanted = {
            let mut offer = locked(&self.shared.offer);
            offer.wanted += 1;
            offer.wanted
        };
        let _ = rustix::io::write(&*self.nudge, &1_u64.to_ne_bytes());
        self.wait(timeout, interrupt, "answering who asks for the clipboard", |offer| offer.caught_up >= wanted)?;
        Ok(locked(&self.shared.offer).answered)
    }

    /// Waits until the text last written was handed in full to a window that `counts`, which is asked with the time of that: the
    /// proof of a paste. Clipboard managers take whatever comes.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], [`Error::Lost`], [`Error::Interrupted`], and those of `counts`.
    pub fn wait_taken(
        &self,
        timeout: Duration,
        interrupt: &Interrupt,
        mut counts: impl FnMut(Window, Instant) -> Result<bool>,
    ) -> Result<()> {
        let deadline = Instant::now() + timeout;
        let mut seen = 0;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let what = if seen == 0 {
                "an application that takes the clipboard's text"
            } else {
                "the application with the keyboard to take the clipboard's text, which only others did"
            };
            self.wait(left, interrupt, what, |offer| offer.served > seen).map_err(|error| match error {
                Error::Timeout { what, .. } => Error::Timeout { what, seconds: timeout.as_secs_f64() },
                other => other,
            })?;
            let takers = {
                let offer = locked(&self.shared.offer);
                seen = offer.served;
                offer.takers.clone()
            };
            for (window, at) in takers {
                if counts(window, at)? {
                    return Ok(());
                }
            }
        }
    }
}

impl Drop for Clipboard {
    fn drop(&mut self) {
        locked(&self.shared.offer).stop = true;
        let _ = rustix::io::write(&*self.nudge, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// True when a server's time, which begins anew every 49 days, is before another one.
fn is_before(time: Timestamp, other: Timestamp) -> bool {
    time.wrapping_sub(other).cast_signed() < 0
}

fn serve(party: &Party, shared: &Shared, nudge: &OwnedFd) -> Result<()> {
    let conn = &party.server.conn;
    let slot = party.server.atoms._DESKHAND_CLIPBOARD;
    let mut transfers: Vec<Transfer> = Vec::new();
    let mut asking = false;
    let mut since = x11rb::CURRENT_TIME;
    // All that the server had passed on when it was read up to there is answered.
    let mut read = 0;
    loop {
        while let Some(event) = conn.poll_for_event()? {
            match event {
                XEvent::SelectionRequest(request) => answer(party, shared, &request, since, &mut transfers)?,
                // Anybody can change our property: it counts when we have asked for the time.
                XEvent::PropertyNotify(change) if asking && change.window == party.window && change.atom == slot => {
                    asking = false;
                    since = change.time;
                    own(party, shared, since)?;
                }
                XEvent::PropertyNotify(change) if change.state == Property::DELETE => {
                    advance(party, shared, change.window, change.atom, &mut transfers)?;
                }
                XEvent::SelectionClear(clear) => {
                    let mut offer = locked(&shared.offer);
                    // It may be about an ownership before this one, or there is a new text already.
                    if offer.owned == offer.version && !is_before(clear.time, since) {
                        offer.text = None;
                    }
                }
                _ => {}
            }
        }
        conn.stream().events_read();
        {
            let mut offer = locked(&shared.offer);
            if offer.stop {
                return Ok(());
            }
            if offer.caught_up < read {
                offer.caught_up = read;
                shared.changed.notify_all();
            }
            if read < offer.wanted {
                read = offer.wanted;
                drop(offer);
                party.server.round_trip()?;
                continue;
            }
            if offer.owned < offer.version && !asking {
                // The change of a property of ours tells the server's time, with which a selection is to be taken (ICCCM §2.1).
                asking = true;
                conn.change_property8(PropMode::APPEND, party.window, slot, AtomEnum::STRING, &[])?;
            }
        }
        conn.flush()?;
        let mut fds =
            [PollFd::new(nudge, PollFlags::IN), PollFd::from_borrowed_fd(conn.stream().as_fd(), PollFlags::IN)];
        let _ = poll(&mut fds, None);
        let _ = rustix::io::read(nudge, &mut [0; 8]);
    }
}

/// Owns the clipboard from `time` on, unless somebody has taken it since.
fn own(party: &Party, shared: &Shared, time: Timestamp) -> Result<()> {
    let Party { server, window } = party;
    let version = locked(&shared.offer).version;
    server.conn.set_selection_owner(*window, server.atoms.CLIPBOARD, time)?;
    if server.conn.get_selection_owner(server.atoms.CLIPBOARD)?.reply()?.owner == *window {
        let mut offer = locked(&shared.offer);
        offer.owned = offer.owned.max(version);
        shared.changed.notify_all();
    }
    Ok(())
}

fn answer(
    party: &Party,
    shared: &Shared,
    request: &SelectionRequestEvent,
    since: Timestamp,
    transfers: &mut Vec<Transfer>,
) -> Result<()> {
    let Party { server, .. } = party;
    let conn = &server.conn;
    let (text, version) = {
        let offer = locked(&shared.offer);
        (offer.text.clone(), offer.version)
    };
    // Old clients leave the property out; the target's name serves then (ICCCM §2.2).
    let property = if request.property == x11rb::NONE { request.target } else { request.property };
    let mut hand = |target, property| match &text {
        Some(text) => convert(party, (request.requestor, target, property), (text, version, since), transfers),
        None => Ok(Handed::Nothing),
    };
    let mut handed = Handed::Nothing;
    if request.target == server.atoms.MULTIPLE && request.property != x11rb::NONE {
        let asked = conn.get_property(false, request.requestor, property, AtomEnum::ANY, 0, 2 * MOST_PAIRS)?.reply();
        // Whoever asked may have gone.
        let asked = gone(asked.map_err(Error::from))?.and_then(|asked| asked.value32().map(Iterator::collect));
        let asked = replies::at_most(asked.unwrap_or_default(), 2 * MOST_PAIRS);
        let mut answers = Vec::with_capacity(asked.len());
        for pair in asked.chunks_exact(2) {
            let one = hand(pair[0], pair[1])?;
            answers.extend([pair[0], if one == Handed::Nothing { x11rb::NONE } else { pair[1] }]);
            handed = handed.max(one);
        }
        if !answers.is_empty() {
            let pairs = server.atoms.ATOM_PAIR;
            conn.change_property32(PropMode::REPLACE, request.requestor, property, pairs, &answers)?;
            handed = handed.max(Handed::About);
        }
    } else {
        handed = hand(request.target, property)?;
    }
    let notify = SelectionNotifyEvent {
        response_type: SELECTION_NOTIFY_EVENT,
        sequence: 0,
        time: request.time,
        requestor: request.requestor,
        selection: request.selection,
        target: request.target,
        property: if handed == Handed::Nothing { x11rb::NONE } else { property },
    };
    conn.send_event(false, request.requestor, EventMask::NO_EVENT, notify)?;
    conn.flush()?;
    locked(&shared.offer).answered += 1;
    if handed == Handed::Text {
        served(shared, version, request.requestor);
    }
    Ok(())
}

/// What came of a request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Handed {
    Nothing,
    /// What the clipboard offers, or the beginning of a long text.
    About,
    /// The text, in full.
    Text,
}

/// Puts what was asked for on the requestor's property.
fn convert(
    party: &Party,
    (requestor, target, property): (Window, Atom, Atom),
    (text, version, since): (&Arc<[u8]>, u64, Timestamp),
    transfers: &mut Vec<Transfer>,
) -> Result<Handed> {
    let (conn, atoms) = (&party.server.conn, &party.server.atoms);
    if target == atoms.TARGETS {
        let targets = [atoms.TARGETS, atoms.TIMESTAMP, atoms.MULTIPLE, atoms.UTF8_STRING, atoms.TEXT_PLAIN_UTF8];
        conn.change_property32(PropMode::REPLACE, requestor, property, AtomEnum::ATOM, &targets)?;
        Ok(Handed::About)
    } else if target == atoms.TIMESTAMP {
        conn.change_property32(PropMode::REPLACE, requestor, property, AtomEnum::INTEGER, &[since])?;
        Ok(Handed::About)
    } else if ![atoms.UTF8_STRING, atoms.TEXT_PLAIN_UTF8].contains(&target) {
        Ok(Handed::Nothing)
    } else if text.len() <= PIECE {
        conn.change_property8(PropMode::REPLACE, requestor, property, target, text)?;
        Ok(Handed::Text)
    } else {
        let events = ChangeWindowAttributesAux::new().event_mask(EventMask::PROPERTY_CHANGE);
        conn.change_window_attributes(requestor, &events)?;
        let size = [text.len() as u32];
        conn.change_property32(PropMode::REPLACE, requestor, property, atoms.INCR, &size)?;
        // One for each place, and not those of windows that went away in the middle of it.
        transfers.retain(|other| (other.window, other.property) != (requestor, property));
        if transfers.len() >= MOST_TRANSFERS {
            transfers.remove(0);
        }
        let text = Arc::clone(text);
        transfers.push(Transfer { window: requestor, property, kind: target, text, sent: 0, version });
        Ok(Handed::About)
    }
}

fn served(shared: &Shared, version: u64, window: Window) {
    let mut offer = locked(&shared.offer);
    if offer.version == version {
        offer.served += 1;
        if offer.takers.len() >= MOST_TAKERS
            && let Some(oldest) = offer.takers.iter().min_by_key(|(_, at)| **at).map(|(&window, _)| window)
        {
            offer.takers.remove(&oldest);
        }
        offer.takers.insert(window, Instant::now());
        shared.changed.notify_all();
    }
}

/// The requestor took the last piece: the next one, or an empty one as the end.
fn advance(
    party: &Party,
    shared: &Shared,
    window: Window,
    property: Atom,
    transfers: &mut Vec<Transfer>,
) -> Result<()> {
    let Some(index) = transfers.iter().position(|t| t.window == window && t.property == property) else {
        return Ok(());
    };
    locked(&shared.offer).answered += 1;
    let transfer = &mut transfers[index];
    let end = (transfer.sent + PIECE).min(transfer.text.len());
    let piece = &transfer.text[transfer.sent..end];
    let done = piece.is_empty();
    party.server.conn.change_property8(PropMode::REPLACE, window, property, transfer.kind, piece)?;
    party.server.conn.flush()?;
    transfer.sent = end;
    if done {
        let version = transfer.version;
        transfers.remove(index);
        served(shared, version, window);
    }
    Ok(())
}
