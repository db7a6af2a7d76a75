//! RRE (RFC 6143 §7.7.3) and `CoRRE`: a background, and rectangles of one colour upon it.

use imaging::Rect;

use super::Painter;
use crate::input::{Fields, Input};
use crate::violation::{Problem, inside, limit};

pub(crate) struct Rre {
    rect: Rect,
    /// Whether places and sizes are bytes.
    compact: bool,
    /// Rectangles still to come; `None` before the header.
    left: Option<usize>,
}

impl Rre {
    pub(crate) const fn new(rect: Rect, compact: bool) -> Self {
        Self { rect, compact, left: None }
    }

    pub(crate) fn step(&mut self, input: &mut Input, painter: &mut Painter) -> Result<bool, Problem> {
        let bytes = painter.pixel.bytes();
        let mut left = if let Some(left) = self.left {
            left
        } else {
            let Some(header) = input.take(4 + bytes) else {
                return Ok(false);
            };
            let count = Fields(header).u32();
            limit("rectangles within an RRE rectangle", count.into(), self.rect.area())?;
            painter.canvas.fill(self.rect, painter.pixel.one(&header[4..]));
            count as usize
        };
        let unit = bytes + if self.compact { 4 } else { 8 };
        while left > 0 {
            self.left = Some(left);
            let Some(wire) = input.units(unit, left) else {
                return Ok(false);
            };
            for wire in wire.chunks_exact(unit) {
                self.paint(wire, painter)?;
            }
            left -= wire.len() / unit;
        }
        Ok(true)
    }

    fn paint(&self, wire: &[u8], painter: &mut Painter) -> Result<(), Problem> {
        let (colour, place) = wire.split_at(painter.pixel.bytes());
        let mut fields = Fields(place);
        let mut field = || if self.compact { u32::from(fields.u8()) } else { u32::from(fields.u16()) };
        let rect = Rect { x: field(), y: field(), w: field(), h: field() };
        inside("a rectangle within an RRE rectangle", rect, self.rect.size())?;
        // They may overlap, so their number alone does not bound the work.
        painter.charge(rect.area())?;
        let rect = Rect { x: self.rect.x + rect.x, y: self.rect.y + rect.y, ..rect };
        painter.canvas.fill(rect, painter.pixel.one(colour));
        Ok(())
    }
}
