//! The RFB protocol (RFC 6143 and the community's rfbproto) from a client's side: what a server sends, parsed and decoded into
//! an [`imaging::Screen`], and the bytes of what a client sends.
//!
//! [`Handshake`] handles a connection up to the server's description of itself, [`Session`] everything after. Neither opens a
//! socket: bytes go in, events and bytes to send come out. What comes out does not depend on how the bytes were cut.
//!
//! What must never appear here: I/O, threads, a clock (callers pass the time), Python, `unsafe`. A server is not trusted: every
//! length is checked against [`Limits`] before memory is taken, and whatever is malformed ends in a [`Violation`], not a
//! panic.
//!
//! ```
//! use std::sync::{Arc, Mutex};
//! use imaging::{Screen, Size};
//! use rfb::{Encoding, Event, Limits, PixelFormat, Session};
//!
//! let size = Size { w: 2, h: 1 };
//! let screen = Arc::new(Mutex::new(Screen::new(size)));
//! let mut session = Session::new(size, Arc::clone(&screen), Limits::default(), 0.0)?;
//! session.start(&PixelFormat::BGRX, &[Encoding::Raw])?;
//! session.request(false);
//! let _to_the_server: Vec<u8> = session.to_send();
//!
//! let header = [0, 0, 0, 1, 0, 0, 0, 0, 0, 2, 0, 1, 0, 0, 0, 0];
//! assert_eq!(session.feed(&header, 0.1)?, []);
//! let events = session.feed(&[255, 0, 0, 0, 0, 0, 255, 0], 0.2)?;
//! assert!(matches!(&events[..], [Event::Updated { changed: true, .. }]));
//! assert_eq!(screen.lock().unwrap().frame().as_bytes()[0], 255);
//! # Ok::<(), rfb::Violation>(())
//! ```
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod canvas;
pub mod client;
mod clipboard;
mod cursor;
mod decode;
mod encoding;
mod event;
mod following;
mod handshake;
mod inflate;
mod input;
mod limits;
mod message;
mod pace;
mod pixel;
mod recording;
mod security;
mod session;
mod skipped;
mod update;
mod violation;

pub use clipboard::{Clipboard, Formats, Offered};
pub use encoding::Encoding;
pub use event::{Event, Features, Leds, Monitor, ResizedBy};
pub use handshake::{Handshake, ServerInit, Step};
pub use limits::Limits;
pub use pixel::PixelFormat;
pub use recording::{NotARecording, Piece, Recording};
pub use security::{Security, VeNCrypt, Version};
pub use session::Session;
pub use violation::{Problem, Violation};
