//! Scaling, a few rows at a time.
//!
//! The rule: a row of the output depends only on [`Scaler::source_rows`] of the source, and is the same, bit for bit, whichever
//! other rows are made with it, so an output can be made in strips and each strip kept for as long as its source is.
//!
//! The two passes of a separable filter differ in that: rows are scaled across as they are, each on its own, by
//! `fast_image_resize`, whose vector code is chosen at run time. Down the columns it would lay its coefficients out from the
//! strip's own edge, with a precision that depends on all of them; so that pass is ours.

use std::ops::Range;

use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};
use multiversion::multiversion;

use crate::error::ImagingError;
use crate::frame::PIXEL;
use crate::geometry::Size;

/// Bits behind the point in a coefficient: the most that let one fit 16 bits, for which every processor has a vector product.
const PRECISION: u32 = 14;

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
        if self.from.h == self.to.h {
            return rows.clone();
        }
        self.reach(rows.start).start..self.reach(rows.end - 1).end
    }

    /// Makes the output's `rows` of `pixels`, the BGRX of `source`'s rows.
    pub(crate) fn scale(self, pixels: &[u8], source: &Range<u32>, rows: &Range<u32>) -> Result<Vec<u8>, ImagingError> {
        let narrowed =
            if self.from.w == self.to.w { None } else { Some(self.across(pixels, source.end - source.start)?) };
        let pixels = narrowed.as_deref().unwrap_or(pixels);
        if self.from.h == self.to.h {
            return Ok(pixels.to_vec());
        }
        let row_len = self.to.w as usize * PIXEL;
        let mut output = vec![0; rows.len() * row_len];
        for (y, out) in rows.clone().zip(output.chunks_exact_mut(row_len)) {
            let reach = self.reach(y);
            let first = (reach.start - source.start) as usize * row_len;
            let taps: Vec<Tap<'_>> = self.coefficients(y, &reach).zip(pixels[first..].chunks_exact(row_len)).collect();
            sum(&taps, out);
        }
        Ok(output)
    }

    /// Scales so many rows to the output's width.
    fn across(self, pixels: &[u8], rows: u32) -> Result<Vec<u8>, ImagingError> {
        let (from, to) = (Size { h: rows, ..self.from }, Size { h: rows, ..self.to });
        let failed = |reason: String| ImagingError::Scale { from, to, reason };
        let image =
            ImageRef::new(from.w, from.h, pixels, PixelType::U8x4).map_err(|error| failed(error.to_string()))?;
        let mut output = Image::new(to.w, to.h, PixelType::U8x4);
        // Hamming keeps small text legible at the price of bilinear, but is blocky when anything is enlarged.
        let filter = if to.w <= from.w { FilterType::Hamming } else { FilterType::Bilinear };
        let options = ResizeOptions::new().resize_alg(ResizeAlg::Convolution(filter)).use_alpha(false);
        Resizer::new().resize(&image, &mut output, &options).map_err(|error| failed(error.to_string()))?;
        Ok(output.into_vec())
    }

    /// Source rows for one row of output.
    fn ratio(self) -> f64 {
        f64::from(self.from.h) / f64::from(self.to.h)
    }

    /// The middle of an output row in source rows, and how far its filter reaches from there: both filters, to one row of the
    /// coarser side.
    fn centre(self, y: u32) -> (f64, f64) {
        ((f64::from(y) + 0.5) * self.ratio(), self.ratio().max(1.0))
    }

    /// The source rows that one output row is made of.
    fn reach(self, y: u32) -> Range<u32> {
        let (centre, radius) = self.centre(y);
        let first = (centre - radius).floor().max(0.0) as u32;
        let last = ((centre + radius).ceil() as u32).min(self.from.h);
        first..last
    }

    /// What each of the rows within `reach` counts for in row `y` of the output.
    fn coefficients(self, y: u32, reach: &Range<u32>) -> impl Iterator<Item = i16> {
        let (centre, radius) = self.centre(y);
        let shrinks = self.to.h <= self.from.h;
        let weight = move |row: u32| {
            let x = (f64::from(row) + 0.5 - centre) / radius;
            if shrinks { hamming(x) } else { (1.0 - x.abs()).max(0.0) }
        };
        let total: f64 = reach.clone().map(weight).sum();
        let one = f64::from(1 << PRECISION);
        // Rounded so that they add up to one exactly: a flat colour stays that colour.
        reach.clone().scan((0.0, 0), move |(so_far, given), row| {
            *so_far += weight(row);
            let coefficient = (*so_far / total * one).round() as i16 - *given;
            *given += coefficient;
            Some(coefficient)
        })
    }
}

/// A row of samples and what it counts for.
type Tap<'a> = (i16, &'a [u8]);

/// Sums the taps into a row of output.
#[multiversion(targets("x86_64+avx2"))]
fn sum<'a>(taps: &[Tap<'a>], out: &mut [u8]) {
    /// So many sums stay in registers while the taps are gone through.
    const BLOCK: usize = 16;
    let half = 1 << (PRECISION - 1);
    let (blocks, rest) = out.as_chunks_mut::<BLOCK>();
    for (i, block) in blocks.iter_mut().enumerate() {
        let mut sums = [half; BLOCK];
        for (coefficient, samples) in taps {
            let samples = &samples[i * BLOCK..][..BLOCK];
            for (sum, sample) in sums.iter_mut().zip(samples) {
                *sum += i32::from(*coefficient) * i32::from(i16::from(*sample));
            }
        }
        *block = sums.map(|sum| (sum >> PRECISION) as u8);
    }
    let start = blocks.len() * BLOCK;
    for (i, out) in rest.iter_mut().enumerate() {
        let sum: i32 =
            taps.iter().map(|(coefficient, samples)| i32::from(*coefficient) * i32::from(samples[start + i])).sum();
        *out = ((sum + half) >> PRECISION) as u8;
    }
}

/// Hamming's window over a sine, from -1 to 1: never negative, so that no sum leaves its range.
fn hamming(x: f64) -> f64 {
    if x == 0.0 {
        return 1.0;
    }
    if x.abs() >= 1.0 {
        return 0.0;
    }
    let x = x * std::f64::consts::PI;
    x.sin() / x * (0.54 + 0.46 * x.cos())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn scaler(from: (u32, u32), to: (u32, u32)) -> Scaler {
        Scaler { from: Size { w: from.0, h: from.1 }, to: Size { w: to.0, h: to.1 } }
    }

    fn noise(size: Size) -> Vec<u8> {
        (0..size.w * size.h * 4).map(|i| (i.wrapping_mul(2_654_435_761) >> 23) as u8).collect()
    }

    proptest! {
        #[test]
        fn strips_are_what_the_whole_is(from in (1..90_u32, 1..250_u32), to in (1..90_u32, 1..250_u32), rows in 1..50_u32) {
            let scaler = scaler(from, to);
            let pixels = noise(scaler.from);
            let whole = scaler.scale(&pixels, &(0..from.1), &(0..to.1)).unwrap();
            let row = from.0 as usize * 4;
            for start in (0..to.1).step_by(rows as usize) {
                let rows = start..to.1.min(start + rows);
                let source = scaler.source_rows(&rows);
                let part = &pixels[source.start as usize * row..source.end as usize * row];
                let strip = scaler.scale(part, &source, &rows).unwrap();
                let expected = &whole[(start * to.0 * 4) as usize..][..strip.len()];
                prop_assert!(strip == expected, "{from:?} to {to:?}, rows {rows:?}");
            }
        }
    }

    /// `fast_image_resize` scaling down the columns as well: what our own pass must look like.
    #[test]
    fn the_picture_is_the_one_of_the_library() {
        for (from, to) in [((97, 203), (61, 128)), ((40, 33), (90, 100)), ((200, 300), (200, 299)), ((9, 400), (9, 3))]
        {
            let scaler = scaler(from, to);
            let pixels = noise(scaler.from);
            let ours = scaler.scale(&pixels, &(0..from.1), &(0..to.1)).unwrap();
            let image = ImageRef::new(from.0, from.1, &pixels, PixelType::U8x4).unwrap();
            let mut theirs = Image::new(to.0, to.1, PixelType::U8x4);
            let filter = if to.0 <= from.0 { FilterType::Hamming } else { FilterType::Bilinear };
            let options = ResizeOptions::new().resize_alg(ResizeAlg::Convolution(filter)).use_alpha(false);
            Resizer::new().resize(&image, &mut theirs, &options).unwrap();
            let off = ours.iter().zip(theirs.buffer()).map(|(a, b)| a.abs_diff(*b)).max();
            assert!(off <= Some(1), "{from:?} to {to:?}: off by {off:?}");
        }
    }

    #[test]
    fn one_colour_stays_that_colour() {
        for to in [(17, 11), (30, 11), (17, 30), (70, 90), (1, 1)] {
            let output = scaler((30, 30), to).scale(&[10, 20, 255, 0].repeat(900), &(0..30), &(0..to.1)).unwrap();
            assert_eq!(output, [10, 20, 255, 0].repeat((to.0 * to.1) as usize));
        }
    }
}
