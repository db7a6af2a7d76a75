//! Reads what a selection holds from its owner. All that an owner sends is bounded in number, size and time.

mod asking;
mod kinds;

use std::sync::Arc;
use std::time::{Duration, Instant};

use link::{Interrupt, WAIT_SLICE};
use x11rb::connection::Connection;
use x11rb::protocol::Event as XEvent;
use x11rb::protocol::xfixes::{ConnectionExt as _, SelectionEventMask};
use x11rb::protocol::xproto::{Atom, AtomEnum, ConnectionExt as _, CreateWindowAux, EventMask, Window, WindowClass};

use self::asking::{Answer, Bounds};
pub use self::kinds::{kinds, read_kind};
use crate::error::{Error, Result};
use crate::server::{Server, Target};
use crate::windows::gone;

/// Kinds that are kept; office programs offer thirty.
const MOST_KINDS: usize = 64;
/// Kinds that are named where they were not kept, and how long a name is shown.
const MOST_NAMED: usize = 64;
const LONGEST_NAME: usize = 100;
/// How long an owner that has named its offers may take between two signs.
const PATIENCE: Duration = Duration::from_secs(2);
/// Types whose values are ids of things that end with their owner.
const IDS: [AtomEnum; 8] = [
    AtomEnum::BITMAP,
    AtomEnum::COLORMAP,
    AtomEnum::CURSOR,
    AtomEnum::DRAWABLE,
    AtomEnum::FONT,
    AtomEnum::PIXMAP,
    AtomEnum::VISUALID,
    AtomEnum::WINDOW,
];

/// One kind of what was copied, such as a picture as PNG.
#[derive(Clone)]
pub(crate) struct Kind {
    pub(crate) target: Atom,
    pub(crate) type_: Atom,
    pub(crate) format: u8,
    pub(crate) data: Arc<[u8]>,
}

/// What was copied, in the owner's order of kinds.
pub(crate) type Contents = Arc<[Kind]>;

/// What was on a selection, as far as it could be had.
#[derive(Default)]
pub(crate) struct Copied {
    pub(crate) contents: Vec<Kind>,
    /// Kinds that were offered and did not come.
    pub(crate) missing: Vec<Atom>,
}

/// A connection with one invisible window that can own or request a selection.
pub(crate) struct Party {
    pub(crate) server: Server,
    pub(crate) window: Window,
}

impl Party {
    pub(crate) fn open(target: &Target, interrupt: &Interrupt) -> Result<Self> {
        // The desktop's first connection worked: if this one fails, the server has gone since.
        let server = Server::open(target, interrupt).map_err(|error| match error {
            Error::Connect { reason, .. } => Error::Lost(reason),
            other => other,
        })?;
        Self::on(server)
    }

    fn on(server: Server) -> Result<Self> {
        let window = invisible(&server)?;
        server.conn.flush()?;
        Ok(Self { server, window })
    }

    /// The next event; `None` when there is none by then.
    pub(crate) fn next_event(&self, deadline: Instant, interrupt: &Interrupt) -> Result<Option<XEvent>> {
        loop {
            // Before the event: there may be any number of irrelevant ones.
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            if let Some(event) = self.server.conn.poll_for_event()? {
                return Ok(Some(event));
            }
            self.server.conn.stream().events_read();
            if !self.server.conn.stream().wait_readable(left.min(WAIT_SLICE))? && interrupt.requested() {
                return Err(Error::Interrupted);
            }
        }
    }

    /// From now on the server notifies this party when the owner changes.
    pub(crate) fn watch(&self, selection: Atom) -> Result<()> {
        let changes = SelectionEventMask::SET_SELECTION_OWNER
            | SelectionEventMask::SELECTION_WINDOW_DESTROY
            | SelectionEventMask::SELECTION_CLIENT_CLOSE;
        self.server.conn.xfixes_select_selection_input(self.window, selection, changes)?;
        Ok(())
    }

    /// True when a client has become the owner of a selection since this party read it, and before `next` did.
    pub(crate) fn was_taken(&self, selection: Atom, next: Window) -> Result<bool> {
        self.server.round_trip()?;
        let mut taken = false;
        while let Some(event) = self.server.conn.poll_for_event()? {
            match event {
                XEvent::XfixesSelectionNotify(change) if change.selection != selection => {}
                XEvent::XfixesSelectionNotify(change) if change.owner == next => break,
                XEvent::XfixesSelectionNotify(change) => taken |= change.owner != x11rb::NONE,
                _ => {}
            }
        }
        Ok(taken)
    }

    /// What the owner offers; `None` if it does not list it.
    fn targets(answer: Answer) -> Option<Vec<Atom>> {
        match answer {
            Answer::Given(Kind { format: 32, data, .. }) => Some(
                data.chunks_exact(4).map(|atom| Atom::from_ne_bytes([atom[0], atom[1], atom[2], atom[3]])).collect(),
            ),
            _ => None,
        }
    }

    /// Kinds of text, the best first.
    fn texts(&self) -> [Atom; 3] {
        [self.server.atoms.UTF8_STRING, self.server.atoms.TEXT_PLAIN_UTF8, AtomEnum::STRING.into()]
    }

    /// Kinds that report on the selection, and those that change it.
    fn about(&self) -> [Atom; 7] {
        let atoms = &self.server.atoms;
        [
            atoms.TARGETS,
            atoms.TIMESTAMP,
            atoms.MULTIPLE,
            atoms.SAVE_TARGETS,
            atoms.DELETE,
            atoms.INSERT_SELECTION,
            atoms.INSERT_PROPERTY,
        ]
    }

    /// Requests texts at once, and then one kind after the other: an office program draws a picture of many cells for a second,
    /// and serves a request before all else.
    fn ask_for_all(
        &self,
        selection: Atom,
        targets: &[Atom],
        bounds: &mut Bounds,
        interrupt: &Interrupt,
    ) -> Result<Option<Vec<(Atom, Answer)>>> {
        let atoms = &self.server.atoms;
        let quick = [
            atoms.COMPOUND_TEXT,
            atoms.TEXT,
            atoms.TEXT_PLAIN,
            atoms.TEXT_HTML,
            atoms.TEXT_URI_LIST,
            atoms.COPIED_FILES,
        ];
        let (at_once, others): (Vec<Atom>, Vec<Atom>) =
            targets.iter().partition(|target| quick.contains(target) || self.texts().contains(target));
        bounds.patience = PATIENCE;
        let Some(answers) = self.ask(selection, &at_once, bounds, interrupt)? else { return Ok(None) };
        let mut answers: Vec<_> = at_once.into_iter().zip(answers).collect();
        let mut given_up = false;
        for target in others {
            let asked: &[Atom] = if given_up { &[] } else { &[target] };
            let Some(more) = self.ask(selection, asked, bounds, interrupt)? else { return Ok(None) };
            let answer = more.into_iter().next().unwrap_or(Answer::Unfinished);
            given_up |= matches!(answer, Answer::Unfinished);
            answers.push((target, answer));
        }
        Ok(Some(answers))
    }

    /// All that is on a selection that this party watches.
    pub(crate) fn copied(&self, selection: Atom, deadline: Instant, interrupt: &Interrupt) -> Result<Copied> {
        let atoms = &self.server.atoms;
        let about = self.about();
        loop {
            if self.server.conn.get_selection_owner(selection)?.reply()?.owner == x11rb::NONE {
                return Ok(Copied::default());
            }
            let mut bounds = Bounds::until(deadline);
            let untold = Copied { contents: Vec::new(), missing: vec![atoms.TARGETS] };
            let Some(mut answers) = self.ask(selection, &[atoms.TARGETS], &mut bounds, interrupt)? else { continue };
            let answer = answers.remove(0);
            if matches!(answer, Answer::Unfinished) {
                return Ok(untold);
            }
            let told = Self::targets(answer);
            let (mut kept, mut missing) = (Vec::new(), Vec::new());
            for target in told.clone().unwrap_or_else(|| self.texts().to_vec()) {
                if !about.contains(&target) && !kept.contains(&target) {
                    if kept.len() < MOST_KINDS { kept.push(target) } else { missing.push(target) }
                }
            }
            let Some(answers) = self.ask_for_all(selection, &kept, &mut bounds, interrupt)? else { continue };
            let (mut contents, mut ids) = (Vec::new(), Vec::new());
            for (target, answer) in answers {
                match answer {
                    // No client would have received it.
                    Answer::Refused => {}
                    Answer::Given(kind) if IDS.map(u32::from).contains(&kind.type_) => ids.push(target),
                    Answer::Given(kind) => contents.push(kind),
                    _ => missing.push(target),
                }
            }
            // As it was offered.
            let place = |target| kept.iter().position(|&other| other == target);
            contents.sort_by_key(|kind| place(kind.target));
            missing.sort_by_key(|&target| place(target).unwrap_or(MOST_KINDS));
            // An owner that offers a pixmap (Qt does, of every picture) offers the same picture in bytes.
            if contents.is_empty() {
                missing.extend(ids);
            }
            if told.is_none() && contents.is_empty() {
                return Ok(untold);
            }
            return Ok(Copied { contents, missing });
        }
    }

    /// The text on a selection that this party watches.
    fn text(&self, selection: Atom, timeout: Duration, interrupt: &Interrupt) -> Result<Option<String>> {
        let deadline = Instant::now() + timeout;
        'anew: loop {
            // Some owners (xclip) hand out whatever they have, a picture too, under any requested name.
            let offered = self.offered(selection, deadline, timeout, interrupt)?;
            for target in self.texts() {
                if offered.as_ref().is_some_and(|offered| !offered.contains(&target)) {
                    continue;
                }
                let mut bounds = Bounds::until(deadline);
                let Some(mut answers) = self.ask(selection, &[target], &mut bounds, interrupt)? else { continue 'anew };
                match answers.remove(0) {
                    Answer::Refused => {}
                    Answer::Given(kind) if target == u32::from(AtomEnum::STRING) => {
                        return Ok(Some(kind.data.iter().map(|&byte| char::from(byte)).collect()));
                    }
                    Answer::Given(kind) => return Ok(Some(String::from_utf8_lossy(&kind.data).into_owned())),
                    other => return Err(other.refusal(timeout)),
                }
            }
            return Ok(None);
        }
    }

    /// Names of kinds, of the first of them: untrusted text.
    pub(crate) fn names(&self, atoms: &[Atom]) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for &atom in atoms.iter().take(MOST_NAMED) {
            let name = gone(self.server.conn.get_atom_name(atom)?.reply().map_err(Error::from))?;
            let name = name.map_or_else(|| format!("atom {atom}").into(), |reply| reply.name);
            names.push(String::from_utf8_lossy(&name).chars().take(LONGEST_NAME).collect());
        }
        Ok(names)
    }
}

fn invisible(server: &Server) -> Result<Window> {
    let window = server.conn.generate_id()?;
    let events = CreateWindowAux::new().event_mask(EventMask::PROPERTY_CHANGE);
    server.conn.create_window(0, window, server.root, -1, -1, 1, 1, 0, WindowClass::INPUT_ONLY, 0, &events)?;
    Ok(window)
}

fn watching(target: &Target, interrupt: &Interrupt) -> Result<(Party, Atom)> {
    let party = Party::open(target, interrupt)?;
    let clipboard = party.server.atoms.CLIPBOARD;
    party.watch(clipboard)?;
    Ok((party, clipboard))
}

/// The clipboard's text; `None` when it is empty or holds no text.
///
/// # Errors
///
/// [`Error::Timeout`] when the owner does not deliver in time, [`Error::Unsupported`] beyond 64 MiB, [`Error::Lost`].
pub fn read(target: &Target, timeout: Duration, interrupt: &Interrupt) -> Result<Option<String>> {
    read_through(&Party::open(target, interrupt)?, timeout, interrupt)
}

fn read_through(party: &Party, timeout: Duration, interrupt: &Interrupt) -> Result<Option<String>> {
    let clipboard = party.server.atoms.CLIPBOARD;
    party.watch(clipboard)?;
    party.text(clipboard, timeout, interrupt)
}

/// Reads all or the text through a connection that is there.
#[cfg(feature = "fuzzing")]
pub(crate) fn read_on(server: Server, all: bool, timeout: Duration) -> Result<()> {
    let (party, interrupt) = (Party::on(server)?, Interrupt::never());
    if !all {
        return read_through(&party, timeout, &interrupt).map(drop);
    }
    let clipboard = party.server.atoms.CLIPBOARD;
    party.watch(clipboard)?;
    let copied = party.copied(clipboard, Instant::now() + timeout, &interrupt)?;
    party.names(&copied.missing)?;
    party.printable_names(&copied.missing)?;
    party.kind(clipboard, "image/png", timeout, &interrupt).map(drop)
}
