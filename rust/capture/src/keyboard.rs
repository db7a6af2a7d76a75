//! Which keycode carries which keysym, and when a keycode of ours may carry another: pure, no connection here.
//!
//! A character on the keymap is a keycode and the modifiers of its level. Any other character is bound to a level of a spare
//! keycode. The catch: applications look the *current* map up when they handle a key, which may be long after it was sent. So
//! what is bound stays bound. Only when no level is free does [`plan`] name some that must carry others, the longest unused first,
//! and the caller (see `input.rs`) takes them only after proof that what was typed with them was read.

use std::collections::HashMap;

use xkeysym::Keysym;

use crate::event::Event;

const NO_SYMBOL: u32 = 0;
const SHIFT_L: u32 = 0xffe1;
const SHIFT_R: u32 = 0xffe2;
const ISO_LEVEL3_SHIFT: u32 = 0xfe03;
/// Keysyms of keys that a remapped page must never touch, and which no character shares: function keys, modifiers, keypad.
const FUNCTION_KEYSYMS: std::ops::RangeInclusive<u32> = 0xfd00..=0xffff;
const KEYPAD_KEYSYMS: std::ops::RangeInclusive<u32> = 0xff80..=0xffbd;
/// `Shift_L` to `Hyper_R`, and the keys of the XKB extension that lock, latch and shift.
const MODIFIER_KEYSYMS: [std::ops::RangeInclusive<u32>; 2] = [0xffe1..=0xffee, 0xfe01..=0xfe13];
/// `Control`, `Meta`, `Alt`, `Super` and `Hyper`, each left (odd) and right. What they do goes by their keycode, so that a spare one
/// would do nothing.
const STATE_KEYSYMS: [std::ops::RangeInclusive<u32>; 2] = [0xffe3..=0xffe4, 0xffe7..=0xffee];
/// Left and right.
const CONTROLS: [u32; 2] = [0xffe3, 0xffe4];
const ALTS: [u32; 2] = [0xffe9, 0xffea];
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
/// Between two pages it is seen whether somebody has changed the layout meanwhile.
const LONGEST_PAGE: usize = 1000;
/// The columns of the core keyboard mapping that stand for the four levels of the first group.
const LEVEL_COLUMNS: [usize; 4] = [0, 1, 4, 5];
/// One of so many bindings is given up at once, so that a long text in a large script needs few proofs.
const EVICTED_SHARE: usize = 2;
/// One of so many keycodes is kept for keys that are the same on all levels.
const KEPT_WHOLE: usize = 12;
/// The four levels have a bit each, and so has a key that is the same on all of them.
const WHOLE: u8 = 1 << 4;

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

fn is_for_server(keysym: u32) -> bool {
    SERVER_KEYSYMS.iter().any(|range| range.contains(&keysym))
}

/// Why events cannot be typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no keycode for this keysym, not even a spare one.
    NoKeycode(u32),
    /// The server obeys this key itself while Control and Alt are held: no application sees it.
    Reserved(u32),
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
    fn bit(self) -> u8 {
        self.level.map_or(WHOLE, |level| 1 << level)
    }

    fn stroke(self) -> Stroke {
        Stroke::at(self.keycode, self.level.unwrap_or(0))
    }

    fn serves(self, holding: &Holding) -> bool {
        match self.level {
            None => true,
            Some(0) => !holding.level,
            Some(_) => !holding.modifier,
        }
    }
}

/// A keysym that the server's map carries on our account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// Where.
    pub slot: Slot,
    /// Which.
    pub keysym: u32,
    /// The windows that may still have to look it up.
    pub windows: Vec<u32>,
}

/// Which modifiers the caller holds.
struct Holding {
    modifier: bool,
    /// One that changes the level.
    level: bool,
    /// Control and Alt, and none that changes the level: a level of their own on some keys.
    control_alt: bool,
}

impl Holding {
    fn of(held: &Held) -> Self {
        let holds = |is: fn(u32) -> bool| held.iter().any(|&(keysym, _)| is(keysym));
        let level = holds(|keysym| [SHIFT_L, SHIFT_R, ISO_LEVEL3_SHIFT].contains(&keysym));
        Self {
            modifier: holds(|keysym| MODIFIER_KEYSYMS.iter().any(|range| range.contains(&keysym))),
            level,
            control_alt: !level && holds(|keysym| CONTROLS.contains(&keysym)) && holds(|keysym| ALTS.contains(&keysym)),
        }
    }
}

/// The server's core keyboard mapping.
#[derive(Clone, Debug)]
pub struct Keymap {
    first: u8,
    columns: usize,
    keysyms: Vec<u32>,
    /// Keycodes that carry keysyms on our account.
    ours: Vec<u8>,
    /// The XKB key type whose levels are chosen by Shift and `AltGr`.
    four_levels: Option<u8>,
    strokes: HashMap<Identity, Stroke>,
}

impl Keymap {
    /// From the reply to `GetKeyboardMapping`: `columns` keysyms for each keycode from `first` on.
    ///
    /// Column 0 and 1 are the first group without and with Shift, 4 and 5 the same with `AltGr` (X Keyboard Extension
    /// protocol, §12.4 "core keyboard mapping"). Other groups are not looked at: the group is locked to the first while we type.
    #[must_use]
    pub fn new(first: u8, columns: usize, keysyms: Vec<u32>) -> Self {
        Self { first, columns, keysyms, ours: Vec::new(), four_levels: None, strokes: HashMap::new() }.with_ours(&[])
    }

    /// The same where `bound` is on our account, so that it is no part of the layout.
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
    fn levels(&self) -> u8 {
        match (self.keycode_of(SHIFT_L), self.keycode_of(ISO_LEVEL3_SHIFT).and(self.four_levels)) {
            (Some(_), Some(_)) => 4,
            (Some(_), None) if self.columns > 1 => 2,
            _ => 1,
        }
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

    fn is_reserved(&self, keycode: u8) -> bool {
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

    /// True when a slot still carries what we put there: a new layout may have replaced it.
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

/// What to do with the devices, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Keycode pressed or released.
    Key(u8, bool),
    /// Any other event as it is.
    Other(Event),
}

/// A run of steps, and what the server's map must carry before them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// What is given up first, once those who may have to look it up have.
    pub evict: Vec<Slot>,
    /// What is bound then.
    pub bind: Vec<(Slot, u32)>,
    /// What the steps type with.
    pub uses: Vec<Slot>,
    /// What to send.
    pub steps: Vec<Step>,
    /// How many of the planned events the steps carry out.
    pub events: usize,
    /// The keys held down after it.
    pub held: Held,
}

/// Keysym and keycode of the keys held down, in the order pressed.
pub type Held = Vec<(u32, Stroke)>;

/// What we hold and what we have bound.
#[derive(Clone, Debug, Default)]
pub struct Keyboard {
    held: Held,
    /// What the server's map carries on our account, the longest unused first.
    bound: Vec<Binding>,
    /// Windows that have not shown that they have read their keys: what others have typed with is given up first.
    silent: Vec<u32>,
}

impl Keyboard {
    /// What the server's map carries on our account, the longest unused first.
    #[must_use]
    pub fn bound(&self) -> &[Binding] {
        &self.bound
    }

    /// What is bound to a keycode, from its first level on.
    #[must_use]
    pub fn row(&self, keycode: u8) -> Vec<u32> {
        let mut row = Vec::new();
        for binding in self.bound.iter().filter(|binding| binding.slot.keycode == keycode) {
            let level = usize::from(binding.slot.level.unwrap_or(0));
            row.resize(row.len().max(level + 1), NO_SYMBOL);
            row[level] = binding.keysym;
        }
        row
    }

    /// Keeps only these, such as those that a new layout has left.
    pub fn keep_bound(&mut self, keep: impl Fn(&Binding) -> bool) {
        self.bound.retain(keep);
    }

    /// Notes that the server's map carries this, too.
    pub fn bind(&mut self, binding: Binding) {
        self.bound.push(binding);
    }

    /// Notes that `window` will have to look these up; true when that is news.
    pub fn typed_into(&mut self, window: Option<u32>, slots: &[Slot]) -> bool {
        let mut news = false;
        for &slot in slots {
            let Some(index) = self.bound.iter().rposition(|binding| binding.slot == slot) else { continue };
            if let Some(window) = window.filter(|window| !self.bound[index].windows.contains(window)) {
                self.bound[index].windows.push(window);
                news = true;
            }
            self.bound[index..].rotate_left(1);
        }
        news
    }

    /// Notes that `window` has not shown that it has looked up what was typed into it; true when that is news.
    pub fn unread_by(&mut self, window: u32) -> bool {
        let news = !self.silent.contains(&window);
        if news {
            self.silent.push(window);
        }
        news
    }

    /// Notes that `window` has looked up whatever was typed into it.
    pub fn read_by(&mut self, window: u32) {
        self.silent.retain(|&other| other != window);
        for binding in &mut self.bound {
            binding.windows.retain(|&other| other != window);
        }
    }

    /// Notes which keys are held now.
    pub fn hold(&mut self, held: Held) {
        self.held = held;
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
/// The first key that cannot be typed, and why.
pub fn plan(events: &[Event], map: &Keymap, keyboard: &Keyboard) -> Result<Vec<Page>, Refusal> {
    let mut spares = None;
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
        let holding = Holding::of(&held);
        let sets_state = STATE_KEYSYMS.iter().any(|range| range.contains(&keysym));
        let other_side = || map.find(if keysym % 2 == 1 { keysym + 1 } else { keysym - 1 });
        let stroke = if let Some(stroke) = map.find(keysym) {
            stroke
        } else if sets_state {
            other_side().ok_or(Refusal::NoKeycode(keysym))?
        } else {
            let spares = spares.get_or_insert_with(|| Spares::new(map, keyboard));
            let slot = if let Some(slot) = spares.carrying(keysym, &holding) {
                slot
            } else {
                let whole = holding.modifier || matches!(identity(keysym), Identity::Keysym(_));
                if spares.room(whole).is_none() {
                    if !page.steps.is_empty() || !page.bind.is_empty() {
                        turn_page(&mut pages, &mut page, &held);
                    }
                    page.evict.extend(spares.evict(whole, &held));
                }
                let slot = spares.room(whole).ok_or(Refusal::NoKeycode(keysym))?;
                spares.bind(Binding { slot, keysym, windows: Vec::new() });
                page.bind.push((slot, keysym));
                slot
            };
            spares.note_use(slot);
            page.uses.push(slot);
            slot.stroke()
        };
        if holding.control_alt && !stroke.shift && !stroke.level3 && map.is_reserved(stroke.keycode) {
            return Err(Refusal::Reserved(keysym));
        }
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
struct Spares<'a> {
    keycodes: Vec<u8>,
    /// How many of them carry a keysym for each level.
    split: usize,
    levels: u8,
    silent: &'a [u32],
    /// The longest unused first.
    bound: Vec<Binding>,
    /// Where a character or key is; in several places only where it was also pressed with modifiers.
    places: HashMap<Identity, Vec<Slot>>,
    /// The bits of each keycode's slots that carry something.
    taken: [u8; 256],
}

impl<'a> Spares<'a> {
    fn new(map: &Keymap, keyboard: &'a Keyboard) -> Self {
        let keycodes = map.spares();
        let mut spares = Self {
            split: keycodes.len() - keycodes.len() / KEPT_WHOLE,
            keycodes,
            levels: map.levels(),
            silent: &keyboard.silent,
            bound: Vec::new(),
            places: HashMap::new(),
            taken: [0; 256],
        };
        for binding in keyboard.bound.iter().filter(|binding| map.carries(binding)) {
            spares.bind(binding.clone());
        }
        spares
    }

    fn carrying(&self, keysym: u32, holding: &Holding) -> Option<Slot> {
        self.places.get(&identity(keysym))?.iter().copied().find(|slot| slot.serves(holding))
    }

    fn note_use(&mut self, slot: Slot) {
        if let Some(index) = self.bound.iter().rposition(|binding| binding.slot == slot) {
            self.bound[index..].rotate_left(1);
        }
    }

    /// The first free slot. The first levels come first, for they need no modifier.
    fn room(&self, whole: bool) -> Option<Slot> {
        let taken = |keycode: u8| self.taken[usize::from(keycode)];
        if whole {
            let keycode = self.keycodes.iter().copied().rfind(|&keycode| taken(keycode) == 0)?;
            return Some(Slot { keycode, level: None });
        }
        (0..self.levels).find_map(|level| {
            let mut keycodes = self.keycodes[..self.split].iter().copied();
            let keycode = keycodes.find(|&keycode| taken(keycode) & (WHOLE | 1 << level) == 0)?;
            Some(Slot { keycode, level: Some(level) })
        })
    }

    fn bind(&mut self, binding: Binding) {
        self.taken[usize::from(binding.slot.keycode)] |= binding.slot.bit();
        self.places.entry(identity(binding.keysym)).or_default().push(binding.slot);
        self.bound.push(binding);
    }

    /// Gives up what was longest unused, but nothing that a held key is on. What a silent window may have to look up goes only where
    /// there is nothing else.
    fn evict(&mut self, whole: bool, held: &Held) -> Vec<Slot> {
        let stays = |slot: Slot| held.iter().any(|(_, stroke)| stroke.keycode == slot.keycode);
        let is_silent = |binding: &Binding| binding.windows.iter().any(|window| self.silent.contains(window));
        let (slow, quick): (Vec<_>, Vec<_>) =
            self.bound.iter().filter(|binding| !stays(binding.slot)).partition(|binding| is_silent(binding));
        let candidates = if quick.is_empty() { slow } else { quick };
        let evicted: Vec<Slot> = if whole {
            // One keycode with all that it carries.
            let all_of = |keycode: u8| self.bound.iter().filter(move |binding| binding.slot.keycode == keycode);
            let is_candidate = |binding: &Binding| candidates.iter().any(|candidate| candidate.slot == binding.slot);
            let free = candidates.iter().map(|binding| binding.slot.keycode);
            let chosen =
                free.clone().find(|&keycode| all_of(keycode).all(is_candidate)).or_else(|| free.clone().next());
            chosen.into_iter().flat_map(all_of).map(|binding| binding.slot).collect()
        } else {
            let share = self.bound.len().div_ceil(EVICTED_SHARE);
            candidates.iter().take(share).map(|binding| binding.slot).collect()
        };
        for slot in &evicted {
            self.taken[usize::from(slot.keycode)] &= !slot.bit();
        }
        self.bound.retain(|binding| !evicted.contains(&binding.slot));
        for places in self.places.values_mut() {
            places.retain(|slot| !evicted.contains(slot));
        }
        evicted
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
        let mut keyboard = Keyboard::default();
        let (mut shift, mut level3) = (false, false);
        let mut text = String::new();
        for page in pages {
            keyboard.keep_bound(|binding| !page.evict.contains(&binding.slot));
            for &(slot, keysym) in &page.bind {
                keyboard.bind(Binding { slot, keysym, windows: Vec::new() });
            }
            for step in &page.steps {
                let Step::Key(keycode, down) = *step else { continue };
                match map.row(keycode)[0] {
                    SHIFT_L => shift = down,
                    ISO_LEVEL3_SHIFT => level3 = down,
                    _ if !down => {}
                    NO_SYMBOL => {
                        let level = usize::from(shift) + 2 * usize::from(level3);
                        text.push(Keysym::from(keyboard.row(keycode)[level]).key_char().unwrap());
                    }
                    0xff0d => text.push('\n'),
                    _ => {
                        let column = LEVEL_COLUMNS[usize::from(shift) + 2 * usize::from(level3)];
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
            for four_levels in [None, Some(4)] {
                let map = keymap(spares).with_four_levels(four_levels);
                let pages = plan(&typed(&text), &map, &Keyboard::default()).unwrap();
                prop_assert_eq!(read(&pages, &map), text.clone());
                prop_assert!(pages.last().unwrap().held.is_empty());
            }
        }

        #[test]
        fn nothing_is_taken_away_within_a_page(text in "[жяфыва你好世界☕😀]{0,60}", spares in 1usize..4) {
            let pages = plan(&typed(&text), &keymap(spares), &Keyboard::default()).unwrap();
            let mut carried = std::collections::HashSet::new();
            for page in &pages {
                carried.retain(|slot| !page.evict.contains(slot));
                prop_assert!(page.bind.iter().all(|&(slot, _)| carried.insert(slot)));
                prop_assert!(page.uses.iter().all(|slot| carried.contains(slot)));
                prop_assert!(carried.len() <= 2 * spares);
            }
        }
    }

    #[test]
    fn a_modifier_that_the_layout_has_on_one_side_only_is_that_key() {
        let (meta_right, hyper_left, hyper_right) = (0xffe8, 0xffed, 0xffee);
        let map = Keymap::new(8, 2, vec![SHIFT_L, 0, 0, hyper_left, 0, 0]);
        let events = [Event::Key(hyper_right, true), Event::Key(hyper_right, false)];
        let pages = plan(&events, &map, &Keyboard::default()).expect("a key");
        let steps: Vec<Step> = pages.into_iter().flat_map(|page| page.steps).collect();
        let shifted = [Step::Key(8, true), Step::Key(9, true), Step::Key(8, false), Step::Key(9, false)];
        assert_eq!(steps, shifted);
        assert_eq!(
            plan(&[Event::Key(meta_right, true)], &map, &Keyboard::default()),
            Err(Refusal::NoKeycode(meta_right))
        );
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
        assert_eq!(
            plan(&[Event::Key(keysym, true)], &keymap(0), &Keyboard::default()),
            Err(Refusal::NoKeycode(keysym))
        );
    }

    #[test]
    fn legacy_and_unicode_keysyms_are_one_character() {
        let mut rows = vec![0; COLUMNS];
        rows[0] = 0x6d6; // Cyrillic_ve... the legacy keysym of ж
        let map = Keymap::new(8, COLUMNS, rows);
        assert_eq!(map.find(0x0100_0436).map(|stroke| stroke.keycode), Some(8));
    }

    /// A keyboard with these on the first levels of keycodes from the first spare one on.
    fn bound(rows: &[&[u32]]) -> Keyboard {
        let mut keyboard = Keyboard::default();
        for (keycode, row) in (FIRST_SPARE..).zip(rows) {
            for (level, &keysym) in (0..).zip(*row) {
                let slot = Slot { keycode, level: Some(level) };
                keyboard.bind(Binding { slot, keysym, windows: Vec::new() });
            }
        }
        keyboard
    }

    /// The keymap as the server has it with these in it.
    fn carrying(spares: usize, keyboard: &Keyboard) -> Keymap {
        let mut map = keymap(spares);
        for binding in keyboard.bound() {
            let column = LEVEL_COLUMNS[usize::from(binding.slot.level.unwrap())];
            map.keysyms[usize::from(binding.slot.keycode - 8) * COLUMNS + column] = binding.keysym;
        }
        map.with_ours(keyboard.bound())
    }

    fn slot(index: u8, level: u8) -> Slot {
        Slot { keycode: FIRST_SPARE + index, level: Some(level) }
    }

    const ZHE: u32 = 0x0100_0436;
    const YA: u32 = 0x0100_044f;
    const FIRST_SPARE: u8 = 15;

    #[test]
    fn a_spare_that_a_new_layout_took_is_not_trusted() {
        let again = plan(&typed("ж"), &keymap(2), &bound(&[&[ZHE]])).unwrap();
        assert_eq!(again[0].bind.len(), 1, "the map does not carry it any more, so it is set again");
    }

    #[test]
    fn what_is_bound_is_typed_again_without_a_change() {
        let keyboard = bound(&[&[YA, ZHE]]);
        let pages = plan(&typed("жя"), &carrying(2, &keyboard), &keyboard).unwrap();
        assert!(pages.iter().all(|page| page.bind.is_empty() && page.evict.is_empty()));
        assert_eq!(pages[0].uses, [slot(0, 1), slot(0, 0)]);
        let pressed = pages[0].steps.iter().filter_map(|step| match *step {
            Step::Key(keycode, true) => Some(keycode),
            _ => None,
        });
        assert_eq!(pressed.collect::<Vec<_>>(), [11, FIRST_SPARE, FIRST_SPARE], "the second level needs Shift");
    }

    #[test]
    fn the_longest_unused_go_first_and_held_ones_stay() {
        let mut keyboard = bound(&[&[1, 2], &[3, 4], &[5, 6]]);
        keyboard.typed_into(Some(7), &[slot(0, 1), slot(2, 0)]);
        keyboard.hold(vec![(3, slot(1, 0).stroke())]);
        let pages = plan(&typed("ж"), &carrying(3, &keyboard), &keyboard).unwrap();
        // Half of six; the second key is held.
        assert_eq!(pages.last().unwrap().evict, [slot(0, 0), slot(2, 1), slot(0, 1)]);
    }

    #[test]
    fn what_a_silent_window_may_look_up_goes_last() {
        let mut keyboard = bound(&[&[1, 2], &[3, 4]]);
        keyboard.typed_into(Some(7), &[slot(0, 0), slot(0, 1), slot(1, 0)]);
        keyboard.typed_into(Some(8), &[slot(1, 1)]);
        assert!(keyboard.unread_by(7));
        assert!(!keyboard.unread_by(7));
        let evicted = |keyboard: &Keyboard| {
            plan(&typed("ж"), &carrying(2, keyboard), keyboard).unwrap().last().unwrap().evict.clone()
        };
        assert_eq!(evicted(&keyboard), [slot(1, 1)]);
        keyboard.unread_by(8);
        assert_eq!(evicted(&keyboard), [slot(0, 0), slot(0, 1)]);
    }

    #[test]
    fn a_key_pressed_with_a_modifier_is_the_same_on_every_level() {
        let keyboard = bound(&[&[YA, ZHE]]);
        let events = [Event::Key(SHIFT_L, true), Event::Key(ZHE, true)];
        let pages = plan(&events, &carrying(2, &keyboard), &keyboard).unwrap();
        assert_eq!(pages[0].bind, [(Slot { keycode: 16, level: None }, ZHE)]);
        assert_eq!(pages[0].steps, [Step::Key(11, true), Step::Key(16, true)]);
        // Where no keycode is empty, one is emptied.
        let pages = plan(&events, &carrying(1, &keyboard), &keyboard).unwrap();
        assert_eq!(pages[1].evict, [slot(0, 0), slot(0, 1)]);
        assert_eq!(pages[1].bind, [(Slot { keycode: FIRST_SPARE, level: None }, ZHE)]);
    }

    #[test]
    fn a_window_is_noted_once() {
        let mut keyboard = bound(&[&[1], &[2]]);
        assert!(keyboard.typed_into(Some(7), &[slot(0, 0)]));
        assert!(!keyboard.typed_into(Some(7), &[slot(0, 0), slot(0, 0)]));
        assert!(!keyboard.typed_into(None, &[slot(1, 0)]));
        keyboard.read_by(7);
        assert!(keyboard.bound().iter().all(|binding| binding.windows.is_empty()));
    }

    #[test]
    fn multimedia_keys_are_found() {
        let mut rows = vec![vec![0; COLUMNS]; 4];
        rows[1][..2].copy_from_slice(&[0x1008_ff11, 0x1008_ff12]);
        rows[2][..2].copy_from_slice(&[0x61, 0x1008_ff12]);
        rows[3][0] = BROWSER_KEYSYMS[0];
        assert_eq!(Keymap::new(8, COLUMNS, rows.concat()).multimedia(), [9]);
    }

    #[test]
    fn a_long_text_is_cut_between_keys() {
        let pages = plan(&typed(&"a".repeat(LONGEST_PAGE)), &keymap(0), &Keyboard::default()).unwrap();
        assert_eq!(pages.len(), 2);
        assert!(pages.iter().all(|page| page.held.is_empty() && page.evict.is_empty()));
        assert_eq!(pages.iter().map(|page| page.events).sum::<usize>(), 2 * LONGEST_PAGE);
    }
}
