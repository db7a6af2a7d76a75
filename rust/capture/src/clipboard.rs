//! The clipboard, both ways, on a connection of its own: a selection must be served for as long as its text may be pasted, also
//! while nobody calls.

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
    SELECTION_NOTIFY_EVENT, SelectionNotifyEvent, SelectionRequestEvent, Window, WindowClass,
};
use x11rb::wrapper::ConnectionExt as _;

use crate::error::{Error, Result};
use crate::replies;
use crate::server::{Server, Target};
use crate::stream::Interrupt;

/// Above this a text goes in pieces (ICCCM §2.5 "large data transfers"); every server accepts properties of this size.
const PIECE: usize = 256 * 1024;
/// As much of a property is read at once.
const PART: u32 = 1 << 20;
/// A clipboard bigger than this is not text that somebody copied.
const READ_LIMIT: usize = 64 * 1024 * 1024;
/// Windows that a long text is on its way to.
const MOST_TRANSFERS: usize = 64;
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
    served: u64,
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
    pub fn open(target: &Target) -> Result<Self> {
        let party = Arc::new(Party::open(target, &Interrupt::never())?);
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
        let deadline = Instant::now() + timeout;
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
                return Err(Error::Timeout { what: what.to_owned(), seconds: timeout.as_secs_f64() });
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
            offer.version
        };
        let _ = rustix::io::write(&*self.nudge, &1_u64.to_ne_bytes());
        self.wait(timeout, interrupt, "owning the clipboard", |offer| offer.owned >= version)
    }

    /// Waits until the text last written was handed to somebody in full: the proof of a paste.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], [`Error::Lost`], [`Error::Interrupted`].
    pub fn wait_served(&self, timeout: Duration, interrupt: &Interrupt) -> Result<()> {
        self.wait(timeout, interrupt, "an application that takes the clipboard's text", |offer| offer.served > 0)
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

fn serve(party: &Party, shared: &Shared, nudge: &OwnedFd) -> Result<()> {
    let conn = &party.server.conn;
    let mut transfers: Vec<Transfer> = Vec::new();
    loop {
        while let Some(event) = conn.poll_for_event()? {
            match event {
                XEvent::SelectionRequest(request) => answer(party, shared, &request, &mut transfers)?,
                XEvent::PropertyNotify(change) if change.state == Property::DELETE => {
                    advance(party, shared, change.window, change.atom, &mut transfers)?;
                }
                XEvent::SelectionClear(_) => locked(&shared.offer).text = None,
                _ => {}
            }
        }
        conn.stream().events_read();
        {
            let mut offer = locked(&shared.offer);
            if offer.stop {
                return Ok(());
            }
            if offer.owned < offer.version {
                conn.set_selection_owner(party.window, party.server.atoms.CLIPBOARD, x11rb::CURRENT_TIME)?;
                let version = offer.version;
                drop(offer);
                party.server.round_trip()?;
                offer = locked(&shared.offer);
                offer.owned = offer.owned.max(version);
                shared.changed.notify_all();
                continue;
            }
        }
        conn.flush()?;
        let mut fds =
            [PollFd::new(nudge, PollFlags::IN), PollFd::from_borrowed_fd(conn.stream().as_fd(), PollFlags::IN)];
        let _ = poll(&mut fds, None);
        let _ = rustix::io::read(nudge, &mut [0; 8]);
    }
}

fn answer(
    party: &Party,
    shared: &Shared,
    request: &SelectionRequestEvent,
    transfers: &mut Vec<Transfer>,
) -> Result<()> {
    let Party { server, .. } = party;
    let (conn, atoms) = (&server.conn, &server.atoms);
    // Old clients leave the property out; the target's name serves then (ICCCM §2.2).
    let property = if request.property == x11rb::NONE { request.target } else { request.property };
    let (text, version) = {
        let offer = locked(&shared.offer);
        (offer.text.clone(), offer.version)
    };
    let texts = [atoms.UTF8_STRING, atoms.TEXT_PLAIN_UTF8];
    let answered = match text {
        Some(_) if request.target == atoms.TARGETS => {
            let targets = [atoms.TARGETS, atoms.UTF8_STRING, atoms.TEXT_PLAIN_UTF8];
            conn.change_property32(PropMode::REPLACE, request.requestor, property, AtomEnum::ATOM, &targets)?;
            property
        }
        Some(text) if texts.contains(&request.target) && text.len() > PIECE => {
            let events = ChangeWindowAttributesAux::new().event_mask(EventMask::PROPERTY_CHANGE);
            conn.change_window_attributes(request.requestor, &events)?;
            let size = [text.len() as u32];
            conn.change_property32(PropMode::REPLACE, request.requestor, property, atoms.INCR, &size)?;
            // One for each place, and not those of windows that went away in the middle of it.
            transfers.retain(|other| (other.window, other.property) != (request.requestor, property));
            if transfers.len() >= MOST_TRANSFERS {
                transfers.remove(0);
            }
            transfers.push(Transfer {
                window: request.requestor,
                property,
                kind: request.target,
                text,
                sent: 0,
                version,
            });
            property
        }
        Some(text) if texts.contains(&request.target) => {
            conn.change_property8(PropMode::REPLACE, request.requestor, property, request.target, &text)?;
            property
        }
        None | Some(_) => x11rb::NONE,
    };
    let notify = SelectionNotifyEvent {
        response_type: SELECTION_NOTIFY_EVENT,
        sequence: 0,
        time: request.time,
        requestor: request.requestor,
        selection: request.selection,
        target: request.target,
        property: answered,
    };
    conn.send_event(false, request.requestor, EventMask::NO_EVENT, notify)?;
    conn.flush()?;
    if answered != x11rb::NONE && texts.contains(&request.target) && transfers.iter().all(|t| t.version != version) {
        served(shared, version);
    }
    Ok(())
}

fn served(shared: &Shared, version: u64) {
    let mut offer = locked(&shared.offer);
    if offer.version == version {
        offer.served += 1;
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
        served(shared, version);
    }
    Ok(())
}
