//! One connection, as its callers see it.
//!
//! The rule: every wait has a limit, and can be interrupted; a wait that ends early leaves the connection whole.

use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use imaging::{Screen, Size};
use link::{Event, Interrupt, Nudge, WAIT_SLICE, locked, now};
use rfb::{Formats, Limits, Monitor, PixelFormat, Session, client};
use rustix::fd::{AsFd, BorrowedFd};

use crate::input::{held_buttons, push, release_held};
use crate::lock::Lock;
use crate::offer::encodings;
use crate::reader::{self, SILENCE_LIMIT, Shared};
use crate::state::State;
use crate::{Error, Result};

/// At the end of a connection, what is held is released and the server given this long to have read it.
/// After so long without news, a file that is waited for is made ready.
const BREATH: f64 = 0.008;
const CLOSE_LIMIT: f64 = 1.0;
/// The server reports a lock that was switched within this time, or the key belongs to no lock.
const LIGHT_LIMIT: f64 = 0.25;
const RESIZE_LIMIT: f64 = 5.0;

/// One VNC connection that is past its handshake.
pub struct Connection {
    pub(crate) shared: Arc<Shared>,
    pub(crate) interrupt: Interrupt,
    reader: Mutex<Option<JoinHandle<()>>>,
}

impl Connection {
    /// Takes over a connected stream socket, and begins to follow what the server shows. `rest` came after the handshake.
    ///
    /// `local`: bytes cost nothing on the way, so pixels are requested raw; else deflated, without loss either way.
    ///
    /// The screen starts again, even if it is the one of an earlier connection.
    ///
    /// # Errors
    /// When the framebuffer is too large, or the system refuses a descriptor or a thread.
    pub fn new(
        stream: OwnedFd,
        size: Size,
        rest: Vec<u8>,
        local: bool,
        screen: Option<Arc<Mutex<Screen>>>,
        interrupt: Interrupt,
    ) -> Result<Self> {
        let system = |error: rustix::io::Errno| Error::Lost(format!("the system refused: {error}"));
        rustix::fs::fcntl_getfl(&stream)
            .and_then(|flags| rustix::fs::fcntl_setfl(&stream, flags | rustix::fs::OFlags::NONBLOCK))
            .map_err(system)?;
        let nudge = Nudge::new().map_err(system)?;
        let mut state = State::new(size);
        let screen = match screen {
            None => Arc::new(Mutex::new(Screen::new(size))),
            Some(screen) => {
                let mut earlier = locked(&screen);
                let (x, y) = earlier.pointer();
                // Its former place, if the screen still has that: a server does not report it.
                state.pointer = (x.clamp(0, size.w as i32 - 1) as u16, y.clamp(0, size.h as i32 - 1) as u16);
                earlier.resize(size, now());
                earlier.set_cursor(None);
                drop(earlier);
                screen
            }
        };
        let mut session = Session::new(size, Arc::clone(&screen), Limits::default(), now())?;
        session.start(&PixelFormat::BGRX, &encodings(local, false))?;
        session.request(false);
        session.follow();
        let state = Mutex::new(state);
        let (told, called) = (std::sync::Condvar::new(), Mutex::default());
        let shared = Arc::new(Shared { stream, nudge, screen, state, told, reading: AtomicBool::new(false), called });
        let connection = Self { shared: Arc::clone(&shared), interrupt, reader: Mutex::default() };
        connection.point();
        let thread = std::thread::Builder::new().name("deskhand-vnc".into());
        let reader = thread
            .spawn(move || reader::read(&shared, &mut session, &rest, local))
            .map_err(|error| Error::Lost(format!("the system refused a thread: {error}")))?;
        *locked(&connection.reader) = Some(reader);
        Ok(connection)
    }

    /// The screen that is kept current.
    #[must_use]
    pub fn screen(&self) -> Arc<Mutex<Screen>> {
        Arc::clone(&self.shared.screen)
    }

    /// Ends the waits of this connection.
    #[must_use]
    pub const fn interrupt(&self) -> &Interrupt {
        &self.interrupt
    }

    /// The extensions that the server has shown to know.
    #[must_use]
    pub fn features(&self) -> rfb::Features {
        locked(&self.shared.state).features
    }

    /// How many rectangles were skipped because their pseudo-encodings had not been offered, by the encodings' numbers.
    #[must_use]
    pub fn skipped(&self) -> Vec<(i32, u64)> {
        locked(&self.shared.state).skipped.clone()
    }

    /// The monitors that make up the screen; none where the server does not report them.
    #[must_use]
    pub fn monitors(&self) -> Vec<rfb::Monitor> {
        locked(&self.shared.state).monitors.clone()
    }

    /// Whether the server reports which locks are on.
    #[must_use]
    pub fn tells_locks(&self) -> bool {
        locked(&self.shared.state).locks.iter().all(Lock::is_told)
    }

    pub(crate) fn state(&self) -> Result<MutexGuard<'_, State>> {
        *locked(&self.shared.called) = Some(Instant::now());
        let state = locked(&self.shared.state);
        state.check()?;
        Ok(state)
    }

    /// Waits until `done`, for at most this many seconds; returns whether it was.
    pub(crate) fn wait_until(&self, seconds: f64, done: impl FnMut(&mut State) -> bool) -> Result<bool> {
        self.wait_for(seconds, Some(&self.interrupt), done)
    }

    /// The same; `interrupt` may end it early.
    pub(crate) fn wait_for(
        &self,
        seconds: f64,
        interrupt: Option<&Interrupt>,
        mut done: impl FnMut(&mut State) -> bool,
    ) -> Result<bool> {
        let deadline = now() + seconds;
        let mut state = self.state()?;
        loop {
            if done(&mut state) {
                return Ok(true);
            }
            state.check()?;
            if state.silent_since().is_some_and(|since| now() - since > SILENCE_LIMIT) {
                let lost = Error::Lost(format!("the server has not answered for {SILENCE_LIMIT:.0} s"));
                state.ended = Some(lost.clone());
                self.shared.nudge.send();
                return Err(lost);
            }
            let left = deadline - now();
            if left <= 0.0 {
                return Ok(false);
            }
            let slice = Duration::from_secs_f64(left).min(WAIT_SLICE);
            let (woken, elapsed) = self.shared.told.wait_timeout(state, slice).unwrap_or_else(PoisonError::into_inner);
            state = woken;
            if elapsed.timed_out() {
                drop(state);
                if interrupt.is_some_and(Interrupt::requested) {
                    return Err(Error::Interrupted);
                }
                state = locked(&self.shared.state);
            }
        }
    }

    /// Waits until the whole screen has been sent once, and what the server can do is known.
    ///
    /// # Errors
    /// When it is not within this many seconds.
    pub fn wait_first(&self, seconds: f64) -> Result<()> {
        let complete = |state: &mut State| {
            state.painted >= state.size.rect().area() && (state.offered_all || !state.features.fence)
        };
        if self.wait_until(seconds, complete)? {
            // A server with fences announces its other features before it answers one; others have done so with the picture.
            return if self.features().fence { self.sync(Some(&self.interrupt), None).map(|_| ()) } else { Ok(()) };
        }
        Err(Error::Timeout { what: "the first picture of the screen", seconds })
    }

    /// Waits until pixels changed or a probe was answered, since the last call; returns whether.
    ///
    /// # Errors
    /// When the connection has ended, or the wait was interrupted.
    pub fn wait(&self, seconds: f64) -> Result<bool> {
        if self.interrupt.requested() {
            return Err(Error::Interrupted);
        }
        let deadline = now() + seconds;
        let told = |state: &mut State| std::mem::replace(&mut state.told, state.ticks) != state.ticks;
        if self.wait_until(seconds.min(BREATH), told)? {
            return Ok(true);
        }
        if seconds > BREATH {
            locked(&self.shared.screen).get_ready();
        }
        self.wait_until((deadline - now()).max(0.0), told)
    }

    /// Sends input. The call waits during pauses; after an interruption, the rest may not be sent.
    ///
    /// # Errors
    /// When the connection has ended, or a pause was interrupted.
    pub fn send(&self, events: &[Event]) -> Result<()> {
        for batch in events.chunk_by(|event, _| !matches!(event, Event::Pause(_))) {
            let mut state = self.state()?;
            for event in batch {
                push(&mut state, *event);
            }
            let (at, active) = (now(), state.active());
            state.input = at;
            state.pacing.sent(at, active);
            self.shared.flush(&mut state)?;
            drop(state);
            if let Some(Event::Pause(milliseconds)) = batch.last() {
                self.wait_until(f64::from(*milliseconds) / 1000.0, |_| false)?;
            }
        }
        self.point();
        Ok(())
    }

    fn point(&self) {
        locked(&self.shared.state).point(&self.shared.screen);
    }

    /// Whether `CapsLock` and `NumLock` are on; `None` if the server does not report it. Waits for the effect of sent keys.
    ///
    /// # Errors
    /// When the connection has ended, or the wait was interrupted.
    pub fn locks(&self) -> Result<Option<(bool, bool)>> {
        let left = {
            let state = self.state()?;
            state.lock_due().map_or(0.0, |sent| sent + state.pacing.trip() + LIGHT_LIMIT - now())
        };
        self.wait_until(left.max(0.0), |state| state.lock_due().is_none())?;
        let [caps, num] = self.state()?.locks.each_mut().map(Lock::settle);
        Ok(caps.zip(num))
    }

    /// Releases these, and everything else that is held, and waits until the server has read it.
    ///
    /// # Errors
    /// When the connection has ended.
    pub fn release(&self, events: &[Event]) -> Result<()> {
        let mut state = self.state()?;
        for event in events {
            push(&mut state, *event);
        }
        release_held(&mut state);
        self.shared.flush(&mut state)?;
        drop(state);
        // Uninterruptible: a key must not stay held because of a signal. Twice, because x0vncserver hands input on to X only after
        // it has answered.
        self.sync(None, None).and_then(|_| self.sync(None, None)).map(|_| ())
    }

    /// Keysyms and buttons that are held.
    #[must_use]
    pub fn pressed(&self) -> (Vec<u32>, Vec<u8>) {
        let state = locked(&self.shared.state);
        (state.keys.clone(), held_buttons(state.buttons).collect())
    }

    /// Asks for another size of the screen and waits for it.
    ///
    /// # Errors
    /// When the server cannot, or refuses.
    pub fn resize(&self, size: Size) -> Result<()> {
        if size.w.max(size.h) > u16::MAX.into() {
            return Err(Error::Refused(format!("no screen can be {}x{}", size.w, size.h)));
        }
        let mut state = self.state()?;
        if !state.features.set_desktop_size {
            return Err(Error::Refused("this server cannot change the size of its screen".into()));
        }
        let first = state.monitors.first().copied();
        let (id, flags) = first.map_or((0, 0), |monitor| (monitor.id, monitor.flags));
        state.resized = None;
        state.push(&client::set_desktop_size(size, &[Monitor { id, rect: size.rect(), flags }]));
        self.shared.flush(&mut state)?;
        drop(state);
        let mut status = None;
        self.wait_until(RESIZE_LIMIT, |state| {
            status = state.resized;
            status.is_some()
        })?;
        let why = match status {
            Some(0) => return Ok(()),
            Some(1) => "it is prohibited",
            Some(2) => "it is out of resources",
            Some(3) => "it does not take this size",
            Some(_) => "it gave no known reason",
            None => "it did not answer",
        };
        Err(Error::Refused(format!("the server did not change its screen to {}x{}: {why}", size.w, size.h)))
    }

    /// The clipboard's text, `None` when the server has sent none.
    ///
    /// # Errors
    /// When the server has announced text and does not deliver it within this many seconds.
    pub fn read_clipboard(&self, seconds: f64) -> Result<Option<String>> {
        let mut state = self.state()?;
        if state.clipboard.announced {
            state.push(&client::clipboard_request(Formats::TEXT));
            self.shared.flush(&mut state)?;
        }
        drop(state);
        if !self.wait_until(seconds, |state| !state.clipboard.announced)? {
            return Err(Error::Timeout { what: "the clipboard's text", seconds });
        }
        let board = &self.state()?.clipboard;
        if board.truncated {
            return Err(Error::Refused("the clipboard's text is longer than 1 MiB".into()));
        }
        Ok(board.ours.as_ref().or(board.theirs.as_ref()).cloned())
    }

    /// Puts text on the clipboard, and serves it while the connection lasts.
    ///
    /// # Errors
    /// When the text is not Latin-1 and the server takes only that.
    pub fn write_clipboard(&self, text: &str) -> Result<()> {
        let mut state = self.state()?;
        let message = if state.features.clipboard {
            client::clipboard_notify(Formats::TEXT)
        } else {
            client::cut_text(text)
                .ok_or_else(|| Error::Refused("this server's clipboard takes only Latin-1 text".into()))?
        };
        state.clipboard = crate::state::Board { ours: Some(text.to_owned()), ..Default::default() };
        state.push(&message);
        self.shared.flush(&mut state)
    }

    /// Waits until the server has fetched the text last written.
    ///
    /// # Errors
    /// When it has not within this many seconds.
    pub fn wait_pasted(&self, seconds: f64) -> Result<()> {
        if self.wait_until(seconds, |state| state.clipboard.served > 0)? {
            return Ok(());
        }
        Err(Error::Timeout { what: "somebody to paste the text", seconds })
    }

    /// Its socket.
    #[must_use]
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.shared.stream.as_fd()
    }

    /// Releases everything and ends the connection; calling it again is harmless.
    pub fn close(&self) {
        let Some(reader) = locked(&self.reader).take() else { return };
        if let Ok(mut state) = self.state() {
            release_held(&mut state);
            if self.shared.flush(&mut state).is_ok() {
                let probe = state.probe(now());
                let _ = self.shared.flush(&mut state);
                drop(state);
                let _ = self.wait_for(CLOSE_LIMIT, None, |state| state.answered >= probe);
            }
        }
        locked(&self.shared.state).ended.get_or_insert(Error::Lost("this connection was closed".into()));
        let _ = rustix::net::shutdown(&self.shared.stream, rustix::net::Shutdown::Both);
        self.shared.nudge.send();
        let _ = reader.join();
        // The socket stays open until this is dropped. Like a close, this shows a server that is still sending that nothing reads
        // the rest: with a full buffer it would never learn that.
        if rustix::io::ioctl_fionread(&self.shared.stream).is_ok_and(|left| left > 0) {
            let _ = rustix::net::connect_unspec(&self.shared.stream);
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.close();
    }
}
