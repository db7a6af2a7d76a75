//! Every stream that these tests feed is a seed for the fuzz targets (rust/fuzz) too: `tools/fuzz` names a folder for their corpora in
//! `FUZZ_CORPUS`. Without it nothing is written.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

/// The size of pieces that a seed begins with.
const PIECE: u8 = 251;

fn write(target: &str, seed: &[u8]) {
    let Some(corpus) = std::env::var_os("FUZZ_CORPUS") else { return };
    let folder = Path::new(&corpus).join(target);
    let mut hasher = DefaultHasher::new();
    seed.hash(&mut hasher);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(format!("{:016x}", hasher.finish())), seed).unwrap();
}

/// What a server sent before the screen; `choice` among what it offers.
pub fn handshake(choice: u8, stream: &[u8]) {
    write("handshake", &[&[choice, PIECE], stream].concat());
}

/// What it sent after, with pixels of the target's form of this number.
pub fn session(form: u8, stream: &[u8]) {
    write("stream", &[&[form, PIECE], stream].concat());
    match stream {
        // One rectangle: its encoding's place in the target's list, the first byte of its data for Tight, place and size, and data.
        [0, 0, 0, 1, _, x, _, y, _, w, _, h, encoding @ ..] => {
            let Some((number, data)) = encoding.split_first_chunk() else { return };
            let encodings = [0, 1, 5, 6, 16, 7, -239, -314, -223, -308, -307, -261];
            let Some(kind) = encodings.iter().position(|known| *known == i32::from_be_bytes(*number)) else { return };
            let (control, data) = if kind == 5 { data.split_at(data.len().min(1)) } else { (&[][..], data) };
            let head = [form, PIECE, kind as u8, control.first().copied().unwrap_or(0), *x, *y, *w, *h, 255];
            write("rectangles", &[&head, data].concat());
        }
        // A message of the extended clipboard: action, formats, data as it is.
        [3, 0, 0, 0, 255, _, _, _, action, _, high, low, data @ ..] => {
            write("clipboard", &[&[PIECE, *action, *high, *low, 3, 255], data].concat());
        }
        _ => {}
    }
}
