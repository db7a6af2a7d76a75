//! Tight (rfbproto, "Tight Encoding"): fills, filtered and deflated rows, JPEG.

use imaging::Rect;

use super::rows::{Filter, Gradient, Palette, Rows};
use super::{Painter, picture};
use crate::inflate::Deflated;
use crate::input::Input;
use crate::limits::{Limits, PICTURE_PIXELS};
use crate::violation::{Problem, limit, value};

/// Data shorter than this is not compressed.
const MIN_COMPRESSED: usize = 12;

const FILL: u8 = 8;
const JPEG: u8 = 9;
const EXPLICIT_FILTER: u8 = 4;

pub(crate) struct Tight {
    rect: Rect,
    body: Option<Body>,
}

/// What follows the header.
enum Body {
    Painted,
    Rows { rows: Rows, stream: usize },
    Picture { len: usize },
}

impl Tight {
    pub(crate) const fn new(rect: Rect) -> Self {
        Self { rect, body: None }
    }

    pub(crate) fn step(&mut self, input: &mut Input, painter: &mut Painter) -> Result<bool, Problem> {
        if self.body.is_none() {
            self.body = self.header(input, painter)?;
        }
        match &mut self.body {
            None => Ok(false),
            Some(Body::Painted) => Ok(true),
            Some(Body::Rows { rows, stream }) => {
                rows.step(input, &mut painter.tight[*stream], &mut painter.scratch, &mut painter.canvas)
            }
            Some(Body::Picture { len }) => {
                let Some(bytes) = input.take(*len) else {
                    return Ok(false);
                };
                picture::jpeg(bytes, self.rect, &mut painter.canvas)?;
                Ok(true)
            }
        }
    }

    /// Reads everything up to the compressed data, unless it is not here as a whole.
    fn header(&self, input: &mut Input, painter: &mut Painter) -> Result<Option<Body>, Problem> {
        let Some(&[control]) = input.peek(1) else {
            return Ok(None);
        };
        let body = match control >> 4 {
            FILL => self.fill(input, painter),
            JPEG if !painter.jpeg => {
                return Err(value("the compression of a Tight rectangle", JPEG, "not JPEG, which was not asked for"));
            }
            JPEG => self.picture(input)?,
            basic if basic < FILL => self.basic(basic, input, painter)?,
            other => return Err(value("the compression of a Tight rectangle", other, "at most 9")),
        };
        // Only once the header is complete, else a stream would be reset again after its first bytes.
        if body.is_some() {
            for (i, stream) in painter.tight.iter_mut().enumerate() {
                if control & 1 << i != 0 {
                    stream.reset();
                }
            }
        }
        Ok(body)
    }

    fn fill(&self, input: &mut Input, painter: &mut Painter) -> Option<Body> {
        let wire = input.take(1 + painter.tpixel.bytes())?;
        painter.canvas.fill(self.rect, painter.tpixel.one(&wire[1..]));
        Some(Body::Painted)
    }

    fn picture(&self, input: &mut Input) -> Result<Option<Body>, Problem> {
        limit("pixels of a picture", self.rect.area(), PICTURE_PIXELS)?;
        let Some((len, end)) = compact_length(input, 1) else {
            return Ok(None);
        };
        limit("bytes of a picture", len as u64, Limits::compressed(self.rect.area() * 4))?;
        input.consume(end);
        Ok(Some(Body::Picture { len }))
    }

    fn basic(&self, control: u8, input: &mut Input, painter: &mut Painter) -> Result<Option<Body>, Problem> {
        let Some((mut filter, header)) = self.filter(control, input, painter)? else {
            return Ok(None);
        };
        let row_len = filter.row_len(self.rect.w);
        let len = row_len as u64 * u64::from(self.rect.h);
        if len < MIN_COMPRESSED as u64 {
            let Some(wire) = input.take(header + len as usize) else {
                return Ok(None);
            };
            if row_len > 0 {
                for (y, wire) in (0..).zip(wire[header..].chunks_exact(row_len)) {
                    filter.row(wire, painter.canvas.row(self.rect, y))?;
                }
            }
            return Ok(Some(Body::Painted));
        }
        let Some((compressed, end)) = compact_length(input, header) else {
            return Ok(None);
        };
        limit("bytes of a Tight rectangle", compressed as u64, Limits::compressed(len))?;
        input.consume(end);
        let rows = Rows::new(self.rect, filter, Deflated::new("Tight data", compressed));
        Ok(Some(Body::Rows { rows, stream: usize::from(control & 3) }))
    }

    /// The filter, and the length of the header with it.
    fn filter(&self, control: u8, input: &mut Input, painter: &Painter) -> Result<Option<(Filter, usize)>, Problem> {
        let tpixel = &painter.tpixel;
        if control & EXPLICIT_FILTER == 0 {
            return Ok(Some((Filter::Copy(tpixel.clone()), 1)));
        }
        let Some(&[_, filter]) = input.peek(2) else {
            return Ok(None);
        };
        match filter {
            0 => Ok(Some((Filter::Copy(tpixel.clone()), 2))),
            1 => {
                let Some(&[_, _, last]) = input.peek(3) else {
                    return Ok(None);
                };
                let count = usize::from(last) + 1;
                let end = 3 + count * tpixel.bytes();
                let Some(wire) = input.peek(end) else {
                    return Ok(None);
                };
                let bits = if count <= 2 { 1 } else { 8 };
                Ok(Some((Filter::Palette(Palette::new(tpixel.palette(&wire[3..]), bits)), end)))
            }
            2 if painter.format.true_colour && painter.format.bits_per_pixel >= 16 => {
                Ok(Some((Filter::Gradient(Gradient::new(tpixel.clone(), painter.format, self.rect.w)), 2)))
            }
            2 => Err(value("the filter of a Tight rectangle", filter, "0 or 1 with pixels of 8 bits")),
            _ => Err(value("the filter of a Tight rectangle", filter, "0, 1 or 2")),
        }
    }
}

/// A length of one to three bytes, seven bits in each but the last, that follows `at` bytes; and where it ends.
fn compact_length(input: &mut Input, at: usize) -> Option<(usize, usize)> {
    let first = usize::from(input.peek(at + 1)?[at]);
    if first < 128 {
        return Some((first, at + 1));
    }
    let second = usize::from(input.peek(at + 2)?[at + 1]);
    let len = first & 127 | (second & 127) << 7;
    if second < 128 {
        return Some((len, at + 2));
    }
    let third = usize::from(input.peek(at + 3)?[at + 2]);
    Some((len | third << 14, at + 3))
}
