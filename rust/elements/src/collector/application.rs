//! One application: what is known of it, what is asked of it, and which of its objects are wanted.

use std::collections::VecDeque;
use std::time::Instant;

use crate::ask::Ask;
use crate::node::{Application, Node, Toolkit, role, state};
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
        let Some(node) = self.tree.get_mut(at) else { return };
        node.forget(&[Ask::Extents, Ask::Children, Ask::Text, Ask::Value]);
        for child in node.children.clone() {
            if let Some(child) = self.tree.get_mut(child).filter(|child| !child.shows(shown)) {
                child.forget(&[Ask::State]);
            }
        }
    }

    pub(super) fn rests(&self) -> bool {
        self.in_flight == 0 && self.todo.is_empty()
    }
}
