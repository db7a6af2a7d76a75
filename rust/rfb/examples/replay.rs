//! Replays recordings of what VNC servers sent, and says how long it takes to decode them: medians of many runs, each into a
//! new session, with the screen's own comparison.
//!
//! `cargo run --release -p deskhand-rfb --example replay -- recordings...`
//!
//! A recording is one line, `rfb-recording width height format encodings` (the format's 16 bytes in hexadecimal, the
//! encodings' numbers with commas), and the bytes that followed `ServerInit`.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use imaging::Screen;
use rfb::{Event, Limits, Recording, Session};

/// Bytes of one read from a socket.
const PIECE: usize = 64 << 10;

const RUNS: usize = 31;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for path in std::env::args().skip(1) {
        let file = std::fs::read(&path)?;
        let recording = Recording::parse(&file)?;
        let mut painted = 0;
        let mut times: Vec<f64> = Vec::new();
        for _ in 0..RUNS {
            let screen = Arc::new(Mutex::new(Screen::new(recording.size)));
            let mut session = Session::new(recording.size, screen, Limits::default(), 0.0)?;
            session.start(&recording.format, &recording.encodings)?;
            let began = Instant::now();
            painted = 0;
            for piece in recording.stream.chunks(PIECE) {
                for event in session.feed(piece, 1.0)? {
                    if let Event::Updated { rects, .. } = event {
                        painted += rects.iter().map(|rect| rect.area()).sum::<u64>();
                    }
                }
            }
            times.push(began.elapsed().as_secs_f64());
        }
        times.sort_by(f64::total_cmp);
        let median = times[RUNS / 2];
        println!(
            "{path}: {} in {:.2} ms, {:.0} Mpixel/s, {} bytes",
            recording.size,
            median * 1e3,
            painted as f64 / median / 1e6,
            recording.stream.len()
        );
    }
    Ok(())
}
