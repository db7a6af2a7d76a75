//! Which questions follow from what is known of an application.

use super::Collector;
use super::application::Stage;
use crate::ask::Ask;
use crate::node::DETAILS;
use crate::toolkit::Toolkit;
use crate::tree::MOST_CHILDREN;

/// With more unknown objects than this, an application is asked for its whole cache again.
const MANY: usize = 24;

impl Collector {
    pub(super) fn pursue_root(&mut self, id: u32) {
        if let Some(root) = self.apps.get(&id).map(|app| app.root) {
            self.pursue(id, root);
        }
    }

    /// Asks what is missing of an object and of all that shows in it.
    pub(super) fn pursue(&mut self, id: u32, from: usize) {
        let read = self.read;
        let Some(app) = self.apps.get_mut(&id) else { return };
        if app.stage != Stage::Reading {
            return;
        }
        let toolkit = app.toolkit();
        let wake = toolkit == Toolkit::Chromium && app.woken.is_none();
        let mut stack = vec![from];
        while let Some(at) = stack.pop() {
            let top = at == app.root;
            let in_bulk = app.has_items == Some(true) && !app.asked_items;
            let wanted = app.wants(at, self.seen.deep);
            let Some(node) = app.tree.get_mut(at) else { continue };
            let mut missing = node.missing(top, read, MOST_CHILDREN as i32, toolkit, wanted);
            if node.read != read {
                node.read = read;
                node.asked = 0;
            }
            if in_bulk && !top && missing & DETAILS == DETAILS {
                missing &= !DETAILS;
                app.unknown.push(at);
            }
            node.asked |= missing;
            for ask in Ask::OF_OBJECTS {
                if missing & ask.bit() != 0 {
                    app.todo.push_back((at, ask));
                }
            }
            if wake && node.depth == 1 {
                app.todo.push_back((at, Ask::Wake));
                app.woken = Some(app.heard);
            }
            if top || wanted {
                stack.extend(&node.children);
            }
        }
    }

    /// Asks about unknown objects: for the whole cache where they are many and the application has one.
    pub(super) fn look_up(&mut self, id: u32) {
        let Some(app) = self.apps.get_mut(&id) else { return };
        if app.unknown.is_empty() {
            return;
        }
        let many = app.unknown.len() > MANY;
        app.asked_items = true;
        if many {
            app.todo.push_back((app.root, Ask::Items));
        } else {
            for at in std::mem::take(&mut app.unknown) {
                self.pursue(id, at);
            }
        }
    }
}
