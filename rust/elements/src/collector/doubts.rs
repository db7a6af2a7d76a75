//! What is known of an application and may be different: where pixels changed, windows moved, or it has only just begun to tell.

use std::time::{Duration, Instant};

use super::Collector;
use crate::ask::Ask;

/// Hidden children of an object whose pixels changed that are asked whether they show now.
const MOST_DOUBTED: usize = 200;
/// For so long after an application was found, and this often, all that is known of it is asked again.
const YOUNG: Duration = Duration::from_secs(3);
const YOUNG_PERIOD: Duration = Duration::from_millis(250);
/// For so long an object is asked again what it refused to answer.
const UNFINISHED: Duration = Duration::from_secs(10);

impl Collector {
    /// What may be different where pixels changed, or because a window moved.
    pub(super) fn doubt(&mut self, id: u32, now: Instant) {
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
}
