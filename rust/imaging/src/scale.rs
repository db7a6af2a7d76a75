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

use crate::error::ImagingError;
use crate::frame::PIXEL;
use crate::geometry::Size;

/// Bits behind the point in a coefficient: with eight of a sample and one for a sum of several it fits 24, and so an `f32` too.
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
        let narrowed = if self.from.w == self.to.w {
            None
        } else {
            Some(self.across(pixels, source.end - source.start)?)
        };
        let pixels = narrowed.as_deref().unwrap_or(pixels);
        if self.from.h == self.to.h {
            return Ok(pixels.to_vec());
        }
        let row_len = self.to.w as usize * PIXEL;
        let mut output = vec![0; rows.len() * row_len];
        let mut sums = vec![0; row_len];
        for (y, out) in rows.clone().zip(output.chunks_exact_mut(row_len)) {
            let reach = self.reach(y);
            let first = (reach.start - source.start) as usize * row_len;
            self.down(y, &reach, &pixels[first..], &mut sums, out);
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

    /// Source rows for one row of output, at least one.
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

    /// Sums the rows of `pixels`, from the first within `reach`, into row `y` of the output.
    fn down(self, y: u32, reach: &Range<u32>, pixels: &[u8], sums: &mut [i32], out: &mut [u8]) {
        let (centre, radius) = self.centre(y);
        let shrinks = self.to.h <= self.from.h;
        let weight = |row: u32| {
            let x = (f64::from(row) + 0.5 - centre) / radius;
            if shrinks { hamming(x) } else { (1.0 - x.abs()).max(0.0) }
        };
        let total: f64 = reach.clone().map(weight).sum();
        // Rounded so that they add up to one exactly: a flat colour stays that colour.
        let one = f64::from(1 << PRECISION);
        let (mut so_far, mut given) = (0.0, 0);
        sums.fill(1 << (PRECISION - 1));
        for (row, pixels) in reach.clone().zip(pixels.chunks_exact(out.len())) {
            so_far += weight(row);
            let coefficient = (so_far / total * one).round() as i32 - given;
            given += coefficient;
            if coefficient != 0 {
                for (sum, sample) in sums.iter_mut().zip(pixels) {
                    *sum += coefficient * i32::from(*sample);
                }
            }
        }
        for (out, sum) in out.iter_mut().zip(&*sums) {
            *out = (sum >> PRECISION) as u8;
        }
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
