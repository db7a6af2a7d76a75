//! What the targets past the handshake share: a session that has offered everything, and what became of it.

use std::sync::{Arc, Mutex};

use imaging::{Screen, Size};
use rfb::{Encoding, Event, Limits, PixelFormat, Session};

/// As large as the recorded sessions.
pub const SIZE: Size = Size { w: 128, h: 96 };

/// A form of pixels, by any byte.
#[allow(dead_code, reason = "the clipboard has none")]
pub fn format(kind: u8) -> PixelFormat {
    let bgrx = PixelFormat::BGRX;
    let rgb565 = PixelFormat { bits_per_pixel: 16, depth: 16, max: [31, 63, 31], shift: [11, 5, 0], ..bgrx };
    let rgb332 = PixelFormat { bits_per_pixel: 8, depth: 8, max: [7, 7, 3], shift: [5, 2, 0], ..bgrx };
    let indexed = PixelFormat { true_colour: false, ..rgb332 };
    let formats =
        [bgrx, PixelFormat { big_endian: true, ..bgrx }, rgb565, rgb332, indexed, PixelFormat { depth: 32, ..bgrx }];
    formats[usize::from(kind) % formats.len()]
}

/// Events, bytes for the server, where it broke the protocol, and what the screen shows.
pub type End = (Vec<Event>, Vec<u8>, Option<u64>, Vec<u8>);

/// What became of a stream that came in pieces of this size.
pub fn end(format: &PixelFormat, stream: &[u8], piece: usize) -> End {
    let encodings: Vec<Encoding> = (-320..=32).chain([Encoding::Clipboard.number()]).filter_map(Encoding::of).collect();
    let limits = Limits { side: 1024, pixels: 1 << 16, ..Limits::default() };
    let screen = Arc::new(Mutex::new(Screen::new(SIZE)));
    let mut session = Session::new(SIZE, Arc::clone(&screen), limits, 0.0).unwrap();
    session.start(format, &encodings).unwrap();
    session.follow();
    let (mut events, mut violation) = (Vec::new(), None);
    for piece in stream.chunks(piece) {
        match session.feed(piece, 1.0) {
            Ok(told) => events.extend(told),
            Err(broken) => {
                events.extend(session.unread());
                violation = Some(broken.offset);
                break;
            }
        }
    }
    let pixels = screen.lock().unwrap().frame().as_bytes().to_vec();
    (events, session.to_send(), violation, pixels)
}
