//! Rows of a rectangle that come out of a zlib stream, and the filters they went through: the encoding zlib, and Tight.
//!
//! The rule: only some rows at a time are inflated, so that a tall rectangle takes no more memory than a low one.

use imaging::Rect;

use crate::canvas::Canvas;
use crate::inflate::{Deflated, Inflater};
use crate::input::Input;
use crate::pixel::{Bgrx, PixelFormat, Unpacker};
use crate::violation::{Problem, value};

/// Bytes inflated at a time, unless one row is longer.
const ROOM: usize = 64 << 10;

/// What was done to pixels before they were compressed.
pub(crate) enum Filter {
    /// Nothing.
    Copy(Unpacker),
    /// They are indices into a palette.
    Palette(Palette),
    /// They are differences to a prediction from their neighbours.
    Gradient(Gradient),
}

impl Filter {
    /// Bytes of one row.
    pub(crate) fn row_len(&self, width: u32) -> usize {
        let width = width as usize;
        match self {
            Self::Copy(unpacker) => width * unpacker.bytes(),
            Self::Palette(palette) => palette.row_len(width),
            Self::Gradient(gradient) => width * gradient.unpacker.bytes(),
        }
    }

    /// Decodes one row.
    pub(crate) fn row(&mut self, wire: &[u8], out: &mut [Bgrx]) -> Result<(), Problem> {
        match self {
            Self::Copy(unpacker) => unpacker.many(wire, out),
            Self::Palette(palette) => palette.row(wire, out)?,
            Self::Gradient(gradient) => gradient.row(wire, out),
        }
        Ok(())
    }
}

/// Colours that indices stand for.
pub(crate) struct Palette {
    /// Room for every index that the bits can hold; those without a colour are refused.
    colours: Vec<Bgrx>,
    count: usize,
    bits: usize,
}

impl Palette {
    /// A palette whose indices take `bits` bits: 1, 2, 4 or 8.
    pub(crate) fn new(mut colours: Vec<Bgrx>, bits: usize) -> Self {
        let count = colours.len();
        colours.resize(1 << bits, [0; 4]);
        Self { colours, count, bits }
    }

    /// Bytes of one row.
    pub(crate) const fn row_len(&self, width: usize) -> usize {
        (width * self.bits).div_ceil(8)
    }

    /// Decodes one row of indices, the first in the highest bits.
    ///
    /// # Errors
    /// When an index has no colour.
    pub(crate) fn row(&self, wire: &[u8], out: &mut [Bgrx]) -> Result<(), Problem> {
        match self.bits {
            1 => self.unpack::<1, 8>(wire, out),
            2 => self.unpack::<2, 4>(wire, out),
            4 => self.unpack::<4, 2>(wire, out),
            _ => self.unpack::<8, 1>(wire, out),
        }
    }

    fn unpack<const BITS: u32, const PER_BYTE: usize>(&self, wire: &[u8], out: &mut [Bgrx]) -> Result<(), Problem> {
        let mut highest = 0;
        let colours = &self.colours[..1 << BITS];
        let mut one = |out: &mut Bgrx, byte: u8, place: usize| {
            let index = usize::from(byte.rotate_left((place as u32 + 1) * BITS)) & ((1 << BITS) - 1);
            highest = highest.max(index);
            *out = colours[index];
        };
        let (whole, rest) = out.as_chunks_mut::<PER_BYTE>();
        for (out, byte) in whole.iter_mut().zip(wire) {
            for (place, out) in out.iter_mut().enumerate() {
                one(out, *byte, place);
            }
        }
        for (place, out) in rest.iter_mut().enumerate() {
            one(out, wire[whole.len()], place);
        }
        if highest >= self.count {
            return Err(value("an index into a palette", highest as i64, "less than the palette's length"));
        }
        Ok(())
    }
}

/// Tight's prediction: left plus above minus above left, for each colour on its own.
pub(crate) struct Gradient {
    unpacker: Unpacker,
    format: PixelFormat,
    above: Vec<[u16; 3]>,
}

impl Gradient {
    pub(crate) fn new(unpacker: Unpacker, format: PixelFormat, width: u32) -> Self {
        Self { unpacker, format, above: vec![[0; 3]; width as usize] }
    }

    fn row(&mut self, wire: &[u8], out: &mut [Bgrx]) {
        let (mut left, mut above_left) = ([0; 3], [0; 3]);
        let bytes = self.unpacker.bytes();
        for ((wire, out), above) in wire.chunks_exact(bytes).zip(out).zip(&mut self.above) {
            // A TPIXEL of three bytes is red, green and blue whatever the format says.
            let difference = match *wire {
                [red, green, blue] => [red, green, blue].map(u16::from),
                _ => self.format.split(self.unpacker.raw(wire)),
            };
            let here: [u16; 3] = std::array::from_fn(|i| {
                let max = i32::from(self.format.max[i]);
                let guess = i32::from(left[i]) + i32::from(above[i]) - i32::from(above_left[i]);
                (difference[i] + guess.clamp(0, max) as u16) & self.format.max[i]
            });
            *out = match bytes {
                3 => [here[2] as u8, here[1] as u8, here[0] as u8, 0],
                _ => self.format.join(here),
            };
            above_left = std::mem::replace(above, here);
            left = here;
        }
    }
}

/// A rectangle's rows, as they come.
pub(crate) struct Rows {
    rect: Rect,
    done: u32,
    filter: Filter,
    deflated: Deflated,
    /// Bytes inflated that are not a whole row yet.
    kept: usize,
}

impl Rows {
    pub(crate) const fn new(rect: Rect, filter: Filter, deflated: Deflated) -> Self {
        // Without pixels there are no rows to wait for.
        let done = if rect.is_empty() { rect.h } else { 0 };
        Self { rect, done, filter, deflated, kept: 0 }
    }

    /// Paints the rows that are here; returns whether they were all.
    pub(crate) fn step(
        &mut self,
        input: &mut Input,
        stream: &mut Inflater,
        scratch: &mut Vec<u8>,
        canvas: &mut Canvas,
    ) -> Result<bool, Problem> {
        let row_len = self.filter.row_len(self.rect.w);
        while self.done < self.rect.h {
            let rows = (ROOM / row_len).clamp(1, (self.rect.h - self.done) as usize);
            let wanted = rows * row_len;
            if scratch.len() < wanted {
                scratch.resize(wanted, 0);
            }
            let filled = self.kept + self.deflated.fill(input, stream, &mut scratch[self.kept..wanted])?;
            for wire in scratch[..filled].chunks_exact(row_len) {
                self.filter.row(wire, canvas.row(self.rect, self.done))?;
                self.done += 1;
            }
            self.kept = filled % row_len;
            scratch.copy_within(filled - self.kept..filled, 0);
            if filled < wanted {
                self.deflated.expect_more()?;
                return Ok(false);
            }
        }
        self.deflated.finish(input, stream)
    }
}
