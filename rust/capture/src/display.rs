//! A desktop's connection at work: it keeps a [`Screen`] current, and takes input, pings and questions about windows.
//!
//! Whoever calls works on the caller's own thread, under one lock. Between calls a watcher thread reads what the server sends,
//! so that changes nobody asked for (a caret, a clock) are known as such before the next action, and a dead server is noticed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use imaging::{Cursor, Rect, Screen, Size};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::time::{ClockId, Timespec, clock_gettime};
use x11rb::connection::{Connection, RequestConnection};
use x11rb::protocol::damage::{self, ConnectionExt as _};
use x11rb::protocol::randr::{self, ConnectionExt as _};
use x11rb::protocol::xfixes::{self, ConnectionExt as _};
use x11rb::protocol::xproto::{
    AtomEnum, ChangeWindowAttributesAux, ConnectionExt as _, CreateWindowAux, EventMask, PropMode, Window, WindowClass,
};
use x11rb::protocol::{ErrorKind, Event as XEvent};
use x11rb::wrapper::ConnectionExt as _;

use crate::error::{Error, Result, x_error};
use crate::event::Event;
use crate::grab::{Grabber, Method};
use crate::keyboard::{Keyboard, Keymap};
use crate::server::{Server, Target};
use crate::stream::Interrupt;
use crate::windows::WindowInfo;

/// A video that nobody looks at costs ten captures a second.
const WATCH_PERIOD: Duration = Duration::from_millis(100);
/// A borrowed keycode stays this long after typing when the application gave no proof that it has read its keys.
const RESTORE_AFTER: Duration = Duration::from_secs(1);
const WAIT_SLICE: Duration = Duration::from_millis(50);
/// An application that used more than this share of the time waited for it was working, not idling between two blinks.
const COMPUTING_SHARE: f64 = 0.4;
/// Over a shorter time the answer to our own ping weighs too much.
const COMPUTING_SPAN: Duration = Duration::from_millis(5);
/// Marks our pings; other clients put a timestamp there.
const PING_MARK: u32 = 0xdec0_0000;
const PING_COUNTER: u32 = 0x000f_ffff;
/// Beyond this many damaged rectangles one capture of their unions is cheaper.
const MANY_RECTS: usize = 24;

/// What one connection shares between its callers and its watcher.
pub(crate) struct Shared {
    pub(crate) server: Arc<Server>,
    pub(crate) target: Target,
    pub(crate) interrupt: Interrupt,
    screen: Arc<Mutex<Screen>>,
    state: Mutex<State>,
    turn: Mutex<Turn>,
    turned: Condvar,
    nudge: OwnedFd,
    lost: AtomicBool,
    notes: Mutex<Vec<String>>,
}

#[derive(Default)]
struct Turn {
    callers: usize,
    /// A caller makes several calls in a row. Not counted: a signal may come between two lines of its Python code, and an `end`
    /// that was missed once must not keep the watcher off for ever.
    held: bool,
    stop: bool,
}

pub(crate) struct State {
    grabber: Grabber,
    region: xfixes::Region,
    damage: damage::Damage,
    damaged: bool,
    /// A part of the screen may have changed without having been read.
    incomplete: bool,
    resized: bool,
    cursor_stale: bool,
    pub(crate) map: Option<Arc<Keymap>>,
    pub(crate) keyboard: Keyboard,
    pings_sent: u32,
    pinged: Window,
    /// The window that the latest input went to, and the process behind it where it runs on this machine.
    input: Window,
    process: Option<u32>,
    /// When the latest wait began, and the processor time that the process had used then.
    used: Option<(Instant, Duration)>,
    pings_answered: u32,
    /// Counts what a waiting caller wants to hear of: answered pings, changed window lists.
    signals: u64,
    /// How many of them a waiting caller has been told of; the rest may have been read by another call.
    signals_told: u64,
    pub(crate) errors: Vec<Error>,
    pub(crate) last_typed: Instant,
}

/// Seconds on the clock that Python's `time.monotonic` reads.
fn now() -> f64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Monotonic);
    tv_sec as f64 + tv_nsec as f64 * 1e-9
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Waits for bytes from the server, or a signal, for at most one slice.
    pub(crate) fn wait_readable(&self, timeout: Duration) -> Result<bool> {
        let readable = self.server.conn.stream().wait_readable(timeout.min(WAIT_SLICE))?;
        if !readable && self.interrupt.requested() {
            return Err(Error::Interrupted);
        }
        Ok(readable)
    }

    /// Does nothing for `duration`, unless interrupted.
    pub(crate) fn pause(&self, duration: Duration) -> Result<()> {
        let deadline = Instant::now() + duration;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(WAIT_SLICE));
            if self.interrupt.requested() {
                return Err(Error::Interrupted);
            }
        }
    }

    /// Adds a line to [`Display::status`], once.
    pub(crate) fn note(&self, text: &str) {
        let mut notes = locked(&self.notes);
        if !notes.iter().any(|note| note == text) {
            notes.push(text.to_owned());
        }
    }

    fn nudge(&self) {
        // It can only fail when the counter is full, and then the watcher has been nudged.
        let _ = rustix::io::write(&self.nudge, &1_u64.to_ne_bytes());
    }

    fn take_turn(&self) {
        locked(&self.turn).callers += 1;
    }

    fn give_turn(&self) {
        locked(&self.turn).callers -= 1;
        self.turned.notify_all();
    }
}

impl State {
    /// Reads what has arrived, without waiting.
    pub(crate) fn drain(&mut self, shared: &Shared) -> Result<()> {
        while let Some(event) = shared.server.conn.poll_for_event()? {
            self.handle(&shared.server, &event);
        }
        Ok(())
    }

    fn handle(&mut self, server: &Server, event: &XEvent) {
        match event {
            XEvent::DamageNotify(_) => self.damaged = true,
            XEvent::XfixesCursorNotify(_) => self.cursor_stale = true,
            XEvent::MappingNotify(_) | XEvent::XkbMapNotify(_) | XEvent::XkbNewKeyboardNotify(_) => self.map = None,
            XEvent::RandrScreenChangeNotify(_) => self.resized = true,
            XEvent::ConfigureNotify(configure) if configure.window == server.root => self.resized = true,
            XEvent::PropertyNotify(property)
                if [
                    server.atoms._NET_CLIENT_LIST,
                    server.atoms._NET_ACTIVE_WINDOW,
                    server.atoms._NET_SUPPORTING_WM_CHECK,
                ]
                .contains(&property.atom) =>
            {
                self.signals += 1;
            }
            XEvent::ClientMessage(message) if message.type_ == server.atoms.WM_PROTOCOLS => {
                let [protocol, token, ..] = message.data.as_data32();
                if protocol == server.atoms._NET_WM_PING && token & !PING_COUNTER == PING_MARK {
                    self.pings_answered = self.pings_answered.max(token & PING_COUNTER);
                    self.signals += 1;
                }
            }
            // A window that closes on its input (a dialog's button) answers nothing any more: it has read what it will read.
            XEvent::DestroyNotify(gone) if gone.window == self.pinged => self.give_up_ping(),
            XEvent::UnmapNotify(gone) if gone.window == self.pinged => self.give_up_ping(),
            XEvent::Error(error) if error.error_kind == ErrorKind::Window && error.bad_value == self.pinged => {
                self.give_up_ping();
            }
            XEvent::Error(error) => self.errors.push(x_error(error)),
            _ => {}
        }
    }

    fn give_up_ping(&mut self) {
        self.pings_answered = self.pings_sent;
        self.signals += 1;
    }

    pub(crate) fn next_ping(&mut self, shared: &Shared, window: Window) -> Result<u32> {
        self.pings_sent = (self.pings_sent + 1) & PING_COUNTER;
        self.pinged = window;
        let events = ChangeWindowAttributesAux::new().event_mask(EventMask::STRUCTURE_NOTIFY);
        shared.server.conn.change_window_attributes(window, &events)?;
        shared.server.send_ping(window, PING_MARK | self.pings_sent)?;
        Ok(self.pings_sent)
    }

    pub(crate) fn answered(&self, token: u32) -> bool {
        self.pings_answered >= token
    }

    /// Brings the screen up to date with what has arrived.
    fn pump(&mut self, shared: &Shared) -> Result<()> {
        self.drain(shared)?;
        if self.resized {
            self.follow_size(shared)?;
            self.resized = false;
        }
        if self.incomplete {
            self.fetch_all(shared)?;
            self.incomplete = false;
        }
        while self.damaged {
            self.damaged = false;
            // The server forgets the damage when it tells it: should the answer be missed (a signal), all must be read again.
            self.incomplete = true;
            self.fetch_damage(shared)?;
            self.incomplete = false;
            self.drain(shared)?;
        }
        if self.cursor_stale {
            Self::fetch_cursor(shared)?;
            self.cursor_stale = false;
        }
        Ok(())
    }

    fn fetch_damage(&mut self, shared: &Shared) -> Result<()> {
        let server = &shared.server;
        server.conn.damage_subtract(self.damage, x11rb::NONE, self.region)?;
        let region = server.conn.xfixes_fetch_region(self.region)?.reply()?;
        let Size { w, h } = locked(&shared.screen).size();
        let screen = Rect { x: 0, y: 0, w, h };
        let mut rects: Vec<Rect> = region.rectangles.iter().filter_map(|&rect| clip(rect, screen)).collect();
        if rects.len() > MANY_RECTS {
            rects = imaging::merge(rects);
        }
        if rects.is_empty() {
            return Ok(());
        }
        let read = self.grabber.read(server, &rects, |patches| Ok(locked(&shared.screen).update(patches, now())?));
        match read {
            // The screen became smaller between the event and the request: the notification is on its way.
            Err(Error::Request { .. }) if server.size()? != (Size { w, h }) => self.follow_size(shared),
            other => other.map(|_| ()),
        }
    }

    fn follow_size(&mut self, shared: &Shared) -> Result<()> {
        let size = shared.server.size()?;
        if size == locked(&shared.screen).size() {
            return Ok(());
        }
        let grabber = Grabber::new(&shared.server, size, Some(self.grabber.method()))?;
        self.grabber.detach(&shared.server);
        self.grabber = grabber;
        self.incomplete = true;
        locked(&shared.screen).resize(size, now());
        self.fetch_all(shared)?;
        self.incomplete = false;
        Ok(())
    }

    fn fetch_all(&mut self, shared: &Shared) -> Result<()> {
        let Size { w, h } = locked(&shared.screen).size();
        let whole = [Rect { x: 0, y: 0, w, h }];
        self.grabber.read(&shared.server, &whole, |patches| Ok(locked(&shared.screen).update(patches, now())?))?;
        Ok(())
    }

    fn fetch_cursor(shared: &Shared) -> Result<()> {
        let cursor = match shared.server.conn.xfixes_get_cursor_image()?.reply() {
            Ok(reply) => Some(Cursor {
                size: Size { w: reply.width.into(), h: reply.height.into() },
                hot: (reply.xhot.into(), reply.yhot.into()),
                argb: reply.cursor_image,
                serial: reply.cursor_serial.into(),
            }),
            // Some servers refuse this to other clients under a compositor: then there is no cursor to show.
            Err(x11rb::errors::ReplyError::X11Error(error)) => {
                shared.note(&format!("the cursor is not shown: {}", x_error(&error)));
                None
            }
            Err(error) => return Err(error.into()),
        };
        locked(&shared.screen).set_cursor(cursor);
        Ok(())
    }

    /// The server's state now: one round trip, then whatever it tells that changed.
    fn look(&mut self, shared: &Shared) -> Result<()> {
        let pointer = shared.server.conn.query_pointer(shared.server.root)?.reply()?;
        self.pump(shared)?;
        locked(&shared.screen).set_pointer((pointer.root_x.into(), pointer.root_y.into()));
        Ok(())
    }

    /// Waits until pixels changed, a ping was answered or the list of windows changed; `false` at the timeout.
    fn wait(&mut self, shared: &Shared, timeout: Duration) -> Result<bool> {
        let deadline = Instant::now() + timeout;
        self.used = self.process.and_then(processor_time).map(|used| (Instant::now(), used));
        let generation = locked(&shared.screen).generation();
        loop {
            self.pump(shared)?;
            if self.signals != self.signals_told || locked(&shared.screen).generation() != generation {
                self.signals_told = self.signals;
                return Ok(true);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            shared.wait_readable(left)?;
        }
    }
}

fn clip(rect: x11rb::protocol::xproto::Rectangle, screen: Rect) -> Option<Rect> {
    let (x, y) = (i32::from(rect.x).max(0), i32::from(rect.y).max(0));
    let right = (i32::from(rect.x) + i32::from(rect.width)).min(screen.w as i32);
    let bottom = (i32::from(rect.y) + i32::from(rect.height)).min(screen.h as i32);
    (right > x && bottom > y).then(|| Rect { x: x as u32, y: y as u32, w: (right - x) as u32, h: (bottom - y) as u32 })
}

/// How to open a [`Display`].
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Only look: take no lease, refuse input.
    pub view_only: bool,
    /// Use this capture method or fail.
    pub method: Option<Method>,
    /// What the lease says about us, for the next driver's error message.
    pub driver: String,
}

/// One desktop over X11.
pub struct Display {
    shared: Arc<Shared>,
    watcher: Mutex<Option<JoinHandle<()>>>,
    view_only: bool,
}

impl Display {
    /// Opens the display, takes the lease, and captures the first frame.
    ///
    /// # Errors
    ///
    /// [`Error::Connect`], [`Error::Leased`] when another driver has it, [`Error::Unsupported`] when the server lacks what is
    /// needed.
    pub fn open(target: &Target, options: &Options, interrupt: Interrupt) -> Result<Self> {
        let server = Arc::new(Server::open(target, &interrupt)?);
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
        let grabber = Grabber::new(&server, size, options.method)?;
        let notes = grabber.reasons().iter().map(|reason| format!("slower capture ({:?}): {reason}", grabber.method()));
        let notes = Mutex::new(notes.collect());
        let state = State {
            grabber,
            region,
            damage,
            damaged: false,
            incomplete: false,
            resized: false,
            cursor_stale: true,
            map: None,
            keyboard: Keyboard::default(),
            pings_sent: 0,
            pinged: x11rb::NONE,
            input: x11rb::NONE,
            process: None,
            used: None,
            pings_answered: 0,
            signals: 0,
            signals_told: 0,
            errors: Vec::new(),
            last_typed: Instant::now(),
        };
        let nudge = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|errno| Error::Unsupported(format!("eventfd: {errno}")))?;
        let shared = Arc::new(Shared {
            server,
            target: target.clone(),
            interrupt,
            screen: Arc::new(Mutex::new(Screen::new(size))),
            state: Mutex::new(state),
            turn: Mutex::default(),
            turned: Condvar::new(),
            nudge,
            lost: AtomicBool::new(false),
            notes,
        });
        {
            let mut state = locked(&shared.state);
            state.fetch_all(&shared)?;
            if !options.view_only {
                state.take_keyboard(&shared)?;
            }
            state.look(&shared)?;
        }
        let watcher = std::thread::Builder::new()
            .name("deskhand-watch".into())
            .spawn({
                let shared = Arc::clone(&shared);
                move || watch(&shared)
            })
            .map_err(|error| Error::Unsupported(format!("no thread: {error}")))?;
        Ok(Self { shared, watcher: Mutex::new(Some(watcher)), view_only: options.view_only })
    }

    fn with<T>(&self, work: impl FnOnce(&mut State, &Shared) -> Result<T>) -> Result<T> {
        let shared = &*self.shared;
        shared.take_turn();
        let result = self.alive().and_then(|()| {
            let mut state = locked(&shared.state);
            let value = work(&mut state, shared)?;
            state.drain(shared)?;
            if state.damaged {
                // Read here, so the watcher's poll will not see it.
                shared.nudge();
            }
            Ok(value)
        });
        shared.give_turn();
        if matches!(result, Err(Error::Lost(_))) {
            shared.lost.store(true, Ordering::SeqCst);
        }
        result
    }

    fn alive(&self) -> Result<()> {
        if self.shared.lost.load(Ordering::SeqCst) {
            return Err(Error::Lost("the connection was lost before".into()));
        }
        Ok(())
    }

    /// The screen that this connection keeps current.
    #[must_use]
    pub fn screen(&self) -> Arc<Mutex<Screen>> {
        Arc::clone(&self.shared.screen)
    }

    /// Why slower paths are in use; empty when none is.
    #[must_use]
    pub fn status(&self) -> Vec<String> {
        locked(&self.shared.notes).clone()
    }

    /// Keeps the watcher off until [`Display::end`]: the caller is about to make several calls in a row.
    pub fn begin(&self) {
        locked(&self.shared.turn).held = true;
    }

    /// Ends what [`Display::begin`] began.
    pub fn end(&self) {
        locked(&self.shared.turn).held = false;
        self.shared.turned.notify_all();
    }

    /// Sends input events and returns after the server has processed them.
    ///
    /// # Errors
    ///
    /// [`Error::NoKeycode`] (nothing was sent), [`Error::Stalled`], [`Error::Request`], [`Error::Interrupted`],
    /// [`Error::Lost`].
    pub fn send(&self, events: &[Event]) -> Result<()> {
        if self.view_only {
            return Err(Error::Unsupported("this desktop was opened to look only (view_only=True)".into()));
        }
        self.with(|state, shared| state.send(shared, events))
    }

    /// Releases these keys and buttons, then all that the server still reports as pressed.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`].
    pub fn release(&self, ups: &[Event]) -> Result<()> {
        self.shared.interrupt.shielded(|| self.with(|state, shared| state.release(shared, ups)))
    }

    /// Keycodes and buttons (1–5) pressed now, as the server reports them.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`].
    pub fn pressed(&self) -> Result<(Vec<u8>, Vec<u8>)> {
        self.with(|_, shared| State::pressed(shared))
    }

    /// Brings the screen and the pointer up to date.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`], [`Error::Interrupted`].
    pub fn look(&self) -> Result<()> {
        self.with(State::look)
    }

    /// Waits for changed pixels, an answered ping or a changed window list; `false` at the timeout.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`], [`Error::Interrupted`].
    pub fn wait(&self, timeout: Duration) -> Result<bool> {
        self.with(|state, shared| state.wait(shared, timeout))
    }

    /// Pings `window`, or the one that gets the input: under the pointer, or with the focus. `None` when it does not promise to
    /// answer.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`], [`Error::Interrupted`].
    pub fn ping(&self, at_pointer: bool, window: Option<Window>) -> Result<Option<u32>> {
        self.with(|state, shared| {
            let server = &shared.server;
            let candidates = match window {
                Some(_) => [window, None],
                None if at_pointer => [server.under_pointer()?, server.focus()?],
                None => [server.focus()?, None],
            };
            if let Some(window) = candidates.into_iter().flatten().next()
                && state.input != window
            {
                state.input = window;
                state.process = server.process_of(window)?;
            }
            for window in candidates.into_iter().flatten() {
                if let Some(window) = server.pingable(window)? {
                    return state.next_ping(shared, window).map(Some);
                }
            }
            Ok(None)
        })
    }

    /// True once this ping, or a later one, was answered.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`].
    pub fn answered(&self, token: u32) -> Result<bool> {
        self.with(|state, _| Ok(state.answered(token)))
    }

    /// True when the main thread of the application that [`Display::ping`] looked at was computing during the latest
    /// [`Display::wait`], as far as this machine can tell: a toolkit may answer a ping before it has drawn what came before it.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`].
    pub fn computing(&self) -> Result<bool> {
        self.with(|state, _| {
            let Some(((begun, before), pid)) = state.used.zip(state.process) else { return Ok(false) };
            let (span, used) = (begun.elapsed(), processor_time(pid).unwrap_or(before).saturating_sub(before));
            Ok(span >= COMPUTING_SPAN && used.as_secs_f64() > COMPUTING_SHARE * span.as_secs_f64())
        })
    }

    /// The managed windows.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`].
    pub fn windows(&self) -> Result<Vec<WindowInfo>> {
        self.with(|_, shared| shared.server.windows())
    }

    /// See [`Server::activate`].
    ///
    /// # Errors
    ///
    /// [`Error::Lost`].
    pub fn activate(&self, window: Window) -> Result<()> {
        self.with(|_, shared| shared.server.activate(window))
    }

    /// See [`Server::close_window`].
    ///
    /// # Errors
    ///
    /// [`Error::Lost`].
    pub fn close_window(&self, window: Window) -> Result<()> {
        self.with(|_, shared| shared.server.close_window(window))
    }

    /// See [`Server::has_window_manager`].
    ///
    /// # Errors
    ///
    /// [`Error::Lost`].
    pub fn has_window_manager(&self) -> Result<bool> {
        self.with(|_, shared| shared.server.has_window_manager())
    }

    /// Changes the size of the screen where the server can (Xvfb: up to the size it was started with).
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] when it cannot, [`Error::Request`] when it refuses the size.
    pub fn resize(&self, size: Size) -> Result<()> {
        self.with(|state, shared| {
            crate::resize::resize(&shared.server, size)?;
            state.resized = true;
            state.pump(shared)
        })
    }

    /// Releases what is pressed, restores the keymap, gives the lease back and ends the watcher. Idempotent.
    pub fn close(&self) {
        let Some(watcher) = locked(&self.watcher).take() else { return };
        {
            let mut turn = locked(&self.shared.turn);
            turn.stop = true;
            self.shared.turned.notify_all();
        }
        self.shared.nudge();
        let _ = watcher.join();
        self.shared.interrupt.clear();
        if !self.view_only {
            let _ = self.shared.interrupt.shielded(|| {
                self.with(|state, shared| {
                    state.release(shared, &[])?;
                    state.restore_keymap(shared)?;
                    shared.server.round_trip()
                })
            });
        }
        self.shared.lost.store(true, Ordering::SeqCst);
        // The threads' copies of the connection are gone; this end of the socket is shut so that the server frees what we had
        // even while somebody still holds the screen.
        let _ = rustix::net::shutdown(self.shared.server.conn.stream().as_fd(), rustix::net::Shutdown::Both);
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        self.close();
    }
}

/// The lease is an X selection: taken atomically, visible to every client, and gone with its owner however that one ends.
fn take_lease(server: &Server, driver: &str) -> Result<()> {
    let conn = &server.conn;
    let lease = server.atoms._DESKHAND_DRIVER;
    conn.grab_server()?;
    let owner = conn.get_selection_owner(lease)?.reply()?.owner;
    if owner != x11rb::NONE {
        let holder = conn.get_property(false, owner, lease, AtomEnum::ANY, 0, 64)?.reply();
        conn.ungrab_server()?;
        conn.flush()?;
        let holder = holder.map(|reply| String::from_utf8_lossy(&reply.value).into_owned()).unwrap_or_default();
        return Err(Error::Leased(format!("{} is driven by {holder} already", server.display)));
    }
    let window = conn.generate_id()?;
    conn.create_window(0, window, server.root, -1, -1, 1, 1, 0, WindowClass::INPUT_ONLY, 0, &CreateWindowAux::new())?;
    conn.change_property8(PropMode::REPLACE, window, lease, AtomEnum::STRING, driver.as_bytes())?;
    conn.set_selection_owner(window, lease, x11rb::CURRENT_TIME)?;
    conn.ungrab_server()?;
    conn.flush()?;
    Ok(())
}

/// Processor time that the main thread of a process has used; `None` when it is not ours to see.
fn processor_time(pid: u32) -> Option<Duration> {
    let schedstat = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?;
    schedstat.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}

fn watch(shared: &Shared) {
    let mut last = Instant::now();
    loop {
        {
            let mut turn = locked(&shared.turn);
            loop {
                if turn.stop {
                    return;
                }
                let rest = WATCH_PERIOD.saturating_sub(last.elapsed());
                if turn.callers > 0 || turn.held {
                    turn = shared.turned.wait(turn).unwrap_or_else(PoisonError::into_inner);
                } else if !rest.is_zero() {
                    (turn, _) = shared.turned.wait_timeout(turn, rest).unwrap_or_else(PoisonError::into_inner);
                } else {
                    break;
                }
            }
        }
        let restore_in = match watch_once(shared) {
            Ok(restore_in) => restore_in,
            Err(Error::Lost(_)) => {
                shared.lost.store(true, Ordering::SeqCst);
                return;
            }
            // A request that failed (a window gone, the screen just resized) is tried again with the next event.
            Err(_) => None,
        };
        last = Instant::now();
        let timeout =
            restore_in.map(|rest| Timespec { tv_sec: rest.as_secs() as i64, tv_nsec: rest.subsec_nanos().into() });
        let mut fds = [
            PollFd::new(&shared.nudge, PollFlags::IN),
            PollFd::from_borrowed_fd(shared.server.conn.stream().as_fd(), PollFlags::IN),
        ];
        let _ = poll(&mut fds, timeout.as_ref());
        let _ = rustix::io::read(&shared.nudge, &mut [0; 8]);
    }
}

/// One turn of the watcher; when it should come back though nothing arrives.
fn watch_once(shared: &Shared) -> Result<Option<Duration>> {
    let Ok(mut state) = shared.state.try_lock() else { return Ok(None) };
    state.pump(shared)?;
    if state.keyboard.borrowed().is_empty() || state.keyboard.holds_any() {
        return Ok(None);
    }
    let rest = RESTORE_AFTER.saturating_sub(state.last_typed.elapsed());
    if rest.is_zero() {
        state.restore_keymap(shared)?;
        return Ok(None);
    }
    Ok(Some(rest))
}
