//! Locks that a panic does not poison.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The lock of what is whole between any two of its changes, whatever became of a thread that held it.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
