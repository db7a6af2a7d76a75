//! Windows as the window manager lists them, and which of them answer pings.

use std::time::Instant;

use x11rb::connection::{Connection, RequestConnection};
use x11rb::cookie::Cookie;
use x11rb::protocol::res::{self, ConnectionExt as _, QueryClientIdsReply};
use x11rb::protocol::xproto::{
    AtomEnum, ClientMessageEvent, ConnectionExt as _, EventMask, GetGeometryReply, GetPropertyReply, InputFocus,
    MapState, TranslateCoordinatesReply, Window, WindowClass,
};

use crate::conn::Conn;
use crate::error::{Error, Result};
use crate::replies;
use crate::server::Server;
use crate::stream::SILENCE_LIMIT;

pub(crate) const MAX_LIST: u32 = 4096;
const MAX_TITLE_WORDS: u32 = 1024;
const MAX_STATES: u32 = 64;
/// `IconicState` of `WM_STATE` (ICCCM, 4.1.3.1).
const ICONIC: u32 = 3;
/// How many windows are queried before the first answer is awaited.
const AT_ONCE: usize = 64;

/// A desktop deeper than this does not exist; the bound keeps a mad client from holding us.
const DEEPEST: usize = 32;
/// Levels of a frame in which an application's window is looked for, and windows looked at below each.
const FRAME_DEPTH: usize = 4;
const FRAME_PARTS: usize = 64;

/// One window, managed or shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowInfo {
    /// X window id.
    pub id: u32,
    /// Title, as the application set it (untrusted text).
    pub title: String,
    /// Second part of `WM_CLASS`.
    pub class: String,
    /// Process id, as the server counts processes; when it does not know, the one that the application gives.
    pub pid: Option<u32>,
    /// Client area in screen coordinates: x, y, width, height.
    pub rect: (i32, i32, u32, u32),
    /// True for the one that the window manager calls active.
    pub active: bool,
    /// True when it is minimised.
    pub minimized: bool,
    /// The startup id of its first window (startup notification; untrusted text).
    pub startup_id: String,
}

/// A request about a window that has just gone is not the caller's error.
pub(crate) fn gone<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Error::Request { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

type Property<'a> = Cookie<'a, Conn, GetPropertyReply>;

/// The requests about one window.
struct Asked<'a> {
    id: Window,
    geometry: Cookie<'a, Conn, GetGeometryReply>,
    position: Cookie<'a, Conn, TranslateCoordinatesReply>,
    class: Property<'a>,
    title: Property<'a>,
    old_title: Property<'a>,
    pid: Property<'a>,
    startup_id: Property<'a>,
    state: Property<'a>,
    old_state: Property<'a>,
}

fn words(reply: &GetPropertyReply, limit: u32) -> Vec<u32> {
    reply.value32().map(|words| words.take(limit as usize).collect()).unwrap_or_default()
}

/// The second part of `WM_CLASS`: two texts, each with a zero behind it.
fn class_of(value: &[u8]) -> Option<String> {
    value.split(|&byte| byte == 0).nth(1).map(|class| String::from_utf8_lossy(class).into_owned())
}

impl Server {
    pub(crate) fn words(&self, window: Window, property: u32, limit: u32) -> Result<Vec<u32>> {
        let reply = self.conn.get_property(false, window, property, AtomEnum::ANY, 0, limit)?.reply()?;
        Ok(words(&reply, limit))
    }

    /// The managed windows, bottom to top if it has an order. Where none runs that follows EWMH, those that the server
    /// shows, bottom to top.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] or [`Error::Interrupted`].
    pub fn windows(&self) -> Result<Vec<WindowInfo>> {
        let begun = Instant::now();
        let (ids, active) = if self.manager()?.is_some() { self.managed()? } else { self.unmanaged(begun)? };
        let mut windows = Vec::with_capacity(ids.len());
        for ids in ids.chunks(AT_ONCE) {
            if begun.elapsed() > SILENCE_LIMIT {
                return Err(Error::Lost(format!("it did not report its windows in {} s", SILENCE_LIMIT.as_secs())));
            }
            windows.extend(self.described(ids)?);
        }
        for window in &mut windows {
            window.active = active == Some(window.id);
        }
        Ok(windows)
    }

    /// Those of the windows that are still there. All requests are sent before the first answer is awaited.
    fn described(&self, ids: &[Window]) -> Result<Vec<WindowInfo>> {
        let processes = self.ask_processes(ids)?;
        let asked = ids.iter().map(|&id| self.ask(id)).collect::<Result<Vec<_>>>()?;
        let processes = processes.map_or(Ok(Vec::new()), |cookie| {
            let reply = gone(cookie.raw_reply().map_err(Error::from))?;
            reply.map_or(Ok(Vec::new()), |reply| replies::client_processes(&reply))
        })?;
        let mut windows = Vec::with_capacity(ids.len());
        for asked in asked {
            if let Some(mut window) = gone(self.described_by(asked))? {
                let client = window.id & !self.conn.setup().resource_id_mask;
                let process = processes.iter().find(|(id, _)| *id == client).map(|&(_, process)| process);
                window.pid = process.or(window.pid);
                windows.push(window);
            }
        }
        Ok(windows)
    }

    fn ask(&self, id: Window) -> Result<Asked<'_>> {
        let conn = &self.conn;
        let property = |name: u32, words| conn.get_property(false, id, name, AtomEnum::ANY, 0, words);
        Ok(Asked {
            id,
            geometry: conn.get_geometry(id)?,
            position: conn.translate_coordinates(id, self.root, 0, 0)?,
            class: property(AtomEnum::WM_CLASS.into(), MAX_TITLE_WORDS)?,
            title: property(self.atoms._NET_WM_NAME, MAX_TITLE_WORDS)?,
            old_title: property(AtomEnum::WM_NAME.into(), MAX_TITLE_WORDS)?,
            pid: property(self.atoms._NET_WM_PID, 1)?,
            startup_id: property(self.atoms._NET_STARTUP_ID, MAX_TITLE_WORDS)?,
            state: property(self.atoms._NET_WM_STATE, MAX_STATES)?,
            old_state: property(self.atoms.WM_STATE, 1)?,
        })
    }

    fn described_by(&self, asked: Asked<'_>) -> Result<WindowInfo> {
        let text = |cookie: Property<'_>| {
            let reply = cookie.reply()?;
            let value = replies::at_most(reply.value, 4 * MAX_TITLE_WORDS);
            Ok::<_, Error>((reply.type_ != 0).then_some(value))
        };
        let utf8 = |bytes: Option<Vec<u8>>| bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let title =
            utf8(text(asked.title)?).map_or_else(|| text(asked.old_title).map(utf8), |title| Ok(Some(title)))?;
        let class = text(asked.class)?.as_deref().and_then(class_of);
        let states = words(&asked.state.reply()?, MAX_STATES);
        let old_state = words(&asked.old_state.reply()?, 1);
        let (geometry, position) = (asked.geometry.reply()?, asked.position.reply()?);
        Ok(WindowInfo {
            id: asked.id,
            title: title.unwrap_or_default(),
            class: class.unwrap_or_default(),
            pid: words(&asked.pid.reply()?, 1).first().copied(),
            rect: (position.dst_x.into(), position.dst_y.into(), geometry.width.into(), geometry.height.into()),
            active: false,
            minimized: states.contains(&self.atoms._NET_WM_STATE_HIDDEN) || old_state == [ICONIC],
            startup_id: utf8(text(asked.startup_id)?).unwrap_or_default(),
        })
    }

    fn managed(&self) -> Result<(Vec<Window>, Option<Window>)> {
        let mut ids = self.words(self.root, self.atoms._NET_CLIENT_LIST_STACKING, MAX_LIST)?;
        if ids.is_empty() {
            ids = self.words(self.root, self.atoms._NET_CLIENT_LIST, MAX_LIST)?;
        }
        Ok((ids, self.words(self.root, self.atoms._NET_ACTIVE_WINDOW, 1)?.first().copied()))
    }

    /// The windows that the server shows, except for menus and the like, and the one that has the keyboard.
    fn unmanaged(&self, begun: Instant) -> Result<(Vec<Window>, Option<Window>)> {
        let focused = self.focus()?.map(|focus| self.climb(focus, |_| Ok(false))).transpose()?.map(|(top, _)| top);
        let (mut ids, mut active) = (Vec::new(), None);
        for top in self.conn.query_tree(self.root)?.reply()?.children.into_iter().take(MAX_LIST as usize) {
            if begun.elapsed() > SILENCE_LIMIT {
                break;
            }
            let Ok(attributes) = self.conn.get_window_attributes(top)?.reply() else { continue };
            if attributes.map_state != MapState::VIEWABLE || attributes.class != WindowClass::INPUT_OUTPUT {
                continue;
            }
            let client = self.client_window(top)?;
            if client.is_none() && attributes.override_redirect {
                continue;
            }
            let id = client.unwrap_or(top);
            active = active.or((focused == Some(top)).then_some(id));
            ids.push(id);
        }
        Ok((ids, active))
    }

    /// The window of an application in a window manager's frame, by the property that managers put on it (ICCCM, §4.1.3.1).
    fn client_window(&self, top: Window) -> Result<Option<Window>> {
        let mut level = vec![top];
        for _ in 0..FRAME_DEPTH {
            for &window in &level {
                if gone(self.words(window, self.atoms.WM_STATE, 1))?.is_some_and(|state| !state.is_empty()) {
                    return Ok(Some(window));
                }
            }
            let mut below = Vec::new();
            for window in level {
                if let Some(tree) = gone(self.conn.query_tree(window)?.reply().map_err(Error::from))? {
                    below.extend(tree.children.into_iter().take(FRAME_PARTS));
                }
            }
            level = below;
        }
        Ok(None)
    }

    /// The window that keys go to, if any. Without a focus of its own it is the one under the pointer.
    pub(crate) fn focus(&self) -> Result<Option<Window>> {
        let focus = self.conn.get_input_focus()?.reply()?.focus;
        if focus == u32::from(InputFocus::NONE) {
            return Ok(None);
        }
        if [u32::from(InputFocus::POINTER_ROOT), self.root].contains(&focus) {
            return self.under_pointer();
        }
        Ok(Some(focus))
    }

    /// The class of the nearest window from the one that keys go to upwards that has one, and that of its client's leader.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] or [`Error::Interrupted`].
    pub fn focused_classes(&self) -> Result<Vec<String>> {
        let Some(focus) = self.focus()? else { return Ok(Vec::new()) };
        let (window, _) = self.climb(focus, |window| Ok(gone(self.class(window))?.flatten().is_some()))?;
        let leader = gone(self.words(window, self.atoms.WM_CLIENT_LEADER, 1))?.unwrap_or_default();
        let mut classes = Vec::new();
        for window in [window].into_iter().chain(leader) {
            classes.extend(gone(self.class(window))?.flatten());
        }
        Ok(classes)
    }

    /// The second part of `WM_CLASS`.
    fn class(&self, window: Window) -> Result<Option<String>> {
        let class = self.conn.get_property(false, window, AtomEnum::WM_CLASS, AtomEnum::STRING, 0, MAX_TITLE_WORDS)?;
        let class = replies::at_most(class.reply()?.value, 4 * MAX_TITLE_WORDS);
        Ok(class_of(&class))
    }

    /// True when the window manager lists a window.
    pub(crate) fn has_windows(&self) -> Result<bool> {
        Ok(!self.words(self.root, self.atoms._NET_CLIENT_LIST, 1)?.is_empty())
    }

    /// True when the window manager says that no window is active.
    pub(crate) fn nothing_is_active(&self) -> Result<bool> {
        let active = self.words(self.root, self.atoms._NET_ACTIVE_WINDOW, 1)?;
        Ok(active.first().is_none_or(|&window| window == x11rb::NONE))
    }

    /// True until a window is destroyed.
    pub(crate) fn exists(&self, window: Window) -> Result<bool> {
        Ok(gone(self.conn.get_geometry(window)?.reply().map_err(Error::from))?.is_some())
    }

    /// The innermost window under the pointer, walking down from the root.
    pub(crate) fn under_pointer(&self) -> Result<Option<Window>> {
        let mut window = self.root;
        for _ in 0..DEEPEST {
            let Some(reply) = gone(self.conn.query_pointer(window)?.reply().map_err(Error::from))? else { break };
            if reply.child == x11rb::NONE {
                break;
            }
            window = reply.child;
        }
        Ok((window != self.root).then_some(window))
    }

    /// The nearest window from `window` upwards that promises to answer `_NET_WM_PING` (EWMH).
    pub(crate) fn pingable(&self, window: Window) -> Result<Option<Window>> {
        let promises = |window| {
            let protocols = gone(self.words(window, self.atoms.WM_PROTOCOLS, 64))?.unwrap_or_default();
            Ok(protocols.contains(&self.atoms._NET_WM_PING))
        };
        let (window, found) = self.climb(window, promises)?;
        Ok(found.then_some(window))
    }

    /// The first from `window` upwards that `is` it and true; else the last below the root, and false.
    pub(crate) fn climb(&self, window: Window, is: impl Fn(Window) -> Result<bool>) -> Result<(Window, bool)> {
        let mut window = window;
        for _ in 0..DEEPEST {
            if is(window)? {
                return Ok((window, true));
            }
            let Some(tree) = gone(self.conn.query_tree(window)?.reply().map_err(Error::from))? else { break };
            if tree.parent == self.root || tree.parent == x11rb::NONE {
                break;
            }
            window = tree.parent;
        }
        Ok((window, false))
    }

    /// The process of the client that made `window`, when it runs on this machine and the server knows it (X-Resource 1.2).
    pub(crate) fn process_of(&self, window: Window) -> Result<Option<u32>> {
        // A server in another container numbers processes differently: its numbers would mean other processes here.
        let same_count = self.client_process(self.conn.setup().resource_id_base)? == Some(std::process::id());
        if same_count { self.client_process(window) } else { Ok(None) }
    }

    /// The process, according to the server, of the client that this resource belongs to.
    fn client_process(&self, resource: u32) -> Result<Option<u32>> {
        let Some(asked) = self.ask_processes(&[resource])? else { return Ok(None) };
        let Some(reply) = gone(asked.raw_reply().map_err(Error::from))? else { return Ok(None) };
        Ok(replies::client_processes(&reply)?.first().map(|&(_, process)| process))
    }

    /// Queries the processes of the clients that these resources belong to; `None` if the server cannot.
    fn ask_processes(&self, resources: &[u32]) -> Result<Option<Cookie<'_, Conn, QueryClientIdsReply>>> {
        if self.conn.extension_information(res::X11_EXTENSION_NAME)?.is_none() {
            return Ok(None);
        }
        let mask = res::ClientIdMask::LOCAL_CLIENT_PID;
        let specs: Vec<_> = resources.iter().map(|&client| res::ClientIdSpec { client, mask }).collect();
        Ok(Some(self.conn.res_query_client_ids(&specs)?))
    }

    /// Sends a ping that carries `token` where the protocol has a timestamp; the answer comes to the root window.
    pub(crate) fn send_ping(&self, window: Window, token: u32) -> Result<()> {
        let data = [self.atoms._NET_WM_PING, token, window, 0, 0];
        let event = ClientMessageEvent::new(32, window, self.atoms.WM_PROTOCOLS, data);
        self.conn.send_event(false, window, EventMask::NO_EVENT, event)?;
        self.conn.flush()?;
        Ok(())
    }
}
