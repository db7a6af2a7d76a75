//! The mouse cursor: its image, and blending it into pixels that are about to leave.
//!
//! The rule: a cursor is blended into a copy, never into the framebuffer, where it would turn into a change of the screen.

use crate::frame::PIXEL;
use crate::geometry::{Rect, Size};

/// A cursor image, as `XFixes` and the RFB cursor pseudo-encodings describe it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// Width and height of the image.
    pub size: Size,
    /// The pixel of the image that lies at the pointer's position.
    pub hot: (u32, u32),
    /// Rows of `0xAARRGGBB`, colours already multiplied by alpha. Missing pixels are transparent.
    pub argb: Vec<u32>,
    /// The source's own number for this image; only for the caller, two images with one serial are told apart here.
    pub serial: u64,
    /// What its application calls it, such as `xterm`; empty where the source does not say.
    pub name: String,
}

/// A cursor image at its place on a screen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sprite<'a> {
    cursor: &'a Cursor,
    left: i64,
    top: i64,
}

impl<'a> Sprite<'a> {
    pub(crate) fn new(cursor: &'a Cursor, pointer: (i32, i32)) -> Self {
        Self {
            cursor,
            left: i64::from(pointer.0) - i64::from(cursor.hot.0),
            top: i64::from(pointer.1) - i64::from(cursor.hot.1),
        }
    }

    /// The part of `area` under the cursor's image.
    pub(crate) fn within(&self, area: Rect) -> Option<Rect> {
        let clip = |start: i64, extent: u32, low: u32, high: u32| {
            let (low, high) = (i64::from(low), i64::from(high));
            (start.clamp(low, high) as u32, (start + i64::from(extent)).clamp(low, high) as u32)
        };
        let (left, right) = clip(self.left, self.cursor.size.w, area.x, area.right());
        let (top, bottom) = clip(self.top, self.cursor.size.h, area.y, area.bottom());
        let rect = Rect::between(left, top, right, bottom);
        (!rect.is_empty()).then_some(rect)
    }

    /// Blends the image over `pixels`, the BGRX of `area` without gaps.
    pub(crate) fn blend(&self, pixels: &mut [u8], area: Rect) {
        let Some(covered) = self.within(area) else {
            return;
        };
        for y in covered.y..covered.bottom() {
            let from = ((i64::from(y) - self.top) as usize) * self.cursor.size.w as usize
                + (i64::from(covered.x) - self.left) as usize;
            let to = ((y - area.y) as usize * area.w as usize + (covered.x - area.x) as usize) * PIXEL;
            let sources = self.cursor.argb.get(from..).unwrap_or_default();
            let targets = &mut pixels[to..to + covered.w as usize * PIXEL];
            for (target, source) in targets.chunks_exact_mut(PIXEL).zip(sources) {
                over(target, *source);
            }
        }
    }
}

fn over(target: &mut [u8], source: u32) {
    let [blue, green, red, alpha] = source.to_le_bytes();
    for (channel, colour) in target.iter_mut().zip([blue, green, red]) {
        let behind = (u32::from(*channel) * (255 - u32::from(alpha)) + 127) / 255;
        // A colour above its alpha is not premultiplied; servers send it all the same, and it must not wrap.
        *channel = colour.saturating_add(behind as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blended(pointer: (i32, i32), argb: Vec<u32>) -> Vec<u8> {
        let cursor = Cursor { size: Size { w: 2, h: 2 }, hot: (1, 1), argb, serial: 0, name: String::new() };
        let mut pixels = [100, 100, 100, 9].repeat(9);
        Sprite::new(&cursor, pointer).blend(&mut pixels, Rect { x: 0, y: 0, w: 3, h: 3 });
        pixels.chunks(4).map(|pixel| pixel[2]).collect()
    }

    const RED: [u32; 4] = [0xFFFF_0000; 4];

    #[test]
    fn clipped_at_every_edge() {
        let (o, x) = (100, 255);
        let cases = [
            ((1, 1), [x, x, o, x, x, o, o, o, o]),
            ((0, 0), [x, o, o, o, o, o, o, o, o]),
            ((3, 3), [o, o, o, o, o, o, o, o, x]),
            ((3, 1), [o, o, x, o, o, x, o, o, o]),
            ((4, 1), [o; 9]),
            ((i32::MIN, i32::MAX), [o; 9]),
        ];
        for (pointer, expected) in cases {
            assert_eq!(blended(pointer, RED.to_vec()), expected, "{pointer:?}");
        }
    }

    #[test]
    fn alpha_is_premultiplied() {
        let cases = [(0x0000_0000, 100), (0x8040_0000, 64 + 50), (0xFF00_0000, 0), (0x00FF_0000, 255)];
        for (argb, expected) in cases {
            assert_eq!(blended((1, 1), vec![argb; 4])[0], expected, "{argb:08x}");
        }
    }

    #[test]
    fn an_image_shorter_than_its_size_is_transparent_at_the_end() {
        assert_eq!(blended((1, 1), RED[..1].to_vec())[..4], [255, 100, 100, 100]);
    }
}
