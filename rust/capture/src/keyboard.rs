//! Which keycode carries which keysym, and when a spare keycode may carry another: pure, no connection here.
//!
//! A character on the keymap is a keycode and the modifiers of its level. Any other character borrows a spare keycode. The
//! catch: applications look the *current* map up when they handle a key, which may be long after it was sent. A spare keycode
//! must therefore keep its character until the application has handled the keys typed with it. So [`plan`] cuts the events into
//! pages, each of which needs at most the spares there are, and the caller (see `input.rs`) proves between two pages that the
//! first one was consumed.

use std::collections::{HashMap, VecDeque};

use xkeysym::Keysym;

use crate::event::Event;

const NO_SYMBOL: u32 = 0;
const SHIFT_L: u32 = 0xffe1;
const SHIFT_R: u32 = 0xffe2;
const ISO_LEVEL3_SHIFT: u32 = 0xfe03;
/// Keysyms of keys that a remapped page must never touch, and which no character shares: function keys, modifiers, keypad.
const FUNCTION_KEYSYMS: std::ops::RangeInclusive<u32> = 0xfd00..=0xffff;
const KEYPAD_KEYSYMS: std::ops::RangeInclusive<u32> = 0xff80..=0xffbd;
/// Some toolkits treat the lowest keycode as "no key".
const LOWEST_SAFE_SPARE: u8 = 9;
/// Between two pages it is seen whether somebody has changed the layout meanwhile.
const LONGEST_PAGE: usize = 1000;
const LEVEL3_COLUMN: usize = 4;

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

/// What identifies a key: the character for keysyms that stand for one (several keysyms may), else the keysym itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Identity {
    Char(char),
    Keysym(u32),
}

fn identity(keysym: u32) -> Identity {
    if FUNCTION_KEYSYMS.contains(&keysym) {
        return Identity::Keysym(keysym);
    }
    match Keysym::from(keysym).key_char() {
        Some(char) => Identity::Char(char),
        None => Identity::Keysym(keysym),
    }
}

/// The server's core keyboard mapping.
#[derive(Clone, Debug)]
pub struct Keymap {
    first: u8,
    columns: usize,
    keysyms: Vec<u32>,
    strokes: HashMap<Identity, Stroke>,
}

impl Keymap {
    /// From the reply to `GetKeyboardMapping`: `columns` keysyms for each keycode from `first` on.
    ///
    /// Column 0 and 1 are the first group without and with Shift, 4 and 5 the same with `AltGr` (X Keyboard Extension
    /// protocol, §12.4 "core keyboard mapping"). Other groups are not looked at: the group is locked to the first while we type.
    #[must_use]
    pub fn new(first: u8, columns: usize, keysyms: Vec<u32>) -> Self {
        let mut map = Self { first, columns, keysyms, strokes: HashMap::new() };
        let has_level3 = map.keycode_of(ISO_LEVEL3_SHIFT).is_some();
        for (column, shift, level3) in
            [(0, false, false), (1, true, false), (LEVEL3_COLUMN, false, true), (LEVEL3_COLUMN + 1, true, true)]
        {
            if column >= columns || (level3 && !has_level3) {
                continue;
            }
            for index in 0..map.keysyms.len() / columns.max(1) {
                let keysym = map.keysyms[index * columns + column];
                let keypad_only_with_numlock = KEYPAD_KEYSYMS.contains(&keysym) && column > 0;
                // Level 3 of function keys is the switch to a text console, reached with Ctrl+Alt.
                let not_a_character = level3 && matches!(identity(keysym), Identity::Keysym(_));
                if keysym == NO_SYMBOL || keypad_only_with_numlock || not_a_character {
                    continue;
                }
                let keycode = first + index as u8;
                map.strokes.entry(identity(keysym)).or_insert(Stroke { keycode, shift, level3 });
            }
        }
        map
    }

    fn row(&self, keycode: u8) -> &[u32] {
        let start = usize::from(keycode - self.first) * self.columns;
        &self.keysyms[start..start + self.columns]
    }

    fn keycodes(&self) -> impl Iterator<Item = u8> + '_ {
        (0..self.keysyms.len() / self.columns.max(1)).map(|index| self.first + index as u8)
    }

    /// The first keycode that carries this very keysym in its first column.
    #[must_use]
    pub fn keycode_of(&self, keysym: u32) -> Option<u8> {
        self.keycodes().find(|&keycode| self.row(keycode)[0] == keysym)
    }

    /// How to type this keysym, or another that stands for the same character.
    #[must_use]
    pub fn find(&self, keysym: u32) -> Option<Stroke> {
        self.strokes.get(&identity(keysym)).copied()
    }

    /// Keycodes that carry nothing.
    #[must_use]
    pub fn spares(&self) -> Vec<u8> {
        self.keycodes()
            .filter(|&keycode| {
                keycode >= LOWEST_SAFE_SPARE && self.row(keycode).iter().all(|&keysym| keysym == NO_SYMBOL)
            })
            .collect()
    }

    /// True when both say the same of every keycode but the excepted ones.
    #[must_use]
    pub fn same_as(&self, other: &Self, except: impl Fn(u8) -> bool) -> bool {
        self.keycodes().eq(other.keycodes())
            && self.keycodes().all(|keycode| except(keycode) || self.same_at(other, keycode))
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

    /// True when this keycode still carries `keysym` and nothing else: a new layout may have replaced what we put there.
    #[must_use]
    pub fn carries(&self, keycode: u8, keysym: u32) -> bool {
        self.row(keycode).iter().all(|&found| found == keysym || found == NO_SYMBOL) && self.row(keycode)[0] == keysym
    }

    /// Keysyms per keycode.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }
}

/// What to do with the devices, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Keycode pressed or released.
    Key(u8, bool),
    /// Any other event as it is.
    Other(Event),
}

/// A run of steps and the spare keycodes that must carry these keysyms first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// `(keycode, keysym)` to set before the steps.
    pub assign: Vec<(u8, u32)>,
    /// True when `assign` takes keycodes that an earlier page, or an earlier call, has typed with.
    pub reuses: bool,
    /// What to send.
    pub steps: Vec<Step>,
    /// How many of the planned events the steps carry out.
    pub events: usize,
    /// The keys held down after it.
    pub held: Held,
}

/// Keysym and keycode of the keys held down, in the order pressed.
pub type Held = Vec<(u32, Stroke)>;

/// What we hold and what we have borrowed.
#[derive(Clone, Debug, Default)]
pub struct Keyboard {
    held: Held,
    /// Spare keycode → keysym that the server's map carries there now, on our account.
    borrowed: Vec<(u8, u32)>,
}

impl Keyboard {
    /// Spare keycodes that carry something of ours.
    #[must_use]
    pub fn borrowed(&self) -> &[(u8, u32)] {
        &self.borrowed
    }

    /// Forgets the spares that were restored, and those that a new layout took.
    pub fn keep_borrowed(&mut self, keep: impl Fn(u8, u32) -> bool) {
        self.borrowed.retain(|&(keycode, keysym)| keep(keycode, keysym));
    }

    /// Notes that the server's map carries these now.
    pub fn borrow(&mut self, assign: &[(u8, u32)]) {
        self.borrowed.retain(|&(keycode, _)| assign.iter().all(|&(taken, _)| taken != keycode));
        self.borrowed.extend(assign);
    }

    /// Notes which keys are held now.
    pub fn hold(&mut self, held: Held) {
        self.held = held;
    }

    /// True while a key is down.
    #[must_use]
    pub fn holds_any(&self) -> bool {
        !self.held.is_empty()
    }

    /// Forgets every held key (they were released by keycode).
    pub fn forget_held(&mut self) {
        self.held.clear();
    }
}

/// Cuts `events` into pages. What the server's map carries on our account is in `keyboard`, and changes only as pages are sent.
///
/// # Errors
///
/// The keysym for which there is no keycode, not even a spare one.
pub fn plan(events: &[Event], map: &Keymap, keyboard: &Keyboard) -> Result<Vec<Page>, u32> {
    let mut spares = Spares::new(map, keyboard);
    let mut held = keyboard.held.clone();
    let shift_key = map.keycode_of(SHIFT_L);
    let level3_key = map.keycode_of(ISO_LEVEL3_SHIFT);
    let mut pages = Vec::new();
    let mut page = Page::default();

    for &event in events {
        let (keysym, down) = match event {
            Event::Key(keysym, down) => (keysym, down),
            other => {
                page.steps.push(Step::Other(other));
                page.events += 1;
                continue;
            }
        };
        if !down {
            if let Some(index) = held.iter().rposition(|&(key, _)| key == keysym) {
                let (_, stroke) = held.remove(index);
                page.steps.push(Step::Key(stroke.keycode, false));
            }
            page.events += 1;
            continue;
        }
        if page.events >= LONGEST_PAGE {
            turn_page(&mut pages, &mut page, &held);
        }
        // The keymap was read with what we have borrowed in it; a page may take those keycodes for something else.
        let lasting =
            map.find(keysym).filter(|stroke| keyboard.borrowed.iter().all(|&(keycode, _)| keycode != stroke.keycode));
        let stroke = if let Some(stroke) = lasting.or_else(|| spares.carrying(keysym)) {
            stroke
        } else {
            if spares.free.is_empty() {
                spares.evict(&held);
                if !page.steps.is_empty() || !page.assign.is_empty() {
                    turn_page(&mut pages, &mut page, &held);
                }
                page.reuses = true;
            }
            let keycode = spares.free.pop_front().ok_or(keysym)?;
            spares.carried.push((keycode, keysym));
            page.assign.push((keycode, keysym));
            Stroke { keycode, shift: false, level3: false }
        };
        // Level modifiers that the caller holds already are not pressed again, and never released.
        let holds = |keysyms: &[u32]| held.iter().any(|(keysym, _)| keysyms.contains(keysym));
        let shift = shift_key.filter(|_| stroke.shift && !holds(&[SHIFT_L, SHIFT_R]));
        let level3 = level3_key.filter(|_| stroke.level3 && !holds(&[ISO_LEVEL3_SHIFT]));
        let modifiers: Vec<u8> = [level3, shift].into_iter().flatten().collect();
        page.steps.extend(modifiers.iter().map(|&keycode| Step::Key(keycode, true)));
        page.steps.push(Step::Key(stroke.keycode, true));
        page.steps.extend(modifiers.iter().rev().map(|&keycode| Step::Key(keycode, false)));
        held.push((keysym, stroke));
        page.events += 1;
    }
    turn_page(&mut pages, &mut page, &held);
    for page in &mut pages {
        join_shifts(&mut page.steps, &[shift_key, level3_key]);
    }
    Ok(pages)
}

fn turn_page(pages: &mut Vec<Page>, page: &mut Page, held: &Held) {
    page.held.clone_from(held);
    pages.push(std::mem::take(page));
}

/// The spare keycodes while a plan is made.
struct Spares {
    free: VecDeque<u8>,
    carried: Vec<(u8, u32)>,
}

impl Spares {
    fn new(map: &Keymap, keyboard: &Keyboard) -> Self {
        let carried: Vec<_> = keyboard.borrowed.iter().copied().filter(|&(code, sym)| map.carries(code, sym)).collect();
        Self { free: map.spares().into(), carried }
    }

    fn carrying(&self, keysym: u32) -> Option<Stroke> {
        let wanted = identity(keysym);
        let (keycode, _) = self.carried.iter().find(|&&(_, carried)| identity(carried) == wanted)?;
        Some(Stroke { keycode: *keycode, shift: false, level3: false })
    }

    /// A new page may take every borrowed keycode but those that a held key is on.
    fn evict(&mut self, held: &Held) {
        let (stay, evicted): (Vec<_>, Vec<_>) = std::mem::take(&mut self.carried)
            .into_iter()
            .partition(|&(keycode, _)| held.iter().any(|(_, stroke)| stroke.keycode == keycode));
        self.carried = stay;
        self.free = evicted.into_iter().map(|(keycode, _)| keycode).collect();
    }
}

/// Drops a level modifier's release together with its next press when nothing is pressed between them, so that a run of
/// capitals needs one Shift (`⇧↓ A↓ ⇧↑ A↑ ⇧↓ B↓` becomes `⇧↓ A↓ A↑ B↓`): the modifiers at each press stay the same.
fn join_shifts(steps: &mut Vec<Step>, modifiers: &[Option<u8>]) {
    for modifier in modifiers.iter().flatten().copied() {
        let mut out: Vec<Step> = Vec::with_capacity(steps.len());
        let mut release_at: Option<usize> = None;
        for &step in steps.iter() {
            match step {
                Step::Key(keycode, false) if keycode == modifier => {
                    release_at = Some(out.len());
                    out.push(step);
                }
                Step::Key(keycode, true) if keycode == modifier && release_at.is_some() => {
                    out.remove(release_at.take().expect("just checked"));
                }
                Step::Key(_, false) => out.push(step),
                _ => {
                    release_at = None;
                    out.push(step);
                }
            }
        }
        *steps = out;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const COLUMNS: usize = 7;

    /// A small keyboard: `a`, `1!`, Shift, `AltGr`, `e é` on level 3, Return, Caps and `spares` free keycodes.
    fn keymap(spares: usize) -> Keymap {
        let mut rows: Vec<Vec<u32>> = vec![vec![0; COLUMNS]]; // keycode 8, never a spare
        let mut key = |levels: [u32; 4]| {
            rows.push(vec![levels[0], levels[1], levels[0], levels[1], levels[2], levels[3], 0]);
        };
        key([0x61, 0x41, 0, 0]);
        key([0x31, 0x21, 0, 0]);
        key([SHIFT_L, 0, 0, 0]);
        key([ISO_LEVEL3_SHIFT, 0, 0, 0]);
        key([0x65, 0x45, 0xe9, 0xc9]);
        key([0xff0d, 0, 0, 0]);
        for _ in 0..spares {
            rows.push(vec![0; COLUMNS]);
        }
        Keymap::new(8, COLUMNS, rows.concat())
    }

    fn typed(text: &str) -> Vec<Event> {
        text.chars()
            .flat_map(|char| {
                let keysym = match char {
                    '\n' => 0xff0d,
                    _ => Keysym::from_char(char).raw(),
                };
                [Event::Key(keysym, true), Event::Key(keysym, false)]
            })
            .collect()
    }

    /// An application that reads each page with the map as it is then.
    fn read(pages: &[Page], map: &Keymap) -> String {
        let mut spare: HashMap<u8, u32> = HashMap::new();
        let (mut shift, mut level3) = (false, false);
        let mut text = String::new();
        for page in pages {
            spare.extend(page.assign.iter().copied());
            for step in &page.steps {
                let Step::Key(keycode, down) = *step else { continue };
                match map.row(keycode)[0] {
                    SHIFT_L => shift = down,
                    ISO_LEVEL3_SHIFT => level3 = down,
                    _ if !down => {}
                    NO_SYMBOL => text.push(Keysym::from(spare[&keycode]).key_char().unwrap()),
                    0xff0d => text.push('\n'),
                    _ => {
                        let column = usize::from(shift) + if level3 { LEVEL3_COLUMN } else { 0 };
                        text.push(Keysym::from(map.row(keycode)[column]).key_char().unwrap());
                    }
                }
            }
        }
        assert!(!shift && !level3, "a level modifier stayed down");
        text
    }

    proptest! {
        #[test]
        fn any_text_reads_back(text in "[a1!Aeé\nÉжя你☕😀]{0,60}", spares in 1usize..6) {
            let map = keymap(spares);
            let pages = plan(&typed(&text), &map, &Keyboard::default()).unwrap();
            prop_assert_eq!(read(&pages, &map), text);
            prop_assert!(pages.last().unwrap().held.is_empty());
        }

        #[test]
        fn a_page_never_takes_a_keycode_twice(text in "[жяфыва你好☕😀]{0,60}", spares in 1usize..4) {
            let pages = plan(&typed(&text), &keymap(spares), &Keyboard::default()).unwrap();
            for page in &pages {
                let mut keycodes: Vec<u8> = page.assign.iter().map(|&(keycode, _)| keycode).collect();
                keycodes.sort_unstable();
                keycodes.dedup();
                prop_assert_eq!(keycodes.len(), page.assign.len());
                prop_assert!(page.assign.len() <= spares);
            }
            for page in &pages[1..] {
                prop_assert!(page.reuses);
            }
        }
    }

    #[test]
    fn capitals_share_one_shift() {
        let pages = plan(&typed("A!"), &keymap(0), &Keyboard::default()).unwrap();
        let (shift, a, one) = (11, 9, 10);
        let expected = [(shift, true), (a, true), (a, false), (one, true), (shift, false), (one, false)];
        let keys: Vec<_> = expected.iter().map(|&(keycode, down)| Step::Key(keycode, down)).collect();
        assert_eq!(pages[0].steps, keys);
    }

    #[test]
    fn a_held_shift_is_not_released() {
        let events =
            [Event::Key(SHIFT_L, true), Event::Key(0x41, true), Event::Key(0x41, false), Event::Key(SHIFT_L, false)];
        let pages = plan(&events, &keymap(0), &Keyboard::default()).unwrap();
        let keys = [(11, true), (9, true), (9, false), (11, false)].map(|(keycode, down)| Step::Key(keycode, down));
        assert_eq!(pages[0].steps, keys);
    }

    #[test]
    fn without_spares_the_keysym_is_named() {
        let keysym = 0x0100_0436;
        assert_eq!(plan(&[Event::Key(keysym, true)], &keymap(0), &Keyboard::default()).unwrap_err(), keysym);
    }

    #[test]
    fn legacy_and_unicode_keysyms_are_one_character() {
        let mut rows = vec![0; COLUMNS];
        rows[0] = 0x6d6; // Cyrillic_ve... the legacy keysym of ж
        let map = Keymap::new(8, COLUMNS, rows);
        assert_eq!(map.find(0x0100_0436).map(|stroke| stroke.keycode), Some(8));
    }

    #[test]
    fn a_spare_that_a_new_layout_took_is_not_trusted() {
        let first = plan(&typed("ж"), &keymap(2), &Keyboard::default()).unwrap();
        let mut keyboard = Keyboard::default();
        keyboard.borrow(&first[0].assign);
        let again = plan(&typed("ж"), &keymap(2), &keyboard).unwrap();
        assert_eq!(again[0].assign.len(), 1, "the map does not carry it any more, so it is set again");
    }

    #[test]
    fn what_was_borrowed_before_is_not_taken_for_the_layout() {
        let mut rows: Vec<Vec<u32>> = vec![vec![0; COLUMNS]; 3];
        let (zhe, spare) = (0x0100_0436, 10);
        rows[2] = vec![zhe; COLUMNS];
        let map = Keymap::new(8, COLUMNS, rows.concat());
        let mut keyboard = Keyboard::default();
        keyboard.borrow(&[(spare, zhe)]);
        let pages = plan(&typed("ж你好ж"), &map, &keyboard).unwrap();
        let mut carried: HashMap<u8, u32> = keyboard.borrowed().iter().copied().collect();
        let mut text = String::new();
        for page in &pages {
            carried.extend(page.assign.iter().copied());
            for step in &page.steps {
                if let Step::Key(keycode, true) = *step {
                    text.push(Keysym::from(carried[&keycode]).key_char().unwrap());
                }
            }
        }
        assert_eq!(text, "ж你好ж");
    }

    #[test]
    fn a_keycode_that_is_assigned_again_is_borrowed_once() {
        let mut keyboard = Keyboard::default();
        keyboard.borrow(&[(20, 1), (21, 2)]);
        keyboard.borrow(&[(20, 3)]);
        assert_eq!(keyboard.borrowed(), [(21, 2), (20, 3)]);
    }

    #[test]
    fn a_long_text_is_cut_between_keys() {
        let pages = plan(&typed(&"a".repeat(LONGEST_PAGE)), &keymap(0), &Keyboard::default()).unwrap();
        assert_eq!(pages.len(), 2);
        assert!(pages.iter().all(|page| page.held.is_empty() && !page.reuses));
        assert_eq!(pages.iter().map(|page| page.events).sum::<usize>(), 2 * LONGEST_PAGE);
    }
}
