use proptest::prelude::*;
use xkeysym::Keysym;

use super::*;
use crate::keymap::LEVEL_COLUMNS;

const COLUMNS: usize = 7;

/// A small keyboard: `a`, `1!`, Shift, `AltGr`, `e é` on level 3, Return, Caps and `spares` free keycodes.
fn keymap(spares: usize) -> Keymap {
    Keymap::new(8, COLUMNS, keysyms(spares))
}

fn keysyms(spares: usize) -> Vec<u32> {
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
    rows.concat()
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
    assert_eq!(plan(&[Event::Key(meta_right, true)], &map, &Keyboard::default()), Err(Refusal::NoKeycode(meta_right)));
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
    assert_eq!(plan(&[Event::Key(keysym, true)], &keymap(0), &Keyboard::default()), Err(Refusal::NoKeycode(keysym)));
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
    let mut keysyms = keysyms(spares);
    for binding in keyboard.bound() {
        let column = LEVEL_COLUMNS[usize::from(binding.slot.level.unwrap())];
        keysyms[usize::from(binding.slot.keycode - 8) * COLUMNS + column] = binding.keysym;
    }
    Keymap::new(8, COLUMNS, keysyms).with_ours(keyboard.bound())
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
fn a_long_text_is_cut_between_keys() {
    let pages = plan(&typed(&"a".repeat(LONGEST_PAGE)), &keymap(0), &Keyboard::default()).unwrap();
    assert_eq!(pages.len(), 2);
    assert!(pages.iter().all(|page| page.held.is_empty() && page.evict.is_empty()));
    assert_eq!(pages.iter().map(|page| page.events).sum::<usize>(), 2 * LONGEST_PAGE);
}
