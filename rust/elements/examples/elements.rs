//! Prints the elements of the desktop whose accessibility bus is at a path, and how long reading them took.
//!
//! `cargo run --release -p deskhand-elements --example elements -- PATH [READS]`
#![forbid(unsafe_code)]

use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use elements::{Seen, Session};
use link::Interrupt;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("which socket?")?;
    let reads: usize = arguments.next().map_or(Ok(2), |text| text.parse())?;
    let stop = Interrupt::never();
    let session = Session::open(UnixStream::connect(path)?.into(), Duration::from_secs(5), &stop)?;
    for number in 0..reads {
        let begun = Instant::now();
        let found = session.read(Seen::default(), Duration::from_secs(5), &stop)?;
        let took = begun.elapsed();
        println!("{took:?} version {} {} elements", found.version, found.elements.len());
        for app in &found.applications {
            println!("  {app:?}");
        }
        if number == 0 {
            for each in &found.elements {
                let depth = usize::from(each.depth) * 2;
                println!(
                    "{:depth$}- {} {:?} {:?} {:?} {:?} +{}",
                    "", each.role, each.name, each.text, each.area, each.actions, each.hidden
                );
            }
        }
    }
    Ok(())
}
