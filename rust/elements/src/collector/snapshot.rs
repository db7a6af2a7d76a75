//! What callers see of what is known.

use std::sync::Arc;

use super::Collector;
use crate::codes::{role, state};
use crate::node::{Element, Node, Snapshot};

impl Collector {
    /// What is known now.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let mut ids: Vec<u32> = self.apps.keys().copied().collect();
        ids.sort_unstable();
        let mut found = Snapshot { version: self.version, ..Snapshot::default() };
        for id in ids {
            let app = &self.apps[&id];
            let mut about = app.about.clone();
            about.left_out = if app.silent {
                "it does not answer"
            } else if app.tree.cut {
                "it has too many elements, or too deep ones"
            } else {
                ""
            };
            let Some(root) = app.tree.get(app.root) else { continue };
            root.name.as_ref().clone_into(&mut about.name);
            let place = found.applications.len();
            found.applications.push(about);
            let mut stack: Vec<(usize, u16)> = root.children.iter().rev().map(|each| (*each, 0)).collect();
            while let Some((at, depth)) = stack.pop() {
                let Some(node) = app.tree.get(at).filter(|_| app.wants(at, self.seen.deep)) else { continue };
                found.elements.push(element(node, depth, place));
                stack.extend(node.children.iter().rev().map(|each| (*each, depth + 1)));
            }
        }
        found
    }
}

fn element(node: &Node, depth: u16, application: usize) -> Element {
    let claimed = usize::try_from(node.claimed).unwrap_or(0);
    Element {
        reference: node.reference,
        depth,
        application,
        role: node.role,
        states: node.states & !state::DEFUNCT,
        name: Arc::clone(&node.name),
        description: Arc::clone(&node.description),
        // The text may have been read before the field became a password field.
        text: node.text.clone().filter(|_| node.role != role::PASSWORD),
        value: node.value,
        area: node.area,
        actions: Arc::clone(&node.actions),
        hidden: claimed.saturating_sub(node.children.len()) as u32,
    }
}
