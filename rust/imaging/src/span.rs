//! Where two rows of pixels differ.

use crate::frame::PIXEL;

/// The first and the last pixel that differ in colour.
pub(crate) fn changed_span(a: &[u8], b: &[u8]) -> Option<(u32, u32)> {
    const WORD: usize = 2 * PIXEL;
    // Two pixels at a time, without their padding.
    let differing =
        |(a, b): (&[u8; WORD], &[u8; WORD])| (u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b)) & 0x00FF_FFFF_00FF_FFFF;
    let mut pairs = a.as_chunks().0.iter().zip(b.as_chunks().0).map(differing).enumerate();
    let first = pairs.clone().find(|(_, bits)| *bits != 0).map(|(i, bits)| 2 * i as u32 + bits.trailing_zeros() / 32);
    let last = pairs.rfind(|(_, bits)| *bits != 0).map(|(i, bits)| 2 * i as u32 + 1 - bits.leading_zeros() / 32);
    if a.len().is_multiple_of(WORD) || a[a.len() - PIXEL..][..3] == b[b.len() - PIXEL..][..3] {
        return first.zip(last);
    }
    // The pixel that has no second.
    let alone = (a.len() / PIXEL - 1) as u32;
    Some((first.unwrap_or(alone), alone))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_every_length_without_padding() {
        for width in 1..6_u32 {
            for first in 0..width {
                for last in first..width {
                    let a = vec![7; width as usize * PIXEL];
                    let mut b: Vec<u8> =
                        a.iter().enumerate().map(|(i, byte)| if i % 4 == 3 { i as u8 } else { *byte }).collect();
                    assert_eq!(changed_span(&a, &b), None);
                    b[first as usize * PIXEL] = 9;
                    b[last as usize * PIXEL + 2] = 9;
                    assert_eq!(changed_span(&a, &b), Some((first, last)));
                }
            }
        }
    }
}
