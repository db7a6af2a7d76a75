//! One driver at a time: the lease of a display.

use std::time::Duration;

use imaging::Size;
use link::Interrupt;
use x11rb::connection::Connection;
use x11rb::errors::ReplyError;
use x11rb::protocol::xproto::{Atom, AtomEnum, ConnectionExt as _, CreateWindowAux, PropMode, Window, WindowClass};
use x11rb::wrapper::ConnectionExt as _;

use crate::error::{Error, Result};
use crate::replies;
use crate::server::{Conn, Server, Target, open_connection};

const LEASE: &str = "_DESKHAND_DRIVER";
/// A driver's name is cut to this, in units of four bytes.
const LONGEST_NAME: u32 = 64;

/// The lease is an X selection: taken atomically, visible to every client, and released when its owner ends for any reason.
pub(crate) fn take_lease(server: &Server, driver: &str) -> Result<()> {
    let conn = &server.conn;
    let lease = server.atoms._DESKHAND_DRIVER;
    conn.grab_server()?;
    let owner = conn.get_selection_owner(lease)?.reply()?.owner;
    if owner != x11rb::NONE {
        let holder = name_of(conn, owner, lease);
        conn.ungrab_server()?;
        conn.flush()?;
        let holder = holder?.unwrap_or_default();
        return Err(Error::Leased(format!("{}, which {holder} drives already", server.display)));
    }
    let window = conn.generate_id()?;
    conn.create_window(0, window, server.root, -1, -1, 1, 1, 0, WindowClass::INPUT_ONLY, 0, &CreateWindowAux::new())?;
    conn.change_property8(PropMode::REPLACE, window, lease, AtomEnum::STRING, driver.as_bytes())?;
    conn.set_selection_owner(window, lease, x11rb::CURRENT_TIME)?;
    conn.ungrab_server()?;
    conn.flush()?;
    Ok(())
}

/// What a display shows to a client that does not drive it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glance {
    /// Size of the screen.
    pub size: Size,
    /// The driver that holds the lease, in its own words.
    pub driver: Option<String>,
}

/// Finds the driver of a display, and changes nothing there: an attempt to take the lease would turn away another driver at
/// the same moment.
///
/// # Errors
///
/// [`Error::Connect`], or [`Error::Lost`] when the server says nothing for `silence_limit`.
pub fn glance(target: &Target, interrupt: &Interrupt, silence_limit: Duration) -> Result<Glance> {
    let (conn, screen) = open_connection(target, interrupt, silence_limit)?;
    let root = &conn.setup().roots[screen];
    let geometry = conn.get_geometry(root.root)?;
    let lease = conn.intern_atom(true, LEASE.as_bytes())?;
    let geometry = geometry.reply()?;
    let size = replies::screen_size(geometry.width, geometry.height)?;
    let lease = lease.reply()?.atom;
    if lease == x11rb::NONE {
        // No driver has ever been there.
        return Ok(Glance { size, driver: None });
    }
    let owner = conn.get_selection_owner(lease)?.reply()?.owner;
    let driver = if owner == x11rb::NONE { None } else { name_of(&conn, owner, lease)? };
    Ok(Glance { size, driver })
}

/// The words of a lease's owner; `None` when it has just gone.
fn name_of(conn: &Conn, owner: Window, lease: Atom) -> Result<Option<String>> {
    match conn.get_property(false, owner, lease, AtomEnum::ANY, 0, LONGEST_NAME)?.reply() {
        Ok(reply) => Ok(Some(String::from_utf8_lossy(&replies::at_most(reply.value, 4 * LONGEST_NAME)).into_owned())),
        Err(ReplyError::X11Error(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
