//! What Qt does not tell: it sends no events of places, titles, headers, items and cells, and uses the path of an object that
//! is gone for the next one.

use std::sync::Arc;

use crate::ask::Ask;
use crate::codes::{role, state};
use crate::node::Node;
use crate::toolkit::Toolkit;

/// What may be different along with an object's state, name or text, and is told by no event.
pub(super) const ALONG: [Ask; 4] = [Ask::Description, Ask::Role, Ask::Interfaces, Ask::Actions];
/// States that change all the time, and nothing else with them.
const PASSING: u64 = state::ACTIVE | state::FOCUSED | state::SELECTED;

/// Whether a change from one state to another may have changed something else.
pub(super) fn matters(before: u64, after: u64) -> bool {
    (before ^ after) & !PASSING != 0
}

/// Whether an object is a part of a model and no widget: what has its path, and another name, is another one.
pub(super) fn is_item(node: &Node) -> bool {
    role::ITEMS.contains(&node.role)
}

/// Whether an object that begins to show is another one than is known at its path: that one shows already.
pub(super) fn is_successor(node: &Node, bit: u64, toolkit: Toolkit) -> bool {
    let shows = node.knows(Ask::State) && node.states & state::SHOWING != 0;
    !toolkit.tells_changes() && bit == state::SHOWING && shows
}

/// What was known of an object before an answer.
pub(super) struct Had {
    states: u64,
    name: Arc<str>,
    text: Option<Arc<str>>,
    /// Whether all that may change along was known.
    complete: bool,
}

impl Had {
    pub(super) fn of(node: &Node) -> Self {
        let complete = [Ask::Description, Ask::Role, Ask::Interfaces].into_iter().all(|ask| node.knows(ask));
        Self { states: node.states, name: Arc::clone(&node.name), text: node.text.clone(), complete }
    }

    /// Has asked again what may have changed along with what an answer has changed.
    pub(super) fn doubt(&self, node: &mut Node, ask: Ask, next_reference: &mut u64) {
        let changed = match ask {
            Ask::State => matters(self.states, node.states),
            Ask::Name => self.name != node.name,
            Ask::Text => self.text.is_some() && self.text != node.text,
            _ => false,
        };
        if !changed || !self.complete {
            return;
        }
        for ask in ALONG {
            node.ask_again(ask);
        }
        if ask == Ask::Name && is_item(node) {
            *next_reference += 1;
            node.reference = *next_reference;
            node.asked = 0;
        }
    }
}
