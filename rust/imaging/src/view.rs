//! What an output shows: part of a screen, at a size, with or without the cursor, cut in strips of rows.
//!
//! The rule: a strip's pixels depend on its [`Validity`] and nothing else. PNG and plain RGB come from the same strips,
//! so they cannot show different pixels.

use std::borrow::Cow;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::OnceLock;

use multiversion::multiversion;

use crate::cursor::{Cursor, Sprite};
use crate::error::ImagingError;
use crate::frame::{Frame, PIXEL};
use crate::geometry::{Rect, Size};
use crate::scale::Scaler;
use crate::threads::{each, threads};

/// Rows in a strip of an output: fewer cost less when a line changes, more make smaller files.
pub(crate) const STRIP_ROWS: u32 = 32;

/// The same where they are scaled: a row then takes longer, and fewer are in a line of text.
const SCALED_STRIP_ROWS: u32 = 16;

/// Strips that are scaled at once, at most: the coefficients across take as long as scaling the rows of one strip.
const MAX_BAND: usize = 8;

/// Bytes of one RGB pixel.
pub(crate) const RGB: usize = 3;

/// The longest side of a scaled output: four times that of a 4K screen, and 800 MB of RGB at worst.
const MAX_SIDE: u32 = 16_384;

/// What to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct View {
    /// The size to scale to; as large as the region when not given.
    pub size: Option<Size>,
    /// The part of the screen to show; all of it when not given.
    pub region: Option<Rect>,
    /// Whether the cursor is shown.
    pub cursor: bool,
}

/// All that outputs are made of.
#[derive(Debug)]
pub(crate) struct Scene {
    pub frame: Frame,
    /// For each row the generation at which one of its pixels last changed. By row, because a scaled strip reaches a few
    /// rows past its own, and must not be made again for all that changes there.
    pub changed_at: Vec<u64>,
    pub cursor: Option<Cursor>,
    /// Counts cursor images, because not every source has serials.
    pub cursor_stamp: u64,
    pub pointer: (i32, i32),
}

impl Scene {
    /// A black one, all of it changed at `generation`.
    pub(crate) fn new(size: Size, generation: u64) -> Self {
        Self {
            frame: Frame::new(size),
            changed_at: vec![generation; size.h as usize],
            cursor: None,
            cursor_stamp: 0,
            pointer: (0, 0),
        }
    }

    /// Notes that rows of `rect` changed.
    pub(crate) fn touch(&mut self, rect: Rect, generation: u64) {
        self.changed_at[rect.y as usize..rect.bottom() as usize].fill(generation);
    }

    /// Resolves a view against the screen as it is.
    pub(crate) fn picture(&self, view: &View) -> Result<Picture<'_>, ImagingError> {
        let screen = self.frame.size();
        let region = view.region.unwrap_or(screen.rect());
        if region.is_empty() || !screen.rect().contains(region) {
            return Err(ImagingError::RegionOutside { region, screen });
        }
        let size = view.size.unwrap_or(region.size());
        if size.is_empty() || (size != region.size() && size.w.max(size.h) > MAX_SIDE) {
            return Err(ImagingError::OutputSize { region, size, max: MAX_SIDE });
        }
        let sprite = self.cursor.as_ref().filter(|_| view.cursor).map(|cursor| Sprite::new(cursor, self.pointer));
        Ok(Picture { scene: self, target: Target { region, size, cursor: view.cursor }, sprite })
    }
}

/// A view with its defaults filled in: what tells one output from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub region: Rect,
    pub size: Size,
    pub cursor: bool,
}

impl Target {
    /// The view that resolves to this target.
    pub(crate) fn view(self) -> View {
        View { size: Some(self.size), region: Some(self.region), cursor: self.cursor }
    }
}

/// What a strip's pixels depend on, within one target. Equal values mean equal pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Validity {
    changed_at: u64,
    /// The cursor's image and position, when it reaches into the strip.
    cursor: Option<(u64, (i32, i32))>,
}

/// What the pixels of a whole output depend on: two of one screen that are equal have equal pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    target: Target,
    validity: Validity,
}

/// A byte that is only written: memory that was never written will do.
pub trait Byte: Copy + Send {
    /// The byte of that value.
    fn of(value: u8) -> Self;
}

impl Byte for u8 {
    fn of(value: u8) -> Self {
        value
    }
}

impl Byte for MaybeUninit<u8> {
    fn of(value: u8) -> Self {
        Self::new(value)
    }
}

/// Pixels of some rows of an output.
pub(crate) struct Band<'a> {
    first: u32,
    pixels: Cow<'a, [u8]>,
}

/// A target over the pixels it is made of.
#[derive(Debug)]
pub(crate) struct Picture<'a> {
    scene: &'a Scene,
    pub target: Target,
    sprite: Option<Sprite<'a>>,
}

impl Picture<'_> {
    pub(crate) fn strips(&self) -> u32 {
        self.target.size.h.div_ceil(self.strip_rows())
    }

    pub(crate) fn validity(&self, strip: u32) -> Validity {
        self.validity_of(self.source(&self.scaler().source_rows(&self.rows(strip))))
    }

    pub(crate) fn stamp(&self) -> Stamp {
        Stamp { target: self.target, validity: self.whole_validity() }
    }

    /// That of all strips together.
    pub(crate) fn whole_validity(&self) -> Validity {
        self.validity_of(self.target.region)
    }

    fn validity_of(&self, source: Rect) -> Validity {
        let changed_at = self.scene.changed_at[source.y as usize..source.bottom() as usize].iter().copied().max();
        Validity {
            changed_at: changed_at.unwrap_or_default(),
            cursor: self
                .sprite
                .and_then(|sprite| sprite.within(source))
                .map(|_| (self.scene.cursor_stamp, self.scene.pointer)),
        }
    }

    /// Bytes that [`Self::fill`] writes for a strip.
    pub(crate) fn strip_len(&self, strip: u32, lead: usize) -> usize {
        let rows = self.rows(strip);
        (rows.end - rows.start) as usize * self.row_len(lead)
    }

    /// Strips that one thread prepares at once, where so many are to be made.
    pub(crate) fn strips_at_once(&self, strips: usize) -> usize {
        // What is not scaled is taken from the frame as it is.
        if self.scaler().is_identity() { 1 } else { (strips / (2 * threads())).clamp(1, MAX_BAND) }
    }

    /// The pixels of neighbouring strips, at the size of the output.
    pub(crate) fn band(&self, strips: Range<u32>) -> Result<Band<'_>, ImagingError> {
        let (scaler, first) = (self.scaler(), self.rows(strips.start).start);
        let rows = first..self.rows(strips.end - 1).end;
        let source = scaler.source_rows(&rows);
        let mut pixels = self.pixels(self.source(&source));
        if !scaler.is_identity() {
            pixels = Cow::Owned(scaler.scale(&pixels, &source, &rows)?);
        }
        Ok(Band { first, pixels })
    }

    /// Writes a strip of a band that has it: rows of RGB, each after `lead` zero bytes.
    pub(crate) fn fill(&self, band: &Band<'_>, strip: u32, lead: usize, out: &mut [u8]) {
        self.write(band, self.rows(strip).start, lead, out);
    }

    /// Writes as many rows of a band as there is room for.
    fn write<B: Byte>(&self, band: &Band<'_>, from: u32, lead: usize, out: &mut [B]) {
        let row_len = self.target.size.w as usize * PIXEL;
        let pixels = &band.pixels[(from - band.first) as usize * row_len..];
        for (row, out) in pixels.chunks_exact(row_len).zip(out.chunks_exact_mut(self.row_len(lead))) {
            let (lead, out) = out.split_at_mut(lead);
            lead.fill(B::of(0));
            to_rgb(row, out);
        }
    }

    /// Bytes of all rows of RGB.
    pub(crate) fn rgb_len(&self) -> usize {
        self.target.size.h as usize * self.row_len(0)
    }

    /// Writes all rows as RGB, without gaps.
    pub(crate) fn rgb<B: Byte>(&self, out: &mut [B]) -> Result<(), ImagingError> {
        if out.len() != self.rgb_len() {
            return Err(ImagingError::RgbLength { size: self.target.size, needed: self.rgb_len(), got: out.len() });
        }
        let strips = self.strips();
        let at_once = self.strips_at_once(strips as usize) as u32;
        let bands = out.chunks_mut((at_once * self.strip_rows()) as usize * self.row_len(0)).enumerate();
        let write = |(i, out): (usize, &mut [B])| {
            let first = i as u32 * at_once;
            let band = self.band(first..strips.min(first + at_once))?;
            self.write(&band, band.first, 0, out);
            Ok(())
        };
        let failed = OnceLock::new();
        each(bands.collect(), |part| write(part).unwrap_or_else(|error| _ = failed.set(error)));
        failed.into_inner().map_or(Ok(()), Err)
    }

    /// Bytes of one row as [`Self::fill`] writes it.
    pub(crate) fn row_len(&self, lead: usize) -> usize {
        lead + self.target.size.w as usize * RGB
    }

    fn strip_rows(&self) -> u32 {
        if self.scaler().is_identity() { STRIP_ROWS } else { SCALED_STRIP_ROWS }
    }

    fn rows(&self, strip: u32) -> Range<u32> {
        let top = strip * self.strip_rows();
        top..self.target.size.h.min(top.saturating_add(self.strip_rows()))
    }

    fn scaler(&self) -> Scaler {
        Scaler { from: self.target.region.size(), to: self.target.size }
    }

    /// Rows of the region, in screen coordinates.
    fn source(&self, rows: &Range<u32>) -> Rect {
        let Rect { x, y, w, .. } = self.target.region;
        Rect { x, y: y + rows.start, w, h: rows.end - rows.start }
    }

    /// The pixels of `area` with the cursor blended in; copied only when they must be.
    fn pixels(&self, area: Rect) -> Cow<'_, [u8]> {
        let frame = &self.scene.frame;
        if let Some(sprite) = self.sprite.filter(|sprite| sprite.within(area).is_some()) {
            let mut pixels = frame.copy_of(area);
            sprite.blend(&mut pixels, area);
            Cow::Owned(pixels)
        } else if area.w == frame.size().w {
            Cow::Borrowed(frame.rows(area.y, area.bottom()))
        } else {
            Cow::Owned(frame.copy_of(area))
        }
    }
}

/// Drops the padding byte and turns the order of colours around.
///
/// Where the processor can shuffle bytes within a register, compilers do that here by themselves: 0.15 ms for 1920x1080, and
/// 0.73 ms pixel by pixel.
#[multiversion(targets("x86_64+avx2", "x86_64+ssse3"))]
fn to_rgb<B: Byte>(bgrx: &[u8], rgb: &mut [B]) {
    for (out, pixel) in rgb.as_chunks_mut::<RGB>().0.iter_mut().zip(bgrx.as_chunks::<PIXEL>().0) {
        *out = [B::of(pixel[2]), B::of(pixel[1]), B::of(pixel[0])];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rgb_of_every_row_length() {
        for width in 0..13_u8 {
            let bgrx: Vec<u8> = (0..width).flat_map(|i| [i, 100 + i, 200 + i, 99]).collect();
            let mut rgb = vec![0; usize::from(width) * RGB];
            to_rgb(&bgrx, &mut rgb);
            assert_eq!(rgb, (0..width).flat_map(|i| [200 + i, 100 + i, i]).collect::<Vec<u8>>());
        }
    }

    #[test]
    fn only_strips_under_a_change_lose_their_validity() {
        let mut scene = Scene::new(Size { w: 100, h: 320 }, 1);
        for (size, touched) in [(None, vec![3]), (Some(Size { w: 50, h: 160 }), vec![3])] {
            let view = View { size, ..View::default() };
            let validities = |scene: &Scene| {
                let picture = scene.picture(&view).unwrap();
                (0..picture.strips()).map(|strip| picture.validity(strip)).collect::<Vec<_>>()
            };
            let before = validities(&scene);
            scene.touch(Rect { x: 3, y: 110, w: 2, h: 2 }, scene.changed_at[110] + 1);
            let after = validities(&scene);
            let differing: Vec<usize> = (0..before.len()).filter(|i| before[*i] != after[*i]).collect();
            assert_eq!(differing, touched);
        }
    }
}
