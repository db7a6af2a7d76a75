//! A zlib stream that goes on from one rectangle to the next.
//!
//! The rule: nothing is inflated beyond the room that the caller gives, and the caller knows how much has to come.

use zlib_rs::{Inflate, InflateFlush, Status};

use crate::input::Input;
use crate::violation::{Problem, data};

/// The greatest window of deflate.
const WINDOW_BITS: u8 = 15;

/// One stream. It takes memory when it is first used.
#[derive(Default)]
pub(crate) struct Inflater(Option<Inflate>);

impl Inflater {
    /// Forgets what came before.
    pub(crate) fn reset(&mut self) {
        if let Some(stream) = &mut self.0 {
            stream.reset(true);
        }
    }

    /// Inflates into `out`; returns how much was read and how much written.
    ///
    /// # Errors
    /// When the stream is not zlib.
    pub(crate) fn run(&mut self, what: &'static str, input: &[u8], out: &mut [u8]) -> Result<(usize, usize), Problem> {
        let stream = self.0.get_or_insert_with(|| Inflate::new(true, WINDOW_BITS));
        let before = (stream.total_in(), stream.total_out());
        let status =
            stream.decompress(input, out, InflateFlush::SyncFlush).map_err(|error| data(what, error.as_str()))?;
        let (read, written) = (stream.total_in() - before.0, stream.total_out() - before.1);
        if status == Status::StreamEnd && (read as usize) < input.len() {
            return Err(data(what, "goes on after its end"));
        }
        Ok((read as usize, written as usize))
    }
}

/// The compressed bytes of one rectangle, as they come.
pub(crate) struct Deflated {
    what: &'static str,
    left: usize,
}

impl Deflated {
    pub(crate) const fn new(what: &'static str, len: usize) -> Self {
        Self { what, left: len }
    }

    /// Fills `out` as far as the bytes that are here reach, and returns how far.
    ///
    /// # Errors
    /// When the stream is not zlib.
    pub(crate) fn fill(&mut self, input: &mut Input, stream: &mut Inflater, out: &mut [u8]) -> Result<usize, Problem> {
        let mut filled = 0;
        while filled < out.len() {
            let (read, written) = stream.run(self.what, input.some(self.left), &mut out[filled..])?;
            input.consume(read);
            self.left -= read;
            filled += written;
            if read == 0 && written == 0 {
                break;
            }
        }
        Ok(filled)
    }

    /// To be called when more is needed than came out.
    ///
    /// # Errors
    /// When no more will come.
    pub(crate) fn expect_more(&self) -> Result<(), Problem> {
        if self.left == 0 { Err(data(self.what, "gives fewer bytes than its rectangle has")) } else { Ok(()) }
    }

    /// Reads what is left after everything expected was inflated; returns whether that was all.
    ///
    /// # Errors
    /// When there is more to inflate.
    pub(crate) fn finish(&mut self, input: &mut Input, stream: &mut Inflater) -> Result<bool, Problem> {
        loop {
            let here = input.some(self.left);
            if here.is_empty() && self.left > 0 {
                return Ok(false);
            }
            // Asked once more when all is read: the stream may still hold what had no room before.
            let (read, written) = stream.run(self.what, here, &mut [0])?;
            if written > 0 {
                return Err(data(self.what, "gives more bytes than its rectangle has"));
            }
            input.consume(read);
            self.left -= read;
            if self.left == 0 {
                return Ok(true);
            }
            if read == 0 {
                return Err(data(self.what, "does not come to its end"));
            }
        }
    }
}
