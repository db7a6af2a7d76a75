//! The pixels of a screen: BGRX, four bytes each, rows without gaps.
//!
//! The rule: the fourth byte of a pixel is whatever its source left there (X11 does not define it), and nothing that
//! leaves this crate may depend on it. Only `diff` writes into a frame that already has a size.

use crate::error::ImagingError;
use crate::geometry::{Rect, Size};

/// Bytes of one BGRX pixel.
pub(crate) const PIXEL: usize = 4;

/// A picture of the size of a screen.
#[derive(Clone, Debug)]
pub struct Frame {
    size: Size,
    pixels: Vec<u8>,
}

impl Frame {
    /// A black frame. Memory for all its pixels is taken here, so a size from an untrusted peer is checked before.
    #[must_use]
    pub fn new(size: Size) -> Self {
        Self { size, pixels: vec![0; byte_len(size)] }
    }

    /// A frame of the given pixels, rows one after the other without gaps.
    ///
    /// # Errors
    /// When `pixels` is not exactly `4 * w * h` bytes long.
    pub fn from_bgrx(size: Size, pixels: Vec<u8>) -> Result<Self, ImagingError> {
        let needed = byte_len(size);
        if pixels.len() != needed {
            return Err(ImagingError::FrameLength { size, needed, got: pixels.len() });
        }
        Ok(Self { size, pixels })
    }

    /// Width and height.
    #[must_use]
    pub const fn size(&self) -> Size {
        self.size
    }

    /// Bytes from the start of one row to the start of the next.
    #[must_use]
    pub const fn stride(&self) -> usize {
        self.size.w as usize * PIXEL
    }

    /// One row of BGRX.
    ///
    /// # Panics
    /// When there is no such row.
    #[must_use]
    pub fn row(&self, y: u32) -> &[u8] {
        self.rows(y, y + 1)
    }

    /// The rows `top..bottom`, as one slice.
    ///
    /// # Panics
    /// When there are no such rows.
    #[must_use]
    pub fn rows(&self, top: u32, bottom: u32) -> &[u8] {
        &self.pixels[top as usize * self.stride()..bottom as usize * self.stride()]
    }

    /// All pixels, BGRX.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.pixels
    }

    /// The pixels of row `y` that lie within `rect`'s columns.
    pub(crate) fn span(&self, rect: Rect, y: u32) -> &[u8] {
        &self.row(y)[rect.x as usize * PIXEL..rect.right() as usize * PIXEL]
    }

    /// The same, to be written.
    pub(crate) fn span_mut(&mut self, rect: Rect, y: u32) -> &mut [u8] {
        let start = y as usize * self.stride();
        &mut self.pixels[start + rect.x as usize * PIXEL..start + rect.right() as usize * PIXEL]
    }

    /// The pixels of `rect`, rows one after the other without gaps.
    pub(crate) fn copy_of(&self, rect: Rect) -> Vec<u8> {
        let mut pixels = Vec::with_capacity(byte_len(rect.size()));
        for y in rect.y..rect.bottom() {
            pixels.extend_from_slice(self.span(rect, y));
        }
        pixels
    }
}

/// Bytes of BGRX in a picture of this size; saturates, so that an absurd size fails loudly where memory is taken.
pub(crate) const fn byte_len(size: Size) -> usize {
    (size.w as usize).saturating_mul(size.h as usize).saturating_mul(PIXEL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_where_they_were_put() {
        let frame = Frame::from_bgrx(Size { w: 2, h: 3 }, (0..24).collect()).unwrap();
        assert_eq!(frame.row(1), [8, 9, 10, 11, 12, 13, 14, 15]);
        assert_eq!(frame.rows(1, 3), (8..24).collect::<Vec<u8>>());
        assert_eq!(frame.copy_of(Rect { x: 1, y: 1, w: 1, h: 2 }), [12, 13, 14, 15, 20, 21, 22, 23]);
    }

    #[test]
    fn a_wrong_length_is_named() {
        let error = Frame::from_bgrx(Size { w: 2, h: 3 }, vec![0; 23]).unwrap_err();
        assert_eq!(error.to_string(), "a frame of 2x3 needs 24 bytes of BGRX, got 23");
    }
}
