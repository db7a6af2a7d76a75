//! Files from strips of many ages against the `png` crate and the plainest conversion of the same pixels.
#![no_main]

#[path = "common.rs"]
mod common;

use common::{Kind, place, size};
use imaging::{Cursor, Patch, Png, Screen, Size, View};
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
enum Step {
    Paint(Kind, [u8; 4]),
    Copy([u8; 4], (u8, u8)),
    Resize(u8, u8),
    Cursor(Option<(u8, u8, u32)>),
    Pointer(i16, i16),
    Tighten,
    GetReady,
    Look { size: Option<(u8, u8)>, region: Option<[u8; 4]>, cursor: bool, indexed: bool },
}

fn decode(file: &Png) -> (Size, Vec<u8>) {
    let mut decoder = png::Decoder::new(std::io::Cursor::new(file.to_vec()));
    decoder.set_transformations(png::Transformations::EXPAND);
    decoder.ignore_checksums(false);
    let mut reader = decoder.read_info().unwrap();
    let mut rgb = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut rgb).unwrap();
    reader.finish().unwrap();
    (Size { w: info.width, h: info.height }, rgb)
}

fuzz_target!(|input: ((u8, u8), Vec<Step>)| {
    let ((w, h), steps) = input;
    let mut screen = Screen::new(size(w, h));
    for step in steps.into_iter().take(24) {
        match step {
            Step::Paint(kind, at) => {
                let rect = place(at, screen.size());
                let pixels = kind.pixels(rect.size());
                screen.update(&[Patch { rect, pixels: &pixels, stride: rect.w as usize * 4 }], 0.0).unwrap();
            }
            Step::Copy(at, (x, y)) => {
                let (rect, size) = (place(at, screen.size()), screen.size());
                let to = (u32::from(x) % (size.w - rect.w + 1), u32::from(y) % (size.h - rect.h + 1));
                screen.copy_rect(rect, to, 0.0).unwrap();
            }
            Step::Resize(w, h) => screen.resize(size(w, h), 0.0),
            Step::Cursor(cursor) => screen.set_cursor(cursor.map(|(w, h, seed)| {
                let size = size(w % 32, h % 32);
                let argb = (0..size.w * size.h).map(|i| i.wrapping_mul(seed)).collect();
                Cursor { size, hot: (w.into(), h.into()), argb, serial: 0, name: String::new() }
            })),
            Step::Pointer(x, y) => screen.set_pointer((x.into(), y.into())),
            Step::Tighten => {
                while let Some(slack) = screen.slack().unwrap() {
                    screen.install(slack.tighten().unwrap());
                }
            }
            Step::GetReady => {
                screen.expect(1);
                screen.get_ready();
            }
            Step::Look { size: wanted, region, cursor, indexed } => {
                let region = region.map(|at| place(at, screen.size()));
                let view = View { size: wanted.map(|(w, h)| size(w, h)), region, cursor };
                let file = if indexed { screen.indexed_png(&view) } else { screen.png(&view) }.unwrap();
                let shown = decode(&file);
                assert_eq!(shown, screen.rgb(&view).unwrap());
                if wanted.is_none() && !cursor {
                    let area = region.unwrap_or(screen.size().rect());
                    let row = |y| &screen.frame().row(y)[area.x as usize * 4..area.right() as usize * 4];
                    let plain = (area.y..area.bottom()).flat_map(|y| row(y).chunks(4)).flat_map(|p| [p[2], p[1], p[0]]);
                    assert!(plain.eq(shown.1));
                }
            }
        }
    }
});
