//! Proof that a window without `_NET_WM_PING` has read its keys: its client asks for the keymap again.
//!
//! Every X client fetches the keymap anew when it *handles* the notification that the map changed, and handles events in the
//! order they were sent. So after a change of the map, the client's next `GetKeyboardMapping` or `XkbGetMap` request says that
//! all keys sent before that change were translated. The RECORD extension shows us that request. (Measured with xterm, GTK and
//! Qt: each fetches within 0.5–3 ms, also when no key follows.)

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use x11rb::connection::{Connection, RequestConnection};
use x11rb::protocol::record::{self, ConnectionExt as _};
use x11rb::protocol::xkb;
use x11rb::protocol::xproto::{GET_KEYBOARD_MAPPING_REQUEST, Window};

use crate::error::{Error, Result};
use crate::server::{Server, Target, open_connection};
use crate::stream::Interrupt;

const FROM_CLIENT: u8 = 1;
const START_OF_DATA: u8 = 4;
/// A client makes its fetches for one notification within 2 ms; this long without another one ends them.
const BURST_END: Duration = Duration::from_millis(8);

#[derive(Default)]
struct Seen {
    enabled: bool,
    ended: bool,
    fetches: u64,
    last: Option<Instant>,
}

#[derive(Default)]
struct Shared {
    seen: Mutex<Seen>,
    changed: Condvar,
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
    pub(crate) fn of(server: &Arc<Server>, target: &Target, window: Window) -> Result<Self> {
        let missing = || Error::Unsupported("the server has no RECORD extension".into());
        server.conn.extension_information(record::X11_EXTENSION_NAME)?.ok_or_else(missing)?;
        let xkb_major = server.conn.extension_information(xkb::X11_EXTENSION_NAME)?.map_or(0, |info| info.major_opcode);
        let interrupt = Interrupt::never();
        let (data, _) = open_connection(target, &interrupt, Duration::MAX)?;
        data.extension_information(record::X11_EXTENSION_NAME)?.ok_or_else(missing)?;
        let none = record::ExtRange {
            major: record::Range8 { first: 0, last: 0 },
            minor: record::Range16 { first: 0, last: 0 },
        };
        let range = record::Range {
            core_requests: record::Range8 { first: GET_KEYBOARD_MAPPING_REQUEST, last: GET_KEYBOARD_MAPPING_REQUEST },
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
        let context = server.conn.generate_id()?;
        server.conn.record_create_context(context, 0, &[window], &[range])?.check()?;
        let shared = Arc::new(Shared::default());
        let thread = std::thread::Builder::new().name("deskhand-record".into()).spawn({
            let shared = Arc::clone(&shared);
            move || {
                let replies = record::enable_context(&data, context);
                for reply in replies.into_iter().flatten() {
                    let Ok(reply) = reply else { break };
                    let mut seen = shared.seen.lock().unwrap_or_else(PoisonError::into_inner);
                    seen.enabled |= reply.category == START_OF_DATA;
                    if reply.category == FROM_CLIENT {
                        seen.fetches += 1;
                        seen.last = Some(Instant::now());
                    }
                    shared.changed.notify_all();
                }
                shared.seen.lock().unwrap_or_else(PoisonError::into_inner).ended = true;
                shared.changed.notify_all();
            }
        });
        let thread = Some(thread.map_err(|error| Error::Unsupported(format!("no thread: {error}")))?);
        let fetches = Self { server: Arc::clone(server), context, shared, interrupt, thread };
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

    /// How many fetches there were so far.
    pub(crate) fn count(&self) -> u64 {
        self.shared.seen.lock().unwrap_or_else(PoisonError::into_inner).fetches
    }

    /// Waits for a fetch beyond `count`; `false` at the timeout.
    pub(crate) fn wait_beyond(&self, count: u64, timeout: Duration, caller: &Interrupt) -> Result<bool> {
        self.wait(timeout, caller, |seen| seen.fetches > count)
    }

    /// Waits until the fetches for one notification, seen beyond `count`, are over; `false` at the timeout.
    pub(crate) fn wait_burst(&self, count: u64, timeout: Duration, caller: &Interrupt) -> Result<bool> {
        self.wait(timeout, caller, |seen| {
            seen.fetches > count && seen.last.is_some_and(|last| last.elapsed() >= BURST_END)
        })
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
