//! A screen: its pixels, how often they changed, and what changed since when.
//!
//! The rule: the generation grows by one exactly when a pixel's colour really changed (or the size did), and every such
//! step is in the log until 512 later ones are. A caller that remembers a generation can ask what it missed, and gets
//! "everything" when that is no longer known.

use std::collections::VecDeque;

use crate::before::Before;
use crate::cursor::Cursor;
use crate::diff::{group, write};
use crate::error::ImagingError;
use crate::frame::{Frame, PIXEL};
use crate::geometry::{Rect, SharedSize, Size, merge};
use crate::hash::{Hashes, TileHash};
use crate::png::{Encoder, Png, Slack, Stats, Tightened};
use crate::view::{Byte, Scene, Stamp, Target, View};

/// Changes remembered: half a minute of a screen that changes at 16 Hz.
const MAX_LOG: usize = 512;

/// New pixels for a part of the screen.
#[derive(Clone, Copy, Debug)]
pub struct Patch<'a> {
    /// Where they go.
    pub rect: Rect,
    /// Rows of BGRX, `stride` bytes apart.
    pub pixels: &'a [u8],
    /// Bytes from the start of one row to the start of the next.
    pub stride: usize,
}

impl Patch<'_> {
    fn check(&self, screen: Size) -> Result<(), ImagingError> {
        let Self { rect, stride, .. } = *self;
        if !screen.rect().contains(rect) {
            return Err(ImagingError::PatchOutside { rect, screen });
        }
        if rect.is_empty() {
            return Ok(());
        }
        let row = rect.w as usize * PIXEL;
        if stride < row {
            return Err(ImagingError::PatchStride { rect, stride, needed: row });
        }
        // The last row may end where its pixels do.
        let needed = stride.saturating_mul(rect.h as usize - 1).saturating_add(row);
        if self.pixels.len() < needed {
            return Err(ImagingError::PatchShort { rect, needed, got: self.pixels.len() });
        }
        Ok(())
    }
}

/// One step of a screen's generation.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The generation this change led to.
    pub generation: u64,
    /// When, in seconds of the caller's clock.
    pub at: f64,
    /// What changed.
    pub rects: Vec<Rect>,
}

/// What a desktop shows, and the history of it.
pub struct Screen {
    scene: Scene,
    size: SharedSize,
    encoder: Encoder,
    generation: u64,
    epoch: u64,
    log: VecDeque<Change>,
    /// Where pixels were written that are not in the log yet.
    written: Vec<Rect>,
    hashes: Hashes,
    hashed_at: u64,
    before: Before,
    /// How often [`Screen::get_ready`] still makes something.
    expected: u32,
}

impl Screen {
    /// A black screen of which nothing is known yet: generation 0.
    #[must_use]
    pub fn new(size: Size) -> Self {
        Self {
            scene: Scene::new(size, 0),
            size: SharedSize::new(size),
            encoder: Encoder::default(),
            generation: 0,
            epoch: 0,
            log: VecDeque::new(),
            written: Vec::new(),
            hashes: Hashes::default(),
            hashed_at: 0,
            before: Before::default(),
            expected: 0,
        }
    }

    /// Width and height.
    #[must_use]
    pub fn size(&self) -> Size {
        self.scene.frame.size()
    }

    /// Width and height, for callers that do not wait for the screen's lock.
    #[must_use]
    pub fn shared_size(&self) -> SharedSize {
        self.size.clone()
    }

    /// How often the pixels have changed; never decreases.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// How often the size was set.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The pixels, without the cursor.
    #[must_use]
    pub fn frame(&self) -> &Frame {
        &self.scene.frame
    }

    /// Writes new pixels, and returns whether any colour differs from what was there. All patches together are one step
    /// of the generation.
    ///
    /// # Errors
    /// When a patch is not inside the screen or has too few bytes; then none of them is written.
    pub fn update(&mut self, patches: &[Patch<'_>], at: f64) -> Result<bool, ImagingError> {
        let screen = self.size();
        patches.iter().try_for_each(|patch| patch.check(screen))?;
        patches.iter().try_for_each(|patch| self.write(patch))?;
        Ok(self.commit(at))
    }

    /// Writes new pixels as a part of a step that [`Self::commit`] ends. The screen must not be read before that.
    ///
    /// # Errors
    /// When the patch is not inside the screen or has too few bytes.
    pub fn write(&mut self, patch: &Patch<'_>) -> Result<(), ImagingError> {
        patch.check(self.size())?;
        self.encoder.stats.patches += 1;
        self.encoder.stats.bytes_compared += patch.rect.area() * PIXEL as u64;
        let Patch { rect, pixels, stride } = *patch;
        write(&mut self.scene.frame, rect, pixels, stride, &mut self.written, &mut self.before);
        Ok(())
    }

    /// Makes what was written a step of the generation; whether any colour differs from what was there.
    pub fn commit(&mut self, at: f64) -> bool {
        let rects = group(std::mem::take(&mut self.written));
        self.record(rects, at)
    }

    /// Copies pixels within the screen to where `to` is their new top left corner; both places may overlap.
    ///
    /// # Errors
    /// When either place is not inside the screen; then nothing is copied.
    pub fn copy_rect(&mut self, src: Rect, to: (u32, u32), at: f64) -> Result<bool, ImagingError> {
        let screen = self.size();
        let target = Rect { x: to.0, y: to.1, ..src };
        if !screen.rect().contains(src) || !screen.rect().contains(target) {
            return Err(ImagingError::CopyOutside { src, to, screen });
        }
        let pixels = self.scene.frame.copy_of(src);
        let stride = src.w as usize * PIXEL;
        write(&mut self.scene.frame, target, &pixels, stride, &mut self.written, &mut self.before);
        Ok(self.commit(at))
    }

    fn record(&mut self, rects: Vec<Rect>, at: f64) -> bool {
        if rects.is_empty() {
            return false;
        }
        self.generation += 1;
        self.before.note_step();
        for rect in &rects {
            self.scene.touch(*rect, self.generation);
        }
        if self.log.len() == MAX_LOG {
            self.log.pop_front();
        }
        self.log.push_back(Change { generation: self.generation, at, rects: merge(rects) });
        true
    }

    /// Starts again with a black screen of the given size, even when it is the same. The cursor stays.
    pub fn resize(&mut self, size: Size, at: f64) {
        self.epoch += 1;
        self.generation += 1;
        self.written.clear();
        self.before.end();
        self.size.set(size);
        let scene = Scene::new(size, self.generation);
        self.scene.frame = scene.frame;
        self.scene.changed_at = scene.changed_at;
        self.log.clear();
        self.log.push_back(Change { generation: self.generation, at, rects: vec![size.rect()] });
    }

    /// From here on keeps what is overwritten, until [`Screen::rest`] or a new size: of a pixel that changes again and is then what it
    /// is now, [`Screen::changes`] since this generation does not report it.
    pub fn keep(&mut self) {
        self.before.begin(&self.scene.frame, self.generation);
    }

    /// What changed after a generation, merged; the whole screen when that is no longer known.
    #[must_use]
    pub fn changes(&self, since: u64) -> Vec<Rect> {
        if since >= self.generation {
            return Vec::new();
        }
        if self.log.front().is_none_or(|oldest| since + 1 < oldest.generation) {
            return merge(vec![self.size().rect()]);
        }
        if let Some(boxes) = self.before.changes(&self.scene.frame, since) {
            return group(boxes);
        }
        merge(self.after(since).flat_map(|change| change.rects.iter().copied()).collect())
    }

    /// The steps after a generation that are still remembered, oldest first.
    #[must_use]
    pub fn history(&self, since: u64) -> Vec<Change> {
        self.after(since).cloned().collect()
    }

    fn after(&self, since: u64) -> impl Iterator<Item = &Change> {
        self.log.range(self.log.partition_point(|change| change.generation <= since)..)
    }

    /// Sets the cursor's image; `None` when it is hidden or not known.
    pub fn set_cursor(&mut self, cursor: Option<Cursor>) {
        if self.scene.cursor != cursor {
            self.scene.cursor = cursor;
            self.scene.cursor_stamp += 1;
        }
    }

    /// The cursor's image.
    #[must_use]
    pub fn cursor(&self) -> Option<&Cursor> {
        self.scene.cursor.as_ref()
    }

    /// Sets where the cursor's hotspot is; it may be outside the screen.
    pub fn set_pointer(&mut self, pointer: (i32, i32)) {
        self.scene.pointer = pointer;
    }

    /// Where the cursor's hotspot is.
    #[must_use]
    pub fn pointer(&self) -> (i32, i32) {
        self.scene.pointer
    }

    /// A PNG file of a view. What is still valid of the last few outputs is not encoded again.
    ///
    /// # Errors
    /// When the view's region is empty or not inside the screen, or its size is zero or too large.
    pub fn png(&mut self, view: &View) -> Result<Png, ImagingError> {
        let at = self.last_change();
        self.encoder.png(&self.scene.picture(view)?, at)
    }

    /// Somebody waits for the next file: [`Screen::get_ready`] makes what has changed of it, so many times.
    pub fn expect(&mut self, times: u32) {
        self.expected = times;
    }

    /// Makes again what has changed in the file that was asked for last, so that [`Screen::png`] finds it done. Nothing is done where
    /// no file is expected.
    ///
    /// Meant for a wait in which nothing has changed for a while. What fails here fails again in [`Screen::png`], which reports it.
    pub fn get_ready(&mut self) {
        let at = self.last_change();
        let picture = |target: Target| self.scene.picture(&target.view()).ok();
        if self.expected > 0 && self.encoder.get_ready(picture, at).is_ok_and(|made| made) {
            self.expected -= 1;
        }
    }

    fn last_change(&self) -> f64 {
        self.log.back().map_or(0.0, |change| change.at)
    }

    /// The same with a palette, where the picture has at most 256 colours; nothing of it is kept when something changes.
    ///
    /// # Errors
    /// As for [`Screen::png`].
    pub fn indexed_png(&mut self, view: &View) -> Result<Png, ImagingError> {
        let at = self.last_change();
        let picture = self.scene.picture(view)?;
        match self.encoder.indexed(&picture)? {
            Some(file) => Ok(file),
            None => self.encoder.png(&picture, at),
        }
    }

    /// A fingerprint of each tile of [`TILE`](crate::TILE) pixels square, row after row, without the cursor.
    pub fn hashes(&mut self) -> &[TileHash] {
        let changed = self.changes(self.hashed_at);
        self.hashed_at = self.generation;
        self.hashes.refresh(&self.scene.frame, &changed)
    }

    /// A strip of the files made so far that could be smaller; `None` when all that are still valid are as small as they get. Only
    /// strips that two files had count: what changes with every look is not worth the time.
    ///
    /// Meant for the time between calls: [`Slack::tighten`] takes some milliseconds and no screen, then comes [`Screen::install`].
    ///
    /// # Errors
    /// When the scaler refuses, which is a bug here.
    pub fn slack(&self) -> Result<Option<Slack>, ImagingError> {
        self.encoder.slack(|target| self.scene.picture(&target.view()).ok())
    }

    /// Takes over a tightened strip, unless what it shows has changed meanwhile.
    pub fn install(&mut self, strip: Tightened) {
        self.encoder.install(strip);
    }

    /// Gives back the memory that only encoding needs, and what [`Screen::keep`] has kept; the next file takes it again.
    pub fn rest(&mut self) {
        self.before.end();
        self.encoder.rest();
    }

    /// The size of the picture that a view gives.
    ///
    /// # Errors
    /// As for [`Screen::png`].
    pub fn size_of(&self, view: &View) -> Result<Size, ImagingError> {
        Ok(self.scene.picture(view)?.target.size)
    }

    /// What the pixels of a view depend on now.
    ///
    /// # Errors
    /// As for [`Screen::png`].
    pub fn stamp(&self, view: &View) -> Result<Stamp, ImagingError> {
        Ok(self.scene.picture(view)?.stamp())
    }

    /// Writes the RGB bytes of a view: the same pixels as in its PNG file.
    ///
    /// # Errors
    /// As for [`Screen::png`], and when `out` is not exactly `3 * w * h` bytes long.
    pub fn rgb_into<B: Byte>(&self, view: &View, out: &mut [B]) -> Result<(), ImagingError> {
        self.scene.picture(view)?.rgb(out)
    }

    /// The size and the RGB bytes of a view.
    ///
    /// # Errors
    /// As for [`Screen::png`].
    pub fn rgb(&self, view: &View) -> Result<(Size, Vec<u8>), ImagingError> {
        let picture = self.scene.picture(view)?;
        let mut out = vec![0; picture.rgb_len()];
        picture.rgb(&mut out)?;
        Ok((picture.target.size, out))
    }

    /// The cost of all pictures so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.encoder.stats
    }
}
