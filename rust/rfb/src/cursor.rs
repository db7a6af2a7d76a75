//! Cursor images: Cursor (RFC 6143 §7.8.1, rfbproto) and `CursorWithAlpha`.

use imaging::{Cursor, Rect, Size};

use crate::canvas::Canvas;
use crate::encoding::Encoding;
use crate::input::{Fields, Input};
use crate::pixel::{Bgrx, Unpacker};
use crate::violation::{Problem, value};

/// What the cursor looks like from now on.
pub(crate) enum Shape {
    Hidden,
    Image(Cursor),
}

/// Bytes of a cursor's data, for encodings that do not specify it themselves.
pub(crate) fn length(encoding: Encoding, rect: Rect, pixel: &Unpacker) -> u64 {
    match encoding {
        Encoding::Cursor => rect.area() * pixel.bytes() as u64 + mask(rect),
        _ => 4 + 4 * rect.area(),
    }
}

/// Bytes of a bitmap of that size.
pub(crate) fn mask(rect: Rect) -> u64 {
    u64::from(rect.w.div_ceil(8)) * u64::from(rect.h)
}

/// Reads a cursor when its data is here as a whole. One without pixels is hidden.
pub(crate) fn read(
    encoding: Encoding,
    rect: Rect,
    pixel: &Unpacker,
    input: &mut Input,
) -> Result<Option<Shape>, Problem> {
    // What is in the data is checked before the data is waited for.
    if encoding == Encoding::CursorWithAlpha {
        let Some(inner) = input.peek(4) else {
            return Ok(None);
        };
        let inner = Fields(inner).u32() as i32;
        if inner != Encoding::Raw.number() {
            return Err(value("the encoding of a cursor with transparency", inner, "0, which is Raw"));
        }
    }
    let Some(wire) = input.take(length(encoding, rect, pixel) as usize) else {
        return Ok(None);
    };
    if rect.is_empty() {
        return Ok(Some(Shape::Hidden));
    }
    let argb = match encoding {
        Encoding::Cursor => {
            let (colours, mask) = wire.split_at(rect.area() as usize * pixel.bytes());
            let colours = colours.chunks_exact(pixel.bytes()).map(|wire| pixel.one(wire));
            colours.zip(bits(mask, rect.size())).map(|(colour, opaque)| argb(colour, opaque)).collect()
        }
        // Red, green, blue and alpha, the colours already multiplied by it.
        _ => wire[4..].chunks_exact(4).map(|rgba| u32::from_be_bytes([rgba[3], rgba[0], rgba[1], rgba[2]])).collect(),
    };
    Ok(Some(Shape::Image(Cursor { size: rect.size(), hot: (rect.x, rect.y), argb, serial: 0, name: String::new() })))
}

/// Whether each pixel that a cursor covers is the cursor's; `rect` has its size. One of which nothing is opaque is drawn nowhere.
pub(crate) fn is_drawn(cursor: &Cursor, rect: Rect, canvas: &mut Canvas) -> bool {
    let mut found = false;
    for (y, argb) in (0..rect.h).zip(cursor.argb.chunks(rect.w as usize)) {
        for (pixel, argb) in canvas.row(rect, y).iter().zip(argb).filter(|(_, argb)| **argb >> 24 == 255) {
            if argb.to_le_bytes()[..3] != pixel[..3] {
                return false;
            }
            found = true;
        }
    }
    found
}

fn argb([blue, green, red, _]: Bgrx, opaque: bool) -> u32 {
    if opaque { u32::from_be_bytes([255, red, green, blue]) } else { 0 }
}

/// The bits of a bitmap whose rows are whole bytes, the leftmost in the highest bit.
fn bits(bitmap: &[u8], size: Size) -> impl Iterator<Item = bool> {
    let row = move |row: &[u8]| (0..size.w as usize).map(|x| row[x / 8] << (x % 8) & 0x80 != 0).collect::<Vec<_>>();
    bitmap.chunks_exact(size.w.div_ceil(8) as usize).flat_map(row)
}
