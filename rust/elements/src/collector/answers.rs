//! What an answer says of an object, or of the application that has it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use super::untold::Had;
use super::{Asked, Collector};
use crate::ask::Ask;
use crate::codes::{interface, state};
use crate::grid::Grid;
use crate::node::{Area, DETAILS, LONGEST_NAME, LONGEST_TEXT, Node, beginning};
use crate::toolkit::Toolkit;
use crate::tree::MOST_CHILDREN;
use crate::wire::{Malformed, Message, Reader, Value};

const MOST_ACTIONS: usize = 16;
/// No object.
pub(super) const NULL: &str = "/org/a11y/atspi/null";

impl Collector {
    pub(super) fn refused(&mut self, asked: Asked, now: Instant) {
        let Some(app) = self.apps.get_mut(&asked.app) else { return };
        if asked.ask == Ask::Items {
            return self.without_items(asked.app);
        }
        if asked.ask == Ask::Scroll {
            self.scrolled = Some(false);
            return;
        }
        let root = app.root;
        let read = self.read;
        let Some(node) = app.tree.get_mut(asked.node).filter(|node| node.reference == asked.reference) else { return };
        if asked.ask == Ask::State && node.cell.is_some() && !(node.read == read && node.asked & Ask::Cell.bit() != 0) {
            // The object that it had is gone, as Calc's are after some time; the cell has another one.
            node.ask_again(Ask::Cell);
            node.ask_again(Ask::State);
            return self.pursue(asked.app, asked.node);
        }
        node.known |= asked.ask.bit();
        node.refuse(asked.ask, now);
        // An object that refuses its state is gone.
        if asked.ask == Ask::State && asked.node != root {
            let parent = node.parent;
            app.tree.remove(asked.node);
            self.version += 1;
            if let Some(parent) = parent.and_then(|parent| app.tree.get_mut(parent)) {
                parent.forget(&[Ask::Children]);
            }
        }
    }

    /// An application has no cache, or refuses it: each object is asked about by itself.
    fn without_items(&mut self, id: u32) {
        let Some(app) = self.apps.get_mut(&id) else { return };
        app.has_items = app.has_items.or(Some(false));
        for at in std::mem::take(&mut app.unknown) {
            self.pursue(id, at);
        }
    }

    /// Handles an answer.
    pub(super) fn learn(&mut self, asked: Asked, message: &Message, now: Instant) -> Result<(), Malformed> {
        let mut body = message.body();
        match asked.ask {
            Ask::Items | Ask::Ping | Ask::Wake | Ask::Scroll | Ask::Process | Ask::Toolkit | Ask::Version => {
                return self.learn_of_application(asked, message, now);
            }
            Ask::Children => return self.children(asked, body),
            ask if ask.bit() & Grid::QUESTIONS != 0 => return self.of_grid(asked, body),
            _ => {}
        }
        let Some(app) = self.apps.get_mut(&asked.app) else { return Ok(()) };
        let shown = app.shown();
        let toolkit = app.toolkit();
        let Some(node) = app.tree.get_mut(asked.node).filter(|node| node.reference == asked.reference) else {
            return Ok(());
        };
        let had = (!toolkit.tells_changes()).then(|| Had::of(node));
        node.known |= asked.ask.bit();
        let mut changed = false;
        let mut moved = false;
        let mut placed = false;
        let before = node.shows(shown);
        let named = asked.ask == Ask::Name && node.cell.is_some() && !node.name.is_empty();
        match asked.ask {
            Ask::State => changed = set(&mut node.states, bits(&mut body)?),
            Ask::Role => changed = set(&mut node.role, body.u32()?),
            Ask::Interfaces => {
                let end = body.array(4)?;
                let mut found = 0;
                while !body.reached(end) {
                    found |= interface::bit(body.str()?);
                }
                node.interfaces = found;
            }
            Ask::Extents => {
                body.structure()?;
                let area = Area { x: body.i32()?, y: body.i32()?, width: body.i32()?, height: body.i32()? };
                let had_one = node.area.is_some();
                changed = place(node, area, now);
                moved = changed && had_one;
                placed = changed && !had_one && !toolkit.tells_changes();
            }
            Ask::Text => {
                let text = beginning(body.str()?, LONGEST_TEXT);
                changed = tell(node, text);
            }
            Ask::Count => {
                if let Value::Number(number) = body.variant()? {
                    changed = set(&mut node.claimed, number as i32);
                }
            }
            Ask::Value => {
                if let Value::Number(number) = body.variant()? {
                    changed = set(&mut node.value, Some(number));
                }
            }
            Ask::Actions => {
                let found = actions(&mut body)?;
                changed = *node.actions != *found;
                node.actions = found.into();
            }
            Ask::Name | Ask::Description => {
                if let Value::Text(text) = body.variant()? {
                    let field = if asked.ask == Ask::Name { &mut node.name } else { &mut node.description };
                    changed = set_str(field, beginning(text, LONGEST_NAME));
                }
            }
            _ => {}
        }
        self.version += u64::from(changed);
        if let Some(had) = had {
            had.doubt(node, asked.ask, &mut self.next_reference);
        }
        if named && changed {
            self.replace(asked);
            return Ok(());
        }
        let after = node.note_shown(shown, now);
        if placed {
            // A list of Qt has no place before it opens, and what is in it has wrong ones.
            app.tree.below(asked.node, |node| node.forget(&[Ask::Extents]));
        }
        match (before, after) {
            (false, true) if asked.ask == Ask::State => app.appeared(asked.node),
            (true, false) if asked.ask == Ask::State => self.vanished(asked),
            _ => {}
        }
        if moved {
            self.siblings(asked);
        }
        self.pursue(asked.app, asked.node);
        Ok(())
    }

    /// Handles an answer that is about an application, or one of no object.
    fn learn_of_application(&mut self, asked: Asked, message: &Message, now: Instant) -> Result<(), Malformed> {
        let mut body = message.body();
        match asked.ask {
            Ask::Items => return self.items(asked.app, body, message.signature, now),
            Ask::Scroll => self.scrolled = Some(body.u32()? != 0),
            Ask::Process => {
                let pid = body.u32()?;
                if let Some(app) = self.apps.get_mut(&asked.app) {
                    app.about.pid = pid;
                }
            }
            Ask::Toolkit | Ask::Version => {
                let (Some(app), Value::Text(text)) = (self.apps.get_mut(&asked.app), body.variant()?) else {
                    return Ok(());
                };
                let field = if asked.ask == Ask::Toolkit { &mut app.about.toolkit } else { &mut app.about.version };
                beginning(text, LONGEST_NAME).clone_into(field);
            }
            _ => {}
        }
        Ok(())
    }

    /// Something moved: what is beside it may have moved as well, or show now.
    fn siblings(&mut self, asked: Asked) {
        let Some(app) = self.apps.get_mut(&asked.app) else { return };
        // GTK 4 says what it hides, and that what is scrolled out of sight is visible.
        let says_what_shows = app.toolkit() == Toolkit::Gtk4;
        // What is in it has moved along, also where no pixel of that has changed.
        app.tree.below(asked.node, |node| node.forget(&[Ask::Extents]));
        let Some(parent) = app.tree.get(asked.node).and_then(|node| node.parent) else { return };
        let Some(around) = app.tree.get_mut(parent) else { return };
        if !around.knows(Ask::Extents) {
            return;
        }
        around.forget(&[Ask::Extents]);
        for each in around.children.clone() {
            // One that has answered already may have done so before it moved: the next reading asks again.
            if let Some(node) = app.tree.get_mut(each) {
                node.forget(if says_what_shows { &[Ask::Extents] } else { &[Ask::State, Ask::Extents] });
            }
        }
        self.pursue(asked.app, parent);
    }

    /// Something does not show any more: where that was scrolled, something beside it does.
    fn vanished(&mut self, asked: Asked) {
        let Some(app) = self.apps.get_mut(&asked.app) else { return };
        let shown = app.shown();
        let Some(parent) = app.tree.get(asked.node).and_then(|node| node.parent) else { return };
        for each in app.tree.get(parent).map(|around| around.children.clone()).unwrap_or_default() {
            if let Some(node) = app.tree.get_mut(each).filter(|node| !node.shows(shown)) {
                node.forget(&[Ask::State]);
            }
        }
        self.pursue(asked.app, parent);
    }

    fn children(&mut self, asked: Asked, mut body: Reader) -> Result<(), Malformed> {
        let end = body.array(8)?;
        let mut found = Vec::new();
        let mut total = 0_usize;
        let Some(app) = self.apps.get_mut(&asked.app) else { return Ok(()) };
        if app.tree.get(asked.node).is_none_or(|node| node.reference != asked.reference) {
            return Ok(());
        }
        while !body.reached(end) {
            let (bus, path) = body.object()?;
            total += 1;
            // An object of another application is read from that one.
            if bus != app.bus || path == NULL {
                continue;
            }
            if found.len() >= MOST_CHILDREN {
                app.tree.cut = true;
                break;
            }
            found.extend(app.tree.intern(path, &mut self.next_reference));
        }
        let changed = app.tree.link(asked.node, &found);
        if let Some(node) = app.tree.get_mut(asked.node) {
            node.known |= Ask::Children.bit();
            let whole = total <= MOST_CHILDREN && node.states & state::MANAGES_DESCENDANTS == 0;
            node.claimed = if whole { total as i32 } else { node.claimed.max(total as i32) };
        }
        self.version += u64::from(changed);
        self.pursue(asked.app, asked.node);
        Ok(())
    }

    /// The whole cache of an application, in either of its two forms.
    fn items(&mut self, id: u32, mut body: Reader, signature: &str, now: Instant) -> Result<(), Malformed> {
        let listed = match signature {
            "a((so)(so)(so)iiassusau)" => false,
            "a((so)(so)(so)a(so)assusau)" => true,
            _ => {
                self.without_items(id);
                return Ok(());
            }
        };
        let Some(app) = self.apps.get_mut(&id) else { return Ok(()) };
        let shown = app.shown();
        let mut below: HashMap<usize, Vec<(i32, usize)>> = HashMap::new();
        let end = body.array(8)?;
        let mut any = false;
        while !body.reached(end) {
            any = true;
            body.structure()?;
            let (bus, path) = body.object()?;
            body.object()?;
            let (_, parent) = body.object()?;
            let mut index = -1;
            let mut claimed = 0;
            if listed {
                let end = body.array(8)?;
                while !body.reached(end) {
                    body.object()?;
                    claimed += 1;
                }
            } else {
                index = body.i32()?;
                claimed = body.i32()?;
            }
            let interfaces = body.array(4)?;
            let mut found = 0;
            while !body.reached(interfaces) {
                found |= interface::bit(body.str()?);
            }
            let name = beginning(body.str()?, LONGEST_NAME);
            let role = body.u32()?;
            let description = beginning(body.str()?, LONGEST_NAME);
            let states = bits(&mut body)?;
            // An object of another application is read from that one.
            if bus != app.bus {
                continue;
            }
            let Some(at) = app.tree.intern(path, &mut self.next_reference) else { break };
            if let Some(up) = app.tree.intern(parent, &mut self.next_reference).filter(|up| *up != at) {
                below.entry(up).or_default().push((index, at));
            }
            let Some(node) = app.tree.get_mut(at) else { continue };
            node.interfaces = found;
            node.role = role;
            node.states = states;
            node.claimed = claimed;
            set_str(&mut node.name, name);
            set_str(&mut node.description, description);
            node.known |= DETAILS | Ask::State.bit();
            node.note_shown(shown, now);
        }
        app.has_items = Some(app.has_items == Some(true) || any);
        app.unknown.clear();
        for (up, mut children) in below {
            children.sort_unstable();
            let whole = app.tree.get(up).is_some_and(|node| {
                !node.knows(Ask::Children) && node.claimed as usize == children.len() && up != app.root
            });
            let in_order = children.iter().enumerate().all(|(place, (index, _))| *index == place as i32);
            if whole && in_order {
                let children: Vec<usize> = children.into_iter().map(|(_, at)| at).collect();
                app.tree.link(up, &children);
                if let Some(node) = app.tree.get_mut(up) {
                    node.known |= Ask::Children.bit();
                }
            }
        }
        self.version += 1;
        self.pursue_root(id);
        Ok(())
    }
}

/// Notes where an object is; returns whether it was elsewhere.
fn place(node: &mut Node, area: Area, now: Instant) -> bool {
    let changed = set(&mut node.area, Some(area));
    if changed && node.grid.is_some() {
        node.ask_again(Ask::First);
        node.ask_again(Ask::Last);
    }
    if area.width <= 0 || area.height <= 0 {
        node.refuse(Ask::Extents, now);
    }
    // GTK 3 gives this place to what was scrolled out of sight, and does not always report that it is hidden.
    if changed && area.x == i32::MIN {
        node.ask_again(Ask::State);
    }
    changed
}

fn actions(body: &mut Reader) -> Result<Vec<String>, Malformed> {
    let end = body.array(8)?;
    let mut found = Vec::new();
    while !body.reached(end) && found.len() < MOST_ACTIONS {
        body.structure()?;
        let name = body.str()?;
        let (_, _) = (body.str()?, body.str()?);
        if !name.is_empty() {
            found.push(beginning(name, LONGEST_NAME).to_owned());
        }
    }
    Ok(found)
}

fn bits(body: &mut Reader) -> Result<u64, Malformed> {
    let end = body.array(4)?;
    let mut found = 0;
    let mut shift = 0;
    while !body.reached(end) {
        let part = u64::from(body.u32()?);
        if shift < 64 {
            found |= part << shift;
        }
        shift += 32;
    }
    Ok(found)
}

pub(super) fn set<T: PartialEq>(field: &mut T, value: T) -> bool {
    let different = *field != value;
    *field = value;
    different
}

pub(super) fn set_str(field: &mut Arc<str>, text: &str) -> bool {
    let different = &**field != text;
    if different {
        *field = Arc::from(text);
    }
    different
}

/// Notes what is written in an object; returns whether that was something else.
fn tell(node: &mut Node, text: &str) -> bool {
    let changed = node.text.as_deref() != Some(text);
    if changed {
        node.text = Some(Arc::from(text));
    }
    let is_chosen = node.states & (state::FOCUSED | state::SELECTED) != 0;
    if let Some(cell) = &mut node.cell {
        cell.may_be_empty = !changed && !text.is_empty() && (is_chosen || cell.may_be_empty);
    }
    changed
}
