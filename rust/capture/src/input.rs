//! Sends input: plans pages (`keyboard.rs`), binds what they need, and takes a binding away only from windows that have read it.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use x11rb::connection::Connection;
use x11rb::protocol::xkb::{self, ConnectionExt as _};
use x11rb::protocol::xproto::{
    BUTTON_PRESS_EVENT, BUTTON_RELEASE_EVENT, ConnectionExt as _, KEY_PRESS_EVENT, KEY_RELEASE_EVENT, KeyButMask,
    MOTION_NOTIFY_EVENT, ModMask, Window,
};
use x11rb::protocol::xtest::ConnectionExt as _;

use crate::bindings;
use crate::consumption::Fetches;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::keyboard::{Binding, Keymap, Page, Slot, Step, plan};
use crate::keymap_writer;
use crate::reach::{Missed, Obstacle};
use crate::replies;
use crate::state::State;
use crate::watcher::Shared;

/// How long a window may leave its keys unread before the rest of the text is given up.
pub(crate) const CONSUME_LIMIT: Duration = Duration::from_secs(10);
/// The same of a window that is not typed into now, and at the end: what stays then is for the next driver.
const OTHERS_LIMIT: Duration = Duration::from_secs(1);
/// Beyond so many it is seen which windows that were typed into are still there.
const MANY_WINDOWS: usize = 16;
/// A window manager that has not looked at a click in this time hangs.
const CLICK_LIMIT: Duration = Duration::from_secs(1);
/// It mostly has after half a millisecond.
const CLICK_PERIOD: Duration = Duration::from_micros(200);
/// XTEST delays hold the server's side of this connection up, and whatever is sent after them: a release too, which must not come
/// later than this after somebody has asked for it.
const DELAY_PER_ROUND_TRIP: u32 = 50;
/// The same of events without a delay, of which a server takes some hundred in a millisecond: at most twice as many are on their way.
const EVENTS_PER_MARK: u32 = 400;
/// A text is given up that finds another layout so often.
const MOST_LAYOUTS: usize = 100;
const CORE_KEYBOARD: xkb::DeviceSpec = 0x100;
const BUTTONS: std::ops::RangeInclusive<u8> = 1..=9;
/// `Caps_Lock`, `Shift_Lock`, `ISO_Lock`, and the keys that choose a layout group.
const LOCK_KEYS: [u32; 9] = [0xffe5, 0xffe6, 0xfe01, 0xfe06, 0xfe08, 0xfe0a, 0xfe0c, 0xfe0e, 0xff7e];
/// `space`, `Return`, `KP_Space`, `KP_Enter`, `ISO_Enter`; `Alt_L` and `Alt_R`, with which letters do.
const ACTIVATING_KEYS: [u32; 7] = [0x20, 0xff0d, 0xff80, 0xff8d, 0xfe34, 0xffe9, 0xffea];

/// Keys that were typed, and that their window may not have read yet.
pub(crate) struct Unread {
    planned: Arc<Keymap>,
    typed: Vec<Step>,
    /// The first ping sent after them.
    ping: Option<u64>,
    /// The server told of a change of the keymap before it told of the answer to that ping.
    map_changed: bool,
}

/// `CapsLock` and layout group as they were before typing.
struct Locks {
    mods: ModMask,
    group: xkb::Group,
}

impl State {
    /// Sends `events`, in order, and returns after the server has processed them; what of them did not reach the window that it was
    /// for.
    pub(crate) fn send(&mut self, shared: &Shared, events: &[Event]) -> Result<Option<Missed>> {
        let server = &shared.server;
        let has_keys = events.iter().any(|event| matches!(event, Event::Key(..)));
        let before = self.before(shared)?;
        if has_keys {
            self.typed = Some((Instant::now(), before.focus));
        }
        self.activated = None;
        self.drain(shared)?;
        self.error = None;
        self.held_up = has_keys && self.map.is_none() && !self.await_reading(shared)?;
        let map = self.keymap(shared)?;
        let physical = self.physical(shared, events)?;
        let pages = plan(&physical, &map, &self.keyboard)?;
        let locks = if types(events) { Self::unlock(shared)? } else { None };
        self.unread = None;
        let result = self.reaching(shared, &before, events, |state| state.send_pages(shared, &physical, pages));
        if let Some(locks) = locks {
            relock(shared, &locks)?;
        }
        let missed = result?;
        server.round_trip()?;
        if may_activate(events) {
            self.activated = Some(Instant::now());
        }
        self.drain(shared)?;
        self.await_releases(shared, events)?;
        let held_up = self.held_up.then(|| Missed::without_holder(Obstacle::Unread));
        self.error.take().map_or(Ok(missed.or(held_up)), Err)
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

    /// Sends all pages; what remains is planned anew when somebody changes the layout meanwhile.
    fn send_pages(&mut self, shared: &Shared, events: &[Event], pages: Vec<Page>) -> Result<()> {
        let mut pages = VecDeque::from(pages);
        let mut sent = 0;
        let mut typed = Vec::new();
        let mut layouts = 0;
        let mut planned = self.keymap(shared)?;
        while let Some(page) = pages.pop_front() {
            if let Some(silent) = self.unproved(shared, CONSUME_LIMIT, |binding| page.evict.contains(&binding.slot))? {
                // What others have typed with may go instead.
                if !self.keyboard.unread_by(silent) {
                    return Err(Error::Unread { sent, total: events.len() });
                }
                pages = plan(&events[sent..], &planned, &self.keyboard)?.into();
                continue;
            }
            let ready = if page.bind.is_empty() && page.evict.is_empty() {
                self.note_typing(shared, &page.uses)?;
                true
            } else if self.bind(shared, &page, &mut planned)? {
                // A browser translates the first key wrongly if it directly follows the change in its queue.
                if !self.await_reading(shared)? {
                    return Err(Error::Stalled { sent, total: events.len() });
                }
                true
            } else {
                false
            };
            if !ready || !self.execute_unless_changed(shared, &page.steps, &planned)? {
                layouts += 1;
                if layouts > MOST_LAYOUTS {
                    return Err(Error::LayoutChanged);
                }
                planned = self.plan_anew(shared, &planned, &typed)?;
                pages = plan(&events[sent..], &planned, &self.keyboard)?.into();
                continue;
            }
            shared.interrupt.renew();
            self.keyboard.hold(page.held);
            sent += page.events;
            typed.extend(page.steps);
        }
        if types(events) {
            if self.layout_changed(shared, &planned)? {
                planned = self.plan_anew(shared, &planned, &typed)?;
            }
            self.unread = Some(Unread { planned, typed, ping: None, map_changed: false });
        }
        Ok(())
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
        if differs_for(&typed.planned, &map, &typed.typed) { Err(Error::LayoutChanged) } else { Ok(()) }
    }

    /// The new layout, unless it may have changed the meaning of what was typed.
    ///
    /// A client may translate keys that it has not read yet with the new layout, and some (Chromium) even after their pong.
    fn plan_anew(&mut self, shared: &Shared, planned: &Keymap, typed: &[Step]) -> Result<Arc<Keymap>> {
        let anew = self.keymap(shared)?;
        if differs_for(planned, &anew, typed) {
            return Err(Error::LayoutChanged);
        }
        self.held_up |= !self.await_reading(shared)?;
        Ok(anew)
    }

    /// Lets a window that answers pings read the new map first: it might translate the keys behind it with the old one. `false` when
    /// it does not.
    fn await_reading(&mut self, shared: &Shared) -> Result<bool> {
        match shared.server.focus()?.map(|focus| shared.server.pingable(focus)).transpose()?.flatten() {
            Some(window) => self.ping_and_wait(shared, window, CONSUME_LIMIT),
            None => Ok(true),
        }
    }

    /// Makes the server's map carry what a page needs; `false`, and nothing is done, when the layout is another one.
    fn bind(&mut self, shared: &Shared, page: &Page, planned: &mut Arc<Keymap>) -> Result<bool> {
        // A keycode that is free on one layout may be a key on the next.
        grabbed(shared, || {
            if self.layout_changed(shared, planned)? {
                return Ok(false);
            }
            let bound = self.keyboard.bound();
            let before: Vec<_> = bound.iter().filter(|binding| page.evict.contains(&binding.slot)).cloned().collect();
            self.keyboard.keep_bound(|binding| !page.evict.contains(&binding.slot));
            for &(slot, keysym) in &page.bind {
                self.keyboard.bind(Binding { slot, keysym, windows: Vec::new() });
            }
            self.note_window(shared, &page.uses)?;
            // Whichever of the two a driver that is killed here leaves in the map, the next one knows it.
            bindings::publish(&shared.server, before.iter().chain(self.keyboard.bound()))?;
            let slots = page.evict.iter().chain(page.bind.iter().map(|(slot, _)| slot));
            let keycodes: BTreeSet<u8> = slots.map(|slot| slot.keycode).collect();
            self.write(shared, planned, keycodes)?;
            *planned = self.keymap(shared)?;
            Ok(true)
        })
    }

    /// Notes who will have to look these up.
    fn note_typing(&mut self, shared: &Shared, uses: &[Slot]) -> Result<()> {
        if !uses.is_empty() && self.note_window(shared, uses)? {
            bindings::publish(&shared.server, self.keyboard.bound())?;
        }
        Ok(())
    }

    /// Notes that the window that gets keys now will have to look these up; true when that is news.
    fn note_window(&mut self, shared: &Shared, uses: &[Slot]) -> Result<bool> {
        let news = self.keyboard.typed_into(shared.server.focus()?, uses);
        if news && self.keyboard.bound().iter().any(|binding| binding.windows.len() > MANY_WINDOWS) {
            for window in self.windows_of(|_| true) {
                if !shared.server.exists(window)? {
                    self.keyboard.read_by(window);
                }
            }
        }
        Ok(news)
    }

    /// The windows that may have to look these bindings up.
    fn windows_of(&self, which: impl Fn(&Binding) -> bool) -> Vec<Window> {
        let bound = self.keyboard.bound().iter().filter(|binding| which(binding));
        let mut windows: Vec<Window> = bound.flat_map(|binding| binding.windows.iter().copied()).collect();
        windows.sort_unstable();
        windows.dedup();
        windows
    }

    /// Waits until no window has to look these bindings up any more; the first for which that is not shown in time.
    fn unproved(
        &mut self,
        shared: &Shared,
        limit: Duration,
        which: impl Fn(&Binding) -> bool,
    ) -> Result<Option<Window>> {
        for window in self.windows_of(which) {
            // Nobody waits for the others, and there may be something else to take.
            let limit = if shared.server.focus()? == Some(window) { limit } else { limit.min(OTHERS_LIMIT) };
            if shared.server.exists(window)? && !self.has_read(shared, window, limit)? {
                return Ok(Some(window));
            }
            shared.interrupt.renew();
            self.keyboard.read_by(window);
        }
        Ok(None)
    }

    /// Waits until a window has read all keys sent so far; `false` when that is not shown in time.
    fn has_read(&mut self, shared: &Shared, window: Window, limit: Duration) -> Result<bool> {
        if let Some(window) = shared.server.pingable(window)? {
            return self.ping_and_wait(shared, window, limit);
        }
        let Some(keycode) = self.keyboard.bound().first().map(|binding| binding.slot.keycode) else { return Ok(true) };
        match Fetches::of(&shared.server, &shared.target, window, &shared.interrupt) {
            // The same keysyms on the same keycode: nothing changes, but every client is told that the map did.
            Ok(fetches) => fetches.wait_read(shared.interrupt.left(limit), &shared.interrupt, || {
                let map = self.keymap(shared)?;
                grabbed(shared, || self.write(shared, &map, [keycode]))
            }),
            Err(error) if error.is_fatal() || error.is_ours() => Err(error),
            Err(error) => {
                shared.note(&format!("no proof can be had that a window has read its keys: {error}"));
                Ok(false)
            }
        }
    }

    /// True when the keymap is not the one that was planned for.
    fn layout_changed(&mut self, shared: &Shared, planned: &Keymap) -> Result<bool> {
        shared.server.round_trip()?;
        self.drain(shared)?;
        Ok(self.map.is_none() && !planned.same_as(&*self.keymap(shared)?))
    }

    /// Sends `steps`, or nothing and `false` when the keymap is not the one they were planned for.
    fn execute_unless_changed(&mut self, shared: &Shared, steps: &[Step], planned: &Keymap) -> Result<bool> {
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
        let (mut delay, mut since_round_trip, mut events, mut mark) = (0, 0, 0, None);
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
            if delayed || events >= EVENTS_PER_MARK {
                // Without a delay the server has work while the answer is on its way: the mark before this one is waited for.
                let here = server.conn.get_input_focus()?;
                server.conn.flush()?;
                if let Some(passed) = if delayed { Some(here) } else { mark.replace(here) } {
                    passed.reply()?;
                }
                if shared.interrupt.requested() {
                    return Err(Error::Interrupted);
                }
                (since_round_trip, events) = (0, 0);
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

    /// Presses a key that means nothing, before anything is typed, and takes over what an earlier driver has bound. With `own`, the
    /// server is there for our programs only: its multimedia keys become spare keycodes, and it obeys no key itself.
    ///
    /// With the first key of a device the server copies that device's keymap over the common one; what we had set in that until
    /// then would be lost, together with the characters typed with it.
    pub(crate) fn take_keyboard(&mut self, shared: &Shared, own: bool) -> Result<()> {
        let server = &shared.server;
        if let Some(&spare) = self.keymap(shared)?.spares().last() {
            for kind in [KEY_PRESS_EVENT, KEY_RELEASE_EVENT] {
                server.conn.xtest_fake_input(kind, spare, 0, server.root, 0, 0, 0)?;
            }
            server.round_trip()?;
            self.drain(shared)?;
            self.map = None;
        }
        let map = self.keymap(shared)?;
        for binding in bindings::published(server)? {
            if map.carries(&binding) && self.keyboard.bound().iter().all(|other| other.slot != binding.slot) {
                self.keyboard.bind(binding);
                self.map = None;
            }
        }
        if own {
            let map = self.keymap(shared)?;
            let plain = map.reserved().into_iter().map(|(keycode, keysym)| (keycode, vec![keysym]));
            let rows: Vec<_> = map.multimedia().into_iter().map(|keycode| (keycode, Vec::new())).chain(plain).collect();
            grabbed(shared, || self.write_rows(shared, &map, &rows))?;
        }
        Ok(())
    }

    /// The server's keymap as it is now; read again only after it was changed by anybody.
    fn keymap(&mut self, shared: &Shared) -> Result<Arc<Keymap>> {
        if let Some(map) = &self.map {
            return Ok(Arc::clone(map));
        }
        let conn = &shared.server.conn;
        let (first, last) = (conn.setup().min_keycode, conn.setup().max_keycode);
        let count = last - first + 1;
        let rows = conn.get_keyboard_mapping(first, count)?;
        let four_levels = keymap_writer::four_levels(conn)?;
        let rows = rows.reply()?;
        let map = replies::keymap(first, count, rows.keysyms_per_keycode, rows.keysyms)?;
        self.keyboard.keep_bound(|binding| map.carries(binding));
        let map = Arc::new(map.with_four_levels(four_levels).with_ours(self.keyboard.bound()));
        self.map = Some(Arc::clone(&map));
        Ok(map)
    }

    /// Makes these keycodes carry what we have bound to them, or nothing, where `map` is what the server has now.
    ///
    /// To be called while nobody else is served: no client fetches the map between two changes, so each fetches once for all of them.
    fn write(&mut self, shared: &Shared, map: &Keymap, keycodes: impl IntoIterator<Item = u8>) -> Result<()> {
        let rows: Vec<_> = keycodes.into_iter().map(|keycode| (keycode, self.keyboard.row(keycode))).collect();
        self.write_rows(shared, map, &rows)
    }

    /// The same with these keysyms.
    fn write_rows(&mut self, shared: &Shared, map: &Keymap, rows: &[(u8, Vec<u32>)]) -> Result<()> {
        let conn = &shared.server.conn;
        keymap_writer::write(conn, map, rows)?;
        conn.no_operation()?; // The mark that `consumption.rs` looks for.
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

    fn ping_and_wait(&mut self, shared: &Shared, window: Window, limit: Duration) -> Result<bool> {
        let deadline = Instant::now() + shared.interrupt.left(limit);
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

    /// Takes everything that is bound off the map, unless a window may still have to look it up: then it stays for the next driver.
    pub(crate) fn unbind(&mut self, shared: &Shared) -> Result<()> {
        let map = self.keymap(shared)?;
        if self.keyboard.bound().is_empty() || self.unproved(shared, OTHERS_LIMIT, |_| true)?.is_some() {
            return Ok(());
        }
        let keycodes: BTreeSet<u8> = self.keyboard.bound().iter().map(|binding| binding.slot.keycode).collect();
        self.keyboard.keep_bound(|_| false);
        grabbed(shared, || self.write(shared, &map, keycodes))?;
        bindings::publish(&shared.server, [])
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
        let deadline = Instant::now() + shared.interrupt.left(CLICK_LIMIT);
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

/// True when a key that `steps` press means something else on `now` than on the map that they were planned for.
fn differs_for(planned: &Keymap, now: &Keymap, steps: &[Step]) -> bool {
    steps.iter().any(|step| matches!(*step, Step::Key(keycode, true) if !planned.same_at(now, keycode)))
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

/// True when these events press a key that may press the button of a dialog.
fn may_activate(events: &[Event]) -> bool {
    events.iter().any(|event| matches!(event, Event::Key(keysym, true) if ACTIVATING_KEYS.contains(keysym)))
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
