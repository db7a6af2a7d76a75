//! The messages of a server: where each begins and ends, and what it is for.

use super::{Session, State};
use crate::client;
use crate::clipboard::Clipboard;
use crate::encoding::Encoding;
use crate::event::{Event, Features};
use crate::input::{Fields, Input};
use crate::message::{Collected, latin1};
use crate::update::Update;
use crate::violation::{Problem, limit, value};

/// The types of messages.
const UPDATE: u8 = 0;
const COLOUR_MAP: u8 = 1;
const BELL: u8 = 2;
const CUT_TEXT: u8 = 3;
const CONTINUOUS_UPDATES_ENDED: u8 = 150;
const FENCE: u8 = 248;

impl Session {
    /// Reads one message, or as much of it as is here; returns whether it was read to its end.
    pub(super) fn step(&mut self, input: &mut Input, at: f64) -> Result<bool, Problem> {
        match &mut self.state {
            State::Message => {
                self.began = input.offset();
                self.message(input, at)
            }
            State::Update(update) => {
                if !update.step(input, &mut self.painter, &self.offered, &self.limits)? {
                    return Ok(false);
                }
                let outcome = std::mem::take(&mut update.outcome);
                self.state = State::Message;
                self.finish_update(outcome, at);
                Ok(true)
            }
            State::CutText { text, extended } => {
                if !text.step(input) {
                    return Ok(false);
                }
                if *extended {
                    let message = Clipboard::parse(&text.kept, text.truncated, self.limits.clipboard)?;
                    self.clipboard(message);
                } else {
                    self.events.push(Event::CutText { text: latin1(&text.kept), truncated: text.truncated });
                }
                self.state = State::Message;
                Ok(true)
            }
        }
    }

    /// Reads the beginning of a message, and the whole of a short one.
    fn message(&mut self, input: &mut Input, at: f64) -> Result<bool, Problem> {
        let Some(&[kind]) = input.peek(1) else {
            return Ok(false);
        };
        match kind {
            UPDATE => {
                let Some(header) = input.take(4) else {
                    return Ok(false);
                };
                let count = Fields(header).skip(2).u16();
                while self.resized.front().is_some_and(|earlier| at - earlier >= 1.0) {
                    self.resized.pop_front();
                }
                self.painter.begin();
                self.state =
                    State::Update(Box::new(Update::new(count, self.began, self.resized.len(), self.drawable())));
            }
            COLOUR_MAP => {
                let Some(header) = input.peek(6) else {
                    return Ok(false);
                };
                let mut fields = Fields(header);
                let (first, count) = (fields.skip(2).u16(), fields.u16());
                limit("the last entry of the colour map", u64::from(first) + u64::from(count), 256)?;
                let Some(wire) = input.take(6 + 6 * usize::from(count)) else {
                    return Ok(false);
                };
                self.painter.map.set(first, &wire[6..])?;
                self.recolour(at);
            }
            BELL => {
                input.consume(1);
                self.events.push(Event::Bell);
            }
            CUT_TEXT => {
                let Some(header) = input.take(8) else {
                    return Ok(false);
                };
                let len = Fields(header).skip(4).u32();
                let extended = (len as i32) < 0 && self.offered.contains(&Encoding::Clipboard);
                let len = if extended { (len as i32).unsigned_abs() } else { len };
                if extended && len < 4 {
                    return Err(value("bytes of a clipboard message", len, "at least 4"));
                }
                let text =
                    Collected::new("bytes of a clipboard", len.into(), self.limits.clipboard, self.limits.skipped)?;
                self.state = State::CutText { text, extended };
            }
            CONTINUOUS_UPDATES_ENDED => {
                input.consume(1);
                self.continuous_updates_ended();
            }
            FENCE => {
                let Some(header) = input.peek(9) else {
                    return Ok(false);
                };
                let len = usize::from(header[8]);
                limit("bytes of a fence's payload", len as u64, client::FENCE_PAYLOAD as u64)?;
                let Some(wire) = input.take(9 + len) else {
                    return Ok(false);
                };
                let flags = Fields(wire).skip(4).u32();
                self.fence(flags, wire[9..].to_vec());
            }
            _ => return Err(value("the type of a message", kind, "0, 1, 2, 3, 150 or 248")),
        }
        Ok(true)
    }

    fn fence(&mut self, flags: u32, payload: Vec<u8>) {
        self.learn(Features { fence: true, ..self.features });
        if flags & client::fence::REQUEST == 0 {
            self.events.push(Event::Fence { flags, payload });
            return;
        }
        // Everything before it is worked off when it is read, and nothing after it: all its conditions hold.
        let known = client::fence::BLOCK_BEFORE | client::fence::BLOCK_AFTER | client::fence::SYNC_NEXT;
        self.outgoing.extend(client::fence(flags & known, &payload));
    }

    fn continuous_updates_ended(&mut self) {
        let rect = self.size().rect();
        // The first one only shows that the server supports them.
        if self.features.continuous_updates {
            self.events.push(Event::ContinuousUpdatesEnded);
            self.follow.fall_back(rect, &mut self.outgoing);
            return;
        }
        self.learn(Features { continuous_updates: true, ..self.features });
        self.follow.go_continuous(rect, &mut self.outgoing);
    }

    fn clipboard(&mut self, message: Clipboard) {
        if matches!(message, Clipboard::Caps(_)) {
            self.learn(Features { clipboard: true, ..self.features });
            let room = u32::try_from(self.limits.clipboard).unwrap_or(u32::MAX);
            self.outgoing.extend(client::clipboard_caps(room));
        }
        self.events.push(Event::Clipboard(message));
    }
}
