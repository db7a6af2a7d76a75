//! `blit` against a comparison pixel by pixel.
#![no_main]

#[path = "common.rs"]
mod common;

use common::{Kind, place, size};
use imaging::{Frame, Rect, blit};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: ((u8, u8), Vec<(Kind, [u8; 4], u8)>)| {
    let ((w, h), patches) = input;
    let size = size(w, h);
    let mut frame = Frame::new(size);
    for (kind, at, gap) in patches.into_iter().take(8) {
        let rect = place(at, size);
        let row = rect.w as usize * 4;
        let stride = row + usize::from(gap);
        let mut source = Vec::new();
        for pixels in kind.pixels(rect.size()).chunks(row) {
            source.extend_from_slice(pixels);
            source.resize(source.len() + usize::from(gap), 7);
        }
        source.truncate(stride * (rect.h as usize - 1) + row);
        let before = frame.clone();
        let found = blit(&mut frame, rect, &source, stride);

        let has = |rect: Rect, x: u32, y: u32| rect.contains(Rect { x, y, w: 1, h: 1 });
        let colour = |frame: &Frame, x: u32, y: u32| {
            let pixel = &frame.row(y)[x as usize * 4..][..3];
            [pixel[0], pixel[1], pixel[2]]
        };
        let mut edges = vec![[false; 4]; found.len()];
        for y in 0..size.h {
            for x in 0..size.w {
                let expected = if has(rect, x, y) {
                    let start = (y - rect.y) as usize * stride + (x - rect.x) as usize * 4;
                    [source[start], source[start + 1], source[start + 2]]
                } else {
                    colour(&before, x, y)
                };
                assert_eq!(colour(&frame, x, y), expected, "the pixel at {x},{y}");
                if colour(&before, x, y) != expected {
                    assert!(found.iter().any(|rect| has(*rect, x, y)), "{x},{y} changed and is in none of {found:?}");
                    for (rect, edges) in found.iter().zip(&mut edges).filter(|(rect, _)| has(**rect, x, y)) {
                        let here = [x == rect.x, y == rect.y, x + 1 == rect.right(), y + 1 == rect.bottom()];
                        (0..4).for_each(|i| edges[i] |= here[i]);
                    }
                }
            }
        }
        assert!(edges.iter().all(|edges| *edges == [true; 4]), "an edge without a change: {found:?}");
        assert!(found.len() <= 64);
    }
});
