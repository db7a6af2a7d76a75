//! Plans which keys type events, and when a spare keycode may carry another keysym. Pure, without a connection.
//!
//! A character on the keymap is a keycode and the modifiers of its level. Any other character is bound to a level of a spare
//! keycode. The catch: applications look the *current* map up when they handle a key, which may be long after it was sent. So
//! what is bound stays bound. Only when no level is free does [`plan`] name some that must carry others, the longest unused first,
//! and the caller (see `typing.rs`) takes them only after proof that what was typed with them was read.

use std::collections::HashMap;

use link::Event;

use crate::keymap::{Binding, ISO_LEVEL3_SHIFT, Identity, Keymap, NO_SYMBOL, SHIFT_L, Slot, Stroke, WHOLE, identity};

const SHIFT_R: u32 = 0xffe2;
/// `Shift_L` to `Hyper_R`, and the keys of the XKB extension that lock, latch and shift.
const MODIFIER_KEYSYMS: [std::ops::RangeInclusive<u32>; 2] = [0xffe1..=0xffee, 0xfe01..=0xfe13];
/// `Control`, `Meta`, `Alt`, `Super` and `Hyper`, each left (odd) and right. What they do goes by their keycode, so that a spare one
/// would do nothing.
const STATE_KEYSYMS: [std::ops::RangeInclusive<u32>; 2] = [0xffe3..=0xffe4, 0xffe7..=0xffee];
/// Left and right.
const CONTROLS: [u32; 2] = [0xffe3, 0xffe4];
const ALTS: [u32; 2] = [0xffe9, 0xffea];
/// Between two pages, the driver checks whether the layout has changed.
const LONGEST_PAGE: usize = 1000;
/// This part of the bindings is given up at once, so that a long text in a large script needs few proofs.
const EVICTED_SHARE: usize = 2;
/// This part of the keycodes is kept for keys that are the same on all levels.
const KEPT_WHOLE: usize = 12;

/// Why events cannot be typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no keycode for this keysym, not even a spare one.
    NoKeycode(u32),
    /// The server obeys this key itself while Control and Alt are held: no application sees it.
    Reserved(u32),
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

    /// Whether a key at this place means what it should while these are held.
    fn allows(&self, slot: Slot) -> bool {
        match slot.level {
            None => true,
            Some(0) => !self.level,
            Some(_) => !self.modifier,
        }
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
    /// What is given up first, once the windows that may have to look it up have done so.
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

/// What is held and bound.
#[derive(Clone, Debug, Default)]
pub struct Keyboard {
    held: Held,
    /// The keysyms that the driver has put into the server's map, the longest unused first.
    bound: Vec<Binding>,
    /// Windows that have not shown that they have read their keys: bindings of other windows are given up first.
    silent: Vec<u32>,
}

impl Keyboard {
    /// The keysyms that the driver has put into the server's map, the longest unused first.
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

    /// Notes that `window` will have to look these up; true if it was not noted before.
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

    /// Notes that `window` has not shown that it has looked up what was typed into it; true if it was not noted before.
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

/// Cuts `events` into pages. `keyboard` has what the driver has put into the server's map, which changes only as pages are sent.
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
        self.places.get(&identity(keysym))?.iter().copied().find(|&slot| holding.allows(slot))
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

    /// Gives up what was longest unused, except for keys that are held. What a silent window may have to look up goes only if
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
mod tests;
