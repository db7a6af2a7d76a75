//! Bytes in any pieces, handed out in the pieces that parsers request.
//!
//! The rule: a piece is copied only when it was cut in two by the transport, and what is kept between two calls is less than
//! one piece. Parsers never see how the bytes were cut.

/// The bytes of one call, after those left from the calls before.
pub(crate) struct Input<'a> {
    carry: &'a mut Vec<u8>,
    /// Bytes at the front of `carry` that were handed out already.
    spent: usize,
    fresh: &'a [u8],
    consumed: &'a mut u64,
}

impl<'a> Input<'a> {
    pub(crate) fn new(carry: &'a mut Vec<u8>, fresh: &'a [u8], consumed: &'a mut u64) -> Self {
        Self { carry, spent: 0, fresh, consumed }
    }

    /// Bytes consumed since the stream began.
    pub(crate) fn offset(&self) -> u64 {
        *self.consumed
    }

    /// The next `n` bytes, not consumed; `None` when they are not all here yet.
    pub(crate) fn peek(&mut self, n: usize) -> Option<&[u8]> {
        self.settle();
        if self.carry.is_empty() && n <= self.fresh.len() {
            return Some(&self.fresh[..n]);
        }
        let missing = n.saturating_sub(self.carry.len()).min(self.fresh.len());
        let (taken, fresh) = self.fresh.split_at(missing);
        self.carry.extend_from_slice(taken);
        self.fresh = fresh;
        self.carry.get(..n)
    }

    /// The next `n` bytes, consumed; `None`, and none consumed, when they are not all here yet.
    pub(crate) fn take(&mut self, n: usize) -> Option<&[u8]> {
        self.peek(n)?;
        *self.consumed += n as u64;
        if self.carry.is_empty() {
            let (taken, fresh) = self.fresh.split_at(n);
            self.fresh = fresh;
            return Some(taken);
        }
        self.spent = n;
        Some(&self.carry[..n])
    }

    /// The next `N` bytes as an array, consumed.
    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    /// As many whole units of `unit` bytes as are here without copying, at most `max` of them, consumed; `None` when there
    /// is not even one.
    pub(crate) fn units(&mut self, unit: usize, max: usize) -> Option<&[u8]> {
        self.settle();
        let here = if self.carry.is_empty() { self.fresh.len() / unit } else { 1 };
        self.take(here.clamp(1, max) * unit)
    }

    /// Whatever is here, at most `max` bytes, not consumed; may be empty.
    pub(crate) fn some(&mut self, max: usize) -> &[u8] {
        self.settle();
        let here = if self.carry.is_empty() { self.fresh } else { self.carry.as_slice() };
        &here[..here.len().min(max)]
    }

    /// Consumes `n` bytes that were looked at before.
    pub(crate) fn consume(&mut self, n: usize) {
        self.settle();
        *self.consumed += n as u64;
        if self.carry.is_empty() {
            self.fresh = &self.fresh[n..];
        } else {
            self.carry.drain(..n);
        }
    }

    /// Consumes at most `max` bytes of whatever is here, and returns how many.
    pub(crate) fn skip(&mut self, max: u64) -> u64 {
        let mut skipped = 0;
        while skipped < max {
            let here = self.some(usize::try_from(max - skipped).unwrap_or(usize::MAX)).len();
            if here == 0 {
                break;
            }
            self.consume(here);
            skipped += here as u64;
        }
        skipped
    }

    fn settle(&mut self) {
        if self.spent > 0 {
            self.carry.drain(..self.spent);
            self.spent = 0;
            if self.carry.is_empty() && self.carry.capacity() > KEPT {
                *self.carry = Vec::new();
            }
        }
    }
}

/// Room that stays allocated for pieces that were cut.
const KEPT: usize = 64 << 10;

impl Drop for Input<'_> {
    fn drop(&mut self) {
        self.settle();
    }
}

/// Reads big-endian fields off a piece whose length was checked before.
pub(crate) struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn bytes(&mut self, n: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(n);
        self.0 = rest;
        taken
    }

    pub(crate) fn skip(&mut self, n: usize) -> &mut Self {
        self.bytes(n);
        self
    }

    pub(crate) fn u8(&mut self) -> u8 {
        self.bytes(1)[0]
    }

    pub(crate) fn u16(&mut self) -> u16 {
        let bytes = self.bytes(2);
        u16::from_be_bytes([bytes[0], bytes[1]])
    }

    pub(crate) fn u32(&mut self) -> u32 {
        let bytes = self.bytes(4);
        u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_do_not_depend_on_the_cuts() {
        let stream: Vec<u8> = (0..60).collect();
        for cut in 1..stream.len() {
            let (mut carry, mut consumed, mut seen) = (Vec::new(), 0, Vec::new());
            let mut sizes = [3_usize, 1, 7, 2, 11, 0, 36].into_iter();
            let mut wanted = sizes.next();
            for piece in stream.chunks(cut) {
                let mut input = Input::new(&mut carry, piece, &mut consumed);
                while let Some(n) = wanted {
                    let Some(taken) = input.take(n) else { break };
                    seen.push(taken.to_vec());
                    wanted = sizes.next();
                }
            }
            assert_eq!(seen.iter().map(Vec::len).collect::<Vec<_>>(), [3, 1, 7, 2, 11, 0, 36], "cut at {cut}");
            assert_eq!(seen.concat(), stream);
            assert_eq!((consumed, carry.len()), (60, 0));
        }
    }

    #[test]
    fn units_are_whole_and_not_copied_when_fresh() {
        let (mut carry, mut consumed) = (vec![1], 0);
        let mut input = Input::new(&mut carry, &[2, 3, 4, 5, 6, 7, 8], &mut consumed);
        assert_eq!(input.units(3, 9), Some(&[1, 2, 3][..]));
        assert_eq!(input.units(2, 9), Some(&[4, 5, 6, 7][..]));
        assert_eq!(input.units(2, 9), None);
        assert_eq!((input.offset(), input.some(5)), (7, &[8][..]));
        assert_eq!(input.skip(9), 1);
        assert_eq!(input.skip(9), 0);
    }
}
