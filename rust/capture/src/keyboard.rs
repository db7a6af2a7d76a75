//! Which keycode carries which keysym, and when a spare keycode may carry another: pure, no connection here.
//!
//! A character on the keymap is a keycode and the modifiers of its level. Any other character borrows a spare keycode. The
//! catch: applications look the *current* map up when they handle a key, which may be long after it was sent. A spare keycode
//! must therefore keep its character until the application has handled the keys typed with it. So [`plan`] cuts the events into
//! pages, each of which needs at most the spares there are, and the caller (see `input.rs`) proves between two pages that the
//! first one was consumed.

use std::collections::HashMap;

use xkeysym::Keysym;

use crate::event::Event;

const NO_SYMBOL: u32 = 0;
const SHIFT_L: u32 = 0xffe1;
const ISO_LEVEL3_SHIFT: u32 = 0xfe03;
/// Keysyms of keys that a remapped page must never touch, and which no character shares: function keys, modifiers, keypad.
const FUNCTION_KEYSYMS: std::ops::RangeInclusive<u32> = 0xfd00..=0xffff;
const KEYPAD_KEYSYMS: std::ops::RangeInclusive<u32> = 0xff80..=0xffbd;
/// Some toolkits treat the lowest keycode as "no key".
const LOWEST_SAFE_SPARE: u8 = 9;
const LEVEL3_COLUMN: usize = 4;

/// A keycode and the level modifiers it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stroke {
    /// X keycode, 8–255.
    pub keycode: u8,
    /// Needs Shift.
    pub shift: bool,
    /// Needs ISO Level 3 Shift (AltGr).
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
}

/// The pages of one call, and the keyboard as it will be after them.
#[derive(Debug)]
pub struct Plan {
    /// To be sent in order.
    pub pages: Vec<Page>,
    /// The state to keep for the next call.
    pub keyboard: Keyboard,
}

/// What we hold and what we have borrowed.
#[derive(Clone, Debug, Default)]
pub struct Keyboard {
    /// Keysym → keycode for the keys held down, in the order pressed.
    held: Vec<(u32, Stroke)>,
    /// Spare keycode → keysym that it carries now.
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

    /// True while a key is down.
    #[must_use]
    pub fn holds_any(&self) -> bool {
        !self.held.is_empty()
    }

    /// Forgets every held key (they were released by keycode).
    pub fn forget_held(&mut self) {
        self.held.clear();
    }

    fn borrowed_stroke(&self, keysym: u32) -> Option<Stroke> {
        let wanted = identity(keysym);
        self.borrowed.iter().find(|&&(_, borrowed)| identity(borrowed) == wanted).map(|&(keycode, _)| Stroke {
            keycode,
            shift: false,
            level3: false,
        })
    }

    fn is_held(&self, keysyms: &[u32]) -> bool {
        self.held.iter().any(|(keysym, _)| keysyms.contains(keysym))
    }
}

/// Cuts `events` into pages.
///
/// # Errors
///
/// The keysym for which there is no keycode, not even a spare one; nothing is changed then.
pub fn plan(events: &[Event], map: &Keymap, mut keyboard: Keyboard) -> Result<Plan, u32> {
    keyboard.keep_borrowed(|keycode, keysym| map.carries(keycode, keysym));
    let mut free = map.spares();
    let capacity = free.len() + keyboard.borrowed.len();
    let shift_key = map.keycode_of(SHIFT_L);
    let level3_key = map.keycode_of(ISO_LEVEL3_SHIFT);
    let mut pages = vec![Page::default()];

    for &event in events {
        let page = pages.last_mut().expect("there is always a page");
        let (keysym, down) = match event {
            Event::Key(keysym, down) => (keysym, down),
            other => {
                page.steps.push(Step::Other(other));
                page.events += 1;
                continue;
            }
        };
        if !down {
            if let Some(index) = keyboard.held.iter().rposition(|&(held, _)| held == keysym) {
                let (_, stroke) = keyboard.held.remove(index);
                page.steps.push(Step::Key(stroke.keycode, false));
            }
            page.events += 1;
            continue;
        }
        let stroke = match map.find(keysym).or_else(|| keyboard.borrowed_stroke(keysym)) {
            Some(stroke) => stroke,
            None => {
                if free.is_empty() {
                    // A new page may take every borrowed keycode but those that a held key is on.
                    let (stay, evicted): (Vec<_>, Vec<_>) = keyboard
                        .borrowed
                        .iter()
                        .partition(|&&(keycode, _)| keyboard.held.iter().any(|(_, stroke)| stroke.keycode == keycode));
                    keyboard.borrowed = stay;
                    free = evicted.into_iter().map(|(keycode, _)| keycode).collect();
                    if !page.steps.is_empty() || !page.assign.is_empty() {
                        pages.push(Page::default());
                    }
                    pages.last_mut().expect("there is always a page").reuses = true;
                }
                if capacity == 0 || free.is_empty() {
                    return Err(keysym);
                }
                let keycode = free.remove(0);
                keyboard.borrowed.push((keycode, keysym));
                pages.last_mut().expect("there is always a page").assign.push((keycode, keysym));
                Stroke { keycode, shift: false, level3: false }
            }
        };
        let page = pages.last_mut().expect("there is always a page");
        // Level modifiers that the caller holds already are not pressed again, and never released.
        let shift = shift_key.filter(|_| stroke.shift && !keyboard.is_held(&[SHIFT_L, SHIFT_L + 1]));
        let level3 = level3_key.filter(|_| stroke.level3 && !keyboard.is_held(&[ISO_LEVEL3_SHIFT]));
        let modifiers: Vec<u8> = [level3, shift].into_iter().flatten().collect();
        page.steps.extend(modifiers.iter().map(|&keycode| Step::Key(keycode, true)));
        page.steps.push(Step::Key(stroke.keycode, true));
        page.steps.extend(modifiers.iter().rev().map(|&keycode| Step::Key(keycode, false)));
        keyboard.held.push((keysym, stroke));
        page.events += 1;
    }
    for page in &mut pages {
        join_shifts(&mut page.steps, &[shift_key, level3_key]);
    }
    Ok(Plan { pages, keyboard })
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
    fn read(plan: &Plan, map: &Keymap) -> String {
        let mut spare: HashMap<u8, u32> = HashMap::new();
        let (mut shift, mut level3) = (false, false);
        let mut text = String::new();
        for page in &plan.pages {
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
            let plan = plan(&typed(&text), &map, Keyboard::default()).unwrap();
            prop_assert_eq!(read(&plan, &map), text);
            prop_assert!(!plan.keyboard.holds_any());
        }

        #[test]
        fn a_page_never_takes_a_keycode_twice(text in "[жяфыва你好☕😀]{0,60}", spares in 1usize..4) {
            let plan = plan(&typed(&text), &keymap(spares), Keyboard::default()).unwrap();
            for page in &plan.pages {
                let mut keycodes: Vec<u8> = page.assign.iter().map(|&(keycode, _)| keycode).collect();
                keycodes.sort_unstable();
                keycodes.dedup();
                prop_assert_eq!(keycodes.len(), page.assign.len());
                prop_assert!(page.assign.len() <= spares);
            }
            for page in &plan.pages[1..] {
                prop_assert!(page.reuses);
            }
        }
    }

    #[test]
    fn capitals_share_one_shift() {
        let plan = plan(&typed("A!"), &keymap(0), Keyboard::default()).unwrap();
        let (shift, a, one) = (11, 9, 10);
        let expected = [(shift, true), (a, true), (a, false), (one, true), (shift, false), (one, false)];
        let keys: Vec<_> = expected.iter().map(|&(keycode, down)| Step::Key(keycode, down)).collect();
        assert_eq!(plan.pages[0].steps, keys);
    }

    #[test]
    fn a_held_shift_is_not_released() {
        let events =
            [Event::Key(SHIFT_L, true), Event::Key(0x41, true), Event::Key(0x41, false), Event::Key(SHIFT_L, false)];
        let plan = plan(&events, &keymap(0), Keyboard::default()).unwrap();
        let keys = [(11, true), (9, true), (9, false), (11, false)].map(|(keycode, down)| Step::Key(keycode, down));
        assert_eq!(plan.pages[0].steps, keys);
    }

    #[test]
    fn without_spares_the_keysym_is_named() {
        assert_eq!(plan(&typed("ж"), &keymap(0), Keyboard::default()).unwrap_err(), 0x0100_0436);
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
        let first = plan(&typed("ж"), &keymap(2), Keyboard::default()).unwrap();
        assert_eq!(first.keyboard.borrowed().len(), 1);
        let again = plan(&typed("ж"), &keymap(2), first.keyboard).unwrap();
        assert_eq!(again.pages[0].assign.len(), 1, "the map does not carry it any more, so it is set again");
    }
}
