//! The framebuffer as the server has described it so far.
//!
//! The rule: it runs ahead of the screen, which gets the rectangles painted here when an update is complete. Callers check
//! that rectangles are inside.

use imaging::{Frame, Patch, Rect, Size};

use crate::pixel::{Bgrx, ColourMap, Unpacker};

/// Bytes of a pixel.
const PIXEL: usize = size_of::<Bgrx>();

/// Rectangles painted since the last patches; more are merged, so that no update makes the list long.
const MAX_PAINTED: usize = 1024;

pub(crate) struct Canvas {
    size: Size,
    pixels: Vec<Bgrx>,
    painted: Vec<Rect>,
}

impl Canvas {
    pub(crate) fn new(size: Size) -> Self {
        Self { size, pixels: vec![[0; 4]; size.rect().area() as usize], painted: Vec::new() }
    }

    pub(crate) const fn size(&self) -> Size {
        self.size
    }

    /// Takes over what a screen shows already.
    pub(crate) fn show(&mut self, frame: &Frame) {
        if frame.size() == self.size {
            self.pixels.as_flattened_mut().copy_from_slice(frame.as_bytes());
        }
    }

    /// Changes the size. What fits is kept, since servers may count on it; the rest is black.
    pub(crate) fn resize(&mut self, size: Size) {
        let (old, new) = (self.size.w as usize, size.w as usize);
        let (rows, columns) = (self.size.h.min(size.h) as usize, old.min(new));
        // In place, so that no third framebuffer is taken meanwhile.
        if new <= old {
            for y in 1..rows {
                self.pixels.copy_within(y * old..y * old + columns, y * new);
            }
            self.pixels.truncate(rows * new);
        }
        self.pixels.resize(size.rect().area() as usize, [0; 4]);
        if new > old {
            for y in (0..rows).rev() {
                self.pixels.copy_within(y * old..y * old + columns, y * new);
                self.pixels[y * new + columns..(y + 1) * new].fill([0; 4]);
            }
        }
        self.pixels.shrink_to_fit();
        self.size = size;
        self.painted = vec![size.rect()];
    }

    /// Notes that a rectangle has been painted.
    pub(crate) fn touch(&mut self, rect: Rect) {
        if rect.is_empty() {
            return;
        }
        if self.painted.len() == MAX_PAINTED {
            self.painted = imaging::merge(std::mem::take(&mut self.painted));
        }
        self.painted.push(rect);
    }

    /// What has been painted since this was last asked, merged.
    pub(crate) fn painted(&mut self) -> Vec<Rect> {
        imaging::merge(std::mem::take(&mut self.painted))
    }

    /// The pixels of a rectangle, where they are.
    pub(crate) fn patch(&self, rect: Rect) -> Patch<'_> {
        let stride = self.size.w as usize * PIXEL;
        let start = rect.y as usize * stride + rect.x as usize * PIXEL;
        Patch { rect, pixels: &self.pixels.as_flattened()[start..], stride }
    }

    /// The pixels of row `y` of a rectangle.
    pub(crate) fn row(&mut self, rect: Rect, y: u32) -> &mut [Bgrx] {
        let start = (rect.y + y) as usize * self.size.w as usize + rect.x as usize;
        &mut self.pixels[start..start + rect.w as usize]
    }

    /// Paints a rectangle in one colour.
    pub(crate) fn fill(&mut self, rect: Rect, colour: Bgrx) {
        for y in 0..rect.h {
            self.row(rect, y).fill(colour);
        }
    }

    /// Paints the pixels `done..` of a rectangle, counted row by row, and returns how many are painted then.
    pub(crate) fn paint(&mut self, rect: Rect, done: u64, unpacker: &Unpacker, mut wire: &[u8]) -> u64 {
        let mut done = done;
        while !wire.is_empty() {
            let (y, x) = ((done / u64::from(rect.w)) as u32, (done % u64::from(rect.w)) as usize);
            let row = &mut self.row(rect, y)[x..];
            let count = row.len().min(wire.len() / unpacker.bytes());
            unpacker.many(wire, &mut row[..count]);
            wire = &wire[count * unpacker.bytes()..];
            done += count as u64;
        }
        done
    }

    /// Copies pixels to where `to` is; both places may overlap.
    pub(crate) fn copy(&mut self, from: (u32, u32), to: Rect) {
        let width = self.size.w as usize;
        let place = |x: u32, y: u32| y as usize * width + x as usize;
        let copy = |pixels: &mut Vec<Bgrx>, y: u32| {
            let start = place(from.0, from.1 + y);
            pixels.copy_within(start..start + to.w as usize, place(to.x, to.y + y));
        };
        if from.1 < to.y {
            (0..to.h).rev().for_each(|y| copy(&mut self.pixels, y));
        } else {
            (0..to.h).for_each(|y| copy(&mut self.pixels, y));
        }
    }

    /// Recolours everything after a change of the colour map.
    pub(crate) fn recolour(&mut self, map: &ColourMap) {
        map.recolour(&mut self.pixels);
        self.painted = vec![self.size.rect()];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(w: u32, h: u32) -> Canvas {
        let mut canvas = Canvas::new(Size { w, h });
        for (i, pixel) in canvas.pixels.iter_mut().enumerate() {
            *pixel = [i as u8 + 1, 0, 0, 0];
        }
        canvas
    }

    fn numbers(canvas: &Canvas) -> Vec<u8> {
        canvas.pixels.iter().map(|pixel| pixel[0]).collect()
    }

    #[test]
    fn a_new_size_keeps_what_fits() {
        let cases: [(u32, u32, &[u8]); 7] = [
            (3, 2, &[1, 2, 3, 4, 5, 6]),
            (2, 1, &[1, 2]),
            (2, 3, &[1, 2, 4, 5, 0, 0]),
            (4, 2, &[1, 2, 3, 0, 4, 5, 6, 0]),
            (4, 3, &[1, 2, 3, 0, 4, 5, 6, 0, 0, 0, 0, 0]),
            (5, 1, &[1, 2, 3, 0, 0]),
            (1, 4, &[1, 4, 0, 0]),
        ];
        for (w, h, expected) in cases {
            let mut canvas = numbered(3, 2);
            canvas.resize(Size { w, h });
            assert_eq!(numbers(&canvas), expected, "{w}x{h}");
            assert_eq!(canvas.painted(), [Rect { x: 0, y: 0, w, h }]);
        }
    }

    #[test]
    fn copies_may_overlap() {
        type Place = (u32, u32);
        let cases: [(Place, Place, [u8; 12]); 4] = [
            ((0, 0), (1, 1), [1, 2, 3, 4, 5, 1, 2, 8, 9, 5, 6, 12]),
            ((1, 1), (0, 0), [6, 7, 3, 4, 10, 11, 7, 8, 9, 10, 11, 12]),
            ((0, 0), (1, 0), [1, 1, 2, 4, 5, 5, 6, 8, 9, 10, 11, 12]),
            ((0, 1), (0, 0), [5, 6, 3, 4, 9, 10, 7, 8, 9, 10, 11, 12]),
        ];
        for (from, to, expected) in cases {
            let mut canvas = numbered(4, 3);
            canvas.copy(from, Rect { x: to.0, y: to.1, w: 2, h: 2 });
            assert_eq!(numbers(&canvas), expected, "{from:?} to {to:?}");
        }
    }
}
