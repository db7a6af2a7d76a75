//! Input events as messages, and what they make of the keys and buttons that are held.

use link::{Event, now};
use rfb::client;

use crate::lock::LOCK_KEYS;
use crate::state::State;

/// Adds an event to what goes out, and notes what it changes.
pub(crate) fn push(state: &mut State, event: Event) {
    match event {
        Event::Move(x, y) => state.pointer = (x, y),
        Event::Button(button, down) => {
            let bit = 1 << (button - 1);
            state.buttons = if down { state.buttons | bit } else { state.buttons & !bit };
        }
        Event::Key(keysym, down) => {
            state.keys.retain(|held| *held != keysym);
            if down {
                if let Some(at) = LOCK_KEYS.iter().position(|lock| *lock == keysym) {
                    state.locks[at].switched(now());
                }
                state.keys.push(keysym);
            }
            return state.push(&client::key(keysym, down));
        }
        Event::Pause(_) => return,
    }
    let ((x, y), buttons) = (state.pointer, state.buttons);
    // Without the extension the ninth bit would count as a mark.
    let message = if state.features.mouse_buttons {
        client::pointer_extended(x, y, buttons)
    } else {
        client::pointer(x, y, buttons)
    };
    state.push(&message);
}

/// The buttons of a mask.
pub(crate) fn held_buttons(mask: u16) -> impl Iterator<Item = u8> {
    (1..=9).filter(move |button| mask >> (button - 1) & 1 == 1)
}

/// Releases all keys and buttons that are held.
pub(crate) fn release_held(state: &mut State) {
    for button in held_buttons(state.buttons) {
        push(state, Event::Button(button, false));
    }
    for keysym in state.keys.clone().into_iter().rev() {
        push(state, Event::Key(keysym, false));
    }
}
