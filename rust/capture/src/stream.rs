//! The socket under x11rb, with every wait bounded and interruptible.
//!
//! x11rb blocks for a reply for as long as the server is silent. A stopped server (or a stopped container) would then hang the
//! caller for ever, and a signal could not be handled. This stream waits in slices: between two of them it checks whether the
//! caller wants to stop, and it gives the server up after [`SILENCE_LIMIT`]. All input is checked (`incoming.rs`) before x11rb sees
//! it, and descriptors that come with it are closed.

use std::io::{Error as IoError, ErrorKind, IoSlice, Result};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use link::{Interrupt, WAIT_SLICE, locked};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::retry_on_intr;
use rustix::net::AddressFamily;
use rustix::time::Timespec;
use x11rb::rust_connection::{DefaultStream, PollMode, Stream};
use x11rb::utils::RawFdContainer;

use crate::error::{InterruptedMark, SilentMark};
use crate::incoming::{Incoming, Violation};

/// A server that answers nothing for this long is not coming back: a live one answers in a millisecond, and a machine that
/// swaps or a server stopped for five seconds must not be given up.
pub const SILENCE_LIMIT: Duration = Duration::from_secs(10);

#[cfg(feature = "fuzzing")]
thread_local! {
    /// What a fuzzed server does while this thread waits for it.
    pub(crate) static SERVE: std::cell::Cell<fn()> = const { std::cell::Cell::new(|| ()) };
}

/// x11rb's own stream with bounded waits.
pub struct BoundedStream {
    inner: DefaultStream,
    interrupt: Interrupt,
    silence_limit: Duration,
    incoming: Mutex<Incoming>,
    /// Since when the server takes no more.
    blocked_since: Mutex<Option<Instant>>,
}

impl BoundedStream {
    pub(crate) fn new(inner: DefaultStream, interrupt: Interrupt, silence_limit: Duration) -> Self {
        Self { inner, interrupt, silence_limit, incoming: Mutex::new(Incoming::new()), blocked_since: Mutex::default() }
    }

    fn incoming(&self) -> MutexGuard<'_, Incoming> {
        locked(&self.incoming)
    }

    fn note_blocked(&self, written: Result<usize>) -> Result<usize> {
        let mut blocked_since = locked(&self.blocked_since);
        match &written {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                blocked_since.get_or_insert_with(Instant::now);
            }
            _ => *blocked_since = None,
        }
        written
    }

    /// Records a request that expects a reply.
    pub(crate) fn ask(&self, sequence: u64) {
        self.incoming().ask(sequence);
    }

    /// From now on one request has any number of replies.
    pub(crate) fn expect_many(&self) {
        self.incoming().expect_many();
    }

    /// All events that came were read.
    pub(crate) fn events_read(&self) {
        self.incoming().events_read();
    }

    /// Whether this is a socket of this machine, which takes descriptors.
    pub(crate) fn is_unix(&self) -> bool {
        rustix::net::getsockname(&self.inner).is_ok_and(|name| name.address_family() == AddressFamily::UNIX)
    }

    /// Waits until there is something to read; `Ok(false)` at the timeout or after a signal.
    pub(crate) fn wait_readable(&self, timeout: Duration) -> Result<bool> {
        wait(&self.inner, PollFlags::IN, timeout)
    }
}

impl std::os::fd::AsFd for BoundedStream {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.inner.as_fd()
    }
}

/// One poll; a signal counts as a timeout, so that the caller comes back to look at it.
pub(crate) fn wait(fd: &impl std::os::fd::AsFd, flags: PollFlags, timeout: Duration) -> Result<bool> {
    #[cfg(feature = "fuzzing")]
    if flags == PollFlags::IN {
        SERVE.get()();
    }
    let mut fds = [PollFd::new(fd, flags)];
    let timespec = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: i64::from(timeout.subsec_nanos()) };
    match poll(&mut fds, Some(&timespec)) {
        Ok(count) => Ok(count > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

impl Stream for BoundedStream {
    fn poll(&self, mode: PollMode) -> Result<()> {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, mode.readable());
        flags.set(PollFlags::OUT, mode.writable());
        // x11rb only reads when it waits for an answer. Events that come meanwhile extend neither wait.
        let answer = !mode.writable();
        let (start, extra) = if answer {
            self.incoming().wait()
        } else {
            (locked(&self.blocked_since).unwrap_or_else(Instant::now), Duration::ZERO)
        };
        let limit = self.silence_limit.saturating_add(extra);
        let result = loop {
            let ready = match wait(&self.inner, flags, WAIT_SLICE) {
                Ok(ready) => ready,
                Err(error) => break Err(error),
            };
            // Only a pure read may stop early: a request written in half would desynchronise the protocol for good.
            if !ready && answer && self.interrupt.requested() {
                break Err(IoError::other(InterruptedMark));
            }
            if !ready
                && answer
                && start.elapsed() < limit
                && let Some(given) = self.interrupt.over()
            {
                // Not given up: it counts as silent since `start`, for the next call too.
                return Err(IoError::other(SilentMark(given)));
            }
            if start.elapsed() >= limit && (!ready || self.incoming().is_overdue()) {
                break Err(IoError::new(ErrorKind::TimedOut, format!("no answer for {} s", limit.as_secs())));
            }
            if ready {
                return Ok(());
            }
        };
        self.incoming().give_up();
        result
    }

    fn read(&self, buf: &mut [u8], _: &mut Vec<RawFdContainer>) -> Result<usize> {
        // Not `recvmsg`: no requested reply carries descriptors, and the kernel closes those that are not received.
        let count = retry_on_intr(|| rustix::io::read(&self.inner, &mut *buf))?;
        self.incoming()
            .take(&buf[..count])
            .map_err(|violation: Violation| IoError::new(ErrorKind::InvalidData, violation))?;
        Ok(count)
    }

    fn write(&self, buf: &[u8], fds: &mut Vec<RawFdContainer>) -> Result<usize> {
        self.note_blocked(self.inner.write(buf, fds))
    }

    fn write_vectored(&self, bufs: &[IoSlice<'_>], fds: &mut Vec<RawFdContainer>) -> Result<usize> {
        self.note_blocked(self.inner.write_vectored(bufs, fds))
    }
}
