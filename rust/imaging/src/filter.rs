//! How a strip of rows is best deflated, judged by a glance at its pixels; and the PNG filters (PNG §9.2) used for it.
//!
//! The rule: a strip's first row never depends on the row above it, so that strips stand alone.

use crate::view::RGB;

/// How far a filter reaches to the left.
const BPP: usize = RGB;

/// Rows looked at: 2.4 µs a strip of 1920 pixels, where deflating it takes 90 µs and more.
const GLANCES: usize = 4;

/// Steps from one pixel to the next that a gradient or a photo makes, and text does not.
const SMALL: u8 = 8;

/// Bytes whose count fits a byte, so that sixteen are counted at a time.
const COUNTED: usize = 192;

/// The filter types in use. On the desktop and the photo measured, `Up` and `Paeth` were never the smallest by more than 1 %.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filter {
    None = 0,
    Sub = 1,
    Average = 3,
}

/// What to do with a strip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Method {
    pub filter: Filter,
    /// Whether to look for what repeats: it takes longer than codes alone, and finds nothing in noise.
    pub matches: bool,
}

impl Method {
    /// Judges `raw`, rows of RGB that each follow one byte.
    ///
    /// Text and flat areas repeat themselves and are spoilt by any filter (measured: a fifth larger). Gradients repeat only as
    /// differences (half the size). Photos repeat in no form: with a search for matches, too, one of 1920x1080 took longer
    /// and was larger than filtered and coded only.
    pub(crate) fn of(raw: &[u8], row_len: usize) -> Self {
        let rows = raw.len() / row_len;
        let glances = rows.min(GLANCES);
        let (mut seen, mut flat, mut small) = (0, 0, 0);
        for i in 0..glances {
            let row = &raw[(2 * i + 1) * rows / (2 * glances) * row_len + 1..][..row_len - 1];
            seen += row.len() - BPP;
            for (here, left) in row[BPP..].chunks(COUNTED).zip(row.chunks(COUNTED)) {
                let (mut zeros, mut few) = (0_u8, 0_u8);
                for step in here.iter().zip(left).map(|(here, left)| here.abs_diff(*left)) {
                    zeros += u8::from(step == 0);
                    few += u8::from(step <= SMALL);
                }
                flat += usize::from(zeros);
                small += usize::from(few);
            }
        }
        let smooth = 4 * (small - flat) > seen - flat;
        let matches = 4 * flat >= seen || repeats(&raw[rows / 2 * row_len..][..row_len]);
        let filter = match (smooth, matches) {
            (false, _) => Filter::None,
            (true, true) => Filter::Sub,
            (true, false) => Filter::Average,
        };
        Self { filter, matches }
    }
}

/// Whether at least half of a row's sequences of four bytes were in it before: a pattern without flat areas.
fn repeats(row: &[u8]) -> bool {
    let mut last = [0_u32; 1024];
    let (mut seen, mut again) = (0, 0);
    for four in row.windows(4) {
        let four = u32::from_le_bytes([four[0], four[1], four[2], four[3]]);
        let slot = &mut last[(four.wrapping_mul(0x9E37_79B1) >> 22) as usize];
        again += usize::from(*slot == four);
        seen += 1;
        *slot = four;
    }
    2 * again >= seen && seen > 0
}

impl Filter {
    /// Filters `raw`, rows of pixels that each follow one byte, into `out`.
    pub(crate) fn apply(self, raw: &[u8], row_len: usize, out: &mut Vec<u8>) {
        out.resize(raw.len(), 0);
        let mut above: &[u8] = &[];
        for (row, out) in raw.chunks_exact(row_len).zip(out.chunks_exact_mut(row_len)) {
            let (row, (kind, out)) = (&row[1..], out.split_first_mut().expect("a row has a byte for its filter"));
            let filter = if above.is_empty() && self == Self::Average { Self::Sub } else { self };
            *kind = filter as u8;
            match filter {
                Self::None => out.copy_from_slice(row),
                Self::Sub => {
                    out[..BPP].copy_from_slice(&row[..BPP]);
                    for ((out, here), left) in out[BPP..].iter_mut().zip(&row[BPP..]).zip(row) {
                        *out = here.wrapping_sub(*left);
                    }
                }
                Self::Average => {
                    for ((out, here), up) in out.iter_mut().zip(&row[..BPP]).zip(above) {
                        *out = here.wrapping_sub(up / 2);
                    }
                    for (((out, here), left), up) in out[BPP..].iter_mut().zip(&row[BPP..]).zip(row).zip(&above[BPP..])
                    {
                        // The mean of two bytes without a ninth bit.
                        *out = here.wrapping_sub((left & up) + ((left ^ up) >> 1));
                    }
                }
            }
            above = row;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDTH: usize = 240;
    const ROW: usize = 1 + WIDTH * BPP;

    fn strip(pixel: impl Fn(usize, usize) -> [usize; 3]) -> Vec<u8> {
        let mut raw = Vec::new();
        for y in 0..8 {
            raw.push(0);
            raw.extend((0..WIDTH).flat_map(|x| pixel(x, y)).map(|sample| sample as u8));
        }
        raw
    }

    fn noise(x: usize, y: usize) -> usize {
        (x * 7919 + y * 104_729).wrapping_mul(0x9E37_79B9) >> 11 & 0xFF
    }

    #[test]
    fn methods_by_content() {
        let cases: [(&str, Vec<u8>, Filter, bool); 6] = [
            ("one colour", strip(|_, _| [7; 3]), Filter::None, true),
            ("text", strip(|x, y| [if x % 9 > 6 && y % 3 > 0 { 0 } else { 255 }; 3]), Filter::None, true),
            ("a gradient", strip(|x, y| [(x + y) / 3, (x + y) / 5, 200 - (x + y) / 4]), Filter::Sub, true),
            (
                "a photo",
                strip(|x, y| [x / 2 + noise(x, y) % 7, x / 3 + noise(y, x) % 7, noise(x + y, y) % 7]),
                Filter::Average,
                false,
            ),
            ("noise", strip(|x, y| [noise(x, y), noise(x + 300, y), noise(x + 600, y)]), Filter::None, false),
            ("a weave", strip(|x, y| [(x + y) % 2 * 255; 3]), Filter::None, true),
        ];
        for (name, raw, filter, matches) in cases {
            assert_eq!(Method::of(&raw, ROW), Method { filter, matches }, "{name}");
        }
    }

    #[test]
    fn filters_as_the_standard_defines_them() {
        let raw = [0, 10, 20, 30, 11, 22, 33, 0, 5, 255, 30, 9, 1, 40];
        let cases = [
            (Filter::None, raw),
            (Filter::Sub, [1, 10, 20, 30, 1, 2, 3, 1, 5, 255, 30, 4, 2, 10]),
            (Filter::Average, [1, 10, 20, 30, 1, 2, 3, 3, 0, 245, 15, 1, 119, 9]),
        ];
        for (filter, expected) in cases {
            let mut out = Vec::new();
            filter.apply(&raw, 7, &mut out);
            assert_eq!(out, expected, "{filter:?}");
        }
    }
}
