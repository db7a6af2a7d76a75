//! One strip of a picture as an IDAT chunk of its own.
//!
//! The rule: a strip is ended by a full flush and refers to nothing before it, so that the chunks of any strips, in order, make
//! one zlib stream (RFC 1950 §2.2) which PNG lets us split over IDAT chunks at will (PNG §10.1).

use std::sync::Arc;

use zlib_rs::adler32::adler32;
use zlib_rs::crc32::crc32;
use zlib_rs::{Deflate, DeflateFlush, Status};

use crate::deflate::deflate;
use crate::error::ImagingError;
use crate::filter::{Filter, Method};
use crate::matches::{Finder, Token, zeros};
use crate::view::{Band, Picture, RGB, Validity};

/// For strips that stay: 4 ms each.
const TIGHT_LEVEL: i32 = 9;

/// Changes that follow one another within so many seconds, a few times in a row, are a video's.
const VIDEO_GAP: f64 = 0.1;
const VIDEO_CHANGES: u8 = 3;

/// Every row starts with its filter's number.
pub(crate) const FILTER_BYTE: usize = 1;

/// A strip that was deflated, and what is needed to know whether it still holds.
#[derive(Clone, Debug)]
pub(crate) struct Strip {
    pub validity: Validity,
    /// A whole IDAT chunk.
    pub chunk: Arc<[u8]>,
    /// Of what was deflated: the filtered rows.
    pub adler: u32,
    pub raw_len: u64,
    /// Whether deflating it again could not make it smaller.
    pub tight: bool,
    /// Of how many files it was a part.
    pub files: u32,
    pub pace: Pace,
}

/// How fast the looks at a strip find it changed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    /// When the picture had changed, in seconds.
    at: f64,
    /// Changes in a row that came soon after one another.
    soon: u8,
}

impl Pace {
    pub(crate) fn next(self, at: f64) -> Self {
        Self { at, soon: if at - self.at < VIDEO_GAP { self.soon.saturating_add(1) } else { 0 } }
    }

    fn is_video(self) -> bool {
        self.soon >= VIDEO_CHANGES
    }
}

/// A PNG chunk: length, kind, data, and the CRC of kind and data (PNG §5.3).
pub(crate) fn chunk(kind: [u8; 4], data: &[u8]) -> Vec<u8> {
    let mut chunk = Vec::with_capacity(data.len() + 12);
    chunk.extend_from_slice(&(data.len() as u32).to_be_bytes());
    chunk.extend_from_slice(&kind);
    chunk.extend_from_slice(data);
    chunk.extend_from_slice(&crc32(0, &chunk[4..]).to_be_bytes());
    chunk
}

/// Buffers, for as many strips as one thread makes in a row.
#[derive(Default)]
pub(crate) struct Worker {
    finder: Finder,
    runs: Vec<Token>,
    raw: Vec<u8>,
    filtered: Vec<u8>,
    packed: Vec<u8>,
}

impl Worker {
    /// Makes a strip of rows of indices into a palette, `row_len` bytes each.
    pub(crate) fn indexed(&mut self, rows: &[u8], row_len: usize, validity: Validity) -> Strip {
        let packed = deflate(rows, self.finder.tokens::<1>(rows, row_len), &mut self.packed);
        Strip::new(validity, rows, packed, true)
    }

    /// Makes a strip of a picture. Of a video, that the next file is soon there matters more than that this one is small.
    pub(crate) fn strip(
        &mut self,
        picture: &Picture<'_>,
        band: &Band<'_>,
        i: u32,
        validity: Validity,
        pace: Pace,
    ) -> Strip {
        self.raw.resize(picture.strip_len(i, FILTER_BYTE), 0);
        picture.fill(band, i, FILTER_BYTE, &mut self.raw);
        let row_len = picture.row_len(FILTER_BYTE);
        let method = Method::of(&self.raw, row_len);
        let rows = method.filter.rows(&self.raw, row_len, &mut self.filtered);
        let tokens = if method.filter != Filter::None && (!method.matches || pace.is_video()) {
            zeros(rows, &mut self.runs);
            &self.runs
        } else if method.matches {
            self.finder.tokens::<RGB>(rows, row_len)
        } else {
            &[Token::Literals(rows.len() as u32)][..]
        };
        let packed = deflate(rows, tokens, &mut self.packed);
        Strip { pace, ..Strip::new(validity, rows, packed, !method.matches) }
    }
}

impl Strip {
    fn new(validity: Validity, rows: &[u8], packed: &[u8], tight: bool) -> Self {
        Self {
            validity,
            chunk: chunk(*b"IDAT", packed).into(),
            adler: adler32(1, rows),
            raw_len: rows.len() as u64,
            tight,
            files: 0,
            pace: Pace::default(),
        }
    }

    /// Deflates again, as small as it gets, the `raw` rows that `self` was made of.
    pub(crate) fn tightened(&self, raw: &[u8], row_len: usize) -> Result<Self, ImagingError> {
        let (mut filtered, mut packed) = (Vec::new(), Vec::new());
        let rows = Method::of(raw, row_len).filter.rows(raw, row_len, &mut filtered);
        let packed = pack(&mut Deflate::new(TIGHT_LEVEL, false, 15), rows, &mut packed)?;
        let strip = Self::new(self.validity, rows, packed, true);
        Ok(if strip.chunk.len() < self.chunk.len() { strip } else { Self { tight: true, ..self.clone() } })
    }
}

impl Filter {
    /// The filtered rows: `raw` itself, where nothing is to be done.
    fn rows<'a>(self, raw: &'a [u8], row_len: usize, out: &'a mut Vec<u8>) -> &'a [u8] {
        if self == Self::None {
            return raw;
        }
        self.apply(raw, row_len, out);
        out
    }
}

/// Deflates `rows` into `packed`, and returns the part of it that was needed.
fn pack<'a>(deflate: &mut Deflate, rows: &[u8], packed: &'a mut Vec<u8>) -> Result<&'a [u8], ImagingError> {
    packed.resize(packed.len().max(zlib_rs::compress_bound(rows.len())), 0);
    loop {
        let (read, written) = (deflate.total_in() as usize, deflate.total_out() as usize);
        let status = deflate
            .compress(&rows[read..], &mut packed[written..], DeflateFlush::FullFlush)
            .map_err(|error| ImagingError::Deflate { len: rows.len(), reason: error.as_str() })?;
        let written = deflate.total_out() as usize;
        // A flush is complete only when it left room in the buffer.
        if matches!(status, Status::BufError) || written < packed.len() {
            return Ok(&packed[..written]);
        }
        packed.resize(packed.len() * 2, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_video(changes: impl IntoIterator<Item = f64>) -> bool {
        changes.into_iter().fold(Pace::default(), Pace::next).is_video()
    }

    #[test]
    fn a_video_is_told_from_somebody_who_acts() {
        let times = |period: f64| (1..20).map(move |i| 50.0 + f64::from(i) * period);
        assert!(is_video(times(1.0 / 30.0)));
        assert!(!is_video(times(0.12)));
        assert!(!is_video(times(1.0 / 30.0).take(3)));
        assert!(!is_video(times(1.0 / 30.0).chain([60.0])));
    }
}
