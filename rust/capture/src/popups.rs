//! Windows that no window manager places, such as menus and lists that open: what they cover, as the server's events tell it.

use std::collections::HashMap;

use link::now;
use x11rb::connection::RequestConnection;
use x11rb::protocol::Event as XEvent;
use x11rb::protocol::shape::{self, ConnectionExt as _};
use x11rb::protocol::xproto::{ConnectionExt as _, MapState, Window, WindowClass};

use crate::error::Result;
use crate::server::Server;
use crate::windows::gone;

/// Top-level windows that are known; of more, none is said to cover anything.
const MOST_KNOWN: usize = 512;
/// Windows that are asked whether they are opaque.
const MOST_ASKED: usize = 16;
/// Bits of a pixel with an alpha channel.
const WITH_ALPHA: u8 = 32;

type Area = (i32, i32, u32, u32);

/// A part of the screen that a window covers: x, y, width, height, and since when, as [`link::now`] counts.
pub type Cover = (Area, f64);

/// A window below the root.
#[derive(Debug)]
struct Top {
    /// With its border.
    area: Area,
    /// A window manager does not place it.
    free: bool,
    /// Another one was put into it: it is the frame of a window manager.
    frame: bool,
    /// Since when it covers all of its area, as far as that is known.
    covers: Option<f64>,
    /// Whether nothing is seen through it; None: it was not asked yet.
    opaque: Option<bool>,
}

/// The windows below the root that were made since the connection began.
#[derive(Debug, Default)]
pub(crate) struct Popups {
    known: HashMap<Window, Top>,
}

fn placed(x: i16, y: i16, width: u16, height: u16, border: u16) -> Area {
    let border = 2 * u32::from(border);
    (x.into(), y.into(), u32::from(width) + border, u32::from(height) + border)
}

fn meet(one: Area, other: Area) -> bool {
    let apart = |a: i32, length: u32, b: i32, other: u32| {
        i64::from(a) + i64::from(length) <= i64::from(b) || i64::from(b) + i64::from(other) <= i64::from(a)
    };
    !apart(one.0, one.2, other.0, other.2) && !apart(one.1, one.3, other.1, other.3)
}

impl Popups {
    /// Notes an event of the root window.
    pub(crate) fn note(&mut self, root: Window, event: &XEvent) {
        match event {
            XEvent::CreateNotify(new) if new.parent == root && self.known.len() < MOST_KNOWN => {
                let area = placed(new.x, new.y, new.width, new.height, new.border_width);
                let free = new.override_redirect;
                self.known.insert(new.window, Top { area, free, frame: false, covers: None, opaque: None });
            }
            XEvent::ConfigureNotify(change) if change.event == root && change.window != root => {
                let area = placed(change.x, change.y, change.width, change.height, change.border_width);
                self.above(change.window, Some(area));
                if let Some(top) = self.known.get_mut(&change.window) {
                    // Where only its place among the others is new, some of them may be above it.
                    top.covers = top.covers.filter(|_| area != top.area).map(|_| now());
                    top.area = area;
                }
            }
            XEvent::MapNotify(new) if new.event == root => {
                let area = self.known.get(&new.window).map(|top| top.area);
                self.above(new.window, area);
                if let Some(top) = self.known.get_mut(&new.window) {
                    top.free = new.override_redirect;
                    (top.covers, top.opaque) = (Some(now()), None);
                }
            }
            XEvent::UnmapNotify(gone) if gone.event == root => {
                if let Some(top) = self.known.get_mut(&gone.window) {
                    top.covers = None;
                }
            }
            XEvent::DestroyNotify(gone) if gone.event == root => {
                self.known.remove(&gone.window);
            }
            XEvent::ReparentNotify(change) if change.event == root && change.parent != root => {
                self.known.remove(&change.window);
                if let Some(top) = self.known.get_mut(&change.parent) {
                    top.frame = true;
                }
            }
            XEvent::CirculateNotify(_) => self.above(x11rb::NONE, None),
            _ => {}
        }
    }

    /// A window may be above the others now; None: anywhere.
    fn above(&mut self, window: Window, area: Option<Area>) {
        for (_, top) in self.known.iter_mut().filter(|(id, _)| **id != window) {
            top.covers = top.covers.filter(|_| area.is_some_and(|area| !meet(area, top.area)));
        }
    }

    /// What menus and the like cover.
    pub(crate) fn covering(&mut self, server: &Server) -> Result<Vec<Cover>> {
        let mut found = Vec::new();
        let free = self.known.iter_mut().filter(|(_, top)| top.free && !top.frame && top.covers.is_some());
        for (&window, top) in free.take(MOST_ASKED) {
            if top.opaque.is_none() {
                top.opaque = Some(gone(server.is_opaque(window))?.unwrap_or(false));
            }
            if top.opaque == Some(true) {
                found.extend(top.covers.map(|since| (top.area, since)));
            }
        }
        Ok(found)
    }
}

impl Server {
    /// Whether nothing is seen through a window.
    fn is_opaque(&self, window: Window) -> Result<bool> {
        if self.conn.extension_information(shape::X11_EXTENSION_NAME)?.is_none() {
            return Ok(false);
        }
        let attributes = self.conn.get_window_attributes(window)?;
        let geometry = self.conn.get_geometry(window)?;
        let extents = self.conn.shape_query_extents(window)?;
        let compositor = self.conn.get_selection_owner(self.atoms._NET_WM_CM_S0)?;
        let attributes = attributes.reply()?;
        let shown = attributes.class == WindowClass::INPUT_OUTPUT && attributes.map_state == MapState::VIEWABLE;
        let blended = geometry.reply()?.depth == WITH_ALPHA && compositor.reply()?.owner != x11rb::NONE;
        Ok(shown && !blended && !extents.reply()?.bounding_shaped)
    }
}
