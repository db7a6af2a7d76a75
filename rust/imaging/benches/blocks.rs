//! Each building block on a frame of 1920x1080, beside the memory traffic that no implementation gets below.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use imaging::{Frame, Patch, Rect, Screen, Size, View, blit};

const SIZE: Size = Size { w: 1920, h: 1080 };
const LINE: Rect = Rect { x: 10, y: 202, w: 600, h: 14 };
const STRIDE: usize = SIZE.w as usize * 4;
const PLAIN: View = View { size: None, region: None, cursor: false };
const SCALED: View = View { size: Some(Size { w: 1366, h: 768 }), ..PLAIN };

/// A window of text beside a gradient, on black.
fn desktop() -> Vec<u8> {
    let pixel = |x: u32, y: u32| match (x, y) {
        (0..600, 0..800) => {
            let glyph = (x / 7 * 31 + y / 13 * 17).wrapping_mul(0x9E37_79B1);
            let ink = y % 13 < 9 && x % 7 < 6 && glyph >> (x % 7 * 4 + y % 13 % 4) & 1 == 1;
            if ink { [200, (glyph >> 9) as u8 & 0xC0, 0, 0] } else { [255, 255, 255, 0] }
        }
        (800..1800, 180..400) => {
            let along = (x - 800 + 400 - y) / 5;
            [along as u8, 102 + along as u8 / 3, 204 - (along as u8) / 2, 0]
        }
        (800..1800, 40..940) => [255; 4],
        _ => [0; 4],
    };
    (0..SIZE.h).flat_map(|y| (0..SIZE.w).flat_map(move |x| pixel(x, y))).collect()
}

/// A smooth picture with the noise of a camera.
fn photo() -> Vec<u8> {
    let noise = |i: u32| i.wrapping_mul(0x9E37_79B1).rotate_left(13).wrapping_mul(0x85EB_CA6B) >> 29;
    (0..SIZE.w * SIZE.h * 4)
        .map(|i| {
            let (x, y) = (i / 4 % SIZE.w, i / 4 / SIZE.w);
            (((x as f32 / 90.0).sin() + (y as f32 / 70.0).cos()) * 50.0 + 120.0) as u8 + noise(i) as u8
        })
        .collect()
}

fn showing(pixels: &[u8]) -> Screen {
    let mut screen = Screen::new(SIZE);
    screen.update(&[Patch { rect: SIZE.rect(), pixels, stride: STRIDE }], 0.0).expect("a whole frame");
    screen
}

fn change_a_line(screen: &mut Screen, shade: &mut u8) {
    *shade = shade.wrapping_add(1);
    let pixels: Vec<u8> = (0..LINE.area() * 4).map(|i| if i / 40 % 3 == 0 { *shade } else { 255 }).collect();
    screen.update(&[Patch { rect: LINE, pixels: &pixels, stride: LINE.w as usize * 4 }], 0.0).expect("a line");
}

fn floors(c: &mut Criterion) {
    let (a, b) = (desktop(), desktop());
    let mut target = a.clone();
    c.bench_function("floor: memcmp of two frames", |bench| bench.iter(|| black_box(&a) == black_box(&b)));
    c.bench_function("floor: memcpy of a frame", |bench| bench.iter(|| target.copy_from_slice(black_box(&a))));
}

fn compare(c: &mut Criterion) {
    let pixels = desktop();
    let held = Frame::from_bgrx(SIZE, pixels.clone()).expect("a whole frame");
    let mut frame = held.clone();
    c.bench_function("compare, nothing changed", |b| b.iter(|| blit(&mut frame, SIZE.rect(), &pixels, STRIDE)));
    let other: Vec<u8> = pixels.iter().map(|sample| !sample).collect();
    c.bench_function("compare and copy, everything changed", |b| {
        b.iter_batched_ref(|| held.clone(), |frame| blit(frame, SIZE.rect(), &other, STRIDE), BatchSize::LargeInput);
    });
}

fn encode(c: &mut Criterion) {
    for (name, pixels) in [("desktop", desktop()), ("photo", photo())] {
        for (view, how) in [(PLAIN, ""), (SCALED, " at 1366x768")] {
            c.bench_function(&format!("png of everything, {name}{how}"), |b| {
                b.iter_batched_ref(|| showing(&pixels), |screen| screen.png(&view), BatchSize::LargeInput);
            });
        }
    }
    for (view, how) in [(PLAIN, ""), (SCALED, " at 1366x768")] {
        let (mut screen, mut shade) = (showing(&desktop()), 0);
        c.bench_function(&format!("png after a changed line{how}"), |b| {
            b.iter(|| {
                change_a_line(&mut screen, &mut shade);
                screen.png(&view)
            });
        });
    }
    let mut screen = showing(&desktop());
    screen.png(&PLAIN).expect("a file");
    c.bench_function("png, nothing changed", |b| b.iter(|| screen.png(&PLAIN)));
    c.bench_function("one strip tightened", |b| {
        b.iter_batched(
            || screen.slack().expect("no bug").expect("a loose strip"),
            imaging::Slack::tighten,
            BatchSize::LargeInput,
        );
    });
    c.bench_function("png with a palette, everything", |b| {
        let pixels = [[0, 0, 0, 0], [255, 255, 255, 0]].concat().repeat(SIZE.rect().area() as usize / 2);
        b.iter_batched_ref(|| showing(&pixels), |screen| screen.indexed_png(&PLAIN), BatchSize::LargeInput);
    });
}

fn pixels_out(c: &mut Criterion) {
    let mut screen = showing(&desktop());
    let mut rgb = vec![0; SIZE.rect().area() as usize * 3];
    c.bench_function("rgb of everything", |b| b.iter(|| screen.rgb_into(&PLAIN, &mut rgb)));
    c.bench_function("rgb of everything at 1366x768", |b| b.iter(|| screen.rgb(&SCALED)));
    let mut shade = 0;
    screen.hashes();
    c.bench_function("fingerprints after a changed line", |b| {
        b.iter(|| {
            change_a_line(&mut screen, &mut shade);
            screen.hashes().len()
        });
    });
}

criterion_group! {
    name = blocks;
    config = Criterion::default().sample_size(20).measurement_time(Duration::from_secs(2)).warm_up_time(Duration::from_millis(500));
    targets = floors, compare, encode, pixels_out
}
criterion_main!(blocks);
