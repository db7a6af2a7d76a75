//! Keeps the pixels of a screen from before an action that were overwritten since: what appears and disappears again is no change.
//!
//! The rule: a tile is kept before its first pixel is overwritten, once.

use crate::frame::{Frame, PIXEL};
use crate::geometry::Rect;
use crate::span::changed_span;

const TILE_W: u32 = 64;
const TILE_H: u32 = 16;

/// The tiles that were overwritten since a generation.
#[derive(Debug, Default)]
pub(crate) struct Before {
    since: Option<u64>,
    /// For each tile, row after row, 1 more than its place among those kept; 0 where nothing was overwritten.
    places: Vec<u32>,
    kept: Vec<Rect>,
    pixels: Vec<u8>,
    /// How many were kept before the step under way.
    earlier: usize,
    /// Whether a tile was overwritten in two steps.
    again: bool,
}

impl Before {
    /// From here on, keep what is overwritten.
    pub(crate) fn begin(&mut self, frame: &Frame, generation: u64) {
        let columns = frame.size().w.div_ceil(TILE_W) as usize;
        self.places.clear();
        self.places.resize(columns * frame.size().h.div_ceil(TILE_H) as usize, 0);
        self.kept.clear();
        self.pixels.clear();
        (self.since, self.earlier, self.again) = (Some(generation), 0, false);
    }

    /// Keep nothing any more, and give the memory back.
    pub(crate) fn end(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn is_keeping(&self) -> bool {
        self.since.is_some()
    }

    /// Pixels of `part` are about to be overwritten.
    pub(crate) fn keep(&mut self, frame: &Frame, part: Rect) {
        let columns = frame.size().w.div_ceil(TILE_W);
        for row in part.y / TILE_H..part.bottom().div_ceil(TILE_H) {
            for column in part.x / TILE_W..part.right().div_ceil(TILE_W) {
                let place = &mut self.places[(row * columns + column) as usize];
                if *place != 0 {
                    self.again |= (*place as usize) <= self.earlier;
                    continue;
                }
                let tile = Rect { x: column * TILE_W, y: row * TILE_H, w: TILE_W, h: TILE_H };
                let tile = tile.intersect(frame.size().rect()).expect("tiles begin inside");
                self.kept.push(tile);
                *place = self.kept.len() as u32;
                for y in tile.y..tile.bottom() {
                    self.pixels.extend_from_slice(frame.span(tile, y));
                }
            }
        }
    }

    /// A step of the generation has ended.
    pub(crate) fn note_step(&mut self) {
        self.earlier = self.kept.len();
    }

    /// Boxes around the pixels that are not what they were at `generation`; `None` where each changed once at most, or it is not known.
    pub(crate) fn changes(&self, frame: &Frame, generation: u64) -> Option<Vec<Rect>> {
        if self.since != Some(generation) || !self.again {
            return None;
        }
        let mut left = &self.pixels[..];
        let mut boxes = Vec::new();
        for tile in &self.kept {
            let mut found: Option<Rect> = None;
            for y in tile.y..tile.bottom() {
                let held;
                (held, left) = left.split_at(tile.w as usize * PIXEL);
                let now = frame.span(*tile, y);
                if held != now
                    && let Some((first, last)) = changed_span(held, now)
                {
                    let changed = Rect { x: tile.x + first, y, w: last - first + 1, h: 1 };
                    found = Some(found.map_or(changed, |rect| rect.union(changed)));
                }
            }
            boxes.extend(found);
        }
        Some(boxes)
    }
}
