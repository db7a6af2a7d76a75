//! The extended clipboard (rfbproto, "Extended Clipboard Pseudo-Encoding").
//!
//! The rule: what comes is untrusted and may be deflated a thousandfold; it is inflated only as far as the limit.

use crate::inflate::Inflater;
use crate::input::Fields;
use crate::violation::{Problem, value};

pub(crate) const CAPS: u32 = 1 << 24;
pub(crate) const REQUEST: u32 = 1 << 25;
pub(crate) const PEEK: u32 = 1 << 26;
pub(crate) const NOTIFY: u32 = 1 << 27;
pub(crate) const PROVIDE: u32 = 1 << 28;

const DATA: &str = "clipboard data";

/// A set of clipboard formats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Formats(pub u16);

impl Formats {
    /// UTF-8 text.
    pub const TEXT: Self = Self(1);
    /// Rich Text Format.
    pub const RTF: Self = Self(2);
    /// HTML, as Microsoft wraps it.
    pub const HTML: Self = Self(4);
    /// A device-independent bitmap.
    pub const DIB: Self = Self(8);
    /// Files.
    pub const FILES: Self = Self(16);

    /// Whether all of the other's formats are among these.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    fn each(self) -> impl Iterator<Item = Self> {
        (0..16).map(|bit| Self(1 << bit)).filter(move |one| self.contains(*one))
    }
}

/// What the other side of the clipboard can do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is an action of its own")]
pub struct Offered {
    /// Formats, each with the most bytes of it that it accepts without a request.
    pub formats: Vec<(Formats, u32)>,
    /// Whether it answers requests.
    pub request: bool,
    /// Whether it answers a peek with its formats.
    pub peek: bool,
    /// Whether it handles announcements of formats.
    pub notify: bool,
    /// Whether it takes data.
    pub provide: bool,
}

/// A message of the extended clipboard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Clipboard {
    /// What the server can do. This client has answered with its own features.
    Caps(Offered),
    /// The server wants this client's content in these formats.
    Request(Formats),
    /// The server wants to know which formats this client has.
    Peek,
    /// The server has these formats.
    Notify(Formats),
    /// What the server has.
    Provide {
        /// Each format with its data.
        parts: Vec<(Formats, Vec<u8>)>,
        /// Whether something was left out because it was too long.
        truncated: bool,
    },
}

impl Clipboard {
    /// The text provided: without the final NUL, and with newlines for line ends.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        let Self::Provide { parts, .. } = self else {
            return None;
        };
        let (_, text) = parts.iter().find(|(format, _)| *format == Formats::TEXT)?;
        let text = String::from_utf8_lossy(text);
        Some(text.split('\0').next().unwrap_or_default().replace("\r\n", "\n"))
    }

    /// Reads a message of at least four bytes of which at most the end is missing.
    ///
    /// # Errors
    /// When it is not such a message.
    pub(crate) fn parse(message: &[u8], truncated: bool, room: usize) -> Result<Self, Problem> {
        let mut fields = Fields(message);
        let flags = fields.u32();
        let formats = Formats(flags as u16);
        if flags & CAPS != 0 {
            let has = |action: u32| flags & action != 0;
            let needed = 4 * formats.each().count();
            if fields.0.len() < needed {
                return Err(value("bytes of clipboard sizes", fields.0.len() as i64, "4 for each format"));
            }
            return Ok(Self::Caps(Offered {
                formats: formats.each().map(|format| (format, fields.u32())).collect(),
                request: has(REQUEST),
                peek: has(PEEK),
                notify: has(NOTIFY),
                provide: has(PROVIDE),
            }));
        }
        match flags >> 24 << 24 {
            REQUEST => Ok(Self::Request(formats)),
            PEEK => Ok(Self::Peek),
            NOTIFY => Ok(Self::Notify(formats)),
            PROVIDE => provided(formats, fields.0, truncated, room),
            _ => Err(value("the action of a clipboard message", flags >> 24, "1, 2, 4, 8 or 16")),
        }
    }
}

fn provided(formats: Formats, mut deflated: &[u8], truncated: bool, room: usize) -> Result<Clipboard, Problem> {
    let mut stream = Inflater::default();
    let (mut left, mut cut, mut parts) = (room, truncated, Vec::new());
    let mut read = |len: usize| -> Result<Vec<u8>, Problem> {
        let mut bytes = vec![0; len];
        let mut filled = 0;
        while filled < len {
            let (read, written) = stream.run(DATA, deflated, &mut bytes[filled..])?;
            (deflated, filled) = (&deflated[read..], filled + written);
            if read == 0 && written == 0 {
                break;
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    };
    for format in formats.each() {
        let Ok(size) = <[u8; 4]>::try_from(read(4)?) else {
            cut = true;
            break;
        };
        let size = u32::from_be_bytes(size) as usize;
        // What is announced takes memory only as far as it is there, piece by piece.
        let mut bytes = Vec::new();
        while bytes.len() < size.min(left) {
            let piece = read((size.min(left) - bytes.len()).min(PIECE))?;
            if piece.is_empty() {
                break;
            }
            bytes.extend(piece);
        }
        left -= bytes.len();
        let complete = bytes.len() == size;
        parts.push((format, bytes));
        if !complete {
            cut = true;
            break;
        }
    }
    Ok(Clipboard::Provide { parts, truncated: cut })
}

/// Bytes inflated at a time.
const PIECE: usize = 64 << 10;
