//! The limits of what a server may demand.
//!
//! The rule: memory is taken only for what these allow. With the defaults a session holds at most three framebuffers (one of
//! them the screen's) and 64 MiB.

use imaging::Size;

use crate::violation::{Problem, limit, value};

/// What a server may demand; more is a [`Violation`](crate::Violation), unless said otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Pixels per side of the framebuffer.
    pub side: u32,
    /// Pixels in the framebuffer.
    pub pixels: u64,
    /// Pixels per side of a cursor; a larger one is skipped, and the cursor is hidden.
    pub cursor: u32,
    /// Bytes of one clipboard transfer that are kept, compressed or not; the rest is skipped and the text marked as cut.
    pub clipboard: usize,
    /// Bytes of the desktop's name or of a reason for refusal that are kept; the rest is skipped.
    pub name: usize,
    /// Bytes of a name or a reason that are skipped.
    pub name_skipped: u64,
    /// Bytes of a clipboard transfer or a cursor that are skipped.
    pub skipped: u64,
    /// Changes of the framebuffer's size within a second.
    pub resizes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            side: 16_384,
            pixels: 64 << 20,
            cursor: 512,
            clipboard: 1 << 20,
            name: 4 << 10,
            name_skipped: 1 << 20,
            skipped: 16 << 20,
            resizes: 10,
        }
    }
}

impl Limits {
    /// Checks a framebuffer's size.
    pub(crate) fn framebuffer(&self, size: Size) -> Result<(), Problem> {
        if size.rect().is_empty() {
            return Err(value("the framebuffer's shorter side", 0, "a size with pixels"));
        }
        limit("the framebuffer's longer side", size.w.max(size.h).into(), self.side.into())?;
        limit("pixels of the framebuffer", size.rect().area(), self.pixels)
    }

    /// What one update may paint: eight times the framebuffer, and some for small ones. A server that keeps to the protocol
    /// paints each pixel once or twice.
    pub(crate) fn painting(size: Size) -> u64 {
        8 * size.rect().area() + (1 << 20)
    }

    /// What one rectangle of that many pixels may take when compressed: what it takes uncompressed, a sixteenth and some.
    pub(crate) fn compressed(raw: u64) -> u64 {
        raw + raw / 16 + (64 << 10)
    }
}

/// Pixels of one JPEG or PNG picture: a screen of 3840x2160. Their decoders hold several bytes for each.
pub(crate) const PICTURE_PIXELS: u64 = 1 << 23;
