//! Writes keysyms into the server's keymap.

use x11rb::connection::{Connection, RequestConnection};
use x11rb::protocol::xkb;
use x11rb::protocol::xproto::{ConnectionExt as _, ModMask};

use crate::error::Result;
use crate::keymap::Keymap;
use crate::server::Conn;

const CORE_KEYBOARD: xkb::DeviceSpec = 0x100;
/// The first two key types are the same on every server (X Keyboard Extension, §7.3).
const ONE_LEVEL: u8 = 0;
const TWO_LEVEL: u8 = 1;
const FOUR_LEVELS: u8 = 4;

/// Asks for parts of the map.
fn get_map(conn: &Conn, full: xkb::MapPart, partial: xkb::MapPart, keycodes: (u8, u8)) -> Result<xkb::GetMapMap> {
    let no_mods = xkb::VMod::default();
    let (first, count) = keycodes;
    let reply =
        xkb::get_map(conn, CORE_KEYBOARD, full, partial, 0, 0, first, count, 0, 0, 0, 0, no_mods, 0, 0, 0, 0, 0, 0)?;
    Ok(reply.reply()?.map)
}

/// The key type whose four levels are chosen by Shift, by a modifier of its own and by both; `None` where there is none.
pub(crate) fn four_levels(conn: &Conn) -> Result<Option<u8>> {
    if conn.extension_information(xkb::X11_EXTENSION_NAME)?.is_none() {
        return Ok(None);
    }
    let types = get_map(conn, xkb::MapPart::KEY_TYPES, xkb::MapPart::default(), (0, 0))?.types_rtrn;
    let index = types.unwrap_or_default().iter().position(has_four_levels);
    Ok(index.and_then(|index| u8::try_from(index).ok()))
}

fn has_four_levels(kind: &xkb::KeyType) -> bool {
    let shift = ModMask::SHIFT;
    let other = ModMask::from(u16::from(kind.mods_mask) & !u16::from(shift));
    let active = kind.map.iter().filter(|entry| entry.active);
    let mut levels: Vec<_> = active.map(|entry| (entry.level, entry.mods_mask)).collect();
    levels.sort_unstable_by_key(|&(level, _)| level);
    kind.num_levels == FOUR_LEVELS
        && !kind.has_preserve
        && u16::from(other).is_power_of_two()
        && other != ModMask::LOCK
        && levels == [(1, shift), (2, other), (3, shift | other)]
}

/// Makes keycodes carry these keysyms, or nothing. `map` is what the server has now.
///
/// With XKB that is one request, hence one notification, for all: many would keep a window manager that rebinds its keys for each
/// them busy for seconds. The request names a range of keycodes. Those between ours are sent as they were read, in XKB's own terms, so
/// that they stay as they are.
pub(crate) fn write(conn: &Conn, map: &Keymap, rows: &[(u8, Vec<u32>)]) -> Result<()> {
    if !write_as_one(conn, map, rows)? {
        let columns = map.columns();
        for (keycode, keysyms) in rows {
            let carried = if keysyms.is_empty() { &[0] } else { &keysyms[..] };
            // The second group as the first one: column 2 and 3 are what column 0 and 1 are.
            let row: Vec<u32> = (0..columns).map(|column| carried[column % 2 % carried.len()]).collect();
            conn.change_keyboard_mapping(1, *keycode, columns as u8, &row)?;
        }
    }
    Ok(())
}

/// `false` where the server has no XKB.
fn write_as_one(conn: &Conn, map: &Keymap, rows: &[(u8, Vec<u32>)]) -> Result<bool> {
    let keycodes = rows.iter().map(|&(keycode, _)| keycode);
    let Some((first, last)) = keycodes.clone().min().zip(keycodes.max()) else { return Ok(true) };
    if conn.extension_information(xkb::X11_EXTENSION_NAME)?.is_none() {
        return Ok(false);
    }
    let count = last - first + 1;
    let now = get_map(conn, xkb::MapPart::default(), xkb::MapPart::KEY_SYMS, (first, count))?.syms_rtrn;
    let Some(mut all) = now.filter(|now| now.len() == usize::from(count)) else { return Ok(false) };
    for (keycode, keysyms) in rows {
        all[usize::from(keycode - first)] = row(keysyms, map.four_levels().unwrap_or(TWO_LEVEL));
    }
    let Ok(total) = u16::try_from(all.iter().map(|row| row.syms.len()).sum::<usize>()) else { return Ok(false) };
    let values = xkb::SetMapAux::new().syms(all);
    let (flags, no_mods, setup) = (xkb::SetMapFlags::default(), xkb::VMod::default(), conn.setup());
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

/// A keycode's keysyms in XKB's terms. The low bits of the group information are the number of groups.
fn row(keysyms: &[u32], four_levels: u8) -> xkb::KeySymMap {
    let mut syms = keysyms.to_vec();
    let (kind, width) = match syms.len() {
        0 => return xkb::KeySymMap { kt_index: [ONE_LEVEL; 4], group_info: 0, width: 0, syms },
        1 => (ONE_LEVEL, 1),
        2 => (TWO_LEVEL, 2),
        _ => (four_levels, FOUR_LEVELS),
    };
    syms.resize(width.into(), 0);
    xkb::KeySymMap { kt_index: [kind; 4], group_info: 1, width, syms }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(levels: &[(u8, u16)], mask: u16) -> xkb::KeyType {
        let entry = |&(level, mask)| xkb::KTMapEntry {
            active: true,
            mods_mask: ModMask::from(mask),
            level,
            mods_mods: ModMask::from(mask),
            mods_vmods: xkb::VMod::default(),
        };
        xkb::KeyType {
            mods_mask: ModMask::from(mask),
            mods_mods: ModMask::from(mask),
            mods_vmods: xkb::VMod::default(),
            num_levels: FOUR_LEVELS,
            has_preserve: false,
            map: levels.iter().map(entry).collect(),
            preserve: Vec::new(),
        }
    }

    #[test]
    fn a_type_that_other_modifiers_change_is_not_taken() {
        assert!(has_four_levels(&kind(&[(1, 1), (2, 128), (3, 129)], 129)));
        assert!(has_four_levels(&kind(&[(3, 129), (1, 1), (2, 128)], 129)));
        assert!(!has_four_levels(&kind(&[(1, 1), (2, 128), (3, 129), (1, 2)], 131)), "Lock");
        assert!(!has_four_levels(&kind(&[(1, 1), (2, 2), (3, 3)], 3)), "Lock as the third level");
        assert!(!has_four_levels(&kind(&[(1, 1)], 1)));
    }

    #[test]
    fn a_row_is_as_wide_as_its_type() {
        let widths = [1, 2, 3, 4].map(|count| {
            let row = row(&vec![0x61; count], 7);
            assert_eq!(row.syms.len(), usize::from(row.width));
            (row.kt_index[0], row.width)
        });
        assert_eq!(widths, [(ONE_LEVEL, 1), (TWO_LEVEL, 2), (7, 4), (7, 4)]);
        assert_eq!(row(&[], 7).group_info, 0);
    }
}
