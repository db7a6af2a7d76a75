//! One driver at a time: the lease of a display.

use x11rb::connection::Connection;
use x11rb::protocol::xproto::{AtomEnum, ConnectionExt as _, CreateWindowAux, PropMode, WindowClass};
use x11rb::wrapper::ConnectionExt as _;

use crate::error::{Error, Result};
use crate::server::Server;

/// The lease is an X selection: taken atomically, visible to every client, and gone with its owner however that one ends.
pub(crate) fn take_lease(server: &Server, driver: &str) -> Result<()> {
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
