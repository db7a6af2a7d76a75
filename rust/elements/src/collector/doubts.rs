//! Which answers may no longer hold: where pixels changed, windows moved, or an application has only just begun to send events.

use std::time::{Duration, Instant};

use super::{App, Collector, is_page, untold};
use crate::ask::Ask;
use crate::node::Area;
use crate::seen::Seen;
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
        // An application sends events only some time after the subscription, or after its start.
        // Firefox announces a page's objects before it knows their names and whether they show.
        let piecemeal = toolkit == Toolkit::Gecko;
        let (limit, period) = match toolkit {
            Toolkit::Gecko => (UNFINISHED, YOUNG_PERIOD.max(app.checked.saturating_duration_since(app.fresh) / 2)),
            // These send events from the beginning, and take long to answer.
            Toolkit::Chromium | Toolkit::Gtk4 => (Duration::ZERO, YOUNG_PERIOD),
            Toolkit::Gtk3 | Toolkit::Qt | Toolkit::Other => (YOUNG, YOUNG_PERIOD),
        };
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
        let tells = app.has_items == Some(true) && toolkit != Toolkit::Chromium && now >= app.fresh + limit;
        let mut around = Vec::new();
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
                node.forget(&[Ask::Extents]);
                continue;
            }
            if node.cell.as_ref().is_some_and(|cell| cell.may_be_empty) {
                node.forget(&[Ask::Cell]);
            }
            if young || placed.is_none_or(|area| changed.iter().any(|other| other.meets(&area))) {
                node.forget(&[Ask::State, Ask::Extents, Ask::Children, Ask::Text, Ask::Value]);
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

impl App {
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
