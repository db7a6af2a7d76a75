//! For `rust/fuzz`: a driver and a server in one thread. The server answers as one with a small, empty screen does, and changes its
//! answers as the fuzzer's bytes say.

use std::cell::RefCell;
use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use imaging::Size;
use link::{Event, Interrupt};
use x11rb::rust_connection::DefaultStream;

use crate::display::Display;
use crate::error::Result;
use crate::grab::Method;
use crate::options::Options;
use crate::selection;
use crate::server::{Server, Target, greet};
use crate::stream::{BoundedStream, SERVE, SILENCE_LIMIT};

const EXTENSIONS: [(&str, u8, u8, u8); 8] = [
    ("DAMAGE", 129, 91, 152),
    ("XFIXES", 130, 87, 140),
    ("XTEST", 131, 0, 0),
    ("RANDR", 132, 89, 147),
    ("XKEYBOARD", 133, 85, 137),
    ("MIT-SHM", 134, 65, 128),
    ("X-Resource", 135, 0, 0),
    ("BIG-REQUESTS", 128, 0, 0),
];
const ROOT: u32 = 0x200;
const WINDOW: u32 = 0x60_0001;
const W: u16 = 48;
const H: u16 = 32;
/// Of one answer.
const MOST_PIXELS: usize = 1 << 20;
/// Bytes of the longest request whose fields are read here, without what has no fixed length.
const LONGEST_FIXED: usize = 20;
const ERROR: u8 = 0;
const REPLY: u8 = 1;
const NOT_VIEWABLE: u8 = 3;

thread_local! {
    static SERVER: RefCell<Option<Puppet>> = const { RefCell::new(None) };
}

/// The fuzzer's bytes, taken one after the other.
struct Bytes {
    data: Vec<u8>,
    at: usize,
}

impl Bytes {
    fn next(&mut self) -> Option<u8> {
        let byte = self.data.get(self.at).copied();
        self.at += 1;
        byte
    }

    fn take(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next().unwrap_or(0)).collect()
    }
}

/// The server.
struct Puppet {
    stream: UnixStream,
    bytes: Bytes,
    unread: Vec<u8>,
    greeted: bool,
    sequence: u16,
}

/// Answers the requests so far; without any, sends an event, or ends.
fn serve() {
    SERVER.with_borrow_mut(|server| {
        if let Some(puppet) = server {
            puppet.serve();
        }
    });
}

impl Puppet {
    fn serve(&mut self) {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = self.stream.read(&mut buffer) {
            self.unread.extend_from_slice(&buffer[..count]);
        }
        let mut out = Vec::new();
        while let Some(said) = self.step() {
            out.extend(said);
        }
        if out.is_empty() {
            match self.bytes.next() {
                Some(kind) => out = self.event(kind),
                None => {
                    let _ = self.stream.shutdown(Shutdown::Both);
                }
            }
        }
        let _ = self.stream.write_all(&out);
    }

    /// What is sent for the next request; `None` when there is none.
    fn step(&mut self) -> Option<Vec<u8>> {
        if !self.greeted {
            let length = |at: usize| usize::from(u16::from_le_bytes([self.unread[at], self.unread[at + 1]]));
            if self.unread.len() < 12 {
                return None;
            }
            let total = 12 + length(6).next_multiple_of(4) + length(8).next_multiple_of(4);
            self.unread.drain(..total.min(self.unread.len()));
            self.greeted = true;
            let setup = setup();
            return Some(self.changed(setup, 8));
        }
        let head: [u8; 8] = self.unread.get(..8).map_or_else(
            || {
                let mut head = [0; 8];
                let count = self.unread.len().min(8);
                head[..count].copy_from_slice(&self.unread[..count]);
                head
            },
            |head| head.try_into().expect("eight bytes"),
        );
        let mut words = usize::from(u16::from_le_bytes([head[2], head[3]]));
        if words == 0 {
            words = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
        }
        if self.unread.len() < 4 || words == 0 || self.unread.len() < 4 * words {
            return None;
        }
        let mut request: Vec<u8> = self.unread.drain(..4 * words).collect();
        // An extension with the number of a core request gets fewer fields.
        request.resize(request.len().max(LONGEST_FIXED), 0);
        self.sequence = self.sequence.wrapping_add(1);
        let Some(reply) = self.usual(&request) else { return Some(Vec::new()) };
        let mut out = Vec::new();
        loop {
            match self.bytes.next() {
                // As it is; so is a session after the end of the fuzzer's bytes, up to where it waits.
                None | Some(0..=159) => out.extend(reply),
                Some(160..=223) => {
                    let reply = self.changed(reply, 4);
                    out.extend(reply);
                }
                Some(224..=239) => {
                    let kind = self.bytes.next().unwrap_or(0);
                    out.extend(self.event(kind));
                    continue;
                }
                Some(240..=247) => {
                    let error = self.bytes.take(30);
                    out.extend([ERROR, error[0]]);
                    out.extend(self.sequence.to_le_bytes());
                    out.extend(&error[2..]);
                }
                // Words of the fuzzer's.
                Some(words @ 248..) => {
                    let length = u32::from(words - 248) * 8;
                    out.extend([REPLY, self.bytes.next().unwrap_or(0)]);
                    out.extend(self.sequence.to_le_bytes());
                    out.extend(length.to_le_bytes());
                    out.extend(self.bytes.take(24 + 4 * length as usize));
                }
            }
            return Some(out);
        }
    }

    /// Some bytes of it are others.
    fn changed(&mut self, mut reply: Vec<u8>, most: u8) -> Vec<u8> {
        for _ in 0..self.bytes.next().unwrap_or(0) % (most + 1) {
            let at = usize::from(self.bytes.next().unwrap_or(0)) % reply.len();
            reply[at] = self.bytes.next().unwrap_or(0);
        }
        reply
    }

    fn event(&mut self, kind: u8) -> Vec<u8> {
        // Events that the driver handles come more often than others.
        const KINDS: [u8; 14] = [22, 28, 31, 33, 34, 17, 18, 91, 88, 89, 85, 86, 29, 161];
        let mut event = self.bytes.take(32);
        event[0] = if kind < 128 { KINDS[usize::from(kind) % KINDS.len()] } else { kind | 2 };
        event[2..4].copy_from_slice(&self.sequence.to_le_bytes());
        if event[0] & 0x7f == 35 {
            event[4..8].fill(0);
        }
        event
    }

    /// What a server with an empty screen replies; `None` where there is no reply.
    fn usual(&self, request: &[u8]) -> Option<Vec<u8>> {
        let word = |at: usize| u32::from_le_bytes([request[at], request[at + 1], request[at + 2], request[at + 3]]);
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        let halves = |halves: &[u16]| halves.iter().flat_map(|half| half.to_le_bytes()).collect::<Vec<u8>>();
        let size = halves(&[0, 0, W, H]);
        let reply = |second: u8, fixed: &[u8], more: &[u8]| {
            let mut reply = vec![REPLY, second];
            reply.extend(self.sequence.to_le_bytes());
            reply.extend((more.len() as u32 / 4).to_le_bytes());
            reply.extend(fixed);
            reply.resize(32, 0);
            reply.extend(more);
            Some(reply)
        };
        match (request[0], request[1]) {
            (14, _) => reply(24, &[words(&[ROOT]), size].concat(), &[]),
            (15, _) => reply(0, &words(&[ROOT, ROOT]), &[]),
            (26 | 31, _) => reply(NOT_VIEWABLE, &[], &[]),
            (16, _) => reply(0, &words(&[100 + u32::from(self.sequence)]), &[]),
            (17 | 20 | 23 | 40, _) | (132, 16 | 20 | 21 | 25 | 42) | (133 | 135, 4) => reply(0, &[], &[]),
            (38, _) => reply(1, &[words(&[ROOT, WINDOW]), size].concat(), &[]),
            (43, _) => reply(0, &words(&[WINDOW]), &[]),
            (44, _) => reply(0, &[0; 24], &[0; 8]),
            (73, _) => {
                let half = |at: usize| usize::from(u16::from_le_bytes([request[at], request[at + 1]]));
                let pixels = (half(12) * half(14)).min(MOST_PIXELS);
                reply(24, &words(&[0x21]), &vec![0; 4 * pixels])
            }
            (98, _) => {
                let name = &request[8..];
                let found = EXTENSIONS.iter().find(|known| name.starts_with(known.0.as_bytes()));
                found.map_or_else(|| reply(0, &[], &[]), |known| reply(0, &[1, known.1, known.2, known.3], &[]))
            }
            (101, _) => {
                let rows = (0..request[5]).flat_map(|row| match row {
                    1 => words(&[0x61, 0x41]),
                    2 => words(&[0xffe1, 0]),
                    _ => words(&[0, 0]),
                });
                reply(2, &[], &rows.collect::<Vec<u8>>())
            }
            (128, 0) => reply(0, &words(&[1 << 22]), &[]),
            (129, 0) => reply(0, &words(&[1, 1]), &[]),
            (130, 0) => reply(0, &words(&[5, 0]), &[]),
            (130, 25) => reply(0, &halves(&[0, 0, 1, 1, 0, 0, 1, 0]), &words(&[!0])),
            (130, 19) => reply(0, &size, &size),
            (132, 6) => reply(0, &halves(&[1, 1, 999, 999]), &[]),
            (133, 0) => reply(1, &halves(&[1, 0]), &[]),
            (133, 8) => {
                // The rows that are asked for, each without keysyms.
                let (first, count) = (request[14], request[15]);
                let fixed = [&[0, 0, 8, 255][..], &halves(&[2]), &[0, 0, 0, first], &halves(&[0]), &[count], &[0; 11]];
                let more = [vec![0; 8], vec![0; 8 * usize::from(count)]].concat();
                reply(0, &fixed.concat(), &more)
            }
            (134, 0) => reply(0, &halves(&[1, 2]), &[]),
            (134, 4) => reply(24, &words(&[0x21, word(4) & 1]), &[]),
            _ => None,
        }
    }
}

fn setup() -> Vec<u8> {
    let visual = [&[0x21, 0, 0, 0, 4, 8, 0, 1][..], &[0, 0, 255, 0, 0, 255, 0, 0, 255, 0, 0, 0], &[0; 4]].concat();
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let halves = |halves: &[u16]| halves.iter().flat_map(|half| half.to_le_bytes()).collect::<Vec<u8>>();
    let body = [
        words(&[1, 0x40_0000, 0x1f_ffff, 256]),
        halves(&[0, 65535]),
        vec![1, 1, 0, 0, 32, 32, 8, 255, 0, 0, 0, 0],
        vec![24, 32, 32, 0, 0, 0, 0, 0],
        words(&[ROOT, 0x20, 0xff_ffff, 0, 0]),
        halves(&[W, H, 300, 200, 1, 1]),
        words(&[0x21]),
        vec![0, 0, 24, 1, 24, 0, 1, 0, 0, 0, 0, 0],
        visual,
    ]
    .concat();
    [vec![1, 0], halves(&[11, 0, body.len() as u16 / 4]), body].concat()
}

/// Runs a driver with a server that sends `data`, until an error or the end of the data.
///
/// # Panics
///
/// When it finds a mistake.
pub fn session(data: &[u8]) {
    let [kind, count, data @ ..] = data else { return };
    let (ours, theirs) = UnixStream::pair().expect("two sockets");
    theirs.set_nonblocking(true).expect("a socket");
    let data = data.to_vec();
    let (calls, data) = data.split_at(usize::from(count % 16).min(data.len()));
    let puppet = Puppet {
        stream: theirs,
        bytes: Bytes { data: data.to_vec(), at: 0 },
        unread: Vec::new(),
        greeted: false,
        sequence: 0,
    };
    SERVER.set(Some(puppet));
    SERVE.set(serve);
    let _ = drive(ours, *kind, calls);
    SERVER.set(None);
}

fn drive(ours: UnixStream, kind: u8, calls: &[u8]) -> Result<()> {
    let target = Target { display: "no display".into(), auth: (Vec::new(), Vec::new()), socket: None };
    let (stream, _) = DefaultStream::from_unix_stream(ours)?;
    let stream = BoundedStream::new(stream, Interrupt::never(), SILENCE_LIMIT);
    let (conn, screen) = greet(&target, stream, 0)?;
    let server = Server::greeted(conn, screen, &target.display)?;
    if kind & 7 == 7 {
        return selection::read_on(server, kind & 8 == 8, Duration::from_millis(5));
    }
    let method = match kind & 6 {
        0 => Some(Method::Socket),
        2 => Some(Method::SharedFd),
        _ => None,
    };
    let options = Options { view_only: kind & 1 == 1, own: kind & 8 == 8, method, driver: "fuzz".into() };
    let display = Display::unwatched(server, &target, &options, Interrupt::never())?;
    for call in calls {
        let key = |keysym| [Event::Key(keysym, true), Event::Key(keysym, false)];
        match call % 10 {
            0 => drop(display.send(&key(0x41))?),
            1 => drop(display.send(&key(0x0100_0436))?),
            2 => drop(display.send(&[Event::Move(3, 4), Event::Button(1, true), Event::Button(1, false)])?),
            3 => drop((display.windows()?, display.monitors()?)),
            4 => drop(display.ping(call & 16 == 0, None)?),
            5 => display.resize(Size { w: u32::from(*call), h: 20 })?,
            6 => drop(display.wait(Duration::from_millis(1))?),
            7 => display.release(&[])?,
            8 => drop((display.pressed()?, display.activity(true)?, display.has_window_manager()?)),
            _ => display.look()?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look random, the same in each run.
    struct Chance(u64);

    impl Chance {
        fn below(&mut self, end: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0 % end
        }
    }

    /// A short substitute for the fuzzer: `DESKHAND_SESSIONS` sessions.
    #[test]
    fn whatever_a_server_says_there_is_an_end() {
        let sessions = std::env::var("DESKHAND_SESSIONS").map_or(50, |count| count.parse().expect("a number"));
        let mut chance = Chance(0x9e37_79b9_7f4a_7c15);
        for _ in 0..sessions {
            // Most answers are the usual ones, or the driver would never get past the first.
            let odd = 1 + chance.below(30);
            let length = chance.below(2000);
            let mut data = vec![chance.below(256) as u8, chance.below(256) as u8];
            data.extend((0..16).map(|_| chance.below(256) as u8));
            data.extend((0..length).map(|_| if chance.below(odd) == 0 { chance.below(256) as u8 } else { 0 }));
            session(&data);
        }
    }
}
