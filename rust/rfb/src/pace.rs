//! Whether a message that has begun goes on: a server that stops in the middle of one is as good as dead.

use crate::violation::Problem;

/// Seconds after which a message must have come at the least speed.
const GRACE: f64 = 5.0;

/// Bytes a second: the speed of a modem, and no desktop is behind a slower line.
const FLOOR: f64 = 1024.0;

/// The speed of the message that is under way.
#[derive(Default)]
pub(crate) struct Pace {
    received: u64,
    /// When it began, and what had been received then.
    began: Option<(f64, u64)>,
}

impl Pace {
    /// Records bytes that came.
    ///
    /// `received` counts all since the stream began, `ended` those before the end of the last message that ended with these, and
    /// `under_way` says whether another has begun.
    pub(crate) fn note(&mut self, received: u64, ended: Option<u64>, under_way: bool, at: f64) {
        if ended.is_some() || !under_way {
            self.began = None;
        }
        if under_way && self.began.is_none() {
            self.began = Some((at, ended.unwrap_or(self.received)));
        }
        self.received = received;
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
        pace.note(1, None, true, 0.0);
        for second in 1..=600 {
            // 16 kbit/s
            pace.note(2048 * second, None, true, second as f64);
            assert!(pace.check(second as f64 + 0.99).is_ok());
        }
    }

    #[test]
    fn what_came_before_a_message_does_not_count_for_it() {
        let mut pace = Pace::default();
        pace.note(60_000, Some(59_900), true, 0.0);
        assert!(pace.check(5.05).is_ok());
        assert!(pace.check(5.1).is_err());
    }

    #[test]
    fn only_a_message_under_way_can_stall() {
        let mut pace = Pace::default();
        pace.note(100, Some(100), false, 0.0);
        assert!(pace.check(1e9).is_ok());
        pace.note(101, None, true, 10.0);
        assert!(pace.check(15.0).is_ok());
        assert!(pace.check(15.1).is_err());
        pace.note(1_201, None, true, 15.1);
        assert!(pace.check(16.0).is_ok());
        assert!(pace.check(17.0).is_err());
        pace.note(1_202, Some(1_201), true, 17.0);
        assert!(pace.check(21.0).is_ok());
        pace.note(1_203, Some(1_203), false, 21.0);
        assert!(pace.check(1e9).is_ok());
    }
}
