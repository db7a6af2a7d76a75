//! Writing pixels into a frame while finding out which of them are new.
//!
//! The rule: a reported rectangle has a changed pixel on each of its four sides, every changed pixel is in a reported
//! rectangle, and the padding byte never counts. Where only padding differs it is still copied, so that the next
//! comparison of the same rows is a plain `memcmp` again.

use crate::before::Before;
use crate::frame::{Frame, PIXEL};
use crate::geometry::{Rect, merge};
use crate::span::changed_span;

/// Changes are told apart at this grain before they are joined by distance.
const TILE_W: u32 = 64;
const TILE_H: u32 = 16;

/// Changes no further apart than this belong together: it spans the gaps between words and between lines of text.
const NEAR: u32 = 32;

/// Writes `src`, rows of BGRX `stride` bytes apart, into `rect` of the frame, and returns the rectangles of pixels that
/// really changed.
///
/// # Panics
/// When `rect` is not inside the frame or `src` is too short for it; [`Screen::update`](crate::Screen::update) checks
/// both.
pub fn blit(frame: &mut Frame, rect: Rect, src: &[u8], stride: usize) -> Vec<Rect> {
    let mut boxes = Vec::new();
    write(frame, rect, src, stride, &mut boxes, &mut Before::default());
    group(boxes)
}

/// The same, but only gathers boxes around what changed, for [`group`], and hands to `before` what is overwritten.
pub(crate) fn write(
    frame: &mut Frame,
    rect: Rect,
    src: &[u8],
    stride: usize,
    boxes: &mut Vec<Rect>,
    before: &mut Before,
) {
    assert!(frame.size().rect().contains(rect), "{rect} is not inside the frame of {}", frame.size());
    if rect.is_empty() {
        return;
    }
    let mut band = vec![None; rect.w.div_ceil(TILE_W) as usize];
    let mut kept = vec![false; if before.is_keeping() { band.len() } else { 0 }];
    let mut rows = src.chunks(stride);
    for top in (rect.y..rect.bottom()).step_by(TILE_H as usize) {
        let bottom = rect.bottom().min(top + TILE_H);
        kept.fill(false);
        for y in top..bottom {
            let row = &rows.next().expect("src has a row for each of rect's")[..rect.w as usize * PIXEL];
            if *frame.span(rect, y) != *row {
                keep_differing(frame, Rect { y, h: bottom - y, ..rect }, row, &mut kept, before);
                write_row(frame.span_mut(rect, y), row, y, &mut band);
            }
        }
        join_band(&mut band, rect.x, boxes);
    }
}

/// Hands the tiles of a band to `before` that differ in its first row, and were not before.
fn keep_differing(frame: &Frame, band: Rect, row: &[u8], kept: &mut [bool], before: &mut Before) {
    const TILE: usize = TILE_W as usize * PIXEL;
    let pairs = frame.span(band, band.y).chunks(TILE).zip(row.chunks(TILE));
    for (((held, row), kept), left) in pairs.zip(kept).zip((0..).step_by(TILE_W as usize)) {
        if !*kept && *held != *row {
            *kept = true;
            before.keep(frame, Rect { x: band.x + left, w: (held.len() / PIXEL) as u32, ..band });
        }
    }
}

/// Copies the tiles of a row that differ, and grows each tile's box by the pixels that changed. Boxes are relative to
/// the row's first pixel.
fn write_row(held: &mut [u8], row: &[u8], y: u32, band: &mut [Option<Rect>]) {
    const TILE: usize = TILE_W as usize * PIXEL;
    for (((held, row), found), left) in
        held.chunks_mut(TILE).zip(row.chunks(TILE)).zip(band).zip((0..).step_by(TILE_W as usize))
    {
        if *held == *row {
            continue;
        }
        if let Some((first, last)) = changed_span(held, row) {
            // A source may be memory that another process writes meanwhile: then even the last one may come before the first.
            let changed = Rect { x: left + first, y, w: last.max(first) - first + 1, h: 1 };
            *found = Some(found.map_or(changed, |rect| rect.union(changed)));
        }
        held.copy_from_slice(row);
    }
}

/// Joins the boxes of a band's tiles that are near each other, and empties the band for the next rows.
fn join_band(band: &mut [Option<Rect>], offset: u32, boxes: &mut Vec<Rect>) {
    let mut open: Option<Rect> = None;
    for found in band.iter_mut().filter_map(Option::take) {
        let found = Rect { x: found.x + offset, ..found };
        open = Some(match open {
            Some(rect) if found.x <= rect.right() + NEAR => rect.union(found),
            Some(rect) => {
                boxes.push(rect);
                found
            }
            None => found,
        });
    }
    boxes.extend(open);
}

/// Groups boxes by distance and gives each group its bounding box, unless that box would be mostly unchanged pixels (a
/// window's frame, a diagonal): then the boxes are only merged.
pub(crate) fn group(mut boxes: Vec<Rect>) -> Vec<Rect> {
    boxes.sort_unstable_by_key(|rect| (rect.y, rect.x));
    let mut groups = Groups::new(boxes.len());
    let mut oldest = 0;
    for (i, rect) in boxes.iter().enumerate() {
        // No box is higher than a band, so one that is too far above is too far above all that follow.
        while boxes[oldest].bottom() + NEAR + TILE_H < rect.y {
            oldest += 1;
        }
        for (j, earlier) in boxes[..i].iter().enumerate().skip(oldest) {
            if near(*earlier, *rect) {
                groups.join(i, j);
            }
        }
    }
    let mut found: Vec<Option<(Rect, u64)>> = vec![None; boxes.len()];
    for (i, rect) in boxes.iter().enumerate() {
        let entry = &mut found[groups.root(i)];
        let (held, area) = entry.unwrap_or((*rect, 0));
        *entry = Some((held.union(*rect), area + rect.area()));
    }
    let full = |(rect, area): (Rect, u64)| rect.area() <= 2 * area;
    let mut rects: Vec<Rect> = found.iter().flatten().filter(|entry| full(**entry)).map(|entry| entry.0).collect();
    for (i, rect) in boxes.iter().enumerate() {
        if !found[groups.root(i)].is_some_and(full) {
            rects.push(*rect);
        }
    }
    merge(rects)
}

fn near(a: Rect, b: Rect) -> bool {
    a.x <= b.right() + NEAR && b.x <= a.right() + NEAR && a.y <= b.bottom() + NEAR && b.y <= a.bottom() + NEAR
}

/// Disjoint sets of indices.
struct Groups(Vec<usize>);

impl Groups {
    fn new(len: usize) -> Self {
        Self((0..len).collect())
    }

    fn root(&mut self, mut i: usize) -> usize {
        while self.0[i] != i {
            self.0[i] = self.0[self.0[i]];
            i = self.0[i];
        }
        i
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        self.0[a.max(b)] = a.min(b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Size;

    const SIZE: Size = Size { w: 800, h: 600 };

    fn paint(pixels: &mut [u8], rect: Rect) {
        for y in rect.y..rect.bottom() {
            let start = (y * SIZE.w + rect.x) as usize * PIXEL;
            pixels[start..start + rect.w as usize * PIXEL].fill(200);
        }
    }

    fn changed(painted: &[Rect]) -> Vec<Rect> {
        let mut frame = Frame::new(SIZE);
        let mut pixels = frame.as_bytes().to_vec();
        for rect in painted {
            paint(&mut pixels, *rect);
        }
        let rects = blit(&mut frame, SIZE.rect(), &pixels, SIZE.w as usize * PIXEL);
        assert_eq!(frame.as_bytes(), pixels);
        assert_eq!(blit(&mut frame, SIZE.rect(), &pixels, SIZE.w as usize * PIXEL), []);
        rects
    }

    fn rect(x: u32, y: u32, w: u32, h: u32) -> Rect {
        Rect { x, y, w, h }
    }

    #[test]
    fn two_words_far_apart_are_two_rects() {
        let words = [rect(10, 100, 50, 12), rect(600, 103, 70, 12)];
        assert_eq!(changed(&words), words);
    }

    #[test]
    fn one_pixel_is_one_pixel() {
        for pixel in [rect(0, 0, 1, 1), rect(63, 15, 1, 1), rect(64, 16, 1, 1), rect(799, 599, 1, 1)] {
            assert_eq!(changed(&[pixel]), [pixel]);
        }
    }

    #[test]
    fn a_page_of_ragged_text_is_one_rect() {
        let lines: Vec<Rect> = (0..25).map(|i| rect(20, 10 + i * 20, 500 + i * 77 % 130, 13)).collect();
        let bounds = lines.iter().copied().reduce(Rect::union).unwrap();
        assert_eq!(changed(&lines), [bounds]);
    }

    #[test]
    fn a_window_border_is_not_the_whole_window() {
        let border = [rect(50, 50, 700, 2), rect(50, 548, 700, 2), rect(50, 50, 2, 500), rect(748, 50, 2, 500)];
        let rects = changed(&border);
        assert!(rects.iter().map(|r| r.area()).sum::<u64>() < 700 * 500 / 4, "{rects:?}");
    }

    #[test]
    fn padding_alone_is_no_change_but_is_taken_over() {
        let mut frame = Frame::new(SIZE);
        let padded: Vec<u8> = [0, 0, 0, 255].repeat(frame.as_bytes().len() / PIXEL);
        assert_eq!(blit(&mut frame, SIZE.rect(), &padded, SIZE.w as usize * PIXEL), []);
        assert_eq!(frame.as_bytes(), padded);
    }

    #[test]
    fn a_stride_longer_than_a_row_and_a_short_last_row() {
        let mut frame = Frame::new(SIZE);
        let mut src = vec![9; 100 + 8];
        src[8..100].fill(77);
        assert_eq!(blit(&mut frame, rect(5, 6, 2, 2), &src, 100), [rect(5, 6, 2, 2)]);
        assert_eq!(frame.copy_of(rect(4, 6, 4, 1)), [0, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9, 0, 0, 0, 0]);
    }

    #[test]
    fn noise_is_capped() {
        let specks: Vec<Rect> = (0..400).map(|i| rect(i % 8 * 99, i / 8 * 12, 1, 1)).collect();
        let rects = changed(&specks);
        assert!(rects.len() <= 64);
        assert!(specks.iter().all(|speck| rects.iter().any(|rect| rect.contains(*speck))));
    }
}
