//! JPEG and PNG within Tight.
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
const PNG: &str = "a PNG picture";

/// Paints a JPEG picture.
pub(crate) fn jpeg(bytes: &[u8], rect: Rect, canvas: &mut Canvas) -> Result<(), Problem> {
    let (width, height) = (rect.w as usize, rect.h as usize);
    let options = DecoderOptions::default().set_max_width(width).set_max_height(height);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    let failed = |error| data(JPEG, format!("{error}"));
    decoder.decode_headers().map_err(failed)?;
    let found = decoder.dimensions().unwrap_or_default();
    same_size(JPEG, Size { w: found.0 as u32, h: found.1 as u32 }, rect)?;
    let grey = decoder.input_colorspace() == Some(ColorSpace::Luma);
    let colours = if grey { ColorSpace::Luma } else { ColorSpace::RGB };
    decoder.set_options(options.jpeg_set_out_colorspace(colours));
    let pixels = decoder.decode().map_err(failed)?;
    paint(JPEG, &pixels, colours.num_components(), rect, canvas)
}

/// Paints a PNG picture.
pub(crate) fn png(bytes: &[u8], rect: Rect, canvas: &mut Canvas) -> Result<(), Problem> {
    let raw = rect.area() as usize * 4;
    let limits = png::Limits { bytes: raw + (1 << 20) };
    let mut decoder = png::Decoder::new_with_limits(std::io::Cursor::new(bytes), limits);
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    let failed = |error: png::DecodingError| data(PNG, error.to_string());
    let mut reader = decoder.read_info().map_err(failed)?;
    same_size(PNG, Size { w: reader.info().width, h: reader.info().height }, rect)?;
    let mut pixels = vec![0; raw];
    let info = reader.next_frame(&mut pixels).map_err(failed)?;
    paint(PNG, &pixels[..info.buffer_size()], info.color_type.samples(), rect, canvas)
}

fn same_size(what: &'static str, found: Size, rect: Rect) -> Result<(), Problem> {
    if found == rect.size() {
        return Ok(());
    }
    Err(data(what, format!("its size is {found}, that of its rectangle {}", rect.size())))
}

/// Paints pixels of 8-bit samples: grey or red, green and blue, either with alpha, which is left out.
fn paint(what: &'static str, pixels: &[u8], samples: usize, rect: Rect, canvas: &mut Canvas) -> Result<(), Problem> {
    let row_len = rect.w as usize * samples;
    if pixels.len() != row_len * rect.h as usize {
        return Err(data(what, "does not have as many pixels as its size says"));
    }
    for (y, wire) in (0..).zip(pixels.chunks_exact(row_len.max(1))) {
        for (out, wire) in canvas.row(rect, y).iter_mut().zip(wire.chunks_exact(samples)) {
            *out = match *wire {
                [red, green, blue] | [red, green, blue, _] => [blue, green, red, 0],
                _ => [wire[0], wire[0], wire[0], 0],
            };
        }
    }
    Ok(())
}
