//! Scaled pictures, made in strips and kept through changes, against the textbook's sums in floating point.
#![no_main]

#[path = "common.rs"]
mod common;

use std::f64::consts::PI;

use common::{Kind, place, size};
use imaging::{Patch, Screen, Size, View};
use libfuzzer_sys::fuzz_target;

/// Samples are rounded after each of two passes; coefficients have 14 bits or more.
const TOLERANCE: f64 = 1.6;

/// What each source pixel of one dimension counts for in one of the output.
fn weights(at: u32, from: u32, to: u32) -> Vec<(usize, f64)> {
    let ratio = f64::from(from) / f64::from(to);
    let (centre, radius) = ((f64::from(at) + 0.5) * ratio, ratio.max(1.0));
    let weight = |x: f64| match x.abs() {
        x if x >= 1.0 => 0.0,
        x if to > from => 1.0 - x,
        0.0 => 1.0,
        x => (PI * x).sin() / (PI * x) * (0.54 + 0.46 * (PI * x).cos()),
    };
    let all = (0..from).map(|i| (i as usize, weight((f64::from(i) + 0.5 - centre) / radius)));
    let some: Vec<_> = all.filter(|(_, weight)| *weight > 0.0).collect();
    let sum: f64 = some.iter().map(|(_, weight)| weight).sum();
    some.into_iter().map(|(i, weight)| (i, weight / sum)).collect()
}

fuzz_target!(|input: ((u8, u8), (u8, u8), Vec<(Kind, [u8; 4])>)| {
    let ((w, h), (to_w, to_h), patches) = input;
    let (from, to) = (size(w, h), size(to_w, to_h));
    let mut screen = Screen::new(from);
    let view = View { size: Some(to), ..View::default() };
    for (second, (kind, at)) in patches.into_iter().take(4).enumerate() {
        let rect = place(at, from);
        let pixels = kind.pixels(rect.size());
        // So far apart that they are no video's, of which the same pixels would make another file.
        screen.update(&[Patch { rect, pixels: &pixels, stride: rect.w as usize * 4 }], second as f64).unwrap();
        screen.png(&view).unwrap();
    }
    let mut fresh = Screen::new(from);
    let whole = Patch { rect: from.rect(), pixels: screen.frame().as_bytes(), stride: from.w as usize * 4 };
    fresh.update(&[whole], 0.0).unwrap();
    assert_eq!(screen.png(&view).unwrap().to_vec(), fresh.png(&view).unwrap().to_vec(), "strips of different ages");
    let (Size { w, .. }, scaled) = screen.rgb(&view).unwrap();
    if from == to {
        return;
    }
    let columns: Vec<_> = (0..to.w).map(|x| weights(x, from.w, to.w)).collect();
    for y in 0..to.h {
        let rows = weights(y, from.h, to.h);
        for (x, columns) in columns.iter().enumerate() {
            for channel in 0..3 {
                let sample = |x: usize, y: usize| f64::from(screen.frame().row(y as u32)[x * 4 + 2 - channel]);
                let exact: f64 = rows
                    .iter()
                    .map(|(y, down)| columns.iter().map(|(x, across)| down * across * sample(*x, *y)).sum::<f64>())
                    .sum();
                let ours = f64::from(scaled[(y as usize * w as usize + x) * 3 + channel]);
                assert!((ours - exact).abs() <= TOLERANCE, "{from} to {to}, {x},{y}: {ours}, not {exact}");
            }
        }
    }
});
