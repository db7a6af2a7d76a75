//! Recordings of what a server sent, to be replayed without it.

use imaging::Size;

use crate::encoding::Encoding;
use crate::pixel::PixelFormat;

/// What a server sent after its description of itself, and what it had been asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording<'a> {
    /// The framebuffer's size at the beginning.
    pub size: Size,
    /// The form of pixels.
    pub format: PixelFormat,
    /// What was offered.
    pub encodings: Vec<Encoding>,
    /// The bytes.
    pub stream: &'a [u8],
}

/// Why a file is not a recording.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a recording: {0}")]
pub struct NotARecording(&'static str);

const MAGIC: &str = "rfb-recording";

impl<'a> Recording<'a> {
    /// Reads a file: a line of `rfb-recording`, width, height, the format's 16 bytes in hexadecimal, and the numbers of the
    /// encodings with commas between them; then the bytes.
    ///
    /// # Errors
    /// When the line is not such a line.
    pub fn parse(file: &'a [u8]) -> Result<Self, NotARecording> {
        let end =
            file.iter().take(4096).position(|byte| *byte == b'\n').ok_or(NotARecording("it has no first line"))?;
        let line = std::str::from_utf8(&file[..end]).map_err(|_| NotARecording("its first line is not text"))?;
        let [MAGIC, width, height, format, encodings] = line.split(' ').collect::<Vec<_>>()[..] else {
            return Err(NotARecording("its first line does not begin with `rfb-recording` and four fields"));
        };
        let side = |text: &str| text.parse().map_err(|_| NotARecording("its width or height is not a number"));
        let number = |text: &str| text.parse().ok().and_then(Encoding::of);
        let encodings = encodings.split(',').map(number).collect::<Option<_>>();
        Ok(Self {
            size: Size { w: side(width)?, h: side(height)? },
            format: PixelFormat::parse(
                bytes(format).ok_or(NotARecording("its format is not 16 bytes in hexadecimal"))?,
            ),
            encodings: encodings.ok_or(NotARecording("it has an encoding that is not known"))?,
            stream: &file[end + 1..],
        })
    }

    /// The file's first line.
    #[must_use]
    pub fn line(&self) -> String {
        let format = format!("{:032x}", u128::from_be_bytes(self.format.to_bytes()));
        let numbers: Vec<String> = self.encodings.iter().map(|encoding| encoding.number().to_string()).collect();
        format!("{MAGIC} {} {} {format} {}\n", self.size.w, self.size.h, numbers.join(","))
    }
}

fn bytes(hex: &str) -> Option<[u8; 16]> {
    let pairs: Option<Vec<u8>> =
        (0..16).map(|i| hex.get(2 * i..2 * i + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok())).collect();
    pairs?.try_into().ok().filter(|_| hex.len() == 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_can_be_read_again() {
        let encodings = vec![Encoding::Zrle, Encoding::Quality(3), Encoding::Clipboard, Encoding::Fence];
        let recording =
            Recording { size: Size { w: 3, h: 2 }, format: PixelFormat::BGRX, encodings, stream: b"\n bytes" };
        let file = [recording.line().as_bytes(), recording.stream].concat();
        assert_eq!(Recording::parse(&file), Ok(recording));
        for wrong in ["", "rfb-recording 3 2\n", "rfb-recording 3 2 zz 0\n", "rfb-recording 3 -2 00 0\n"] {
            assert!(Recording::parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
