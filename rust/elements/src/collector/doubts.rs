//! Which answers may no longer hold: where pixels changed, windows moved, or an application has only just begun to send events.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use super::{App, Collector, is_page, untold};
use crate::ask::Ask;
use crate::codes::{role, state};
use crate::node::{Area, Node};
use crate::seen::{Cover, Seen};
use crate::toolkit::Toolkit;

/// Hidden children of an object whose pixels changed that are asked whether they show now.
const MOST_DOUBTED: usize = 200;
/// For how long after an application was found all of it is asked again, and how often.
const YOUNG: Duration = Duration::from_secs(3);
const YOUNG_PERIOD: Duration = Duration::from_millis(250);
/// For how long after a browser was found its page is asked for again, where it has none.
const NO_PAGE: Duration = Duration::from_secs(60);
/// For how long after pixels changed a toolkit may tell the places of before. Chromium: 0.1 s, and longer on a busy machine.
const LATE: Duration = Duration::from_millis(600);
/// Changes that are kept apart for so long.
const MOST_LATE: usize = 64;
/// For how long an object has shown before a menu came over it that is in the window below, and not in the menu itself: a toolkit
/// may say that what is in the menu shows before the menu does.
const BELOW: Duration = Duration::from_secs(1);
/// For how long an object is asked again what it refused to answer.
const UNFINISHED: Duration = Duration::from_secs(10);

impl Collector {
    /// What may be different where pixels changed, or because a window moved.
    pub(super) fn doubt(&mut self, id: u32, now: Instant) {
        let Some(app) = self.apps.get_mut(&id) else { return };
        let pid = app.about.pid;
        let moved = self.moved.contains(&pid);
        let shown = app.shown();
        let toolkit = app.toolkit();
        let own = if toolkit.is_late() {
            Some(app.still_late(&self.seen, now))
        } else {
            app.is_relative().then(|| self.seen.within(pid))
        };
        let changed = own.as_ref().unwrap_or(&self.seen.changed);
        // Half of what GTK 4 calls visible has no place for as long as no pixel of it changes.
        let unfinished = app.tree.nodes_mut().filter(|node| node.shows(shown) && toolkit != Toolkit::Gtk4);
        for node in unfinished {
            // An object that is new may not be complete yet, and sends no event when it is.
            if node.since.is_some_and(|since| now < since + UNFINISHED) {
                node.retry();
            }
        }
        // Firefox announces a page's objects before it knows their names and whether they show.
        let piecemeal = toolkit == Toolkit::Gecko;
        let (limit, period) = app.youth();
        let young = app.checked < app.fresh + limit && now >= app.checked + period;
        if young {
            app.checked = now;
        }
        if let Some(target) = self.seen.target {
            let around = self.seen.scrolling || toolkit.is_late() || !toolkit.tells_changes();
            app.look_again(target, around);
        }
        if self.seen.deep && !self.seen.scrolling {
            app.doubt_hidden();
        }
        if young && piecemeal {
            for node in app.tree.nodes_mut().filter(|node| !node.shows(shown)) {
                node.forget(&[Ask::State, Ask::Children]);
                if node.name.is_empty() {
                    node.forget(&[Ask::Name]);
                }
            }
        }
        if piecemeal && self.seen.deep {
            app.doubt_names(now);
        }
        if app.awake && now < app.fresh + NO_PAGE {
            app.doubt_page();
        }
        if changed.is_empty() && !moved && !young {
            return;
        }
        if moved && let Some(root) = app.tree.get_mut(app.root) {
            // Not every toolkit says so.
            root.forget(&[Ask::Children]);
        }
        let tells_all = toolkit.tells_changes() && toolkit != Toolkit::Chromium;
        let tells = app.has_items == Some(true) && tells_all && now >= app.fresh + limit;
        let mut around = Vec::new();
        // What is drawn on a menu says nothing of what is below it.
        let covers: &[Cover] = if tells && own.is_none() { &self.seen.covers } else { &[] };
        let unplaced = if toolkit == Toolkit::Gtk4 { app.unplaced_in(changed) } else { HashSet::new() };
        for node in app.tree.nodes_mut() {
            if !node.shows(shown) {
                continue;
            }
            if !toolkit.tells_changes() && node.depth == 1 {
                // The title of a window is drawn beside it.
                node.forget(&[Ask::Name]);
            }
            let placed = node.area.filter(|area| area.width > 0 && area.height > 0);
            if placed.is_none() && toolkit == Toolkit::Gtk4 {
                if young || moved || unplaced.contains(&node.reference) {
                    node.forget(&[Ask::Extents]);
                }
                continue;
            }
            doubt_wherever(node);
            let drawn = |area: Area| {
                let mut parts = changed.iter().filter_map(|other| other.overlap(&area));
                parts.any(|part| !is_covered(node, &part, covers, now))
            };
            if young || placed.is_none_or(drawn) {
                node.forget(&[Ask::State, Ask::Extents, Ask::Text, Ask::Value]);
                if !tells || !node.children.is_empty() || !role::LEAVES.contains(&node.role) {
                    node.forget(&[Ask::Children]);
                }
                if !toolkit.tells_changes() {
                    node.forget(&[Ask::Name, Ask::Count]);
                }
                if young && piecemeal && node.name.is_empty() {
                    node.forget(&[Ask::Name]);
                }
                node.retry();
                if young || !tells {
                    around.extend(node.children.iter().take(MOST_DOUBTED));
                }
            } else if moved {
                node.forget(&[Ask::Extents]);
            }
        }
        // What did not show may do so now. Applications with a cache send an event, but not in their first moments.
        for each in around {
            if let Some(node) = app.tree.get_mut(each).filter(|node| !node.shows(shown)) {
                node.forget(&[Ask::State]);
            }
        }
    }
}

/// What may be different of an object when something has changed elsewhere.
fn doubt_wherever(node: &mut Node) {
    if node.cell.as_ref().is_some_and(|cell| cell.may_be_empty) {
        node.forget(&[Ask::Cell]);
    }
    if node.states & state::FOCUSED != 0 {
        // GTK 3 does not say that a menu which opens takes the keys.
        node.forget(&[Ask::State]);
    }
}

/// Whether a part of an object is below a menu, and the object not in that.
fn is_covered(node: &Node, part: &Area, covers: &[Cover], now: Instant) -> bool {
    let since = node.shown.map(|shown| now.saturating_duration_since(shown));
    since.is_some_and(|since| covers.iter().any(|cover| cover.area.has(part) && since >= cover.age + BELOW))
}

impl App {
    /// For how long all of it is asked again, and how often: it sends events only some time after the subscription, or its start.
    fn youth(&self) -> (Duration, Duration) {
        match self.toolkit() {
            Toolkit::Gecko => (UNFINISHED, YOUNG_PERIOD.max(self.checked.saturating_duration_since(self.fresh) / 2)),
            // These send events from the beginning, and take long to answer.
            Toolkit::Chromium | Toolkit::Gtk4 => (Duration::ZERO, YOUNG_PERIOD),
            Toolkit::Gtk3 | Toolkit::Qt | Toolkit::Other => (YOUNG, YOUNG_PERIOD),
        }
    }

    /// The objects without a place in what was drawn anew; what is in one of them has no place before that has.
    fn unplaced_in(&self, changed: &[Area]) -> HashSet<u64> {
        let shown = self.shown();
        let place = |node: &Node| node.area.filter(|area| area.width > 0 && area.height > 0);
        let drawn = |node: &&Node| {
            let around = std::iter::successors(Some(*node), |node| self.tree.get(node.parent?)).find_map(place);
            around.is_none_or(|area| changed.iter().any(|other| other.meets(&area)))
        };
        let outermost = |node: &&Node| {
            let parent = node.parent.and_then(|parent| self.tree.get(parent));
            parent.is_none_or(|parent| parent.area.is_none() || place(parent).is_some())
        };
        let unplaced = self.tree.nodes().filter(|node| node.shows(shown) && place(node).is_none()).filter(outermost);
        unplaced.filter(drawn).map(|node| node.reference).collect()
    }

    /// Where pixels changed since it was last asked, or so little before that its answers may have been older.
    fn still_late(&mut self, seen: &Seen, now: Instant) -> Vec<Area> {
        let at = now.checked_sub(seen.age).unwrap_or(now);
        self.late.extend(seen.changed.iter().map(|area| (*area, at)));
        if self.late.len() > MOST_LATE {
            let all = self.late.iter().map(|(area, _)| *area).reduce(|one, other| one.around(&other));
            self.late = all.map(|area| (area, at)).into_iter().collect();
        }
        let changed = self.late.iter().map(|(area, _)| *area).collect();
        self.late.retain(|(_, at)| now < *at + LATE);
        changed
    }

    /// Objects that do not show may have got their names since; asked at growing distances, because most never have one.
    fn doubt_names(&mut self, now: Instant) {
        let due = self
            .names_checked
            .is_none_or(|checked| now >= checked + YOUNG_PERIOD.max(checked.saturating_duration_since(self.fresh) / 2));
        if !due {
            return;
        }
        self.names_checked = Some(now);
        let shown = self.shown();
        for node in self.tree.nodes_mut().filter(|node| !node.shows(shown) && node.name.is_empty()) {
            node.forget(&[Ask::Name]);
        }
    }

    /// A page may have come later than a reading waits for it, and no event says so.
    fn doubt_page(&mut self) {
        if self.tree.nodes().any(is_page) {
            return;
        }
        self.woken = None;
        for node in self.tree.nodes_mut() {
            node.forget(&[Ask::State, Ask::Children]);
        }
    }

    /// What does not show in what shows may do so by now: it is not to be taken for scrolled away.
    fn doubt_hidden(&mut self) {
        let shown = self.shown();
        let showing: Vec<usize> =
            self.tree.nodes().filter(|node| node.shows(shown)).flat_map(|node| &node.children).copied().collect();
        for each in showing {
            if let Some(node) = self.tree.get_mut(each).filter(|node| !node.shows(shown)) {
                node.forget(&[Ask::State]);
            }
        }
    }

    /// An element may be elsewhere, or show or not, and with `around` all that it is in as well.
    fn look_again(&mut self, reference: u64, around: bool) {
        let mut at = self.tree.position(reference);
        while let Some(node) = at.and_then(|at| self.tree.get_mut(at)) {
            node.forget(&[Ask::State, Ask::Extents]);
            if around && untold::is_item(node) {
                node.forget(&[Ask::Name]);
            }
            at = node.parent.filter(|_| around);
        }
    }
}
