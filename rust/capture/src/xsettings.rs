//! The desktop's settings that say which clicks count together (the XSETTINGS protocol, as a settings daemon publishes it).

use x11rb::protocol::xproto::{AtomEnum, ConnectionExt as _};

use crate::error::{Error, Result};
use crate::replies;
use crate::server::Server;
use crate::windows::gone;

const DOUBLE_CLICK_TIME: &[u8] = b"Net/DoubleClickTime";
/// 64 KiB; a settings daemon publishes some hundred settings.
const MAX_WORDS: u32 = 1 << 14;
const INTEGER: u8 = 0;
const STRING: u8 = 1;
const COLOUR: u8 = 2;

impl Server {
    /// Milliseconds within which two clicks are a double click, where the desktop publishes it.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Lost`] or [`crate::Error::Interrupted`].
    pub fn double_click_time(&self) -> Result<Option<u32>> {
        let owner = self.conn.get_selection_owner(self.atoms._XSETTINGS_S0)?.reply()?.owner;
        if owner == x11rb::NONE {
            return Ok(None);
        }
        let property = self.atoms._XSETTINGS_SETTINGS;
        let value = self.conn.get_property(false, owner, property, AtomEnum::ANY, 0, MAX_WORDS)?.reply();
        let value = gone(value.map_err(Error::from))?.map(|reply| replies::at_most(reply.value, 4 * MAX_WORDS));
        Ok(value.and_then(|value| integer(&value, DOUBLE_CLICK_TIME)).and_then(|time| u32::try_from(time).ok()))
    }
}

/// Reads numbers of one byte order from another client's data.
struct Reader<'a> {
    rest: &'a [u8],
    big: bool,
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    fn word(&mut self) -> Option<u32> {
        let bytes = self.take(4)?.try_into().ok()?;
        Some(if self.big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    fn half(&mut self) -> Option<u16> {
        let bytes = self.take(2)?.try_into().ok()?;
        Some(if self.big { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
    }

    /// Bytes, and what fills them up to a whole number of words.
    fn padded(&mut self, count: usize) -> Option<&'a [u8]> {
        let padded = self.take(count.checked_next_multiple_of(4)?)?;
        Some(&padded[..count])
    }
}

/// The integer of that name among settings as they are published; `None` where there is none, or they are malformed.
fn integer(settings: &[u8], wanted: &[u8]) -> Option<i32> {
    let (order, rest) = settings.split_first()?;
    let mut reader = Reader { rest, big: *order != 0 };
    reader.take(3)?;
    let (_serial, count) = (reader.word()?, reader.word()?);
    for _ in 0..count {
        let kind = reader.take(2)?[0];
        let length = reader.half()?;
        let name = reader.padded(length.into())?;
        let _changed = reader.word()?;
        match kind {
            INTEGER => {
                let value = reader.word()?;
                if name == wanted {
                    return Some(value.cast_signed());
                }
            }
            STRING => {
                let length = reader.word()?;
                reader.padded(usize::try_from(length).ok()?)?;
            }
            COLOUR => drop(reader.take(8)?),
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(kind: u8, name: &[u8], value: &[u8], big: bool) -> Vec<u8> {
        let length = u16::try_from(name.len()).unwrap();
        let mut bytes = vec![kind, 0];
        bytes.extend(if big { length.to_be_bytes() } else { length.to_le_bytes() });
        bytes.extend(name);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes.extend([0; 4]);
        bytes.extend(value);
        bytes
    }

    fn published(big: bool) -> Vec<u8> {
        let word = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
        let mut bytes = vec![u8::from(big), 0, 0, 0];
        bytes.extend(word(7));
        bytes.extend(word(3));
        let text = [&word(5)[..], b"Adwai\0\0\0"].concat();
        bytes.extend(setting(STRING, b"Net/ThemeName", &text, big));
        bytes.extend(setting(COLOUR, b"Some/Colour", &[1; 8], big));
        bytes.extend(setting(INTEGER, DOUBLE_CLICK_TIME, &word(900), big));
        bytes
    }

    #[test]
    fn an_integer_is_found_in_either_byte_order() {
        for big in [false, true] {
            assert_eq!(integer(&published(big), DOUBLE_CLICK_TIME), Some(900));
            assert_eq!(integer(&published(big), b"Net/ThemeName"), None);
        }
    }

    #[test]
    fn malformed_settings_have_none() {
        let whole = published(false);
        for length in 0..whole.len() {
            assert_eq!(integer(&whole[..length], DOUBLE_CLICK_TIME), None);
        }
        let mut endless = whole.clone();
        endless[8..12].fill(0xff);
        assert_eq!(integer(&endless, b"Net/Nothing"), None);
        let mut unknown = whole;
        unknown[12] = 9;
        assert_eq!(integer(&unknown, DOUBLE_CLICK_TIME), None);
    }
}
