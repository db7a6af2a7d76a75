//! One opened connection: the root window, the atoms, the extensions, and nothing that changes afterwards.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use link::Interrupt;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use x11rb::atom_manager;
use x11rb::connection::{Connection, RequestConnection};
use x11rb::protocol::xproto::{ConnectionExt as _, Window};
use x11rb::protocol::{damage, randr, xfixes, xkb, xtest};
use x11rb::reexports::x11rb_protocol::parse_display::ConnectAddress;
use x11rb::rust_connection::{DefaultStream, RustConnection};

pub use crate::conn::Conn;
use crate::error::{Error, InterruptedMark, Result, connect_error};
use crate::replies;
use crate::stream::{BoundedStream, SILENCE_LIMIT};

/// Xwayland's own extension, since 23.1.
pub(crate) const XWAYLAND: &str = "XWAYLAND";
/// How often a listener whose queue is full is tried again.
const QUEUE_PERIOD: Duration = Duration::from_millis(5);

atom_manager! {
    /// Every atom that this crate uses.
    pub Atoms: AtomsCookie {
        _DESKHAND_DRIVER,
        _DESKHAND_CLIPBOARD,
        _DESKHAND_KEYS,
        _NET_ACTIVE_WINDOW,
        _NET_CLIENT_LIST,
        _NET_CLIENT_LIST_STACKING,
        _NET_CLOSE_WINDOW,
        _NET_FRAME_EXTENTS,
        _NET_REQUEST_FRAME_EXTENTS,
        _NET_STARTUP_ID,
        _NET_SUPPORTED,
        _NET_SUPPORTING_WM_CHECK,
        _NET_WM_CM_S0,
        _NET_WM_NAME,
        _NET_WM_PID,
        _NET_WM_PING,
        _NET_WM_STATE,
        _NET_WM_STATE_HIDDEN,
        WM_CLIENT_LEADER,
        WM_DELETE_WINDOW,
        WM_PROTOCOLS,
        WM_STATE,
        _XSETTINGS_S0,
        _XSETTINGS_SETTINGS,
        CLIPBOARD,
        ATOM_PAIR,
        DELETE,
        INCR,
        INSERT_PROPERTY,
        INSERT_SELECTION,
        MULTIPLE,
        SAVE_TARGETS,
        TARGETS,
        TIMESTAMP,
        COMPOUND_TEXT,
        TEXT,
        UTF8_STRING,
        XdndActionCopy,
        XdndAware,
        XdndDrop,
        XdndEnter,
        XdndFinished,
        XdndLeave,
        XdndPosition,
        XdndProxy,
        XdndSelection,
        XdndStatus,
        COPIED_FILES: b"x-special/gnome-copied-files",
        TEXT_HTML: b"text/html",
        TEXT_PLAIN: b"text/plain",
        TEXT_PLAIN_UTF8: b"text/plain;charset=utf-8",
        TEXT_URI_LIST: b"text/uri-list",
    }
}

/// How to open a display.
#[derive(Clone, Debug, Default)]
pub struct Target {
    /// As `DISPLAY` would name it, such as `:99`, or `unix:/path` for a socket anywhere.
    pub display: String,
    /// Name and data of the cookie; empty for none.
    pub auth: (Vec<u8>, Vec<u8>),
    /// The socket to connect to, even if `display` leads elsewhere by then; see [`Target::pin`].
    pub socket: Option<Arc<OwnedFd>>,
}

impl Target {
    /// Connects from now on to the socket that was opened with `O_PATH`, not to what has its name; the caller keeps `descriptor`.
    ///
    /// # Errors
    ///
    /// [`Error::Connect`] when the descriptor cannot be opened through `/proc/self/fd`.
    pub fn pin(&mut self, descriptor: RawFd) -> Result<()> {
        let path = format!("/proc/self/fd/{descriptor}");
        let socket = rustix::fs::open(&path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map_err(|errno| {
            let reason = format!("{path} cannot be opened: {errno}");
            Error::Connect { display: self.display.clone(), reason, refused: false }
        })?;
        self.socket = Some(Arc::new(socket));
        Ok(())
    }
}

/// A connection and the constants of its server.
pub struct Server {
    /// The connection.
    pub conn: Conn,
    /// The root window of the default screen.
    pub root: Window,
    /// The atoms.
    pub atoms: Atoms,
    /// Name of the display.
    pub display: String,
    /// True when the first screen's pixels are 32 bits of BGRX, the only layout that is read.
    pub bgrx: bool,
}

/// Opens the socket and finishes the X11 handshake.
pub(crate) fn open_connection(
    target: &Target,
    interrupt: &Interrupt,
    silence_limit: Duration,
) -> Result<(Conn, usize)> {
    let failed = |reason: String| Error::Connect { display: target.display.clone(), reason, refused: false };
    let bounded = |stream| BoundedStream::new(stream, interrupt.clone(), silence_limit);
    let local = |path: &str| {
        let (stream, _) = DefaultStream::from_unix_stream(connect_local(path, interrupt, silence_limit)?)?;
        Ok(bounded(stream))
    };
    let told = |error: io::Error| match error.into() {
        Error::Lost(reason) => failed(reason),
        other => other,
    };
    if let Some(socket) = &target.socket {
        let stream = local(&format!("/proc/self/fd/{}", socket.as_raw_fd())).map_err(told)?;
        return greet(target, stream, 0);
    }
    let parsed = x11rb::reexports::x11rb_protocol::parse_display::parse_display(Some(&target.display))
        .map_err(|error| failed(error.to_string()))?;
    let screen = usize::from(parsed.screen);
    let mut tried = Vec::new();
    // x11rb reads a path and then connects to display 0.
    if parsed.host.starts_with('/') {
        return greet(target, local(&parsed.host).map_err(told)?, screen);
    }
    for address in parsed.connect_instruction() {
        let stream = match &address {
            ConnectAddress::Socket(path) => local(path),
            // A local display that is gone is not tried at a TCP port: another process there would receive its cookie.
            ConnectAddress::Hostname(..) if parsed.host.is_empty() => continue,
            _ => DefaultStream::connect(&address).map(|(stream, _)| bounded(stream)),
        };
        match stream.map_err(Error::from) {
            Ok(stream) => return greet(target, stream, screen),
            Err(Error::Lost(reason)) => tried.push(format!("{address:?}: {reason}")),
            Err(other) => return Err(other),
        }
    }
    Err(failed(tried.join("; ")))
}

/// Connects to a socket of this machine. A blocking connect waits without end for a listener that accepts nothing.
fn connect_local(path: &str, interrupt: &Interrupt, limit: Duration) -> io::Result<UnixStream> {
    let address = SocketAddrUnix::new(path)?;
    let begun = Instant::now();
    loop {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        match rustix::net::connect(&socket, &address) {
            Ok(()) => return Ok(UnixStream::from(socket)),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        if interrupt.requested() {
            return Err(io::Error::other(InterruptedMark));
        }
        if begun.elapsed() >= limit {
            let reason = format!("its queue of connections stayed full for {} s", limit.as_secs());
            return Err(io::Error::new(io::ErrorKind::TimedOut, reason));
        }
        std::thread::sleep(QUEUE_PERIOD);
    }
}

pub(crate) fn greet(target: &Target, stream: BoundedStream, screen: usize) -> Result<(Conn, usize)> {
    let (name, data) = target.auth.clone();
    RustConnection::connect_to_stream_with_auth_info(stream, screen, name, data)
        .map_err(|error| connect_error(&target.display, error))
        .and_then(|conn| replies::check_setup(conn.setup()).map(|()| (Conn::new(conn), screen)))
}

impl Server {
    /// Opens `target`; every wait may be stopped through `interrupt`.
    ///
    /// # Errors
    ///
    /// [`Error::Connect`] when there is no such display or the cookie is refused, [`Error::Unsupported`] when the server lacks
    /// an extension without which nothing works.
    pub fn open(target: &Target, interrupt: &Interrupt) -> Result<Self> {
        let (conn, screen) = open_connection(target, interrupt, SILENCE_LIMIT)?;
        Self::greeted(conn, screen, &target.display)
    }

    /// Queries all that is needed, after a server has described itself.
    pub(crate) fn greeted(conn: Conn, screen: usize, display: &str) -> Result<Self> {
        for name in [damage::X11_EXTENSION_NAME, xfixes::X11_EXTENSION_NAME, xtest::X11_EXTENSION_NAME] {
            conn.prefetch_extension_information(name)?;
        }
        conn.prefetch_extension_information(randr::X11_EXTENSION_NAME)?;
        conn.prefetch_extension_information(xkb::X11_EXTENSION_NAME)?;
        conn.prefetch_extension_information(XWAYLAND)?;
        let atoms = Atoms::new(&conn)?;
        for name in [damage::X11_EXTENSION_NAME, xfixes::X11_EXTENSION_NAME, xtest::X11_EXTENSION_NAME] {
            if conn.extension_information(name)?.is_none() {
                return Err(Error::Unsupported(format!("the X server {display} lacks the {name} extension")));
            }
        }
        // Versions must be queried once, or the server refuses the newer requests.
        let fixes = xfixes::query_version(&conn, 5, 0)?;
        let damages = damage::query_version(&conn, 1, 1)?;
        if conn.extension_information(xkb::X11_EXTENSION_NAME)?.is_some() {
            xkb::use_extension(&conn, 1, 0)?.reply()?;
            tell_of_keymaps(&conn)?;
        }
        fixes.reply()?;
        damages.reply()?;
        let atoms = atoms.reply()?;
        let setup = conn.setup();
        let root = &setup.roots[screen];
        let bgrx = matches!(root.root_depth, 24 | 32)
            && setup.image_byte_order == x11rb::protocol::xproto::ImageOrder::LSB_FIRST
            && setup.pixmap_formats.iter().any(|format| format.depth == root.root_depth && format.bits_per_pixel == 32)
            && root.allowed_depths.iter().flat_map(|depth| &depth.visuals).any(|visual| {
                visual.visual_id == root.root_visual
                    && (visual.red_mask, visual.green_mask, visual.blue_mask) == (0xff_0000, 0xff00, 0xff)
            });
        let root = root.root;
        Ok(Self { conn, root, atoms, display: display.to_owned(), bgrx })
    }

    /// A request and its reply: everything the server did before has reached this connection's queue.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] or [`Error::Interrupted`].
    pub fn round_trip(&self) -> Result<()> {
        self.conn.get_input_focus()?.reply()?;
        Ok(())
    }

    /// Width and height of the screen now.
    ///
    /// # Errors
    ///
    /// [`Error::Violation`] when no framebuffer can have it, [`Error::Lost`] or [`Error::Interrupted`].
    pub fn size(&self) -> Result<imaging::Size> {
        let geometry = self.conn.get_geometry(self.root)?.reply()?;
        replies::screen_size(geometry.width, geometry.height)
    }
}

/// Asks for a notification of every change of the keymap.
///
/// A client that has activated XKB gets no core `MappingNotify` for a keyboard that was replaced as a whole, which is what
/// `setxkbmap` does (xserver, `XkbSendLegacyMapNotify`).
fn tell_of_keymaps(conn: &impl RequestConnection) -> Result<()> {
    let every_part = xkb::MapPart::from(0xff_u16);
    xkb::select_events(
        conn,
        u16::from(xkb::ID::USE_CORE_KBD),
        xkb::EventType::default(),
        xkb::EventType::NEW_KEYBOARD_NOTIFY | xkb::EventType::MAP_NOTIFY,
        every_part,
        every_part,
        &xkb::SelectEventsAux::new(),
    )?;
    Ok(())
}
