//! What is asked, in which order, and what becomes of the answers.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::ask::{Ask, REGISTRY, ROOT, subscribe};
use crate::events::{self, News};
use crate::node::{
    Application, Area, DETAILS, Element, LONGEST_NAME, LONGEST_TEXT, Node, Snapshot, beginning, interface, role, state,
};
use crate::tree::{MOST_CHILDREN, Tree};
use crate::wire::{Kind, Malformed, Message, Reader, Value};

/// Questions that one application has not answered yet, at most.
const WINDOW: usize = 64;
/// With more unknown objects than this, an application is asked for its whole cache again.
const MANY: usize = 24;
const MOST_APPLICATIONS: usize = 200;
const MOST_ACTIONS: usize = 16;
/// Hidden children of an object whose pixels changed that are asked whether they show now.
const MOST_DOUBTED: usize = 200;
/// For so long after an application was found, and this often, all that is known of it is asked again.
const YOUNG: Duration = Duration::from_secs(3);
const YOUNG_PERIOD: Duration = Duration::from_millis(250);
/// For so long an object is asked again what it refused to answer.
const UNFINISHED: Duration = Duration::from_secs(10);
/// Pixels of the shadow around a window that draws its own frame, at most.
const SHADOW: i32 = 40;
/// A browser that was woken is looked at this often until it has a page, or for so long in all.
const WAKING: Duration = Duration::from_millis(40);
const WAKING_LIMIT: Duration = Duration::from_secs(2);

/// A window of the X server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// The process that it belongs to; 0 for unknown.
    pub pid: u32,
    /// Where it is on the screen.
    pub area: Area,
}

/// What is seen of the screen when the elements are read.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// Where pixels have changed since the elements were last read.
    pub changed: Vec<Area>,
    /// The windows.
    pub windows: Vec<Window>,
}

impl Seen {
    /// What changed, as seen from the corner of each window of a process, with room for the shadow around it.
    fn within(&self, pid: u32) -> Vec<Area> {
        let windows = self.windows.iter().filter(|window| window.pid == pid && pid != 0);
        let seen = |window: &Window| {
            let Area { x, y, .. } = window.area;
            self.changed
                .iter()
                .map(move |area| Area {
                    x: area.x.saturating_sub(x).saturating_sub(SHADOW),
                    y: area.y.saturating_sub(y).saturating_sub(SHADOW),
                    width: area.width.saturating_add(2 * SHADOW),
                    height: area.height.saturating_add(2 * SHADOW),
                })
                .collect::<Vec<_>>()
        };
        windows.flat_map(seen).collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing is asked of it in this reading.
    Idle,
    /// It is to say that it has handled what came before.
    Barrier,
    /// What is missing is being asked.
    Reading,
}

#[derive(Debug)]
struct App {
    bus: String,
    about: Application,
    tree: Tree,
    root: usize,
    stage: Stage,
    todo: VecDeque<(usize, Ask)>,
    in_flight: usize,
    /// It did not answer within the time of a reading, and has not since.
    silent: bool,
    /// Whether its cache has anything; None: it was not asked yet.
    has_items: Option<bool>,
    /// Its cache was asked for again in this reading.
    asked_items: bool,
    unknown: Vec<usize>,
    woken: Option<Instant>,
    awake: bool,
    heard: Instant,
    /// When it was found.
    born: Instant,
    /// When all that is known of it was last doubted.
    checked: Instant,
}

impl App {
    fn is_browser(&self) -> bool {
        self.about.toolkit == "Chromium"
    }

    /// Whether it gives places relative to its windows.
    fn is_relative(&self) -> bool {
        self.about.toolkit == "GTK"
    }

    /// The bit of a state that says that an object shows.
    fn shown(&self) -> u64 {
        // GTK 4 sets the other one for windows only.
        if self.is_relative() { state::VISIBLE } else { state::SHOWING }
    }

    fn rests(&self) -> bool {
        self.in_flight == 0 && self.todo.is_empty()
    }
}

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
    version: u64,
    out: Vec<u8>,
    malformed: usize,
}

impl Collector {
    /// One that knows nothing, and wants to hear what changes.
    #[must_use]
    pub fn new() -> Self {
        let mut new = Self::default();
        let mut out = Vec::new();
        subscribe(&mut out, || new.number());
        new.out = out;
        new
    }

    fn number(&mut self) -> u32 {
        // Zero is no number of a message.
        self.serial = self.serial.checked_add(1).unwrap_or(1);
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
        if !self.listed && self.listing.is_none() {
            let serial = self.number();
            Ask::Children.write(&mut self.out, serial, REGISTRY, ROOT);
            self.listing = Some(serial);
        }
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

    /// Ends the reading; who has not answered is not waited for again until it has.
    pub fn end(&mut self) {
        self.reading = false;
        for app in self.apps.values_mut() {
            if app.stage != Stage::Idle {
                app.silent = app.in_flight > 0;
                app.stage = Stage::Idle;
                app.todo.clear();
                app.unknown.clear();
            }
        }
    }

    /// Looks at what only time decides; returns when it is to be called again.
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

    /// Takes in a message.
    pub fn take(&mut self, message: &Message, now: Instant) {
        let taken = match message.kind {
            Kind::Return | Kind::Error => self.answered(message, now),
            Kind::Signal => self.happened(message, now),
            Kind::Call | Kind::Unknown => Ok(()),
        };
        if taken.is_err() {
            self.malformed += 1;
        }
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
        // Only the one who was asked may answer; the bus itself answers for those who are gone.
        if asked.ask != Ask::Process && message.sender != app.bus && message.sender != "org.freedesktop.DBus" {
            self.asked.insert(message.reply_to, asked);
            return Ok(());
        }
        app.in_flight -= 1;
        app.heard = now;
        if app.silent && app.in_flight == 0 {
            app.silent = false;
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
                heard: now,
                born: now,
                checked: now,
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

    /// Begins with one application, unless it owes answers from before.
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
            app.in_flight += 1;
            let reference = object.reference;
            self.serial = self.serial.checked_add(1).unwrap_or(1);
            ask.write(&mut self.out, self.serial, &app.bus, &object.path);
            self.asked.insert(self.serial, Asked { app: id, node, reference, ask });
        }
    }

    /// Goes on with an application as far as it can; returns when time will have passed that it waits for.
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
            // Who asked before has woken it.
            if app.tree.nodes().any(is_page) {
                app.awake = true;
                app.stage = Stage::Idle;
                return None;
            }
            let until = (app.heard + WAKING).min(woken + WAKING_LIMIT);
            if now < until {
                return Some(until);
            }
            // It says nothing when the page comes in, so what is there is asked again until it has.
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

    /// What may be different where pixels changed, or because a window moved.
    fn doubt(&mut self, id: u32, now: Instant) {
        let Some(app) = self.apps.get_mut(&id) else { return };
        let pid = app.about.pid;
        let moved = self.moved.contains(&pid);
        let relative = app.is_relative().then(|| self.seen.within(pid));
        let changed = relative.as_ref().unwrap_or(&self.seen.changed);
        let shown = app.shown();
        for node in app.tree.nodes_mut().filter(|node| node.shows(shown)) {
            // What has just been made may not be all that it is yet, and does not say when it is.
            if node.since.is_some_and(|since| now < since + UNFINISHED) {
                node.retry();
            }
        }
        // An application begins to tell of changes some time after somebody has begun to listen, or after it has started.
        let young = app.checked < app.born + YOUNG && now >= app.checked + YOUNG_PERIOD;
        if young {
            app.checked = now;
        }
        if changed.is_empty() && !moved && !young {
            return;
        }
        if moved && let Some(root) = app.tree.get_mut(app.root) {
            // Not every toolkit says so.
            root.forget(&[Ask::Children]);
        }
        let mut around = Vec::new();
        for node in app.tree.nodes_mut() {
            if !node.shows(shown) {
                continue;
            }
            let placed = node.area.filter(|area| area.width > 0 && area.height > 0);
            if young || placed.is_none_or(|area| changed.iter().any(|other| other.meets(&area))) {
                node.forget(&[Ask::State, Ask::Extents, Ask::Children, Ask::Text, Ask::Value]);
                node.retry();
                if young || app.has_items != Some(true) {
                    around.extend(node.children.iter().take(MOST_DOUBTED));
                }
            } else if moved {
                node.forget(&[Ask::Extents]);
            }
        }
        // What did not show may do so now; who has a cache says so.
        for each in around {
            if let Some(node) = app.tree.get_mut(each).filter(|node| !node.shows(shown)) {
                node.forget(&[Ask::State]);
            }
        }
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
        let wake = app.is_browser() && app.woken.is_none();
        let shown = app.shown();
        let mut stack = vec![from];
        while let Some(at) = stack.pop() {
            let top = at == app.root;
            let in_bulk = app.has_items == Some(true) && !app.asked_items;
            let Some(node) = app.tree.get_mut(at) else { continue };
            let mut missing = node.missing(top, read, MOST_CHILDREN as i32, shown);
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
            if top || node.shows(shown) {
                stack.extend(&node.children);
            }
        }
    }

    /// Asks about objects of which nothing is known: all at once where they are many and the application can.
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

    fn refused(&mut self, asked: Asked, now: Instant) {
        let Some(app) = self.apps.get_mut(&asked.app) else { return };
        if asked.ask == Ask::Items {
            return self.without_items(asked.app);
        }
        let root = app.root;
        let Some(node) = app.tree.get_mut(asked.node).filter(|node| node.reference == asked.reference) else { return };
        node.known |= asked.ask.bit();
        node.refuse(asked.ask, now);
        // Who cannot say its state is not there any more.
        if asked.ask == Ask::State && asked.node != root {
            let parent = node.parent;
            app.tree.remove(asked.node);
            self.version += 1;
            if let Some(parent) = parent.and_then(|parent| app.tree.get_mut(parent)) {
                parent.forget(&[Ask::Children]);
            }
        }
    }

    /// An application has no cache, or would not say what is in it: each object is asked about by itself.
    fn without_items(&mut self, id: u32) {
        let Some(app) = self.apps.get_mut(&id) else { return };
        app.has_items = app.has_items.or(Some(false));
        for at in std::mem::take(&mut app.unknown) {
            self.pursue(id, at);
        }
    }

    /// Takes in an answer.
    fn learn(&mut self, asked: Asked, message: &Message, now: Instant) -> Result<(), Malformed> {
        let mut body = message.body();
        match asked.ask {
            Ask::Items => return self.items(asked.app, body, message.signature),
            Ask::Ping | Ask::Wake => return Ok(()),
            Ask::Process => {
                let pid = body.u32()?;
                if let Some(app) = self.apps.get_mut(&asked.app) {
                    app.about.pid = pid;
                }
                return Ok(());
            }
            Ask::Toolkit | Ask::Version => {
                let (Some(app), Value::Text(text)) = (self.apps.get_mut(&asked.app), body.variant()?) else {
                    return Ok(());
                };
                let field = if asked.ask == Ask::Toolkit { &mut app.about.toolkit } else { &mut app.about.version };
                beginning(text, LONGEST_NAME).clone_into(field);
                return Ok(());
            }
            Ask::Children => return self.children(asked, body),
            _ => {}
        }
        let Some(app) = self.apps.get_mut(&asked.app) else { return Ok(()) };
        let Some(node) = app.tree.get_mut(asked.node).filter(|node| node.reference == asked.reference) else {
            return Ok(());
        };
        node.known |= asked.ask.bit();
        let mut changed = false;
        let mut moved = false;
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
                let before = node.area;
                changed = set(&mut node.area, Some(area));
                moved = changed && before.is_some();
                if area.width <= 0 || area.height <= 0 {
                    node.refuse(Ask::Extents, now);
                }
            }
            Ask::Text => {
                let text = beginning(body.str()?, LONGEST_TEXT);
                changed = set_text(&mut node.text, text);
            }
            Ask::Value => {
                if let Value::Number(number) = body.variant()? {
                    changed = set(&mut node.value, Some(number));
                }
            }
            Ask::Actions => {
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
        if moved {
            self.siblings(asked);
        }
        self.pursue(asked.app, asked.node);
        Ok(())
    }

    /// Something moved: what is beside it may have moved as well, or show now.
    fn siblings(&mut self, asked: Asked) {
        let Some(app) = self.apps.get_mut(&asked.app) else { return };
        let Some(parent) = app.tree.get(asked.node).and_then(|node| node.parent) else { return };
        let Some(around) = app.tree.get_mut(parent) else { return };
        if !around.knows(Ask::Extents) {
            return;
        }
        around.forget(&[Ask::Extents]);
        for each in around.children.clone() {
            if let Some(node) = app.tree.get_mut(each) {
                node.forget(&[Ask::State, Ask::Extents]);
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
            // What is another application's is told by that one.
            if bus != app.bus || path == "/org/a11y/atspi/null" {
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
            node.claimed = node.claimed.max(total as i32);
        }
        self.version += u64::from(changed);
        self.pursue(asked.app, asked.node);
        Ok(())
    }

    /// The whole cache of an application, in either of its two forms.
    fn items(&mut self, id: u32, mut body: Reader, signature: &str) -> Result<(), Malformed> {
        let listed = match signature {
            "a((so)(so)(so)iiassusau)" => false,
            "a((so)(so)(so)a(so)assusau)" => true,
            _ => {
                self.without_items(id);
                return Ok(());
            }
        };
        let Some(app) = self.apps.get_mut(&id) else { return Ok(()) };
        let mut below: HashMap<usize, Vec<(i32, usize)>> = HashMap::new();
        let end = body.array(8)?;
        let mut any = false;
        while !body.reached(end) {
            any = true;
            body.structure()?;
            let (bus, path) = body.object()?;
            body.object()?;
            let (_, parent) = body.object()?;
            let Some(at) = app.tree.intern(path, &mut self.next_reference).filter(|_| bus == app.bus) else {
                app.tree.cut = true;
                break;
            };
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

    fn happened(&mut self, message: &Message, now: Instant) -> Result<(), Malformed> {
        if message.interface == "org.freedesktop.DBus" && message.sender == "org.freedesktop.DBus" {
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
                if self.reading && self.listing.is_none() {
                    let serial = self.number();
                    Ask::Children.write(&mut self.out, serial, REGISTRY, ROOT);
                    self.listing = Some(serial);
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
        let Some(node) = app.tree.get_mut(at) else { return Ok(()) };
        node.retry();
        let mut changed = false;
        let before = node.shows(shown);
        match news {
            News::State(bit, on) => {
                let states = if on { node.states | bit } else { node.states & !bit };
                changed = node.knows(Ask::State) && set(&mut node.states, states);
            }
            News::Name(text) => changed = set_str(&mut node.name, text),
            News::Description(text) => changed = set_str(&mut node.description, text),
            News::Stale(asks) => node.forget(asks),
            News::Windows => node.forget(&[Ask::Children]),
            News::Gone(_) | News::Nothing => {}
        }
        // What did not show may have moved, and its contents have changed, without a word.
        if !before && node.shows(shown) {
            node.forget(&[Ask::Extents, Ask::Children, Ask::Text, Ask::Value]);
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
                let Some(node) = app.tree.get(at).filter(|node| node.shows(app.shown())) else { continue };
                found.elements.push(element(node, depth, place, app.is_relative()));
                stack.extend(node.children.iter().rev().map(|each| (*each, depth + 1)));
            }
        }
        found
    }

    /// The version of what [`Collector::snapshot`] would return.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }
}

fn element(node: &Node, depth: u16, application: usize, _relative: bool) -> Element {
    let claimed = usize::try_from(node.claimed).unwrap_or(0);
    Element {
        reference: node.reference,
        depth,
        application,
        role: node.role,
        states: node.states & !state::DEFUNCT,
        name: Arc::clone(&node.name),
        description: Arc::clone(&node.description),
        text: node.text.clone(),
        value: node.value,
        area: node.area,
        actions: Arc::clone(&node.actions),
        hidden: claimed.saturating_sub(node.children.len()) as u32,
    }
}

fn is_page(node: &Node) -> bool {
    node.role == role::DOCUMENT_WEB && !node.children.is_empty()
}

/// The processes whose windows came, went or are elsewhere now.
fn moved(before: &[Window], now: &[Window]) -> Vec<u32> {
    let came = now.iter().filter(|window| !before.contains(window));
    let went = before.iter().filter(|window| !now.contains(window));
    came.chain(went).map(|window| window.pid).filter(|pid| *pid != 0).collect()
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

fn set<T: PartialEq>(field: &mut T, value: T) -> bool {
    let different = *field != value;
    *field = value;
    different
}

fn set_str(field: &mut Arc<str>, text: &str) -> bool {
    let different = &**field != text;
    if different {
        *field = Arc::from(text);
    }
    different
}

fn set_text(field: &mut Option<Arc<str>>, text: &str) -> bool {
    let different = field.as_deref() != Some(text);
    if different {
        *field = Some(Arc::from(text));
    }
    different
}
