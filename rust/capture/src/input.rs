//! Sends input, reports what did not arrive, and releases what is held. `typing.rs` gives keys their keycodes.

use std::borrow::Cow;
use std::collections::HashMap;
use std::time::{Duration, Instant};

use link::Event;
use rustix::fd::AsFd;
use x11rb::protocol::xproto::{BUTTON_RELEASE_EVENT, ConnectionExt as _, KEY_RELEASE_EVENT, KeyButMask, Window};
use x11rb::protocol::xtest::ConnectionExt as _;

use crate::clients::Clients;
use crate::error::{Error, Result};
use crate::keyboard::plan;
use crate::locks::{relock, types, unlock};
use crate::reach::{Missed, Obstacle};
use crate::state::State;
use crate::steps::execute;
use crate::wire::Wire;

/// A window manager that has not handled a click in this time hangs.
const CLICK_LIMIT: Duration = Duration::from_secs(1);
/// Mostly it takes half a millisecond.
const CLICK_PERIOD: Duration = Duration::from_micros(200);
const BUTTONS: std::ops::RangeInclusive<u8> = 1..=9;
/// `space`, `Return`, `KP_Space`, `KP_Enter`, `ISO_Enter`; `Alt_L` and `Alt_R`, with which letters do.
const ACTIVATING_KEYS: [u32; 7] = [0x20, 0xff0d, 0xff80, 0xff8d, 0xfe34, 0xffe9, 0xffea];
/// `Print`; the function keys; `Control_L` and `Control_R`; `Meta_L` to `Hyper_R`; the keys of multimedia keyboards.
const HOT_KEYS: [std::ops::RangeInclusive<u32>; 5] =
    [0xff61..=0xff61, 0xffbe..=0xffe0, 0xffe3..=0xffe4, 0xffe7..=0xffee, 0x1008_0000..=0x1008_ffff];

impl State {
    /// Sends `events`, in order, and returns after the server has processed them; returns what did not reach its
    /// window.
    pub(crate) fn send(&mut self, wire: &Wire, events: &[Event]) -> Result<Option<Missed>> {
        let server = &wire.server;
        let has_keys = events.iter().any(|event| matches!(event, Event::Key(..)));
        let before = self.before(wire)?;
        if has_keys {
            self.note_keys(wire, events, before.focus);
        }
        self.activated = None;
        self.drain(wire)?;
        self.error = None;
        self.held_up = has_keys && self.map.is_none() && !self.await_reading(wire)?;
        let map = self.keymap(wire)?;
        let physical = self.physical(wire, events)?;
        let pages = plan(&physical, &map, &self.keyboard)?;
        let locks = if types(events) { unlock(wire)? } else { None };
        self.unread = None;
        let result = self.reaching(wire, &before, events, |state| state.send_pages(wire, &physical, pages, map));
        if let Some(locks) = locks {
            relock(wire, &locks)?;
        }
        let missed = result?;
        server.round_trip()?;
        if has_keys
            && self.hot
            && let Some(clients) = &mut self.clients
        {
            clients.note_early();
        }
        if may_activate(events) {
            self.activated = Some(Instant::now());
        }
        self.drain(wire)?;
        self.await_releases(wire, events)?;
        let held_up = self.held_up.then(|| Missed::without_holder(Obstacle::Unread));
        self.error.take().map_or(Ok(missed.or(held_up)), Err)
    }

    /// Notes that keys are about to be sent, which may be somebody's hot key.
    fn note_keys(&mut self, wire: &Wire, events: &[Event], focus: Window) {
        let goes_on = self.typed.is_some_and(|(sent, _)| self.work.since_keys(sent).is_some());
        self.hot = may_be_hot(events) || (goes_on && self.hot);
        self.typed = Some((Instant::now(), focus));
        let ours = wire.server.conn.stream();
        self.clients.get_or_insert_with(|| Clients::of(ours.as_fd())).begin(self.hot);
    }

    /// The events with the pointer's own buttons, of which the server's pointer map makes those that applications see.
    fn physical<'a>(&mut self, wire: &Wire, events: &'a [Event]) -> Result<Cow<'a, [Event]>> {
        if !events.iter().any(|event| matches!(event, Event::Button(..))) {
            return Ok(Cow::Borrowed(events));
        }
        let map = match &mut self.pointer_map {
            Some(map) => map,
            unknown => unknown.insert(wire.server.conn.get_pointer_mapping()?.reply()?.map),
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

    /// Releases `ups` in order, then whatever the server still reports as pressed. It waits for the server only.
    pub(crate) fn release(&mut self, wire: &Wire, ups: &[Event]) -> Result<()> {
        let server = &wire.server;
        let map = self.keymap(wire)?;
        // A release that is not planned is done below, out of order.
        if let Ok(ups) = self.physical(wire, ups)
            && let Ok(pages) = plan(&ups, &map, &self.keyboard)
        {
            for page in &pages {
                execute(wire, &page.steps)?;
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
        self.drain(wire)
    }

    /// Keycodes and buttons (1–5) that the server reports as pressed.
    pub(crate) fn pressed(wire: &Wire) -> Result<(Vec<u8>, Vec<u8>)> {
        let keys = wire.server.conn.query_keymap()?.reply()?.keys;
        let keys = (8..=255_u8).filter(|&keycode| keys[usize::from(keycode / 8)] >> (keycode % 8) & 1 == 1).collect();
        Ok((keys, Self::pressed_buttons(wire)?))
    }

    fn pressed_buttons(wire: &Wire) -> Result<Vec<u8>> {
        let mask = wire.server.conn.query_pointer(wire.server.root)?.reply()?.mask;
        let masks =
            [KeyButMask::BUTTON1, KeyButMask::BUTTON2, KeyButMask::BUTTON3, KeyButMask::BUTTON4, KeyButMask::BUTTON5];
        Ok((1..=5).zip(masks).filter(|&(_, button)| mask.contains(button)).map(|(number, _)| number).collect())
    }

    /// Waits until released buttons are released for the server too. A window manager that raises a window on a click holds the
    /// pointer back from the press on until it has looked at it; keys sent meanwhile would arrive before the click.
    fn await_releases(&mut self, wire: &Wire, events: &[Event]) -> Result<()> {
        let buttons = events.iter().filter_map(|event| match *event {
            Event::Button(button, pressed) => Some((button, pressed)),
            _ => None,
        });
        let down: HashMap<u8, bool> = buttons.collect();
        self.released.retain(|button| !down.contains_key(button));
        self.released.extend(down.iter().filter(|&(_, &pressed)| !pressed).map(|(&button, _)| button));
        let deadline = Instant::now() + wire.interrupt.left(CLICK_LIMIT);
        while self.is_held_back(wire)? && Instant::now() < deadline {
            wire.pause(CLICK_PERIOD)?;
        }
        Ok(())
    }

    /// True while a client holds back clicks that were sent.
    pub(crate) fn is_held_back(&mut self, wire: &Wire) -> Result<bool> {
        if !self.released.is_empty() {
            let pressed = Self::pressed_buttons(wire)?;
            self.released.retain(|button| pressed.contains(button));
        }
        Ok(!self.released.is_empty())
    }
}

/// True when these events press or release a key that others than the focused application may have taken for themselves.
fn may_be_hot(events: &[Event]) -> bool {
    let is_hot = |keysym: &u32| HOT_KEYS.iter().any(|keys| keys.contains(keysym));
    events.iter().any(|event| matches!(event, Event::Key(keysym, _) if is_hot(keysym)))
}

/// True when these events press a key that may press the button of a dialog.
fn may_activate(events: &[Event]) -> bool {
    events.iter().any(|event| matches!(event, Event::Key(keysym, true) if ACTIVATING_KEYS.contains(keysym)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_others_may_have_taken_are_known() {
        let (control, shift, super_key, letter) = (0xffe3, 0xffe1, 0xffeb, 0x61);
        for (keysym, hot) in [(control, true), (super_key, true), (0xffc9, true), (0xff61, true), (0x1008_ff11, true)] {
            assert_eq!(may_be_hot(&[Event::Key(keysym, true), Event::Key(letter, true)]), hot, "{keysym:x}");
            assert_eq!(may_be_hot(&[Event::Key(keysym, false)]), hot, "a menu may open when {keysym:x} is released");
        }
        for keysym in [shift, letter, 0xff0d, 0xffe5, 0xfe03] {
            assert!(
                !may_be_hot(&[Event::Move(1, 2), Event::Key(keysym, true), Event::Key(keysym, false)]),
                "{keysym:x}"
            );
        }
    }
}
