//! The imaging engine of deskhand: what a desktop looks like, what of it changed, and the PNG of it.
//!
//! It owns the framebuffer, the comparison that finds true changes, the log of changes by generation, scaling, blending
//! of the cursor, and a PNG writer whose cost follows what changed.
//!
//! What must never appear here: I/O, threads of its own (rayon's pool only computes), a clock (callers pass the time),
//! Python, or a protocol's types. Every input is a slice and every output is a value, so all of it runs in `cargo test`.
//!
//! ```
//! use imaging::{Patch, Rect, Screen, Size, View};
//!
//! let mut screen = Screen::new(Size { w: 4, h: 2 });
//! let white = [255; 4];
//! let rect = Rect { x: 1, y: 0, w: 1, h: 1 };
//! assert!(screen.update(&[Patch { rect, pixels: &white, stride: 4 }], 0.5)?);
//! assert_eq!(screen.changes(0), [rect]);
//! assert!(screen.png(&View::default())?.to_vec().starts_with(b"\x89PNG"));
//! # Ok::<(), imaging::ImagingError>(())
//! ```
#![forbid(unsafe_code)]
#![deny(missing_docs)]
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "every narrowed number is a coordinate or an index below a frame's own length, checked where it came in"
)]

mod before;
mod cursor;
mod deflate;
mod diff;
mod error;
mod filter;
mod frame;
mod geometry;
mod hash;
mod huffman;
mod indexed;
mod matches;
mod png;
mod scale;
mod screen;
mod span;
mod strip;
mod threads;
mod view;

pub use cursor::Cursor;
pub use diff::blit;
pub use error::ImagingError;
pub use frame::Frame;
pub use geometry::{Rect, SharedSize, Size, merge};
pub use hash::{TILE, TileHash};
pub use png::{Png, Slack, Stats, Tightened};
pub use screen::{Change, Patch, Screen};
pub use threads::{forked, forks};
pub use view::{Byte, Stamp, View};
