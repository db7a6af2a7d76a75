//! A `FramebufferUpdate` (RFC 6143 §7.6.1): rectangles of pixels, and messages in the form of rectangles.
//!
//! The rule: nothing of an update is reported, or shown on the screen, before its last rectangle is here.

use imaging::{Rect, Size};

use crate::cursor::{self, Shape};
use crate::decode::{Painter, Payload};
use crate::encoding::Encoding;
use crate::event::{Event, Leds, Monitor, ResizedBy};
use crate::input::{Fields, Input};
use crate::limits::Limits;
use crate::message::Collected;
use crate::skipped::Skipped;
use crate::violation::{Problem, inside, limit, value};

/// An update under way.
pub(crate) struct Update {
    /// Rectangles still to come, unless `LastRect` comes before.
    left: u16,
    part: Option<Part>,
    /// The rectangle being read: its encoding and place, for the message of a violation.
    pub reading: Option<(Encoding, Rect)>,
    /// Where it begins.
    pub began: u64,
    pub outcome: Outcome,
}

/// What an update has reported so far.
#[derive(Default)]
pub(crate) struct Outcome {
    pub events: Vec<Event>,
    pub cursor: Option<Shape>,
    /// Changes of the size within a second.
    pub resizes: usize,
    pub mouse_buttons: bool,
    pub set_desktop_size: bool,
    /// The encodings of its rectangles, and how many of each.
    pub rectangles: Tally<Encoding>,
    /// The same of those that were not offered, by their numbers.
    pub skipped: Tally<i32>,
    /// The size that a cursor drawn into the picture would have, and the latest rectangle of that size.
    pub drawable: Option<Size>,
    pub drawn: Option<Rect>,
}

/// How many rectangles of each encoding.
pub(crate) struct Tally<T>(pub Vec<(T, u64)>);

impl<T> Default for Tally<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: PartialEq> Tally<T> {
    pub(crate) fn add(&mut self, encoding: T, count: u64) {
        match self.0.iter_mut().find(|(known, _)| *known == encoding) {
            Some((_, known)) => *known += count,
            None => self.0.push((encoding, count)),
        }
    }

    pub(crate) fn merge(&mut self, more: Self) {
        more.0.into_iter().for_each(|(encoding, count)| self.add(encoding, count));
    }
}

/// What a rectangle's header is followed by.
enum Part {
    Pixels(Payload),
    Cursor(Encoding, Rect),
    SkippedCursor(u64),
    Layout(Rect),
    Leds,
    NameLength,
    Name(Collected),
    Skipped(Skipped),
}

impl Update {
    /// An update of at most `count` rectangles, after `resizes` changes of the size within the last second. `drawable`: see
    /// [`Outcome::drawable`].
    pub(crate) fn new(count: u16, began: u64, resizes: usize, drawable: Option<Size>) -> Self {
        let outcome = Outcome { resizes, drawable, ..Outcome::default() };
        Self { left: count, part: None, reading: None, began, outcome }
    }

    /// Reads what is here; returns whether the update is complete.
    pub(crate) fn step(
        &mut self,
        input: &mut Input,
        painter: &mut Painter,
        offered: &[Encoding],
        limits: &Limits,
    ) -> Result<bool, Problem> {
        loop {
            if let Some(part) = &mut self.part {
                if !part.step(input, painter, limits, &mut self.outcome)? {
                    return Ok(false);
                }
                if let (Some(Part::Pixels(_)), Some((_, rect))) = (&self.part, self.reading) {
                    painter.canvas.touch(rect);
                    if self.outcome.drawable == Some(rect.size()) {
                        self.outcome.drawn = Some(rect);
                    }
                }
                (self.part, self.reading) = (None, None);
            }
            if self.left == 0 {
                return Ok(true);
            }
            self.began = input.offset();
            let Some(header) = input.take(12) else {
                return Ok(false);
            };
            self.left -= 1;
            if self.header(header, painter, offered, limits)? {
                return Ok(true);
            }
        }
    }

    /// Reads a rectangle's header; returns whether it ends the update.
    fn header(
        &mut self,
        header: &[u8],
        painter: &mut Painter,
        offered: &[Encoding],
        limits: &Limits,
    ) -> Result<bool, Problem> {
        let mut fields = Fields(header);
        let mut side = || u32::from(fields.u16());
        let rect = Rect { x: side(), y: side(), w: side(), h: side() };
        let number = fields.u32() as i32;
        let known = Encoding::of(number)
            .filter(|encoding| encoding.is_of_rectangles())
            .filter(|encoding| *encoding == Encoding::Raw || offered.contains(encoding));
        let Some(encoding) = known else {
            let skipped = Skipped::of(number, rect, &painter.pixel)
                .ok_or_else(|| value("the encoding of a rectangle", number, "one that was offered"))?;
            self.outcome.skipped.add(number, 1);
            self.part = Some(Part::Skipped(skipped));
            return Ok(false);
        };
        self.reading = Some((encoding, rect));
        self.outcome.rectangles.add(encoding, 1);
        self.part = match encoding {
            Encoding::LastRect => return Ok(true),
            Encoding::DesktopSize => {
                self.outcome.resize(rect.size(), painter, limits)?;
                self.outcome.events.push(Event::Resized {
                    size: rect.size(),
                    monitors: Vec::new(),
                    by: ResizedBy::Server,
                });
                None
            }
            Encoding::MouseButtons => {
                self.outcome.mouse_buttons = true;
                None
            }
            Encoding::PointerPos | Encoding::CursorPosition => {
                self.outcome.events.push(Event::Pointer { x: rect.x, y: rect.y });
                None
            }
            Encoding::ExtendedDesktopSize => Some(Part::Layout(rect)),
            Encoding::QemuLeds => Some(Part::Leds),
            Encoding::DesktopName => Some(Part::NameLength),
            Encoding::Cursor | Encoding::CursorWithAlpha => {
                if rect.w.max(rect.h) <= limits.cursor {
                    Some(Part::Cursor(encoding, rect))
                } else {
                    let skipped = cursor::length(encoding, rect, &painter.pixel);
                    limit("bytes of a cursor", skipped, limits.skipped)?;
                    Some(Part::SkippedCursor(skipped))
                }
            }
            _ => {
                inside("the rectangle", rect, painter.canvas.size())?;
                painter.charge(rect.area())?;
                Payload::new(encoding, rect).map(Part::Pixels)
            }
        };
        Ok(false)
    }
}

impl Outcome {
    fn resize(&mut self, size: Size, painter: &mut Painter, limits: &Limits) -> Result<(), Problem> {
        limits.framebuffer(size)?;
        self.resizes += 1;
        limit("changes of the framebuffer's size within a second", self.resizes as u64, limits.resizes as u64)?;
        painter.resize(size);
        Ok(())
    }
}

impl Part {
    fn step(
        &mut self,
        input: &mut Input,
        painter: &mut Painter,
        limits: &Limits,
        outcome: &mut Outcome,
    ) -> Result<bool, Problem> {
        match self {
            Self::Pixels(payload) => return payload.step(input, painter),
            Self::Cursor(encoding, rect) => {
                let Some(image) = cursor::read(*encoding, *rect, &painter.pixel, input)? else {
                    return Ok(false);
                };
                outcome.cursor = Some(image);
            }
            Self::SkippedCursor(left) => {
                *left -= input.skip(*left);
                if *left > 0 {
                    return Ok(false);
                }
                outcome.cursor = Some(Shape::Hidden);
            }
            Self::Skipped(skipped) => return skipped.step(input, limits),
            Self::Layout(rect) => {
                let Some(event) = layout(*rect, input) else {
                    return Ok(false);
                };
                outcome.set_desktop_size = true;
                if let Event::Resized { size, .. } = event
                    && size != painter.canvas.size()
                {
                    outcome.resize(size, painter, limits)?;
                }
                outcome.events.push(event);
            }
            Self::Leds => {
                let Some(&[state]) = input.take(1) else {
                    return Ok(false);
                };
                let on = |bit: u8| state & bit != 0;
                outcome.events.push(Event::Leds(Leds { scroll: on(1), num: on(2), caps: on(4) }));
            }
            Self::NameLength => {
                let Some(len) = input.array() else {
                    return Ok(false);
                };
                let len = u32::from_be_bytes(len);
                *self = Self::Name(Collected::name("bytes of the desktop's name", len, limits)?);
                return self.step(input, painter, limits, outcome);
            }
            Self::Name(name) => {
                if !name.step(input) {
                    return Ok(false);
                }
                outcome.events.push(Event::DesktopName {
                    name: String::from_utf8_lossy(&name.kept).into_owned(),
                    truncated: name.truncated,
                });
            }
        }
        Ok(true)
    }
}

/// Reads the data of an `ExtendedDesktopSize`, unless it is not here as a whole.
fn layout(rect: Rect, input: &mut Input) -> Option<Event> {
    let count = usize::from(input.peek(1)?[0]);
    let mut fields = Fields(input.take(4 + 16 * count)?);
    fields.bytes(4);
    let monitors = (0..count)
        .map(|_| {
            let id = fields.u32();
            let mut side = || u32::from(fields.u16());
            let rect = Rect { x: side(), y: side(), w: side(), h: side() };
            Monitor { id, rect, flags: fields.u32() }
        })
        .collect();
    let by = match rect.x {
        1 => ResizedBy::Us,
        2 => ResizedBy::OtherClient,
        _ => ResizedBy::Server,
    };
    if by == ResizedBy::Us && rect.y != 0 {
        return Some(Event::ResizeRefused { status: rect.y as u16 });
    }
    Some(Event::Resized { size: rect.size(), monitors, by })
}
