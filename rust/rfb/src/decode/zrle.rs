//! ZRLE (RFC 6143 §7.7.6): tiles of 64x64 pixels with palettes and runs, in one zlib stream.

use imaging::Rect;

use super::rows::Palette;
use super::{Painter, Tiles, compressed_length};
use crate::inflate::Deflated;
use crate::input::Input;
use crate::pixel::{Bgrx, Unpacker};
use crate::violation::{Problem, value};

const SIDE: u32 = 64;

/// Pixels of a tile.
const AREA: usize = (SIDE * SIDE) as usize;

/// Room for inflated bytes: the longest tile (4096 runs of one pixel: 20,481 bytes) several times.
const ROOM: usize = 128 << 10;

pub(crate) struct Zrle {
    tiles: Tiles,
    deflated: Option<Deflated>,
    /// Bytes inflated that are not a whole tile yet.
    kept: usize,
}

/// Why a tile was not decoded.
enum Halt {
    Short,
    Bad(Problem),
}

impl Zrle {
    pub(crate) const fn new(rect: Rect) -> Self {
        Self { tiles: Tiles::new(rect, SIDE), deflated: None, kept: 0 }
    }

    pub(crate) fn step(&mut self, input: &mut Input, painter: &mut Painter) -> Result<bool, Problem> {
        let deflated = if let Some(deflated) = &mut self.deflated {
            deflated
        } else {
            let raw = self.tiles.rect.area() * painter.cpixel.bytes() as u64;
            let Some(len) = compressed_length("bytes of a ZRLE rectangle", raw, input)? else {
                return Ok(false);
            };
            self.deflated.insert(Deflated::new("ZRLE data", len))
        };
        if painter.scratch.len() < ROOM {
            painter.scratch.resize(ROOM, 0);
        }
        while self.tiles.current().is_some() {
            let filled = self.kept + deflated.fill(input, &mut painter.zrle, &mut painter.scratch[self.kept..ROOM])?;
            let fresh = filled > self.kept;
            let mut wire = &painter.scratch[..filled];
            while let Some(tile) = self.tiles.current() {
                let mut reader = Reader { wire, cpixel: &painter.cpixel };
                match paint(&mut reader, tile, &mut painter.canvas) {
                    Ok(()) => wire = reader.wire,
                    Err(Halt::Short) => break,
                    Err(Halt::Bad(problem)) => return Err(problem),
                }
                self.tiles.advance();
            }
            self.kept = wire.len();
            painter.scratch.copy_within(filled - self.kept..filled, 0);
            if !fresh && self.tiles.current().is_some() {
                deflated.expect_more()?;
                return Ok(false);
            }
        }
        if self.kept > 0 {
            return Err(crate::violation::data("ZRLE data", "gives more bytes than its rectangle has"));
        }
        deflated.finish(input, &mut painter.zrle)
    }
}

/// The inflated bytes of a tile.
struct Reader<'a> {
    wire: &'a [u8],
    cpixel: &'a Unpacker,
}

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8], Halt> {
        let (taken, rest) = self.wire.split_at_checked(n).ok_or(Halt::Short)?;
        self.wire = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, Halt> {
        self.take(1).map(|byte| byte[0])
    }

    fn pixel(&mut self) -> Result<Bgrx, Halt> {
        self.take(self.cpixel.bytes()).map(|wire| self.cpixel.one(wire))
    }

    fn palette(&mut self, count: u8) -> Result<Vec<Bgrx>, Halt> {
        self.take(usize::from(count) * self.cpixel.bytes()).map(|wire| self.cpixel.palette(wire))
    }

    /// The length of a run, of at most `left` pixels.
    fn run(&mut self, left: usize) -> Result<usize, Halt> {
        let mut run = 1;
        loop {
            let byte = self.byte()?;
            run += usize::from(byte);
            if run > left {
                return Err(Halt::Bad(value("the length of a run", run as i64, "at most what is left of its tile")));
            }
            if byte < 255 {
                return Ok(run);
            }
        }
    }
}

fn paint(reader: &mut Reader, tile: Rect, canvas: &mut crate::canvas::Canvas) -> Result<(), Halt> {
    let (width, area) = (tile.w as usize, tile.area() as usize);
    match reader.byte()? {
        0 => {
            let wire = reader.take(area * reader.cpixel.bytes())?;
            canvas.paint(tile, 0, reader.cpixel, wire);
        }
        1 => canvas.fill(tile, reader.pixel()?),
        count @ 2..=16 => {
            let bits = match count {
                2 => 1,
                3 | 4 => 2,
                _ => 4,
            };
            let palette = Palette::new(reader.palette(count)?, bits);
            let row_len = palette.row_len(width);
            for (y, wire) in (0..).zip(reader.take(row_len * tile.h as usize)?.chunks_exact(row_len)) {
                palette.row(wire, canvas.row(tile, y)).map_err(Halt::Bad)?;
            }
        }
        subencoding => {
            // Runs go on from row to row, so they are laid out in one row first.
            let mut pixels = [[0; 4]; AREA];
            match subencoding {
                128 => runs(reader, &mut pixels[..area])?,
                130.. => palette_runs(reader, subencoding - 128, &mut pixels[..area])?,
                _ => {
                    return Err(Halt::Bad(value(
                        "the subencoding of a ZRLE tile",
                        subencoding,
                        "0-16, 128 or 130-255",
                    )));
                }
            }
            for (y, row) in (0..).zip(pixels[..area].chunks_exact(width)) {
                canvas.row(tile, y).copy_from_slice(row);
            }
        }
    }
    Ok(())
}

fn runs(reader: &mut Reader, out: &mut [Bgrx]) -> Result<(), Halt> {
    let mut done = 0;
    while done < out.len() {
        let colour = reader.pixel()?;
        let run = reader.run(out.len() - done)?;
        out[done..done + run].fill(colour);
        done += run;
    }
    Ok(())
}

fn palette_runs(reader: &mut Reader, count: u8, out: &mut [Bgrx]) -> Result<(), Halt> {
    let palette = reader.palette(count)?;
    let mut done = 0;
    while done < out.len() {
        let byte = reader.byte()?;
        let colour = *palette
            .get(usize::from(byte & 127))
            .ok_or_else(|| Halt::Bad(value("an index into a palette", byte & 127, "less than the palette's length")))?;
        let run = if byte < 128 { 1 } else { reader.run(out.len() - done)? };
        out[done..done + run].fill(colour);
        done += run;
    }
    Ok(())
}
