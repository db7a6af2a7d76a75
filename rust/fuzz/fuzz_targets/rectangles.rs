//! What a fuzzer cannot write by itself: rectangles with their headers and lengths right, and anything at all within their zlib
//! streams, which go on from one rectangle to the next. Whole and cut must show the same.
//!
//! The first byte chooses the pixel format, the second the size of the pieces. Each rectangle is seven bytes (encoding, a byte for
//! Tight, place and size, bytes of data) and its data.
#![no_main]

#[path = "session.rs"]
mod session;

use libfuzzer_sys::fuzz_target;
use rfb::Encoding;
use session::{end, format};
use zlib_rs::{Deflate, DeflateFlush};

const ENCODINGS: [Encoding; 12] = [
    Encoding::Raw,
    Encoding::CopyRect,
    Encoding::Hextile,
    Encoding::Zlib,
    Encoding::Zrle,
    Encoding::Tight,
    Encoding::Cursor,
    Encoding::CursorWithAlpha,
    Encoding::DesktopSize,
    Encoding::ExtendedDesktopSize,
    Encoding::DesktopName,
    Encoding::QemuLeds,
];

/// Zlib's stream, ZRLE's, and the four of Tight.
#[derive(Default)]
struct Streams([Option<Deflate>; 6]);

impl Streams {
    fn deflated(&mut self, stream: usize, data: &[u8]) -> Vec<u8> {
        let deflate = self.0[stream].get_or_insert_with(|| Deflate::new(1, true, 9));
        let before = deflate.total_out();
        let mut out = vec![0; data.len() * 2 + 64];
        deflate.compress(data, &mut out, DeflateFlush::SyncFlush).unwrap();
        out.truncate((deflate.total_out() - before) as usize);
        out
    }
}

/// Tight's way to write a length.
fn compact(len: usize) -> [u8; 3] {
    [len as u8 | 128, (len >> 7) as u8 | 128, (len >> 14) as u8]
}

fn rectangle(bytes: &[u8; 7], data: &[u8], streams: &mut Streams, stream: &mut Vec<u8>) {
    let [kind, control, x, y, w, h, _] = *bytes;
    let encoding = ENCODINGS[usize::from(kind) % ENCODINGS.len()];
    stream.extend([0, x % 128, 0, y % 96, 0, w % 129, 0, h % 97]);
    stream.extend(encoding.number().to_be_bytes());
    let counted = |deflated: Vec<u8>| [&(deflated.len() as u32).to_be_bytes()[..], &deflated].concat();
    match encoding {
        Encoding::Zlib => stream.extend(counted(streams.deflated(0, data))),
        Encoding::Zrle => stream.extend(counted(streams.deflated(1, data))),
        Encoding::Tight if control & 0x80 == 0 => {
            stream.push(control);
            let mut data = data;
            if control & 0x40 != 0 {
                let Some((filter, rest)) = data.split_first() else { return };
                stream.push(filter % 4);
                data = rest;
                if filter % 4 == 1 {
                    let Some((colours, rest)) = data.split_first() else { return };
                    let palette = rest.len().min(3 * (usize::from(*colours) + 1));
                    stream.push(*colours);
                    stream.extend(&rest[..palette]);
                    data = &rest[palette..];
                }
            }
            // Fewer than twelve bytes go as they are.
            if w.max(1) as usize * h.max(1) as usize > 12 {
                let deflated = streams.deflated(2 + usize::from(control >> 4 & 3), data);
                stream.extend(compact(deflated.len()));
                stream.extend(deflated);
            } else {
                stream.extend(data);
            }
        }
        Encoding::Tight if control & 0xE0 == 0x80 => {
            stream.push(control);
            if control & 0xF0 == 0x90 {
                stream.extend(compact(data.len()));
            }
            stream.extend(data);
        }
        _ => stream.extend(data),
    }
}

fuzz_target!(|bytes: &[u8]| {
    let [kind, piece, rest @ ..] = bytes else { return };
    let (mut rest, mut streams) = (rest, Streams::default());
    let mut stream = Vec::new();
    while let Some((head, after)) = rest.split_first_chunk::<7>() {
        let (data, after) = after.split_at(after.len().min(4 * usize::from(head[6])));
        rest = after;
        stream.extend([0, 0, 0, 1]);
        rectangle(head, data, &mut streams, &mut stream);
    }
    let format = format(*kind);
    assert_eq!(end(&format, &stream, stream.len().max(1)), end(&format, &stream, usize::from(*piece).max(1)));
});
