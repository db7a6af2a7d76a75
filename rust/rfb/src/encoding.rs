//! The encodings that this client can offer (RFC 6143 §7.7, §7.8, and the registry of rfbproto).

/// An encoding, or an extension that is offered as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Encoding {
    /// Pixels as they are.
    Raw,
    /// A copy within the framebuffer.
    CopyRect,
    /// Tiles of 16x16 pixels.
    Hextile,
    /// Raw pixels, deflated.
    Zlib,
    /// Palettes, gradients and fills, deflated. Lossless, unless [`Encoding::Quality`] is offered too.
    Tight,
    /// Tiles of 64x64 pixels, deflated.
    Zrle,
    /// JPEG quality 0 to 9: lets Tight use JPEG.
    Quality(u8),
    /// How hard the server is to compress: 0 to 9.
    Compression(u8),
    /// The framebuffer may change its size.
    DesktopSize,
    /// The same with the layout of monitors; [`client::set_desktop_size`](crate::client::set_desktop_size) works only then.
    ExtendedDesktopSize,
    /// An update may end before its announced number of rectangles.
    LastRect,
    /// The cursor's image, with a mask.
    Cursor,
    /// The cursor's image, with transparency.
    CursorWithAlpha,
    /// The desktop's name may change.
    DesktopName,
    /// Marks in the stream that the other side sends back.
    Fence,
    /// Updates that come without being asked for.
    ContinuousUpdates,
    /// The lock keys' lights.
    QemuLeds,
    /// Mouse buttons 8 and 9.
    MouseButtons,
    /// Where the pointer is when another client has moved it, as libvncserver reports it.
    PointerPos,
    /// The same, as `VMware` and `TigerVNC` report it: where a program at the server has put it.
    CursorPosition,
    /// Clipboard formats beyond Latin-1 text.
    Clipboard,
}

impl Encoding {
    /// The number on the wire.
    #[must_use]
    pub const fn number(self) -> i32 {
        match self {
            Self::Raw => 0,
            Self::CopyRect => 1,
            Self::Hextile => 5,
            Self::Zlib => 6,
            Self::Tight => 7,
            Self::Zrle => 16,
            Self::Quality(level) => -32 + if level > 9 { 9 } else { level as i32 },
            Self::Compression(level) => -256 + if level > 9 { 9 } else { level as i32 },
            Self::DesktopSize => -223,
            Self::LastRect => -224,
            Self::Cursor => -239,
            Self::QemuLeds => -261,
            Self::DesktopName => -307,
            Self::ExtendedDesktopSize => -308,
            Self::Fence => -312,
            Self::ContinuousUpdates => -313,
            Self::CursorWithAlpha => -314,
            Self::MouseButtons => -316,
            Self::PointerPos => -232,
            Self::CursorPosition => 0x574D_5666,
            Self::Clipboard => 0xC0A1_E5CE_u32 as i32,
        }
    }

    /// The encoding of a number; `None` for those that are not known here.
    #[must_use]
    pub const fn of(number: i32) -> Option<Self> {
        const CLIPBOARD: i32 = Encoding::Clipboard.number();
        Some(match number {
            0 => Self::Raw,
            1 => Self::CopyRect,
            5 => Self::Hextile,
            6 => Self::Zlib,
            7 => Self::Tight,
            16 => Self::Zrle,
            -32..=-23 => Self::Quality((number + 32) as u8),
            -256..=-247 => Self::Compression((number + 256) as u8),
            -223 => Self::DesktopSize,
            -224 => Self::LastRect,
            -239 => Self::Cursor,
            -261 => Self::QemuLeds,
            -307 => Self::DesktopName,
            -308 => Self::ExtendedDesktopSize,
            -312 => Self::Fence,
            -313 => Self::ContinuousUpdates,
            -314 => Self::CursorWithAlpha,
            -316 => Self::MouseButtons,
            -232 => Self::PointerPos,
            0x574D_5666 => Self::CursorPosition,
            CLIPBOARD => Self::Clipboard,
            _ => return None,
        })
    }

    /// Whether it can stand in a rectangle. The others are offers only.
    pub(crate) const fn is_of_rectangles(self) -> bool {
        !matches!(
            self,
            Self::Quality(_) | Self::Compression(_) | Self::Fence | Self::ContinuousUpdates | Self::Clipboard
        )
    }
}
