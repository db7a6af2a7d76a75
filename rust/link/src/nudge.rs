//! What wakes the thread that reads a connection.

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

/// Wakes a thread that polls it together with its socket.
pub struct Nudge(OwnedFd);

impl Nudge {
    /// A new one that is not sent.
    ///
    /// # Errors
    /// When the system refuses a descriptor.
    pub fn new() -> Result<Self, rustix::io::Errno> {
        eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map(Self)
    }

    /// Wakes the thread, now or when it polls next.
    pub fn send(&self) {
        // It can only fail when the counter is full, and then the thread has been nudged.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    /// The thread is awake.
    pub fn take(&self) {
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl AsFd for Nudge {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
