//! What a fuzzer cannot write by itself: anything at all inside of zlib. The first byte chooses the encoding, the second the
//! control byte of Tight, the next two the size; the others are deflated and framed.
#![no_main]

use std::sync::{Arc, Mutex};

use imaging::{Screen, Size};
use libfuzzer_sys::fuzz_target;
use rfb::{Encoding, Limits, PixelFormat, Session};
use zlib_rs::{Deflate, DeflateFlush};

const SIZE: Size = Size { w: 256, h: 256 };
const OFFERED: [Encoding; 4] = [Encoding::Zlib, Encoding::Zrle, Encoding::Tight, Encoding::Clipboard];

fuzz_target!(|bytes: &[u8]| {
    let [kind, control, w, h, data @ ..] = bytes else { return };
    let mut deflate = Deflate::new(1, true, 15);
    let mut deflated = vec![0; data.len() * 2 + 64];
    deflate.compress(data, &mut deflated, DeflateFlush::SyncFlush).unwrap();
    deflated.truncate(deflate.total_out() as usize);
    let len = deflated.len();

    let encoding = OFFERED[usize::from(*kind) % 4];
    let mut stream = vec![0, 0, 0, 1, 0, 0, 0, 0, 0, *w, 0, *h];
    stream.extend(encoding.number().to_be_bytes());
    match encoding {
        Encoding::Tight => {
            stream.push(control & 0x7F);
            if control & 0x40 != 0 {
                // The filter, and a palette of three colours.
                stream.push(1);
                stream.extend([2, 1, 1, 1, 2, 2, 2, 3, 3, 3]);
            }
            stream.extend([len as u8 | 128, (len >> 7) as u8 | 128, (len >> 14) as u8]);
        }
        Encoding::Clipboard => {
            stream = vec![3, 0, 0, 0];
            stream.extend((-(len as i32 + 4)).to_be_bytes());
            stream.extend([16, 0, 0, *control]);
        }
        _ => stream.extend((len as u32).to_be_bytes()),
    }
    stream.extend(deflated);

    let screen = Arc::new(Mutex::new(Screen::new(SIZE)));
    let mut session = Session::new(SIZE, screen, Limits::default(), 0.0).unwrap();
    session.start(&PixelFormat::BGRX, &OFFERED).unwrap();
    let _ = session.feed(&stream, 1.0);
});
