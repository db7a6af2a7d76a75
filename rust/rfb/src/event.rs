//! What a session tells its owner.

use imaging::{Rect, Size};

use crate::clipboard::Clipboard;

/// Something that the server said. The screen shows what an event tells of when the event is out.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// An update is complete.
    Updated {
        /// What the server painted, merged; empty when the update only told something else.
        rects: Vec<Rect>,
        /// Whether any colour is another than before.
        changed: bool,
        /// The screen's generation now.
        generation: u64,
    },
    /// The server told the framebuffer's size and its monitors, changed or not.
    Resized {
        /// The framebuffer's size.
        size: Size,
        /// The monitors in it; empty when the server does not tell.
        monitors: Vec<Monitor>,
        /// Who asked for it.
        by: ResizedBy,
    },
    /// The server did not take the size that we asked for.
    ResizeRefused {
        /// 1: prohibited, 2: out of resources, 3: invalid layout; others may be added.
        status: u16,
    },
    /// The cursor's image is another; the screen has it.
    Cursor {
        /// Whether there is one.
        visible: bool,
    },
    /// The pointer is there, and we did not put it there: somebody else has moved it, or a program has.
    ///
    /// It may be about an earlier place than the one that we have asked for since; and it may be outside of the framebuffer.
    Pointer {
        /// Pixels from the left.
        x: u32,
        /// Pixels from the top.
        y: u32,
    },
    /// The bell.
    Bell,
    /// The server has new text in its clipboard: Latin-1, told in the old way.
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
        /// What we sent along.
        payload: Vec<u8>,
    },
    /// Updates come only when asked for again.
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

/// Who changed the size of the framebuffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResizedBy {
    /// The server, or somebody at it.
    Server,
    /// We did.
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
    /// Asking for another size; it may still be refused.
    pub set_desktop_size: bool,
    /// The extended clipboard.
    pub clipboard: bool,
}
