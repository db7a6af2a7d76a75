//! An application that a test plays: objects, and the answers to what is asked of them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use elements::wire::{Kind, Message, parse, said};
use elements::{Collector, Seen, Snapshot};

use crate::body::Body;

pub const ROOT: &str = "/org/a11y/atspi/accessible/root";
pub const SHOWING: u64 = 1 << 25 | 1 << 30 | 1 << 8;

#[derive(Clone)]
pub struct Object {
    pub name: String,
    pub role: u32,
    pub states: u64,
    pub children: Vec<String>,
    pub area: (i32, i32, i32, i32),
}

impl Object {
    pub fn new(name: &str, role: u32, children: &[&str]) -> Self {
        let children = children.iter().map(|child| (*child).to_owned()).collect();
        Self { name: name.into(), role, states: SHOWING, children, area: (0, 0, 10, 10) }
    }
}

/// A table of 1,000 columns and 2^31 - 1 cells, of which some are in view. Cells are 10 pixels wide and high.
#[derive(Clone)]
pub struct Sheet {
    /// The first row and column in view, and the last ones.
    pub first: (i32, i32),
    pub last: (i32, i32),
    /// Counts the objects given out; a cell has a new one whenever it is asked for.
    pub given: usize,
    /// Objects below this number are gone.
    pub oldest: usize,
    pub text: String,
    pub states: u64,
}

impl Sheet {
    pub const COLUMNS: i32 = 1_000;

    fn give(&mut self, (row, column): (i32, i32)) -> String {
        self.given += 1;
        format!("/cell/{}/{row}/{column}", self.given)
    }

    /// The row and column of a cell's object, if that is still there.
    fn place(&self, path: &str) -> Option<(i32, i32)> {
        let mut parts = path.strip_prefix("/cell/")?.split('/');
        let given: usize = parts.next()?.parse().ok()?;
        let mut next = || parts.next()?.parse().ok();
        Some((next()?, next()?)).filter(|_| given >= self.oldest)
    }
}

pub struct Application {
    pub bus: String,
    /// The object `/table`, where there is one.
    pub sheet: Option<Sheet>,
    pub objects: BTreeMap<String, Object>,
    pub has_items: bool,
    pub answers: bool,
    pub toolkit: &'static str,
    pub asked: Vec<String>,
}

impl Application {
    pub fn new(bus: &str, objects: &[(&str, Object)]) -> Self {
        let objects = objects.iter().map(|(path, object)| ((*path).to_owned(), object.clone())).collect();
        Self {
            bus: bus.into(),
            sheet: None,
            objects,
            has_items: false,
            answers: true,
            toolkit: "played",
            asked: Vec::new(),
        }
    }

    /// The answer to a call: types and bytes; None for a refusal.
    fn answer(&mut self, message: &Message) -> Option<(String, Vec<u8>)> {
        let mut body = Body::default();
        self.asked.push(format!("{} {}", message.member, message.path));
        if message.member == "Ping" {
            return Some((String::new(), Vec::new()));
        }
        if message.member == "GetItems" {
            return Some(self.items());
        }
        if let Some(found) = self.of_sheet(message) {
            return Some(found);
        }
        let object = self.objects.get(message.path)?;
        let signature = match message.member {
            "GetChildren" => {
                body.array(8, |body| {
                    for child in &object.children {
                        body.object(&self.bus, child);
                    }
                });
                "a(so)"
            }
            "GetState" => {
                body.array(4, |body| {
                    body.u32(object.states as u32).u32((object.states >> 32) as u32);
                });
                "au"
            }
            "GetRole" => {
                body.u32(object.role);
                "u"
            }
            "GetInterfaces" => {
                body.array(4, |body| {
                    body.str("org.a11y.atspi.Accessible").str("org.a11y.atspi.Component").str("org.a11y.atspi.Text");
                });
                "as"
            }
            "GetExtents" => {
                let (x, y, width, height) = object.area;
                for number in [x, y, width, height] {
                    body.u32(number as u32);
                }
                "(iiii)"
            }
            "GetText" => {
                body.str("written");
                "s"
            }
            "Get" => {
                let mut given = message.body();
                let (_, name) = (given.str().unwrap(), given.str().unwrap());
                let text = match name {
                    "Name" => object.name.as_str(),
                    "ToolkitName" => self.toolkit,
                    "Version" => "1",
                    _ => "",
                };
                body.variant("s").str(text);
                "v"
            }
            _ => return None,
        };
        Some((signature.into(), body.0))
    }

    /// What a table and its cells answer.
    fn of_sheet(&mut self, message: &Message) -> Option<(String, Vec<u8>)> {
        let sheet = self.sheet.as_mut()?;
        let mut body = Body::default();
        let cell = sheet.place(message.path);
        let mut given = message.body();
        let signature = match (message.member, cell) {
            ("GetAccessibleAtPoint", None) => {
                // The first corner is where the table begins.
                let place = if given.i32().unwrap() == 0 { sheet.first } else { sheet.last };
                body.object(&self.bus, &sheet.give(place));
                "(so)"
            }
            ("GetAccessibleAt", None) => {
                let place = (given.i32().unwrap(), given.i32().unwrap());
                body.object(&self.bus, &sheet.give(place));
                "(so)"
            }
            ("GetInterfaces", None) if message.path == "/table" => {
                body.array(4, |body| {
                    body.str("org.a11y.atspi.Component").str("org.a11y.atspi.Table");
                });
                "as"
            }
            ("Get", None) if message.path == "/table" => {
                given.str().unwrap();
                let number = match given.str().unwrap() {
                    "ChildCount" => i32::MAX,
                    "NColumns" => Sheet::COLUMNS,
                    _ => return None,
                };
                body.variant("i").u32(number as u32);
                "v"
            }
            ("GetIndexInParent", Some((row, column))) => {
                body.u32((row * Sheet::COLUMNS + column) as u32);
                "i"
            }
            ("GetState", Some(_)) => {
                body.array(4, |body| {
                    body.u32(sheet.states as u32).u32(0);
                });
                "au"
            }
            ("Get", Some((row, column))) => {
                body.variant("s").str(&format!("R{row}C{column}"));
                "v"
            }
            ("GetExtents", Some((row, column))) => {
                for number in [(column - sheet.first.1) * 10, (row - sheet.first.0) * 10, 10, 10] {
                    body.u32(number as u32);
                }
                "(iiii)"
            }
            ("GetText", Some(_)) => {
                body.str(&sheet.text);
                "s"
            }
            _ => return None,
        };
        Some((signature.into(), body.0))
    }

    fn items(&self) -> (String, Vec<u8>) {
        let mut body = Body::default();
        let parents: BTreeMap<&str, (&str, usize)> = self
            .objects
            .iter()
            .flat_map(|(path, object)| {
                object.children.iter().enumerate().map(move |(at, child)| (child.as_str(), (path.as_str(), at)))
            })
            .collect();
        body.array(8, |body| {
            for (path, object) in self.objects.iter().filter(|_| self.has_items) {
                let (parent, index) = parents.get(path.as_str()).copied().unwrap_or(("/org/a11y/atspi/null", 0));
                body.pad(8).object(&self.bus, path).object(&self.bus, ROOT).object(&self.bus, parent);
                body.u32(index as u32).u32(object.children.len() as u32);
                body.array(4, |body| {
                    body.str("org.a11y.atspi.Component");
                });
                body.str(&object.name).u32(object.role).str("");
                body.array(4, |body| {
                    body.u32(object.states as u32).u32((object.states >> 32) as u32);
                });
            }
        });
        ("a((so)(so)(so)iiassusau)".into(), body.0)
    }
}

/// The bus, and who is on it.
pub struct Bus {
    pub collector: Collector,
    pub applications: Vec<Application>,
    pub now: Instant,
    /// Calls that have no answer yet.
    pub waiting: Vec<Vec<u8>>,
}

impl Bus {
    pub fn new(applications: Vec<Application>) -> Self {
        Self { collector: Collector::new(), applications, now: Instant::now(), waiting: Vec::new() }
    }

    pub fn feed(&mut self, bytes: &[u8]) {
        self.collector.take(&parse(bytes).unwrap(), self.now);
    }

    pub fn event(&mut self, bus: &str, path: &str, member: &str, detail: &str, first: u32, text: Option<&str>) {
        let mut body = Body::default();
        body.str(detail).u32(first).u32(0);
        match text {
            Some(text) => body.variant("s").str(text),
            None => body.variant("i").u32(0),
        };
        body.array(8, |_| {});
        let mut out = Vec::new();
        said(&mut out, 0, (bus, path), ("org.a11y.atspi.Event.Object", member), ("siiva{sv}", &body.0));
        self.feed(&out);
    }

    /// Takes what is to be sent apart into messages.
    fn sent(&mut self) -> Vec<Vec<u8>> {
        let bytes = self.collector.take_output();
        let mut rest = &bytes[..];
        let mut found = Vec::new();
        while let Ok(Some(length)) = elements::wire::length(rest) {
            let (one, after) = rest.split_at(length);
            found.push(one.to_vec());
            rest = after;
        }
        found
    }

    /// Answers until nobody is asked anything; who does not answer owes it.
    pub fn settle(&mut self) {
        loop {
            let mut asked = self.sent();
            let before = std::mem::take(&mut self.waiting);
            asked.splice(0..0, before);
            let mut any = false;
            for bytes in asked {
                any |= self.answer(&bytes);
            }
            if self.collector.tick(self.now).is_some() {
                self.now += Duration::from_millis(50);
                any = true;
            }
            let more = self.sent();
            any |= !more.is_empty();
            self.waiting.extend(more);
            if !any {
                return;
            }
        }
    }

    fn answer(&mut self, bytes: &[u8]) -> bool {
        let message = parse(bytes).unwrap();
        assert_eq!(message.kind, Kind::Call);
        let mut out = Vec::new();
        let destination = message.destination;
        let found = match destination {
            "org.freedesktop.DBus" => {
                let mut body = Body::default();
                body.u32(4711);
                (message.member == "GetConnectionUnixProcessID").then_some(("u".to_owned(), body.0))
            }
            "org.a11y.atspi.Registry" if message.member == "GetChildren" => {
                let mut body = Body::default();
                body.array(8, |body| {
                    for each in &self.applications {
                        body.object(&each.bus, ROOT);
                    }
                });
                Some(("a(so)".to_owned(), body.0))
            }
            "org.a11y.atspi.Registry" => None,
            bus => {
                let Some(application) = self.applications.iter_mut().find(|each| each.bus == bus) else { return true };
                if !application.answers {
                    self.waiting.push(bytes.to_vec());
                    return false;
                }
                let Some((signature, body)) = application.answer(&message) else {
                    let mut refusal = Vec::new();
                    said(&mut refusal, message.serial, (bus, ""), ("", ""), ("", &[]));
                    // The same as an error.
                    refusal[1] = 3;
                    self.feed(&refusal);
                    return true;
                };
                said(&mut out, message.serial, (bus, ""), ("", ""), (&signature, &body));
                self.feed(&out);
                return true;
            }
        };
        if let Some((signature, body)) = found {
            said(&mut out, message.serial, (destination, ""), ("", ""), (&signature, &body));
            self.feed(&out);
        }
        true
    }

    /// One whole reading.
    pub fn read(&mut self, seen: Seen) -> Snapshot {
        self.collector.begin(seen, self.now);
        self.settle();
        self.collector.end();
        self.collector.snapshot()
    }
}
