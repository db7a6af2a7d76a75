//! Proof that a window without `_NET_WM_PING` has read its keys: its client asks for the keymap again.
//!
//! X clients fetch the keymap anew after the notification that it changed. The RECORD extension shows us those requests, and
//! among them a `NoOperation` of our own that marks where in their order we made a change. What a fetch proves depends on who
//! makes it (read in libXt and libX11, and seen with xterm):
//!
//! - Xt sends `GetKeyboardMapping` and then `GetModifierMapping` when it *handles* the notification, in order with its keys, and
//!   once for all changes made under one server grab. That is proof. It does so only once it has translated a key, and for its
//!   first key too. (xterm itself also asks for both, the other way round and as often as it likes.)
//! - Xlib sends `XkbGetMap` when it handles the notification, but also with any earlier key when the notification is merely in its
//!   queue. That is proof before anything was typed, but afterwards only a sign, of which we ask for several.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use x11rb::connection::{Connection, RequestConnection};
use x11rb::protocol::record::{self, ConnectionExt as _};
use x11rb::protocol::xkb;
use x11rb::protocol::xproto::{
    GET_KEYBOARD_MAPPING_REQUEST, GET_MODIFIER_MAPPING_REQUEST, NO_OPERATION_REQUEST, Window,
};

use crate::error::{Error, Result};
use crate::server::{Server, Target, open_connection};
use crate::stream::Interrupt;

const FROM_CLIENT: u8 = 1;
const START_OF_DATA: u8 = 4;
/// A client makes its fetches for one notification within 2 ms; this long without another one ends them.
const BURST_END: Duration = Duration::from_millis(8);
const CORE_FETCHES: [u8; 2] = [GET_KEYBOARD_MAPPING_REQUEST, GET_MODIFIER_MAPPING_REQUEST];
/// How many signs we take for a proof where there is none.
const SIGNS: u32 = 3;

#[derive(Clone, Copy, Default)]
struct Counts {
    /// Fetches made by Xt.
    xt: u64,
    /// All fetches.
    any: u64,
}

#[derive(Default)]
struct Seen {
    enabled: bool,
    ended: bool,
    counts: Counts,
    /// The client's latest request, if it may be the first of a pair.
    first_of_pair: Option<u8>,
    /// A mark came after that request.
    straddled: bool,
    last: Option<Instant>,
    marks: u64,
    at_mark: Counts,
}

impl Seen {
    /// Takes note of one client's requests, which may come several in a piece.
    fn note(&mut self, mut requests: &[u8], ours: bool) {
        while let [opcode, _, low, high, ..] = *requests {
            match (ours, opcode) {
                (true, NO_OPERATION_REQUEST) => {
                    self.marks += 1;
                    self.at_mark = self.counts;
                    self.straddled = true;
                }
                (true, _) => {}
                (false, _) => {
                    let first = self.first_of_pair.take();
                    if let (Some(GET_KEYBOARD_MAPPING_REQUEST), GET_MODIFIER_MAPPING_REQUEST) = (first, opcode) {
                        // What was fetched before the mark says nothing about the change behind it.
                        self.counts.xt += u64::from(!self.straddled);
                    } else if first.is_none() && CORE_FETCHES.contains(&opcode) {
                        self.first_of_pair = Some(opcode);
                        self.straddled = false;
                    }
                    self.counts.any += 1;
                    self.last = Some(Instant::now());
                }
            }
            let length = 4 * usize::from(u16::from_ne_bytes([low, high])).max(1);
            requests = requests.get(length..).unwrap_or_default();
        }
    }

    fn xt_since(&self, mark: u64) -> bool {
        self.marks > mark && self.counts.xt > self.at_mark.xt
    }

    fn burst_since(&self, mark: u64) -> bool {
        self.marks > mark
            && self.counts.any > self.at_mark.any
            && self.last.is_some_and(|last| last.elapsed() >= BURST_END)
    }
}

#[derive(Default)]
struct Shared {
    seen: Mutex<Seen>,
    changed: Condvar,
}

/// Says that the thread has ended, when it ends, also by a panic.
struct Ended<'a>(&'a Shared);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.seen.lock().unwrap_or_else(PoisonError::into_inner).ended = true;
        self.0.changed.notify_all();
    }
}

/// What has been gathered to show that a client has read its keys.
#[derive(Debug)]
pub(crate) struct Proof {
    /// The client is known to make proving fetches for nothing but changes.
    sure: bool,
    proofs: u32,
    signs: u32,
}

impl Proof {
    /// One fetch is not enough: the server tells clients of a new keyboard before the first key from ours (after somebody set a
    /// layout, say), and a client that has translated no key yet fetches for its first one. What is asked for after those is seen
    /// can only be answered after the keys.
    pub(crate) fn complete(&self) -> bool {
        self.proofs >= if self.sure { 2 } else { 3 } || (self.proofs == 0 && self.signs >= SIGNS)
    }
}

/// Watches one client's keymap fetches.
pub(crate) struct Fetches {
    server: Arc<Server>,
    context: record::Context,
    shared: Arc<Shared>,
    interrupt: Interrupt,
    thread: Option<JoinHandle<()>>,
    /// The client has answered a change with a proving fetch before it was sent a key.
    sure: bool,
}

impl Fetches {
    /// Watches the client that owns `window`.
    pub(crate) fn of(server: &Arc<Server>, target: &Target, window: Window) -> Result<Self> {
        let missing = || Error::Unsupported("the server has no RECORD extension".into());
        server.conn.extension_information(record::X11_EXTENSION_NAME)?.ok_or_else(missing)?;
        let xkb_major = server.conn.extension_information(xkb::X11_EXTENSION_NAME)?.map_or(0, |info| info.major_opcode);
        let interrupt = Interrupt::never();
        let (data, _) = open_connection(target, &interrupt, Duration::MAX)?;
        data.extension_information(record::X11_EXTENSION_NAME)?.ok_or_else(missing)?;
        data.stream().expect_many();
        let none = record::ExtRange {
            major: record::Range8 { first: 0, last: 0 },
            minor: record::Range16 { first: 0, last: 0 },
        };
        let core = |opcode| record::Range8 { first: opcode, last: opcode };
        let fetch = record::Range {
            core_requests: core(GET_KEYBOARD_MAPPING_REQUEST),
            ext_requests: record::ExtRange {
                major: record::Range8 { first: xkb_major, last: xkb_major },
                minor: record::Range16 { first: xkb::GET_MAP_REQUEST.into(), last: xkb::GET_MAP_REQUEST.into() },
            },
            core_replies: record::Range8 { first: 0, last: 0 },
            ext_replies: none,
            delivered_events: record::Range8 { first: 0, last: 0 },
            device_events: record::Range8 { first: 0, last: 0 },
            errors: record::Range8 { first: 0, last: 0 },
            client_started: false,
            client_died: false,
        };
        let others = [GET_MODIFIER_MAPPING_REQUEST, NO_OPERATION_REQUEST].map(|opcode| record::Range {
            core_requests: core(opcode),
            ext_requests: none,
            ..fetch
        });
        let context = server.conn.generate_id()?;
        let us = server.conn.setup().resource_id_base;
        server.conn.record_create_context(context, 0, &[window, us], &[fetch, others[0], others[1]])?.check()?;
        let shared = Arc::new(Shared::default());
        let thread = std::thread::Builder::new().name("deskhand-record".into()).spawn({
            let (shared, stop) = (Arc::clone(&shared), interrupt.clone());
            move || {
                let _ended = Ended(&shared);
                let replies = record::enable_context(&data, context);
                for reply in replies.into_iter().flatten() {
                    let Ok(reply) = reply else { break };
                    // While there are always more replies, nobody else asks.
                    if stop.requested() {
                        break;
                    }
                    let mut seen = shared.seen.lock().unwrap_or_else(PoisonError::into_inner);
                    seen.enabled |= reply.category == START_OF_DATA;
                    if reply.category == FROM_CLIENT {
                        seen.note(&reply.data, reply.xid_base == us);
                    }
                    shared.changed.notify_all();
                }
            }
        });
        let thread = Some(thread.map_err(|error| Error::Unsupported(format!("no thread: {error}")))?);
        let fetches = Self { server: Arc::clone(server), context, shared, interrupt, thread, sure: false };
        fetches.wait(Duration::from_secs(1), &Interrupt::never(), |seen| seen.enabled)?;
        Ok(fetches)
    }

    fn wait(&self, timeout: Duration, caller: &Interrupt, done: impl Fn(&Seen) -> bool) -> Result<bool> {
        let deadline = Instant::now() + timeout;
        let mut seen = self.shared.seen.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if done(&seen) {
                return Ok(true);
            }
            let now = Instant::now();
            if seen.ended || now >= deadline {
                return Ok(false);
            }
            if caller.requested() {
                return Err(Error::Interrupted);
            }
            let slice = (deadline - now).min(Duration::from_millis(5));
            (seen, _) = self.shared.changed.wait_timeout(seen, slice).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// To be taken before a change of the map.
    pub(crate) fn mark(&self) -> u64 {
        self.shared.seen.lock().unwrap_or_else(PoisonError::into_inner).marks
    }

    /// Waits until the client has read a change made before it is sent any key; `false` at the timeout.
    pub(crate) fn wait_read(&mut self, mark: u64, timeout: Duration, caller: &Interrupt) -> Result<bool> {
        let sure = self.sure;
        let read = self.wait(timeout, caller, |seen| seen.xt_since(mark) || (!sure && seen.burst_since(mark)))?;
        self.sure |= self.shared.seen.lock().unwrap_or_else(PoisonError::into_inner).xt_since(mark);
        Ok(read)
    }

    /// The proof, still to be gathered, that the keys sent so far were read.
    pub(crate) fn proof(&self) -> Proof {
        Proof { sure: self.sure, proofs: 0, signs: 0 }
    }

    /// Waits for what the client makes of a change, and adds it to the proof; `false` at the timeout.
    pub(crate) fn add(&self, proof: &mut Proof, mark: u64, timeout: Duration, caller: &Interrupt) -> Result<bool> {
        let signs_count = !proof.sure && proof.proofs == 0;
        let read = self.wait(timeout, caller, |seen| seen.xt_since(mark) || (signs_count && seen.burst_since(mark)))?;
        if self.shared.seen.lock().unwrap_or_else(PoisonError::into_inner).xt_since(mark) {
            proof.proofs += 1;
        } else {
            proof.signs += 1;
        }
        Ok(read)
    }
}

impl Drop for Fetches {
    fn drop(&mut self) {
        // Ends the data connection's stream of replies; when the server is gone the stream has ended by itself.
        let _ = self.server.conn.record_disable_context(self.context);
        let _ = self.server.conn.record_free_context(self.context);
        let _ = self.server.conn.flush();
        self.interrupt.set();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
