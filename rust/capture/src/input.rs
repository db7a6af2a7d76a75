//! Sends input: plans pages (`keyboard.rs`), and proves that each was consumed before its keycodes are used again.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use x11rb::connection::{Connection, RequestConnection};
use x11rb::protocol::xkb::{self, ConnectionExt as _};
use x11rb::protocol::xproto::{
    BUTTON_PRESS_EVENT, BUTTON_RELEASE_EVENT, ConnectionExt as _, KEY_PRESS_EVENT, KEY_RELEASE_EVENT, KeyButMask,
    MOTION_NOTIFY_EVENT, ModMask, Window,
};
use x11rb::protocol::xtest::ConnectionExt as _;

use crate::consumption::Fetches;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::keyboard::{Keymap, Page, Step, plan};
use crate::replies;
use crate::state::State;
use crate::watcher::Shared;

/// How long a window may leave its keys unread before the rest of the text is given up.
pub(crate) const CONSUME_LIMIT: Duration = Duration::from_secs(10);
/// How long the end of an action waits before it leaves the restoration of the keymap to the watcher.
const RESTORE_LIMIT: Duration = Duration::from_secs(1);
/// A window manager that has not looked at a click in this time hangs.
const CLICK_LIMIT: Duration = Duration::from_secs(1);
/// It mostly has after half a millisecond.
const CLICK_PERIOD: Duration = Duration::from_micros(200);
/// Where consumption cannot be proved: enough for Swing (measured: 200 of 200 characters).
const BLIND_PAUSE: Duration = Duration::from_millis(40);
/// XTEST delays hold the server's side of this connection up, and whatever is sent after them: a release too, which must not come
/// later than this after somebody has asked for it.
const DELAY_PER_ROUND_TRIP: u32 = 50;
/// The same of events without a delay, of which a server takes some hundred in a millisecond.
const EVENTS_PER_ROUND_TRIP: u32 = 2000;
/// A text is given up that finds another layout so often.
const MOST_LAYOUTS: usize = 100;
const CORE_KEYBOARD: xkb::DeviceSpec = 0x100;
const BUTTONS: std::ops::RangeInclusive<u8> = 1..=9;
const NO_SYMBOL: u32 = 0;
/// `Caps_Lock`, `Shift_Lock`, `ISO_Lock`, and the keys that choose a layout group.
const LOCK_KEYS: [u32; 9] = [0xffe5, 0xffe6, 0xfe01, 0xfe06, 0xfe08, 0xfe0a, 0xfe0c, 0xfe0e, 0xff7e];

/// How we learn that the window with the focus has read its keys.
enum Reader {
    Ping(Window),
    Fetch(Fetches),
    Blind,
}

/// The keymap for which pages were planned, and what we have set in it since.
struct Planned {
    map: Arc<Keymap>,
    borrowed: Vec<(u8, u32)>,
}

impl Planned {
    fn is_still(&self, now: &Keymap) -> bool {
        self.borrowed.iter().all(|&(keycode, keysym)| now.carries(keycode, keysym))
            && self.map.same_as(now, |keycode| self.is_borrowed(keycode))
    }

    /// True when a key that `steps` press means something else on `now`.
    fn differs_for(&self, now: &Keymap, steps: &[Step]) -> bool {
        steps.iter().any(|step| match *step {
            Step::Key(keycode, true) => match self.borrowed.iter().find(|&&(borrowed, _)| borrowed == keycode) {
                Some(&(_, keysym)) => !now.carries(keycode, keysym),
                None => !self.map.same_at(now, keycode),
            },
            _ => false,
        })
    }

    fn is_borrowed(&self, keycode: u8) -> bool {
        self.borrowed.iter().any(|&(borrowed, _)| borrowed == keycode)
    }
}

/// Keys that were typed, and that their window may not have read yet.
pub(crate) struct Unread {
    planned: Planned,
    typed: Vec<Step>,
    /// The first ping sent after them.
    ping: Option<u64>,
    /// The server told of a change of the keymap before it told of the answer to that ping.
    map_changed: bool,
}

/// What came of setting a page's keycodes.
enum Assigned {
    /// The window has read them.
    Read,
    /// The window has not.
    Unread,
    /// Nothing was set: the layout is another one.
    LayoutChanged,
}

/// `CapsLock` and layout group as they were before typing.
struct Locks {
    mods: ModMask,
    group: xkb::Group,
}

impl State {
    /// Sends `events`, in order, and returns after the server has processed them.
    pub(crate) fn send(&mut self, shared: &Shared, events: &[Event]) -> Result<()> {
        let server = &shared.server;
        let has_keys = events.iter().any(|event| matches!(event, Event::Key(..)));
        server.round_trip()?;
        self.drain(shared)?;
        self.error = None;
        if has_keys && self.map.is_none() {
            self.await_layout(shared)?;
        }
        let map = self.keymap(shared)?;
        let physical = self.physical(shared, events)?;
        let pages = plan(&physical, &map, &self.keyboard).map_err(Error::NoKeycode)?;
        let locks = if types(events) { Self::unlock(shared)? } else { None };
        self.unread = None;
        let result = self.send_pages(shared, &physical, pages);
        if let Some(locks) = locks {
            relock(shared, &locks)?;
        }
        let read = result?;
        server.round_trip()?;
        self.drain(shared)?;
        if read {
            self.restore_keymap(shared)?;
        }
        self.await_releases(shared, events)?;
        self.error.take().map_or(Ok(()), Err)
    }

    /// The events with the pointer's own buttons, of which the server's pointer map makes those that applications see.
    fn physical<'a>(&mut self, shared: &Shared, events: &'a [Event]) -> Result<Cow<'a, [Event]>> {
        if !events.iter().any(|event| matches!(event, Event::Button(..))) {
            return Ok(Cow::Borrowed(events));
        }
        let map = match &mut self.pointer_map {
            Some(map) => map,
            unknown => unknown.insert(shared.server.conn.get_pointer_mapping()?.reply()?.map),
        };
        let physical = |event: &Event| match *event {
            Event::Button(button, down) => match (1..=u8::MAX).zip(&*map).find(|&(_, &seen)| seen == button) {
                Some((own, _)) => Ok(Event::Button(own, down)),
                None => Err(Error::NoButton(button)),
            },
            other => Ok(other),
        };
        events.iter().map(physical).collect()
    }

    /// Sends all pages; what remains is planned anew when somebody changes the layout meanwhile. True when the window has read
    /// what was typed with borrowed keycodes.
    fn send_pages(&mut self, shared: &Shared, events: &[Event], pages: Vec<Page>) -> Result<bool> {
        let mut reader = None;
        let mut pages = VecDeque::from(pages);
        let mut sent = 0;
        let mut typed = Vec::new();
        let mut layouts = 0;
        let mut planned = Planned { map: self.keymap(shared)?, borrowed: self.keyboard.borrowed().to_vec() };
        while let Some(page) = pages.pop_front() {
            if !page.assign.is_empty() && reader.is_none() {
                reader = Some(Self::reader(shared)?);
            }
            let ready = match &mut reader {
                Some(reader) if !page.assign.is_empty() => {
                    if page.reuses && !self.consumed(shared, reader, CONSUME_LIMIT)? {
                        return Err(Error::Stalled { sent, total: events.len() });
                    }
                    match self.assign_and_prove(shared, reader, &page.assign, &mut planned)? {
                        Assigned::Read => true,
                        Assigned::LayoutChanged => false,
                        Assigned::Unread => return Err(Error::Stalled { sent, total: events.len() }),
                    }
                }
                _ => true,
            };
            if !ready || !self.execute_unless_changed(shared, &page.steps, &planned)? {
                layouts += 1;
                if layouts > MOST_LAYOUTS {
                    return Err(Error::LayoutChanged);
                }
                planned = self.plan_anew(shared, &planned, &typed)?;
                pages = plan(&events[sent..], &planned.map, &self.keyboard).map_err(Error::NoKeycode)?.into();
                continue;
            }
            self.keyboard.hold(page.held);
            sent += page.events;
            typed.extend(page.steps);
        }
        self.last_typed = Instant::now();
        let read = match &mut reader {
            Some(reader) if !self.keyboard.holds_any() => self.consumed(shared, reader, RESTORE_LIMIT)?,
            _ => false,
        };
        if types(events) {
            if self.layout_changed(shared, &planned)? {
                planned = self.plan_anew(shared, &planned, &typed)?;
            }
            self.unread = (!read).then_some(Unread { planned, typed, ping: None, map_changed: false });
        }
        Ok(read)
    }

    /// Notes that the keymap was changed, by anybody.
    pub(crate) fn note_keymap(&mut self) {
        self.map = None;
        if let Some(unread) = &mut self.unread {
            unread.map_changed = true;
        }
    }

    /// Notes which ping is answered after the keys typed so far were read.
    pub(crate) fn note_ping(&mut self, id: u64) {
        if let Some(unread) = &mut self.unread {
            unread.ping = unread.ping.or(Some(id));
        }
    }

    /// Forgets the keys that were read with the keymap that they were typed with.
    pub(crate) fn note_pong(&mut self) {
        let pings = &self.pings;
        self.unread.take_if(|unread| !unread.map_changed && unread.ping.is_some_and(|id| pings.answered(id)));
    }

    /// True while it is only a matter of time that the window is known to have read its keys.
    pub(crate) fn awaits_reading(&self) -> bool {
        self.unread.as_ref().is_some_and(|unread| unread.ping.is_some())
    }

    /// Fails when keys that are read by now may have been read with another layout.
    pub(crate) fn check_typed(&mut self, shared: &Shared) -> Result<()> {
        let pings = &self.pings;
        let Some(read) = self.unread.take_if(|unread| unread.ping.is_some_and(|id| pings.answered(id))) else {
            return Ok(());
        };
        self.check_layout(shared, &read)
    }

    /// The same where no ping can prove that they are read: for as long as the screen was waited for, they count as unread.
    pub(crate) fn check_unproved(&mut self, shared: &Shared) -> Result<()> {
        match self.unread.take_if(|unread| unread.ping.is_none()) {
            Some(unread) if unread.map_changed => self.check_layout(shared, &unread),
            _ => Ok(()),
        }
    }

    fn check_layout(&mut self, shared: &Shared, typed: &Unread) -> Result<()> {
        let map = self.keymap(shared)?;
        if typed.planned.differs_for(&map, &typed.typed) { Err(Error::LayoutChanged) } else { Ok(()) }
    }

    /// The new layout, unless it may have changed the meaning of what was typed.
    ///
    /// A client may translate keys that it has not read yet with the new layout, and some (Chromium) even after their pong.
    fn plan_anew(&mut self, shared: &Shared, planned: &Planned, typed: &[Step]) -> Result<Planned> {
        let map = self.keymap(shared)?;
        if planned.differs_for(&map, typed) {
            return Err(Error::LayoutChanged);
        }
        self.await_layout(shared)?;
        Ok(Planned { map, borrowed: self.keyboard.borrowed().to_vec() })
    }

    /// Lets a window that answers pings read the new map first: it might translate the keys behind it with the old one.
    fn await_layout(&mut self, shared: &Shared) -> Result<()> {
        if let Some(focus) = shared.server.focus()?
            && let Some(window) = shared.server.pingable(focus)?
        {
            self.ping_and_wait(shared, window, CONSUME_LIMIT)?;
        }
        Ok(())
    }

    /// Sets the page's keycodes, and returns once the window has read them.
    ///
    /// A browser translates the first key wrongly if it directly follows the change in its queue.
    fn assign_and_prove(
        &mut self,
        shared: &Shared,
        reader: &mut Reader,
        assign: &[(u8, u32)],
        planned: &mut Planned,
    ) -> Result<Assigned> {
        let mark = if let Reader::Fetch(fetches) = reader { fetches.mark() } else { 0 };
        // A keycode that is free on one layout may be a key on the next.
        let assigned = grabbed(shared, || {
            if self.layout_changed(shared, planned)? {
                return Ok(false);
            }
            self.assign(shared, assign).map(|()| true)
        })?;
        if !assigned {
            return Ok(Assigned::LayoutChanged);
        }
        planned.borrowed = self.keyboard.borrowed().to_vec();
        let read = match reader {
            Reader::Ping(window) => self.ping_and_wait(shared, *window, CONSUME_LIMIT)?,
            Reader::Fetch(fetches) => fetches.wait_read(mark, CONSUME_LIMIT, &shared.interrupt)?,
            Reader::Blind => true,
        };
        Ok(if read { Assigned::Read } else { Assigned::Unread })
    }

    /// True when the keymap is not the one that was planned for.
    fn layout_changed(&mut self, shared: &Shared, planned: &Planned) -> Result<bool> {
        shared.server.round_trip()?;
        self.drain(shared)?;
        Ok(self.map.is_none() && !planned.is_still(&*self.keymap(shared)?))
    }

    /// Sends `steps`, or nothing and `false` when the keymap is not the one they were planned for.
    fn execute_unless_changed(&mut self, shared: &Shared, steps: &[Step], planned: &Planned) -> Result<bool> {
        let only_keys = !steps.is_empty() && steps.iter().all(|step| matches!(step, Step::Key(..)));
        if !only_keys {
            let changed =
                steps.iter().any(|step| matches!(step, Step::Key(..))) && self.layout_changed(shared, planned)?;
            return if changed { Ok(false) } else { Self::execute(shared, steps).map(|()| true) };
        }
        // Nobody can change the layout between our look at it and our keys.
        grabbed(shared, || match self.layout_changed(shared, planned) {
            Ok(false) => Self::execute(shared, steps).map(|()| true),
            other => other.map(|changed| !changed),
        })
    }

    fn execute(shared: &Shared, steps: &[Step]) -> Result<()> {
        let server = &shared.server;
        let (mut delay, mut since_round_trip, mut events) = (0, 0, 0);
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
            let delayed = since_round_trip > 0 && since_round_trip + delay > DELAY_PER_ROUND_TRIP;
            if delayed || events >= EVENTS_PER_ROUND_TRIP {
                (since_round_trip, events) = (0, 0);
                server.round_trip()?;
                if shared.interrupt.requested() {
                    return Err(Error::Interrupted);
                }
            }
            server.conn.xtest_fake_input(kind, detail, delay, server.root, x, y, 0)?;
            since_round_trip += delay;
            events += 1;
            delay = 0;
        }
        server.conn.flush()?;
        if delay > 0 {
            shared.pause(Duration::from_millis(delay.into()))?;
        }
        Ok(())
    }

    /// Presses a key that means nothing, before anything is typed.
    ///
    /// With the first key of a device the server copies that device's keymap over the common one; what we had set in that until
    /// then would be lost, together with the characters typed with it.
    pub(crate) fn take_keyboard(&mut self, shared: &Shared) -> Result<()> {
        let server = &shared.server;
        if let Some(&spare) = self.keymap(shared)?.spares().last() {
            for kind in [KEY_PRESS_EVENT, KEY_RELEASE_EVENT] {
                server.conn.xtest_fake_input(kind, spare, 0, server.root, 0, 0, 0)?;
            }
            server.round_trip()?;
            self.drain(shared)?;
            self.map = None;
        }
        Ok(())
    }

    /// The server's keymap as it is now; read again only after it was changed by anybody.
    fn keymap(&mut self, shared: &Shared) -> Result<Arc<Keymap>> {
        if let Some(map) = &self.map {
            return Ok(Arc::clone(map));
        }
        let setup = shared.server.conn.setup();
        let (first, count) = (setup.min_keycode, setup.max_keycode - setup.min_keycode + 1);
        let reply = shared.server.conn.get_keyboard_mapping(first, count)?.reply()?;
        let map = Arc::new(replies::keymap(first, count, reply.keysyms_per_keycode, reply.keysyms)?);
        self.keyboard.keep_borrowed(|keycode, keysym| map.carries(keycode, keysym));
        self.map = Some(Arc::clone(&map));
        Ok(map)
    }

    fn assign(&mut self, shared: &Shared, assign: &[(u8, u32)]) -> Result<()> {
        // All in one piece: no client fetches the map between two changes, so each fetches once for all of them.
        grabbed(shared, || {
            if !set_keysyms(shared, assign)? {
                let columns = self.keymap(shared)?.columns();
                for &(keycode, keysym) in assign {
                    let row = vec![keysym; columns];
                    shared.server.conn.change_keyboard_mapping(1, keycode, columns as u8, &row)?;
                }
            }
            shared.server.conn.no_operation()?; // The mark that `consumption.rs` looks for.
            Ok(())
        })?;
        self.keyboard.borrow(assign);
        self.last_typed = Instant::now();
        shared.server.round_trip()?;
        self.drain(shared)?;
        self.map = None;
        Ok(())
    }

    /// Takes `CapsLock` off and the layout to its first group; what was there, if it was anything else.
    fn unlock(shared: &Shared) -> Result<Option<Locks>> {
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
            Err(error) if error.is_fatal() || matches!(error, Error::Interrupted) => Err(error),
            Err(error) => {
                shared.note(&format!("typing characters that are not on the keymap waits blindly: {error}"));
                Ok(Reader::Blind)
            }
        }
    }

    /// Waits until the window has read all keys sent so far; `false` at the limit.
    fn consumed(&mut self, shared: &Shared, reader: &mut Reader, limit: Duration) -> Result<bool> {
        match reader {
            Reader::Ping(window) => self.ping_and_wait(shared, *window, limit),
            Reader::Fetch(fetches) => {
                let Some(&again) = self.keyboard.borrowed().first() else { return Ok(true) };
                let deadline = Instant::now() + limit;
                let mut proof = fetches.proof();
                while !proof.complete() {
                    let mark = fetches.mark();
                    // The same keysym on the same keycode: nothing changes, but every client is told that the map did.
                    self.assign(shared, &[again])?;
                    let left = deadline.saturating_duration_since(Instant::now());
                    if !fetches.add(&mut proof, mark, left, &shared.interrupt)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Reader::Blind => {
                shared.pause(BLIND_PAUSE)?;
                Ok(true)
            }
        }
    }

    fn ping_and_wait(&mut self, shared: &Shared, window: Window, limit: Duration) -> Result<bool> {
        let deadline = Instant::now() + limit;
        let id = self.next_ping(shared, window)?;
        while !self.pings.answered(id) {
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
        // What is not planned is released below, out of order.
        if let Ok(ups) = self.physical(shared, ups)
            && let Ok(pages) = plan(&ups, &map, &self.keyboard)
        {
            for page in &pages {
                Self::execute(shared, &page.steps)?;
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
        let keys = shared.server.conn.query_keymap()?.reply()?.keys;
        let keys = (8..=255_u8).filter(|&keycode| keys[usize::from(keycode / 8)] >> (keycode % 8) & 1 == 1).collect();
        Ok((keys, Self::pressed_buttons(shared)?))
    }

    fn pressed_buttons(shared: &Shared) -> Result<Vec<u8>> {
        let mask = shared.server.conn.query_pointer(shared.server.root)?.reply()?.mask;
        let masks =
            [KeyButMask::BUTTON1, KeyButMask::BUTTON2, KeyButMask::BUTTON3, KeyButMask::BUTTON4, KeyButMask::BUTTON5];
        Ok((1..=5).zip(masks).filter(|&(_, button)| mask.contains(button)).map(|(number, _)| number).collect())
    }

    /// Waits until released buttons are released for the server too. A window manager that raises a window on a click holds the
    /// pointer back from the press on until it has looked at it; keys sent meanwhile would arrive before the click.
    fn await_releases(&mut self, shared: &Shared, events: &[Event]) -> Result<()> {
        let buttons = events.iter().filter_map(|event| match *event {
            Event::Button(button, pressed) => Some((button, pressed)),
            _ => None,
        });
        let down: HashMap<u8, bool> = buttons.collect();
        self.released.retain(|button| !down.contains_key(button));
        self.released.extend(down.iter().filter(|&(_, &pressed)| !pressed).map(|(&button, _)| button));
        let deadline = Instant::now() + CLICK_LIMIT;
        while self.is_held_back(shared)? && Instant::now() < deadline {
            shared.pause(CLICK_PERIOD)?;
        }
        Ok(())
    }

    /// True while somebody holds clicks back that were sent.
    pub(crate) fn is_held_back(&mut self, shared: &Shared) -> Result<bool> {
        if !self.released.is_empty() {
            let pressed = Self::pressed_buttons(shared)?;
            self.released.retain(|button| pressed.contains(button));
        }
        Ok(!self.released.is_empty())
    }
}

/// Sets single keysyms with one request, hence one notification, for all; `false` where the server has no XKB.
///
/// The request names a range of keycodes. Those between ours are sent as they were read, in XKB's own terms, so that they stay as
/// they are. Many notifications would keep a window manager that binds its keys anew for each of them busy for seconds.
fn set_keysyms(shared: &Shared, assign: &[(u8, u32)]) -> Result<bool> {
    let conn = &shared.server.conn;
    let keycodes = assign.iter().map(|&(keycode, _)| keycode);
    let Some((first, last)) = keycodes.clone().min().zip(keycodes.max()) else { return Ok(true) };
    if conn.extension_information(xkb::X11_EXTENSION_NAME)?.is_none() {
        return Ok(false);
    }
    let (none, part) = (xkb::MapPart::default(), xkb::MapPart::KEY_SYMS);
    let no_mods = xkb::VMod::default();
    let count = last - first + 1;
    let reply =
        xkb::get_map(conn, CORE_KEYBOARD, none, part, 0, 0, first, count, 0, 0, 0, 0, no_mods, 0, 0, 0, 0, 0, 0)?
            .reply()?;
    let Some(mut rows) = reply.map.syms_rtrn.filter(|rows| rows.len() == usize::from(count)) else { return Ok(false) };
    for &(keycode, keysym) in assign {
        let syms = if keysym == NO_SYMBOL { vec![] } else { vec![keysym] };
        let levels = syms.len() as u8;
        // Type 0 is ONE_LEVEL on every server, and the low bits of the group information are the number of groups.
        rows[usize::from(keycode - first)] =
            xkb::KeySymMap { kt_index: [0; 4], group_info: levels, width: levels, syms };
    }
    let Ok(total) = u16::try_from(rows.iter().map(|row| row.syms.len()).sum::<usize>()) else { return Ok(false) };
    let values = xkb::SetMapAux::new().syms(rows);
    let (flags, setup) = (xkb::SetMapFlags::default(), conn.setup());
    let (lowest, highest) = (setup.min_keycode, setup.max_keycode);
    xkb::set_map(
        conn,
        CORE_KEYBOARD,
        flags,
        lowest,
        highest,
        0,
        0,
        first,
        count,
        total,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        no_mods,
        &values,
    )?
    .check()?;
    Ok(true)
}

/// True when these events press keys whose meaning the locks change; a lock's own key must find the lock as it is.
fn types(events: &[Event]) -> bool {
    let mut keys = events.iter().filter_map(|event| match event {
        Event::Key(keysym, true) => Some(*keysym),
        _ => None,
    });
    let first = keys.next();
    first.is_some() && first.into_iter().chain(keys).all(|keysym| !LOCK_KEYS.contains(&keysym))
}

/// Does `work` while no other client is served; ends that whatever comes of the work.
fn grabbed<T>(shared: &Shared, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let conn = &shared.server.conn;
    conn.grab_server()?;
    let result = work();
    conn.ungrab_server()?;
    conn.flush()?;
    result
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
