//! The state of one connection, and the bytes that still have to go out. Shared by callers and the reader under one lock.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Mutex;
use std::time::Instant;

use imaging::{Rect, Screen, Size};
use link::locked;
use rfb::{Clipboard, Event, Features, Formats, Monitor, Problem, Violation, client};

use crate::lock::Lock;
use crate::pacing::Pacing;
use crate::{Error, Result};

/// Probes without an answer that are remembered; a caller has one or two under way.
const MAX_PROBES: usize = 64;
/// Bytes of answers that a server may leave unread; a screen that is all motion causes 600 a second.
const MAX_UNREAD: usize = 4 << 20;

/// Something that the server must answer in its turn.
struct Probe {
    id: u32,
    sent: f64,
    /// Where a server without fences is to send a pixel again.
    pixel: Option<Rect>,
}

pub(crate) struct State {
    pub(crate) size: Size,
    pub(crate) features: Features,
    /// Whether what is for servers with fences only was offered.
    pub(crate) offered_all: bool,
    pub(crate) pacing: Pacing,
    /// Why nothing can be done any more.
    pub(crate) ended: Option<Error>,
    /// Counts what callers wait for: changes, answers, the end.
    pub(crate) ticks: u64,
    /// The ticks that a caller has seen.
    pub(crate) told: u64,
    /// Pixels painted since the beginning.
    pub(crate) painted: u64,
    /// Rectangles that were skipped; see `rfb::Session::skipped`.
    pub(crate) skipped: Vec<(i32, u64)>,
    probes: VecDeque<Probe>,
    /// Since when an answer of the server has been due.
    owed: Option<f64>,
    /// When bytes last came of a message that had not ended with them.
    pub(crate) arriving: f64,
    asked: u32,
    pub(crate) answered: u32,
    /// When the latest answered probe was sent, and when its answer came.
    pub(crate) proved: (f64, f64),
    /// The screen's generation after the latest update.
    pub(crate) generation: u64,
    /// A probe, and which generation the screen had at its answer.
    pub(crate) mark: (u32, Option<u64>),
    /// When a caller last looked.
    pub(crate) looked: f64,
    /// When a probe was last sent.
    pub(crate) probed: f64,
    /// When input was last sent.
    pub(crate) input: f64,
    pub(crate) pointer: (u16, u16),
    pub(crate) buttons: u16,
    pub(crate) keys: Vec<u32>,
    /// Those of `LOCK_KEYS`.
    pub(crate) locks: [Lock; 2],
    pub(crate) monitors: Vec<Monitor>,
    /// The server's answer to a request for another size: 0 for yes.
    pub(crate) resized: Option<u16>,
    pub(crate) clipboard: Board,
    out: Vec<u8>,
    /// How many of these at most answer requests of the server.
    unread: usize,
    /// Our clipboard's text is among these.
    providing: bool,
    /// Since when the server has taken nothing.
    stuck: Option<Instant>,
}

/// The clipboard, as reported by both sides.
#[derive(Default)]
pub(crate) struct Board {
    /// Text of ours that the server may ask for.
    pub(crate) ours: Option<String>,
    /// How often it has been requested since it was written.
    pub(crate) served: u32,
    /// The server's text; None when there is none, or it has only been announced.
    pub(crate) theirs: Option<String>,
    /// It was longer than the limit.
    pub(crate) truncated: bool,
    /// The server has text that it has not sent.
    pub(crate) announced: bool,
}

impl State {
    pub(crate) fn new(size: Size) -> Self {
        Self {
            size,
            features: Features::default(),
            offered_all: false,
            pacing: Pacing::default(),
            ended: None,
            ticks: 0,
            told: 0,
            painted: 0,
            skipped: Vec::new(),
            probes: VecDeque::new(),
            owed: None,
            arriving: 0.0,
            asked: 0,
            answered: 0,
            proved: (f64::NEG_INFINITY, f64::NEG_INFINITY),
            generation: 0,
            mark: (0, None),
            looked: f64::NEG_INFINITY,
            probed: f64::NEG_INFINITY,
            input: f64::NEG_INFINITY,
            // Where X servers put the pointer; a VNC server does not report its first place.
            pointer: ((size.w / 2) as u16, (size.h / 2) as u16),
            buttons: 0,
            keys: Vec::new(),
            locks: Default::default(),
            monitors: Vec::new(),
            resized: None,
            clipboard: Board::default(),
            out: Vec::new(),
            unread: 0,
            providing: false,
            stuck: None,
        }
    }

    /// Fails when the connection has ended.
    pub(crate) fn check(&self) -> Result<()> {
        self.ended.clone().map_or(Ok(()), Err)
    }

    /// Asks the server for an answer that comes after everything it had to send before: a fence, or, from servers that have
    /// none, one pixel that has not changed.
    pub(crate) fn probe(&mut self, at: f64) -> u32 {
        self.asked += 1;
        let id = self.asked;
        let pixel = (!self.features.fence).then(|| Rect { x: id % self.size.w, y: 0, w: 1, h: 1 });
        match pixel {
            None => self.push(&client::fence(client::fence::REQUEST | client::fence::BLOCK_BEFORE, &id.to_be_bytes())),
            Some(pixel) => self.push(&client::update_request(false, pixel)),
        }
        if self.probes.len() == MAX_PROBES {
            self.probes.pop_front();
        }
        self.probes.push_back(Probe { id, sent: at, pixel });
        self.probed = at;
        self.owed.get_or_insert(at);
        id
    }

    /// A request for an old size may never be answered.
    fn ask_again(&mut self) {
        let width = self.size.w;
        let asked = self.probes.iter_mut().filter_map(|probe| {
            let pixel = probe.pixel.as_mut()?;
            pixel.x = probe.id % width;
            Some(client::update_request(false, *pixel))
        });
        let requests: Vec<_> = asked.flatten().collect();
        self.answer_with(&requests);
    }

    /// Since when an answer could have come: it comes after a picture that is on its way.
    pub(crate) fn silent_since(&self) -> Option<f64> {
        self.owed.map(|since| since.max(self.arriving))
    }

    /// When the oldest probe without an answer was sent, whether it is still remembered or not.
    pub(crate) fn waiting_since(&self) -> Option<f64> {
        self.owed
    }

    /// When the last lock key was sent whose effect the server has not reported.
    pub(crate) fn lock_due(&self) -> Option<f64> {
        self.locks.iter().filter_map(Lock::due).reduce(f64::max)
    }

    fn answer(&mut self, at: f64, is: impl Fn(&Probe) -> bool) {
        let Some(last) = self.probes.iter().rposition(is) else { return };
        // Answers come in order: that of a later probe answers the earlier ones.
        for probe in self.probes.drain(..=last) {
            self.answered = probe.id;
            self.proved = (probe.sent, at);
            self.pacing.answered(at - probe.sent);
        }
        self.owed = self.probes.front().map(|probe| probe.sent);
        if self.mark.1.is_none() && self.answered >= self.mark.0 {
            self.mark.1 = Some(self.generation);
        }
        self.ticks += 1;
    }

    /// Records an event of the server.
    pub(crate) fn absorb(&mut self, event: Event, at: f64) {
        match event {
            Event::Updated { rects, changed, generation } => {
                self.generation = generation;
                self.painted += rects.iter().map(|rect| rect.area()).sum::<u64>();
                if changed {
                    self.pacing.changed(at);
                    self.ticks += 1;
                }
                let covers = |pixel: Rect| rects.iter().any(|rect| rect.contains(pixel));
                self.answer(at, |probe| probe.pixel.is_some_and(covers));
            }
            Event::Fence { payload, .. } => {
                let id = payload.first_chunk().map(|id| u32::from_be_bytes(*id));
                self.answer(at, |probe| probe.pixel.is_none() && Some(probe.id) == id);
            }
            Event::Features(features) => {
                self.features = features;
                self.ticks += 1;
            }
            Event::Resized { size, monitors, by } => {
                if size != self.size {
                    self.size = size;
                    self.ask_again();
                }
                self.monitors = monitors;
                if by == rfb::ResizedBy::Us {
                    self.resized = Some(0);
                }
                self.ticks += 1;
            }
            Event::ResizeRefused { status } => {
                self.resized = Some(status);
                self.ticks += 1;
            }
            Event::Pointer { x, y } => self.moved_by_others(x, y),
            Event::Leds(leds) => {
                for (lock, on) in self.locks.iter_mut().zip([leds.caps, leds.num]) {
                    lock.told(on);
                }
                self.ticks += 1;
            }
            Event::CutText { text, truncated } => {
                self.clipboard = Board { theirs: Some(text), truncated, ..Board::default() };
                self.ticks += 1;
            }
            Event::Clipboard(message) => self.clipboard(&message),
            _ => {}
        }
    }

    /// The screen's cursor is where this client put it, unless the server reported another place since. This state's lock is held
    /// meanwhile, so that of two reports the later one counts.
    pub(crate) fn point(&self, screen: &Mutex<Screen>) {
        let (x, y) = self.pointer;
        locked(screen).set_pointer((x.into(), y.into()));
    }

    /// Another client moved the pointer. Ignored until the server has worked off this client's input (it may report a place before
    /// that), nor before the first picture is complete: x11vnc reports 0,0 then, even if it is wrong.
    fn moved_by_others(&mut self, x: u32, y: u32) {
        if self.painted < self.size.rect().area() || self.input > self.proved.0 {
            return;
        }
        let last = |side: u32| side.saturating_sub(1);
        self.pointer = (x.min(last(self.size.w)) as u16, y.min(last(self.size.h)) as u16);
        self.ticks += 1;
    }

    fn clipboard(&mut self, message: &Clipboard) {
        match message {
            Clipboard::Notify(formats) => {
                let announced = formats.contains(Formats::TEXT);
                self.clipboard = Board { announced, ..Board::default() };
            }
            Clipboard::Request(formats) if formats.contains(Formats::TEXT) => {
                // A server that asks again before it has read gets no second copy.
                if let Some(text) = self.clipboard.ours.as_ref().filter(|_| !self.providing) {
                    let message = client::clipboard_provide(text);
                    self.push(&message);
                    self.providing = true;
                    self.clipboard.served += 1;
                }
            }
            Clipboard::Peek => {
                let formats = if self.clipboard.ours.is_some() { Formats::TEXT } else { Formats(0) };
                self.answer_with(&client::clipboard_notify(formats));
            }
            // It was requested, or has just been set.
            Clipboard::Provide { truncated, .. } => {
                self.clipboard = Board { theirs: message.text(), truncated: *truncated, ..Board::default() };
            }
            _ => {}
        }
        self.ticks += 1;
    }

    /// When something was last sent or seen to change.
    pub(crate) fn active(&self) -> f64 {
        self.input.max(self.pacing.last_change().unwrap_or(f64::NEG_INFINITY))
    }

    /// Adds bytes for the server.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Adds an answer to a request of the server.
    pub(crate) fn answer_with(&mut self, bytes: &[u8]) {
        self.push(bytes);
        self.unread += bytes.len();
    }

    /// Refuses a server that sends requests and does not read the answers: they would fill this process's memory.
    pub(crate) fn check_unread(&self) -> Result<()> {
        if self.unread <= MAX_UNREAD {
            return Ok(());
        }
        let problem = Problem::Limit {
            what: "bytes of answers that the server asked for and does not read",
            got: self.unread as u64,
            max: MAX_UNREAD as u64,
        };
        Err(Violation { offset: 0, context: "what the server asks for".to_owned(), problem }.into())
    }

    /// Hands to the socket what it takes now; returns whether something is left.
    pub(crate) fn flush(&mut self, stream: &OwnedFd) -> Result<bool> {
        while !self.out.is_empty() {
            match rustix::net::send(stream, &self.out, rustix::net::SendFlags::NOSIGNAL) {
                Ok(count) => {
                    self.out.drain(..count);
                    self.unread = self.unread.min(self.out.len());
                    self.providing &= !self.out.is_empty();
                    self.stuck = None;
                }
                Err(rustix::io::Errno::AGAIN) => {
                    self.stuck.get_or_insert_with(Instant::now);
                    return Ok(true);
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(Error::Lost(format!("the connection broke: {error}"))),
            }
        }
        Ok(false)
    }

    /// Whether bytes wait for the socket to take them, and for how long it has taken none.
    pub(crate) fn stuck(&self) -> Option<Instant> {
        self.stuck
    }

    /// Whether bytes for the server are left.
    pub(crate) fn has_output(&self) -> bool {
        !self.out.is_empty()
    }
}
