//! Rectangles of pseudo-encodings that were not offered: how long they are, so that what comes after them can be read.
//!
//! The rule: skipped is only what has a known length (rfbproto; libvncserver for its own), and what changes nothing in how the rest
//! is read. A size, a form of pixels or an end of the update that was not offered is a violation.

use imaging::Rect;

use crate::cursor;
use crate::encoding::Encoding;
use crate::input::Input;
use crate::limits::Limits;
use crate::pixel::Unpacker;
use crate::violation::{Problem, limit, value};

const QEMU_POINTER_MOTION: i32 = -257;
const QEMU_KEY: i32 = -258;
const QEMU_AUDIO: i32 = -259;
/// A cursor in two colours.
const X_CURSOR: i32 = -240;
const VMWARE_CURSOR: i32 = 0x574D_5664;
const VMWARE_CURSOR_STATE: i32 = 0x574D_5665;
const VMWARE_KEY_REPEAT: i32 = 0x574D_5667;
const VMWARE_LEDS: i32 = 0x574D_5668;
const VMWARE_MACHINE_STATE: i32 = 0x574D_566A;
/// libvncserver's lights of the keyboard, which are in the rectangle's place.
const LIBVNC_LEDS: i32 = 0xFFFE_0000_u32 as i32;
/// libvncserver's messages and encodings, and its name: the rectangle's width is their length in bytes.
const LIBVNC_MESSAGES: i32 = 0xFFFE_0001_u32 as i32;
const LIBVNC_NAME: i32 = 0xFFFE_0003_u32 as i32;

/// What follows the header of a rectangle that is skipped.
pub(crate) enum Skipped {
    /// So many bytes.
    Bytes(u64),
    /// The length of a text, and the text.
    Text,
    /// The number of an encoding, and so many pixels in it.
    AlphaCursor(u64),
    /// The kind of a cursor, and its data: bytes of the one kind and of the other.
    VmwareCursor { classic: u64, alpha: u64 },
}

impl Skipped {
    /// What is to be skipped of a rectangle; `None` where that is not known, or must not be.
    pub(crate) fn of(number: i32, rect: Rect, pixel: &Unpacker) -> Option<Self> {
        let area = rect.area();
        let bytes = match number {
            QEMU_POINTER_MOTION | QEMU_KEY | QEMU_AUDIO | LIBVNC_LEDS => 0,
            VMWARE_CURSOR_STATE | VMWARE_MACHINE_STATE => 2,
            VMWARE_LEDS => 4,
            VMWARE_KEY_REPEAT => 10,
            X_CURSOR if rect.is_empty() => 0,
            X_CURSOR => 6 + 2 * cursor::mask(rect),
            LIBVNC_MESSAGES..=LIBVNC_NAME => rect.w.into(),
            VMWARE_CURSOR => {
                return Some(Self::VmwareCursor { classic: 2 * area * pixel.bytes() as u64, alpha: 4 * area });
            }
            _ => match Encoding::of(number)? {
                Encoding::MouseButtons | Encoding::PointerPos | Encoding::CursorPosition => 0,
                Encoding::QemuLeds => 1,
                Encoding::DesktopName => return Some(Self::Text),
                Encoding::CursorWithAlpha => return Some(Self::AlphaCursor(area)),
                Encoding::Cursor => cursor::length(Encoding::Cursor, rect, pixel),
                _ => return None,
            },
        };
        Some(Self::Bytes(bytes))
    }

    /// Skips what is here; returns whether that was all.
    pub(crate) fn step(&mut self, input: &mut Input, limits: &Limits) -> Result<bool, Problem> {
        if let Some(bytes) = self.learn(input)? {
            limit("bytes of a rectangle that was not asked for", bytes, limits.skipped)?;
            *self = Self::Bytes(bytes);
        }
        let Self::Bytes(left) = self else {
            return Ok(false);
        };
        *left -= input.skip(*left);
        Ok(*left == 0)
    }

    /// How many bytes are left, as soon as that is here.
    fn learn(&self, input: &mut Input) -> Result<Option<u64>, Problem> {
        Ok(match *self {
            Self::Bytes(left) => Some(left),
            Self::Text => input.array().map(u32::from_be_bytes).map(u64::from),
            Self::AlphaCursor(pixels) => match input.array().map(i32::from_be_bytes) {
                Some(inner) if inner != Encoding::Raw.number() => {
                    return Err(value("the encoding of a cursor with transparency", inner, "0, which is Raw"));
                }
                inner => inner.map(|_| 4 * pixels),
            },
            Self::VmwareCursor { classic, alpha } => match input.array() {
                Some([0, _]) => Some(classic),
                Some([1, _]) => Some(alpha),
                Some([kind, _]) => return Err(value("the kind of a cursor", kind, "0 or 1")),
                None => None,
            },
        })
    }
}
