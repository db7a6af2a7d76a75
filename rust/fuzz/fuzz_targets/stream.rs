//! Anything at all after the handshake, whole and cut: both must tell the same and show the same. The first byte chooses the
//! pixel format, the second the size of the pieces.
#![no_main]

#[path = "session.rs"]
mod session;

use libfuzzer_sys::fuzz_target;
use session::{end, format};

fuzz_target!(|bytes: &[u8]| {
    let [kind, piece, stream @ ..] = bytes else { return };
    let format = format(*kind);
    assert_eq!(end(&format, stream, stream.len().max(1)), end(&format, stream, usize::from(*piece).max(1)));
});
