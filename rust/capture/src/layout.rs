//! The server's keymap: its present state, what the driver writes into it, and whether it has changed under keys that were typed.

use std::sync::Arc;

use x11rb::connection::Connection;
use x11rb::protocol::xproto::{ConnectionExt as _, KEY_PRESS_EVENT, KEY_RELEASE_EVENT};
use x11rb::protocol::xtest::ConnectionExt as _;

use crate::bindings;
use crate::consumption::Unread;
use crate::error::{Error, Result};
use crate::keyboard::Step;
use crate::keymap::Keymap;
use crate::keymap_writer;
use crate::replies;
use crate::state::State;
use crate::steps::grabbed;
use crate::wire::Wire;

impl State {
    /// Presses a key that means nothing, before anything is typed, and takes over what an earlier driver has bound. With `own`, the
    /// server is for our programs only: its multimedia keys become spare keycodes, and it obeys no key itself.
    ///
    /// With the first key of a device the server copies that device's keymap over the common one; what was set in that until
    /// then would be lost, together with the characters typed with it.
    pub(crate) fn take_keyboard(&mut self, wire: &Wire, own: bool) -> Result<()> {
        let server = &wire.server;
        if let Some(&spare) = self.keymap(wire)?.spares().last() {
            for kind in [KEY_PRESS_EVENT, KEY_RELEASE_EVENT] {
                server.conn.xtest_fake_input(kind, spare, 0, server.root, 0, 0, 0)?;
            }
            server.round_trip()?;
            self.drain(wire)?;
            self.map = None;
        }
        let map = self.keymap(wire)?;
        for binding in bindings::published(server)? {
            if map.carries(&binding) && self.keyboard.bound().iter().all(|other| other.slot != binding.slot) {
                self.keyboard.bind(binding);
                self.map = None;
            }
        }
        if own {
            let map = self.keymap(wire)?;
            let plain = map.reserved().into_iter().map(|(keycode, keysym)| (keycode, vec![keysym]));
            let rows: Vec<_> = map.multimedia().into_iter().map(|keycode| (keycode, Vec::new())).chain(plain).collect();
            grabbed(wire, || self.write_rows(wire, &map, &rows))?;
        }
        Ok(())
    }

    /// The server's keymap as it is now; read again only after any change.
    pub(crate) fn keymap(&mut self, wire: &Wire) -> Result<Arc<Keymap>> {
        if let Some(map) = &self.map {
            return Ok(Arc::clone(map));
        }
        let conn = &wire.server.conn;
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

    /// Makes these keycodes carry what is bound to them, or nothing, where `map` is what the server has now.
    ///
    /// Only while no other client is served: no client fetches the map between two changes, so each fetches once for all of them.
    pub(crate) fn write(&mut self, wire: &Wire, map: &Keymap, keycodes: impl IntoIterator<Item = u8>) -> Result<()> {
        let rows: Vec<_> = keycodes.into_iter().map(|keycode| (keycode, self.keyboard.row(keycode))).collect();
        self.write_rows(wire, map, &rows)
    }

    /// The same with these keysyms.
    pub(crate) fn write_rows(&mut self, wire: &Wire, map: &Keymap, rows: &[(u8, Vec<u32>)]) -> Result<()> {
        let conn = &wire.server.conn;
        keymap_writer::write(conn, map, rows)?;
        conn.no_operation()?; // The mark that `consumption.rs` looks for.
        wire.server.round_trip()?;
        self.drain(wire)?;
        self.map = None;
        Ok(())
    }

    /// True when the keymap is not the one that was planned for.
    pub(crate) fn layout_changed(&mut self, wire: &Wire, planned: &Keymap) -> Result<bool> {
        wire.server.round_trip()?;
        self.drain(wire)?;
        // Who waited for a window meanwhile may have read the new one already.
        let now = self.keymap(wire)?;
        Ok(!std::ptr::eq(&raw const *now, planned) && !planned.same_as(&now))
    }

    /// Notes that the keymap was changed, by any client.
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
    pub(crate) fn check_typed(&mut self, wire: &Wire) -> Result<()> {
        let pings = &self.pings;
        let Some(read) = self.unread.take_if(|unread| unread.ping.is_some_and(|id| pings.answered(id))) else {
            return Ok(());
        };
        self.check_layout(wire, &read)
    }

    /// The same where no ping can prove that they are read: they count as unread during the wait for the screen.
    pub(crate) fn check_unproved(&mut self, wire: &Wire) -> Result<()> {
        match self.unread.take_if(|unread| unread.ping.is_none()) {
            Some(unread) if unread.map_changed => self.check_layout(wire, &unread),
            _ => Ok(()),
        }
    }

    fn check_layout(&mut self, wire: &Wire, typed: &Unread) -> Result<()> {
        let map = self.keymap(wire)?;
        if differs_for(&typed.planned, &map, &typed.typed) { Err(Error::LayoutChanged) } else { Ok(()) }
    }
}

/// True when a key that `steps` press means something else on `now` than on the map that they were planned for.
pub(crate) fn differs_for(planned: &Keymap, now: &Keymap, steps: &[Step]) -> bool {
    steps.iter().any(|step| matches!(*step, Step::Key(keycode, true) if !planned.same_at(now, keycode)))
}
