//! What is asked, in which order, and what becomes of the answers.

mod answers;
mod application;
mod cells;
mod doubts;
mod untold;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::ask::{Ask, BUS, REGISTRY, ROOT, subscribe};
use crate::codes::{role, state};
use crate::events::{self, News};
use crate::node::{Application, DETAILS, Element, Node, Snapshot};
use crate::seen::{Seen, moved};
use crate::toolkit::Toolkit;
use crate::tree::{MOST_CHILDREN, Tree};
use crate::wire::{Kind, Malformed, Message, Reader};

use answers::{set, set_str};
use application::{App, Stage};

/// Questions that one application has not answered yet, at most.
const WINDOW: usize = 64;
/// With more unknown objects than this, an application is asked for its whole cache again.
const MANY: usize = 24;
const MOST_APPLICATIONS: usize = 200;
/// The states of a line that is being written in.
const WRITTEN: u64 = state::FOCUSED | state::EDITABLE | state::SINGLE_LINE;
/// How often a browser is asked for its page after it was asked for attributes, and for how long.
const WAKING: Duration = Duration::from_millis(40);
const WAKING_LIMIT: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy)]
struct Asked {
    app: u32,
    node: usize,
    reference: u64,
    ask: Ask,
}

/// Asks applications and keeps what they answered; see the crate.
#[derive(Debug, Default)]
pub struct Collector {
    apps: HashMap<u32, App>,
    by_bus: HashMap<String, u32>,
    next_app: u32,
    next_reference: u64,
    serial: u32,
    asked: HashMap<u32, Asked>,
    /// The call for the registry's applications, where it is under way.
    listing: Option<u32>,
    /// Whether the registry's list holds.
    listed: bool,
    read: u32,
    reading: bool,
    seen: Seen,
    moved: Vec<u32>,
    /// The result of the last request to scroll.
    scrolled: Option<bool>,
    version: u64,
    out: Vec<u8>,
}

impl Collector {
    /// An empty one, which subscribes to events first.
    #[must_use]
    pub fn new() -> Self {
        let mut new = Self::default();
        let mut out = Vec::new();
        subscribe(&mut out, || new.number());
        new.out = out;
        new
    }

    fn number(&mut self) -> u32 {
        self.serial = following(self.serial);
        self.serial
    }

    /// What is to be sent now.
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// Begins a reading: [`Collector::is_done`] says when it has ended.
    pub fn begin(&mut self, seen: Seen, now: Instant) {
        self.read = self.read.wrapping_add(1);
        self.reading = true;
        self.moved = moved(&self.seen.windows, &seen.windows);
        self.seen = seen;
        self.ask_for_list();
        let ids: Vec<u32> = self.apps.keys().copied().collect();
        for id in ids {
            self.start(id, now);
        }
    }

    /// Whether all that is asked in this reading is answered, but for those that are silent.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.listing.is_none() && self.apps.values().all(|app| app.silent || app.stage == Stage::Idle)
    }

    /// Ends the reading. An application that has not answered is not waited for again until it has.
    pub fn end(&mut self) {
        self.reading = false;
        for app in self.apps.values_mut() {
            if app.stage != Stage::Idle {
                app.silent = app.in_flight > 0;
                self.version += u64::from(app.silent);
                app.stage = Stage::Idle;
                app.todo.clear();
                app.unknown.clear();
            }
        }
    }

    /// Asks an application to scroll an element to where it can be seen; [`Collector::scrolled`] is the answer.
    pub fn scroll_to(&mut self, reference: u64) {
        let there = self.apps.iter().filter(|(_, app)| !app.silent).find_map(|(id, app)| {
            let node = app.tree.position(reference)?;
            Some((*id, node))
        });
        self.scrolled = if there.is_none() { Some(false) } else { None };
        if let Some((id, node)) = there
            && let Some(app) = self.apps.get_mut(&id)
        {
            app.todo.push_back((node, Ask::Scroll));
            self.pump(id);
        }
    }

    /// Whether an application says that it scrolled; None while it has said nothing.
    #[must_use]
    pub fn scrolled(&self) -> Option<bool> {
        self.scrolled
    }

    /// How long ago the line that keys go to was written in, in the application of an element and of a toolkit that opens a
    /// list below it some time later; None where that was never.
    #[must_use]
    pub fn since_written(&self, reference: u64, now: Instant) -> Option<Duration> {
        let app = self.apps.values().find(|app| app.tree.position(reference).is_some())?;
        app.written.map(|at| now.saturating_duration_since(at))
    }

    /// Handles what depends on the time; returns when it is to be called again.
    pub fn tick(&mut self, now: Instant) -> Option<Instant> {
        let ids: Vec<u32> = self.apps.keys().copied().collect();
        let mut next = None;
        for id in ids {
            if let Some(at) = self.advance(id, now) {
                next = Some(next.map_or(at, |other: Instant| other.min(at)));
            }
        }
        next
    }

    /// Handles a message.
    pub fn take(&mut self, message: &Message, now: Instant) {
        // A malformed message is ignored.
        let _ = match message.kind {
            Kind::Return | Kind::Error => self.answered(message, now),
            Kind::Signal => self.happened(message, now),
            Kind::Call | Kind::Unknown => Ok(()),
        };
    }

    fn answered(&mut self, message: &Message, now: Instant) -> Result<(), Malformed> {
        if self.listing == Some(message.reply_to) {
            self.listing = None;
            if message.kind == Kind::Return {
                self.listed = true;
                return self.list(message.body(), now);
            }
            return Ok(());
        }
        let Some(asked) = self.asked.remove(&message.reply_to) else { return Ok(()) };
        let Some(app) = self.apps.get_mut(&asked.app) else { return Ok(()) };
        // Only the connection that was asked may answer; for one that is gone the bus does.
        if message.sender != BUS && (asked.ask == Ask::Process || message.sender != app.bus) {
            self.asked.insert(message.reply_to, asked);
            return Ok(());
        }
        app.in_flight -= 1;
        app.heard = now;
        if app.silent && app.in_flight == 0 {
            app.silent = false;
            self.version += 1;
            if self.reading && app.stage == Stage::Idle {
                self.start(asked.app, now);
            }
        }
        let taken = if message.kind == Kind::Return {
            self.learn(asked, message, now)
        } else {
            self.refused(asked, now);
            Ok(())
        };
        self.advance(asked.app, now);
        taken
    }

    fn ask_for_list(&mut self) {
        if !self.listed && self.listing.is_none() {
            let serial = self.number();
            Ask::Children.write(&mut self.out, serial, REGISTRY, ROOT, (0, 0));
            self.listing = Some(serial);
        }
    }

    /// The registry's list of applications.
    fn list(&mut self, mut body: Reader, now: Instant) -> Result<(), Malformed> {
        let end = body.array(8)?;
        let mut there = Vec::new();
        while !body.reached(end) {
            let (bus, path) = body.object()?;
            if there.len() < MOST_APPLICATIONS {
                there.push(bus.to_owned());
            }
            if !self.by_bus.contains_key(bus) && self.apps.len() < MOST_APPLICATIONS {
                self.add(bus, path, now);
            }
        }
        let gone: Vec<u32> = self.apps.iter().filter(|(_, app)| !there.contains(&app.bus)).map(|(id, _)| *id).collect();
        for id in gone {
            self.drop_app(id);
        }
        Ok(())
    }

    fn add(&mut self, bus: &str, path: &str, now: Instant) {
        let mut tree = Tree::default();
        let Some(root) = tree.intern(path, &mut self.next_reference) else { return };
        let about =
            Application { name: String::new(), toolkit: String::new(), version: String::new(), pid: 0, left_out: "" };
        self.next_app += 1;
        let id = self.next_app;
        self.by_bus.insert(bus.to_owned(), id);
        self.apps.insert(
            id,
            App {
                bus: bus.to_owned(),
                about,
                tree,
                root,
                stage: Stage::Idle,
                todo: VecDeque::new(),
                in_flight: 0,
                silent: false,
                has_items: None,
                asked_items: false,
                unknown: Vec::new(),
                woken: None,
                awake: false,
                late: Vec::new(),
                written: None,
                heard: now,
                fresh: now,
                checked: now,
                names_checked: None,
            },
        );
        self.version += 1;
        if self.reading {
            self.start(id, now);
        }
    }

    fn drop_app(&mut self, id: u32) {
        if let Some(app) = self.apps.remove(&id) {
            self.by_bus.remove(&app.bus);
            self.asked.retain(|_, asked| asked.app != id);
            self.version += 1;
        }
    }

    /// Begins with one application, unless earlier questions are still unanswered.
    fn start(&mut self, id: u32, now: Instant) {
        let Some(app) = self.apps.get_mut(&id) else { return };
        if app.in_flight > 0 {
            app.silent = true;
        }
        if app.silent {
            return;
        }
        app.stage = Stage::Barrier;
        app.asked_items = false;
        app.heard = now;
        if app.has_items.is_none() {
            let first = [Ask::Process, Ask::Toolkit, Ask::Version, Ask::Items];
            app.todo.extend(first.map(|ask| (app.root, ask)));
        } else {
            app.todo.push_back((app.root, Ask::Ping));
        }
        self.pump(id);
    }

    /// Sends what may be sent.
    fn pump(&mut self, id: u32) {
        loop {
            let Some(app) = self.apps.get_mut(&id) else { return };
            if app.in_flight >= WINDOW {
                return;
            }
            let Some((node, ask)) = app.todo.pop_front() else { return };
            let Some(object) = app.tree.get(node) else { continue };
            let (path, numbers) = app.addressed(object, ask);
            if path.is_empty() {
                // A cell without an object.
                continue;
            }
            let reference = object.reference;
            self.serial = following(self.serial);
            ask.write(&mut self.out, self.serial, &app.bus, path, numbers);
            app.in_flight += 1;
            self.asked.insert(self.serial, Asked { app: id, node, reference, ask });
        }
    }

    /// Asks an application what can be asked now; returns when it is to be called again.
    fn advance(&mut self, id: u32, now: Instant) -> Option<Instant> {
        self.pump(id);
        let app = self.apps.get_mut(&id)?;
        if app.stage == Stage::Idle || !app.rests() {
            return None;
        }
        if app.stage == Stage::Barrier {
            app.stage = Stage::Reading;
            self.doubt(id, now);
            self.pursue_root(id);
        }
        self.look_up(id);
        self.pump(id);
        let app = self.apps.get_mut(&id)?;
        if !app.rests() {
            return None;
        }
        if let Some(woken) = app.woken
            && !app.awake
        {
            // An earlier reading has asked it for attributes.
            if app.tree.nodes().any(is_page) {
                app.awake = true;
                app.stage = Stage::Idle;
                return None;
            }
            let until = (app.heard + WAKING).min(woken + WAKING_LIMIT);
            if now < until {
                return Some(until);
            }
            // It sends no event when the page is there, so it is asked until it has one.
            app.awake = now >= woken + WAKING_LIMIT;
            app.heard = now;
            for node in app.tree.nodes_mut() {
                node.forget(&[Ask::Children]);
                node.asked = 0;
            }
            self.pursue_root(id);
            self.pump(id);
            if !self.apps.get(&id)?.rests() {
                return None;
            }
            if !self.apps.get(&id)?.awake {
                return Some(now + WAKING);
            }
        }
        self.apps.get_mut(&id)?.stage = Stage::Idle;
        None
    }

    fn pursue_root(&mut self, id: u32) {
        if let Some(root) = self.apps.get(&id).map(|app| app.root) {
            self.pursue(id, root);
        }
    }

    /// Asks what is missing of an object and of all that shows in it.
    fn pursue(&mut self, id: u32, from: usize) {
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
    fn look_up(&mut self, id: u32) {
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

    fn happened(&mut self, message: &Message, now: Instant) -> Result<(), Malformed> {
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
            News::Name(text) => changed = set_str(&mut node.name, text),
            News::Description(text) => changed = set_str(&mut node.description, text),
            News::Stale(asks) => {
                node.forget(asks);
                if toolkit == Toolkit::Gtk3 && asks == [Ask::Text] && node.states & WRITTEN == WRITTEN {
                    app.written = Some(now);
                }
            }
            News::Windows => node.forget(&[Ask::Children]),
            News::Gone(_) | News::Nothing => {}
        }
        let Some(node) = app.tree.get(at) else { return Ok(()) };
        let grew = !node.knows(Ask::Children);
        let appeared = !before && node.shows(shown);
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

/// The number of the next message; zero is none.
fn following(serial: u32) -> u32 {
    serial.checked_add(1).unwrap_or(1)
}

fn is_page(node: &Node) -> bool {
    node.role == role::DOCUMENT_WEB && !node.children.is_empty()
}
