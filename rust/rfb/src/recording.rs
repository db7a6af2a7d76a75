//! Recordings of what a server sent, to be replayed without it.

use imaging::Size;

use crate::encoding::Encoding;
use crate::input::Fields;
use crate::pixel::PixelFormat;

/// What a server sent after its description of itself, and what the client had offered.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording<'a> {
    /// The framebuffer's size at the beginning.
    pub size: Size,
    /// The form of pixels.
    pub format: PixelFormat,
    /// What was offered.
    pub encodings: Vec<Encoding>,
    /// The bytes, as they came.
    pub pieces: Vec<Piece<'a>>,
}

/// Bytes that came at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Piece<'a> {
    /// When they came, in seconds since the recording began.
    pub at: f64,
    /// The bytes.
    pub bytes: &'a [u8],
}

/// Why a file cannot be played.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotARecording {
    /// It has another form.
    #[error("not a recording: {0}")]
    Form(&'static str),
    /// The server was asked for pixels in an encoding that has no decoder here.
    #[error("the recording has pixels in encoding {0}, which this version does not decode: record the server again")]
    Encoding(i32),
}

/// The first word of a file with times.
const MAGIC: &str = "rfb-recording-2";

/// The first word of a file without.
const UNTIMED: &str = "rfb-recording";

/// Bytes before each piece: microseconds in eight, the length in four.
const HEAD: usize = 12;

impl<'a> Recording<'a> {
    /// Reads a file: a line of `rfb-recording-2`, width, height, the format's 16 bytes in hexadecimal, and the numbers of the
    /// encodings with commas between them; then the pieces, each after its time in microseconds (64 bits) and its length (32
    /// bits, both big-endian). What was cut off within a piece is read as far as it goes.
    ///
    /// After `rfb-recording` there are no times, and the bytes follow the line as they are.
    ///
    /// # Errors
    /// When the line is not such a line.
    pub fn parse(file: &'a [u8]) -> Result<Self, NotARecording> {
        use NotARecording::Form;
        let end = file.iter().take(4096).position(|byte| *byte == b'\n').ok_or(Form("it has no first line"))?;
        let line = std::str::from_utf8(&file[..end]).map_err(|_| Form("its first line is not text"))?;
        let [magic @ (MAGIC | UNTIMED), width, height, format, encodings] = line.split(' ').collect::<Vec<_>>()[..]
        else {
            return Err(Form("its first line does not begin with `rfb-recording` and four fields"));
        };
        let side = |text: &str| text.parse().map_err(|_| Form("its width or height is not a number"));
        let numbers: Result<Vec<i32>, _> = encodings.split(',').map(str::parse).collect();
        let numbers = numbers.map_err(|_| Form("its encodings are not numbers"))?;
        let stream = &file[end + 1..];
        Ok(Self {
            size: Size { w: side(width)?, h: side(height)? },
            format: PixelFormat::parse(bytes(format).ok_or(Form("its format is not 16 bytes in hexadecimal"))?),
            // Extensions that earlier versions offered are skipped in the stream too.
            encodings: (numbers.into_iter().filter(|number| *number >= 0 || Encoding::of(*number).is_some()))
                .map(|number| Encoding::of(number).ok_or(NotARecording::Encoding(number)))
                .collect::<Result<_, _>>()?,
            pieces: if magic == MAGIC { timed(stream) } else { vec![Piece { at: 0.0, bytes: stream }] },
        })
    }

    /// All the bytes.
    #[must_use]
    pub fn stream(&self) -> Vec<u8> {
        self.pieces.iter().flat_map(|piece| piece.bytes).copied().collect()
    }

    /// The first line of a file with times.
    #[must_use]
    pub fn line(size: Size, format: &PixelFormat, encodings: &[Encoding]) -> String {
        let format = format!("{:032x}", u128::from_be_bytes(format.to_bytes()));
        let numbers: Vec<String> = encodings.iter().map(|encoding| encoding.number().to_string()).collect();
        format!("{MAGIC} {} {} {format} {}\n", size.w, size.h, numbers.join(","))
    }
}

impl Piece<'_> {
    /// What stands before its bytes in a file.
    #[must_use]
    pub fn head(&self) -> [u8; HEAD] {
        let mut head = [0; HEAD];
        head[..8].copy_from_slice(&((self.at * 1e6) as u64).to_be_bytes());
        head[8..].copy_from_slice(&(self.bytes.len() as u32).to_be_bytes());
        head
    }
}

fn timed(mut stream: &[u8]) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    while let Some((head, rest)) = stream.split_at_checked(HEAD) {
        let mut fields = Fields(head);
        let micros = u64::from(fields.u32()) << 32 | u64::from(fields.u32());
        let (bytes, rest) = rest.split_at((fields.u32() as usize).min(rest.len()));
        pieces.push(Piece { at: micros as f64 / 1e6, bytes });
        stream = rest;
    }
    pieces
}

fn bytes(hex: &str) -> Option<[u8; 16]> {
    let pairs: Option<Vec<u8>> =
        (0..16).map(|i| hex.get(2 * i..2 * i + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok())).collect();
    pairs?.try_into().ok().filter(|_| hex.len() == 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Size = Size { w: 3, h: 2 };

    #[test]
    fn what_was_written_can_be_read_again() {
        let encodings = vec![Encoding::Zrle, Encoding::Quality(3), Encoding::Clipboard, Encoding::Fence];
        let line = Recording::line(SIZE, &PixelFormat::BGRX, &encodings);
        let pieces =
            vec![Piece { at: 0.0, bytes: b"" }, Piece { at: 0.25, bytes: b"\n bytes" }, Piece { at: 5e3, bytes: b"!" }];
        let mut file = line.clone().into_bytes();
        for piece in &pieces {
            file.extend(piece.head());
            file.extend(piece.bytes);
        }
        let recording = Recording { size: SIZE, format: PixelFormat::BGRX, encodings, pieces };
        assert_eq!(Recording::parse(&file).as_ref(), Ok(&recording));
        assert_eq!(recording.stream(), b"\n bytes!");
        let bytes = |len: usize| Recording::parse(&file[..len]).map(|read| read.stream().len());
        for cut in line.len()..file.len() {
            let ends = [line.len() + 2 * HEAD, line.len() + 2 * HEAD + 7];
            assert_eq!(bytes(cut), Ok(cut.clamp(ends[0], ends[1]) - ends[0]), "{cut}");
        }
    }

    #[test]
    fn files_without_times_are_one_piece() {
        let line = Recording::line(SIZE, &PixelFormat::BGRX, &[Encoding::Raw]).replace(MAGIC, UNTIMED);
        let file = [line.as_bytes(), b"\n bytes"].concat();
        assert_eq!(Recording::parse(&file).unwrap().pieces, [Piece { at: 0.0, bytes: b"\n bytes" }]);
    }

    #[test]
    fn other_files_are_refused() {
        for wrong in [
            "",
            "rfb-recording 3 2\n",
            "rfb-recording 3 2 zz 0\n",
            "rfb-recording-2 3 -2 00 0\n",
            "rfb-recording-3 3 2 00 0\n",
            "rfb-recording-2 3 2 2018000100ff00ff00ff100800000000 0,x\n",
        ] {
            assert!(matches!(Recording::parse(wrong.as_bytes()), Err(NotARecording::Form(_))), "{wrong}");
        }
    }

    #[test]
    fn what_earlier_versions_offered_is_left_out_or_named() {
        let offering =
            |numbers: &str| format!("rfb-recording-2 3 2 2018000100ff00ff00ff100800000000 {numbers}\n").into_bytes();
        let extension = offering("0,-258,-223");
        assert_eq!(Recording::parse(&extension).unwrap().encodings, [Encoding::Raw, Encoding::DesktopSize]);
        let error = Recording::parse(&offering("1,2,-223")).unwrap_err();
        assert_eq!(error, NotARecording::Encoding(2));
        assert!(error.to_string().starts_with("the recording has pixels in encoding 2,"), "{error}");
    }
}
