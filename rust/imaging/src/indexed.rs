//! Pictures of few colours, as indices into a palette: a third of the bytes to deflate.

use crate::view::RGB;

/// A byte an index.
const MAX_COLOURS: usize = 256;

/// Slots for the colours met so far, four for each, so that most are found at once.
const SLOTS: usize = 4 * MAX_COLOURS;

/// A picture's colours in the order in which they were met, and its pixels as indices into them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Indexed {
    /// RGB, as in a PLTE chunk (PNG §11.2.2).
    pub palette: Vec<u8>,
    /// Rows of a filter byte, which is zero (None), and an index for each pixel.
    pub rows: Vec<u8>,
}

impl Indexed {
    /// Indexes rows of RGB; `None` when there are more colours than a byte can tell apart.
    pub(crate) fn of(rgb: &[u8], width: usize) -> Option<Self> {
        // The colour, or a number no colour has; and its index.
        let mut slots = [(u32::MAX, 0_u8); SLOTS];
        let mut palette = Vec::new();
        let mut rows = Vec::with_capacity(rgb.len() / RGB + rgb.len() / (width * RGB));
        let mut last = (u32::MAX, 0);
        for row in rgb.chunks_exact(width * RGB) {
            rows.push(0);
            for pixel in row.as_chunks::<RGB>().0 {
                let colour = u32::from_le_bytes([pixel[0], pixel[1], pixel[2], 0]);
                if colour != last.0 {
                    let slot = find(&slots, colour);
                    if slots[slot].0 != colour {
                        let index = u8::try_from(palette.len() / RGB).ok()?;
                        palette.extend_from_slice(pixel);
                        slots[slot] = (colour, index);
                    }
                    last = slots[slot];
                }
                rows.push(last.1);
            }
        }
        Some(Self { palette, rows })
    }
}

/// The slot of a colour, or the free one where it belongs: three quarters are always free.
fn find(slots: &[(u32, u8); SLOTS], colour: u32) -> usize {
    let mut slot = (colour.wrapping_mul(0x9E37_79B1) >> 22) as usize;
    while slots[slot].0 != colour && slots[slot].0 != u32::MAX {
        slot = (slot + 1) % SLOTS;
    }
    slot
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_numbered_as_they_are_met() {
        let rgb = [9, 9, 9, 1, 2, 3, 1, 2, 3, 9, 9, 9];
        let indexed = Indexed { palette: vec![9, 9, 9, 1, 2, 3], rows: vec![0, 0, 1, 0, 1, 0] };
        assert_eq!(Indexed::of(&rgb, 2), Some(indexed));
    }

    #[test]
    fn as_many_colours_as_a_byte_tells_apart() {
        let colours = |count: u32| (0..count).flat_map(|i| [i as u8, (i >> 8) as u8, 7]).collect::<Vec<u8>>();
        assert_eq!(Indexed::of(&colours(256), 16).unwrap().palette, colours(256));
        assert_eq!(Indexed::of(&colours(257), 257), None);
    }
}
