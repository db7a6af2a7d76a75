//! Hextile (RFC 6143 §7.7.4): tiles of 16x16 pixels, raw or of rectangles of one colour.

use imaging::Rect;

use super::{Painter, Tiles};
use crate::input::Input;
use crate::pixel::Bgrx;
use crate::violation::{Problem, inside, value};

const SIDE: u32 = 16;

const RAW: u8 = 1;
const BACKGROUND: u8 = 2;
const FOREGROUND: u8 = 4;
const RECTANGLES: u8 = 8;
const COLOURED: u8 = 16;

pub(crate) struct Hextile {
    tiles: Tiles,
    background: Bgrx,
    foreground: Bgrx,
}

impl Hextile {
    pub(crate) const fn new(rect: Rect) -> Self {
        Self { tiles: Tiles::new(rect, SIDE), background: [0; 4], foreground: [0; 4] }
    }

    pub(crate) fn step(&mut self, input: &mut Input, painter: &mut Painter) -> Result<bool, Problem> {
        while let Some(tile) = self.tiles.current() {
            if !self.tile(tile, input, painter)? {
                return Ok(false);
            }
            self.tiles.advance();
        }
        Ok(true)
    }

    /// Paints one tile, unless it is not here as a whole.
    fn tile(&mut self, tile: Rect, input: &mut Input, painter: &mut Painter) -> Result<bool, Problem> {
        let Some(&[mask]) = input.peek(1) else {
            return Ok(false);
        };
        if mask > RAW | BACKGROUND | FOREGROUND | RECTANGLES | COLOURED {
            return Err(value("the mask of a hextile", mask, "at most 31"));
        }
        let bytes = painter.pixel.bytes();
        if mask & RAW != 0 {
            let Some(wire) = input.take(1 + tile.area() as usize * bytes) else {
                return Ok(false);
            };
            painter.canvas.paint(tile, 0, &painter.pixel, &wire[1..]);
            return Ok(true);
        }
        let has = |bit: u8| usize::from(mask & bit != 0);
        let header = 1 + bytes * (has(BACKGROUND) + has(FOREGROUND)) + has(RECTANGLES);
        let Some(wire) = input.peek(header) else {
            return Ok(false);
        };
        let count = if mask & RECTANGLES == 0 { 0 } else { usize::from(wire[header - 1]) };
        let unit = 2 + bytes * has(COLOURED);
        let Some(wire) = input.take(header + count * unit) else {
            return Ok(false);
        };
        if mask & BACKGROUND != 0 {
            self.background = painter.pixel.one(&wire[1..]);
        }
        if mask & FOREGROUND != 0 {
            self.foreground = painter.pixel.one(&wire[1 + bytes * has(BACKGROUND)..]);
        }
        painter.canvas.fill(tile, self.background);
        for wire in wire[header..].chunks_exact(unit) {
            let (colour, place) = wire.split_at(unit - 2);
            let colour = if colour.is_empty() { self.foreground } else { painter.pixel.one(colour) };
            let rect = Rect {
                x: u32::from(place[0] >> 4),
                y: u32::from(place[0] & 15),
                w: u32::from(place[1] >> 4) + 1,
                h: u32::from(place[1] & 15) + 1,
            };
            inside("a rectangle within a hextile", rect, tile.size())?;
            painter.charge(rect.area())?;
            painter.canvas.fill(Rect { x: tile.x + rect.x, y: tile.y + rect.y, ..rect }, colour);
        }
        Ok(true)
    }
}
