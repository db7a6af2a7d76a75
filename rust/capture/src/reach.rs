//! Which client input reaches: whether a window has the keyboard, and which client gets input during a grab of the devices.
//!
//! A grab of another client's is no obstacle by itself: an application grabs both devices for its own menus. So where there is one,
//! the RECORD extension shows to which clients the server delivers input.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use link::Event;
use x11rb::connection::{Connection, RequestConnection};
use x11rb::protocol::record::{self, ConnectionExt as _};
use x11rb::protocol::xproto::{
    BUTTON_PRESS_EVENT, ConnectionExt as _, CreateWindowAux, EventMask, GE_GENERIC_EVENT, GrabMode, GrabStatus,
    InputFocus, KEY_PRESS_EVENT, MapState, Window, WindowClass,
};

use crate::error::{Error, Result};
use crate::server::{Server, open_connection};
use crate::state::State;
use crate::stream::SILENCE_LIMIT;
use crate::wire::Wire;

const FROM_SERVER: u8 = 0;
const EVENT: usize = 32;
const INPUT_EXTENSION: &str = "XInputExtension";
/// The most windows directly on the root that are examined.
const MOST_TOP_LEVELS: usize = 4096;
/// How long to wait for the keyboard focus if no window has it, and how often to check.
const FOCUS_LIMIT: Duration = Duration::from_millis(250);
const FOCUS_PERIOD: Duration = Duration::from_millis(5);
/// The most windows of a client that are reported.
const MOST_WINDOWS: usize = 64;

/// Which input did not reach its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// Keys: no window has the keyboard focus.
    Unfocused,
    /// Keys: another client has grabbed the keyboard.
    Keyboard,
    /// Clicks: another client has grabbed the pointer.
    Pointer,
    /// Keys: they did, but the application had read nothing during the whole wait.
    Unread,
}

/// Input that did not reach its window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missed {
    /// Why.
    pub obstacle: Obstacle,
    /// The program that got it instead, as far as that is known (untrusted text).
    pub holder: String,
    /// The windows of that program: x, y, width, height.
    pub rects: Vec<(i32, i32, u32, u32)>,
}

impl Missed {
    pub(crate) fn without_holder(obstacle: Obstacle) -> Self {
        Self { obstacle, holder: String::new(), rects: Vec::new() }
    }
}

/// The situation before input is sent.
pub(crate) struct Before {
    /// As the server reports it, before any closer look.
    pub(crate) focus: Window,
    keyboard_grabbed: bool,
    pointer_grabbed: bool,
}

/// One client's window, by the client's resource ids.
struct Shown {
    client: u32,
    name: String,
    rect: (i32, i32, u32, u32),
}

impl State {
    /// Asks for the focus and for grabs of other clients, with one round trip.
    ///
    /// A grab for a window that is not mapped is refused, and the refusal shows whether there is another one: the server checks
    /// first (xserver, `GrabDevice`). So nothing is grabbed, and no application notices it. Without a window to confine it to, the
    /// server would free a pointer that another client has confined, and then refuse the grab (xserver, `ProcGrabPointer`).
    pub(crate) fn before(&mut self, wire: &Wire) -> Result<Before> {
        let conn = &wire.server.conn;
        let window = match self.unmapped {
            Some(window) => window,
            None => *self.unmapped.insert(unmapped(&wire.server)?),
        };
        let (asynchronous, none) = (GrabMode::ASYNC, EventMask::NO_EVENT);
        let keyboard = conn.grab_keyboard(false, window, x11rb::CURRENT_TIME, asynchronous, asynchronous)?;
        let pointer = conn.grab_pointer(
            false,
            window,
            none,
            asynchronous,
            asynchronous,
            window,
            x11rb::NONE,
            x11rb::CURRENT_TIME,
        )?;
        let focus = conn.get_input_focus()?;
        let (keyboard, pointer) = (keyboard.reply()?.status, pointer.reply()?.status);
        if keyboard == GrabStatus::SUCCESS {
            conn.ungrab_keyboard(x11rb::CURRENT_TIME)?;
        }
        if pointer == GrabStatus::SUCCESS {
            conn.ungrab_pointer(x11rb::CURRENT_TIME)?;
        }
        let (keyboard_grabbed, pointer_grabbed) =
            (keyboard == GrabStatus::ALREADY_GRABBED, pointer == GrabStatus::ALREADY_GRABBED);
        Ok(Before { focus: focus.reply()?.focus, keyboard_grabbed, pointer_grabbed })
    }

    /// Does `send`, which sends `events`, and reports what did not reach its window.
    pub(crate) fn reaching(
        &mut self,
        wire: &Wire,
        before: &Before,
        events: &[Event],
        send: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<Option<Missed>> {
        let server = &wire.server;
        let keys = events.iter().any(|event| matches!(event, Event::Key(_, true)));
        let clicks = events.iter().any(|event| matches!(event, Event::Button(_, true)));
        let grabbed = (keys && before.keyboard_grabbed) || (clicks && before.pointer_grabbed);
        // While something is held the server, or the window manager, keeps the devices for the client that got it.
        if grabbed && Self::pressed(wire)? == (Vec::new(), Vec::new()) {
            return self.watched(wire, before, (keys, clicks), send);
        }
        let mut unfocused = keys && !before.keyboard_grabbed && self.is_unfocused(server, before.focus)?;
        // A window that has just come may be about to get it.
        let deadline = Instant::now() + FOCUS_LIMIT;
        while unfocused && server.has_windows()? && Instant::now() < deadline {
            wire.pause(FOCUS_PERIOD)?;
            let focus = server.conn.get_input_focus()?.reply()?.focus;
            unfocused = self.is_unfocused(server, focus)?;
        }
        send(self)?;
        Ok(unfocused.then(|| Missed::without_holder(Obstacle::Unfocused)))
    }

    /// True if the request of a window at that time came from the application that got the latest keys.
    pub(crate) fn is_typed_into(&self, wire: &Wire, window: Window, at: Instant) -> Result<bool> {
        let Some((since, focus)) = self.typed else { return Ok(true) };
        let server = &wire.server;
        let focus = match focus {
            none if none == u32::from(InputFocus::NONE) => None,
            root if [u32::from(InputFocus::POINTER_ROOT), server.root].contains(&root) => server.under_pointer()?,
            window => Some(window),
        };
        let meant = focus.map(|window| server.client_of(window));
        Ok(at >= since && server.reached(&BTreeSet::from([server.client_of(window)]), meant)?)
    }

    /// True when no window has the keyboard. A window manager that has no window to give it to takes it itself.
    fn is_unfocused(&mut self, server: &Server, focus: Window) -> Result<bool> {
        if focus == u32::from(InputFocus::NONE) {
            return Ok(true);
        }
        if [u32::from(InputFocus::POINTER_ROOT), server.root].contains(&focus) {
            return Ok(server.under_pointer()?.is_none());
        }
        if !self.knows_manager {
            (self.present_manager, self.knows_manager) = (server.manager()?, true);
        }
        match self.present_manager {
            Some(manager) if server.client_of(manager) == server.client_of(focus) => server.nothing_is_active(),
            _ => Ok(false),
        }
    }

    fn watched(
        &mut self,
        wire: &Wire,
        before: &Before,
        (keys, clicks): (bool, bool),
        send: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<Option<Missed>> {
        let server = &wire.server;
        let shown = server.shown()?;
        let Some(received) = Received::watch(wire, || send(self))? else { return Ok(None) };
        let at = |window: Option<Window>| window.map(|window| server.client_of(window));
        let focus = server.focus()?.or(Some(before.focus));
        let obstacles = [
            (keys && before.keyboard_grabbed, Obstacle::Keyboard, &received.keys, at(focus)),
            (clicks && before.pointer_grabbed, Obstacle::Pointer, &received.clicks, at(server.under_pointer()?)),
        ];
        for (is_there, obstacle, clients, meant) in obstacles {
            if is_there && !server.reached(clients, meant)? {
                let theirs = || shown.iter().filter(|window| clients.contains(&window.client)).take(MOST_WINDOWS);
                let named = theirs().map(|window| window.name.clone()).find(|name| !name.is_empty());
                let holder = match (named, clients.first()) {
                    (Some(name), _) => name,
                    (None, Some(&client)) => {
                        server.process_of(client)?.map_or_else(String::new, |process| format!("process {process}"))
                    }
                    (None, None) => String::new(),
                };
                return Ok(Some(Missed { obstacle, holder, rects: theirs().map(|window| window.rect).collect() }));
            }
        }
        Ok(None)
    }
}

/// Clients to which presses were delivered.
#[derive(Debug, Default)]
struct Received {
    keys: BTreeSet<u32>,
    clicks: BTreeSet<u32>,
}

impl Received {
    /// Does `work`, and records to which clients the server delivers presses meanwhile, if it supports that.
    fn watch(wire: &Wire, work: impl FnOnce() -> Result<()>) -> Result<Option<Self>> {
        let server = &wire.server;
        if server.conn.extension_information(record::X11_EXTENSION_NAME)?.is_none() {
            wire.note("who gets input while somebody has grabbed the devices is not known: the server has no RECORD extension");
            return work().map(|()| None);
        }
        let input = server.conn.extension_information(INPUT_EXTENSION)?.map(|info| info.major_opcode);
        let (data, _) = open_connection(&wire.target, &wire.interrupt, SILENCE_LIMIT)?;
        data.stream().expect_many();
        let context = server.conn.generate_id()?;
        let no_requests = record::Range8 { first: 0, last: 0 };
        let none = record::ExtRange { major: no_requests, minor: record::Range16 { first: 0, last: 0 } };
        let delivered = record::Range {
            core_requests: no_requests,
            core_replies: no_requests,
            ext_requests: none,
            ext_replies: none,
            delivered_events: record::Range8 { first: KEY_PRESS_EVENT, last: GE_GENERIC_EVENT },
            device_events: no_requests,
            errors: no_requests,
            client_started: false,
            client_died: false,
        };
        server.conn.record_create_context(context, 0, &[record::CS::ALL_CLIENTS.into()], &[delivered])?.check()?;
        let seen = Self::record(server, &data, context, input, work);
        server.conn.record_free_context(context)?;
        seen.map(Some)
    }

    fn record(
        server: &Server,
        data: &impl RequestConnection,
        context: record::Context,
        input: Option<u8>,
        work: impl FnOnce() -> Result<()>,
    ) -> Result<Self> {
        let mut replies = record::enable_context(data, context).map_err(Error::from)?;
        // The first says that it has begun.
        replies.next().transpose()?;
        let worked = work();
        server.conn.record_disable_context(context)?;
        server.round_trip()?;
        worked?;
        let mut seen = Self::default();
        for reply in replies {
            let reply = reply?;
            if reply.category == FROM_SERVER {
                for event in reply.data.chunks_exact(EVENT) {
                    seen.note(reply.xid_base, event, input);
                }
            }
        }
        Ok(seen)
    }

    fn note(&mut self, client: u32, event: &[u8], input: Option<u8>) {
        // Of the input extension's, the type is behind the length; raw events go to all that watch a device, and are not counted.
        let kind = match event[0] & 0x7f {
            GE_GENERIC_EVENT if Some(event[1]) == input => u16::from_ne_bytes([event[8], event[9]]),
            GE_GENERIC_EVENT => return,
            core => core.into(),
        };
        // The extension's numbers of presses are those of the core protocol.
        match u8::try_from(kind) {
            Ok(KEY_PRESS_EVENT) => drop(self.keys.insert(client)),
            Ok(BUTTON_PRESS_EVENT) => drop(self.clicks.insert(client)),
            _ => {}
        }
    }
}

fn unmapped(server: &Server) -> Result<Window> {
    let window = server.conn.generate_id()?;
    let (depth, visual, class) = (0, x11rb::COPY_FROM_PARENT, WindowClass::INPUT_ONLY);
    let aux = CreateWindowAux::new().override_redirect(1);
    server.conn.create_window(depth, window, server.root, -1, -1, 1, 1, 0, class, visual, &aux)?;
    Ok(window)
}

impl Server {
    /// The first of a client's resource ids, by any of them.
    fn client_of(&self, resource: u32) -> u32 {
        resource & !self.conn.setup().resource_id_mask
    }

    /// True when the intended client, or another connection of its process, is among those that got the input.
    fn reached(&self, clients: &BTreeSet<u32>, meant: Option<u32>) -> Result<bool> {
        let Some(meant) = meant else { return Ok(!clients.is_empty()) };
        if clients.contains(&meant) {
            return Ok(true);
        }
        let Some(process) = self.process_of(meant)? else { return Ok(false) };
        for &client in clients {
            if self.process_of(client)? == Some(process) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The windows that can be seen: those that are managed, and those directly on the root.
    fn shown(&self) -> Result<Vec<Shown>> {
        let managed = self.windows()?.into_iter().map(|window| Shown {
            client: self.client_of(window.id),
            name: window.pid.map_or_else(|| window.class.clone(), |pid| format!("{} (process {pid})", window.class)),
            rect: window.rect,
        });
        let mut shown: Vec<Shown> = managed.collect();
        for window in self.conn.query_tree(self.root)?.reply()?.children.into_iter().take(MOST_TOP_LEVELS) {
            let attributes = self.conn.get_window_attributes(window)?;
            let geometry = self.conn.get_geometry(window)?;
            // Some may have gone meanwhile.
            if let (Ok(attributes), Ok(at)) = (attributes.reply(), geometry.reply())
                && attributes.map_state == MapState::VIEWABLE
            {
                let rect = (at.x.into(), at.y.into(), at.width.into(), at.height.into());
                shown.push(Shown { client: self.client_of(window), name: String::new(), rect });
            }
        }
        Ok(shown)
    }
}
