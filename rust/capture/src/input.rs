//! Sends input: plans pages (`keyboard.rs`), and proves that each was consumed before its keycodes are used again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use x11rb::connection::Connection;
use x11rb::protocol::xkb::{self, ConnectionExt as _};
use x11rb::protocol::xproto::{
    BUTTON_PRESS_EVENT, BUTTON_RELEASE_EVENT, ConnectionExt as _, KEY_PRESS_EVENT, KEY_RELEASE_EVENT, KeyButMask,
    MOTION_NOTIFY_EVENT, ModMask, Window,
};
use x11rb::protocol::xtest::ConnectionExt as _;

use crate::consumption::Fetches;
use crate::display::{Shared, State};
use crate::error::{Error, Result};
use crate::event::Event;
use crate::keyboard::{Keymap, Page, Step, plan};

/// How long a window may leave its keys unread before the rest of the text is given up.
const CONSUME_LIMIT: Duration = Duration::from_secs(10);
/// How long the end of an action waits before it leaves the restoration of the keymap to the watcher.
const RESTORE_LIMIT: Duration = Duration::from_secs(1);
/// Where consumption cannot be proved: enough for Swing (measured: 200 of 200 characters).
const BLIND_PAUSE: Duration = Duration::from_millis(40);
/// XTEST delays hold the server's side of this connection up; a round trip after this much keeps every wait short.
const DELAY_PER_ROUND_TRIP: u32 = 500;
const CORE_KEYBOARD: xkb::DeviceSpec = 0x100;
const BUTTONS: std::ops::RangeInclusive<u8> = 1..=9;
const NO_SYMBOL: u32 = 0;

/// How we learn that the window with the focus has read its keys.
enum Reader {
    Ping(Window),
    Fetch(Fetches),
    Blind,
}

/// CapsLock and layout group as they were before typing.
struct Locks {
    mods: ModMask,
    group: xkb::Group,
}

impl State {
    /// Sends `events`, in order, and returns after the server has processed them.
    pub(crate) fn send(&mut self, shared: &Shared, events: &[Event]) -> Result<()> {
        let server = &shared.server;
        server.round_trip()?;
        self.drain(shared)?;
        self.errors.clear();
        let map = self.keymap(shared)?;
        let plan = plan(events, &map, self.keyboard.clone()).map_err(Error::NoKeycode)?;
        let borrows = plan.pages.iter().any(|page| !page.assign.is_empty());
        let typed_with_borrowed = borrows || !plan.keyboard.borrowed().is_empty();
        let locks =
            if events.iter().any(|event| matches!(event, Event::Key(..))) { self.unlock(shared)? } else { None };
        let reader = if borrows { Self::reader(shared)? } else { Reader::Blind };
        self.keyboard = plan.keyboard;
        let mut sent = 0;
        let result: Result<()> = plan.pages.iter().try_for_each(|page| {
            self.send_page(shared, page, &reader, sent, events.len())?;
            sent += page.events;
            Ok(())
        });
        if let Some(locks) = locks {
            relock(shared, &locks)?;
        }
        result?;
        server.round_trip()?;
        self.drain(shared)?;
        if typed_with_borrowed {
            self.last_typed = Instant::now();
        }
        if borrows && !self.keyboard.holds_any() && self.consumed(shared, &reader, RESTORE_LIMIT)? {
            self.restore_keymap(shared)?;
        }
        self.errors.drain(..).next().map_or(Ok(()), Err)
    }

    fn send_page(&mut self, shared: &Shared, page: &Page, reader: &Reader, sent: usize, total: usize) -> Result<()> {
        if page.reuses && !self.consumed(shared, reader, CONSUME_LIMIT)? {
            return Err(Error::Stalled { sent, total });
        }
        if !page.assign.is_empty() {
            let before = if let Reader::Fetch(fetches) = reader { fetches.count() } else { 0 };
            self.assign(shared, &page.assign)?;
            // A browser translates the first key wrongly if it directly follows the change in its queue, and a client's
            // fetches for this change must not be taken for those of the next one.
            let read = match reader {
                Reader::Ping(window) => self.ping_and_wait(shared, *window, CONSUME_LIMIT)?,
                Reader::Fetch(fetches) => fetches.wait_burst(before, CONSUME_LIMIT, &shared.interrupt)?,
                Reader::Blind => true,
            };
            if !read {
                return Err(Error::Stalled { sent, total });
            }
        }
        self.execute(shared, &page.steps)
    }

    fn execute(&mut self, shared: &Shared, steps: &[Step]) -> Result<()> {
        let server = &shared.server;
        let (mut delay, mut since_round_trip) = (0, 0);
        for step in steps {
            let (kind, detail, x, y) = match *step {
                Step::Key(keycode, down) => (if down { KEY_PRESS_EVENT } else { KEY_RELEASE_EVENT }, keycode, 0, 0),
                Step::Other(Event::Button(button, down)) => {
                    (if down { BUTTON_PRESS_EVENT } else { BUTTON_RELEASE_EVENT }, button, 0, 0)
                }
                Step::Other(Event::Move(x, y)) => (MOTION_NOTIFY_EVENT, 0, x, y),
                Step::Other(Event::Pause(milliseconds)) => {
                    delay += milliseconds;
                    continue;
                }
                Step::Other(Event::Key(..)) => unreachable!("plan turns every key into a keycode"),
            };
            server.conn.xtest_fake_input(kind, detail, delay, server.root, x, y, 0)?;
            since_round_trip += delay;
            delay = 0;
            if since_round_trip >= DELAY_PER_ROUND_TRIP {
                since_round_trip = 0;
                server.round_trip()?;
                if shared.interrupt.requested() {
                    return Err(Error::Interrupted);
                }
            }
        }
        server.conn.flush()?;
        if delay > 0 {
            shared.pause(Duration::from_millis(delay.into()))?;
        }
        Ok(())
    }

    /// The server's keymap as it is now; read again only after it was changed by anybody.
    fn keymap(&mut self, shared: &Shared) -> Result<Arc<Keymap>> {
        if let Some(map) = &self.map {
            return Ok(Arc::clone(map));
        }
        let setup = shared.server.conn.setup();
        let count = setup.max_keycode - setup.min_keycode + 1;
        let reply = shared.server.conn.get_keyboard_mapping(setup.min_keycode, count)?.reply()?;
        let map = Arc::new(Keymap::new(setup.min_keycode, reply.keysyms_per_keycode.into(), reply.keysyms));
        self.keyboard.keep_borrowed(|keycode, keysym| map.carries(keycode, keysym));
        self.map = Some(Arc::clone(&map));
        Ok(map)
    }

    fn assign(&mut self, shared: &Shared, assign: &[(u8, u32)]) -> Result<()> {
        let columns = self.keymap(shared)?.columns();
        for &(keycode, keysym) in assign {
            let row = vec![keysym; columns];
            shared.server.conn.change_keyboard_mapping(1, keycode, columns as u8, &row)?;
        }
        self.map = None;
        shared.server.conn.flush()?;
        Ok(())
    }

    /// Takes CapsLock off and the layout to its first group; what was there, if it was anything else.
    fn unlock(&mut self, shared: &Shared) -> Result<Option<Locks>> {
        let state = shared.server.conn.xkb_get_state(CORE_KEYBOARD)?.reply()?;
        if !state.locked_mods.contains(ModMask::LOCK) && state.locked_group == xkb::Group::M1 {
            return Ok(None);
        }
        let locks = Locks { mods: state.locked_mods & ModMask::LOCK, group: state.locked_group };
        relock(shared, &Locks { mods: ModMask::default(), group: xkb::Group::M1 })?;
        Ok(Some(locks))
    }

    fn reader(shared: &Shared) -> Result<Reader> {
        let Some(focus) = shared.server.focus()? else { return Ok(Reader::Blind) };
        if let Some(window) = shared.server.pingable(focus)? {
            return Ok(Reader::Ping(window));
        }
        match Fetches::of(&shared.server, &shared.target, focus) {
            Ok(fetches) => Ok(Reader::Fetch(fetches)),
            Err(error @ (Error::Lost(_) | Error::Interrupted)) => Err(error),
            Err(error) => {
                shared.note(&format!("typing characters that are not on the keymap waits blindly: {error}"));
                Ok(Reader::Blind)
            }
        }
    }

    /// Waits until the window has read all keys sent so far; `false` at the limit.
    fn consumed(&mut self, shared: &Shared, reader: &Reader, limit: Duration) -> Result<bool> {
        match reader {
            Reader::Ping(window) => self.ping_and_wait(shared, *window, limit),
            Reader::Fetch(fetches) => {
                let Some(&again) = self.keyboard.borrowed().first() else { return Ok(true) };
                let before = fetches.count();
                // The same keysym on the same keycode: nothing changes, but every client is told that the map did.
                self.assign(shared, &[again])?;
                fetches.wait_beyond(before, limit, &shared.interrupt)
            }
            Reader::Blind => {
                shared.pause(BLIND_PAUSE)?;
                Ok(true)
            }
        }
    }

    fn ping_and_wait(&mut self, shared: &Shared, window: Window, limit: Duration) -> Result<bool> {
        let deadline = Instant::now() + limit;
        let token = self.next_ping(shared, window)?;
        while !self.answered(token) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            shared.wait_readable(left)?;
            self.drain(shared)?;
        }
        Ok(true)
    }

    /// Gives every borrowed keycode back, unless somebody's new layout has taken it already.
    pub(crate) fn restore_keymap(&mut self, shared: &Shared) -> Result<()> {
        if self.keyboard.borrowed().is_empty() {
            return Ok(());
        }
        let map = self.keymap(shared)?;
        let ours: Vec<(u8, u32)> = self
            .keyboard
            .borrowed()
            .iter()
            .filter(|&&(keycode, keysym)| map.carries(keycode, keysym))
            .map(|&(keycode, _)| (keycode, NO_SYMBOL))
            .collect();
        self.assign(shared, &ours)?;
        self.keyboard.keep_borrowed(|_, _| false);
        Ok(())
    }

    /// Releases `ups` in order, then whatever the server still reports as pressed. Waits for nothing but the server.
    pub(crate) fn release(&mut self, shared: &Shared, ups: &[Event]) -> Result<()> {
        let server = &shared.server;
        let map = self.keymap(shared)?;
        let keyboard = self.keyboard.clone();
        if let Ok(plan) = plan(ups, &map, keyboard) {
            for page in &plan.pages {
                self.execute(shared, &page.steps)?;
            }
        }
        let keys = server.conn.query_keymap()?.reply()?.keys;
        for keycode in (8..=255_u8).filter(|&keycode| keys[usize::from(keycode / 8)] >> (keycode % 8) & 1 == 1) {
            server.conn.xtest_fake_input(KEY_RELEASE_EVENT, keycode, 0, server.root, 0, 0, 0)?;
        }
        for button in BUTTONS {
            server.conn.xtest_fake_input(BUTTON_RELEASE_EVENT, button, 0, server.root, 0, 0, 0)?;
        }
        self.keyboard.forget_held();
        server.round_trip()?;
        self.drain(shared)
    }

    /// Keycodes and buttons (1–5) that the server reports as pressed.
    pub(crate) fn pressed(shared: &Shared) -> Result<(Vec<u8>, Vec<u8>)> {
        let keys = shared.server.conn.query_keymap()?;
        let pointer = shared.server.conn.query_pointer(shared.server.root)?;
        let keys = keys.reply()?.keys;
        let mask = pointer.reply()?.mask;
        let keys = (8..=255_u8).filter(|&keycode| keys[usize::from(keycode / 8)] >> (keycode % 8) & 1 == 1).collect();
        let masks =
            [KeyButMask::BUTTON1, KeyButMask::BUTTON2, KeyButMask::BUTTON3, KeyButMask::BUTTON4, KeyButMask::BUTTON5];
        let buttons =
            (1..=5).zip(masks).filter(|&(_, button)| mask.contains(button)).map(|(number, _)| number).collect();
        Ok((keys, buttons))
    }
}

fn relock(shared: &Shared, locks: &Locks) -> Result<()> {
    shared.server.conn.xkb_latch_lock_state(
        CORE_KEYBOARD,
        ModMask::LOCK,
        locks.mods,
        true,
        locks.group,
        ModMask::default(),
        false,
        0,
    )?;
    Ok(())
}
