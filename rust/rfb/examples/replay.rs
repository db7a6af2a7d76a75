//! Replays recordings of what VNC servers sent, and says how long it takes until the screen shows them: medians of many runs,
//! each of a new session on a screen that showed something else.
//!
//! `cargo run --release -p deskhand-rfb --example replay -- recordings...`
//!
//! `deskhand record` makes them; see [`Recording::parse`].

use std::sync::{Arc, Mutex};
use std::time::Instant;

use imaging::{Patch, Screen};
use rfb::{Event, Limits, Recording, Session};

/// Bytes of one read from a socket.
const PIECE: usize = 64 << 10;

const RUNS: usize = 31;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for path in std::env::args().skip(1) {
        let file = std::fs::read(&path)?;
        let recording = Recording::parse(&file)?;
        let stream = recording.stream();
        let mut painted = 0;
        let mut times: Vec<f64> = Vec::new();
        let screen = Arc::new(Mutex::new(Screen::new(recording.size)));
        for run in 0..RUNS {
            // Memory that was touched before, and pixels that are all to change: what a session meets later on.
            let other = vec![run as u8; recording.size.rect().area() as usize * 4];
            let stride = recording.size.w as usize * 4;
            let patch = Patch { rect: recording.size.rect(), pixels: &other, stride };
            screen.lock().map_err(|_| "a lock is poisoned")?.update(&[patch], 0.0)?;
            let mut session = Session::new(recording.size, Arc::clone(&screen), Limits::default(), 0.0)?;
            session.start(&recording.format, &recording.encodings)?;
            painted = 0;
            let began = Instant::now();
            for piece in stream.chunks(PIECE) {
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
            stream.len()
        );
    }
    Ok(())
}
