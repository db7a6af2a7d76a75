//! How updates keep coming: each on request, or by themselves if the server supports that. Pure.

use imaging::Rect;

use crate::client;

/// How updates are brought about now; what that takes is added to what goes out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Follow {
    No,
    Asking,
    Continuous,
}

impl Follow {
    /// Begins to follow what this rectangle shows; `continuous`: the server is known to send updates by itself.
    pub(crate) fn begin(&mut self, continuous: bool, rect: Rect, out: &mut Vec<u8>) {
        *self = Self::Asking;
        out.extend(client::update_request(true, rect));
        if continuous {
            self.go_continuous(rect, out);
        }
    }

    /// Stops.
    pub(crate) fn end(&mut self, rect: Rect, out: &mut Vec<u8>) {
        if *self == Self::Continuous {
            out.extend(client::continuous_updates(false, rect));
        }
        *self = Self::No;
    }

    /// The server sends updates by itself, if they are wanted.
    pub(crate) fn go_continuous(&mut self, rect: Rect, out: &mut Vec<u8>) {
        if *self != Self::No {
            *self = Self::Continuous;
            out.extend(client::continuous_updates(true, rect));
        }
    }

    /// The server has stopped to send them by itself.
    pub(crate) fn fall_back(&mut self, rect: Rect, out: &mut Vec<u8>) {
        if *self == Self::Continuous {
            *self = Self::Asking;
            out.extend(client::update_request(true, rect));
        }
    }

    /// An update is complete; the framebuffer may have another size since.
    pub(crate) fn updated(&mut self, resized: bool, rect: Rect, out: &mut Vec<u8>) {
        match self {
            Self::Asking => out.extend(client::update_request(true, rect)),
            // They come for the rectangle that was requested.
            Self::Continuous if resized => self.go_continuous(rect, out),
            Self::Continuous | Self::No => {}
        }
    }
}
