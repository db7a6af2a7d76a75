//! Types pages (`keyboard.rs`): binds what they need, and takes a binding away only from windows that have read it.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use link::Event;
use x11rb::protocol::xproto::Window;

use crate::bindings;
use crate::consumption::{CONSUME_LIMIT, Fetches, Unread};
use crate::error::{Error, Result};
use crate::keyboard::{Page, Step, plan};
use crate::keymap::{Binding, Keymap, Slot};
use crate::layout::differs_for;
use crate::locks::types;
use crate::state::State;
use crate::steps::{execute, grabbed};
use crate::wire::Wire;

/// The same for a window that is not typed into now, and at the end: the next driver gets what stays then.
const OTHERS_LIMIT: Duration = Duration::from_secs(1);
/// Beyond this many, windows that are gone are dropped from the list.
const MANY_WINDOWS: usize = 16;
/// A text is given up after this many changes of the layout.
const MOST_LAYOUTS: usize = 100;

impl State {
    /// Sends all pages, which were planned for this keymap; the rest is planned again when the layout changes meanwhile.
    pub(crate) fn send_pages(
        &mut self,
        wire: &Wire,
        events: &[Event],
        pages: Vec<Page>,
        mut planned: Arc<Keymap>,
    ) -> Result<()> {
        let mut pages = VecDeque::from(pages);
        let mut sent = 0;
        let mut typed = Vec::new();
        let mut layouts = 0;
        while let Some(page) = pages.pop_front() {
            if let Some(silent) = self.unproved(wire, CONSUME_LIMIT, |binding| page.evict.contains(&binding.slot))? {
                // Bindings of other windows may go instead.
                if !self.keyboard.unread_by(silent) {
                    return Err(Error::Unread { sent, total: events.len() });
                }
                pages = plan(&events[sent..], &planned, &self.keyboard)?.into();
                continue;
            }
            let ready = if page.bind.is_empty() && page.evict.is_empty() {
                self.note_typing(wire, &page.uses)?;
                true
            } else if self.bind(wire, &page, &mut planned)? {
                // A browser translates the first key wrongly if it directly follows the change in its queue.
                if !self.await_reading(wire)? {
                    return Err(Error::Stalled { sent, total: events.len() });
                }
                true
            } else {
                false
            };
            if !ready || !self.execute_unless_changed(wire, &page.steps, &planned)? {
                layouts += 1;
                if layouts > MOST_LAYOUTS {
                    return Err(Error::LayoutChanged);
                }
                planned = self.plan_anew(wire, &planned, &typed)?;
                pages = plan(&events[sent..], &planned, &self.keyboard)?.into();
                continue;
            }
            wire.interrupt.renew();
            self.keyboard.hold(page.held);
            sent += page.events;
            typed.extend(page.steps);
        }
        if types(events) {
            if self.layout_changed(wire, &planned)? {
                planned = self.plan_anew(wire, &planned, &typed)?;
            }
            self.unread = Some(Unread { planned, typed, ping: None, map_changed: false });
        }
        Ok(())
    }

    /// The new layout, unless it may have changed the meaning of what was typed.
    ///
    /// A client may translate keys that it has not read yet with the new layout, and some (Chromium) even after their pong.
    fn plan_anew(&mut self, wire: &Wire, planned: &Keymap, typed: &[Step]) -> Result<Arc<Keymap>> {
        let anew = self.keymap(wire)?;
        if differs_for(planned, &anew, typed) {
            return Err(Error::LayoutChanged);
        }
        self.held_up |= !self.await_reading(wire)?;
        Ok(anew)
    }

    /// Lets a window that answers pings read the new map first: it might translate the keys behind it with the old one. `false` when
    /// it does not.
    pub(crate) fn await_reading(&mut self, wire: &Wire) -> Result<bool> {
        match wire.server.focus()?.map(|focus| wire.server.pingable(focus)).transpose()?.flatten() {
            Some(window) => self.ping_and_wait(wire, window, CONSUME_LIMIT),
            None => Ok(true),
        }
    }

    /// Makes the server's map carry what a page needs; `false`, and nothing is done, when the layout has changed.
    fn bind(&mut self, wire: &Wire, page: &Page, planned: &mut Arc<Keymap>) -> Result<bool> {
        // A keycode that is free on one layout may be a key on the next.
        grabbed(wire, || {
            if self.layout_changed(wire, planned)? {
                return Ok(false);
            }
            let bound = self.keyboard.bound();
            let before: Vec<_> = bound.iter().filter(|binding| page.evict.contains(&binding.slot)).cloned().collect();
            self.keyboard.keep_bound(|binding| !page.evict.contains(&binding.slot));
            for &(slot, keysym) in &page.bind {
                self.keyboard.bind(Binding { slot, keysym, windows: Vec::new() });
            }
            self.note_window(wire, &page.uses)?;
            // If the driver is killed here, the next one knows both states that the map may have.
            bindings::publish(&wire.server, before.iter().chain(self.keyboard.bound()))?;
            let slots = page.evict.iter().chain(page.bind.iter().map(|(slot, _)| slot));
            let keycodes: BTreeSet<u8> = slots.map(|slot| slot.keycode).collect();
            self.write(wire, planned, keycodes)?;
            *planned = self.keymap(wire)?;
            Ok(true)
        })
    }

    /// Notes which window will have to look these up.
    fn note_typing(&mut self, wire: &Wire, uses: &[Slot]) -> Result<()> {
        if !uses.is_empty() && self.note_window(wire, uses)? {
            bindings::publish(&wire.server, self.keyboard.bound())?;
        }
        Ok(())
    }

    /// Notes that the window that gets keys now will have to look these up; true if it was not noted before.
    fn note_window(&mut self, wire: &Wire, uses: &[Slot]) -> Result<bool> {
        let news = self.keyboard.typed_into(wire.server.focus()?, uses);
        if news && self.keyboard.bound().iter().any(|binding| binding.windows.len() > MANY_WINDOWS) {
            for window in self.windows_of(|_| true) {
                if !wire.server.exists(window)? {
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

    /// Waits until no window has to look these bindings up any more; returns the first without a proof in time.
    fn unproved(&mut self, wire: &Wire, limit: Duration, which: impl Fn(&Binding) -> bool) -> Result<Option<Window>> {
        for window in self.windows_of(which) {
            // Other windows get less time: they are not typed into, and other bindings may be free.
            let limit = if wire.server.focus()? == Some(window) { limit } else { limit.min(OTHERS_LIMIT) };
            if wire.server.exists(window)? && !self.has_read(wire, window, limit)? {
                return Ok(Some(window));
            }
            wire.interrupt.renew();
            self.keyboard.read_by(window);
        }
        Ok(None)
    }

    /// Waits until a window has read all keys sent so far; `false` without a proof in time.
    fn has_read(&mut self, wire: &Wire, window: Window, limit: Duration) -> Result<bool> {
        if let Some(window) = wire.server.pingable(window)? {
            return self.ping_and_wait(wire, window, limit);
        }
        let Some(keycode) = self.keyboard.bound().first().map(|binding| binding.slot.keycode) else { return Ok(true) };
        match Fetches::of(&wire.server, &wire.target, window, &wire.interrupt) {
            // The same keysyms on the same keycode: nothing changes, but every client is notified of a change of the map.
            Ok(fetches) => fetches.wait_read(wire.interrupt.left(limit), &wire.interrupt, || {
                let map = self.keymap(wire)?;
                grabbed(wire, || self.write(wire, &map, [keycode]))
            }),
            Err(error) if error.is_fatal() || error.is_ours() => Err(error),
            Err(error) => {
                wire.note(&format!("no proof can be had that a window has read its keys: {error}"));
                Ok(false)
            }
        }
    }

    /// Sends `steps`, or nothing and `false` when the keymap is not the one they were planned for.
    fn execute_unless_changed(&mut self, wire: &Wire, steps: &[Step], planned: &Keymap) -> Result<bool> {
        let only_keys = !steps.is_empty() && steps.iter().all(|step| matches!(step, Step::Key(..)));
        if !only_keys {
            let changed =
                steps.iter().any(|step| matches!(step, Step::Key(..))) && self.layout_changed(wire, planned)?;
            return if changed { Ok(false) } else { execute(wire, steps).map(|()| true) };
        }
        // No client can change the layout between the check and the keys.
        grabbed(wire, || match self.layout_changed(wire, planned) {
            Ok(false) => execute(wire, steps).map(|()| true),
            other => other.map(|changed| !changed),
        })
    }

    pub(crate) fn ping_and_wait(&mut self, wire: &Wire, window: Window, limit: Duration) -> Result<bool> {
        let deadline = Instant::now() + wire.interrupt.left(limit);
        let id = self.next_ping(wire, window)?;
        while !self.pings.answered(id) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            wire.wait_readable(left)?;
            self.drain(wire)?;
        }
        Ok(true)
    }

    /// Takes everything that is bound off the map, unless a window may still have to look it up: then it stays for the next driver.
    pub(crate) fn unbind(&mut self, wire: &Wire) -> Result<()> {
        let map = self.keymap(wire)?;
        if self.keyboard.bound().is_empty() || self.unproved(wire, OTHERS_LIMIT, |_| true)?.is_some() {
            return Ok(());
        }
        let keycodes: BTreeSet<u8> = self.keyboard.bound().iter().map(|binding| binding.slot.keycode).collect();
        self.keyboard.keep_bound(|_| false);
        grabbed(wire, || self.write(wire, &map, keycodes))?;
        bindings::publish(&wire.server, [])
    }
}
