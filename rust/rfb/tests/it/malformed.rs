//! What a malicious or broken server may send: each case ends in a violation that names it, whole and byte by byte.

use rfb::{Encoding, Event, PixelFormat, Problem};

use crate::encoders::deflated;
use crate::wire::{ALL, INDEXED, counted, fed, header, one, pixels, raw_only, rect, session, update};

const W: u32 = 64;
const H: u32 = 48;

/// Feeds a stream, expects a violation whose text contains the words, and returns where it is said to be.
fn refused(name: &str, stream: &[u8], words: &str) -> u64 {
    let end = |pieces: &[usize]| {
        let mut session = session(W, H, &PixelFormat::BGRX);
        let (_, violation) = fed(&mut session, stream, pieces);
        let violation = violation.unwrap_or_else(|| panic!("{name}: not refused"));
        let text = violation.to_string();
        assert!(text.contains(words), "{name}: {text}");
        assert_eq!(pixels(&session), [0; (W * H) as usize], "{name}: half an update is shown");
        violation.offset
    };
    let whole = end(&[stream.len()]);
    assert_eq!(whole, end(&[1]), "{name}");
    whole
}

fn be(n: u32) -> [u8; 4] {
    n.to_be_bytes()
}

#[test]
fn rectangles_over_an_edge() {
    let outside = [
        ("right", rect(60, 0, 5, 1)),
        ("below", rect(0, 47, 1, 2)),
        // Its area fits: GStreamer checked no more than that in 2026.
        ("a long row", rect(0, 0, 65, 1)),
        ("far", rect(65_535, 65_535, 65_535, 65_535)),
        ("empty and outside", rect(65, 0, 0, 0)),
    ];
    for (name, place) in outside {
        for encoding in [0, 1, 5, 6, 7, 16] {
            let stream = [&[0, 0, 0, 1][..], &header(place, encoding), &[0; 64]].concat();
            assert_eq!(refused(name, &stream, "is not inside 64x48"), 4);
        }
    }
    let copies = [("right", [0, 61, 0, 0]), ("below", [0, 0, 0, 47]), ("far", [255; 4])];
    for (name, source) in copies {
        refused(name, &one(rect(0, 0, 4, 4), Encoding::CopyRect, &source), "the source of a copy");
    }
}

#[test]
fn more_painting_than_any_update_needs() {
    let copy = [header(rect(0, 0, W, H), 1), vec![0; 4]].concat();
    let endless = [vec![0, 0, 255, 255], copy.repeat(1000)].concat();
    refused("copies without end", &endless, "pixels painted by one update");
    // Just as many rectangles without pixels are harmless, and their number ends them.
    let mut session = session(W, H, &PixelFormat::BGRX);
    let empty = [vec![0, 0, 255, 255], header(rect(0, 0, 0, 0), 0).repeat(65_535), vec![2]].concat();
    let (events, violation) = fed(&mut session, &empty, &[100_000]);
    assert_eq!((events.len(), events.last(), violation), (2, Some(&Event::Bell), None));
}

#[test]
fn compressed_lengths() {
    let raw = W * H * 4;
    let too_long = raw + raw / 16 + (64 << 10) + 1;
    for (encoding, max) in [(Encoding::Zlib, too_long), (Encoding::Zrle, too_long), (Encoding::Zrle, u32::MAX)] {
        refused("a length", &one(rect(0, 0, W, H), encoding, &be(max)), "of which at most");
    }
    // Tight cannot say more than 4 MiB, which is too much for this.
    refused("a length in Tight", &one(rect(0, 0, 8, 8), Encoding::Tight, &[0, 255, 255, 255]), "bytes of a Tight");
    refused("a JPEG's length", &one(rect(0, 0, 8, 8), Encoding::Tight, &[0x90, 255, 255, 255]), "bytes of a picture");
}

#[test]
fn inflated_lengths() {
    let place = rect(0, 0, 8, 8);
    let bomb = deflated(&vec![0; 1 << 20]);
    let short = deflated(&[0; 8]);
    for (name, data, words) in [("a bomb", &bomb, "more bytes"), ("too little", &short, "fewer bytes")] {
        refused(name, &one(place, Encoding::Zlib, &counted(&[], data)), words);
        refused(name, &one(place, Encoding::Zrle, &counted(&[], data)), words);
        let tight = [&[0][..], &[data.len() as u8 | 128, (data.len() >> 7) as u8], data].concat();
        refused(name, &one(place, Encoding::Tight, &tight), words);
    }
    let one_more = deflated(&[7; 8 * 8 * 4 + 1]);
    refused("one byte more", &one(place, Encoding::Zlib, &counted(&[], &one_more)), "more bytes");
    for encoding in [Encoding::Zlib, Encoding::Zrle] {
        refused("no zlib", &one(place, encoding, &counted(&[], &[0xFF; 20])), "data");
        refused("nothing", &one(place, encoding, &be(0)), "fewer bytes");
    }
    let mut ended = zlib_rs::Deflate::new(6, true, 15);
    let mut out = [0; 400];
    ended.compress(&[0; 256], &mut out, zlib_rs::DeflateFlush::Finish).unwrap();
    refused("a stream that ended", &one(place, Encoding::Zlib, &counted(&[], &out)), "goes on after its end");
}

#[test]
fn zrle_tiles() {
    let zrle = |name: &str, tile: &[u8], words: &str| {
        refused(name, &one(rect(0, 0, 4, 4), Encoding::Zrle, &counted(&[], &deflated(tile))), words);
    };
    zrle("a run too long", &[128, 1, 2, 3, 16], "the length of a run is 17");
    zrle("a run without end", &[&[128, 1, 2, 3][..], &[255; 5000]].concat(), "the length of a run is 256");
    zrle("a palette run too long", &[130, 1, 2, 3, 4, 5, 6, 0x80, 16], "the length of a run is 17");
    zrle("an index", &[130, 1, 2, 3, 4, 5, 6, 2], "an index into a palette is 2");
    zrle("a packed index", &[&[3][..], &[0; 9], &[0xC0, 0, 0, 0]].concat(), "an index into a palette is 3");
    for unused in [17, 127, 129] {
        zrle("an unused subencoding", &[unused; 500], "the subencoding of a ZRLE tile");
    }
}

#[test]
fn subrectangles() {
    let place = rect(0, 0, 16, 16);
    // In a tile of 4x4 at the rectangle's edge.
    let hextile = [&[2 | 8][..], &[0; 4], &[1, 0x33, 0x10]].concat();
    refused("a hextile's", &one(rect(0, 0, 4, 4), Encoding::Hextile, &hextile), "a rectangle within a hextile");
    refused("zlibhex", &one(place, Encoding::Hextile, &[32; 8]), "the mask of a hextile");
}

#[test]
fn tight_controls() {
    let tight = |name: &str, encoding: Encoding, data: &[u8], words: &str| {
        refused(name, &one(rect(0, 0, 8, 8), encoding, data), words);
    };
    for control in [0xA0, 0xB0, 0xF0] {
        tight("an unused compression", Encoding::Tight, &[control; 40], "the compression of a Tight rectangle");
    }
    tight("a filter", Encoding::Tight, &[0x40, 3], "the filter of a Tight rectangle is 3");
    let indices = [&[0x40, 1, 2][..], &[0; 9], &[0; 8]].concat();
    let data = deflated(&[3; 64]);
    let bad = [&indices[..12], &[data.len() as u8], &data].concat();
    tight("an index", Encoding::Tight, &bad, "an index into a palette is 3");
    let one_colour = [&[0x40, 1, 0][..], &[0; 3], &[0, 0, 0, 1, 0, 0, 0, 0]].concat();
    tight("the second of one colour", Encoding::Tight, &one_colour, "an index into a palette is 1");
    let mut eight = session(W, H, &crate::wire::RGB332);
    let (_, violation) = fed(&mut eight, &one(rect(0, 0, 8, 8), Encoding::Tight, &[0x40, 2]), &[1]);
    assert!(violation.unwrap().to_string().contains("the filter of a Tight rectangle is 2"));
}

#[test]
fn pictures() {
    let jpeg = include_bytes!("../fixtures/colours.jpg");
    let place = rect(0, 0, 47, 40);
    let tight =
        |control: u8, data: &[u8]| [&[control, data.len() as u8 | 128, (data.len() >> 7) as u8][..], data].concat();
    refused("a JPEG's size", &one(place, Encoding::Tight, &tight(0x90, jpeg)), "a JPEG picture");
    let wider = rect(0, 0, 49, 40);
    refused("a JPEG's size", &one(wider, Encoding::Tight, &tight(0x90, jpeg)), "its size is 48x40");
    let half = &jpeg[..200];
    refused("half a JPEG", &one(rect(0, 0, 48, 40), Encoding::Tight, &tight(0x90, half)), "a JPEG picture");
    refused("no JPEG", &one(rect(0, 0, 48, 40), Encoding::Tight, &tight(0x90, &[0; 200])), "a JPEG picture");
    refused("an empty one", &one(rect(0, 0, 0, 0), Encoding::Tight, &tight(0x90, jpeg)), "");

    let offered: Vec<Encoding> = ALL.iter().copied().filter(|e| !matches!(e, Encoding::Quality(_))).collect();
    let mut session = session(W, H, &PixelFormat::BGRX);
    session.start(&PixelFormat::BGRX, &offered).unwrap();
    let violation = session.feed(&one(rect(0, 0, 48, 40), Encoding::Tight, &tight(0x90, jpeg)), 0.0).unwrap_err();
    assert!(violation.to_string().contains("not JPEG, which was not asked for"), "{violation}");
}

#[test]
fn sizes_of_the_framebuffer() {
    for (w, h) in [(0, 0), (W, 0), (65_535, 65_535), (16_385, 1), (1, 16_385), (16_384, 4097)] {
        let place = rect(0, 0, w, h);
        refused("a size", &one(place, Encoding::DesktopSize, &[]), "the framebuffer");
        refused("a size", &one(place, Encoding::ExtendedDesktopSize, &[0; 4]), "the framebuffer");
    }
    let storm: Vec<u8> = (0..11).flat_map(|i| one(rect(0, 0, W + i % 2, H), Encoding::DesktopSize, &[])).collect();
    let mut session = session(W, H, &PixelFormat::BGRX);
    let violation = session.feed(&storm, 1.0).unwrap_err();
    assert!(violation.to_string().contains("changes of the framebuffer's size within a second: 11"), "{violation}");
}

#[test]
fn as_many_sizes_as_a_hand_can_drag_are_fine() {
    let mut session = session(W, H, &PixelFormat::BGRX);
    for i in 0..50 {
        session.feed(&one(rect(0, 0, W + i % 2, H), Encoding::DesktopSize, &[]), f64::from(i) / 8.0).unwrap();
    }
    assert_eq!(session.size().w, W + 1);
}

#[test]
fn cursors() {
    for encoding in [Encoding::Cursor, Encoding::CursorWithAlpha] {
        refused("a cursor", &one(rect(0, 0, 65_535, 65_535), encoding, &[0; 8]), "bytes of a cursor");
    }
    refused("Tight in a cursor", &one(rect(0, 0, 4, 4), Encoding::CursorWithAlpha, &[0, 0, 0, 7]), "is 7; expected 0");
    let mut session = session(W, H, &PixelFormat::BGRX);
    let large = [one(rect(0, 0, 513, 2), Encoding::Cursor, &[9; 513 * 2 * 4 + 65 * 2]), vec![2]].concat();
    let (events, violation) = fed(&mut session, &large, &[100]);
    assert_eq!(violation, None);
    assert_eq!((events.first(), events.last()), (Some(&Event::Cursor { visible: false }), Some(&Event::Bell)));
}

#[test]
fn texts() {
    for len in [0x8000_0000, 0x8000_0001, 17 << 20 | 1] {
        refused("a clipboard", &[&[3, 0, 0, 0][..], &be(len)].concat(), "bytes of a clipboard");
    }
    for len in 1..4 {
        refused(
            "no flags",
            &[&[3, 0, 0, 0][..], &be(0_u32.wrapping_sub(len))].concat(),
            "bytes of a clipboard message",
        );
    }
    let extended = |data: &[u8]| [&[3, 0, 0, 0][..], &(-(data.len() as i32)).to_be_bytes(), data].concat();
    refused("two actions", &extended(&[6, 0, 0, 1]), "the action of a clipboard message");
    refused("sizes left out", &extended(&[1, 0, 0, 3, 0, 0, 0, 1]), "bytes of clipboard sizes");
    refused("no zlib", &extended(&[16, 0, 0, 1, 9, 9, 9, 9]), "clipboard data");
    refused("a name", &one(rect(0, 0, 0, 0), Encoding::DesktopName, &be(u32::MAX)), "bytes of the desktop's name");
    refused("a fence", &[248, 0, 0, 0, 0, 0, 0, 0, 65], "bytes of a fence's payload");
}

#[test]
fn texts_too_long_are_cut() {
    let mut session = session(W, H, &PixelFormat::BGRX);
    let stream = [
        counted(&[3, 0, 0, 0], &vec![b'x'; (1 << 20) + 70_000]),
        one(rect(0, 0, 0, 0), Encoding::DesktopName, &counted(&[], &vec![b'n'; 5000])),
    ];
    let (events, violation) = fed(&mut session, &stream.concat(), &[4096]);
    assert_eq!(violation, None);
    assert_eq!(events[0], Event::CutText { text: "x".repeat(1 << 20), truncated: true });
    assert_eq!(events[1], Event::DesktopName { name: "n".repeat(4096), truncated: true });
}

#[test]
fn a_clipboard_bomb_is_inflated_no_further_than_its_limit() {
    let mut bomb = vec![255; 4];
    bomb.resize(8 << 20, 0);
    let data = [&[16, 0, 0, 1][..], &deflated(&bomb)].concat();
    let message = [&[3, 0, 0, 0][..], &(-(data.len() as i32)).to_be_bytes(), &data].concat();
    let (events, violation) = fed(&mut session(W, H, &PixelFormat::BGRX), &message, &[1000]);
    assert_eq!(violation, None);
    let Event::Clipboard(rfb::Clipboard::Provide { parts, truncated: true }) = &events[0] else {
        panic!("{events:?}");
    };
    assert_eq!(parts[0].1.len(), 1 << 20);
}

#[test]
fn what_was_never_offered() {
    for kind in [4, 127, 250, 252, 253, 255] {
        assert_eq!(refused("a message", &[2, kind, 0, 0, 0], "the type of a message"), 1);
    }
    for encoding in [3, 8, 15, 17, 21, 50, -1, -305, -309, -312, -313, 0x574d_5669, 0xfffe_0004_u32 as i32] {
        refused("an encoding", &update(&[(rect(0, 0, 1, 1), encoding, vec![0; 9])]), "the encoding of a rectangle");
    }
    let violation = raw_only(W, H).feed(&one(rect(0, 0, 1, 1), Encoding::CopyRect, &[0; 4]), 0.0).unwrap_err();
    assert!(matches!(violation.problem, Problem::Value { got: 1, .. }), "{violation}");
}

/// These change what the rest means: a client that skipped them would show something else than the server does.
#[test]
fn a_size_or_an_end_that_was_not_offered() {
    for encoding in [Encoding::DesktopSize, Encoding::ExtendedDesktopSize, Encoding::LastRect] {
        let (_, violation) = fed(&mut raw_only(W, H), &one(rect(0, 0, 1, 1), encoding, &[0; 4]), &[7]);
        assert!(violation.unwrap().to_string().contains("one that was offered"), "{encoding:?}");
    }
}

#[test]
fn what_is_skipped_has_a_limit() {
    let everything = rect(0, 0, 65_535, 65_535);
    for (encoding, data, words) in [
        (-239, vec![], "of which at most 16777216"),
        (-314, vec![0; 4], "of which at most 16777216"),
        (-314, vec![0, 0, 0, 7], "is 7; expected 0"),
        (-307, vec![255; 4], "of which at most 16777216"),
        (0x574d_5664, vec![0, 0], "of which at most 16777216"),
        (0x574d_5664, vec![1, 0], "of which at most 16777216"),
        (0x574d_5664, vec![2, 0], "is 2; expected 0 or 1"),
    ] {
        let (_, violation) = fed(&mut raw_only(W, H), &update(&[(everything, encoding, data)]), &[5]);
        let told = violation.unwrap_or_else(|| panic!("{encoding}: not refused")).to_string();
        assert!(told.contains(words), "{encoding}: {told}");
    }
}

#[test]
fn colour_maps() {
    let set = |first: u16, count: u16| {
        [&[1, 0][..], &first.to_be_bytes(), &count.to_be_bytes(), &vec![9; usize::from(count.min(300)) * 6]].concat()
    };
    refused("a colour map", &set(0, 257), "the last entry of the colour map");
    refused("a colour map", &set(65_535, 65_535), "the last entry of the colour map");
    let mut indexed = session(W, H, &INDEXED);
    assert_eq!(fed(&mut indexed, &set(255, 1), &[1]).1, None);
}

#[test]
fn a_message_that_does_not_go_on() {
    let mut session = session(W, H, &PixelFormat::BGRX);
    // A bell, and the first byte of an update.
    session.feed(&[2, 0], 10.0).unwrap();
    assert_eq!(session.check(14.9), Ok(()));
    let violation = session.check(16.0).unwrap_err();
    assert!(matches!(violation.problem, Problem::Stalled { received: 1, seconds: 6, .. }), "{violation:?}");
    assert_eq!(session.feed(&[0, 0, 0], 17.0), Err(violation));
}
