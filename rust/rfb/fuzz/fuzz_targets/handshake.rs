//! Anything at all as the beginning of a connection.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rfb::{Handshake, Limits, Step};

fuzz_target!(|bytes: &[u8]| {
    let mut handshake = Handshake::new(true, Limits::default());
    for piece in bytes.chunks(7) {
        let mut piece = piece;
        while let Ok(Some(step)) = handshake.feed(piece) {
            piece = &[];
            match step {
                Step::Security(offered) if !offered.is_empty() => handshake.choose(offered[0]),
                Step::VeNCrypt(offered) if !offered.is_empty() => handshake.choose_vencrypt(offered[0]),
                Step::Challenge(challenge) => handshake.respond(challenge),
                Step::WantsCredentials => handshake.credentials("name", "password"),
                _ => {}
            }
        }
    }
});
