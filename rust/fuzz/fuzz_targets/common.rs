//! What the targets share: pixels made of little input, so that the fuzzer spends its bytes on what matters.

use imaging::{Rect, Size};
use libfuzzer_sys::arbitrary::{self, Arbitrary};

/// Something that a screen may show.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Kind {
    Flat([u8; 4]),
    Text(u8),
    Gradient(u8, u8),
    Noise(u32),
    Padding(u8),
}

impl Kind {
    /// Its pixels, BGRX. `Padding` differs from black in nothing that counts.
    pub fn pixels(self, size: Size) -> Vec<u8> {
        let points = (0..size.h).flat_map(|y| (0..size.w).map(move |x| (x, y)));
        points.flat_map(|(x, y)| self.at(x, y)).collect()
    }

    fn at(self, x: u32, y: u32) -> [u8; 4] {
        match self {
            Self::Flat(pixel) => pixel,
            Self::Text(period) if (x * 7 + y * 3).is_multiple_of(u32::from(period) + 2) => [0; 4],
            Self::Text(_) => [255; 4],
            Self::Gradient(a, b) => {
                let shade = ((x * u32::from(a) + y * u32::from(b)) / 8) as u8;
                [shade, shade / 2, 255 - shade, x as u8]
            }
            Self::Noise(seed) => {
                (x ^ y << 12 ^ seed).wrapping_mul(0x9E37_79B1).rotate_left(15).wrapping_mul(0x85EB_CA6B).to_le_bytes()
            }
            Self::Padding(padding) => [0, 0, 0, padding],
        }
    }
}

/// A rectangle inside a size, of any four bytes.
pub fn place(at: [u8; 4], size: Size) -> Rect {
    let [x, y, w, h] = at.map(u32::from);
    let (x, y) = (x % size.w, y % size.h);
    Rect { x, y, w: 1 + w % (size.w - x), h: 1 + h % (size.h - y) }
}

/// A size of at least a pixel.
pub fn size(w: u8, h: u8) -> Size {
    Size { w: u32::from(w) + 1, h: u32::from(h) + 1 }
}
