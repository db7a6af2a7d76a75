//! `CapsLock` and the layout's group, which change what keys mean: out of the way while a text is typed, and back afterwards.

use link::Event;
use x11rb::protocol::xkb::{self, ConnectionExt as _};
use x11rb::protocol::xproto::ModMask;

use crate::error::Result;
use crate::wire::Wire;

const CORE_KEYBOARD: xkb::DeviceSpec = 0x100;
/// `Caps_Lock`, `Shift_Lock`, `ISO_Lock`, and the keys that choose a layout group.
const LOCK_KEYS: [u32; 9] = [0xffe5, 0xffe6, 0xfe01, 0xfe06, 0xfe08, 0xfe0a, 0xfe0c, 0xfe0e, 0xff7e];

/// `CapsLock` and layout group as they were before typing.
pub(crate) struct Locks {
    mods: ModMask,
    group: xkb::Group,
}

/// True when these events press keys whose meaning the locks change; a lock's own key must find the lock as it is.
pub(crate) fn types(events: &[Event]) -> bool {
    let mut keys = events.iter().filter_map(|event| match event {
        Event::Key(keysym, true) => Some(*keysym),
        _ => None,
    });
    let first = keys.next();
    first.is_some() && first.into_iter().chain(keys).all(|keysym| !LOCK_KEYS.contains(&keysym))
}

/// Takes `CapsLock` off and the layout to its first group; returns their former state, if it was different.
pub(crate) fn unlock(wire: &Wire) -> Result<Option<Locks>> {
    let state = wire.server.conn.xkb_get_state(CORE_KEYBOARD)?.reply()?;
    if !state.locked_mods.contains(ModMask::LOCK) && state.locked_group == xkb::Group::M1 {
        return Ok(None);
    }
    let locks = Locks { mods: state.locked_mods & ModMask::LOCK, group: state.locked_group };
    relock(wire, &Locks { mods: ModMask::default(), group: xkb::Group::M1 })?;
    Ok(Some(locks))
}

/// Puts them back.
pub(crate) fn relock(wire: &Wire, locks: &Locks) -> Result<()> {
    wire.server.conn.xkb_latch_lock_state(
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
