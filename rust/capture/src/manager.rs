//! The window manager: whether one runs that follows EWMH, and requests to it.

use std::time::{Duration, Instant};

use x11rb::connection::Connection;
use x11rb::protocol::xproto::{
    ClientMessageEvent, ConfigureWindowAux, ConnectionExt as _, CreateWindowAux, EventMask, InputFocus, StackMode,
    Window, WindowClass,
};

use crate::error::Result;
use crate::server::Server;
use crate::state::State;
use crate::windows::{MAX_LIST, gone};
use crate::wire::Wire;

const SOURCE_PAGER: u32 = 2;
/// How long to wait for a window manager that has shown itself, and how often to check.
const MANAGER_LIMIT: Duration = Duration::from_secs(2);
const MANAGER_PERIOD: Duration = Duration::from_millis(3);

impl State {
    /// Whether a window manager runs that follows EWMH; a new one is waited for.
    pub(crate) fn has_manager(&mut self, wire: &Wire) -> Result<bool> {
        let manager = wire.server.manager()?;
        if manager != self.manager {
            if manager.is_some() {
                wire.server.await_manager(wire)?;
            }
            self.manager = manager;
        }
        Ok(manager.is_some())
    }
}

impl Server {
    /// The window by which a window manager that follows EWMH shows that it runs.
    pub(crate) fn manager(&self) -> Result<Option<Window>> {
        let check = self.words(self.root, self.atoms._NET_SUPPORTING_WM_CHECK, 1)?;
        let Some(&window) = check.first() else { return Ok(None) };
        let own = gone(self.words(window, self.atoms._NET_SUPPORTING_WM_CHECK, 1))?;
        Ok(own.filter(|own| own.first() == Some(&window)).map(|_| window))
    }

    /// Waits until the window manager answers, or has declined, for at most [`MANAGER_LIMIT`].
    ///
    /// One that is just starting shows itself before it manages anything. Openbox then sleeps on windows that came meanwhile, until
    /// something else comes. So the question is repeated: does it give a frame to a window of ours?
    pub(crate) fn await_manager(&self, wire: &Wire) -> Result<()> {
        let window = self.conn.generate_id()?;
        let (depth, visual) = (x11rb::COPY_DEPTH_FROM_PARENT, x11rb::COPY_FROM_PARENT);
        let (class, none) = (WindowClass::COPY_FROM_PARENT, CreateWindowAux::new());
        self.conn.create_window(depth, window, self.root, -1, -1, 1, 1, 0, class, visual, &none)?;
        let served = self.asked_for_a_frame(wire, window);
        self.conn.destroy_window(window)?;
        served
    }

    fn asked_for_a_frame(&self, wire: &Wire, window: Window) -> Result<()> {
        let deadline = Instant::now() + MANAGER_LIMIT;
        while self.words(window, self.atoms._NET_FRAME_EXTENTS, 1)?.is_empty() && Instant::now() < deadline {
            let supported = self.words(self.root, self.atoms._NET_SUPPORTED, MAX_LIST)?;
            if supported.contains(&self.atoms._NET_REQUEST_FRAME_EXTENTS) {
                self.ask_manager(window, self.atoms._NET_REQUEST_FRAME_EXTENTS, [0; 5])?;
            } else if !supported.is_empty() {
                break;
            }
            wire.pause(MANAGER_PERIOD)?;
        }
        Ok(())
    }

    /// Asks the window manager to raise and focus this window; where none runs that follows EWMH, the server.
    ///
    /// # Errors
    ///
    /// [`Error::Request`] when it cannot have the focus, [`Error::Lost`] or [`Error::Interrupted`].
    pub fn activate(&self, window: Window) -> Result<()> {
        if self.manager()?.is_some() {
            return self.ask_manager(window, self.atoms._NET_ACTIVE_WINDOW, [SOURCE_PAGER, 0, 0, 0, 0]);
        }
        let (top, _) = self.climb(window, |_| Ok(false))?;
        self.conn.configure_window(top, &ConfigureWindowAux::new().stack_mode(StackMode::ABOVE))?.check()?;
        self.conn.set_input_focus(InputFocus::POINTER_ROOT, window, x11rb::CURRENT_TIME)?.check()?;
        Ok(())
    }

    /// Asks the window to close, as its close button would; where no window manager runs that follows EWMH, without its help.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] or [`Error::Interrupted`].
    pub fn close_window(&self, window: Window) -> Result<()> {
        if self.manager()?.is_some() {
            return self.ask_manager(window, self.atoms._NET_CLOSE_WINDOW, [0, SOURCE_PAGER, 0, 0, 0]);
        }
        let protocols = gone(self.words(window, self.atoms.WM_PROTOCOLS, 64))?.unwrap_or_default();
        if protocols.contains(&self.atoms.WM_DELETE_WINDOW) {
            let data = [self.atoms.WM_DELETE_WINDOW, x11rb::CURRENT_TIME, 0, 0, 0];
            let event = ClientMessageEvent::new(32, window, self.atoms.WM_PROTOCOLS, data);
            self.conn.send_event(false, window, EventMask::NO_EVENT, event)?;
        } else {
            self.conn.kill_client(window)?;
        }
        self.round_trip()
    }

    fn ask_manager(&self, window: Window, what: u32, data: [u32; 5]) -> Result<()> {
        let event = ClientMessageEvent::new(32, window, what, data);
        let mask = EventMask::SUBSTRUCTURE_NOTIFY | EventMask::SUBSTRUCTURE_REDIRECT;
        self.conn.send_event(false, self.root, mask, event)?;
        self.round_trip()
    }
}
