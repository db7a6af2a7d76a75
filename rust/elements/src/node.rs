//! One object of an application, and what callers see of it.

use std::sync::Arc;
use std::time::Instant;

use crate::ask::Ask;
use crate::codes::{interface, role, state};
use crate::grid::{Cell, Grid};
use crate::toolkit::Toolkit;

/// Signs of a name or description that are kept.
pub(crate) const LONGEST_NAME: usize = 1_000;
/// Bytes of a text that are kept.
pub(crate) const LONGEST_TEXT: usize = 16_000;

/// Where an object is, in pixels of the screen, or of its window where the toolkit knows nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Area {
    /// Of its left edge.
    pub x: i32,
    /// Of its upper edge.
    pub y: i32,
    /// In pixels.
    pub width: i32,
    /// In pixels.
    pub height: i32,
}

impl Area {
    /// The smallest one that has all of both.
    #[must_use]
    pub fn around(&self, other: &Self) -> Self {
        let both = |a: i32, length: i32, b: i32, other: i32| {
            let begin = a.min(b);
            let end = a.saturating_add(length).max(b.saturating_add(other));
            (begin, end.saturating_sub(begin))
        };
        let (x, width) = both(self.x, self.width, other.x, other.width);
        let (y, height) = both(self.y, self.height, other.y, other.height);
        Self { x, y, width, height }
    }

    /// What is in both; None where nothing is.
    #[must_use]
    pub fn overlap(&self, other: &Self) -> Option<Self> {
        let both = |a: i32, length: i32, b: i32, other: i32| {
            let begin = a.max(b);
            let end = a.saturating_add(length).min(b.saturating_add(other));
            (begin, end.saturating_sub(begin))
        };
        let (x, width) = both(self.x, self.width, other.x, other.width);
        let (y, height) = both(self.y, self.height, other.y, other.height);
        (width > 0 && height > 0).then_some(Self { x, y, width, height })
    }

    /// Whether all of another is in it.
    #[must_use]
    pub fn has(&self, other: &Self) -> bool {
        self.overlap(other) == Some(*other)
    }

    /// Whether a pixel is in both.
    #[must_use]
    pub fn meets(&self, other: &Self) -> bool {
        let apart = |a: i32, length: i32, b: i32, other: i32| {
            i64::from(a) + i64::from(length) <= i64::from(b) || i64::from(b) + i64::from(other) <= i64::from(a)
        };
        !apart(self.x, self.width, other.x, other.width) && !apart(self.y, self.height, other.y, other.height)
    }
}

/// An application on the bus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Application {
    /// What it calls itself.
    pub name: String,
    /// Its toolkit, such as `gtk`.
    pub toolkit: String,
    /// The toolkit's version.
    pub version: String,
    /// Its process, as the bus sees it; 0 for unknown.
    pub pid: u32,
    /// Why not all of its elements are there, or as they are now; empty where they are.
    pub left_out: &'static str,
}

/// One element as it was when it was last read.
#[derive(Debug, Clone)]
pub struct Element {
    /// Names this element, and no other, for as long as the session lives.
    pub reference: u64,
    /// How many elements it is in; 0 for a window.
    pub depth: u16,
    /// Its application, by place in [`Snapshot::applications`].
    pub application: usize,
    /// As AT-SPI numbers it.
    pub role: u32,
    /// As AT-SPI numbers its bits.
    pub states: u64,
    /// What it is called.
    pub name: Arc<str>,
    /// What is said of it beyond that.
    pub description: Arc<str>,
    /// What is written in it; None where it has no text, or hides it.
    pub text: Option<Arc<str>>,
    /// Of a slider, a progress bar...
    pub value: Option<f64>,
    /// Where it is; None where that is not known.
    pub area: Option<Area>,
    /// What its toolkit offers to do with it.
    pub actions: Arc<[String]>,
    /// How many children it says it has that are not here.
    pub hidden: u32,
}

/// All elements that show, each after the one that it is in.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// Changes whenever something else does.
    pub version: u64,
    /// The applications.
    pub applications: Vec<Application>,
    /// Their elements.
    pub elements: Vec<Element>,
}

/// An object, as far as it is known.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) path: Box<str>,
    pub(crate) reference: u64,
    pub(crate) parent: Option<usize>,
    pub(crate) depth: u16,
    pub(crate) children: Vec<usize>,
    /// How many it says that it has.
    pub(crate) claimed: i32,
    pub(crate) role: u32,
    pub(crate) states: u64,
    /// Since when it shows, as far as that was heard.
    pub(crate) shown: Option<Instant>,
    pub(crate) interfaces: u8,
    pub(crate) name: Arc<str>,
    pub(crate) description: Arc<str>,
    pub(crate) text: Option<Arc<str>>,
    pub(crate) value: Option<f64>,
    pub(crate) actions: Arc<[String]>,
    pub(crate) area: Option<Area>,
    /// Which cells are in view, where it is a table with more of them than are listed.
    pub(crate) grid: Option<Box<Grid>>,
    /// Where it is in such a table.
    pub(crate) cell: Option<Cell>,
    /// Which questions have an answer that holds.
    pub(crate) known: u32,
    /// Which of these it refused to answer.
    pub(crate) refused: u32,
    /// When it first did.
    pub(crate) since: Option<Instant>,
    /// Which were asked since the reading of number `read` began.
    pub(crate) asked: u32,
    pub(crate) read: u32,
}

/// What an application's cache has of an object besides its state.
pub(crate) const DETAILS: u32 = Ask::Name.bit() | Ask::Description.bit() | Ask::Role.bit() | Ask::Interfaces.bit();

impl Node {
    pub(crate) fn new(path: &str, reference: u64) -> Self {
        Self {
            path: path.into(),
            reference,
            parent: None,
            depth: 0,
            children: Vec::new(),
            claimed: 0,
            role: 0,
            states: 0,
            shown: None,
            interfaces: 0,
            name: Arc::from(""),
            description: Arc::from(""),
            text: None,
            value: None,
            actions: Arc::from([]),
            area: None,
            grid: None,
            cell: None,
            known: 0,
            refused: 0,
            since: None,
            asked: 0,
            read: 0,
        }
    }

    pub(crate) fn knows(&self, ask: Ask) -> bool {
        self.known & ask.bit() != 0
    }

    /// Ask once more, also where that was asked in this reading.
    pub(crate) fn ask_again(&mut self, ask: Ask) {
        self.known &= !ask.bit();
        self.asked &= !ask.bit();
    }

    /// Another object is at its path now: nothing that is known holds, and its reference is given to no other.
    pub(crate) fn renew(&mut self, reference: u64) {
        let path = std::mem::take(&mut self.path);
        let children = std::mem::take(&mut self.children);
        *self = Self { path, parent: self.parent, depth: self.depth, children, ..Self::new("", reference) };
    }

    pub(crate) fn forget(&mut self, asks: &[Ask]) {
        for ask in asks {
            self.known &= !ask.bit();
        }
        if self.grid.is_some() && asks.contains(&Ask::Children) {
            self.known &= !Grid::CORNERS;
        }
    }

    /// It refused to answer, or had no answer yet.
    pub(crate) fn refuse(&mut self, ask: Ask, now: Instant) {
        self.refused |= ask.bit();
        self.since.get_or_insert(now);
    }

    /// What it refused to answer may have an answer now.
    pub(crate) fn retry(&mut self) {
        self.known &= !std::mem::take(&mut self.refused);
    }

    /// Whether it shows, where `bit` is what its toolkit says of that.
    pub(crate) fn shows(&self, bit: u64) -> bool {
        // GTK 3 takes a viewport for hidden once its contents are scrolled by more than its size.
        self.states & bit != 0 || self.role == role::VIEWPORT && self.states & state::VISIBLE != 0
    }

    /// Notes whether it shows now, where `bit` is what its toolkit says of that; returns it.
    pub(crate) fn note_shown(&mut self, bit: u64, now: Instant) -> bool {
        self.shown = self.shows(bit).then(|| self.shown.unwrap_or(now));
        self.shown.is_some()
    }

    /// Whether it may be scrolled to, where `parent` shows or may be scrolled to itself.
    pub(crate) fn is_scrolled_out(&self, parent: &Self) -> bool {
        // What is in a window, and not on another page, in a menu or in a list that is closed.
        parent.depth > 0 && self.states & state::VISIBLE != 0 && !role::CLOSING.contains(&parent.role)
    }

    /// What is not known of it and is worth knowing. `top`: it is an application's root, which has no state.
    pub(crate) fn missing(&self, top: bool, read: u32, most: i32, toolkit: Toolkit, shown: bool) -> u32 {
        let wanted = match toolkit {
            _ if top => Ask::Name.bit() | Ask::Children.bit(),
            _ if self.cell.is_some() && !self.knows(Ask::Cell) => Ask::Cell.bit(),
            _ if !self.knows(Ask::State) => Ask::State.bit(),
            // Its place says whether it can be seen, and before that nothing else is worth knowing.
            Toolkit::Gtk4 if self.states & state::VISIBLE != 0 && !self.knows(Ask::Extents) => Ask::Extents.bit(),
            // Its role says whether it is a viewport, which may show all the same.
            _ if self.cell.is_some() => {
                if shown {
                    Cell::WANTED
                } else {
                    0
                }
            }
            Toolkit::Gtk3 if self.states & state::VISIBLE != 0 && !self.knows(Ask::Role) => Ask::Role.bit(),
            _ if !shown => 0,
            Toolkit::Chromium => self.of_a_page(most),
            _ => self.of_a_widget(most),
        };
        let asked = if self.read == read { self.asked } else { 0 };
        wanted & !self.known & !asked
    }

    fn of_a_widget(&self, most: i32) -> u32 {
        let mut wanted = Ask::State.bit() | DETAILS;
        // A table of Calc has 2^31 children.
        let is_table = self.states & state::MANAGES_DESCENDANTS != 0;
        if is_table {
            wanted |= Ask::Count.bit();
        }
        if self.claimed <= most && (!is_table || self.knows(Ask::Count)) {
            wanted |= Ask::Children.bit();
        }
        if self.knows(Ask::Interfaces) && self.knows(Ask::Role) {
            wanted |= self.offered();
        }
        if is_table && self.claimed > most && self.interfaces & interface::TABLE != 0 && self.area.is_some() {
            wanted |= Grid::wanted(self.grid.as_deref(), self.known);
        }
        wanted
    }

    /// Chromium has no cache, and thousands of objects: what follows from an object's role is not asked.
    fn of_a_page(&self, most: i32) -> u32 {
        let mut wanted = Ask::State.bit() | Ask::Name.bit() | Ask::Role.bit() | Ask::Extents.bit();
        if self.knows(Ask::Role) && self.role != role::STATIC {
            wanted |= Ask::Description.bit();
            if self.claimed <= most {
                wanted |= Ask::Children.bit();
            }
            let editable = self.states & state::EDITABLE != 0;
            if editable || role::TEXTS.contains(&self.role) && self.role != role::PASSWORD {
                wanted |= Ask::Text.bit();
            }
            if role::RANGES.contains(&self.role) {
                wanted |= Ask::Value.bit();
            }
            if self.role != role::TABLE_CELL && role::ACTING.contains(&self.role) {
                wanted |= Ask::Actions.bit();
            }
        }
        if self.role == role::PASSWORD { wanted & !Ask::Text.bit() } else { wanted }
    }

    /// What its interfaces have answers to.
    fn offered(&self) -> u32 {
        let mut wanted = 0;
        if self.interfaces & interface::COMPONENT != 0 {
            wanted |= Ask::Extents.bit();
        }
        if self.interfaces & interface::VALUE != 0 {
            wanted |= Ask::Value.bit();
        }
        if self.interfaces & interface::ACTION != 0 && role::ACTING.contains(&self.role) {
            wanted |= Ask::Actions.bit();
        }
        let written = self.interfaces & interface::EDITABLE != 0 || role::TEXTS.contains(&self.role);
        if self.interfaces & interface::TEXT != 0 && written && self.role != role::PASSWORD {
            wanted |= Ask::Text.bit();
        }
        wanted
    }
}

/// The beginning of a text, at most `longest` bytes.
pub(crate) fn beginning(text: &str, longest: usize) -> &str {
    let mut end = longest.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
