//! Whether a lock is on, from the server's reports and the keys that were sent after them. Pure: times are passed
//! in.

/// `CapsLock` and `NumLock`.
pub(crate) const LOCK_KEYS: [u32; 2] = [0xFFE5, 0xFF7F];

#[derive(Default)]
pub(crate) struct Lock {
    told: Option<bool>,
    /// The state to be reported once the driver's keys have arrived, and when the last of them was sent.
    wanted: Option<(bool, f64)>,
}

impl Lock {
    /// Records a report of the server.
    pub(crate) fn told(&mut self, on: bool) {
        self.told = Some(on);
    }

    /// Whether the server has ever reported it.
    pub(crate) fn is_told(&self) -> bool {
        self.told.is_some()
    }

    /// Records that its key was sent at `at`.
    pub(crate) fn switched(&mut self, at: f64) {
        let Some(told) = self.told else { return };
        let before = self.wanted.map_or(told, |(on, _)| on);
        self.wanted = Some((!before, at));
    }

    /// When the last key was sent whose effect has not been reported.
    pub(crate) fn due(&self) -> Option<f64> {
        self.wanted.filter(|(on, _)| self.told != Some(*on)).map(|(_, at)| at)
    }

    /// The reported state, which counts from now on: a key without a report by now has no effect (it may have another meaning).
    pub(crate) fn settle(&mut self) -> Option<bool> {
        self.wanted = None;
        self.told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_tells_nothing_is_not_waited_for() {
        let mut lock = Lock::default();
        lock.switched(1.0);
        assert_eq!((lock.due(), lock.settle()), (None, None));
    }

    #[test]
    fn what_our_key_does_is_waited_for() {
        let mut lock = Lock::default();
        lock.told(false);
        assert_eq!((lock.due(), lock.settle()), (None, Some(false)));
        lock.switched(1.0);
        assert_eq!(lock.due(), Some(1.0));
        lock.told(true);
        assert_eq!((lock.due(), lock.settle()), (None, Some(true)));
    }

    #[test]
    fn keys_that_undo_each_other_are_seen_through() {
        let mut lock = Lock::default();
        lock.told(true);
        lock.switched(1.0);
        lock.switched(2.0);
        assert_eq!(lock.due(), None);
        // Only the first has been reported.
        lock.told(false);
        assert_eq!(lock.due(), Some(2.0));
        lock.told(true);
        assert_eq!((lock.due(), lock.settle()), (None, Some(true)));
    }

    #[test]
    fn a_key_that_switches_nothing_is_not_believed() {
        let mut lock = Lock::default();
        lock.told(false);
        lock.switched(1.0);
        assert_eq!((lock.due(), lock.settle()), (Some(1.0), Some(false)));
        lock.switched(2.0);
        lock.told(true);
        assert_eq!((lock.due(), lock.settle()), (None, Some(true)));
    }
}
