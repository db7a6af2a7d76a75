//! Follows the bytes of a server, and refuses what would take memory without bound. Pure: no connection here.
//!
//! x11rb allocates what the length field of a packet says, and keeps replies without a request. So each packet is checked here
//! before x11rb sees its length.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Bytes of a reply. The longest that is requested is a piece of the screen of 2 MiB; a region of two million rectangles fits too.
const MAX_REPLY: u64 = 16 << 20;
/// Bytes of an event. No requested event is longer than 32 bytes.
const MAX_EVENT: u64 = 64 << 10;
/// Events that are kept until they are read. A driver that was stopped for a while finds some thousand.
const MAX_UNREAD: u64 = 1 << 17;
/// Bytes that come without a pause. All that is under way at any time is two pieces of the screen, and some events.
const MAX_BURST: u64 = 64 << 20;
/// A reply under way must go on at this rate, in bytes per second.
const SLOWEST: u64 = 64 << 10;

const ERROR: u8 = 0;
const REPLY: u8 = 1;
const GENERIC_EVENT: u8 = 35;
/// The part of a packet that contains its length.
const HEAD: usize = 8;
/// The shortest packet.
const PACKET: u64 = 32;

/// A violation of X11 by a server, or more data than is sensible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Violation {
    #[error("it sent {what} of {bytes} bytes; at most {most} are accepted")]
    TooLong { what: &'static str, bytes: u64, most: u64 },
    #[error("it sent more than {MAX_UNREAD} events at once")]
    TooManyEvents,
    #[error("it sent more than {MAX_BURST} bytes without a pause")]
    Burst,
    #[error("it answered request {0} twice")]
    Twice(u16),
    #[error("it sent a reply of {0} bytes that was not requested")]
    Unasked(u64),
    #[error("{0}")]
    Malformed(String),
}

/// Where in the stream we are.
#[derive(Debug, Default)]
enum Phase {
    #[default]
    Setup,
    Packets,
}

/// What has come from a server so far.
#[derive(Debug, Default)]
pub(crate) struct Incoming {
    phase: Phase,
    head: [u8; HEAD],
    filled: usize,
    /// Bytes of the packet under way that have not come yet.
    rest: u64,
    /// The packet under way is an answer: the setup, a reply or an error.
    answer: bool,
    /// Sequence numbers of the requests that are to be replied to, in order; `None` where one request has many replies.
    asked: Option<VecDeque<u64>>,
    /// What was answered last.
    answer_to: Option<u16>,
    /// Events, and answers that x11rb may keep as it does events.
    unread: u64,
    burst: u64,
    waiting_since: Option<Instant>,
    /// Bytes of answers that have come since then.
    answered: u64,
    /// The answer has taken too long; what has come meanwhile is read once more.
    overdue: bool,
}

impl Incoming {
    pub(crate) fn new() -> Self {
        Self { asked: Some(VecDeque::new()), ..Self::default() }
    }

    /// Records a request that expects a reply.
    pub(crate) fn ask(&mut self, sequence: u64) {
        if let Some(asked) = &mut self.asked {
            asked.push_back(sequence);
        }
    }

    /// From now on one request has any number of replies, each of which is read at once.
    pub(crate) fn expect_many(&mut self) {
        self.asked = None;
    }

    /// All events that came were read.
    pub(crate) fn events_read(&mut self) {
        self.unread = 0;
    }

    /// A wait for an answer begins; returns since when, and how much longer than usual it may take because an answer is under way.
    pub(crate) fn wait(&mut self) -> (Instant, Duration) {
        self.burst = 0;
        let since = *self.waiting_since.get_or_insert_with(Instant::now);
        (since, Duration::from_secs(self.answered / SLOWEST))
    }

    /// Whether there is no point in reading on: the wait has taken too long, for the second time. This process may have been
    /// stopped, so what has come by the first time must be read.
    pub(crate) fn is_overdue(&mut self) -> bool {
        std::mem::replace(&mut self.overdue, true)
    }

    /// The wait has ended.
    pub(crate) fn give_up(&mut self) {
        (self.waiting_since, self.answered, self.overdue) = (None, 0, false);
    }

    /// Looks at the next bytes of the stream.
    pub(crate) fn take(&mut self, mut bytes: &[u8]) -> Result<(), Violation> {
        self.burst += bytes.len() as u64;
        if self.burst > MAX_BURST {
            return Err(Violation::Burst);
        }
        while !bytes.is_empty() {
            if self.rest > 0 {
                let count = self.rest.min(bytes.len() as u64);
                self.rest -= count;
                self.answered += if self.answer { count } else { 0 };
                bytes = &bytes[count as usize..];
            } else {
                let count = (HEAD - self.filled).min(bytes.len());
                self.head[self.filled..self.filled + count].copy_from_slice(&bytes[..count]);
                self.filled += count;
                bytes = &bytes[count..];
                if self.filled == HEAD {
                    self.filled = 0;
                    self.begin()?;
                } else {
                    return Ok(());
                }
            }
            if self.rest == 0 && self.answer {
                self.give_up();
            }
        }
        Ok(())
    }

    fn begin(&mut self) -> Result<(), Violation> {
        let [kind, _, low, high, length @ ..] = self.head;
        if matches!(self.phase, Phase::Setup) {
            // Its length has 16 bits, which needs no limit.
            self.phase = Phase::Packets;
            self.rest = 4 * u64::from(u16::from_ne_bytes([length[2], length[3]]));
            self.answer = true;
            return Ok(());
        }
        let more = 4 * u64::from(u32::from_ne_bytes(length));
        let (what, more, most) = match kind {
            REPLY => ("a reply", more, MAX_REPLY),
            _ if kind & 0x7f == GENERIC_EVENT => ("an event", more, MAX_EVENT),
            _ => ("an event", 0, MAX_EVENT),
        };
        if more > most {
            return Err(Violation::TooLong { what, bytes: PACKET + more, most });
        }
        self.rest = PACKET - HEAD as u64 + more;
        self.answer = kind == REPLY || kind == ERROR;
        let sequence = u16::from_ne_bytes([low, high]);
        let asked = self.answer && self.is_answer(sequence);
        // x11rb makes some requests itself, all of which have short replies.
        if kind == REPLY && more > 0 && !asked {
            return Err(Violation::Unasked(PACKET + more));
        }
        if self.answer && self.asked.is_some() && self.answer_to.replace(sequence) == Some(sequence) {
            return Err(Violation::Twice(sequence));
        }
        if !asked {
            self.unread += 1 + more / PACKET;
            if self.unread > MAX_UNREAD {
                return Err(Violation::TooManyEvents);
            }
        }
        Ok(())
    }

    /// Whether a request of ours is answered; it, and all that were sent before it, will not be answered again.
    fn is_answer(&mut self, sequence: u16) -> bool {
        let Some(asked) = &mut self.asked else { return true };
        let Some(position) = asked.iter().position(|&asked| asked as u16 == sequence) else { return false };
        asked.drain(..=position);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETUP: [u8; 12] = [1, 0, 11, 0, 0, 0, 1, 0, 9, 9, 9, 9];

    fn packet(kind: u8, sequence: u16, length: u32) -> Vec<u8> {
        let mut packet = vec![kind, 0];
        packet.extend(sequence.to_ne_bytes());
        packet.extend(length.to_ne_bytes());
        packet.resize(32, 0);
        packet
    }

    /// What comes of these packets after the setup, whole and byte by byte, when requests 1 to 3 are to be replied to.
    fn outcome(packets: &[Vec<u8>]) -> Result<(), Violation> {
        let stream = [SETUP.to_vec(), packets.concat()].concat();
        let take = |size: usize| {
            let mut incoming = Incoming::new();
            (1..=3).for_each(|sequence| incoming.ask(sequence));
            stream.chunks(size).try_for_each(|piece| incoming.take(piece))
        };
        assert_eq!(take(stream.len()), take(1));
        take(stream.len())
    }

    #[test]
    fn lengths_are_limited() {
        let words = u32::try_from(MAX_REPLY / 4).unwrap();
        let longest = [packet(REPLY, 1, words), vec![0; MAX_REPLY as usize], packet(REPLY, 2, 0)].concat();
        assert_eq!(outcome(&[longest]), Ok(()));
        let too_long = |what, bytes, most| Err(Violation::TooLong { what, bytes, most });
        let (bytes, most) = (PACKET + MAX_REPLY + 4, MAX_REPLY);
        assert_eq!(outcome(&[packet(REPLY, 1, words + 1)]), too_long("a reply", bytes, most));
        assert_eq!(outcome(&[packet(REPLY, 1, u32::MAX)]), too_long("a reply", (1 << 34) + 28, most));
        let bytes = PACKET + (1 << 30);
        assert_eq!(outcome(&[packet(GENERIC_EVENT | 0x80, 1, 1 << 28)]), too_long("an event", bytes, MAX_EVENT));
        // Only replies and generic events have a length.
        assert_eq!(outcome(&[packet(ERROR, 1, u32::MAX), packet(28, 1, u32::MAX)]), Ok(()));
    }

    #[test]
    fn a_request_is_replied_to_once() {
        let reply = |sequence| [packet(REPLY, sequence, 1), vec![0; 4]].concat();
        assert_eq!(outcome(&[reply(1), reply(2), reply(3)]), Ok(()));
        assert_eq!(outcome(&[packet(ERROR, 1, 0), reply(3)]), Ok(()));
        for twice in [[reply(1), reply(1)], [reply(2), reply(1)], [packet(ERROR, 2, 0), reply(2)]] {
            assert_eq!(outcome(&twice), Err(Violation::Unasked(36)));
        }
        assert_eq!(outcome(&[reply(4)]), Err(Violation::Unasked(36)));
        // As x11rb's own requests are replied to, and as others fail.
        assert_eq!(outcome(&[packet(REPLY, 7, 0), packet(REPLY, 8, 0), packet(ERROR, 9, 0)]), Ok(()));
        for [first, second] in [[REPLY, REPLY], [REPLY, ERROR], [ERROR, ERROR]] {
            assert_eq!(outcome(&[packet(first, 9, 0), packet(second, 9, 0)]), Err(Violation::Twice(9)));
        }
    }

    #[test]
    fn events_are_counted_until_they_are_read() {
        let mut incoming = Incoming::new();
        incoming.take(&SETUP).unwrap();
        let event = packet(28, 0, 0);
        for _ in 0..MAX_UNREAD {
            incoming.take(&event).unwrap();
        }
        incoming.events_read();
        incoming.take(&event.repeat(MAX_UNREAD as usize)).unwrap();
        assert_eq!(incoming.take(&event), Err(Violation::TooManyEvents));
    }

    #[test]
    fn what_comes_without_a_pause_is_limited() {
        let mut incoming = Incoming::new();
        incoming.expect_many();
        incoming.take(&SETUP).unwrap();
        let reply = [packet(REPLY, 1, 1 << 18), vec![0; 1 << 20]].concat();
        for _ in 0..2 * (MAX_BURST >> 20) {
            incoming.wait();
            incoming.take(&reply).unwrap();
        }
        let burst = (0..=MAX_BURST >> 20).try_for_each(|_| incoming.take(&reply));
        assert_eq!(burst, Err(Violation::Burst));
    }

    #[test]
    fn only_answers_end_a_wait() {
        let mut incoming = Incoming::new();
        let (begun, _) = incoming.wait();
        incoming.take(&SETUP[..10]).unwrap();
        assert_eq!(incoming.wait().0, begun);
        incoming.take(&SETUP[10..]).unwrap();
        assert_eq!(incoming.waiting_since, None);
        incoming.ask(1);
        let (begun, _) = incoming.wait();
        incoming.take(&packet(28, 0, 0)).unwrap();
        incoming.take(&packet(REPLY, 1, 1 << 20)).unwrap();
        incoming.take(&vec![0; 1 << 20]).unwrap();
        assert_eq!(incoming.wait(), (begun, Duration::from_secs(16)));
        incoming.take(&vec![0; 3 << 20]).unwrap();
        assert_eq!(incoming.waiting_since, None);
    }
}
