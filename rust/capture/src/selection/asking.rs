//! Asks the owner of a selection for kinds, and takes their values as they come, whole or in pieces.

use std::time::{Duration, Instant};

use link::Interrupt;
use x11rb::connection::Connection;
use x11rb::protocol::Event as XEvent;
use x11rb::protocol::xproto::{Atom, AtomEnum, ConnectionExt as _, Property, SelectionNotifyEvent, Window};

use super::{Kind, Party, invisible};
use crate::error::{Error, Result};
use crate::replies;

/// Bytes of a property that are read at once.
const PART: u32 = 1 << 20;
/// All kinds together; more than this is not kept.
pub(super) const READ_LIMIT: usize = 64 * 1024 * 1024;

/// The outcome of a request for one kind.
pub(super) enum Answer {
    Refused,
    Given(Kind),
    TooLarge,
    Malformed,
    /// Its time was over.
    Unfinished,
}

impl Answer {
    /// The error of one that is no value.
    pub(super) fn refusal(&self, timeout: Duration) -> Error {
        match self {
            Self::TooLarge => Error::Unsupported(format!("the clipboard holds more than {} MiB", READ_LIMIT >> 20)),
            Self::Unfinished => late(timeout),
            Self::Refused | Self::Given(_) | Self::Malformed => {
                Error::Unsupported("the owner of the clipboard sent data whose parts do not fit together".into())
            }
        }
    }
}

/// The owner did not deliver within its time.
pub(super) fn late(timeout: Duration) -> Error {
    Error::Timeout { what: "the owner of the clipboard".into(), seconds: timeout.as_secs_f64() }
}

/// What an owner may take.
pub(super) struct Bounds {
    deadline: Instant,
    /// Since the last sign of it.
    pub(super) patience: Duration,
    /// Bytes.
    room: usize,
}

impl Bounds {
    pub(super) fn until(deadline: Instant) -> Self {
        Self { deadline, patience: Duration::MAX, room: READ_LIMIT }
    }
}

/// One kind that was asked for.
struct Question {
    window: Window,
    target: Atom,
    sequence: u64,
    /// Of a value that comes in pieces.
    pieces: Option<Pieces>,
    answer: Option<Answer>,
}

/// What has come so far, and the type and format of the first piece.
#[derive(Default)]
struct Pieces {
    of: Option<(Atom, u8)>,
    data: Vec<u8>,
}

/// What was on a property.
enum Taken {
    Nothing,
    Value(Atom, u8, Vec<u8>),
    TooLarge,
    Malformed,
}

impl Party {
    /// Requests kinds at once, each through a window of its own: some owners serve one request for each window, and what
    /// comes late from a former owner is not mistaken for the next one's. `None` when the owner has changed meanwhile.
    pub(super) fn ask(
        &self,
        selection: Atom,
        targets: &[Atom],
        bounds: &mut Bounds,
        interrupt: &Interrupt,
    ) -> Result<Option<Vec<Answer>>> {
        let conn = &self.server.conn;
        let slot = self.server.atoms._DESKHAND_CLIPBOARD;
        let mut questions = Vec::with_capacity(targets.len());
        for &target in targets {
            let window = invisible(&self.server)?;
            let sequence =
                conn.convert_selection(window, selection, target, slot, x11rb::CURRENT_TIME)?.sequence_number();
            questions.push(Question { window, target, sequence, pieces: None, answer: None });
        }
        conn.flush()?;
        let same_owner = self.await_answers(selection, &mut questions, bounds, interrupt);
        // The others may still be written to, and a program such as xclip ends when the window is gone: they go with the connection.
        for question in questions.iter().filter(|question| question.is_over()) {
            conn.destroy_window(question.window)?;
        }
        let answers = questions.into_iter().map(|question| question.answer.unwrap_or(Answer::Unfinished));
        Ok(same_owner?.then(|| answers.collect()))
    }

    fn await_answers(
        &self,
        selection: Atom,
        questions: &mut [Question],
        bounds: &mut Bounds,
        interrupt: &Interrupt,
    ) -> Result<bool> {
        let slot = self.server.atoms._DESKHAND_CLIPBOARD;
        let mut heard = Instant::now();
        while questions.iter().any(|question| question.answer.is_none()) {
            let patience = heard.checked_add(bounds.patience).unwrap_or(bounds.deadline);
            let Some(event) = self.next_event(bounds.deadline.min(patience), interrupt)? else { break };
            let mut open = questions.iter_mut().filter(|question| question.answer.is_none());
            match event {
                XEvent::XfixesSelectionNotify(change) if change.selection == selection => return Ok(false),
                XEvent::SelectionNotify(told) => {
                    let Some(question) = open.find(|question| question.is_told(&told)) else { continue };
                    if told.property == x11rb::NONE {
                        question.answer = Some(Answer::Refused);
                    } else {
                        self.take_value(question, bounds)?;
                    }
                }
                XEvent::PropertyNotify(change) if (change.atom, change.state) == (slot, Property::NEW_VALUE) => {
                    let Some(question) = open.find(|q| q.window == change.window && q.pieces.is_some()) else {
                        continue;
                    };
                    self.take_piece(question, bounds)?;
                }
                // The owner has offered something that is not an atom.
                XEvent::Error(error) => {
                    let Some(question) = open.find(|question| question.sequence as u16 == error.sequence) else {
                        continue;
                    };
                    question.answer = Some(Answer::Refused);
                }
                _ => continue,
            }
            heard = Instant::now();
        }
        Ok(true)
    }

    fn take_value(&self, question: &mut Question, bounds: &mut Bounds) -> Result<()> {
        question.answer = Some(match self.take(question.window, bounds.room)? {
            Taken::Nothing => Answer::Refused,
            Taken::Value(type_, ..) if type_ == self.server.atoms.INCR => {
                question.pieces = Some(Pieces::default());
                return Ok(());
            }
            Taken::Value(type_, format, data) => {
                bounds.room -= data.len();
                Answer::Given(Kind { target: question.target, type_, format, data: data.into() })
            }
            Taken::TooLarge => Answer::TooLarge,
            Taken::Malformed => Answer::Malformed,
        });
        Ok(())
    }

    fn take_piece(&self, question: &mut Question, bounds: &mut Bounds) -> Result<()> {
        let Some(Pieces { of, data }) = &mut question.pieces else { return Ok(()) };
        question.answer = Some(match self.take(question.window, bounds.room)? {
            Taken::Nothing => return Ok(()),
            Taken::Value(type_, format, piece) => {
                let first = *of.get_or_insert((type_, format));
                if piece.is_empty() {
                    let (type_, format) = first;
                    Answer::Given(Kind { target: question.target, type_, format, data: data.as_slice().into() })
                } else if first == (type_, format) {
                    bounds.room -= piece.len();
                    data.extend_from_slice(&piece);
                    return Ok(());
                } else {
                    Answer::Malformed
                }
            }
            Taken::TooLarge => Answer::TooLarge,
            Taken::Malformed => Answer::Malformed,
        });
        if !matches!(question.answer, Some(Answer::Given(_))) {
            // Other kinds may have used the room.
            bounds.room += data.len();
            *data = Vec::new();
        }
        Ok(())
    }

    /// Reads a property of at most `room` bytes. The server deletes it with the part that has nothing after it.
    fn take(&self, window: Window, room: usize) -> Result<Taken> {
        let slot = self.server.atoms._DESKHAND_CLIPBOARD;
        let (mut value, mut offset, mut first) = (Vec::new(), 0, None);
        loop {
            let reply = self.server.conn.get_property(true, window, slot, AtomEnum::ANY, offset, PART / 4)?.reply()?;
            if reply.type_ == x11rb::NONE {
                return Ok(if first.is_none() { Taken::Nothing } else { Taken::Malformed });
            }
            value.extend_from_slice(&replies::at_most(reply.value, PART));
            if value.len().saturating_add(reply.bytes_after as usize) > room {
                return Ok(Taken::TooLarge);
            }
            if *first.get_or_insert((reply.type_, reply.format)) != (reply.type_, reply.format) {
                return Ok(Taken::Malformed);
            }
            if reply.bytes_after == 0 {
                return Ok(Taken::Value(reply.type_, reply.format, value));
            }
            offset += PART / 4;
            // A part that is not the last one is whole.
            if value.len() != 4 * offset as usize {
                return Ok(Taken::Malformed);
            }
        }
    }
}

impl Question {
    /// Nothing more comes for it.
    fn is_over(&self) -> bool {
        matches!(self.answer, Some(Answer::Given(_) | Answer::Refused))
    }

    fn is_told(&self, told: &SelectionNotifyEvent) -> bool {
        (self.window, self.target) == (told.requestor, told.target) && self.pieces.is_none()
    }
}
