//! A fingerprint of each tile of a screen, for recorders: which tiles are the same, and which look alike.
//!
//! The rule: a tile is looked at again only when a pixel in it changed, and the padding byte never counts.

use crate::frame::{Frame, PIXEL};
use crate::geometry::{Rect, Size};

/// Width and height of a tile; those at the right and bottom edge are smaller.
pub const TILE: u32 = 64;

/// Cells of a tile that its look is judged by: in each of 8 rows, 8 pairs of neighbours.
const CELLS: (u32, u32) = (9, 8);

/// One tile's fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct TileHash {
    /// Equal for equal pixels, and for others by no more than chance.
    pub exact: u64,
    /// Which cells of the tile are brighter than their right neighbours: tiles that look alike differ in few of the 64 bits.
    pub look: u64,
}

/// The fingerprints of a screen's tiles, row after row.
#[derive(Debug, Default)]
pub(crate) struct Hashes {
    size: Option<Size>,
    tiles: Vec<TileHash>,
}

impl Hashes {
    /// Brings the tiles up to date that `changed` touches: all that changed since the last time.
    pub(crate) fn refresh(&mut self, frame: &Frame, changed: &[Rect]) -> &[TileHash] {
        let size = frame.size();
        let columns = size.w.div_ceil(TILE);
        let all = [size.rect()];
        let mut changed = changed;
        if self.size != Some(size) {
            self.size = Some(size);
            self.tiles = vec![TileHash::default(); (columns * size.h.div_ceil(TILE)) as usize];
            changed = &all;
        }
        let mut done = vec![false; self.tiles.len()];
        for rect in changed {
            for row in rect.y / TILE..rect.bottom().div_ceil(TILE) {
                for column in rect.x / TILE..rect.right().div_ceil(TILE) {
                    let i = (row * columns + column) as usize;
                    if !std::mem::replace(&mut done[i], true) {
                        let tile = Rect { x: column * TILE, y: row * TILE, w: TILE, h: TILE };
                        self.tiles[i] = TileHash::of(frame, tile.intersect(size.rect()).expect("tiles begin inside"));
                    }
                }
            }
        }
        &self.tiles
    }
}

impl TileHash {
    fn of(frame: &Frame, tile: Rect) -> Self {
        // FNV-1a over words of a pixel each, and its size, so that a cut tile is not a whole one of the same pixels.
        let mut exact = 0xCBF2_9CE4_8422_2325_u64 ^ u64::from(tile.w) << 32 ^ u64::from(tile.h);
        let mut sums = [0_u32; (CELLS.0 * CELLS.1) as usize];
        let mut counts = sums;
        for y in 0..tile.h {
            for (x, pixel) in (0..tile.w).zip(frame.span(tile, tile.y + y).as_chunks::<PIXEL>().0) {
                exact = (exact ^ u64::from(u32::from_le_bytes([pixel[0], pixel[1], pixel[2], 0])))
                    .wrapping_mul(0x100_0000_01B3);
                let cell = (y * CELLS.1 / tile.h * CELLS.0 + x * CELLS.0 / tile.w) as usize;
                sums[cell] += u32::from(pixel[0]) + 4 * u32::from(pixel[1]) + 2 * u32::from(pixel[2]);
                counts[cell] += 1;
            }
        }
        let bright = |cell: usize| sums[cell] / counts[cell].max(1);
        let mut look = 0;
        for row in 0..CELLS.1 as usize {
            for column in 0..CELLS.0 as usize - 1 {
                let cell = row * CELLS.0 as usize + column;
                look = look << 1 | u64::from(bright(cell) > bright(cell + 1));
            }
        }
        Self { exact, look }
    }
}
