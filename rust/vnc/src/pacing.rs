//! How far behind what is seen may be, learnt from the server itself. Pure: times are handed in.
//!
//! The rule: both numbers are estimates from below where that is safe (a proof is then asked for later), and the frame interval
//! is at most what servers of that kind use by themselves.

use std::collections::VecDeque;

/// Frame interval of servers with fences (`TigerVNC` sends 60 a second) and without (x11vnc polls and defers: 22 to 40 ms, more on a
/// busy machine).
const FRAME_WITH_FENCES: f64 = 1.0 / 60.0;
const FRAME_WITHOUT: f64 = 0.06;
/// Changes further apart than this are not a server at its limit.
const BURST: f64 = 0.1;
const REMEMBERED: usize = 32;
const ENOUGH: usize = 8;
const TRIPS_REMEMBERED: usize = 64;

#[derive(Default)]
pub(crate) struct Pacing {
    changed: Option<f64>,
    gaps: VecDeque<f64>,
    trips: VecDeque<f64>,
}

impl Pacing {
    /// Pixels changed at `at`.
    pub(crate) fn changed(&mut self, at: f64) {
        if let Some(gap) = self.changed.map(|before| at - before).filter(|gap| *gap < BURST) {
            remember(&mut self.gaps, REMEMBERED, gap);
        }
        self.changed = Some(at);
    }

    /// A probe was answered after so many seconds.
    pub(crate) fn answered(&mut self, seconds: f64) {
        remember(&mut self.trips, TRIPS_REMEMBERED, seconds);
    }

    /// When pixels last changed.
    pub(crate) fn last_change(&self) -> Option<f64> {
        self.changed
    }

    /// Seconds between two updates of a server that has more to send.
    pub(crate) fn frame(&self, fences: bool) -> f64 {
        let usual = if fences { FRAME_WITH_FENCES } else { FRAME_WITHOUT };
        // Those without answer input after a time that has nothing to do with what they can keep up.
        if self.gaps.len() < ENOUGH || !fences {
            return usual;
        }
        let mut gaps: Vec<f64> = self.gaps.iter().copied().collect();
        gaps.sort_by(f64::total_cmp);
        // The median: a program that paints slower than the server sends makes long gaps, an update cut in two short ones.
        usual.min(gaps[gaps.len() / 2])
    }

    /// Seconds that an answer takes.
    pub(crate) fn trip(&self) -> f64 {
        self.trips.iter().copied().reduce(f64::min).unwrap_or(0.0)
    }

    /// Seconds that surely lie between sending a probe and having its answer; 0 where answers come too unevenly to say.
    pub(crate) fn steady(&self) -> f64 {
        if self.trips.len() < ENOUGH {
            return 0.0;
        }
        let mut trips: Vec<f64> = self.trips.iter().copied().collect();
        trips.sort_by(f64::total_cmp);
        let least = trips[0];
        // The least that was seen need not be the least there is: the more answers differ, the less it says.
        (least - 2.0 * (trips[trips.len() * 3 / 4] - least)).max(0.0)
    }
}

fn remember(values: &mut VecDeque<f64>, most: usize, value: f64) {
    if values.len() == most {
        values.pop_front();
    }
    values.push_back(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_frame_interval_is_learnt_from_bursts_and_never_longer_than_usual() {
        let mut pacing = Pacing::default();
        assert!((pacing.frame(true) - FRAME_WITH_FENCES).abs() < 1e-9);
        for i in 0..20 {
            pacing.changed(f64::from(i) * 0.002);
        }
        assert!((pacing.frame(true) - 0.002).abs() < 1e-6);
        for i in 0..20 {
            pacing.changed(1.0 + f64::from(i) * 0.05);
        }
        assert!((pacing.frame(true) - FRAME_WITH_FENCES).abs() < 1e-9);
        assert!((pacing.frame(false) - FRAME_WITHOUT).abs() < 1e-9);
        pacing.changed(5.0);
        assert_eq!(pacing.last_change(), Some(5.0));
    }

    #[test]
    fn the_trip_is_the_shortest_of_late() {
        let mut pacing = Pacing::default();
        assert!(pacing.trip() < 1e-9);
        for seconds in [0.2, 0.1, 0.3] {
            pacing.answered(seconds);
        }
        assert!((pacing.trip() - 0.1).abs() < 1e-9);
        for _ in 0..TRIPS_REMEMBERED {
            pacing.answered(0.4);
        }
        assert!((pacing.trip() - 0.4).abs() < 1e-9);
    }

    #[test]
    fn what_is_sure_of_a_trip_shrinks_with_unevenness() {
        let mut pacing = Pacing::default();
        for _ in 0..ENOUGH - 1 {
            pacing.answered(0.2);
            assert!(pacing.steady() < 1e-9);
        }
        pacing.answered(0.2);
        assert!((pacing.steady() - 0.2).abs() < 1e-9);
        for i in 0..TRIPS_REMEMBERED {
            pacing.answered(0.2 + 0.01 * (i % 2) as f64);
        }
        assert!((pacing.steady() - 0.18).abs() < 1e-9);
        for i in 0..TRIPS_REMEMBERED {
            pacing.answered(0.2 + 0.1 * (i % 4) as f64);
        }
        assert!(pacing.steady() < 1e-9);
    }
}
