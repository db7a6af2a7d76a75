//! Which encodings are offered to a server, and in which order.

use rfb::Encoding;

/// What is offered, the best first. No JPEG: a picture must show what the screen shows.
///
/// The extended clipboard is for servers with fences: libvncserver accepts its messages without setting a clipboard, and with
/// those clients it does not use the old ones.
#[must_use]
pub fn encodings(local: bool, fences: bool) -> Vec<Encoding> {
    use Encoding::{CopyRect, Hextile, Raw, Tight, Zlib, Zrle};
    let pixels: &[Encoding] = if local { &[CopyRect, Raw] } else { &[CopyRect, Tight, Zrle, Hextile, Zlib, Raw] };
    let clipboard: &[Encoding] = if fences { &[Encoding::Clipboard] } else { &[] };
    let extensions = [
        Encoding::CursorWithAlpha,
        Encoding::Cursor,
        Encoding::DesktopSize,
        Encoding::ExtendedDesktopSize,
        Encoding::LastRect,
        Encoding::Fence,
        Encoding::ContinuousUpdates,
        Encoding::MouseButtons,
        Encoding::PointerPos,
        Encoding::CursorPosition,
        Encoding::QemuLeds,
    ];
    [pixels, &extensions, clipboard].concat()
}
