//! The events that a session reports to its owner.

use imaging::{Rect, Size};

use crate::clipboard::Clipboard;

/// A message of the server. When an event is reported, the screen shows its effect already.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// An update is complete.
    Updated {
        /// What the server painted, merged; empty when the update only had other messages.
        rects: Vec<Rect>,
        /// Whether any colour has changed.
        changed: bool,
        /// The screen's generation now.
        generation: u64,
    },
    /// The server reported the framebuffer's size and its monitors, changed or not.
    Resized {
        /// The framebuffer's size.
        size: Size,
        /// The monitors in it; empty when the server does not report them.
        monitors: Vec<Monitor>,
        /// What caused it.
        by: ResizedBy,
    },
    /// The server refused the size that this client requested.
    ResizeRefused {
        /// 1: prohibited, 2: out of resources, 3: invalid layout; others may be added.
        status: u16,
    },
    /// The cursor's image has changed; the screen has it.
    Cursor {
        /// Whether there is one.
        visible: bool,
    },
    /// The pointer is there, and not by this client: another client or a program has moved it.
    ///
    /// It may be about an earlier place than the one this client has requested since; and it may be outside of the framebuffer.
    Pointer {
        /// Pixels from the left.
        x: u32,
        /// Pixels from the top.
        y: u32,
    },
    /// The bell.
    Bell,
    /// The server has new text in its clipboard: Latin-1, in the old form.
    CutText {
        /// The text; untrusted.
        text: String,
        /// Whether its end was left out.
        truncated: bool,
    },
    /// A message of the extended clipboard.
    Clipboard(Clipboard),
    /// The server has come to a fence of ours: all that it had to do before is done.
    Fence {
        /// Which properties of the fence the server kept.
        flags: u32,
        /// The payload that this client sent.
        payload: Vec<u8>,
    },
    /// Updates come only on request again.
    ContinuousUpdatesEnded,
    /// The lock keys' lights.
    Leds(Leds),
    /// The desktop's name.
    DesktopName {
        /// The name; untrusted.
        name: String,
        /// Whether its end was left out.
        truncated: bool,
    },
    /// The server has shown that it knows an extension; the features known so far.
    Features(Features),
}

/// What changed the size of the framebuffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResizedBy {
    /// The server, or a user at it.
    Server,
    /// This client.
    Us,
    /// Another client.
    OtherClient,
}

/// A monitor within the framebuffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Monitor {
    /// Its number, which stays when it moves.
    pub id: u32,
    /// Where it is; untrusted, and it may reach over the framebuffer.
    pub rect: Rect,
    /// To be sent back as it came.
    pub flags: u32,
}

/// Which lock keys are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leds {
    /// Scroll lock.
    pub scroll: bool,
    /// Num lock.
    pub num: bool,
    /// Caps lock.
    pub caps: bool,
}

/// The extensions that a server has shown to know. Only those may be used towards it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Features {
    /// Fences: a server without them may close the connection over one.
    pub fence: bool,
    /// Continuous updates.
    pub continuous_updates: bool,
    /// Mouse buttons 8 and 9.
    pub mouse_buttons: bool,
    /// Requests for another size; they may still be refused.
    pub set_desktop_size: bool,
    /// The extended clipboard.
    pub clipboard: bool,
}
