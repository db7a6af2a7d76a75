//! Whether a message that has begun goes on: a server that stops in the middle of one is as good as dead.

use crate::violation::Problem;

/// Seconds after which a message must have come at the least speed.
const GRACE: f64 = 5.0;

/// Bytes a second: what a modem brings, and nobody's desktop is behind less.
const FLOOR: f64 = 1024.0;

/// The speed of the message that is under way.
#[derive(Default)]
pub(crate) struct Pace {
    received: u64,
    /// When it began, and what had been received then.
    began: Option<(f64, u64)>,
}

impl Pace {
    /// Takes note of bytes that came, and of whether a message is under way after them. `finished` says that one ended with
    /// them, so that what is under way began just now.
    pub(crate) fn note(&mut self, bytes: usize, finished: bool, under_way: bool, at: f64) {
        if finished || !under_way {
            self.began = None;
        }
        self.received += bytes as u64;
        if under_way && self.began.is_none() {
            // How many of these bytes are its own is not known: none count.
            self.began = Some((at, self.received));
        }
    }

    /// Whether a message has begun and not ended.
    pub(crate) const fn under_way(&self) -> bool {
        self.began.is_some()
    }

    /// Checks the message that is under way.
    pub(crate) fn check(&self, at: f64) -> Result<(), Problem> {
        let Some((began, before)) = self.began else {
            return Ok(());
        };
        let (seconds, received) = (at - began, self.received - before);
        if seconds <= GRACE || received as f64 >= FLOOR * (seconds - GRACE) {
            return Ok(());
        }
        Err(Problem::Stalled {
            received,
            seconds: seconds as u32,
            expected: "1 KiB for each second after the fifth, once a message has begun",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_line_is_no_stall() {
        let mut pace = Pace::default();
        pace.note(1, false, true, 0.0);
        for second in 1..=600 {
            // 16 kbit/s
            pace.note(2048, false, true, f64::from(second));
            assert!(pace.check(f64::from(second) + 0.99).is_ok());
        }
    }

    #[test]
    fn what_came_before_a_message_does_not_count_for_it() {
        let mut pace = Pace::default();
        pace.note(60_000, true, true, 0.0);
        assert!(pace.check(5.1).is_err());
    }

    #[test]
    fn only_a_message_under_way_can_stall() {
        let mut pace = Pace::default();
        pace.note(100, true, false, 0.0);
        assert!(pace.check(1e9).is_ok());
        pace.note(1, false, true, 10.0);
        assert!(pace.check(15.0).is_ok());
        assert!(pace.check(15.1).is_err());
        pace.note(1_100, false, true, 15.1);
        assert!(pace.check(16.0).is_ok());
        assert!(pace.check(17.0).is_err());
        pace.note(1, true, true, 17.0);
        assert!(pace.check(21.0).is_ok());
        pace.note(1, true, false, 21.0);
        assert!(pace.check(1e9).is_ok());
    }
}
