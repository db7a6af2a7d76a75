//! Proof that a window without `_NET_WM_PING` has read its keys: its client asks for the keymap again.
//!
//! X clients fetch the keymap again after the notification that it changed. The RECORD extension shows those requests, and
//! among them a `NoOperation` of our own that marks where in their order we made a change. What a fetch proves depends on what
//! makes it (read in libXt and libX11, and seen with xterm):
//!
//! - Xt sends `GetKeyboardMapping` and then `GetModifierMapping` when it *handles* the notification, in order with its keys, and
//!   once for all changes made under one server grab. That is proof. It does so only once it has translated a key, and for its
//!   first key too. (xterm itself also requests both, in the other order and at any time.)
//! - Xlib sends `XkbGetMap` also with any earlier key when the notification is merely in its queue. That proves nothing.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use link::{Interrupt, locked};
use x11rb::connection::{Connection, RequestConnection};
use x11rb::protocol::record::{self, ConnectionExt as _};
use x11rb::protocol::xkb;
use x11rb::protocol::xproto::{
    GET_KEYBOARD_MAPPING_REQUEST, GET_MODIFIER_MAPPING_REQUEST, NO_OPERATION_REQUEST, Window,
};

use crate::error::{Error, Result};
use crate::keyboard::Step;
use crate::keymap::Keymap;
use crate::server::{Server, Target, open_connection};
use crate::stream::SILENCE_LIMIT;

const FROM_CLIENT: u8 = 1;
const START_OF_DATA: u8 = 4;
const CORE_FETCHES: [u8; 2] = [GET_KEYBOARD_MAPPING_REQUEST, GET_MODIFIER_MAPPING_REQUEST];
/// One fetch is not enough: the server tells clients of a new keyboard before the first key from ours (after a layout was set,
/// say), and a client that has translated no key yet fetches for its first one. A fetch that is requested after those can only be
/// answered after the keys.
const PROOFS: u32 = 3;
/// How long a window may leave its keys unread before the rest of the text is given up.
pub(crate) const CONSUME_LIMIT: Duration = Duration::from_secs(10);

/// Keys that were typed, and that their window may not have read yet.
pub(crate) struct Unread {
    pub(crate) planned: Arc<Keymap>,
    pub(crate) typed: Vec<Step>,
    /// The first ping sent after them.
    pub(crate) ping: Option<u64>,
    /// The server reported a change of the keymap before the answer to that ping.
    pub(crate) map_changed: bool,
}

#[derive(Default)]
struct Seen {
    enabled: bool,
    ended: bool,
    /// Fetches made by Xt.
    fetches: u64,
    /// The client's latest request, if it may be the first of a pair.
    first_of_pair: Option<u8>,
    /// A mark came after that request.
    straddled: bool,
    marks: u64,
    at_mark: u64,
}

impl Seen {
    /// Records one client's requests, of which several may come in a piece.
    fn note(&mut self, mut requests: &[u8], ours: bool) {
        while let [opcode, _, low, high, ..] = *requests {
            match (ours, opcode) {
                (true, NO_OPERATION_REQUEST) => {
                    self.marks += 1;
                    self.at_mark = self.fetches;
                    self.straddled = true;
                }
                (true, _) => {}
                (false, _) => {
                    let first = self.first_of_pair.take();
                    if let (Some(GET_KEYBOARD_MAPPING_REQUEST), GET_MODIFIER_MAPPING_REQUEST) = (first, opcode) {
                        // A fetch before the mark says nothing about the change behind it.
                        self.fetches += u64::from(!self.straddled);
                    } else if first.is_none() && CORE_FETCHES.contains(&opcode) {
                        self.first_of_pair = Some(opcode);
                        self.straddled = false;
                    }
                }
            }
            let length = 4 * usize::from(u16::from_ne_bytes([low, high])).max(1);
            requests = requests.get(length..).unwrap_or_default();
        }
    }

    fn fetched_since(&self, mark: u64) -> bool {
        self.marks > mark && self.fetches > self.at_mark
    }
}

#[derive(Default)]
struct Shared {
    seen: Mutex<Seen>,
    changed: Condvar,
}

/// Reports that the thread has ended, when it ends, also by a panic.
struct Ended<'a>(&'a Shared);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        locked(&self.0.seen).ended = true;
        self.0.changed.notify_all();
    }
}

/// Watches one client's keymap fetches.
pub(crate) struct Fetches {
    server: Arc<Server>,
    context: record::Context,
    shared: Arc<Shared>,
    interrupt: Interrupt,
    thread: Option<JoinHandle<()>>,
}

impl Fetches {
    /// Watches the client that owns `window`.
    pub(crate) fn of(server: &Arc<Server>, target: &Target, window: Window, caller: &Interrupt) -> Result<Self> {
        let missing = || Error::Unsupported("the server has no RECORD extension".into());
        server.conn.extension_information(record::X11_EXTENSION_NAME)?.ok_or_else(missing)?;
        let xkb_major = server.conn.extension_information(xkb::X11_EXTENSION_NAME)?.map_or(0, |info| info.major_opcode);
        let interrupt = Interrupt::never();
        interrupt.allow(Some(caller.left(SILENCE_LIMIT)));
        let (data, _) = open_connection(target, &interrupt, Duration::MAX)?;
        data.extension_information(record::X11_EXTENSION_NAME)?.ok_or_else(missing)?;
        interrupt.allow(None);
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
                    // As long as more replies come, nothing else checks this.
                    if stop.requested() {
                        break;
                    }
                    let mut seen = locked(&shared.seen);
                    seen.enabled |= reply.category == START_OF_DATA;
                    if reply.category == FROM_CLIENT {
                        seen.note(&reply.data, reply.xid_base == us);
                    }
                    shared.changed.notify_all();
                }
            }
        });
        let thread = Some(thread.map_err(|error| Error::Unsupported(format!("no thread: {error}")))?);
        let fetches = Self { server: Arc::clone(server), context, shared, interrupt, thread };
        fetches.wait(caller.left(Duration::from_secs(1)), &Interrupt::never(), |seen| seen.enabled)?;
        Ok(fetches)
    }

    fn wait(&self, timeout: Duration, caller: &Interrupt, done: impl Fn(&Seen) -> bool) -> Result<bool> {
        let deadline = Instant::now() + timeout;
        let mut seen = self.seen();
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

    /// Waits until the client has read the keys that it was sent, which shows in its reaction to changes of the map; `false` when
    /// it does not by the timeout.
    pub(crate) fn wait_read(
        &self,
        timeout: Duration,
        caller: &Interrupt,
        mut change: impl FnMut() -> Result<()>,
    ) -> Result<bool> {
        let deadline = Instant::now() + timeout;
        for _ in 0..PROOFS {
            let mark = self.seen().marks;
            change()?;
            let left = deadline.saturating_duration_since(Instant::now());
            if !self.wait(left, caller, |seen| seen.fetched_since(mark))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        locked(&self.shared.seen)
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
