//! JPEG within Tight.
//!
//! The rule: a picture must have its rectangle's size, and that is known before it is decoded.

use imaging::{Rect, Size};
use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;

use crate::canvas::Canvas;
use crate::violation::{Problem, data};

const JPEG: &str = "a JPEG picture";

/// Paints a JPEG picture.
pub(crate) fn jpeg(bytes: &[u8], rect: Rect, canvas: &mut Canvas) -> Result<(), Problem> {
    let (width, height) = (rect.w as usize, rect.h as usize);
    let options = DecoderOptions::default().set_max_width(width).set_max_height(height);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    let failed = |error| data(JPEG, format!("{error}"));
    decoder.decode_headers().map_err(failed)?;
    let found = decoder.dimensions().unwrap_or_default();
    same_size(Size { w: found.0 as u32, h: found.1 as u32 }, rect)?;
    let grey = decoder.input_colorspace() == Some(ColorSpace::Luma);
    let colours = if grey { ColorSpace::Luma } else { ColorSpace::RGB };
    decoder.set_options(options.jpeg_set_out_colorspace(colours));
    let pixels = decoder.decode().map_err(failed)?;
    paint(&pixels, colours.num_components(), rect, canvas)
}

fn same_size(found: Size, rect: Rect) -> Result<(), Problem> {
    if found == rect.size() {
        return Ok(());
    }
    Err(data(JPEG, format!("its size is {found}, that of its rectangle {}", rect.size())))
}

/// Paints pixels of 8-bit samples: grey, or red, green and blue.
fn paint(pixels: &[u8], samples: usize, rect: Rect, canvas: &mut Canvas) -> Result<(), Problem> {
    let row_len = rect.w as usize * samples;
    if pixels.len() != row_len * rect.h as usize {
        return Err(data(JPEG, "does not have as many pixels as its size says"));
    }
    for (y, wire) in (0..).zip(pixels.chunks_exact(row_len.max(1))) {
        for (out, wire) in canvas.row(rect, y).iter_mut().zip(wire.chunks_exact(samples)) {
            *out = match *wire {
                [red, green, blue] => [blue, green, red, 0],
                _ => [wire[0], wire[0], wire[0], 0],
            };
        }
    }
    Ok(())
}
