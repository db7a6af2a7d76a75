//! What a driver has bound on a display, as a property of the root window: if the driver is killed, the next one takes it over.
//!
//! Three kinds of words for each binding: the keycode, the level (4 for all alike) and the number of windows; the keysym; the windows
//! that may still have to look it up.

use x11rb::connection::Connection;
use x11rb::protocol::xproto::{AtomEnum, ConnectionExt as _, PropMode};
use x11rb::wrapper::ConnectionExt as _;

use crate::error::Result;
use crate::keymap::{Binding, Slot};
use crate::replies;
use crate::server::Server;

/// Words: enough for four levels of 248 keycodes, each with as many windows as are noted.
const MAX_WORDS: u32 = 64 << 10;
const MAX_WINDOWS: usize = 32;
const LEVELS: u8 = 4;

fn encode(binding: &Binding) -> Vec<u32> {
    let windows = &binding.windows[..binding.windows.len().min(MAX_WINDOWS)];
    let head = [binding.slot.keycode, binding.slot.level.unwrap_or(LEVELS), windows.len() as u8, 0];
    [&[u32::from_le_bytes(head), binding.keysym], windows].concat()
}

/// Anything that is not a binding ends the list: any client can write the property.
fn decode(mut words: &[u32]) -> Vec<Binding> {
    let mut bound = Vec::new();
    while let [head, keysym, rest @ ..] = words {
        let [keycode, level, count, zero] = head.to_le_bytes();
        let count = usize::from(count);
        if level > LEVELS || zero != 0 || count > MAX_WINDOWS || rest.len() < count {
            break;
        }
        let (windows, rest) = rest.split_at(count);
        let slot = Slot { keycode, level: (level < LEVELS).then_some(level) };
        bound.push(Binding { slot, keysym: *keysym, windows: windows.to_vec() });
        words = rest;
    }
    bound
}

/// Publishes for the next driver what is bound, or that nothing is. It is read only after later requests have been carried out.
pub(crate) fn publish<'a>(server: &Server, bound: impl IntoIterator<Item = &'a Binding>) -> Result<()> {
    let words: Vec<u32> = bound.into_iter().flat_map(encode).collect();
    let property = server.atoms._DESKHAND_KEYS;
    if words.is_empty() {
        server.conn.delete_property(server.root, property)?;
    } else {
        server.conn.change_property32(PropMode::REPLACE, server.root, property, AtomEnum::CARDINAL, &words)?;
    }
    server.conn.flush()?;
    Ok(())
}

/// What an earlier driver has left.
pub(crate) fn published(server: &Server) -> Result<Vec<Binding>> {
    let property = server.atoms._DESKHAND_KEYS;
    let reply = server.conn.get_property(false, server.root, property, AtomEnum::CARDINAL, 0, MAX_WORDS)?.reply()?;
    let words = reply.value32().map(Iterator::collect).unwrap_or_default();
    Ok(decode(&replies::at_most(words, MAX_WORDS)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn whatever_is_there_is_read_to_its_end(words in prop::collection::vec(any::<u32>(), 0..200)) {
            prop_assert!(decode(&words).iter().all(|binding| binding.slot.level.is_none_or(|level| level < LEVELS)));
        }

        #[test]
        fn what_is_written_is_read(bound in prop::collection::vec(
            (any::<u8>(), prop::option::of(0..LEVELS), any::<u32>(), prop::collection::vec(any::<u32>(), 0..5)),
            0..20,
        )) {
            let bound: Vec<Binding> = bound
                .into_iter()
                .map(|(keycode, level, keysym, windows)| Binding { slot: Slot { keycode, level }, keysym, windows })
                .collect();
            prop_assert_eq!(decode(&bound.iter().flat_map(encode).collect::<Vec<_>>()), bound);
        }
    }
}
