//! What is asked, in which order, and what becomes of the answers.

mod answers;
mod application;
mod asking;
mod cells;
mod doubts;
mod signals;
mod snapshot;
mod untold;

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use crate::ask::{Ask, BUS, REGISTRY, ROOT, subscribe};
use crate::codes::role;
use crate::node::{Application, Node};
use crate::seen::{Seen, moved};
use crate::tree::Tree;
use crate::wire::{Kind, Malformed, Message, Reader};

use application::{App, Stage};

/// Questions that one application has not answered yet, at most.
const WINDOW: usize = 64;
const MOST_APPLICATIONS: usize = 200;
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
}

/// The number of the next message; zero is none.
fn following(serial: u32) -> u32 {
    serial.checked_add(1).unwrap_or(1)
}

fn is_page(node: &Node) -> bool {
    node.role == role::DOCUMENT_WEB && !node.children.is_empty()
}
