//! Each encoding's bytes by hand, as the standard lays them out, and what they paint.

use imaging::Rect;
use rfb::{Encoding, PixelFormat};

use crate::encoders::deflated;
use crate::wire::{RGB332, RGB565, counted, fed, one, pixels, rect, session, update};

const A: u32 = 0x0011_2233;
const B: u32 = 0x00AA_BBCC;
const C: u32 = 0x00FF_0000;

/// A pixel on the wire, BGRX.
fn px(colour: u32) -> [u8; 4] {
    let [_, red, green, blue] = colour.to_be_bytes();
    [blue, green, red, 0x99]
}

/// The same in Tight: red, green, blue.
fn tpx(colour: u32) -> [u8; 3] {
    let [_, red, green, blue] = colour.to_be_bytes();
    [red, green, blue]
}

/// The same in ZRLE: the low three bytes.
fn cpx(colour: u32) -> [u8; 3] {
    let [_, red, green, blue] = colour.to_be_bytes();
    [blue, green, red]
}

fn cat(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

/// Feeds one rectangle at 1,1 into a black screen of 8x6, whole and byte by byte, and returns the pixels of that rectangle.
fn painted(w: u32, h: u32, encoding: Encoding, data: &[u8]) -> Vec<u32> {
    painted_as(&PixelFormat::BGRX, w, h, encoding, data)
}

fn painted_as(format: &PixelFormat, w: u32, h: u32, encoding: Encoding, data: &[u8]) -> Vec<u32> {
    let place = rect(1, 1, w, h);
    let show = |pieces: &[usize]| {
        let mut session = session(8, 6, format);
        let (_, violation) = fed(&mut session, &one(place, encoding, data), pieces);
        assert_eq!(violation, None);
        let all = pixels(&session);
        for (i, pixel) in all.iter().enumerate() {
            let inside = place.contains(Rect { x: i as u32 % 8, y: i as u32 / 8, w: 1, h: 1 });
            assert!(inside || *pixel == 0, "pixel {i} outside of the rectangle was painted");
        }
        (0..h as usize).flat_map(|y| all[(y + 1) * 8 + 1..][..w as usize].to_vec()).collect::<Vec<_>>()
    };
    let whole = show(&[data.len() + 16]);
    assert_eq!(whole, show(&[1]));
    whole
}

#[test]
fn raw() {
    let data = cat(&[&px(A), &px(B), &px(C), &px(A)]);
    assert_eq!(painted(2, 2, Encoding::Raw, &data), [A, B, C, A]);
    assert_eq!(painted_as(&RGB565, 2, 1, Encoding::Raw, &[0x00, 0xF8, 0x1F, 0x00]), [0x00FF_0000, 0x0000_00FF]);
    assert_eq!(painted_as(&RGB332, 2, 1, Encoding::Raw, &[0xE0, 0x03]), [0x00FF_0000, 0x0000_00FF]);
}

#[test]
fn copy_rect() {
    let mut session = session(4, 1, &PixelFormat::BGRX);
    let stream = update(&[
        (rect(0, 0, 2, 1), 0, cat(&[&px(A), &px(B)])),
        (rect(1, 0, 2, 1), 1, vec![0, 0, 0, 0]),
        (rect(3, 0, 1, 1), 1, vec![0, 2, 0, 0]),
    ]);
    assert_eq!(fed(&mut session, &stream, &[1]).1, None);
    assert_eq!(pixels(&session), [A, A, B, B]);
}

#[test]
fn hextile() {
    // Background and foreground given, one rectangle; the background of before; raw; coloured rectangles.
    let mut session = session(17, 33, &PixelFormat::BGRX);
    let tiles = cat(&[
        &[2 | 4 | 8],
        &px(A),
        &px(B),
        &[1, 0x12, 0x30],    // 4 by 1 at 1, 2
        &[8, 1, 0x03, 0x00], // the last column: 1 by 1 at 0, 3 in the foreground of before
        &[2],
        &px(C),
        &[0], // the background of before
        &[8 | 16, 2],
        &px(A),
        &[0x00, 0x00],
        &px(B),
        &[0xF0, 0x00],
        &[1],
        &px(B),
    ]);
    assert_eq!(fed(&mut session, &one(rect(0, 0, 17, 33), Encoding::Hextile, &tiles), &[1]).1, None);
    let all = pixels(&session);
    let at = |x: usize, y: usize| all[y * 17 + x];
    let expected = [
        ((0, 0), A),
        ((1, 2), B),
        ((4, 2), B),
        ((5, 2), A),
        ((16, 0), A),
        ((16, 3), B),
        ((0, 16), C),
        ((15, 31), C),
        ((16, 16), C),
        ((0, 32), A),
        ((1, 32), C),
        ((15, 32), B),
        ((16, 32), B),
    ];
    for ((x, y), colour) in expected {
        assert_eq!(at(x, y), colour, "at {x}, {y}");
    }
}

#[test]
fn zlib() {
    let data = counted(&[], &deflated(&cat(&[&px(A), &px(B)])));
    assert_eq!(painted(2, 1, Encoding::Zlib, &data), [A, B]);
}

#[test]
fn a_zlib_stream_goes_on_in_the_next_rectangle() {
    let mut stream = crate::encoders::Deflater::new();
    let (first, second) = (stream.piece(&px(A).repeat(8)), stream.piece(&px(A).repeat(8)));
    assert!(second.len() < first.len(), "the second refers to the first");
    let mut session = session(8, 2, &PixelFormat::BGRX);
    let rects = [(rect(0, 0, 8, 1), 6, counted(&[], &first)), (rect(0, 1, 8, 1), 6, counted(&[], &second))];
    assert_eq!(fed(&mut session, &update(&rects), &[1]).1, None);
    assert_eq!(pixels(&session), [A; 16]);
}

#[test]
fn zrle_tiles() {
    let zrle = |w, h, tile: &[u8]| painted(w, h, Encoding::Zrle, &counted(&[], &deflated(tile)));
    assert_eq!(zrle(2, 1, &cat(&[&[0], &cpx(A), &cpx(B)])), [A, B]);
    assert_eq!(zrle(2, 2, &cat(&[&[1], &cpx(C)])), [C; 4]);
    let two = cat(&[&[2], &cpx(A), &cpx(B), &[0b0100_0000, 0b1000_0000]]);
    assert_eq!(zrle(2, 2, &two), [A, B, B, A]);
    let three = cat(&[&[3], &cpx(A), &cpx(B), &cpx(C), &[0b0001_1000, 0b0100_0000]]);
    assert_eq!(zrle(5, 1, &three), [A, B, C, A, B]);
    let five = cat(&[&[5], &cpx(A), &cpx(B), &cpx(C), &cpx(0), &cpx(1), &[0x42, 0x10]]);
    assert_eq!(zrle(3, 1, &five), [1, C, B]);
    let runs = cat(&[&[128], &cpx(A), &[2], &cpx(B), &[0], &cpx(C), &[1]]);
    assert_eq!(zrle(3, 2, &runs), [A, A, A, B, C, C]);
    let palette_runs = cat(&[&[130], &cpx(A), &cpx(B), &[0, 0x81, 2, 0, 1]]);
    assert_eq!(zrle(3, 2, &palette_runs), [A, B, B, B, A, B]);
}

#[test]
fn zrle_runs_of_every_length() {
    // The table of RFC 6143 §7.7.6.
    let cases: [(usize, &[u8]); 8] = [
        (1, &[0]),
        (255, &[254]),
        (256, &[255, 0]),
        (257, &[255, 1]),
        (510, &[255, 254]),
        (511, &[255, 255, 0]),
        (1000, &[255, 255, 255, 234]),
        (4095, &[&[255; 16][..], &[14]].concat()),
    ];
    for (run, length) in cases {
        let rest = 4096 - run;
        let mut tail = vec![255; (rest - 1) / 255];
        tail.push(((rest - 1) % 255) as u8);
        let tile = cat(&[&[128], &cpx(A), length, &cpx(B), &tail]);
        let mut session = session(64, 64, &PixelFormat::BGRX);
        let stream = one(rect(0, 0, 64, 64), Encoding::Zrle, &counted(&[], &deflated(&tile)));
        assert_eq!(fed(&mut session, &stream, &[7]).1, None, "a run of {run}");
        let all = pixels(&session);
        assert!(all[..run].iter().all(|p| *p == A) && all[run..].iter().all(|p| *p == B), "a run of {run}");
    }
}

/// A length of one to three bytes, as in Tight.
fn compact(len: usize) -> Vec<u8> {
    match len {
        0..128 => vec![len as u8],
        128..16_384 => vec![len as u8 | 128, (len >> 7) as u8],
        _ => vec![len as u8 | 128, (len >> 7) as u8 | 128, (len >> 14) as u8],
    }
}

fn tight_deflated(control: &[u8], data: &[u8]) -> Vec<u8> {
    let data = deflated(data);
    cat(&[control, &compact(data.len()), &data])
}

#[test]
fn tight_fill_and_copy() {
    assert_eq!(painted(2, 2, Encoding::Tight, &cat(&[&[0x80], &tpx(A)])), [A; 4]);
    // Fewer than 12 bytes are sent as they are, with and without the filter's name.
    assert_eq!(painted(2, 1, Encoding::Tight, &cat(&[&[0x00], &tpx(A), &tpx(B)])), [A, B]);
    assert_eq!(painted(2, 1, Encoding::Tight, &cat(&[&[0x40, 0], &tpx(A), &tpx(B)])), [A, B]);
    let rows = cat(&[&tpx(A), &tpx(B), &tpx(C), &tpx(A)]);
    for stream in 0..4_u8 {
        assert_eq!(painted(2, 2, Encoding::Tight, &tight_deflated(&[stream << 4], &rows)), [A, B, C, A]);
    }
    assert_eq!(painted_as(&RGB565, 2, 1, Encoding::Tight, &[0, 0x00, 0xF8, 0x1F, 0x00]), [0x00FF_0000, 0x0000_00FF]);
}

#[test]
fn tight_palettes() {
    let two = cat(&[&[0x40, 1, 1], &tpx(A), &tpx(B), &[0b0100_0000, 0b1010_0000]]);
    assert_eq!(painted(3, 2, Encoding::Tight, &two), [A, B, A, B, A, B]);
    let three = cat(&[&[0x40, 1, 2], &tpx(A), &tpx(B), &tpx(C), &[0, 1, 2, 2, 1, 0]]);
    assert_eq!(painted(3, 2, Encoding::Tight, &three), [A, B, C, C, B, A]);
    let long = tight_deflated(&cat(&[&[0x50, 1, 2], &tpx(A), &tpx(B), &tpx(C)]), &[0, 1, 2, 0, 1, 2, 2, 1, 0, 0, 0, 0]);
    assert_eq!(painted(6, 2, Encoding::Tight, &long), [A, B, C, A, B, C, C, B, A, A, A, A]);
}

#[test]
fn tight_gradient() {
    // Each sample is what is missing to left + above - above left, kept within 0..=255: a plane costs nothing.
    let rows = cat(&[&[10, 20, 30], &[5, 5, 5], &[1, 1, 1], &[0, 0, 0], &[250, 0, 0], &[0, 0, 0]]);
    let expected = [0x000A_141E, 0x000F_1923, 0x000B_151F, 0x0010_1A24, 0x0005_151F, 0x000A_1A24];
    assert_eq!(painted(2, 3, Encoding::Tight, &tight_deflated(&[0x40, 2], &rows)), expected);
    // In 16 bits each colour is predicted within its own range: here 31 + 1 wraps.
    let rows = [0x00, 0xF8, 0x00, 0x08, 0, 0, 0, 0, 0, 0, 0, 0_u8];
    let got = painted_as(&RGB565, 6, 1, Encoding::Tight, &tight_deflated(&[0x40, 2], &rows));
    assert_eq!(got, [0x00FF_0000, 0, 0, 0, 0, 0]);
}

#[test]
fn tight_streams_are_reset_by_their_bits() {
    let mut first = crate::encoders::Deflater::new();
    let mut other = crate::encoders::Deflater::new();
    let rows = tpx(A).repeat(16);
    let tight = |control: u8, data: Vec<u8>| (rect(0, 0, 16, 1), 7, cat(&[&[control], &compact(data.len()), &data]));
    let rects = [
        tight(0x20, first.piece(&rows)),
        tight(0x10, other.piece(&rows)),
        tight(0x20, first.piece(&rows)),
        // Stream 2 begins anew, stream 1 goes on.
        tight(0x24, crate::encoders::Deflater::new().piece(&rows)),
        tight(0x10, other.piece(&rows)),
    ];
    let mut session = session(16, 1, &PixelFormat::BGRX);
    assert_eq!(fed(&mut session, &update(&rects), &[3]).1, None);
    assert_eq!(pixels(&session), [A; 16]);
}

#[test]
fn tight_fills() {
    assert_eq!(painted(2, 2, Encoding::Tight, &cat(&[&[0x80], &tpx(A)])), [A; 4]);
}

#[test]
fn jpeg_is_close_to_what_another_decoder_makes_of_it() {
    for (name, jpeg, expected) in [
        ("colours", &include_bytes!("../fixtures/colours.jpg")[..], &include_bytes!("../fixtures/colours.png")[..]),
        ("grey", include_bytes!("../fixtures/grey.jpg"), include_bytes!("../fixtures/grey.png")),
    ] {
        let (size, expected) = crate::recorded::rgb(expected);
        let mut session = session(size.w, size.h, &PixelFormat::BGRX);
        let data = cat(&[&[0x90], &compact(jpeg.len()), jpeg]);
        assert_eq!(fed(&mut session, &one(size.rect(), Encoding::Tight, &data), &[100]).1, None);
        let got = pixels(&session).into_iter().map(tpx).collect::<Vec<_>>().concat();
        // Decoders may round otherwise, and smooth colours when they enlarge them.
        let furthest = got.iter().zip(&expected).map(|(a, b)| a.abs_diff(*b)).max();
        assert!(furthest <= Some(6), "{name}: off by {furthest:?}");
    }
}

#[test]
fn rectangles_without_pixels_are_read_over() {
    let empty = rect(3, 2, 0, 4);
    let nothing = counted(&[], &deflated(&[]));
    let mut session = session(8, 6, &PixelFormat::BGRX);
    let rects = [
        (empty, 0, vec![]),
        (empty, 1, vec![0, 0, 0, 0]),
        (empty, 5, vec![]),
        (empty, 6, nothing.clone()),
        (empty, 7, cat(&[&[0x80], &tpx(A)])),
        (empty, 7, vec![0x00]),
        (empty, 16, nothing),
        (rect(0, 0, 1, 1), 0, px(B).to_vec()),
    ];
    assert_eq!(fed(&mut session, &update(&rects), &[1]).1, None);
    assert_eq!(pixels(&session), [[B].as_slice(), &[0; 47]].concat());
}
