//! The server's core keyboard mapping, and where in it a keysym is, or can be put. Pure.

use std::collections::HashMap;

use xkeysym::Keysym;

pub(crate) const NO_SYMBOL: u32 = 0;
pub(crate) const SHIFT_L: u32 = 0xffe1;
pub(crate) const ISO_LEVEL3_SHIFT: u32 = 0xfe03;
/// Keysyms of keys that a remapped page must never touch, and which no character shares: function keys, modifiers, keypad.
const FUNCTION_KEYSYMS: std::ops::RangeInclusive<u32> = 0xfd00..=0xffff;
const KEYPAD_KEYSYMS: std::ops::RangeInclusive<u32> = 0xff80..=0xffbd;
/// What a server obeys itself on the level that Control and Alt choose: `Terminate_Server`, and `XF86Switch_VT_1` to `XF86LogGrabInfo`.
const SERVER_KEYSYMS: [std::ops::RangeInclusive<u32>; 2] = [0xfed5..=0xfed5, 0x1008_fe01..=0x1008_fe25];
/// Keys such as `XF86AudioPlay`.
const MULTIMEDIA_KEYSYMS: std::ops::RangeInclusive<u32> = 0x1008_0000..=0x1008_ffff;
/// `XF86HomePage`, `Search`, `Back`, `Forward`, `Stop`, `Refresh`, `WWW`, `Favorites` and `Reload`: Chromium obeys these keys by their
/// keycodes, whatever they carry.
const BROWSER_KEYSYMS: [u32; 9] = [
    0x1008_ff18,
    0x1008_ff1b,
    0x1008_ff26,
    0x1008_ff27,
    0x1008_ff28,
    0x1008_ff29,
    0x1008_ff2e,
    0x1008_ff30,
    0x1008_ff73,
];
/// Some toolkits treat the lowest keycode as "no key".
const LOWEST_SAFE_SPARE: u8 = 9;
/// The columns of the core keyboard mapping that stand for the four levels of the first group.
pub(crate) const LEVEL_COLUMNS: [usize; 4] = [0, 1, 4, 5];
/// The four levels have a bit each, and so has a key that is the same on all of them.
pub(crate) const WHOLE: u8 = 1 << 4;

/// A keycode and the level modifiers it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stroke {
    /// X keycode, 8–255.
    pub keycode: u8,
    /// Needs Shift.
    pub shift: bool,
    /// Needs ISO Level 3 Shift (`AltGr`).
    pub level3: bool,
}

impl Stroke {
    fn at(keycode: u8, level: u8) -> Self {
        Self { keycode, shift: level & 1 != 0, level3: level & 2 != 0 }
    }
}

/// What identifies a key: the character for keysyms that stand for one (several keysyms may), else the keysym itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Identity {
    Char(char),
    Keysym(u32),
}

pub(crate) fn identity(keysym: u32) -> Identity {
    if FUNCTION_KEYSYMS.contains(&keysym) {
        return Identity::Keysym(keysym);
    }
    match Keysym::from(keysym).key_char() {
        Some(char) => Identity::Char(char),
        None => Identity::Keysym(keysym),
    }
}

fn is_for_server(keysym: u32) -> bool {
    SERVER_KEYSYMS.iter().any(|range| range.contains(&keysym))
}

/// Where a spare keycode can carry a keysym.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot {
    /// X keycode, 9–255.
    pub keycode: u8,
    /// 0–3; `None` for all levels alike, for keys pressed together with modifiers and for those that are no characters.
    pub level: Option<u8>,
}

impl Slot {
    pub(crate) fn bit(self) -> u8 {
        self.level.map_or(WHOLE, |level| 1 << level)
    }

    pub(crate) fn stroke(self) -> Stroke {
        Stroke::at(self.keycode, self.level.unwrap_or(0))
    }
}

/// A keysym that the driver has put into the server's map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// Its place.
    pub slot: Slot,
    /// The keysym.
    pub keysym: u32,
    /// The windows that may still have to look it up.
    pub windows: Vec<u32>,
}

/// The server's core keyboard mapping.
#[derive(Clone, Debug)]
pub struct Keymap {
    first: u8,
    columns: usize,
    keysyms: Vec<u32>,
    /// Keycodes that carry keysyms of the driver.
    ours: Vec<u8>,
    /// The XKB key type whose levels are chosen by Shift and `AltGr`.
    four_levels: Option<u8>,
    strokes: HashMap<Identity, Stroke>,
}

impl Keymap {
    /// From the reply to `GetKeyboardMapping`: `columns` keysyms for each keycode from `first` on.
    ///
    /// Column 0 and 1 are the first group without and with Shift, 4 and 5 the same with `AltGr` (X Keyboard Extension
    /// protocol, §12.4 "core keyboard mapping"). Other groups are ignored: the group is locked to the first while the driver types.
    #[must_use]
    pub fn new(first: u8, columns: usize, keysyms: Vec<u32>) -> Self {
        Self { first, columns, keysyms, ours: Vec::new(), four_levels: None, strokes: HashMap::new() }.with_ours(&[])
    }

    /// The same, where the driver has put in `bound`, which is not part of the layout.
    #[must_use]
    pub fn with_ours(mut self, bound: &[Binding]) -> Self {
        self.ours = bound.iter().map(|binding| binding.slot.keycode).collect();
        self.ours.sort_unstable();
        self.ours.dedup();
        self.strokes.clear();
        let has_level3 = self.keycode_of(ISO_LEVEL3_SHIFT).is_some();
        for (level, column) in (0..).zip(LEVEL_COLUMNS) {
            let level3 = level & 2 != 0;
            if column >= self.columns || (level3 && !has_level3) {
                continue;
            }
            for keycode in self.keycodes().filter(|keycode| !self.ours.contains(keycode)).collect::<Vec<_>>() {
                let keysym = self.row(keycode)[column];
                let keypad_only_with_numlock = KEYPAD_KEYSYMS.contains(&keysym) && column > 0;
                // Level 3 of function keys is the switch to a text console, reached with Ctrl+Alt.
                let not_a_character = level3 && matches!(identity(keysym), Identity::Keysym(_));
                if keysym == NO_SYMBOL || keypad_only_with_numlock || not_a_character {
                    continue;
                }
                self.strokes.entry(identity(keysym)).or_insert(Stroke::at(keycode, level));
            }
        }
        self
    }

    /// The same where this XKB key type has four levels, chosen by Shift and `AltGr`.
    #[must_use]
    pub fn with_four_levels(self, four_levels: Option<u8>) -> Self {
        Self { four_levels, ..self }
    }

    /// See [`Keymap::with_four_levels`].
    #[must_use]
    pub fn four_levels(&self) -> Option<u8> {
        self.four_levels
    }

    /// How many keysyms a spare keycode can carry.
    pub(crate) fn levels(&self) -> u8 {
        match (self.keycode_of(SHIFT_L), self.keycode_of(ISO_LEVEL3_SHIFT).and(self.four_levels)) {
            (Some(_), Some(_)) => 4,
            (Some(_), None) if self.columns > 1 => 2,
            _ => 1,
        }
    }

    pub(crate) fn row(&self, keycode: u8) -> &[u32] {
        let start = usize::from(keycode - self.first) * self.columns;
        &self.keysyms[start..start + self.columns]
    }

    fn keycodes(&self) -> impl Iterator<Item = u8> + '_ {
        (0..self.keysyms.len() / self.columns.max(1)).map(|index| self.first + index as u8)
    }

    /// The first keycode that carries this very keysym in its first column.
    #[must_use]
    pub fn keycode_of(&self, keysym: u32) -> Option<u8> {
        self.keycodes().find(|keycode| !self.ours.contains(keycode) && self.row(*keycode)[0] == keysym)
    }

    /// How to type this keysym, or another that stands for the same character.
    #[must_use]
    pub fn find(&self, keysym: u32) -> Option<Stroke> {
        self.strokes.get(&identity(keysym)).copied()
    }

    /// Keycodes that carry nothing of the layout's.
    #[must_use]
    pub fn spares(&self) -> Vec<u8> {
        let empty = |keycode: u8| self.row(keycode).iter().all(|&keysym| keysym == NO_SYMBOL);
        self.keycodes()
            .filter(|&keycode| keycode >= LOWEST_SAFE_SPARE && (empty(keycode) || self.ours.contains(&keycode)))
            .collect()
    }

    /// Keycodes that carry multimedia keys and nothing else, and may carry anything.
    #[must_use]
    pub fn multimedia(&self) -> Vec<u8> {
        let is_multimedia = |keycode: u8| {
            let mut carried = self.row(keycode).iter().filter(|&&keysym| keysym != NO_SYMBOL).peekable();
            carried.peek().is_some()
                && carried.all(|keysym| MULTIMEDIA_KEYSYMS.contains(keysym) && !BROWSER_KEYSYMS.contains(keysym))
        };
        self.keycodes()
            .filter(|&keycode| keycode >= LOWEST_SAFE_SPARE && !self.ours.contains(&keycode) && is_multimedia(keycode))
            .collect()
    }

    /// Keycodes that the server obeys itself with Control and Alt, and what they carry on every other level, where that is one keysym.
    #[must_use]
    pub fn reserved(&self) -> Vec<(u8, u32)> {
        let plain = |keycode: u8| {
            let mut carried = self.row(keycode).iter().filter(|&&keysym| keysym != NO_SYMBOL && !is_for_server(keysym));
            let first = *carried.next()?;
            carried.all(|&keysym| keysym == first).then_some((keycode, first))
        };
        self.keycodes().filter(|&keycode| self.is_reserved(keycode)).filter_map(plain).collect()
    }

    pub(crate) fn is_reserved(&self, keycode: u8) -> bool {
        self.row(keycode).iter().any(|&keysym| is_for_server(keysym))
    }

    /// True when both say the same of every keycode.
    #[must_use]
    pub fn same_as(&self, other: &Self) -> bool {
        self.keycodes().eq(other.keycodes()) && self.keycodes().all(|keycode| self.same_at(other, keycode))
    }

    /// True when both say the same of a keycode.
    #[must_use]
    pub fn same_at(&self, other: &Self, keycode: u8) -> bool {
        self.row_of(keycode) == other.row_of(keycode)
    }

    /// A keycode's row without the empty columns at its end, of which a server reports as many as its widest row needs.
    fn row_of(&self, keycode: u8) -> &[u32] {
        let row = self.row(keycode);
        &row[..row.iter().rposition(|&keysym| keysym != NO_SYMBOL).map_or(0, |last| last + 1)]
    }

    /// True when a slot still carries what the driver put there: a new layout may have replaced it.
    #[must_use]
    pub fn carries(&self, binding: &Binding) -> bool {
        let column = LEVEL_COLUMNS[usize::from(binding.slot.level.unwrap_or(0))];
        self.keycodes().any(|keycode| keycode == binding.slot.keycode)
            && self.row(binding.slot.keycode).get(column) == Some(&binding.keysym)
    }

    /// Keysyms per keycode.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: usize = 7;

    #[test]
    fn legacy_and_unicode_keysyms_are_one_character() {
        let mut rows = vec![0; COLUMNS];
        rows[0] = 0x6d6; // Cyrillic_ve... the legacy keysym of ж
        let map = Keymap::new(8, COLUMNS, rows);
        assert_eq!(map.find(0x0100_0436).map(|stroke| stroke.keycode), Some(8));
    }

    #[test]
    fn multimedia_keys_are_found() {
        let mut rows = vec![vec![0; COLUMNS]; 4];
        rows[1][..2].copy_from_slice(&[0x1008_ff11, 0x1008_ff12]);
        rows[2][..2].copy_from_slice(&[0x61, 0x1008_ff12]);
        rows[3][0] = BROWSER_KEYSYMS[0];
        assert_eq!(Keymap::new(8, COLUMNS, rows.concat()).multimedia(), [9]);
    }
}
