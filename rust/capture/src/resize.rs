//! Changes the size of the screen through `RandR`.

use imaging::Size;
use x11rb::connection::RequestConnection;
use x11rb::protocol::randr::{self, ConnectionExt as _};

use crate::error::{Error, Result};
use crate::server::Server;

const PIXELS_PER_MILLIMETRE: f32 = 96.0 / 25.4;
/// More outputs than any screen has.
const MOST_OUTPUTS: usize = 64;

/// Asks the server for this size: a mode of exactly this size on the first connected output, else the size of the screen alone.
pub(crate) fn resize(server: &Server, size: Size) -> Result<()> {
    let conn = &server.conn;
    if conn.extension_information(randr::X11_EXTENSION_NAME)?.is_none() {
        return Err(Error::Unsupported("this X server cannot change its size (no RandR)".into()));
    }
    let range = conn.randr_get_screen_size_range(server.root)?.reply()?;
    let within = |length: u32, least: u16, most: u16| {
        u16::try_from(length).ok().filter(|length| (least..=most).contains(length))
    };
    let (Some(w), Some(h)) =
        (within(size.w, range.min_width, range.max_width), within(size.h, range.min_height, range.max_height))
    else {
        return Err(Error::Unsupported(format!(
            "this X server's screen may be {}x{} to {}x{}, not {}x{}: start it with the largest size that is needed",
            range.min_width, range.min_height, range.max_width, range.max_height, size.w, size.h
        )));
    };
    let millimetres = |pixels: u16| (f32::from(pixels) / PIXELS_PER_MILLIMETRE).round() as u32;
    let resources = conn.randr_get_screen_resources_current(server.root)?.reply()?;
    let Some(&crtc) = resources.crtcs.first() else {
        conn.randr_set_screen_size(server.root, w, h, millimetres(w), millimetres(h))?.check()?;
        return Ok(());
    };
    let info = conn.randr_get_crtc_info(crtc, resources.config_timestamp)?.reply()?;
    let mode = match resources.modes.iter().find(|mode| (mode.width, mode.height) == (w, h)) {
        Some(mode) => mode.id,
        None => create_mode(server, w, h, &info.outputs)?,
    };
    let current = server.size()?;
    // The screen must contain the mode at every moment: grow it first, or shrink it last.
    let (grown_w, grown_h) = (w.max(current.w as u16), h.max(current.h as u16));
    conn.randr_set_screen_size(server.root, grown_w, grown_h, millimetres(grown_w), millimetres(grown_h))?.check()?;
    let set = conn.randr_set_crtc_config(
        crtc,
        x11rb::CURRENT_TIME,
        resources.config_timestamp,
        0,
        0,
        mode,
        randr::Rotation::ROTATE0,
        &info.outputs,
    )?;
    let status = set.reply()?.status;
    if status != randr::SetConfig::SUCCESS {
        return Err(Error::Unsupported(format!("this X server did not change its size to {w}x{h}: {status:?}")));
    }
    conn.randr_set_screen_size(server.root, w, h, millimetres(w), millimetres(h))?.check()?;
    Ok(())
}

fn create_mode(server: &Server, w: u16, h: u16, outputs: &[randr::Output]) -> Result<randr::Mode> {
    let name = format!("{w}x{h}");
    let info = randr::ModeInfo {
        id: 0,
        width: w,
        height: h,
        dot_clock: 0,
        hsync_start: 0,
        hsync_end: 0,
        htotal: 0,
        hskew: 0,
        vsync_start: 0,
        vsync_end: 0,
        vtotal: 0,
        name_len: name.len() as u16,
        mode_flags: randr::ModeFlag::default(),
    };
    let mode = server.conn.randr_create_mode(server.root, info, name.as_bytes())?.reply()?.mode;
    for &output in outputs.iter().take(MOST_OUTPUTS) {
        server.conn.randr_add_output_mode(output, mode)?.check()?;
    }
    Ok(mode)
}
