//! The clipboard: messages of any action and formats, with anything at all within their zlib streams, whole and cut; and text of
//! ours, which must come back as it was.
//!
//! The first byte is the size of the pieces. Each message is five bytes (action, formats, how it is framed, bytes of data) and its
//! data.
#![no_main]

#[path = "session.rs"]
mod session;

use libfuzzer_sys::fuzz_target;
use rfb::{Event, PixelFormat, client};
use session::end;
use zlib_rs::{Deflate, DeflateFlush};

fn deflated(data: &[u8], flush: DeflateFlush) -> Vec<u8> {
    let mut deflate = Deflate::new(1, true, 15);
    let mut out = vec![0; data.len() * 2 + 64];
    deflate.compress(data, &mut out, flush).unwrap();
    out.truncate(deflate.total_out() as usize);
    out
}

fn text_comes_back(data: &[u8]) {
    // Neither a NUL nor a carriage return survives the protocol.
    let text = String::from_utf8_lossy(data).replace(['\0', '\r'], "");
    let mut message = client::clipboard_provide(&text);
    // As a server writes it.
    message[0] = 3;
    let (events, _, violation, _) = end(&PixelFormat::BGRX, &message, usize::MAX);
    let [Event::Clipboard(message)] = &events[..] else { panic!("{events:?}, {violation:?}") };
    assert_eq!(message.text().as_deref(), Some(&text[..]));
}

fuzz_target!(|bytes: &[u8]| {
    let [piece, rest @ ..] = bytes else { return };
    let (mut rest, mut stream) = (rest, Vec::new());
    while let Some(([action, high, low, framing, len], after)) = rest.split_first_chunk::<5>() {
        let (data, after) = after.split_at(after.len().min(16 * usize::from(*len)));
        rest = after;
        // Up to 60 kB that deflate to nothing.
        let data = [data, &vec![0; usize::from(framing >> 4) << 12]].concat();
        let body = match framing % 4 {
            0 => deflated(&data, DeflateFlush::SyncFlush),
            1 => deflated(&data, DeflateFlush::Finish),
            2 => {
                // Each format's length, and its data.
                let sized = [&(data.len() as u32).to_be_bytes()[..], &data].concat();
                deflated(&sized.repeat(high.count_ones() as usize + low.count_ones() as usize), DeflateFlush::Finish)
            }
            _ => data.clone(),
        };
        stream.extend([3, 0, 0, 0]);
        stream.extend((-(body.len() as i32 + 4)).to_be_bytes());
        stream.extend([*action, 0, *high, *low]);
        stream.extend(body);
        text_comes_back(&data);
    }
    let whole = end(&PixelFormat::BGRX, &stream, stream.len().max(1));
    assert_eq!(whole, end(&PixelFormat::BGRX, &stream, 17 * usize::from(*piece) + 1));
});
