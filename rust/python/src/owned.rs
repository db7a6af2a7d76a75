//! A value that a forked process does not touch, because its parent owns it.

use imaging::forks;

/// A connection of the process that opened it.
///
/// In a process that was forked the value's locks may be held by threads that do not exist in it, and its end would end the owner's
/// connection: it is neither used nor dropped.
pub(crate) struct Owned<T> {
    forks: usize,
    value: Option<T>,
}

impl<T> Owned<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { forks: forks(), value: Some(value) }
    }

    /// The value, or why it cannot be used here.
    pub(crate) fn get(&self) -> Result<&T, String> {
        match &self.value {
            Some(value) if self.forks == forks() => Ok(value),
            _ => Err("it belongs to the process that this one was forked from".into()),
        }
    }

    /// The value, in any process, for code that takes no lock.
    pub(crate) fn of_any(&self) -> Option<&T> {
        self.value.as_ref()
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        if self.forks != forks() {
            std::mem::forget(self.value.take());
        }
    }
}
