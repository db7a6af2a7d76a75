//! What an application's signals change of what is known of it.

use std::time::Instant;

use super::answers::{set, set_str};
use super::{Collector, untold};
use crate::ask::{Ask, BUS, ROOT};
use crate::codes::{role, state};
use crate::events::{self, News};
use crate::toolkit::Toolkit;
use crate::wire::{Malformed, Message};

/// The states of a line that is being written in.
const WRITTEN: u64 = state::FOCUSED | state::EDITABLE | state::SINGLE_LINE;

impl Collector {
    pub(super) fn happened(&mut self, message: &Message, now: Instant) -> Result<(), Malformed> {
        if message.interface == BUS && message.sender == BUS {
            if message.member == "NameOwnerChanged" {
                let mut body = message.body();
                let (name, _, owner) = (body.str()?, body.str()?, body.str()?);
                if owner.is_empty()
                    && let Some(id) = self.by_bus.get(name)
                {
                    self.drop_app(*id);
                }
            }
            return Ok(());
        }
        let Some(&id) = self.by_bus.get(message.sender) else {
            // The registry says that an application came, or one that came says so itself.
            if message.member == "ChildrenChanged" && message.path == ROOT || message.interface.ends_with(".Cache") {
                self.listed = false;
                if self.reading {
                    self.ask_for_list();
                }
            }
            return Ok(());
        };
        let Some(app) = self.apps.get_mut(&id) else { return Ok(()) };
        app.heard = now;
        let news = events::read(message)?;
        if let News::Gone(path) = news {
            if let Some(at) = app.tree.find(path).filter(|at| *at != app.root) {
                let parent = app.tree.get(at).and_then(|node| node.parent);
                app.tree.remove(at);
                if let Some(parent) = parent.and_then(|parent| app.tree.get_mut(parent)) {
                    parent.forget(&[Ask::Children]);
                }
                self.version += 1;
            }
            return Ok(());
        }
        let at = if news == News::Windows { Some(app.root) } else { app.tree.find(message.path) };
        let Some(at) = at else { return Ok(()) };
        let shown = app.shown();
        let toolkit = app.toolkit();
        let Some(node) = app.tree.get_mut(at) else { return Ok(()) };
        node.retry();
        let mut changed = false;
        let before = node.shows(shown);
        match news {
            News::State(bit, true) if untold::is_successor(node, bit, toolkit) => {
                self.next_reference += 1;
                node.renew(self.next_reference);
                app.tree.below(at, |node| node.known = 0);
                changed = true;
            }
            News::State(bit, on) => {
                let states = if on { node.states | bit } else { node.states & !bit };
                let old = node.states;
                changed = node.knows(Ask::State) && set(&mut node.states, states);
                if !toolkit.tells_changes() && untold::matters(old, states) {
                    node.forget(&untold::ALONG);
                }
            }
            News::Name(text) => {
                changed = set_str(&mut node.name, text);
                // A label of GTK 4 is called what is written in it, and does not say that this has changed.
                node.forget(&[Ask::Text, Ask::Children]);
            }
            News::Description(text) => changed = set_str(&mut node.description, text),
            News::Stale(asks) => {
                node.forget(asks);
                if role::LEAVES.contains(&node.role) {
                    // The links in a label are its children.
                    node.forget(&[Ask::Children]);
                }
                if toolkit == Toolkit::Gtk3 && asks == [Ask::Text] && node.states & WRITTEN == WRITTEN {
                    app.written = Some(now);
                }
            }
            News::Windows => node.forget(&[Ask::Children]),
            News::Gone(_) | News::Nothing => {}
        }
        let Some(node) = app.tree.get_mut(at) else { return Ok(()) };
        let appeared = node.note_shown(shown, now) && !before;
        let grew = !node.knows(Ask::Children);
        if appeared {
            app.appeared(at);
        }
        if grew && toolkit == Toolkit::Gecko {
            app.fresh = now;
        }
        self.version += u64::from(changed);
        if self.reading {
            self.pursue(id, at);
            self.pump(id);
        }
        Ok(())
    }
}
