//! What is seen of the screen when the elements are read.

use std::time::Duration;

use crate::node::Area;

/// Pixels of the shadow around a window that draws its own frame, at most.
const SHADOW: i32 = 40;

/// A window of the X server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// The process that it belongs to; 0 for unknown.
    pub pid: u32,
    /// Where it is on the screen.
    pub area: Area,
}

/// A window above all others, such as a menu's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cover {
    /// What it covers.
    pub area: Area,
    /// For how long it has.
    pub age: Duration,
}

/// What is seen of the screen when the elements are read.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// Where pixels have changed since the elements were last read.
    pub changed: Vec<Area>,
    /// How long ago the last of them has changed.
    pub age: Duration,
    /// The windows.
    pub windows: Vec<Window>,
    /// Where nothing changed before it was covered.
    pub covers: Vec<Cover>,
    /// Whether what is scrolled out of sight is wanted as well.
    pub deep: bool,
    /// An element that is to be acted on: where it is, and whether it shows, is asked in each reading.
    pub target: Option<u64>,
    /// Whether what shows the target is being scrolled, so that no event need say where it is.
    pub scrolling: bool,
}

impl Seen {
    /// What changed, as seen from the corner of each window of a process, with room for the shadow around it.
    pub(crate) fn within(&self, pid: u32) -> Vec<Area> {
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

/// The processes whose windows came, went or are elsewhere now.
pub(crate) fn moved(before: &[Window], now: &[Window]) -> Vec<u32> {
    let came = now.iter().filter(|window| !before.contains(window));
    let went = before.iter().filter(|window| !now.contains(window));
    came.chain(went).map(|window| window.pid).filter(|pid| *pid != 0).collect()
}
