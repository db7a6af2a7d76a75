//! The monitors that a screen is made of, as `RandR` 1.5 reports them, and whether the server is Xwayland.

use x11rb::connection::RequestConnection;
use x11rb::protocol::randr::{self, ConnectionExt as _};
use x11rb::protocol::xproto::ConnectionExt as _;

use crate::error::{Error, Result};
use crate::replies;
use crate::server::{Server, XWAYLAND};
use crate::windows::gone;

/// What the status says of such a server.
pub(crate) const XWAYLAND_NOTE: &str = "this X server is Xwayland: windows of Wayland applications are not in its picture, and where \
    it is rootless, as compositors start it, windows of X applications are not either; connect to the compositor's VNC server \
    instead, such as wayvnc";
/// Bytes of a monitor's name.
const MAX_NAME: usize = 256;

/// One monitor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MonitorInfo {
    /// Its name, usually that of its output (untrusted text).
    pub name: String,
    /// Its part of the screen: x, y, width, height. It may reach beyond the screen.
    pub rect: (i32, i32, u32, u32),
    /// True for the one that is called primary.
    pub primary: bool,
}

impl Server {
    /// The monitors that are on; none where the server does not report monitors.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] or [`Error::Interrupted`].
    pub fn monitors(&self) -> Result<Vec<MonitorInfo>> {
        if self.conn.extension_information(randr::X11_EXTENSION_NAME)?.is_none() {
            return Ok(Vec::new());
        }
        // An older RandR refuses this.
        let reply = gone(self.conn.randr_get_monitors(self.root, true)?.raw_reply().map_err(Error::from))?;
        let monitors = reply.map_or(Ok(Vec::new()), |reply| replies::monitors(&reply))?;
        let names =
            monitors.iter().map(|monitor| Ok(self.conn.get_atom_name(monitor.name)?)).collect::<Result<Vec<_>>>()?;
        let mut told = Vec::with_capacity(monitors.len());
        for (monitor, name) in monitors.into_iter().zip(names) {
            let name = gone(name.reply().map_err(Error::from))?.map(|reply| reply.name).unwrap_or_default();
            told.push(MonitorInfo {
                name: String::from_utf8_lossy(&name[..name.len().min(MAX_NAME)]).into_owned(),
                rect: (monitor.x.into(), monitor.y.into(), monitor.width.into(), monitor.height.into()),
                primary: monitor.primary,
            });
        }
        Ok(told)
    }

    /// Whether this is Xwayland: by its extension, or before 23.1 by the names that it gave its outputs.
    pub(crate) fn is_xwayland(&self) -> Result<bool> {
        let named = |monitors: Vec<MonitorInfo>| monitors.iter().any(|monitor| monitor.name.starts_with(XWAYLAND));
        Ok(self.conn.extension_information(XWAYLAND)?.is_some() || named(self.monitors()?))
    }
}
