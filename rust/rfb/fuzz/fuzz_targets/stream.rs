//! Anything at all after the handshake, whole and cut: both must tell the same and show the same. The first byte chooses the
//! pixel format, the second the size of the pieces.
#![no_main]

use std::sync::{Arc, Mutex};

use imaging::{Screen, Size};
use libfuzzer_sys::fuzz_target;
use rfb::{Encoding, Event, Limits, PixelFormat, Session};

const SIZE: Size = Size { w: 128, h: 96 };

fn formats() -> [PixelFormat; 6] {
    let bgrx = PixelFormat::BGRX;
    let rgb565 = PixelFormat { bits_per_pixel: 16, depth: 16, max: [31, 63, 31], shift: [11, 5, 0], ..bgrx };
    let rgb332 = PixelFormat { bits_per_pixel: 8, depth: 8, max: [7, 7, 3], shift: [5, 2, 0], ..bgrx };
    let indexed = PixelFormat { true_colour: false, ..rgb332 };
    [bgrx, PixelFormat { big_endian: true, ..bgrx }, rgb565, rgb332, indexed, PixelFormat { depth: 32, ..bgrx }]
}

type End = (Vec<Event>, Vec<u8>, Option<u64>, Vec<u8>);

fn end(format: &PixelFormat, stream: &[u8], piece: usize) -> End {
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

fuzz_target!(|bytes: &[u8]| {
    let [format, piece, stream @ ..] = bytes else { return };
    let format = formats()[usize::from(*format) % 6];
    assert_eq!(end(&format, stream, stream.len().max(1)), end(&format, stream, usize::from(*piece).max(1)));
});
