//! Hands out what the selections offer, on the clipboard's own thread (ICCCM §2).

use link::{Nudge, locked};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::AsFd;
use x11rb::connection::{Connection, SequenceNumber};
use x11rb::protocol::Event as XEvent;
use x11rb::protocol::xproto::{
    Atom, AtomEnum, ChangeWindowAttributesAux, ConnectionExt as _, EventMask, PropMode, Property,
    SELECTION_NOTIFY_EVENT, SelectionNotifyEvent, SelectionRequestEvent, Timestamp, Window,
};
use x11rb::wrapper::ConnectionExt as _;

use crate::error::{Error, Result};
use crate::offers::{SELECTIONS, Shared, atom_of, selection_of};
use crate::replies;
use crate::selection::{Contents, Kind, Party};
use crate::windows::gone;

/// Above this a value goes in pieces (ICCCM §2.5 "large data transfers"); every server accepts properties of this size.
const PIECE: usize = 256 * 1024;
/// Values that are on their way in pieces.
const MOST_TRANSFERS: usize = 64;
/// Pairs of one request for several kinds.
const MOST_PAIRS: u32 = 64;

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

/// Runs the thread that serves: owns selections, and answers requests for them.
pub(crate) fn serve(party: &Party, shared: &Shared, nudge: &Nudge) -> Result<()> {
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
                // Any client can change our property: it counts only while a timestamp is awaited.
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
                // The change of a property of ours carries the server's time, with which a selection must be taken (ICCCM §2.1).
                asking = true;
                conn.change_property8(PropMode::APPEND, party.window, slot, AtomEnum::STRING, &[])?;
            }
        }
        conn.flush()?;
        let mut fds =
            [PollFd::new(nudge, PollFlags::IN), PollFd::from_borrowed_fd(conn.stream().as_fd(), PollFlags::IN)];
        let _ = poll(&mut fds, None);
        nudge.take();
    }
}

/// Owns what is to be owned from `time` on, unless another client has taken it since.
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
        // The requestor may have gone.
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
        shared.served(version, request.requestor);
    }
    Ok(())
}

/// The outcome of a request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Handed {
    Nothing,
    /// What the selection offers, or the beginning of a long value.
    About,
    /// A value, in full.
    Whole,
}

/// Puts the requested value on the requestor's property.
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
    // One for each place: a new request replaces the one before.
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
    // What was on the property before, such as a piece of an earlier request of the same requestor.
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
        shared.served(version, place.0);
    }
    Ok(())
}
