//! Everything that can go wrong here. The rule: a message says what, where, and both numbers that disagree.

use crate::geometry::{Rect, Size};

/// Why an imaging call was refused. Nothing has been written when one of these is returned.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImagingError {
    /// A pixel buffer does not have the length its size asks for.
    #[error("a frame of {size} needs {needed} bytes of BGRX, got {got}")]
    FrameLength {
        /// The frame's size.
        size: Size,
        /// Bytes that size needs.
        needed: usize,
        /// Bytes given.
        got: usize,
    },
    /// A patch reaches over the edge of the screen.
    #[error("patch {rect} is not inside the screen of {screen}")]
    PatchOutside {
        /// Where the patch was to go.
        rect: Rect,
        /// The screen's size.
        screen: Size,
    },
    /// A patch's rows overlap: its stride is shorter than a row.
    #[error("patch {rect} has a stride of {stride} bytes, a row needs {needed}")]
    PatchStride {
        /// Where the patch was to go.
        rect: Rect,
        /// Bytes between the starts of two rows.
        stride: usize,
        /// Bytes one row needs.
        needed: usize,
    },
    /// A patch has fewer bytes than its rectangle needs.
    #[error("patch {rect} needs {needed} bytes of BGRX, got {got}")]
    PatchShort {
        /// Where the patch was to go.
        rect: Rect,
        /// Bytes the rectangle needs.
        needed: usize,
        /// Bytes given.
        got: usize,
    },
    /// A copy reads or writes outside the screen.
    #[error("copy of {src} to {},{} is not inside the screen of {screen}", to.0, to.1)]
    CopyOutside {
        /// The rectangle to copy.
        src: Rect,
        /// Where its top left corner was to go.
        to: (u32, u32),
        /// The screen's size.
        screen: Size,
    },
    /// The region to show is empty or not inside the screen.
    #[error("region {region} is empty or not inside the screen of {screen}")]
    RegionOutside {
        /// The region asked for.
        region: Rect,
        /// The screen's size.
        screen: Size,
    },
    /// The size to scale to is zero or too large.
    #[error("cannot scale {region} to {size}: each side must be 1 to {max}")]
    OutputSize {
        /// The part of the screen to show.
        region: Rect,
        /// The size asked for.
        size: Size,
        /// The longest side allowed.
        max: u32,
    },
    /// A buffer for RGB does not have the length the picture's size asks for.
    #[error("a picture of {size} needs {needed} bytes of RGB, got room for {got}")]
    RgbLength {
        /// The picture's size.
        size: Size,
        /// Bytes that size needs.
        needed: usize,
        /// Bytes given.
        got: usize,
    },
    /// The scaler refused buffers that this crate laid out: a bug here.
    #[error("scaling {from} to {to} failed: {reason}")]
    Scale {
        /// The size of the source rows.
        from: Size,
        /// The size of the output rows.
        to: Size,
        /// The scaler's own words.
        reason: String,
    },
    /// The compressor refused a strip: a bug here.
    #[error("deflating a strip of {len} bytes failed: {reason}")]
    Deflate {
        /// Bytes in the strip.
        len: usize,
        /// The compressor's own words.
        reason: &'static str,
    },
}
