//! The rectangles of an update: one file for each family of encodings.
//!
//! The rule: a decoder gets the rectangle, which is inside the canvas, and is called until it is done. It may
//! stop after any byte. What it keeps between two calls is bounded by constants, or by a length that was checked.

mod hextile;
mod picture;
mod rows;
mod tight;
mod zrle;

use imaging::{Rect, Size};

use crate::canvas::Canvas;
use crate::encoding::Encoding;
use crate::inflate::{Deflated, Inflater};
use crate::input::{Fields, Input};
use crate::limits::Limits;
use crate::pixel::{ColourMap, PixelFormat, Unpacker};
use crate::violation::{Problem, inside, limit};

use hextile::Hextile;
use rows::{Filter, Rows};
use tight::Tight;
use zrle::Zrle;

/// What decoders paint on, and what they remember from one rectangle to the next.
pub(crate) struct Painter {
    pub canvas: Canvas,
    pub format: PixelFormat,
    pub map: ColourMap,
    pub pixel: Unpacker,
    cpixel: Unpacker,
    tpixel: Unpacker,
    zlib: Inflater,
    zrle: Inflater,
    tight: [Inflater; 4],
    scratch: Vec<u8>,
    /// Pixels that this update may still paint.
    budget: u64,
    /// Whether JPEG was requested.
    pub jpeg: bool,
}

impl Painter {
    pub(crate) fn new(canvas: Canvas, format: PixelFormat) -> Self {
        let map = ColourMap::new();
        Self {
            canvas,
            pixel: format.pixel(&map),
            cpixel: format.cpixel(&map),
            tpixel: format.tpixel(&map),
            format,
            map,
            zlib: Inflater::default(),
            zrle: Inflater::default(),
            tight: Default::default(),
            scratch: Vec::new(),
            budget: 0,
            jpeg: false,
        }
    }

    /// Takes another format, or the same after a change of the colour map.
    pub(crate) fn set_format(&mut self, format: PixelFormat) {
        self.pixel = format.pixel(&self.map);
        self.cpixel = format.cpixel(&self.map);
        self.tpixel = format.tpixel(&self.map);
        self.format = format;
    }

    /// Changes the framebuffer's size.
    pub(crate) fn resize(&mut self, size: Size) {
        self.canvas.resize(size);
        self.begin();
    }

    /// Sets how much an update may paint.
    pub(crate) fn begin(&mut self) {
        self.budget = Limits::painting(self.canvas.size());
    }

    /// Counts pixels about to be painted.
    ///
    /// # Errors
    /// When the update has painted too many.
    pub(crate) fn charge(&mut self, area: u64) -> Result<(), Problem> {
        let max = Limits::painting(self.canvas.size());
        let painted = max - self.budget + area;
        limit("pixels painted by one update", painted, max)?;
        self.budget = max - painted;
        Ok(())
    }
}

/// A rectangle of pixels being decoded.
pub(crate) enum Payload {
    Raw { rect: Rect, done: u64 },
    CopyRect(Rect),
    Hextile(Hextile),
    Zlib { rect: Rect, rows: Option<Rows> },
    Zrle(Zrle),
    Tight(Tight),
}

impl Payload {
    /// The decoder for an encoding; `None` when it is not one of pixels.
    pub(crate) fn new(encoding: Encoding, rect: Rect) -> Option<Self> {
        Some(match encoding {
            Encoding::Raw => Self::Raw { rect, done: 0 },
            Encoding::CopyRect => Self::CopyRect(rect),
            Encoding::Hextile => Self::Hextile(Hextile::new(rect)),
            Encoding::Zlib => Self::Zlib { rect, rows: None },
            Encoding::Zrle => Self::Zrle(Zrle::new(rect)),
            Encoding::Tight => Self::Tight(Tight::new(rect)),
            _ => return None,
        })
    }

    /// Decodes what is here; returns whether the rectangle is complete.
    ///
    /// # Errors
    /// When the rectangle's data is malformed.
    pub(crate) fn step(&mut self, input: &mut Input, painter: &mut Painter) -> Result<bool, Problem> {
        match self {
            Self::Raw { rect, done } => Ok(raw(*rect, done, input, painter)),
            Self::CopyRect(rect) => copy_rect(*rect, input, painter),
            Self::Hextile(hextile) => hextile.step(input, painter),
            Self::Zlib { rect, rows } => zlib(*rect, rows, input, painter),
            Self::Zrle(zrle) => zrle.step(input, painter),
            Self::Tight(tight) => tight.step(input, painter),
        }
    }
}

/// Raw (RFC 6143 §7.7.1): pixels row by row.
fn raw(rect: Rect, done: &mut u64, input: &mut Input, painter: &mut Painter) -> bool {
    while *done < rect.area() {
        let left = usize::try_from(rect.area() - *done).unwrap_or(usize::MAX);
        let Some(wire) = input.units(painter.pixel.bytes(), left) else {
            return false;
        };
        *done = painter.canvas.paint(rect, *done, &painter.pixel, wire);
    }
    true
}

/// `CopyRect` (RFC 6143 §7.7.2): where in the framebuffer the rectangle's pixels are.
fn copy_rect(rect: Rect, input: &mut Input, painter: &mut Painter) -> Result<bool, Problem> {
    let Some(wire) = input.take(4) else {
        return Ok(false);
    };
    let mut fields = Fields(wire);
    let source = Rect { x: fields.u16().into(), y: fields.u16().into(), ..rect };
    inside("the source of a copy", source, painter.canvas.size())?;
    painter.canvas.copy((source.x, source.y), rect);
    Ok(true)
}

/// Zlib: a length, and raw pixels deflated.
fn zlib(rect: Rect, rows: &mut Option<Rows>, input: &mut Input, painter: &mut Painter) -> Result<bool, Problem> {
    let rows = if let Some(rows) = rows {
        rows
    } else {
        let raw = rect.area() * painter.pixel.bytes() as u64;
        let Some(len) = compressed_length("bytes of a zlib rectangle", raw, input)? else {
            return Ok(false);
        };
        rows.insert(Rows::new(rect, Filter::Copy(painter.pixel.clone()), Deflated::new("zlib data", len)))
    };
    rows.step(input, &mut painter.zlib, &mut painter.scratch, &mut painter.canvas)
}

/// The length of compressed data, checked against what it is to give.
fn compressed_length(what: &'static str, raw: u64, input: &mut Input) -> Result<Option<usize>, Problem> {
    let Some(wire) = input.array::<4>() else {
        return Ok(None);
    };
    let len = u32::from_be_bytes(wire);
    limit(what, len.into(), Limits::compressed(raw))?;
    Ok(Some(len as usize))
}

/// The tiles of a rectangle, in rows from the top.
struct Tiles {
    rect: Rect,
    side: u32,
    /// Top left corner of the next one, relative to the rectangle.
    next: (u32, u32),
}

impl Tiles {
    const fn new(rect: Rect, side: u32) -> Self {
        Self { rect, side, next: (0, 0) }
    }

    /// The tile that is next; `None` when there is no more.
    fn current(&self) -> Option<Rect> {
        let (x, y) = self.next;
        if self.rect.is_empty() || y >= self.rect.h {
            return None;
        }
        let size = Size { w: self.side.min(self.rect.w - x), h: self.side.min(self.rect.h - y) };
        Some(Rect { x: self.rect.x + x, y: self.rect.y + y, w: size.w, h: size.h })
    }

    const fn advance(&mut self) {
        self.next.0 += self.side;
        if self.next.0 >= self.rect.w {
            self.next = (0, self.next.1 + self.side);
        }
    }
}
