//! Building a server's messages, and a session to feed them to.

use std::sync::{Arc, Mutex};

use imaging::{Rect, Screen, Size};
use rfb::{Encoding, Event, Limits, PixelFormat, Session, Violation};

use crate::seeds;

/// Every encoding there is.
pub const ALL: &[Encoding] = &[
    Encoding::Raw,
    Encoding::CopyRect,
    Encoding::Hextile,
    Encoding::Zlib,
    Encoding::Tight,
    Encoding::Zrle,
    Encoding::Quality(8),
    Encoding::Compression(2),
    Encoding::DesktopSize,
    Encoding::ExtendedDesktopSize,
    Encoding::LastRect,
    Encoding::Cursor,
    Encoding::CursorWithAlpha,
    Encoding::DesktopName,
    Encoding::Fence,
    Encoding::ContinuousUpdates,
    Encoding::QemuLeds,
    Encoding::MouseButtons,
    Encoding::PointerPos,
    Encoding::CursorPosition,
    Encoding::Clipboard,
];

pub const RGB565: PixelFormat = PixelFormat {
    bits_per_pixel: 16,
    depth: 16,
    big_endian: false,
    true_colour: true,
    max: [31, 63, 31],
    shift: [11, 5, 0],
};

pub const RGB332: PixelFormat =
    PixelFormat { bits_per_pixel: 8, depth: 8, big_endian: false, true_colour: true, max: [7, 7, 3], shift: [5, 2, 0] };

pub const INDEXED: PixelFormat = PixelFormat { true_colour: false, ..RGB332 };

/// A session that has offered everything.
pub fn session(w: u32, h: u32, format: &PixelFormat) -> Session {
    offering(w, h, format, ALL)
}

/// A session that has offered nothing but pixels as they are.
pub fn raw_only(w: u32, h: u32) -> Session {
    offering(w, h, &PixelFormat::BGRX, &[Encoding::Raw])
}

fn offering(w: u32, h: u32, format: &PixelFormat, encodings: &[Encoding]) -> Session {
    let size = Size { w, h };
    let screen = Arc::new(Mutex::new(Screen::new(size)));
    let mut session = Session::new(size, screen, Limits::default(), 0.0).unwrap();
    session.start(format, encodings).unwrap();
    assert!(!session.to_send().is_empty());
    session
}

/// What a session's screen shows, as 0xRRGGBB.
pub fn pixels(session: &Session) -> Vec<u32> {
    let screen = session.screen().lock().unwrap();
    let bgrx = |pixel: &[u8]| u32::from_be_bytes([0, pixel[2], pixel[1], pixel[0]]);
    screen.frame().as_bytes().chunks_exact(4).map(bgrx).collect()
}

pub const fn rect(x: u32, y: u32, w: u32, h: u32) -> Rect {
    Rect { x, y, w, h }
}

/// An update of rectangles: each its place, its encoding's number, and its data.
pub fn update(rects: &[(Rect, i32, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = vec![0, 0];
    bytes.extend((rects.len() as u16).to_be_bytes());
    for (rect, encoding, data) in rects {
        bytes.extend(header(*rect, *encoding));
        bytes.extend(data);
    }
    bytes
}

/// The header of a rectangle.
pub fn header(rect: Rect, encoding: i32) -> Vec<u8> {
    let mut bytes = Vec::new();
    for side in [rect.x, rect.y, rect.w, rect.h] {
        bytes.extend((side as u16).to_be_bytes());
    }
    bytes.extend(encoding.to_be_bytes());
    bytes
}

/// An update of one rectangle.
pub fn one(rect: Rect, encoding: Encoding, data: &[u8]) -> Vec<u8> {
    update(&[(rect, encoding.number(), data.to_vec())])
}

/// A message whose length is a field of its own.
pub fn counted(head: &[u8], data: &[u8]) -> Vec<u8> {
    [head, &(data.len() as u32).to_be_bytes(), data].concat()
}

/// Feeds pieces of the given sizes, the last one repeated, and returns all events and the violation at the end, if any.
pub fn fed(session: &mut Session, stream: &[u8], pieces: &[usize]) -> (Vec<Event>, Option<Violation>) {
    seeds::session(0, stream);
    let (mut events, mut rest) = (Vec::new(), stream);
    let mut sizes = pieces.iter().chain(std::iter::repeat(pieces.last().unwrap()));
    while !rest.is_empty() {
        let (piece, after) = rest.split_at((*sizes.next().unwrap()).clamp(1, rest.len()));
        rest = after;
        match session.feed(piece, 1.0) {
            Ok(told) => events.extend(told),
            Err(violation) => {
                events.extend(session.unread());
                assert_eq!(session.feed(&[2], 2.0), Err(violation.clone()), "a broken session stays broken");
                return (events, Some(violation));
            }
        }
    }
    (events, None)
}
