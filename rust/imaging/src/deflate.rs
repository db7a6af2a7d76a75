//! Deflate (RFC 1951): bytes and what [repeats](crate::matches) in them as one block with codes of its own.
//!
//! The rule: a block ends at a byte's edge and refers to nothing before it, so that whatever follows stands alone; it is not marked
//! as the last.

use crate::huffman::{Code, codes, lengths};
use crate::matches::{MAX_LENGTH, Token};

/// Every byte, the end of the block, and the lengths of matches.
const SYMBOLS: usize = 286;
const END: usize = 256;

const DISTANCES: usize = 30;

/// What one stored block holds at most (RFC 1951 §3.2.4).
const MAX_STORED: usize = 0xFFFF;

/// An empty stored block, from its length on.
const EMPTY_STORED: [u8; 4] = [0, 0, 0xFF, 0xFF];

/// Of long runs of literals, one part in `SHARE` is counted, `SAMPLE` bytes at a time.
const SAMPLE: usize = 64;
const SHARE: usize = 4;

/// Deflates `bytes`, and returns the part of `buffer` where that is now; `tokens` describe the same bytes.
pub(crate) fn deflate<'a>(bytes: &[u8], tokens: &[Token], buffer: &'a mut Vec<u8>) -> &'a [u8] {
    let (symbols, distances) = count(bytes, tokens);
    let (symbol_lengths, distance_lengths) = (lengths(&symbols), lengths(&distances));
    // With the extra bits of lengths, at most 5, and of distances, at most 13.
    let bits = bits(&symbols[..=END], &symbol_lengths, 0)
        + bits(&symbols[END + 1..], &symbol_lengths[END + 1..], 5)
        + bits(&distances, &distance_lengths, 13);
    if bits / 8 >= bytes.len() {
        buffer.clear();
        store(bytes, buffer);
        return buffer;
    }
    let mut writer = Writer::new(buffer, most(bytes.len()));
    header(&symbol_lengths, &distance_lengths, &mut writer);
    body(bytes, tokens, &codes(&symbol_lengths), &codes(&distance_lengths), &mut writer);
    // An empty stored block brings what follows to a byte's edge.
    writer.put(Code { bits: 0, length: 3 });
    writer.finish()
}

/// How many bytes come out at the most: a code has up to 15 bits, and a match of three bytes up to 48.
const fn most(bytes: usize) -> usize {
    bytes * 2 + 512
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

fn bits(counts: &[u32], lengths: &[u8], extra: usize) -> usize {
    counts.iter().zip(lengths).map(|(count, length)| *count as usize * (usize::from(*length) + extra)).sum()
}

/// How often each symbol and each distance's code occurs, about; the end once.
///
/// Of literals that are many a sample is counted. One that is not in it may occur still, so each counts once at least.
fn count(bytes: &[u8], tokens: &[Token]) -> ([u32; SYMBOLS], [u32; DISTANCES]) {
    // Four tables, because equal bytes in a row would wait for one another's sums.
    let mut tables = [[0_u32; SYMBOLS]; 4];
    let mut sampled = false;
    let mut tally = |bytes: &[u8], weight: u32| {
        let (fours, rest) = bytes.as_chunks::<4>();
        for four in fours {
            for (table, byte) in tables.iter_mut().zip(four) {
                table[usize::from(*byte)] += weight;
            }
        }
        for byte in rest {
            tables[0][usize::from(*byte)] += weight;
        }
    };
    let mut lengths = [0_u32; SYMBOLS];
    let mut distances = [0; DISTANCES];
    let mut at = 0;
    for token in tokens {
        match *token {
            Token::Literals(run) => {
                let run = &bytes[at..at + run as usize];
                at += run.len();
                let (parts, rest) = run.as_chunks::<{ SAMPLE * SHARE }>();
                sampled |= !parts.is_empty();
                for part in parts {
                    tally(&part[..SAMPLE], SHARE as u32);
                }
                tally(rest, 1);
            }
            Token::Match { length, distance } => {
                at += usize::from(length);
                lengths[usize::from(LENGTHS[usize::from(length)].symbol)] += 1;
                distances[Extra::of_distance(distance).symbol as usize] += 1;
            }
        }
    }
    let unseen = |i: usize| u32::from(sampled && i < END);
    let mut counts = std::array::from_fn(|i| lengths[i] + unseen(i) + tables.iter().map(|table| table[i]).sum::<u32>());
    counts[END] = 1;
    (counts, distances)
}

/// A symbol for several lengths or distances, and which of them is meant.
#[derive(Clone, Copy, Default)]
struct Extra {
    symbol: u16,
    /// The bits that follow the symbol's code.
    which: Code,
}

/// For each length of a match (RFC 1951 §3.2.5).
static LENGTHS: [Extra; MAX_LENGTH + 1] = {
    let mut lengths = [Extra { symbol: 0, which: Code { bits: 0, length: 0 } }; MAX_LENGTH + 1];
    let (mut length, mut symbol) = (3, END as u16 + 1);
    while length < MAX_LENGTH {
        // Eight symbols for a length each, then four with each number of bits.
        let extra = if symbol < 265 { 0 } else { ((symbol - 261) / 4) as u8 };
        let mut which = 0;
        while which < 1 << extra && length < MAX_LENGTH {
            lengths[length] = Extra { symbol, which: Code { bits: which, length: extra } };
            (which, length) = (which + 1, length + 1);
        }
        symbol += 1;
    }
    lengths[MAX_LENGTH].symbol = 285;
    lengths
};

impl Extra {
    /// Four distances with a symbol each, then two symbols with each number of bits (RFC 1951 §3.2.5).
    #[inline]
    fn of_distance(distance: u16) -> Self {
        let from_zero = distance - 1;
        if from_zero < 4 {
            return Self { symbol: from_zero, which: Code::default() };
        }
        let extra = from_zero.ilog2() as u16 - 1;
        let bits = from_zero & ((1 << extra) - 1);
        Self { symbol: 2 * extra + (from_zero >> extra), which: Code { bits, length: extra as u8 } }
    }
}

/// A block with codes of its own: the lengths of the codes of all symbols and of all distances.
fn header(symbols: &[u8], distances: &[u8], writer: &mut Writer<'_>) {
    let mut put = |bits: u16, length: u8| {
        writer.put(Code { bits, length });
        writer.flush();
    };
    // Not last, dynamic; 286 codes for symbols, 30 for distances, all 19 lengths of codes for lengths.
    put(0b100, 3);
    put(29, 5);
    put(29, 5);
    put(15, 4);
    // The codes for lengths: none for repetitions, and four bits for each length from 0 to 15, so that each is its own code.
    for length in [0, 0, 0].into_iter().chain([4; 16]) {
        put(length, 3);
    }
    for length in symbols.iter().chain(distances) {
        put(u16::from(*length).reverse_bits() >> 12, 4);
    }
}

fn body(
    bytes: &[u8],
    tokens: &[Token],
    symbols: &[Code; SYMBOLS],
    distances: &[Code; DISTANCES],
    writer: &mut Writer<'_>,
) {
    let mut at = 0;
    for token in tokens {
        match *token {
            Token::Literals(run) => {
                let run = &bytes[at..at + run as usize];
                at += run.len();
                let (threes, rest) = run.as_chunks::<3>();
                for three in threes {
                    for byte in three {
                        writer.put(symbols[usize::from(*byte)]);
                    }
                    writer.flush();
                }
                for byte in rest {
                    writer.put(symbols[usize::from(*byte)]);
                }
                writer.flush();
            }
            Token::Match { length, distance } => {
                at += usize::from(length);
                let (length, distance) = (LENGTHS[usize::from(length)], Extra::of_distance(distance));
                writer.put(symbols[usize::from(length.symbol)]);
                writer.put(length.which);
                writer.put(distances[usize::from(distance.symbol)]);
                writer.put(distance.which);
                writer.flush();
            }
        }
    }
    writer.put(symbols[END]);
}

/// Bits into bytes.
struct Writer<'a> {
    out: &'a mut Vec<u8>,
    at: usize,
    held: u64,
    count: u32,
}

impl<'a> Writer<'a> {
    /// For at most so many bytes; what is in the buffer already is written over.
    fn new(out: &'a mut Vec<u8>, most: usize) -> Self {
        if out.len() < most {
            out.resize(most, 0);
        }
        Self { out, at: 0, held: 0, count: 0 }
    }

    /// Between two flushes 57 bits fit: three codes, or a whole match.
    #[inline]
    fn put(&mut self, code: Code) {
        self.held |= u64::from(code.bits) << self.count;
        self.count += u32::from(code.length);
    }

    #[inline]
    fn flush(&mut self) {
        self.out[self.at..self.at + 8].copy_from_slice(&self.held.to_le_bytes());
        self.at += (self.count / 8) as usize;
        self.held >>= self.count & !7;
        self.count &= 7;
    }

    /// Up to a byte's edge, and an empty stored block's lengths; all that was written.
    fn finish(mut self) -> &'a [u8] {
        self.count = self.count.next_multiple_of(8);
        self.flush();
        let end = self.at + EMPTY_STORED.len();
        self.out[self.at..end].copy_from_slice(&EMPTY_STORED);
        &self.out[..end]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use zlib_rs::{Inflate, InflateFlush};

    use super::*;
    use crate::matches::Finder;

    fn inflated(packed: &[u8], len: usize) -> Vec<u8> {
        let mut out = vec![0; len + 1];
        let mut inflate = Inflate::new(false, 15);
        inflate.decompress(packed, &mut out, InflateFlush::SyncFlush).unwrap();
        assert_eq!(inflate.total_in(), packed.len() as u64, "all of it was read");
        out.truncate(inflate.total_out() as usize);
        out
    }

    fn check(bytes: &[u8], tokens: &[Token]) -> usize {
        let mut buffer = vec![9; 3];
        let packed = deflate(bytes, tokens, &mut buffer);
        assert!(inflated(packed, bytes.len()) == bytes);
        packed.len()
    }

    fn check_literals(bytes: &[u8]) -> usize {
        check(bytes, &[Token::Literals(bytes.len() as u32)])
    }

    #[test]
    fn counts_as_steep_as_they_get() {
        // Fibonacci's numbers make the longest codes: 22 bits, if they were let.
        let (mut a, mut b, mut bytes) = (1_usize, 1, Vec::new());
        for byte in 0..23 {
            bytes.extend(std::iter::repeat_n(byte, a));
            (a, b) = (b, a + b);
        }
        assert!(check_literals(&bytes) < bytes.len() / 2);
    }

    #[test]
    fn what_is_in_no_sample_has_a_code() {
        let mut bytes = vec![0_u8; 4096];
        bytes
            .iter_mut()
            .enumerate()
            .filter(|(i, _)| i % (SAMPLE * SHARE) >= SAMPLE)
            .for_each(|(i, byte)| *byte = i as u8);
        check_literals(&bytes);
    }

    #[test]
    fn one_byte_and_none() {
        check(&[], &[]);
        check_literals(&[7]);
        check_literals(&[7].repeat(100_000));
    }

    #[test]
    fn what_cannot_be_smaller_is_stored() {
        let noise: Vec<u8> = (0..200_000_u32).map(|i| (i.wrapping_mul(0x9E37_79B1) >> 13 ^ i >> 3) as u8).collect();
        assert!(check_literals(&noise) <= noise.len() + 5 * 4);
    }

    #[test]
    fn every_length_and_every_distance() {
        for distance in (1..=0x8000).rev().step_by(7).chain(1..300) {
            let length = 3 + distance % 256;
            let start: Vec<u8> = (0..distance).map(|i| ((i * i) >> 3) as u8).collect();
            let bytes: Vec<u8> = start.iter().copied().cycle().take(distance + length).collect();
            let copied = Token::Match { length: length as u16, distance: distance as u16 };
            check(&bytes, &[Token::Literals(distance as u32), copied]);
        }
    }

    proptest! {
        #[test]
        fn whatever_it_is_it_comes_back(
            bytes in proptest::collection::vec(any::<u8>(), 0..3000),
            mask in any::<u8>(),
            row_len in 1_usize..400,
        ) {
            let bytes: Vec<u8> = bytes.iter().map(|byte| byte & mask).collect();
            check_literals(&bytes);
            let mut finder = Finder::default();
            check(&bytes, finder.tokens::<3>(&bytes, row_len));
            check(&bytes, finder.tokens::<1>(&bytes, row_len));
        }
    }
}
