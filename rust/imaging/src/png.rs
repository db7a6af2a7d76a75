//! PNG files whose parts outlive a change of the others.
//!
//! The rule: a file is a header, the chunks of its [strips](crate::strip) in order, an empty last block and the Adler-32 combined
//! from the strips' own. A strip is made again when its [`Validity`] differs and never otherwise: nothing is ever invalidated.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use zlib_rs::adler32::{adler32, adler32_combine};

use crate::error::ImagingError;
use crate::geometry::Size;
use crate::indexed::Indexed;
use crate::strip::{FILTER_BYTE, Pace, Strip, Worker, chunk};
use crate::threads::each;
use crate::view::{Picture, STRIP_ROWS, Stamp, Target, Validity};

/// `DEFLATE`, a 32 kB window, "fast" level, and the check bits that make it a multiple of 31 (RFC 1950 §2.2).
const ZLIB_HEADER: [u8; 2] = [0x78, 0x5E];

/// A last block with fixed codes and nothing in it (RFC 1951 §3.2.6).
const LAST_BLOCK: [u8; 2] = [0x03, 0x00];

/// Colour types (PNG §11.2.1).
const TRUE_COLOUR: u8 = 2;
const INDEXED_COLOUR: u8 = 3;

const SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1a\n";

/// Outputs remembered: two sizes with and without a cursor, say. Each costs about a file.
const MAX_OUTPUTS: usize = 4;

/// The cost of all pictures since the screen was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Stats {
    /// Patches that were compared with the frame.
    pub patches: u64,
    /// Bytes of pixels in those patches.
    pub bytes_compared: u64,
    /// Strips that were deflated, because they were new or had changed.
    pub strips_deflated: u64,
    /// Bytes of pixels in those strips.
    pub bytes_deflated: u64,
    /// Strips that were deflated again between looks, to make them smaller.
    pub strips_tightened: u64,
}

/// A PNG file, in parts that are shared with the encoder.
#[derive(Clone)]
pub struct Png {
    parts: Vec<Arc<[u8]>>,
    len: usize,
    stamp: u64,
}

impl Png {
    /// Bytes of the file.
    #[expect(clippy::len_without_is_empty, reason = "a file is never empty")]
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Two files of one screen with the same stamp are the same bytes.
    #[must_use]
    pub fn stamp(&self) -> u64 {
        self.stamp
    }

    /// Copies the file to where it is wanted: the only copy on its way out.
    ///
    /// # Panics
    /// When `out` is not exactly [`Self::len`] bytes long.
    pub fn write_to(&self, out: &mut [u8]) {
        assert_eq!(out.len(), self.len, "a file goes into exactly its length");
        let mut rest = out;
        for part in &self.parts {
            let (here, after) = rest.split_at_mut(part.len());
            here.copy_from_slice(part);
            rest = after;
        }
    }

    /// The file as one piece.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        self.parts.concat()
    }
}

impl fmt::Debug for Png {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Png({} bytes, stamp {})", self.len, self.stamp)
    }
}

/// A strip to make again: its number, what it is to hold, and how fast it changes.
type Stale = (u32, Validity, Pace);

/// Encodes pictures, and remembers the strips of the last few outputs.
#[derive(Default)]
pub(crate) struct Encoder {
    /// Least recently used first.
    outputs: Vec<Output>,
    /// The latest file with a palette.
    indexed: Option<(Stamp, Png)>,
    workers: Workers,
    files: u64,
    pub stats: Stats,
}

struct Output {
    target: Target,
    strips: Vec<Option<Strip>>,
    file: Option<Png>,
}

/// A strip that could be made smaller, with all that it takes: no screen is needed, or held, while it is deflated again.
pub struct Slack {
    target: Target,
    index: u32,
    strip: Strip,
    raw: Vec<u8>,
    row_len: usize,
}

/// A [`Slack`] that was deflated again.
pub struct Tightened(Slack);

impl Slack {
    /// Deflates the strip again, as small as it gets.
    ///
    /// # Errors
    /// When the compressor refuses, which is a bug here.
    pub fn tighten(mut self) -> Result<Tightened, ImagingError> {
        self.strip = self.strip.tightened(&self.raw, self.row_len)?;
        Ok(Tightened(self))
    }
}

impl Encoder {
    /// The file of a picture that last changed at a time in seconds.
    pub(crate) fn png(&mut self, picture: &Picture<'_>, at: f64) -> Result<Png, ImagingError> {
        let mut output = self.take(picture.target);
        let made = output.refresh(picture, at, &self.workers);
        let file = made.map(|made| {
            self.count(made);
            output.file(&mut self.files)
        });
        self.outputs.push(output);
        file
    }

    /// Makes again what has changed in the file that was asked for last; whether there was anything.
    pub(crate) fn get_ready<'a>(
        &mut self,
        picture: impl Fn(Target) -> Option<Picture<'a>>,
        at: f64,
    ) -> Result<bool, ImagingError> {
        let Some(output) = self.outputs.last_mut() else { return Ok(false) };
        let Some(picture) = picture(output.target) else { return Ok(false) };
        let made = output.refresh(&picture, at, &self.workers)?;
        self.count(made);
        Ok(made.0 > 0)
    }

    fn count(&mut self, (strips, bytes): (u64, u64)) {
        self.stats.strips_deflated += strips;
        self.stats.bytes_deflated += bytes;
    }

    /// A file with a palette, all of it made again when anything changed; `None` when there are too many colours.
    pub(crate) fn indexed(&mut self, picture: &Picture<'_>) -> Result<Option<Png>, ImagingError> {
        let (stamp, target, validity) = (picture.stamp(), picture.target, picture.whole_validity());
        if let Some((held, file)) = &self.indexed
            && *held == stamp
        {
            return Ok(Some(file.clone()));
        }
        let mut rgb = vec![0; picture.rgb_len()];
        picture.rgb(&mut rgb)?;
        let width = target.size.w as usize;
        let Some(Indexed { palette, rows }) = Indexed::of(&rgb, width) else { return Ok(None) };
        let row_len = FILTER_BYTE + width;
        let chunks = rows.chunks(STRIP_ROWS as usize * row_len).collect();
        let strips = each(chunks, |rows| self.workers.with(|worker| worker.indexed(rows, row_len, validity)));
        self.stats.strips_deflated += strips.len() as u64;
        self.stats.bytes_deflated += rows.len() as u64;
        self.files += 1;
        let file = assemble(target.size, Some(&palette), strips.iter(), self.files);
        self.indexed = Some((stamp, file.clone()));
        Ok(Some(file))
    }

    /// Takes the output for a target out of the list, which makes room for putting it back as the latest.
    fn take(&mut self, target: Target) -> Output {
        if let Some(i) = self.outputs.iter().position(|output| output.target == target) {
            return self.outputs.remove(i);
        }
        if self.outputs.len() == MAX_OUTPUTS {
            self.outputs.remove(0);
        }
        Output { target, strips: Vec::new(), file: None }
    }

    /// The next strip worth deflating again: one that is not tight and was a part of two files, and so is likely to be one of the
    /// next; of the output used last.
    pub(crate) fn slack<'a>(
        &self,
        picture: impl Fn(Target) -> Option<Picture<'a>>,
    ) -> Result<Option<Slack>, ImagingError> {
        for output in self.outputs.iter().rev() {
            let Some(picture) = picture(output.target) else { continue };
            let loose = |(i, strip): (u32, &Option<Strip>)| {
                let strip = strip.as_ref().filter(|strip| strip.files > 1 && !strip.tight)?;
                if strip.validity != picture.validity(i) {
                    return None;
                }
                Some((i, strip.clone()))
            };
            if let Some((index, strip)) = (0..).zip(&output.strips).find_map(loose) {
                let mut raw = vec![0; picture.strip_len(index, FILTER_BYTE)];
                picture.fill(&picture.band(index..index + 1)?, index, FILTER_BYTE, &mut raw);
                let row_len = picture.row_len(FILTER_BYTE);
                return Ok(Some(Slack { target: output.target, index, strip, raw, row_len }));
            }
        }
        Ok(None)
    }

    /// Puts a strip in the place of the one it was made of, unless that has been replaced meanwhile.
    pub(crate) fn install(&mut self, Tightened(Slack { target, index, strip, .. }): Tightened) {
        let Some(output) = self.outputs.iter_mut().find(|output| output.target == target) else { return };
        let Some(Some(held)) = output.strips.get_mut(index as usize) else { return };
        if held.validity != strip.validity {
            return;
        }
        if !Arc::ptr_eq(&held.chunk, &strip.chunk) {
            output.file = None;
        }
        *held = strip;
        self.stats.strips_tightened += 1;
    }

    /// Gives back the memory that only encoding needs.
    pub(crate) fn rest(&mut self) {
        self.workers = Workers::default();
    }
}

impl Output {
    /// Deflates again what is no longer valid; returns how many strips that were, and bytes of pixels in them.
    fn refresh(&mut self, picture: &Picture<'_>, at: f64, workers: &Workers) -> Result<(u64, u64), ImagingError> {
        self.strips.resize_with(picture.strips() as usize, || None);
        let mut stale: Vec<Stale> = Vec::new();
        for (i, slot) in (0..).zip(&mut self.strips) {
            let validity = picture.validity(i);
            match slot {
                Some(strip) if strip.validity == validity => {}
                _ => stale.push((i, validity, slot.as_ref().map_or_else(Pace::default, |strip| strip.pace.next(at)))),
            }
        }
        if stale.is_empty() {
            return Ok((0, 0));
        }
        self.file = None;
        let most = picture.strips_at_once(stale.len());
        let bands = stale.chunk_by(|a, b| a.0 + 1 == b.0).flat_map(|run| run.chunks(most)).collect();
        let encoded = each(bands, |stale: &[Stale]| {
            let band = picture.band(stale[0].0..stale[stale.len() - 1].0 + 1)?;
            let encode = |&(i, validity, pace): &Stale| {
                (i, workers.with(|worker| worker.strip(picture, &band, i, validity, pace)))
            };
            Ok(stale.iter().map(encode).collect::<Vec<_>>())
        });
        let fresh = encoded.into_iter().collect::<Result<Vec<_>, ImagingError>>()?.concat();
        let (mut strips, mut bytes) = (0, 0);
        for (i, strip) in fresh {
            strips += 1;
            bytes += strip.raw_len;
            self.strips[i as usize] = Some(strip);
        }
        Ok((strips, bytes))
    }

    /// The file, put together again when a strip was made again.
    fn file(&mut self, files: &mut u64) -> Png {
        for strip in self.strips.iter_mut().flatten() {
            strip.files = strip.files.saturating_add(1);
        }
        let (size, strips) = (self.target.size, &self.strips);
        let assemble = || {
            *files += 1;
            assemble(size, None, strips.iter().flatten(), *files)
        };
        self.file.get_or_insert_with(assemble).clone()
    }
}

/// Puts a file together, of RGB or of indices into a palette.
fn assemble<'a>(size: Size, palette: Option<&[u8]>, strips: impl Iterator<Item = &'a Strip>, stamp: u64) -> Png {
    let mut header = [0; 13];
    header[..4].copy_from_slice(&size.w.to_be_bytes());
    header[4..8].copy_from_slice(&size.h.to_be_bytes());
    // Eight bits a sample; compression, filtering and interlacing have no other or no better value than zero.
    header[8..10].copy_from_slice(&[8, if palette.is_some() { INDEXED_COLOUR } else { TRUE_COLOUR }]);
    let palette = palette.map(|colours| chunk(*b"PLTE", colours)).unwrap_or_default();
    let head = [&SIGNATURE[..], &chunk(*b"IHDR", &header), &palette, &chunk(*b"IDAT", &ZLIB_HEADER)].concat();
    let mut parts = vec![Arc::from(head)];
    let mut adler = adler32(1, &[]);
    for strip in strips {
        parts.push(Arc::clone(&strip.chunk));
        adler = adler32_combine(adler, strip.adler, strip.raw_len);
    }
    let end = [&LAST_BLOCK[..], &adler.to_be_bytes()].concat();
    parts.push([chunk(*b"IDAT", &end), chunk(*b"IEND", &[])].concat().into());
    Png { len: parts.iter().map(|part| part.len()).sum(), parts, stamp }
}

/// Workers that wait for work, with the memory that they need for it.
#[derive(Default)]
struct Workers(Mutex<Vec<Worker>>);

impl Workers {
    fn with<T>(&self, work: impl FnOnce(&mut Worker) -> T) -> T {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut worker = lock().pop().unwrap_or_default();
        let result = work(&mut worker);
        lock().push(worker);
        result
    }
}
