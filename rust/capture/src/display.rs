//! A desktop's connection, as its callers see it: it keeps a [`Screen`] current, and takes input, pings and queries about
//! windows.

use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use imaging::{Screen, Size};
use link::{Event, Interrupt, Nudge, locked};
use rustix::fd::{AsFd, BorrowedFd};
use x11rb::connection::{Connection, RequestConnection};
use x11rb::protocol::damage::{self, ConnectionExt as _};
use x11rb::protocol::randr::{self, ConnectionExt as _};
use x11rb::protocol::xfixes::{self, ConnectionExt as _};
use x11rb::protocol::xproto::{ChangeWindowAttributesAux, ConnectionExt as _, EventMask, Window};

use crate::error::{Error, Result};
use crate::grab::Grabber;
use crate::lease::take_lease;
use crate::monitors::{MonitorInfo, XWAYLAND_NOTE};
use crate::options::Options;
use crate::popups::Cover;
use crate::reach::Missed;
use crate::server::{Server, Target};
use crate::state::State;
use crate::watcher::{Ended, Shared, watch};
use crate::windows::WindowInfo;
use crate::wire::Wire;
use crate::work::Activity;

/// One desktop over X11.
pub struct Display {
    shared: Arc<Shared>,
    watcher: Mutex<Option<JoinHandle<()>>>,
    view_only: bool,
    own: bool,
}

impl Display {
    /// Opens the display, takes the lease, and captures the first frame.
    ///
    /// # Errors
    /// [`Error::Connect`], [`Error::Leased`] when another driver has it, [`Error::Unsupported`] when the server lacks what is
    /// needed, [`Error::Violation`] when it breaks the protocol, as any call may find it to do.
    pub fn open(target: &Target, options: &Options, interrupt: Interrupt) -> Result<Self> {
        let display = Self::unwatched(Server::open(target, &interrupt)?, target, options, interrupt)?;
        let watcher = std::thread::Builder::new()
            .name("deskhand-watch".into())
            .spawn({
                let shared = Arc::clone(&display.shared);
                move || {
                    let _ended = Ended(&shared);
                    watch(&shared);
                }
            })
            .map_err(|error| Error::Unsupported(format!("no thread: {error}")))?;
        *locked(&display.watcher) = Some(watcher);
        Ok(display)
    }

    /// The same without the thread that reads between calls.
    pub(crate) fn unwatched(server: Server, target: &Target, options: &Options, interrupt: Interrupt) -> Result<Self> {
        let server = Arc::new(server);
        if !options.view_only {
            take_lease(&server, &options.driver)?;
        }
        let conn = &server.conn;
        let events = EventMask::SUBSTRUCTURE_NOTIFY | EventMask::STRUCTURE_NOTIFY | EventMask::PROPERTY_CHANGE;
        conn.change_window_attributes(server.root, &ChangeWindowAttributesAux::new().event_mask(events))?;
        if conn.extension_information(randr::X11_EXTENSION_NAME)?.is_some() {
            conn.randr_select_input(server.root, randr::NotifyMask::SCREEN_CHANGE)?;
        }
        conn.xfixes_select_cursor_input(server.root, xfixes::CursorNotifyMask::DISPLAY_CURSOR)?;
        let (region, damage) = (conn.generate_id()?, conn.generate_id()?);
        conn.xfixes_create_region(region, &[])?;
        conn.damage_create(damage, server.root, damage::ReportLevel::NON_EMPTY)?;
        let size = server.size()?;
        let grabber = Grabber::new(&server, options.method)?;
        let notes = grabber.reasons().iter().map(|reason| format!("slower capture ({:?}): {reason}", grabber.method()));
        let mut notes: Vec<String> = notes.collect();
        if server.is_xwayland()? {
            notes.push(XWAYLAND_NOTE.into());
        }
        let mut state = State::new(grabber, region, damage);
        state.work.expect_drawing(&target.display);
        if target.display.starts_with(':') && server.process_of(conn.setup().resource_id_base)?.is_some() {
            state.work.expect_programs(target.display.clone());
        }
        let nudge = Nudge::new().map_err(|errno| Error::Unsupported(format!("eventfd: {errno}")))?;
        let wire = Wire {
            server,
            target: target.clone(),
            interrupt,
            screen: Arc::new(Mutex::new(Screen::new(size))),
            nudge,
            lost: OnceLock::new(),
            notes: Mutex::new(notes),
        };
        state.fetch_all(&wire)?;
        if !options.view_only {
            state.take_keyboard(&wire, options.own)?;
        }
        state.look(&wire)?;
        let shared = Shared { wire, state: Mutex::new(state), turn: Mutex::default(), turned: Condvar::new() };
        let shared = Arc::new(shared);
        Ok(Self { shared, watcher: Mutex::default(), view_only: options.view_only, own: options.own })
    }

    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut State, &Wire) -> Result<T>) -> Result<T> {
        let shared = &*self.shared;
        let _turn = shared.take_turn();
        let result = self.alive().and_then(|()| {
            let mut state = locked(&shared.state);
            let value = work(&mut state, &shared.wire)?;
            state.drain(&shared.wire)?;
            if state.pending.damage {
                // Read here, so the watcher's poll will not see it.
                shared.wire.nudge.send();
            }
            Ok(value)
        });
        if let Err(error) = &result {
            shared.wire.note_end(error);
        }
        result
    }

    fn alive(&self) -> Result<()> {
        self.shared
            .wire
            .lost
            .get()
            .map_or(Ok(()), |why| Err(Error::Lost(format!("the connection was lost before: {why}"))))
    }

    /// Its connection's socket.
    #[must_use]
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.shared.wire.server.conn.stream().as_fd()
    }

    /// The screen that this connection keeps current.
    #[must_use]
    pub fn screen(&self) -> Arc<Mutex<Screen>> {
        Arc::clone(&self.shared.wire.screen)
    }

    /// Why slower paths are in use, and what the picture lacks; empty for nothing.
    #[must_use]
    pub fn status(&self) -> Vec<String> {
        locked(&self.shared.wire.notes).clone()
    }

    /// Keeps the watcher off until [`Display::end`]: the caller is about to make several calls in a row.
    pub fn begin(&self) {
        locked(&self.shared.turn).held = true;
    }

    /// Ends what [`Display::begin`] began.
    pub fn end(&self) {
        self.shared.wire.interrupt.allow(None);
        locked(&self.shared.turn).held = false;
        self.shared.turned.notify_all();
    }

    /// Sends input events and returns after the server has processed them; returns what did not reach its window.
    ///
    /// # Errors
    /// [`Error::NoKeycode`] (nothing was sent), [`Error::Stalled`], [`Error::Request`], [`Error::Interrupted`],
    /// [`Error::Lost`].
    pub fn send(&self, events: &[Event]) -> Result<Option<Missed>> {
        if self.view_only {
            return Err(Error::Unsupported("this desktop was opened to look only (view_only=True)".into()));
        }
        self.with(|state, wire| state.send(wire, events))
    }

    /// Releases these keys and buttons, then all that the server still reports as pressed.
    ///
    /// # Errors
    /// [`Error::Lost`].
    pub fn release(&self, ups: &[Event]) -> Result<()> {
        self.shared.wire.interrupt.shielded(|| self.with(|state, wire| state.release(wire, ups)))
    }

    /// Keycodes and buttons (1–5) pressed now, as the server reports them.
    ///
    /// # Errors
    /// [`Error::Lost`].
    pub fn pressed(&self) -> Result<(Vec<u8>, Vec<u8>)> {
        self.with(|_, wire| State::pressed(wire))
    }

    /// Brings the screen and the pointer up to date.
    ///
    /// # Errors
    /// [`Error::Lost`], [`Error::Interrupted`].
    pub fn look(&self) -> Result<()> {
        self.with(State::look)
    }

    /// Waits for changed pixels, an answered ping or a changed window list; `false` at the timeout.
    ///
    /// # Errors
    /// [`Error::Lost`], [`Error::Interrupted`].
    pub fn wait(&self, timeout: Duration) -> Result<bool> {
        self.with(|state, wire| state.wait(wire, timeout))
    }

    /// Pings `window`, or the one that gets the input: under the pointer, or with the focus. `None` when it does not promise to
    /// answer.
    ///
    /// # Errors
    /// [`Error::Lost`], [`Error::Interrupted`].
    pub fn ping(&self, at_pointer: bool, window: Option<Window>) -> Result<Option<u64>> {
        self.with(|state, wire| state.ping(wire, at_pointer, window))
    }

    /// The window that the latest [`Display::ping`] was meant for.
    ///
    /// # Errors
    /// [`Error::Lost`].
    pub fn input_window(&self) -> Result<Option<Window>> {
        self.with(|state, _| Ok((state.input != x11rb::NONE).then_some(state.input)))
    }

    /// True once this ping, or a later one to the same window, was answered, or that window is gone.
    ///
    /// # Errors
    /// [`Error::LayoutChanged`] when the layout was changed while keys typed before the ping were still unread, once;
    /// [`Error::Lost`].
    pub fn answered(&self, ping: u64) -> Result<bool> {
        self.with(|state, wire| {
            let answered = state.pings.answered(ping);
            if answered {
                state.check_typed(wire)?;
            }
            Ok(answered)
        })
    }

    /// Records what the applications have been doing on their own, before an action begins.
    ///
    /// # Errors
    /// [`Error::Lost`].
    pub fn take_stock(&self) -> Result<()> {
        self.with(|state, _| {
            state.work.take_stock();
            Ok(())
        })
    }

    /// What the application that [`Display::ping`] looked at, and what it started, did just now beyond what it does on its own, as far
    /// as this machine can tell: a toolkit may answer a ping before it has drawn what came before it. A window manager that holds a
    /// click back is at work too, and so is a button that a key has pressed. Where nothing has `changed`, or after a key that may be hot,
    /// a client that has yet to read that key counts as at work for a second.
    ///
    /// # Errors
    /// [`Error::LayoutChanged`] when the layout was changed since keys were typed into a window that cannot be pinged, once;
    /// [`Error::Lost`].
    pub fn activity(&self, changed: bool) -> Result<Activity> {
        self.with(|state, wire| {
            state.check_unproved(wire)?;
            state.activity(wire, changed)
        })
    }

    /// True when this window is one of the application that got the keys which were sent last, and `at` was after that.
    ///
    /// # Errors
    /// [`Error::Lost`].
    pub fn is_typed_into(&self, window: Window, at: Instant) -> Result<bool> {
        self.with(|state, wire| state.is_typed_into(wire, window, at))
    }

    /// See [`Server::double_click_time`].
    ///
    /// # Errors
    /// [`Error::Lost`].
    pub fn double_click_time(&self) -> Result<Option<u32>> {
        self.with(|_, wire| wire.server.double_click_time())
    }

    /// The class of the window that keys go to, and that of its client's leader.
    ///
    /// # Errors
    /// [`Error::Lost`] or [`Error::Interrupted`].
    pub fn focused_classes(&self) -> Result<Vec<String>> {
        self.with(|_, wire| wire.server.focused_classes())
    }

    /// The managed windows.
    ///
    /// # Errors
    /// [`Error::Lost`].
    pub fn windows(&self) -> Result<Vec<WindowInfo>> {
        self.with(|_, wire| wire.server.windows())
    }

    /// Where menus and others that no window manager places cover what is below them, and since when.
    ///
    /// # Errors
    /// [`Error::Lost`].
    pub fn covers(&self) -> Result<Vec<Cover>> {
        self.with(|state, wire| state.popups.covering(&wire.server))
    }

    /// See [`Server::activate`].
    ///
    /// # Errors
    /// [`Error::Lost`].
    pub fn activate(&self, window: Window) -> Result<()> {
        self.with(|_, wire| wire.server.activate(window))
    }

    /// See [`Server::close_window`].
    ///
    /// # Errors
    /// [`Error::Lost`].
    pub fn close_window(&self, window: Window) -> Result<()> {
        self.with(|_, wire| wire.server.close_window(window))
    }

    /// True when a window manager that follows EWMH runs. A new one is waited for until it serves, for two seconds at most.
    ///
    /// # Errors
    /// [`Error::Lost`], [`Error::Interrupted`].
    pub fn has_window_manager(&self) -> Result<bool> {
        self.with(State::has_manager)
    }

    /// See [`Server::monitors`].
    ///
    /// # Errors
    /// [`Error::Lost`] or [`Error::Interrupted`].
    pub fn monitors(&self) -> Result<Vec<MonitorInfo>> {
        self.with(|_, wire| wire.server.monitors())
    }

    /// Changes the size of the screen where the server can (Xvfb: up to the size it was started with).
    ///
    /// # Errors
    /// [`Error::Unsupported`] when it cannot, [`Error::Request`] when it refuses the size.
    pub fn resize(&self, size: Size) -> Result<()> {
        self.with(|state, wire| {
            crate::resize::resize(&wire.server, size)?;
            state.pending.size = true;
            state.pump(wire)
        })
    }

    /// Releases what is pressed, restores the keymap unless the server is ours, ends the lease and the watcher. Idempotent.
    pub fn close(&self) {
        let Some(watcher) = locked(&self.watcher).take() else { return };
        {
            let mut turn = locked(&self.shared.turn);
            turn.stop = true;
            self.shared.turned.notify_all();
        }
        self.shared.wire.nudge.send();
        let _ = watcher.join();
        self.shared.wire.interrupt.clear();
        if !self.view_only {
            let _ = self.shared.wire.interrupt.shielded(|| {
                self.with(|state, wire| {
                    state.release(wire, &[])?;
                    if !self.own {
                        state.unbind(wire)?;
                    }
                    wire.server.round_trip()
                })
            });
        }
        self.shared.wire.lose("it was closed");
        // The threads' copies of the connection are gone; this end of the socket is shut so that the server frees our resources
        // even while another object still holds the screen.
        let _ = rustix::net::shutdown(self.shared.wire.server.conn.stream().as_fd(), rustix::net::Shutdown::Both);
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        self.close();
    }
}
