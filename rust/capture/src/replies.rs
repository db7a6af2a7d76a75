//! Checks a server's description of itself and its replies before they are used. Pure, without a connection.

use imaging::{Cursor, Rect, Size};
use x11rb::protocol::randr::MonitorInfo;
use x11rb::protocol::res::QueryClientIdsReply;
use x11rb::protocol::xfixes::GetCursorImageAndNameReply;
use x11rb::protocol::xproto::Setup;
use x11rb::x11_utils::TryParse as _;

use crate::error::Result;
use crate::incoming::Violation;
use crate::keymap::Keymap;

/// Pixels per side of the screen.
const MAX_SIDE: u32 = 16_384;
/// Pixels of the screen.
const MAX_PIXELS: u64 = 64 << 20;
/// Pixels per side of a cursor; one that is larger is not shown.
pub(crate) const MAX_CURSOR: u16 = 512;
/// Characters of a cursor's name.
const MAX_CURSOR_NAME: usize = 64;
/// More monitors than any screen has; further ones are left out.
const MAX_MONITORS: u32 = 64;
/// X11: resource ids have 29 bits, of which at least 18 are a client's own.
const ID_BITS: u32 = 29;
const OWN_ID_BITS: u32 = 18;
/// X11: the smallest keycode.
const LOWEST_KEYCODE: u8 = 8;
/// The part of a reply before its lists.
const FIXED: usize = 32;

fn malformed<T>(what: String) -> Result<T> {
    Err(Violation::Malformed(what).into())
}

/// Checks what is used of the server's description of itself.
pub(crate) fn check_setup(setup: &Setup) -> Result<()> {
    let (base, mask) = (setup.resource_id_base, setup.resource_id_mask);
    let contiguous = mask.count_ones() + mask.leading_zeros() + mask.trailing_zeros() == u32::BITS;
    if !contiguous || mask.count_ones() < OWN_ID_BITS || base & mask != 0 || (base | mask) >> ID_BITS != 0 {
        return malformed(format!("it gave the ids {base:#x} and the mask {mask:#x}"));
    }
    let (lowest, highest) = (setup.min_keycode, setup.max_keycode);
    if lowest < LOWEST_KEYCODE || highest < lowest {
        return malformed(format!("its keycodes are {lowest} to {highest}"));
    }
    Ok(())
}

/// The size of a screen, if a framebuffer can have it.
pub(crate) fn screen_size(width: u16, height: u16) -> Result<Size> {
    let size = Size { w: width.into(), h: height.into() };
    if size.rect().is_empty() || size.w.max(size.h) > MAX_SIDE || size.rect().area() > MAX_PIXELS {
        return malformed(format!(
            "its screen has {width}x{height} pixels; 1x1 to {MAX_SIDE}x{MAX_SIDE} and at most {MAX_PIXELS} are accepted"
        ));
    }
    Ok(size)
}

/// The pixels of a piece of the screen.
pub(crate) fn pixels(rect: Rect, data: Vec<u8>) -> Result<Vec<u8>> {
    if (data.len() as u64) < 4 * rect.area() {
        return malformed(format!("it sent {} bytes for {rect}", data.len()));
    }
    Ok(data)
}

/// The cursor's image; `None` when it is larger than is shown.
pub(crate) fn cursor(reply: &[u8]) -> Result<Option<Cursor>> {
    // x11rb would take memory for as many pixels as the size says.
    let side = |at: usize| reply.get(at..at + 2).map_or(0, |side| u16::from_ne_bytes([side[0], side[1]]));
    let (width, height) = (side(12), side(14));
    if width > MAX_CURSOR || height > MAX_CURSOR {
        return Ok(None);
    }
    let reply = GetCursorImageAndNameReply::try_parse(reply)?.0;
    Ok(Some(Cursor {
        size: Size { w: reply.width.into(), h: reply.height.into() },
        hot: (reply.xhot.into(), reply.yhot.into()),
        argb: reply.cursor_image,
        serial: reply.cursor_serial.into(),
        name: cursor_name(&reply.name),
    }))
}

/// The printable ASCII of a cursor's name: any client may have set it.
fn cursor_name(name: &[u8]) -> String {
    name.iter().filter(|byte| byte.is_ascii_graphic()).take(MAX_CURSOR_NAME).map(|&byte| char::from(byte)).collect()
}

/// The first resource id of each client in the request, and its process.
pub(crate) fn client_processes(reply: &[u8]) -> Result<Vec<(u32, u32)>> {
    // x11rb would take memory for as many ids as the number says, of 12 bytes at least.
    const ID: usize = 12;
    let word =
        |at: usize| reply.get(at..at + 4).map_or(0, |word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]]));
    let (count, mut at) = (word(8), FIXED);
    for _ in 0..count {
        let Some(rest) = reply.len().checked_sub(at + ID) else {
            return malformed(format!("it sent {} bytes for {count} client ids", reply.len()));
        };
        let length = word(at + 8) as usize;
        if length > rest {
            return malformed(format!("it sent {rest} bytes for a client id of {length}"));
        }
        at += ID + length / 4 * 4;
    }
    let ids = QueryClientIdsReply::try_parse(reply)?.0.ids;
    Ok(ids.iter().filter_map(|id| id.value.first().map(|&process| (id.spec.client, process))).collect())
}

/// The first of the monitors that a server reports.
pub(crate) fn monitors(reply: &[u8]) -> Result<Vec<MonitorInfo>> {
    // x11rb would take memory for as many monitors as the number says.
    let count = reply.get(12..16).map_or(0, |count| u32::from_ne_bytes([count[0], count[1], count[2], count[3]]));
    let mut rest = reply.get(FIXED..).unwrap_or_default();
    let mut monitors = Vec::new();
    for _ in 0..count.min(MAX_MONITORS) {
        let (monitor, after) = MonitorInfo::try_parse(rest)?;
        monitors.push(monitor);
        rest = after;
    }
    Ok(monitors)
}

/// The keymap, of `count` keycodes from `first` on.
pub(crate) fn keymap(first: u8, count: u8, columns: u8, keysyms: Vec<u32>) -> Result<Keymap> {
    if columns == 0 || keysyms.len() != usize::from(columns) * usize::from(count) {
        return malformed(format!("it sent {} keysyms, {columns} for each of {count} keycodes", keysyms.len()));
    }
    Ok(Keymap::new(first, columns.into(), keysyms))
}

/// At most this many items of a property: a server may send more than was requested.
pub(crate) fn at_most<T>(mut items: Vec<T>, limit: u32) -> Vec<T> {
    items.truncate(limit as usize);
    items
}
