//! The connection's state: the screen it keeps current, the pings under way, the keyboard.

use std::sync::Arc;
use std::time::{Duration, Instant};

use imaging::{Rect, Size};
use link::{locked, now};
use rustix::fd::AsFd;
use x11rb::connection::Connection;
use x11rb::protocol::damage::{self, ConnectionExt as _};
use x11rb::protocol::xfixes::{self, ConnectionExt as _};
use x11rb::protocol::xproto::{ChangeWindowAttributesAux, ConnectionExt as _, EventMask, Mapping, Window};
use x11rb::protocol::{ErrorKind, Event as XEvent};

use crate::clients::{Behind, Clients};
use crate::consumption::Unread;
use crate::error::{Error, Result, x_error};
use crate::grab::Grabber;
use crate::keyboard::Keyboard;
use crate::keymap::Keymap;
use crate::pings::Pings;
use crate::popups::Popups;
use crate::replies;
use crate::server::Server;
use crate::wire::Wire;
use crate::work::{Activity, LATELY, Work};

/// After this long without news, the applications' work is checked.
const BREATH: Duration = Duration::from_millis(8);
/// Beyond this many damaged rectangles one capture of their unions is cheaper.
const MANY_RECTS: usize = 24;
/// How often damage is read before a call goes on, even if there is more.
const MOST_ROUNDS: usize = 100;
/// How often a waiting caller is checked for a stop, even while the server sends.
const ASK_PERIOD: Duration = Duration::from_millis(50);
/// A button that a key has pressed does what it is for within this time after its application has seen the key.
const BUTTON_LIMIT: Duration = Duration::from_millis(350);

/// What the server has reported and has not been handled yet.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "four independent facts, each with a remedy of its own")]
pub(crate) struct Pending {
    pub(crate) damage: bool,
    /// A part of the screen may have changed without having been read.
    pub(crate) everything: bool,
    pub(crate) size: bool,
    pub(crate) cursor: bool,
}

pub(crate) struct State {
    grabber: Grabber,
    region: xfixes::Region,
    damage: damage::Damage,
    pub(crate) pending: Pending,
    pub(crate) map: Option<Arc<Keymap>>,
    pub(crate) keyboard: Keyboard,
    /// Which button applications see for each of the pointer's own, from 1 on; `None` before it was queried.
    pub(crate) pointer_map: Option<Vec<u8>>,
    pub(crate) unread: Option<Unread>,
    /// A window was to read a new keymap before its keys were sent, and did not in the time for that.
    pub(crate) held_up: bool,
    /// When keys were last sent, and the focus then, as the server reported it.
    pub(crate) typed: Option<(Instant, Window)>,
    /// Whether those may be somebody's hot key.
    pub(crate) hot: bool,
    /// When keys were last sent that may press a button, or their application was last seen at work on them.
    pub(crate) activated: Option<Instant>,
    /// A window of ours that is never mapped.
    pub(crate) unmapped: Option<Window>,
    pub(crate) pings: Pings,
    pub(crate) popups: Popups,
    /// The window of the window manager that is known to serve.
    pub(crate) manager: Option<Window>,
    /// The window of the window manager that is there, whether it serves or not, and whether it has been queried.
    pub(crate) present_manager: Option<Window>,
    pub(crate) knows_manager: bool,
    /// The window that the latest input went to, and what is done behind it.
    pub(crate) input: Window,
    /// Buttons that were released, and are pressed for the server still.
    pub(crate) released: Vec<u8>,
    pub(crate) work: Work,
    /// The other clients of the server, once they were looked for.
    pub(crate) clients: Option<Clients>,
    /// Counts what wakes a waiting caller: answered pings, changed window lists.
    signals: u64,
    /// How many of them have woken a caller; the rest may have been read by another call.
    signals_told: u64,
    pub(crate) error: Option<Error>,
}

impl State {
    pub(crate) fn new(grabber: Grabber, region: xfixes::Region, damage: damage::Damage) -> Self {
        Self {
            grabber,
            region,
            damage,
            pending: Pending { cursor: true, ..Pending::default() },
            map: None,
            keyboard: Keyboard::default(),
            pointer_map: None,
            unread: None,
            held_up: false,
            typed: None,
            hot: false,
            activated: None,
            unmapped: None,
            pings: Pings::default(),
            popups: Popups::default(),
            manager: None,
            present_manager: None,
            knows_manager: false,
            input: x11rb::NONE,
            released: Vec::new(),
            work: Work::default(),
            clients: None,
            signals: 0,
            signals_told: 0,
            error: None,
        }
    }

    /// Reads what has arrived, without waiting.
    pub(crate) fn drain(&mut self, wire: &Wire) -> Result<()> {
        while let Some(event) = wire.server.conn.poll_for_event()? {
            self.handle(&wire.server, &event);
        }
        wire.server.conn.stream().events_read();
        Ok(())
    }

    fn handle(&mut self, server: &Server, event: &XEvent) {
        self.popups.note(server.root, event);
        match event {
            XEvent::DamageNotify(_) => self.pending.damage = true,
            XEvent::XfixesCursorNotify(_) => self.pending.cursor = true,
            XEvent::MappingNotify(notify) if notify.request == Mapping::POINTER => self.pointer_map = None,
            XEvent::MappingNotify(_) | XEvent::XkbMapNotify(_) | XEvent::XkbNewKeyboardNotify(_) => self.note_keymap(),
            XEvent::RandrScreenChangeNotify(_) => self.pending.size = true,
            XEvent::ConfigureNotify(configure) if configure.window == server.root => self.pending.size = true,
            XEvent::PropertyNotify(property)
                if [
                    server.atoms._NET_CLIENT_LIST,
                    server.atoms._NET_ACTIVE_WINDOW,
                    server.atoms._NET_SUPPORTING_WM_CHECK,
                ]
                .contains(&property.atom) =>
            {
                self.signals += 1;
                if property.atom == server.atoms._NET_SUPPORTING_WM_CHECK {
                    self.knows_manager = false;
                }
            }
            XEvent::ClientMessage(message) if message.type_ == server.atoms.WM_PROTOCOLS => {
                let [protocol, token, window, ..] = message.data.as_data32();
                if protocol == server.atoms._NET_WM_PING && self.pings.take_answer(window, token) {
                    self.signals += 1;
                    self.note_pong();
                }
            }
            // A window that closes on its input (a dialog's button) answers no more, and reads no more.
            XEvent::DestroyNotify(gone) if self.pings.forget(gone.window) => self.forget_unread(),
            XEvent::UnmapNotify(gone) if self.pings.forget(gone.window) => self.forget_unread(),
            XEvent::Error(error) if error.error_kind == ErrorKind::Window && self.pings.forget(error.bad_value) => {
                self.forget_unread();
            }
            // The first error has the cause; a server may send any number.
            XEvent::Error(error) => {
                self.error.get_or_insert_with(|| x_error(error));
            }
            _ => {}
        }
    }

    fn forget_unread(&mut self) {
        self.signals += 1;
        self.unread = None;
    }

    pub(crate) fn next_ping(&mut self, wire: &Wire, window: Window) -> Result<u64> {
        let (id, token) = self.pings.new_ping(window);
        let events = ChangeWindowAttributesAux::new().event_mask(EventMask::STRUCTURE_NOTIFY);
        wire.server.conn.change_window_attributes(window, &events)?;
        wire.server.send_ping(window, token)?;
        Ok(id)
    }

    /// Brings the screen up to date with what has arrived.
    pub(crate) fn pump(&mut self, wire: &Wire) -> Result<()> {
        self.drain(wire)?;
        // What is drawn without a pause is read again by the next call.
        for _ in 0..MOST_ROUNDS {
            if self.pending.size {
                self.follow_size(wire)?;
                self.pending.size = false;
            } else if self.pending.everything {
                self.fetch_all(wire)?;
                self.pending.everything = false;
            } else if std::mem::take(&mut self.pending.damage) {
                // The server forgets damage when it reports it: if the answer is missed (a signal), all must be read again.
                self.pending.everything = true;
                self.fetch_damage(wire)?;
                self.pending.everything = false;
            } else if self.pending.cursor {
                Self::fetch_cursor(wire)?;
                self.pending.cursor = false;
            } else {
                break;
            }
            // With each answer events may have come, and no wait would report those once they are read.
            self.drain(wire)?;
        }
        Ok(())
    }

    fn fetch_damage(&mut self, wire: &Wire) -> Result<()> {
        let server = &wire.server;
        server.conn.damage_subtract(self.damage, x11rb::NONE, self.region)?;
        let region = server.conn.xfixes_fetch_region(self.region)?.reply()?;
        let Size { w, h } = locked(&wire.screen).size();
        let screen = Rect { x: 0, y: 0, w, h };
        let mut rects: Vec<Rect> = region.rectangles.iter().filter_map(|&rect| clip(rect, screen)).collect();
        if rects.len() > MANY_RECTS {
            rects = imaging::merge(rects);
        }
        // A region's rectangles are disjoint, but nothing makes a server keep to that.
        if rects.iter().map(|rect| rect.area()).sum::<u64>() > screen.area() {
            rects = vec![screen];
        }
        if rects.is_empty() {
            return Ok(());
        }
        match self.capture(wire, &rects) {
            // The screen became smaller between the event and the request: the notification is on its way.
            Err(Error::Request { .. }) if server.size()? != (Size { w, h }) => self.follow_size(wire),
            other => other,
        }
    }

    /// Brings `rects` of the screen up to date, as one step.
    fn capture(&self, wire: &Wire, rects: &[Rect]) -> Result<()> {
        // Not before there is something to write: a server may be slow, and other threads want to look meanwhile.
        let mut screen = None;
        let read = self
            .grabber
            .read(&wire.server, rects, |patch| Ok(screen.get_or_insert_with(|| locked(&wire.screen)).write(patch)?));
        // What came before a failure has been written, too.
        if let Some(mut screen) = screen {
            screen.commit(now());
        }
        read
    }

    fn follow_size(&mut self, wire: &Wire) -> Result<()> {
        let size = wire.server.size()?;
        if size == locked(&wire.screen).size() {
            return Ok(());
        }
        self.pending.everything = true;
        locked(&wire.screen).resize(size, now());
        self.fetch_all(wire)?;
        self.pending.everything = false;
        Ok(())
    }

    pub(crate) fn fetch_all(&mut self, wire: &Wire) -> Result<()> {
        let Size { w, h } = locked(&wire.screen).size();
        let whole = [Rect { x: 0, y: 0, w, h }];
        self.capture(wire, &whole)
    }

    fn fetch_cursor(wire: &Wire) -> Result<()> {
        let cursor = match wire.server.conn.xfixes_get_cursor_image_and_name()?.raw_reply() {
            Ok(reply) => replies::cursor(&reply)?,
            // Some servers refuse this to other clients under a compositor: then there is no cursor to show.
            Err(x11rb::errors::ReplyError::X11Error(error)) => {
                wire.note(&format!("the cursor is not shown: {}", x_error(&error)));
                None
            }
            Err(error) => return Err(error.into()),
        };
        locked(&wire.screen).set_cursor(cursor);
        Ok(())
    }

    /// The server's state now: one round trip, then every change that it reports.
    pub(crate) fn look(&mut self, wire: &Wire) -> Result<()> {
        let pointer = wire.server.conn.query_pointer(wire.server.root)?.reply()?;
        self.pump(wire)?;
        locked(&wire.screen).set_pointer((pointer.root_x.into(), pointer.root_y.into()));
        Ok(())
    }

    /// Waits until pixels changed, a ping was answered or the list of windows changed; `false` at the timeout.
    pub(crate) fn wait(&mut self, wire: &Wire, timeout: Duration) -> Result<bool> {
        let deadline = Instant::now() + timeout;
        let generation = locked(&wire.screen).generation();
        let mut asked = Instant::now();
        loop {
            self.pump(wire)?;
            if asked.elapsed() >= ASK_PERIOD {
                asked = Instant::now();
                wire.check_interrupt()?;
            }
            if self.signals != self.signals_told || locked(&wire.screen).generation() != generation {
                self.signals_told = self.signals;
                return Ok(true);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            // During an animation, other work does not matter.
            if !wire.wait_readable(left.min(BREATH))? && left > BREATH {
                self.work.sample();
                if let Some(clients) = &mut self.clients {
                    clients.find_early();
                }
                locked(&wire.screen).get_ready();
                let left = || deadline.saturating_duration_since(Instant::now());
                if !wire.wait_readable(left().saturating_sub(LATELY))? {
                    self.work.sample();
                    wire.wait_readable(left())?;
                }
            }
        }
    }

    /// The work of the processes behind the window that got the latest input, and of who gets a hot key; see `Display::activity`.
    pub(crate) fn activity(&mut self, wire: &Wire, changed: bool) -> Result<Activity> {
        let activity = self.activity_of_input(wire)?;
        if matches!(activity, Activity::Computing | Activity::Awaiting) || (changed && !self.hot) {
            return Ok(activity);
        }
        let since = self.typed.and_then(|(sent, _)| self.work.since_keys(sent));
        let examined = |process| self.work.examines(process);
        let behind =
            since.zip(self.clients.as_mut()).map_or(Behind::No, |(since, clients)| clients.are_behind(since, examined));
        let goes_on = behind == Behind::Late || (!changed && self.work.may_show());
        Ok(match activity {
            _ if behind == Behind::Yes => Activity::Computing,
            Activity::Sleeping => activity,
            _ if goes_on => Activity::Timed,
            _ => activity,
        })
    }

    fn activity_of_input(&mut self, wire: &Wire) -> Result<Activity> {
        if self.is_held_back(wire)? {
            return Ok(Activity::Computing);
        }
        let activity = self.work.activity();
        let Some(activated) = self.activated else { return Ok(activity) };
        if activity == Activity::Computing {
            self.activated = Some(Instant::now());
        } else if self.work.is_button_down(activated.elapsed()) {
            if activated.elapsed() < BUTTON_LIMIT {
                return Ok(Activity::Computing);
            }
            if activity == Activity::Resting {
                // More of the answer may be behind further timers (LibreOffice's toolbars): not waited for, but told.
                return Ok(Activity::Timed);
            }
        }
        Ok(activity)
    }

    /// Pings `window`, or the one that gets the input; see `Display::ping`.
    pub(crate) fn ping(&mut self, wire: &Wire, at_pointer: bool, window: Option<Window>) -> Result<Option<u64>> {
        let server = &wire.server;
        let candidates = match window {
            Some(_) => [window, None],
            None if at_pointer => [server.under_pointer()?, server.focus()?],
            None => [server.focus()?, None],
        };
        if let Some(window) = candidates.into_iter().flatten().next()
            && self.input != window
        {
            self.input = window;
            self.work.follow(server.process_of(window)?);
        }
        for window in candidates.into_iter().flatten() {
            if let Some(window) = server.pingable(window)? {
                let id = self.next_ping(wire, window)?;
                self.note_ping(id);
                self.work.expect_pongs();
                return Ok(Some(id));
            }
        }
        self.work.expect_reading(server.conn.stream().as_fd());
        Ok(None)
    }
}

fn clip(rect: x11rb::protocol::xproto::Rectangle, screen: Rect) -> Option<Rect> {
    let (x, y) = (i32::from(rect.x).max(0), i32::from(rect.y).max(0));
    let right = (i32::from(rect.x) + i32::from(rect.width)).min(screen.w as i32);
    let bottom = (i32::from(rect.y) + i32::from(rect.height)).min(screen.h as i32);
    (right > x && bottom > y).then(|| Rect { x: x as u32, y: y as u32, w: (right - x) as u32, h: (bottom - y) as u32 })
}
