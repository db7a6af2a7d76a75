//! One application: what is known of it, what is asked of it, and which of its objects are wanted.

use std::collections::VecDeque;
use std::time::Instant;

use crate::ask::{Ask, LONGEST_TEXT};
use crate::codes::{role, state};
use crate::grid::{Cell, TooMany};
use crate::node::{Application, Area, Node};
use crate::toolkit::Toolkit;
use crate::tree::Tree;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nothing is asked of it in this reading.
    Idle,
    /// It has been sent a ping, whose answer follows all earlier events.
    Barrier,
    /// What is missing is being asked.
    Reading,
}

#[derive(Debug)]
pub(super) struct App {
    pub(super) bus: String,
    pub(super) about: Application,
    pub(super) tree: Tree,
    pub(super) root: usize,
    pub(super) stage: Stage,
    pub(super) todo: VecDeque<(usize, Ask)>,
    pub(super) in_flight: usize,
    /// It did not answer within the time of a reading, and has not since.
    pub(super) silent: bool,
    /// Whether its cache has anything; None: it was not asked yet.
    pub(super) has_items: Option<bool>,
    /// Its cache was asked for again in this reading.
    pub(super) asked_items: bool,
    pub(super) unknown: Vec<usize>,
    pub(super) woken: Option<Instant>,
    pub(super) awake: bool,
    /// Where pixels changed so lately that answers may be older than that, and when.
    pub(super) late: Vec<(Area, Instant)>,
    /// When the line that keys go to was last written in, of a toolkit that opens a list below it some time later.
    pub(super) written: Option<Instant>,
    pub(super) heard: Instant,
    /// When it was found, or sent the last event about something new, where that comes in pieces.
    pub(super) fresh: Instant,
    /// When all of it was last asked again.
    pub(super) checked: Instant,
    /// When names of what is scrolled out of sight were last asked again; None: never.
    pub(super) names_checked: Option<Instant>,
}

impl App {
    pub(super) fn toolkit(&self) -> Toolkit {
        Toolkit::named(&self.about.toolkit)
    }

    /// Whether it gives places relative to its windows.
    pub(super) fn is_relative(&self) -> bool {
        self.toolkit() == Toolkit::Gtk4
    }

    /// The bit of a state that says that an object shows.
    pub(super) fn shown(&self) -> u64 {
        // GTK 4 sets the other one for windows only.
        if self.is_relative() { state::VISIBLE } else { state::SHOWING }
    }

    /// Whether an object is wanted: it shows, or may be scrolled to and `deep` is asked for.
    pub(super) fn wants(&self, at: usize, deep: bool) -> bool {
        let Some(node) = self.tree.get(at) else { return false };
        let parent = || node.parent.and_then(|parent| self.tree.get(parent));
        let shows = node.shows(self.shown()) && (!self.is_relative() || self.is_in_view(node));
        shows || deep && parent().is_some_and(|parent| node.is_scrolled_out(parent))
    }

    /// Whether a place meets what scrolls it, where both are known: GTK 4 calls all visible that is not hidden by itself.
    fn is_in_view(&self, node: &Node) -> bool {
        let Some(area) = node.area else { return true };
        let mut above = node.parent.and_then(|parent| self.tree.get(parent));
        while let Some(around) = above {
            if around.role == role::SCROLL_PANE {
                return around.area.is_none_or(|around| around.meets(&area));
            }
            above = around.parent.and_then(|parent| self.tree.get(parent));
        }
        true
    }

    /// An object shows that did not: it may have moved, and its contents have changed, without a word.
    pub(super) fn appeared(&mut self, at: usize) {
        let shown = self.shown();
        let tells = self.toolkit() == Toolkit::Gtk3 && self.has_items == Some(true);
        let Some(node) = self.tree.get_mut(at) else { return };
        node.forget(&[Ask::Extents, Ask::Children, Ask::Text, Ask::Value]);
        if tells && role::MENUS.contains(&node.role) {
            // A menu in a menu is closed, and each object in it sends an event when it opens.
            return;
        }
        for child in node.children.clone() {
            if let Some(child) = self.tree.get_mut(child).filter(|child| !child.shows(shown)) {
                child.forget(&[Ask::State]);
            }
        }
    }

    /// Which object a question is for, and the two numbers that go with it.
    pub(super) fn addressed<'a>(&'a self, node: &'a Node, ask: Ask) -> (&'a str, (i32, i32)) {
        let table = || node.parent.and_then(|parent| self.tree.get(parent));
        match (ask, &node.cell, &node.grid, node.area) {
            (Ask::Cell, Some(cell), ..) => (table().map_or("", |table| &table.path), (cell.row, cell.column)),
            // Calc gives nothing of a text that ends before the range that is asked for does.
            (Ask::Text, Some(cell), ..) => (&cell.path, (0, -1)),
            (Ask::Text, None, ..) => (&node.path, (0, LONGEST_TEXT)),
            (_, Some(cell), ..) => (&cell.path, (0, 0)),
            (Ask::FirstIndex, _, Some(grid), _) => (&grid.corners[0], (0, 0)),
            (Ask::LastIndex, _, Some(grid), _) => (&grid.corners[1], (0, 0)),
            (Ask::First, _, _, Some(area)) => (&node.path, (area.x, area.y)),
            (Ask::Last, _, _, Some(Area { x, y, width, height })) => {
                let end = |begin: i32, length: i32| begin.saturating_add(length).saturating_sub(1);
                (&node.path, (end(x, width), end(y, height)))
            }
            _ => (&node.path, (0, 0)),
        }
    }

    /// Makes the cells in view the children of a table. Returns whether they are others than before.
    pub(super) fn lay_out(&mut self, table: usize, next_reference: &mut u64) -> bool {
        let Some(node) = self.tree.get(table) else { return false };
        let Some(grid) = node.grid.as_deref() else { return false };
        let [rows, columns] = match grid.view() {
            Ok(Some(view)) => view,
            Ok(None) => return false,
            Err(TooMany) => {
                self.tree.cut = true;
                return false;
            }
        };
        let path = node.path.clone();
        let mut cells = Vec::new();
        for row in rows.0..=rows.1 {
            for column in columns.0..=columns.1 {
                // No path on the bus has such a sign.
                let Some(at) = self.tree.intern(&format!("{path}#{row},{column}"), next_reference) else { break };
                if let Some(node) = self.tree.get_mut(at).filter(|node| node.cell.is_none()) {
                    node.cell = Some(Cell { row, column, path: Box::from(""), may_be_empty: false });
                    node.role = role::TABLE_CELL;
                    node.known |= Ask::Role.bit();
                }
                cells.push(at);
            }
        }
        self.tree.link(table, &cells)
    }

    pub(super) fn rests(&self) -> bool {
        self.in_flight == 0 && self.todo.is_empty()
    }
}
