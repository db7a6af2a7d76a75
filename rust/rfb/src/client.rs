//! What a client sends (RFC 6143 §7.5, and rfbproto): each function gives the bytes of one message.
//!
//! Messages of extensions may be sent only to servers that have shown to know them: see [`Features`](crate::Features).

use imaging::{Rect, Size};
use zlib_rs::{Deflate, DeflateFlush};

use crate::clipboard::{CAPS, Formats, NOTIFY, PEEK, PROVIDE, REQUEST};
use crate::encoding::Encoding;
use crate::event::Monitor;
use crate::pixel::PixelFormat;

/// The formats of fences: the other side must have worked off all before the fence, or work off nothing after it, before it
/// answers.
pub mod fence {
    /// All messages before the fence are worked off before it is answered.
    pub const BLOCK_BEFORE: u32 = 1;
    /// No message after the fence is worked off before it is answered.
    pub const BLOCK_AFTER: u32 = 1 << 1;
    /// The message after the fence is worked off together with the answer.
    pub const SYNC_NEXT: u32 = 1 << 2;
    /// The fence is to be answered.
    pub const REQUEST: u32 = 1 << 31;
}

/// Bytes of a fence's payload, at most.
pub const FENCE_PAYLOAD: usize = 64;

const SET_PIXEL_FORMAT: u8 = 0;
const SET_ENCODINGS: u8 = 2;
const UPDATE_REQUEST: u8 = 3;
const KEY: u8 = 4;
const POINTER: u8 = 5;
const CUT_TEXT: u8 = 6;
const CONTINUOUS_UPDATES: u8 = 150;
const FENCE: u8 = 248;
const SET_DESKTOP_SIZE: u8 = 251;

/// Sets the form of pixels from now on.
#[must_use]
pub fn set_pixel_format(format: &PixelFormat) -> Vec<u8> {
    [&[SET_PIXEL_FORMAT, 0, 0, 0][..], &format.to_bytes()].concat()
}

/// Lists the encodings that may be used, the best first.
#[must_use]
pub fn set_encodings(encodings: &[Encoding]) -> Vec<u8> {
    let mut message = vec![SET_ENCODINGS, 0];
    message.extend((encodings.len() as u16).to_be_bytes());
    message.extend(encodings.iter().flat_map(|encoding| encoding.number().to_be_bytes()));
    message
}

/// Asks for an update: of what has changed, or of everything in the rectangle.
#[must_use]
pub fn update_request(incremental: bool, rect: Rect) -> Vec<u8> {
    [&[UPDATE_REQUEST, u8::from(incremental)][..], &place(rect)].concat()
}

/// A key is pressed or released.
#[must_use]
pub fn key(keysym: u32, down: bool) -> Vec<u8> {
    [&[KEY, u8::from(down), 0, 0][..], &keysym.to_be_bytes()].concat()
}

/// Reports the pointer's place and the held buttons: bit 0 is button 1. Buttons above 7 are left out, because bit 7 marks the
/// extended message.
#[must_use]
pub fn pointer(x: u16, y: u16, buttons: u16) -> Vec<u8> {
    [&[POINTER, buttons as u8 & 0x7F][..], &x.to_be_bytes(), &y.to_be_bytes()].concat()
}

/// The same with buttons 1 to 9, for servers that know [`Encoding::MouseButtons`].
#[must_use]
pub fn pointer_extended(x: u16, y: u16, buttons: u16) -> Vec<u8> {
    let high = (buttons >> 7) as u8 & 3;
    if high == 0 {
        return pointer(x, y, buttons);
    }
    [&[POINTER, buttons as u8 | 0x80][..], &x.to_be_bytes(), &y.to_be_bytes(), &[high]].concat()
}

/// Announces text in this client's clipboard; `None` when it is not all Latin-1.
#[must_use]
pub fn cut_text(text: &str) -> Option<Vec<u8>> {
    let text: Option<Vec<u8>> = text.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect();
    let text = text?;
    Some([&[CUT_TEXT, 0, 0, 0][..], &(text.len() as u32).to_be_bytes(), &text].concat())
}

/// Announces this client's clipboard features: all those for text, and no others.
#[must_use]
pub fn clipboard_caps(max_text: u32) -> Vec<u8> {
    let flags = CAPS | REQUEST | PEEK | NOTIFY | PROVIDE | u32::from(Formats::TEXT.0);
    clipboard(flags, &max_text.to_be_bytes())
}

/// Requests the server's content.
#[must_use]
pub fn clipboard_request(formats: Formats) -> Vec<u8> {
    clipboard(REQUEST | u32::from(formats.0), &[])
}

/// Asks which formats the server has.
#[must_use]
pub fn clipboard_peek() -> Vec<u8> {
    clipboard(PEEK, &[])
}

/// Lists this client's formats; none when its clipboard is empty.
#[must_use]
pub fn clipboard_notify(formats: Formats) -> Vec<u8> {
    clipboard(NOTIFY | u32::from(formats.0), &[])
}

/// Sends this client's text, with line ends as the protocol requires.
#[must_use]
pub fn clipboard_provide(text: &str) -> Vec<u8> {
    let text = text.replace("\r\n", "\n").replace('\n', "\r\n");
    let data = [&(text.len() as u32 + 1).to_be_bytes()[..], text.as_bytes(), &[0]].concat();
    clipboard(PROVIDE | u32::from(Formats::TEXT.0), &deflate(&data))
}

fn clipboard(flags: u32, data: &[u8]) -> Vec<u8> {
    // A negative length marks the message as an extended one.
    let len = -(data.len() as i32 + 4);
    [&[CUT_TEXT, 0, 0, 0][..], &len.to_be_bytes(), &flags.to_be_bytes(), data].concat()
}

fn deflate(data: &[u8]) -> Vec<u8> {
    let mut stream = Deflate::new(6, true, 15);
    // Data that cannot be compressed grows by five bytes for every block of 16 KiB, and by the stream's frame.
    let mut out = vec![0; data.len() + data.len() / 1000 + 64];
    stream.compress(data, &mut out, DeflateFlush::Finish).expect("memory given is written to");
    out.truncate(stream.total_out() as usize);
    out
}

/// A fence; at most the first 64 bytes of the payload are sent.
#[must_use]
pub fn fence(flags: u32, payload: &[u8]) -> Vec<u8> {
    let payload = &payload[..payload.len().min(FENCE_PAYLOAD)];
    [&[FENCE, 0, 0, 0][..], &flags.to_be_bytes(), &[payload.len() as u8], payload].concat()
}

/// Switches updates of the rectangle without requests on or off.
#[must_use]
pub fn continuous_updates(on: bool, rect: Rect) -> Vec<u8> {
    [&[CONTINUOUS_UPDATES, u8::from(on)][..], &place(rect)].concat()
}

/// Asks for another size of the framebuffer, with its monitors: at most 255 of them.
#[must_use]
pub fn set_desktop_size(size: Size, monitors: &[Monitor]) -> Vec<u8> {
    let monitors = &monitors[..monitors.len().min(255)];
    let mut message = vec![SET_DESKTOP_SIZE, 0];
    message.extend([size.w, size.h].into_iter().flat_map(|side| (side as u16).to_be_bytes()));
    message.extend([monitors.len() as u8, 0]);
    for monitor in monitors {
        message.extend(monitor.id.to_be_bytes());
        message.extend(place(monitor.rect));
        message.extend(monitor.flags.to_be_bytes());
    }
    message
}

fn place(Rect { x, y, w, h }: Rect) -> [u8; 8] {
    let mut bytes = [0; 8];
    for (bytes, field) in bytes.chunks_exact_mut(2).zip([x, y, w, h]) {
        bytes.copy_from_slice(&(field as u16).to_be_bytes());
    }
    bytes
}
