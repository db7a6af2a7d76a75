//! Everything after the handshake: messages of a server are decoded, shown on a screen, and reported as events.
//!
//! The rule: the screen is locked only to hand over what a whole update has painted, never while decoding, and it never
//! shows half an update.

mod messages;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use imaging::{Cursor, Rect, Screen, Size};

use crate::canvas::Canvas;
use crate::client;
use crate::cursor::{self, Shape};
use crate::decode::Painter;
use crate::encoding::Encoding;
use crate::event::{Event, Features};
use crate::following::Follow;
use crate::input::Input;
use crate::limits::Limits;
use crate::message::Collected;
use crate::pace::Pace;
use crate::pixel::PixelFormat;
use crate::update::{Outcome, Tally, Update};
use crate::violation::{Problem, Violation};

/// The client's side of a connection that is past its handshake.
pub struct Session {
    screen: Arc<Mutex<Screen>>,
    limits: Limits,
    offered: Vec<Encoding>,
    painter: Painter,
    state: State,
    /// Bytes of a piece that is not here as a whole.
    carry: Vec<u8>,
    consumed: u64,
    /// Where the message being read begins.
    began: u64,
    events: Vec<Event>,
    outgoing: Vec<u8>,
    features: Features,
    pace: Pace,
    /// When the framebuffer's size was changed, within the second before the last update.
    resized: VecDeque<f64>,
    /// Cursor images so far, the latest, and whether the cursor is hidden now.
    cursors: u64,
    cursor: Option<Cursor>,
    hidden: bool,
    /// Complete updates so far, and their rectangles.
    updates: u64,
    rectangles: Tally<Encoding>,
    /// Rectangles of these that were not offered.
    skipped: Tally<i32>,
    /// Whether updates are requested, or come by themselves.
    follow: Follow,
    broken: Option<Violation>,
}

/// What is being read.
enum State {
    Message,
    Update(Box<Update>),
    /// A clipboard, in the old form or the extended one.
    CutText {
        text: Collected,
        extended: bool,
    },
}

impl Session {
    /// A session that begins after `ServerInit`. The screen is given the framebuffer's size if it has another; if it has that
    /// size already, it may show it, and copies within the framebuffer will find what it shows.
    ///
    /// `at` is the time in seconds of the caller's clock, here and everywhere.
    ///
    /// # Errors
    /// When the framebuffer is larger than the limits.
    pub fn new(size: Size, screen: Arc<Mutex<Screen>>, limits: Limits, at: f64) -> Result<Self, Violation> {
        limits.framebuffer(size).map_err(|problem| Violation {
            offset: 0,
            context: "the server's description of itself".to_owned(),
            problem,
        })?;
        let mut canvas = Canvas::new(size);
        {
            let mut screen = lock(&screen);
            if screen.size() != size {
                screen.resize(size, at);
            }
            canvas.show(screen.frame());
        }
        Ok(Self {
            screen,
            limits,
            offered: Vec::new(),
            painter: Painter::new(canvas, PixelFormat::BGRX),
            state: State::Message,
            carry: Vec::new(),
            consumed: 0,
            began: 0,
            events: Vec::new(),
            outgoing: Vec::new(),
            features: Features::default(),
            pace: Pace::default(),
            resized: VecDeque::new(),
            cursors: 0,
            cursor: None,
            hidden: false,
            updates: 0,
            rectangles: Tally::default(),
            skipped: Tally::default(),
            follow: Follow::No,
            broken: None,
        })
    }

    /// Sends the server the form of pixels and the encodings, the best first. To be called before any request; a
    /// form changed while an update is under way would make nonsense of it.
    ///
    /// # Errors
    /// When no pixel can be written in that form.
    pub fn start(&mut self, format: &PixelFormat, encodings: &[Encoding]) -> Result<(), Violation> {
        let context = "the form of pixels asked for".to_owned();
        format.check().map_err(|problem| Violation { offset: self.consumed, context, problem })?;
        self.painter.set_format(*format);
        self.outgoing.extend(client::set_pixel_format(format));
        self.offered.clear();
        self.offer(encodings);
        Ok(())
    }

    /// Sends the server another list of encodings; at any time.
    pub fn offer(&mut self, encodings: &[Encoding]) {
        self.painter.jpeg = encodings.iter().any(|encoding| matches!(encoding, Encoding::Quality(_)));
        // An update under way may still use earlier offers.
        self.offered.retain(|encoding| !encodings.contains(encoding));
        self.offered.extend(encodings);
        self.outgoing.extend(client::set_encodings(encodings));
    }

    /// Asks for an update of the whole framebuffer: of what has changed, or of everything.
    pub fn request(&mut self, incremental: bool) {
        let rect = self.size().rect();
        self.outgoing.extend(client::update_request(incremental, rect));
    }

    /// Keeps updates coming from now on: each one that is complete asks for the next, or, where the server knows continuous
    /// updates, they come without requests.
    pub fn follow(&mut self) {
        let rect = self.size().rect();
        self.follow.begin(self.features.continuous_updates, rect, &mut self.outgoing);
    }

    /// Stops asking for updates.
    pub fn unfollow(&mut self) {
        let rect = self.size().rect();
        self.follow.end(rect, &mut self.outgoing);
    }

    /// Bytes for the server that have gathered: answers and requests.
    #[must_use]
    pub fn to_send(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.outgoing)
    }

    /// The framebuffer's size.
    #[must_use]
    pub fn size(&self) -> Size {
        self.painter.canvas.size()
    }

    /// What the server has shown to know so far.
    #[must_use]
    pub const fn features(&self) -> Features {
        self.features
    }

    /// Complete updates so far.
    #[must_use]
    pub const fn updates(&self) -> u64 {
        self.updates
    }

    /// How many rectangles of each encoding these had.
    #[must_use]
    pub fn rectangles(&self) -> &[(Encoding, u64)] {
        &self.rectangles.0
    }

    /// How many rectangles of pseudo-encodings these had that were not offered, by the encodings' numbers; they were skipped.
    #[must_use]
    pub fn skipped(&self) -> &[(i32, u64)] {
        &self.skipped.0
    }

    /// The screen that is kept current.
    #[must_use]
    pub const fn screen(&self) -> &Arc<Mutex<Screen>> {
        &self.screen
    }

    /// Takes in what the server sent, and returns its events. Answers that the protocol requires are in [`Session::to_send`].
    ///
    /// # Errors
    /// When the server breaks the protocol or a limit, and ever after. Its events before that are in [`Session::unread`].
    pub fn feed(&mut self, bytes: &[u8], at: f64) -> Result<Vec<Event>, Violation> {
        if let Some(violation) = &self.broken {
            return Err(violation.clone());
        }
        let mut carry = std::mem::take(&mut self.carry);
        let mut consumed = self.consumed;
        let mut input = Input::new(&mut carry, bytes, &mut consumed);
        let mut ended = None;
        let result = loop {
            match self.step(&mut input, at) {
                Ok(true) if matches!(self.state, State::Message) => ended = Some(input.offset()),
                Ok(true) => {}
                Ok(false) => break Ok(()),
                Err(problem) => break Err(problem),
            }
        };
        drop(input);
        (self.carry, self.consumed) = (carry, consumed);
        let under_way = !matches!(self.state, State::Message) || !self.carry.is_empty();
        self.pace.note(self.consumed + self.carry.len() as u64, ended, under_way, at);
        match result {
            Ok(()) => Ok(self.unread()),
            Err(problem) => Err(self.broken(problem)),
        }
    }

    /// Events that came before a violation in the same call.
    #[must_use]
    pub fn unread(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// Whether a message has begun and not ended.
    #[must_use]
    pub const fn under_way(&self) -> bool {
        self.pace.under_way()
    }

    /// Checks that a message which has begun goes on. To be called now and then while nothing comes.
    ///
    /// # Errors
    /// When after 5 s it has come slower than 1 KiB a second.
    pub fn check(&mut self, at: f64) -> Result<(), Violation> {
        if let Some(violation) = &self.broken {
            return Err(violation.clone());
        }
        self.pace.check(at).map_err(|problem| self.broken(problem))
    }

    fn broken(&mut self, problem: Problem) -> Violation {
        let (offset, context) = match &self.state {
            State::Message => (self.began, "a message".to_owned()),
            State::CutText { .. } => (self.began, "a clipboard's text".to_owned()),
            State::Update(update) => match update.reading {
                Some((encoding, rect)) => (update.began, format!("{encoding:?} rectangle {rect}")),
                None => (update.began, "an update's rectangle".to_owned()),
            },
        };
        let violation = Violation { offset, context, problem };
        self.broken = Some(violation.clone());
        self.carry = Vec::new();
        violation
    }

    fn learn(&mut self, features: Features) {
        if self.features != features {
            self.features = features;
            self.events.push(Event::Features(features));
        }
    }

    /// Shows what is painted in the colours of a changed map.
    fn recolour(&mut self, at: f64) {
        if self.painter.format.true_colour {
            return;
        }
        self.painter.set_format(self.painter.format);
        self.painter.canvas.recolour(&self.painter.map);
        self.show(at);
    }

    fn finish_update(&mut self, outcome: Outcome, at: f64) {
        let Outcome {
            events,
            cursor,
            resizes,
            mouse_buttons,
            set_desktop_size,
            rectangles,
            skipped,
            drawn,
            drawable: _,
        } = outcome;
        self.updates += 1;
        self.rectangles.merge(rectangles);
        self.skipped.merge(skipped);
        let resized = resizes - self.resized.len();
        self.resized.extend(std::iter::repeat_n(at, resized));
        self.learn(Features {
            mouse_buttons: self.features.mouse_buttons || mouse_buttons,
            set_desktop_size: self.features.set_desktop_size || set_desktop_size,
            ..self.features
        });
        self.events.extend(events);
        if let Some(shape) = cursor {
            self.cursors += 1;
            let cursor = match shape {
                Shape::Hidden => None,
                Shape::Image(cursor) => Some(Cursor { serial: self.cursors, ..cursor }),
            };
            self.events.push(Event::Cursor { visible: cursor.is_some() });
            self.hidden = cursor.is_none();
            if cursor.is_some() {
                self.cursor.clone_from(&cursor);
            }
            lock(&self.screen).set_cursor(cursor);
        }
        if let Some(rect) = drawn {
            self.find_pointer(rect);
        }
        self.show(at);
        let rect = self.size().rect();
        self.follow.updated(resized > 0, rect, &mut self.outgoing);
    }

    /// The size of the cursor that the server may be drawing into the picture.
    fn drawable(&self) -> Option<Size> {
        self.cursor.as_ref().filter(|_| self.hidden).map(|cursor| cursor.size)
    }

    /// `TigerVNC` does not report that another client has moved the pointer, or where to: it hides our cursor, and draws it
    /// into the picture, in a rectangle of its own. That it is the cursor is seen by each pixel that it covers.
    fn find_pointer(&mut self, rect: Rect) {
        let Some(cursor) = self.cursor.as_ref().filter(|_| self.hidden) else { return };
        let canvas = &mut self.painter.canvas;
        if rect.size() != cursor.size || !canvas.size().rect().contains(rect) {
            return;
        }
        if cursor::is_drawn(cursor, rect, canvas) {
            self.events.push(Event::Pointer { x: rect.x + cursor.hot.0, y: rect.y + cursor.hot.1 });
        }
    }

    /// Hands to the screen what has been painted.
    fn show(&mut self, at: f64) {
        let size = self.painter.canvas.size();
        let mut rects = self.painter.canvas.painted();
        let mut screen = lock(&self.screen);
        let resized = screen.size() != size;
        if resized {
            screen.resize(size, at);
            rects = vec![size.rect()];
        }
        let patches: Vec<_> = rects.iter().map(|rect| self.painter.canvas.patch(*rect)).collect();
        let painted = screen.update(&patches, at).expect("patches of a canvas of the screen's size are inside");
        let generation = screen.generation();
        drop(screen);
        self.events.push(Event::Updated { rects, changed: painted || resized, generation });
    }
}

fn lock(screen: &Mutex<Screen>) -> MutexGuard<'_, Screen> {
    // A screen is whole between two of its calls, even if a thread that held it has panicked.
    screen.lock().unwrap_or_else(PoisonError::into_inner)
}
