//! Scaling, a few rows at a time.
//!
//! The rule: a row of the output depends only on [`Scaler::source_rows`] of the source, and comes out the same whichever
//! other rows are made with it, so an output can be made in strips and each strip kept for as long as its source is.

use std::ops::Range;

use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};

use crate::error::ImagingError;
use crate::geometry::Size;

/// How a source of one size becomes an output of another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scaler {
    pub from: Size,
    pub to: Size,
}

impl Scaler {
    pub(crate) fn is_identity(self) -> bool {
        self.from == self.to
    }

    /// The rows of the source that the output's `rows` are made of.
    pub(crate) fn source_rows(self, rows: &Range<u32>) -> Range<u32> {
        if self.is_identity() {
            return rows.clone();
        }
        let (from, to) = (u64::from(self.from.h), u64::from(self.to.h));
        // Both filters reach one source row to each side, or one output row when shrinking; one more for rounding.
        let reach = from.div_ceil(to) + 1;
        let first = (u64::from(rows.start) * from / to).saturating_sub(reach);
        let last = ((u64::from(rows.end) * from).div_ceil(to) + reach).min(from);
        first as u32..last as u32
    }

    /// Makes the output's `rows` of `pixels`, the BGRX of `source`'s rows.
    pub(crate) fn scale(self, pixels: &[u8], source: &Range<u32>, rows: &Range<u32>) -> Result<Vec<u8>, ImagingError> {
        let from = Size { w: self.from.w, h: source.end - source.start };
        let to = Size { w: self.to.w, h: rows.end - rows.start };
        let failed = |reason: String| ImagingError::Scale { from, to, reason };
        let image =
            ImageRef::new(from.w, from.h, pixels, PixelType::U8x4).map_err(|error| failed(error.to_string()))?;
        let mut output = Image::new(to.w, to.h, PixelType::U8x4);
        // Multiplied before divided, so that the last row's edge is exactly the source's edge.
        let edge = |row: u32| f64::from(row) * f64::from(self.from.h) / f64::from(self.to.h) - f64::from(source.start);
        let (top, bottom) = (edge(rows.start), edge(rows.end));
        let options = ResizeOptions::new()
            .resize_alg(ResizeAlg::Convolution(self.filter()))
            .crop(0.0, top, f64::from(from.w), bottom - top)
            .use_alpha(false);
        Resizer::new().resize(&image, &mut output, &options).map_err(|error| failed(error.to_string()))?;
        Ok(output.into_vec())
    }

    /// Hamming keeps small text legible at the price of bilinear, but is blocky when anything is enlarged.
    fn filter(self) -> FilterType {
        if self.to.w <= self.from.w && self.to.h <= self.from.h { FilterType::Hamming } else { FilterType::Bilinear }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(size: Size) -> Vec<u8> {
        (0..size.w * size.h * 4).map(|i| (i.wrapping_mul(2_654_435_761) >> 23) as u8).collect()
    }

    #[test]
    fn strips_are_what_the_whole_is() {
        for (from, to) in [((97, 203), (61, 128)), ((40, 33), (90, 100)), ((50, 300), (50, 7)), ((9, 1), (9, 70))] {
            let scaler = Scaler { from: Size { w: from.0, h: from.1 }, to: Size { w: to.0, h: to.1 } };
            let pixels = noise(scaler.from);
            let whole = scaler.scale(&pixels, &(0..from.1), &(0..to.1)).unwrap();
            let row = from.0 as usize * 4;
            for start in (0..to.1).step_by(32) {
                let rows = start..to.1.min(start + 32);
                let source = scaler.source_rows(&rows);
                let strip = scaler
                    .scale(&pixels[source.start as usize * row..source.end as usize * row], &source, &rows)
                    .unwrap();
                let expected = &whole[(start * to.0 * 4) as usize..][..strip.len()];
                // Coefficients are computed from the strip's own edge: the last bit may differ.
                let off = strip.iter().zip(expected).map(|(a, b)| a.abs_diff(*b)).max();
                assert!(off <= Some(1), "{from:?} to {to:?}, rows {rows:?}: off by {off:?}");
            }
        }
    }

    #[test]
    fn one_colour_stays_that_colour() {
        let scaler = Scaler { from: Size { w: 30, h: 30 }, to: Size { w: 17, h: 11 } };
        let output = scaler.scale(&[10, 20, 30, 40].repeat(900), &(0..30), &(0..11)).unwrap();
        assert_eq!(output, [10, 20, 30, 40].repeat(17 * 11));
    }
}
