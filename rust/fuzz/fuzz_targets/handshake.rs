//! Anything at all as the beginning of a connection, whole and cut: both must tell the same and answer the same. The first byte
//! chooses among what is offered, the second the size of the pieces.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rfb::{Handshake, Limits, Step};

type End = (Vec<Step>, Vec<u8>, Option<u64>, Vec<u8>);

fn end(choice: usize, bytes: &[u8], piece: usize) -> End {
    let mut handshake = Handshake::new(true, Limits::default());
    let mut steps = Vec::new();
    let mut violation = None;
    'pieces: for piece in bytes.chunks(piece) {
        let mut piece = piece;
        loop {
            match handshake.feed(piece) {
                Ok(Some(step)) => {
                    piece = &[];
                    match &step {
                        Step::Security(offered) if !offered.is_empty() => {
                            handshake.choose(offered[choice % offered.len()]);
                        }
                        Step::VeNCrypt(offered) if !offered.is_empty() => {
                            handshake.choose_vencrypt(offered[choice % offered.len()]);
                        }
                        Step::Challenge(challenge) => handshake.respond(*challenge),
                        Step::WantsCredentials => handshake.credentials("name", "password"),
                        _ => {}
                    }
                    steps.push(step);
                }
                Ok(None) => break,
                Err(broken) => {
                    violation = Some(broken.offset);
                    break 'pieces;
                }
            }
        }
    }
    let rest = if violation.is_none() { handshake.rest() } else { Vec::new() };
    (steps, handshake.to_send(), violation, rest)
}

fuzz_target!(|bytes: &[u8]| {
    let [choice, piece, bytes @ ..] = bytes else { return };
    let choice = usize::from(*choice);
    assert_eq!(end(choice, bytes, bytes.len().max(1)), end(choice, bytes, usize::from(*piece).max(1)));
});
