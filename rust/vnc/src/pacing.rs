//! How far what is seen may lag behind, learnt from the server itself. Pure: times are passed in.
//!
//! The rule: a trip is estimated from below, where that is safe (a proof is then asked for later); a frame interval from above, and it is
//! at most what servers of that kind use by themselves.

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
    /// When input was sent that came after a rest, until something changes.
    lone: Option<f64>,
    /// From such input to the first change.
    reactions: VecDeque<f64>,
    trips: VecDeque<f64>,
}

impl Pacing {
    /// Pixels changed at `at`.
    pub(crate) fn changed(&mut self, at: f64) {
        // Changes that were read together say nothing about when each was sent.
        if let Some(gap) = self.changed.map(|before| at - before).filter(|gap| 0.0 < *gap && *gap < BURST) {
            remember(&mut self.gaps, REMEMBERED, gap);
        }
        self.changed = Some(at);
        if let Some(reaction) = self.lone.take().map(|sent| at - sent).filter(|reaction| *reaction < BURST) {
            remember(&mut self.reactions, REMEMBERED, reaction);
        }
    }

    /// Input was sent at `at`; before that, something was last sent or seen to change at `active`.
    pub(crate) fn sent(&mut self, at: f64, active: f64) {
        // Input that follows other input may be mistaken for the cause of that one's reaction.
        if at - active >= BURST {
            self.lone = Some(at);
        }
    }

    /// A probe was answered after this many seconds.
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
        if !fences {
            return usual;
        }
        let learnt = [self.frame_in_bursts(), self.frame_of_reactions()];
        learnt.into_iter().flatten().fold(usual, f64::min)
    }

    /// The median gap: a program that paints slower than the server sends makes long gaps, an update cut in two short ones.
    fn frame_in_bursts(&self) -> Option<f64> {
        let gaps = sorted(&self.gaps)?;
        Some(gaps[gaps.len() / 2])
    }

    /// Twice a long reaction. A change at rest waits for half a frame at least (`TigerVNC`), or for a whole one, or for any part of one
    /// (where a clock runs on): then every other reaction is longer than half a frame, and that all of those counted here are shorter
    /// comes once in 250 times at most, however many there are; that they are shorter than a quarter, in 60,000. Where
    /// the first change is sent at once, the others are within a frame of it, and silence is none the shorter for them.
    fn frame_of_reactions(&self) -> Option<f64> {
        let reactions = sorted(&self.reactions)?;
        let left_out = (reactions.len() - ENOUGH) / 4;
        Some(2.0 * reactions[reactions.len() - 1 - left_out])
    }

    /// Seconds that an answer takes.
    pub(crate) fn trip(&self) -> f64 {
        self.trips.iter().copied().reduce(f64::min).unwrap_or(0.0)
    }

    /// Seconds that surely lie between sending a probe and having its answer; 0 where answers come too unevenly to say.
    pub(crate) fn steady(&self) -> f64 {
        let Some(trips) = sorted(&self.trips) else { return 0.0 };
        let least = trips[0];
        // The least measured time need not be the least possible: the more answers differ, the less it says.
        (least - 2.0 * (trips[trips.len() * 3 / 4] - least)).max(0.0)
    }
}

/// In order, where there are enough.
fn sorted(values: &VecDeque<f64>) -> Option<Vec<f64>> {
    if values.len() < ENOUGH {
        return None;
    }
    let mut values: Vec<f64> = values.iter().copied().collect();
    values.sort_by(f64::total_cmp);
    Some(values)
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

    /// A reaction to lone keys that a program answers after a millisecond: `defer` says for how long a change is held back.
    fn learnt_from_keys(defer: impl Fn(usize) -> f64, keys: usize) -> f64 {
        let mut pacing = Pacing::default();
        let mut active = f64::NEG_INFINITY;
        for i in 0..keys {
            let sent = i as f64;
            pacing.sent(sent, active);
            active = sent + 0.001 + defer(i);
            pacing.changed(active);
        }
        pacing.frame(true)
    }

    #[test]
    fn a_tuned_server_is_known_by_how_soon_lone_keys_show() {
        // Half a frame, as TigerVNC does at 250 and at 60 frames a second.
        assert!((learnt_from_keys(|_| 0.002, ENOUGH - 1) - FRAME_WITH_FENCES).abs() < 1e-9);
        assert!((learnt_from_keys(|_| 0.002, ENOUGH) - 0.006).abs() < 1e-9);
        assert!((learnt_from_keys(|_| 0.008, 100) - FRAME_WITH_FENCES).abs() < 1e-9);
        // One key in ten is late because the machine is busy, and not because of the server.
        assert!((learnt_from_keys(|i| if i % 10 == 3 { 0.03 } else { 0.002 }, 100) - 0.006).abs() < 1e-9);
    }

    #[test]
    fn a_server_that_defers_longer_is_never_believed_sooner() {
        for frame in [1.0 / 60.0, 0.02, 0.04, 0.09] {
            // Half of it, the whole of it, any part of it: the golden ratio visits every part alike.
            let any_part = |i: usize| frame * (i as f64 * 0.618_033_988_75).fract();
            for keys in 0..100 {
                for learnt in [
                    learnt_from_keys(|_| frame / 2.0, keys),
                    learnt_from_keys(|_| frame, keys),
                    learnt_from_keys(any_part, keys),
                ] {
                    assert!((learnt - FRAME_WITH_FENCES).abs() < 1e-9, "{frame} after {keys} keys: {learnt}");
                }
            }
        }
    }

    #[test]
    fn a_reaction_is_counted_from_the_first_input_after_a_rest() {
        let mut pacing = Pacing::default();
        for i in 0..20 {
            // A drag: the window follows 15 ms behind, which is 3 ms behind the latest move.
            let sent = f64::from(i);
            pacing.sent(sent, sent - 0.9);
            pacing.sent(sent + 0.012, sent);
            pacing.changed(sent + 0.015);
            // What follows a change is not lone, nor is a change without input.
            pacing.sent(sent + 0.02, sent + 0.015);
            pacing.changed(sent + 0.022 + BURST);
        }
        assert!((pacing.frame(true) - FRAME_WITH_FENCES).abs() < 1e-9);
        // Input that changed nothing is not what a later change is counted from.
        let mut pacing = Pacing::default();
        for i in 0..20 {
            let sent = f64::from(i);
            pacing.sent(sent, sent - 0.4);
            pacing.sent(sent + 0.5, sent);
            pacing.changed(sent + 0.502);
            // What the program draws next is its own affair.
            pacing.changed(sent + 0.56);
        }
        assert!((pacing.frame(true) - 0.004).abs() < 1e-6);
    }

    #[test]
    fn what_was_read_at_once_makes_no_frame_shorter() {
        let mut pacing = Pacing::default();
        for i in 0..30 {
            // The reader was held up: three frames each time.
            let at = f64::from(i / 3) * 0.05;
            pacing.changed(at);
        }
        assert!((pacing.frame(true) - FRAME_WITH_FENCES).abs() < 1e-9);
    }

    #[test]
    fn the_trip_is_the_shortest_of_late() {
        let mut pacing = Pacing::default();
        assert!(pacing.trip() < 1e-9);
        for seconds in [0.2, 0.1, 0.3] {
            pacing.answered(seconds);
        }
        assert!((pacing.trip() - 0.1).abs() < 1e-9);
        for _ in 0..64 {
            pacing.answered(0.4);
        }
        assert!((pacing.trip() - 0.4).abs() < 1e-9);
    }

    #[test]
    fn what_is_sure_of_a_trip_shrinks_with_unevenness() {
        let mut pacing = Pacing::default();
        for _ in 0..ENOUGH - 1 {
            pacing.answered(0.2);
            assert!((0.0..1e-9).contains(&pacing.steady()));
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
        // Never less than nothing.
        assert!((0.0..1e-9).contains(&pacing.steady()));
    }
}
