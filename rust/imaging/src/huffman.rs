//! Deflate without a search for repetition: each byte gets a code by how often it occurs (RFC 1951 §3.2.7), and that is all.
//!
//! For filtered photos nothing else helps. zlib-rs's `HuffmanOnly` gives the same size, and first stores every byte as a symbol,
//! which takes several times as long.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Every byte, and the end of the block.
const SYMBOLS: usize = 257;
const END: usize = 256;

/// The longest code that the format can tell (RFC 1951 §3.2.7).
const MAX_LENGTH: u8 = 15;

/// What one stored block holds at most (RFC 1951 §3.2.4).
const MAX_STORED: usize = 0xFFFF;

/// An empty stored block, from its length on.
const EMPTY_STORED: [u8; 4] = [0, 0, 0xFF, 0xFF];

/// Deflates `bytes` into `out`, to a byte's edge, so that whatever follows stands alone; the last block is not marked as last.
pub(crate) fn deflate(bytes: &[u8], out: &mut Vec<u8>) {
    out.clear();
    let counts = count(bytes);
    let lengths = lengths(&counts);
    let bits: usize = counts.iter().zip(&lengths).map(|(count, length)| *count as usize * usize::from(*length)).sum();
    if bits / 8 >= bytes.len() {
        store(bytes, out);
        return;
    }
    let mut writer = Writer::new(out, bits / 8 + 512);
    header(&lengths, &mut writer);
    let codes = codes(&lengths);
    let (threes, rest) = bytes.as_chunks::<3>();
    for three in threes {
        for byte in three {
            writer.put(codes[usize::from(*byte)]);
        }
        writer.flush();
    }
    for byte in rest {
        writer.put(codes[usize::from(*byte)]);
    }
    writer.flush();
    writer.put(codes[END]);
    // An empty stored block brings what follows to a byte's edge.
    writer.put(Code { bits: 0, length: 3 });
    writer.finish();
    out.extend_from_slice(&EMPTY_STORED);
}

fn store(bytes: &[u8], out: &mut Vec<u8>) {
    for block in bytes.chunks(MAX_STORED) {
        let length = block.len() as u16;
        out.push(0);
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&(!length).to_le_bytes());
        out.extend_from_slice(block);
    }
}

/// How often each symbol occurs: the end once.
fn count(bytes: &[u8]) -> [u32; SYMBOLS] {
    // Four tables, because equal bytes in a row would wait for one another's sums.
    let mut tables = [[0_u32; 256]; 4];
    let (fours, rest) = bytes.as_chunks::<4>();
    for four in fours {
        for (table, byte) in tables.iter_mut().zip(four) {
            table[usize::from(*byte)] += 1;
        }
    }
    for byte in rest {
        tables[0][usize::from(*byte)] += 1;
    }
    let mut counts = [1; SYMBOLS];
    for (i, count) in counts[..END].iter_mut().enumerate() {
        *count = tables.iter().map(|table| table[i]).sum();
    }
    counts
}

/// The length of each symbol's code, zero for those that do not occur.
fn lengths(counts: &[u32; SYMBOLS]) -> [u8; SYMBOLS] {
    let mut counts = *counts;
    loop {
        let lengths = optimal(&counts);
        if lengths.iter().all(|length| *length <= MAX_LENGTH) {
            return lengths;
        }
        // Flatter counts make shorter codes; what is lost by it are rare symbols' bits.
        for count in counts.iter_mut().filter(|count| **count > 0) {
            *count = *count / 2 + 1;
        }
    }
}

/// Huffman's own lengths, however long.
fn optimal(counts: &[u32; SYMBOLS]) -> [u8; SYMBOLS] {
    let mut parents = [0; 2 * SYMBOLS];
    let mut waiting: BinaryHeap<_> =
        (0..SYMBOLS).filter(|i| counts[*i] > 0).map(|i| Reverse((u64::from(counts[i]), i))).collect();
    let mut next = SYMBOLS;
    while let Some(Reverse((first, a))) = waiting.pop() {
        let Some(Reverse((second, b))) = waiting.pop() else { break };
        (parents[a], parents[b]) = (next, next);
        waiting.push(Reverse((first + second, next)));
        next += 1;
    }
    let mut depths = [0_u8; 2 * SYMBOLS];
    for node in (SYMBOLS..next.saturating_sub(1)).rev() {
        depths[node] = depths[parents[node]] + 1;
    }
    // A symbol without a parent does not occur, or is the only one: the end, in a block without bytes.
    std::array::from_fn(|i| if parents[i] == 0 { 0 } else { depths[parents[i]] + 1 })
}

/// Bits to write, the first of them lowest.
#[derive(Clone, Copy, Default)]
struct Code {
    bits: u16,
    length: u8,
}

/// The codes that the lengths imply (RFC 1951 §3.2.2).
fn codes(lengths: &[u8; SYMBOLS]) -> [Code; SYMBOLS] {
    let mut next = [0_u16; MAX_LENGTH as usize + 2];
    for length in 1..=usize::from(MAX_LENGTH) {
        let before = lengths.iter().filter(|other| usize::from(**other) == length).count() as u16;
        next[length + 1] = (next[length] + before) << 1;
    }
    lengths.map(|length| {
        if length == 0 {
            return Code::default();
        }
        let code = &mut next[usize::from(length)];
        let bits = code.reverse_bits() >> (16 - length);
        *code += 1;
        Code { bits, length }
    })
}

/// A block with codes of its own: the lengths of 257 literals and of one distance code, which is not used.
fn header(lengths: &[u8; SYMBOLS], writer: &mut Writer<'_>) {
    let mut put = |bits: u16, length: u8| {
        writer.put(Code { bits, length });
        writer.flush();
    };
    // Not last, dynamic; 257 literal codes, 1 distance code, all 19 lengths of codes for lengths.
    put(0b100, 3);
    put(0, 5);
    put(0, 5);
    put(15, 4);
    // The codes for lengths: none for repetitions, and four bits for each length from 0 to 15, so that each is its own code.
    for length in [0, 0, 0].into_iter().chain([4; 16]) {
        put(length, 3);
    }
    for length in lengths.iter().chain(&[0]) {
        put(u16::from(*length).reverse_bits() >> 12, 4);
    }
}

/// Bits into bytes.
struct Writer<'a> {
    out: &'a mut Vec<u8>,
    at: usize,
    held: u64,
    count: u32,
}

impl<'a> Writer<'a> {
    /// For at most so many bytes.
    fn new(out: &'a mut Vec<u8>, most: usize) -> Self {
        out.resize(most, 0);
        Self { out, at: 0, held: 0, count: 0 }
    }

    /// Three codes fit between two flushes.
    fn put(&mut self, code: Code) {
        self.held |= u64::from(code.bits) << self.count;
        self.count += u32::from(code.length);
    }

    fn flush(&mut self) {
        self.out[self.at..self.at + 8].copy_from_slice(&self.held.to_le_bytes());
        self.at += (self.count / 8) as usize;
        self.held >>= self.count & !7;
        self.count &= 7;
    }

    /// Up to a byte's edge.
    fn finish(mut self) {
        self.count = self.count.next_multiple_of(8);
        self.flush();
        self.out.truncate(self.at);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use zlib_rs::{Inflate, InflateFlush};

    use super::*;

    fn inflated(packed: &[u8], len: usize) -> Vec<u8> {
        let mut out = vec![0; len + 1];
        let mut inflate = Inflate::new(false, 15);
        inflate.decompress(packed, &mut out, InflateFlush::SyncFlush).unwrap();
        assert_eq!(inflate.total_in(), packed.len() as u64, "all of it was read");
        out.truncate(inflate.total_out() as usize);
        out
    }

    fn check(bytes: &[u8]) -> usize {
        let mut packed = vec![9; 3];
        deflate(bytes, &mut packed);
        assert!(inflated(&packed, bytes.len()) == bytes);
        packed.len()
    }

    #[test]
    fn counts_as_steep_as_they_get() {
        // Fibonacci's numbers make the longest codes: 22 bits, if they were let.
        let (mut a, mut b, mut bytes) = (1_usize, 1, Vec::new());
        for byte in 0..23 {
            bytes.extend(std::iter::repeat_n(byte, a));
            (a, b) = (b, a + b);
        }
        assert!(check(&bytes) < bytes.len() / 2);
    }

    #[test]
    fn one_byte_and_none() {
        check(&[]);
        check(&[7]);
        check(&[7].repeat(100_000));
    }

    #[test]
    fn what_cannot_be_smaller_is_stored() {
        let noise: Vec<u8> = (0..200_000_u32).map(|i| (i.wrapping_mul(0x9E37_79B1) >> 13 ^ i >> 3) as u8).collect();
        assert!(check(&noise) <= noise.len() + 5 * 4);
    }

    proptest! {
        #[test]
        fn whatever_it_is_it_comes_back(bytes in proptest::collection::vec(any::<u8>(), 0..3000), mask in any::<u8>()) {
            check(&bytes.iter().map(|byte| byte & mask).collect::<Vec<u8>>());
        }
    }
}
