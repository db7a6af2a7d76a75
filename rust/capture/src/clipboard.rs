//! The clipboard, both ways, on a connection of its own: a selection must be served for as long as its text may be pasted, also
//! while nobody calls. For the time of a paste the primary selection may be owned too.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use x11rb::connection::{Connection, SequenceNumber};
use x11rb::protocol::Event as XEvent;
use x11rb::protocol::xproto::{
    Atom, AtomEnum, ChangeWindowAttributesAux, ConnectionExt as _, EventMask, PropMode, Property,
    SELECTION_NOTIFY_EVENT, SelectionNotifyEvent, SelectionRequestEvent, Timestamp, Window,
};
use x11rb::wrapper::ConnectionExt as _;

use crate::error::{Error, Result};
use crate::replies;
use crate::selection::{Contents, Copied, Kind, Party};
use crate::server::{Server, Target};
use crate::stream::{Interrupt, SILENCE_LIMIT};
use crate::windows::gone;

/// Above this a value goes in pieces (ICCCM §2.5 "large data transfers"); every server accepts properties of this size.
const PIECE: usize = 256 * 1024;
/// Values that are on their way in pieces.
const MOST_TRANSFERS: usize = 64;
/// Windows whose requests are remembered, and pairs of one request for several kinds.
const MOST_TAKERS: usize = 256;
const MOST_PAIRS: u32 = 64;
const WAIT_SLICE: Duration = Duration::from_millis(50);

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The selections that are served, by their place in lists.
const CLIPBOARD: usize = 0;
const PRIMARY: usize = 1;
const SELECTIONS: usize = 2;

fn atom_of(server: &Server, selection: usize) -> Atom {
    if selection == PRIMARY { AtomEnum::PRIMARY.into() } else { server.atoms.CLIPBOARD }
}

fn selection_of(server: &Server, atom: Atom) -> Option<usize> {
    (0..SELECTIONS).find(|&selection| atom_of(server, selection) == atom)
}

/// What one selection offers.
#[derive(Default)]
struct Offer {
    /// `None` when it is not ours.
    contents: Option<Contents>,
    version: u64,
    owned: u64,
    /// What it held before a text was lent; `None` when nothing is to be given back.
    before: Option<Contents>,
    /// Somebody has taken it between what it held before and the text.
    overtaken: bool,
}

#[derive(Default)]
struct Offers {
    of: [Offer; SELECTIONS],
    /// Of what was offered last.
    version: u64,
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

impl Offers {
    /// From now on these are handed out, once the selection is owned again.
    fn put(&mut self, selection: usize, contents: Contents) {
        let offer = &mut self.of[selection];
        (offer.contents, offer.version) = (Some(contents), self.version);
    }

    fn begin_version(&mut self) -> u64 {
        self.version += 1;
        self.served = 0;
        self.takers.clear();
        self.version
    }

    fn owned(&self) -> bool {
        self.of.iter().all(|offer| offer.owned == offer.version)
    }
}

#[derive(Default)]
struct Shared {
    offers: Mutex<Offers>,
    changed: Condvar,
}

/// Says that the thread has ended, when it ends, also by a panic.
struct Ended<'a>(&'a Shared);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        locked(&self.0.offers).ended = true;
        self.0.changed.notify_all();
    }
}

/// A value that does not fit one property, on its way to one window.
struct Transfer {
    window: Window,
    property: Atom,
    kind: Kind,
    sent: usize,
    /// The request that has put the latest piece there: what was deleted before is another one.
    put: SequenceNumber,
    version: u64,
}

/// Since when a selection is ours, and by which request.
#[derive(Clone, Copy, Default)]
struct Claim {
    since: Timestamp,
    request: SequenceNumber,
}

/// Owns the clipboard once something was written to it, and serves it from a thread.
pub struct Clipboard {
    target: Target,
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
        Ok(Self { target: target.clone(), shared, nudge, party, thread })
    }

    /// Its connection's socket.
    #[must_use]
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.party.server.conn.stream().as_fd()
    }

    fn wait(&self, timeout: Duration, interrupt: &Interrupt, what: &str, done: impl Fn(&Offers) -> bool) -> Result<()> {
        let limit = interrupt.left(timeout);
        let deadline = Instant::now() + limit;
        let mut offers = locked(&self.shared.offers);
        loop {
            if done(&offers) {
                return Ok(());
            }
            if offers.ended {
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
            (offers, _) = self.shared.changed.wait_timeout(offers, slice).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn nudge(&self) {
        let _ = rustix::io::write(&*self.nudge, &1_u64.to_ne_bytes());
    }

    fn wait_owned(&self, timeout: Duration, interrupt: &Interrupt) -> Result<()> {
        self.nudge();
        self.wait(timeout, interrupt, "owning the clipboard", Offers::owned)
    }

    /// The kinds that a text is offered as.
    fn text(&self, text: &str) -> Contents {
        let atoms = &self.party.server.atoms;
        let data: Arc<[u8]> = text.as_bytes().into();
        let kind = |target| Kind { target, type_: target, format: 8, data: Arc::clone(&data) };
        [atoms.UTF8_STRING, atoms.TEXT_PLAIN_UTF8].map(kind).into()
    }

    /// Owns the clipboard with this text from when this returns.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`], [`Error::Interrupted`].
    pub fn write(&self, text: &str, timeout: Duration, interrupt: &Interrupt) -> Result<()> {
        {
            let mut offers = locked(&self.shared.offers);
            offers.begin_version();
            offers.put(CLIPBOARD, self.text(text));
            offers.of[CLIPBOARD].before = None;
        }
        self.wait_owned(timeout, interrupt)
    }

    /// Owns the clipboard, and the primary selection if so wanted, with this text until [`Clipboard::give_back`], which offers
    /// again what was there before. Names what could not be kept for that (untrusted text).
    ///
    /// An owner that sends nothing is waited for until `timeout`; then this goes on without what it has.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`], [`Error::Interrupted`].
    pub fn lend(
        &self,
        text: &str,
        with_primary: bool,
        timeout: Duration,
        interrupt: &Interrupt,
    ) -> Result<Vec<String>> {
        // What of ours others have taken by now is known then.
        self.answered(timeout, interrupt)?;
        let selections = if with_primary { PRIMARY + 1 } else { CLIPBOARD + 1 };
        let foreign: Vec<usize> = {
            let offers = locked(&self.shared.offers);
            let is_foreign = |&selection: &usize| {
                let offer = &offers.of[selection];
                offer.before.is_none() && offer.contents.is_none()
            };
            (0..selections).filter(is_foreign).collect()
        };
        let asker = if foreign.is_empty() { None } else { Some(Party::open(&self.target, interrupt)?) };
        let mut found: [Option<Copied>; SELECTIONS] = Default::default();
        let deadline = Instant::now() + timeout;
        if let Some(asker) = &asker {
            for &selection in &foreign {
                let atom = atom_of(&asker.server, selection);
                asker.watch(atom)?;
                found[selection] = Some(asker.copied(atom, deadline, interrupt)?);
            }
        }
        {
            let text = self.text(text);
            let mut offers = locked(&self.shared.offers);
            offers.begin_version();
            for (selection, found) in found.iter_mut().enumerate().take(selections) {
                let kept = found.as_mut().map(|copied| std::mem::take(&mut copied.contents).into());
                let offer = &mut offers.of[selection];
                let before = offer.before.take().or(kept).or_else(|| offer.contents.take());
                // It was ours, and has become somebody else's since.
                offer.overtaken = before.is_none();
                offer.before = Some(before.unwrap_or_default());
                offers.put(selection, Arc::clone(&text));
            }
        }
        self.wait_owned(timeout, interrupt)?;
        self.answered(timeout, interrupt)?;
        self.not_kept(selections, &found, asker.as_ref())
    }

    /// Names of what was lost when a text was lent.
    fn not_kept(&self, selections: usize, found: &[Option<Copied>], asker: Option<&Party>) -> Result<Vec<String>> {
        let mut lost = Vec::new();
        for (selection, found) in found.iter().enumerate().take(selections) {
            let atom = atom_of(&self.party.server, selection);
            let (overtaken, names) = match (asker, found) {
                (Some(asker), Some(copied)) => {
                    (asker.was_taken(atom, self.party.window)?, asker.names(&copied.missing)?)
                }
                _ => (locked(&self.shared.offers).of[selection].overtaken, Vec::new()),
            };
            // Of what came between, not even the kinds are known.
            let names = if overtaken { vec!["TARGETS".to_owned()] } else { names };
            lost.extend(names.into_iter().map(|name| match selection {
                PRIMARY => format!("PRIMARY {name}"),
                _ => name,
            }));
        }
        Ok(lost)
    }

    /// Offers again what was there before a text was lent.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`], [`Error::Interrupted`].
    pub fn give_back(&self, timeout: Duration, interrupt: &Interrupt) -> Result<()> {
        {
            let mut offers = locked(&self.shared.offers);
            offers.begin_version();
            for selection in 0..SELECTIONS {
                if let Some(before) = offers.of[selection].before.clone() {
                    offers.put(selection, before);
                }
            }
        }
        self.wait_owned(timeout, interrupt)?;
        for offer in &mut locked(&self.shared.offers).of {
            offer.before = None;
        }
        Ok(())
    }

    /// How many requests were answered, once all are that the server has passed on so far.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], [`Error::Lost`], [`Error::Interrupted`].
    pub fn answered(&self, timeout: Duration, interrupt: &Interrupt) -> Result<u64> {
        let wanted = {
            let mut offers = locked(&self.shared.offers);
            offers.wanted += 1;
            offers.wanted
        };
        self.nudge();
        self.wait(timeout, interrupt, "answering who asks for the clipboard", |offers| offers.caught_up >= wanted)?;
        Ok(locked(&self.shared.offers).answered)
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
            self.wait(left, interrupt, what, |offers| offers.served > seen).map_err(|error| match error {
                Error::Timeout { what, .. } => Error::Timeout { what, seconds: timeout.as_secs_f64() },
                other => other,
            })?;
            let takers = {
                let offers = locked(&self.shared.offers);
                seen = offers.served;
                offers.takers.clone()
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
        locked(&self.shared.offers).stop = true;
        self.nudge();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(party: &Party, shared: &Shared, nudge: &OwnedFd) -> Result<()> {
    let conn = &party.server.conn;
    let slot = party.server.atoms._DESKHAND_CLIPBOARD;
    let mut transfers: Vec<Transfer> = Vec::new();
    let mut claims = [Claim::default(); SELECTIONS];
    let mut asking = false;
    // All that the server had passed on when it was read up to there is answered.
    let mut read = 0;
    loop {
        while let Some((event, sequence)) = conn.poll_for_event_with_sequence()? {
            match event {
                XEvent::SelectionRequest(request) => answer(party, shared, &request, &claims, &mut transfers)?,
                // Anybody can change our property: it counts when we have asked for the time.
                XEvent::PropertyNotify(change) if asking && change.window == party.window && change.atom == slot => {
                    asking = false;
                    own(party, shared, change.time, &mut claims)?;
                }
                XEvent::PropertyNotify(change) if change.state == Property::DELETE => {
                    advance(party, shared, (change.window, change.atom), sequence, &mut transfers)?;
                }
                XEvent::DestroyNotify(gone) => transfers.retain(|transfer| transfer.window != gone.window),
                XEvent::SelectionClear(clear) => {
                    if let Some(selection) = selection_of(&party.server, clear.selection) {
                        let offer = &mut locked(&shared.offers).of[selection];
                        // It may be about an ownership before this one, or there is something new already.
                        if offer.owned != offer.version || sequence < claims[selection].request {
                            offer.overtaken = true;
                        } else {
                            offer.contents = None;
                        }
                    }
                }
                _ => {}
            }
        }
        conn.stream().events_read();
        {
            let mut offers = locked(&shared.offers);
            if offers.stop {
                return Ok(());
            }
            if offers.caught_up < read {
                offers.caught_up = read;
                shared.changed.notify_all();
            }
            if read < offers.wanted {
                read = offers.wanted;
                drop(offers);
                party.server.round_trip()?;
                continue;
            }
            if !offers.owned() && !asking {
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

/// Owns what is to be owned from `time` on, unless somebody has taken it since.
fn own(party: &Party, shared: &Shared, time: Timestamp, claims: &mut [Claim]) -> Result<()> {
    let Party { server, window } = party;
    for (selection, claim) in claims.iter_mut().enumerate() {
        let version = {
            let offer = &locked(&shared.offers).of[selection];
            if offer.owned == offer.version {
                continue;
            }
            offer.version
        };
        let atom = atom_of(server, selection);
        let request = server.conn.set_selection_owner(*window, atom, time)?.sequence_number();
        *claim = Claim { since: time, request };
        if server.conn.get_selection_owner(atom)?.reply()?.owner == *window {
            locked(&shared.offers).of[selection].owned = version;
            shared.changed.notify_all();
        }
    }
    Ok(())
}

fn answer(
    party: &Party,
    shared: &Shared,
    request: &SelectionRequestEvent,
    claims: &[Claim],
    transfers: &mut Vec<Transfer>,
) -> Result<()> {
    let Party { server, .. } = party;
    let conn = &server.conn;
    let asked = selection_of(server, request.selection).and_then(|selection| {
        let offer = &locked(&shared.offers).of[selection];
        Some((offer.contents.clone()?, offer.version, claims[selection].since))
    });
    // Old clients leave the property out; the target's name serves then (ICCCM §2.2).
    let property = if request.property == x11rb::NONE { request.target } else { request.property };
    let mut hand = |target, property| match &asked {
        Some(asked) => convert(party, (request.requestor, target, property), asked, transfers),
        None => Ok(Handed::Nothing),
    };
    let mut handed = Handed::Nothing;
    if request.target == server.atoms.MULTIPLE && request.property != x11rb::NONE {
        let pairs = conn.get_property(false, request.requestor, property, AtomEnum::ANY, 0, 2 * MOST_PAIRS)?.reply();
        // Whoever asked may have gone.
        let pairs = gone(pairs.map_err(Error::from))?.and_then(|pairs| pairs.value32().map(Iterator::collect));
        let pairs = replies::at_most(pairs.unwrap_or_default(), 2 * MOST_PAIRS);
        let mut answers = Vec::with_capacity(pairs.len());
        for pair in pairs.chunks_exact(2) {
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
    locked(&shared.offers).answered += 1;
    if let (Handed::Whole, Some((_, version, _))) = (handed, asked) {
        served(shared, version, request.requestor);
    }
    Ok(())
}

/// What came of a request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Handed {
    Nothing,
    /// What the selection offers, or the beginning of a long value.
    About,
    /// A value, in full.
    Whole,
}

/// Puts what was asked for on the requestor's property.
fn convert(
    party: &Party,
    (requestor, target, property): (Window, Atom, Atom),
    (contents, version, since): &(Contents, u64, Timestamp),
    transfers: &mut Vec<Transfer>,
) -> Result<Handed> {
    let (conn, atoms) = (&party.server.conn, &party.server.atoms);
    if target == atoms.TARGETS {
        let about = [atoms.TARGETS, atoms.TIMESTAMP, atoms.MULTIPLE];
        let targets: Vec<Atom> = about.into_iter().chain(contents.iter().map(|kind| kind.target)).collect();
        conn.change_property32(PropMode::REPLACE, requestor, property, AtomEnum::ATOM, &targets)?;
        return Ok(Handed::About);
    }
    if target == atoms.TIMESTAMP {
        conn.change_property32(PropMode::REPLACE, requestor, property, AtomEnum::INTEGER, &[*since])?;
        return Ok(Handed::About);
    }
    let Some(kind) = contents.iter().find(|kind| kind.target == target) else { return Ok(Handed::Nothing) };
    // One for each place, and whoever asks again has given up the one before.
    transfers.retain(|other| (other.window, other.property) != (requestor, property));
    if kind.data.len() <= PIECE {
        put(party, (requestor, property), kind, &kind.data)?;
        return Ok(Handed::Whole);
    }
    let events = ChangeWindowAttributesAux::new().event_mask(EventMask::PROPERTY_CHANGE | EventMask::STRUCTURE_NOTIFY);
    conn.change_window_attributes(requestor, &events)?;
    let size = [kind.data.len() as u32];
    let put = conn.change_property32(PropMode::REPLACE, requestor, property, atoms.INCR, &size)?.sequence_number();
    if transfers.len() >= MOST_TRANSFERS {
        transfers.remove(0);
    }
    transfers.push(Transfer { window: requestor, property, kind: kind.clone(), sent: 0, put, version: *version });
    Ok(Handed::About)
}

/// Puts a value, or a piece of it, on a property; the number of the request.
fn put(party: &Party, (window, property): (Window, Atom), kind: &Kind, data: &[u8]) -> Result<SequenceNumber> {
    let count = data.len() / usize::from(kind.format / 8).max(1);
    let (mode, type_, format) = (PropMode::REPLACE, kind.type_, kind.format);
    let conn = &party.server.conn;
    Ok(conn.change_property(mode, window, property, type_, format, count as u32, data)?.sequence_number())
}

fn served(shared: &Shared, version: u64, window: Window) {
    let mut offers = locked(&shared.offers);
    if offers.version == version {
        offers.served += 1;
        if offers.takers.len() >= MOST_TAKERS
            && let Some(oldest) = offers.takers.iter().min_by_key(|(_, at)| **at).map(|(&window, _)| window)
        {
            offers.takers.remove(&oldest);
        }
        offers.takers.insert(window, Instant::now());
        shared.changed.notify_all();
    }
}

/// The requestor took the last piece: the next one, or an empty one as the end.
fn advance(
    party: &Party,
    shared: &Shared,
    place: (Window, Atom),
    sequence: SequenceNumber,
    transfers: &mut Vec<Transfer>,
) -> Result<()> {
    let Some(index) = transfers.iter().position(|transfer| (transfer.window, transfer.property) == place) else {
        return Ok(());
    };
    let transfer = &mut transfers[index];
    // What was on the property before, such as a piece for who has asked anew since.
    if sequence < transfer.put {
        return Ok(());
    }
    locked(&shared.offers).answered += 1;
    let end = (transfer.sent + PIECE).min(transfer.kind.data.len());
    let piece = &transfer.kind.data[transfer.sent..end];
    let done = piece.is_empty();
    transfer.put = put(party, place, &transfer.kind, piece)?;
    party.server.conn.flush()?;
    transfer.sent = end;
    if done {
        let version = transfer.version;
        transfers.remove(index);
        served(shared, version, place.0);
    }
    Ok(())
}
