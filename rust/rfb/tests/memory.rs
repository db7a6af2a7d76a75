//! What a server can make us allocate: at most three framebuffers and 64 MiB, whatever it sends. A process of its own, since the
//! peak of a process is what can be measured.

use std::sync::{Arc, Mutex};

use imaging::{Patch, Screen, Size};
use rfb::{Encoding, Limits, PixelFormat, Session};
use zlib_rs::{Deflate, DeflateFlush};

const SIZE: Size = Size { w: 3840, h: 2160 };
const MIB: u64 = 1 << 20;

/// Memory of this process in bytes: `VmRSS` is what it holds, `VmHWM` the most since the peak was forgotten.
fn memory(what: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells a process of itself");
    let line = status.lines().find(|line| line.starts_with(what)).expect("it tells that");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).expect("it is a number of KiB") * 1024
}

fn rectangle(size: Size, encoding: Encoding, data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, 0, 1, 0, 0, 0, 0];
    bytes.extend([size.w, size.h].into_iter().flat_map(|side| (side as u16).to_be_bytes()));
    bytes.extend(encoding.number().to_be_bytes());
    bytes.extend(data);
    bytes
}

/// Zeros, deflated a thousandfold.
fn bomb(len: usize) -> Vec<u8> {
    let mut stream = Deflate::new(9, true, 15);
    let mut out = vec![0; len / 900 + 4096];
    let zeros = vec![0; 1 << 16];
    for left in (0..len).step_by(zeros.len()).rev() {
        let flush = if left == 0 { DeflateFlush::SyncFlush } else { DeflateFlush::NoFlush };
        let at = stream.total_out() as usize;
        stream.compress(&zeros, &mut out[at..], flush).expect("there is room");
    }
    out.truncate(stream.total_out() as usize);
    out
}

fn counted(head: &[u8], data: &[u8]) -> Vec<u8> {
    [head, &(data.len() as u32).to_be_bytes(), data].concat()
}

#[test]
fn no_server_makes_us_hold_more_than_three_framebuffers() {
    let whole = SIZE.rect().area() * 4;
    let deflated = bomb(SIZE.rect().area() as usize * 4);
    let mut tight = vec![0];
    let len = deflated.len();
    tight.extend([len as u8 | 128, (len >> 7) as u8 | 128, (len >> 14) as u8]);
    tight.extend(&deflated);
    let cursor = Size { w: 1900, h: 1900 };
    let attacks: Vec<(&str, Vec<u8>)> = vec![
        ("Raw", rectangle(SIZE, Encoding::Raw, &[1; 1 << 20])),
        ("zlib", rectangle(SIZE, Encoding::Zlib, &counted(&[], &deflated))),
        ("ZRLE", rectangle(SIZE, Encoding::Zrle, &counted(&[], &deflated))),
        ("Tight", rectangle(SIZE, Encoding::Tight, &tight)),
        ("a JPEG's length", rectangle(SIZE, Encoding::Tight, &[0x90, 255, 255, 255])),
        ("a cursor", rectangle(cursor, Encoding::CursorWithAlpha, &vec![0; 4 + (1900 * 1900 * 4)])),
        ("a name", rectangle(Size { w: 0, h: 0 }, Encoding::DesktopName, &counted(&[], &vec![9; 1 << 20]))),
        ("a clipboard", counted(&[3, 0, 0, 0], &vec![9; 17 << 20])),
        ("no end of rectangles", [vec![0, 0, 255, 255], vec![0; 12 * 65_535]].concat()),
    ];
    let before = memory("VmRSS");
    let screen = Arc::new(Mutex::new(Screen::new(SIZE)));
    let white = vec![255; whole as usize];
    let patch = Patch { rect: SIZE.rect(), pixels: &white, stride: SIZE.w as usize * 4 };
    screen.lock().unwrap().update(&[patch], 0.0).unwrap();
    drop(white);
    for (name, attack) in &attacks {
        std::fs::write("/proc/self/clear_refs", "5").expect("the peak can be forgotten");
        let mut session = Session::new(SIZE, Arc::clone(&screen), Limits::default(), 0.0).unwrap();
        let offered = [
            Encoding::Zlib,
            Encoding::Zrle,
            Encoding::Tight,
            Encoding::Quality(9),
            Encoding::CursorWithAlpha,
            Encoding::DesktopName,
        ];
        session.start(&PixelFormat::BGRX, &offered).unwrap();
        for piece in attack.chunks(65_536) {
            // Whether it is a violation is asked elsewhere.
            if session.feed(piece, 1.0).is_err() {
                break;
            }
        }
        let held = memory("VmHWM") - before;
        assert!(
            held >= 2 * whole - MIB,
            "{name}: the screen and what is decoded cannot take less than {} MiB",
            held / MIB
        );
        assert!(held <= 3 * whole + 64 * MIB, "{name}: {} MiB", held / MIB);
    }
}
