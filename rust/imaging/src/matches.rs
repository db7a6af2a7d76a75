//! What repeats in rows of pixels: the first half of deflate (RFC 1951 §4), made for screens.
//!
//! The rule: a match starts and ends with a pixel and stays within its row, so that rows of text, which are alike pixel by pixel,
//! are compared a pixel at a time and not a byte.
//!
//! Looked at are the pixel to the left (areas of one colour), the row above (stems, edges, whatever is higher than a row), and
//! the latest four places that began with the same eight bytes. The longest is taken at once: waiting for a better one with the
//! next pixel made files 2 % smaller in a quarter more time.

use std::ops::Range;

/// How far back a match may begin (RFC 1951 §3.2.5).
pub(crate) const WINDOW: usize = 32 * 1024;

/// The longest match (RFC 1951 §3.2.5).
pub(crate) const MAX_LENGTH: usize = 258;

/// The shortest (RFC 1951 §3.2.5): a pixel of RGB.
const MIN_LENGTH: usize = 3;

/// Bytes that places are remembered by.
const KEY: usize = 8;

/// Places remembered for what hashes alike, and the logarithm of how many such slots there are: 32 kB, which stay in the
/// fastest cache.
const WAYS: usize = 4;
const SLOT_BITS: u32 = 12;
const SLOTS: usize = 1 << SLOT_BITS;

/// A shorter run costs more as a match than as literals.
const SHORTEST_ZEROS: usize = 2 * KEY;

/// A match so long is not worth a search for a longer one.
const GOOD: usize = 128;

/// After so many pixels in a row without a match, only every second is looked at, after twice as many every third, and so on:
/// in a photo hardly any.
const PATIENCE: usize = 32;
const MAX_STRIDE: usize = 16;

/// A piece of what is to be coded, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    /// So many bytes as they are.
    Literals(u32),
    /// So many bytes that were there so many bytes ago.
    Match { length: u16, distance: u16 },
}

/// Finds matches; keeps its memory.
#[derive(Default)]
pub(crate) struct Finder {
    /// For each slot the places, latest first, modulo 2^16: what is really there is compared anyway.
    slots: Vec<[u16; WAYS]>,
    tokens: Vec<Token>,
}

impl Finder {
    /// All of `rows`, each of them `row_len` bytes: one for the filter, then pixels of `PIXEL` bytes.
    pub(crate) fn tokens<const PIXEL: usize>(&mut self, rows: &[u8], row_len: usize) -> &[Token] {
        self.slots.clear();
        self.slots.resize(SLOTS, [0; WAYS]);
        self.tokens.clear();
        let slots: &mut [_; SLOTS] = self.slots.as_mut_slice().try_into().expect("resized to it");
        let (mut literals, mut misses) = (0, 0);
        for top in (0..rows.len()).step_by(row_len) {
            let end = rows.len().min(top + row_len);
            let mut at = top;
            while at < end {
                // The filter's byte stands alone, or begins a match.
                let lone = usize::from(at == top);
                let (length, distance) = longest::<PIXEL>(slots, rows, at..end, row_len);
                let whole = lone + length.saturating_sub(lone) / PIXEL * PIXEL;
                if whole < MIN_LENGTH || whole > length {
                    let stride =
                        if lone == 1 { 1 } else { PIXEL * (1 + misses / PATIENCE).min(MAX_STRIDE) }.min(end - at);
                    literals += stride;
                    at += stride;
                    misses += 1;
                    continue;
                }
                if literals > 0 {
                    self.tokens.push(Token::Literals(literals as u32));
                    literals = 0;
                }
                self.tokens.push(Token::Match { length: whole as u16, distance: distance as u16 });
                at += whole;
                misses = 0;
            }
        }
        if literals > 0 {
            self.tokens.push(Token::Literals(literals as u32));
        }
        &self.tokens
    }
}

/// Runs of zeros in filtered rows, where nothing changes from pixel to pixel; into `tokens`. All that a video has time for.
pub(crate) fn zeros(rows: &[u8], tokens: &mut Vec<Token>) {
    tokens.clear();
    let (words, rest) = rows.as_chunks::<KEY>();
    let mut literals = 0;
    for run in words.chunk_by(|a, b| (*a == [0; KEY]) == (*b == [0; KEY])) {
        let len = run.len() * KEY;
        if run[0] != [0; KEY] || len < SHORTEST_ZEROS {
            literals += len;
            continue;
        }
        // The first zero is what the others repeat.
        tokens.push(Token::Literals(literals as u32 + 1));
        let mut left = len - 1;
        while left >= MIN_LENGTH {
            let length = left.min(MAX_LENGTH);
            tokens.push(Token::Match { length: length as u16, distance: 1 });
            left -= length;
        }
        literals = left;
    }
    literals += rest.len();
    if literals > 0 {
        tokens.push(Token::Literals(literals as u32));
    }
}

/// The longest match found for the bytes at the start of a range of `rows`, ending within it, and its distance.
#[inline]
fn longest<const PIXEL: usize>(
    slots: &mut [[u16; WAYS]; SLOTS],
    rows: &[u8],
    Range { start: at, end }: Range<usize>,
    row_len: usize,
) -> (usize, usize) {
    let Some(here) = key(rows, at) else { return (0, 0) };
    let (most, window) = ((end - at).min(MAX_LENGTH), at.min(WINDOW));
    let length_of = |back: usize| same(&rows[at - back..][..most], &rows[at..][..most]);
    let (mut length, mut distance) = (0, 0);
    for back in [PIXEL, row_len] {
        let alike = |there: u64| (there ^ here) << (64 - 8 * MIN_LENGTH) == 0;
        if back <= window && key(rows, at - back).is_some_and(alike) {
            let found = length_of(back);
            if found > length {
                (length, distance) = (found, back);
            }
        }
    }
    if length >= GOOD.min(most) {
        return (length, distance);
    }
    let slot = &mut slots[(here.wrapping_mul(0x9E37_79B1_85EB_CA87) >> (64 - SLOT_BITS)) as usize];
    for place in *slot {
        let back = usize::from((at as u16).wrapping_sub(place));
        if back == 0 || back > window || key(rows, at - back) != Some(here) {
            break;
        }
        let found = length_of(back);
        // What is far away takes more bits: a pixel must be gained by it.
        if found >= length + PIXEL {
            (length, distance) = (found, back);
        }
    }
    slot.copy_within(..WAYS - 1, 1);
    slot[0] = at as u16;
    (length, distance)
}

/// The bytes that a place is remembered by; none where too few are left.
#[inline]
fn key(rows: &[u8], at: usize) -> Option<u64> {
    rows.get(at..)?.first_chunk().map(|bytes: &[u8; KEY]| u64::from_le_bytes(*bytes))
}

/// How many bytes at the start of both, equally long, are the same.
#[inline]
fn same(a: &[u8], b: &[u8]) -> usize {
    const VECTOR: usize = 32;
    let vectors = a.as_chunks::<VECTOR>().0.iter().zip(b.as_chunks::<VECTOR>().0).take_while(|(a, b)| a == b).count();
    let start = vectors * VECTOR;
    let (words_a, words_b) = (a[start..].as_chunks::<KEY>().0, b[start..].as_chunks::<KEY>().0);
    for (i, (a, b)) in words_a.iter().zip(words_b).enumerate() {
        let differing = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if differing != 0 {
            return start + i * KEY + differing.trailing_zeros() as usize / 8;
        }
    }
    let start = start + words_a.len() * KEY;
    start + a[start..].iter().zip(&b[start..]).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What a decoder makes of the tokens.
    fn told(tokens: &[Token], rows: &[u8]) -> Vec<u8> {
        let mut out: Vec<u8> = Vec::new();
        for token in tokens {
            match *token {
                Token::Literals(run) => out.extend(&rows[out.len()..][..run as usize]),
                Token::Match { length, distance } => {
                    assert!((MIN_LENGTH..=MAX_LENGTH).contains(&length.into()) && usize::from(distance) <= WINDOW);
                    (0..length).for_each(|_| out.push(out[out.len() - usize::from(distance)]));
                }
            }
        }
        out
    }

    /// Rows of RGB, each after a zero.
    fn rows(width: usize, height: usize, pixel: impl Fn(usize, usize) -> [u8; 3] + Copy) -> Vec<u8> {
        let row = |y| std::iter::once(0).chain((0..width).flat_map(move |x| pixel(x, y)));
        (0..height).flat_map(row).collect()
    }

    #[test]
    fn what_is_found_where() {
        let literals = Token::Literals;
        let matched = |length, distance| Token::Match { length, distance };
        let flat = rows(100, 2, |_, _| [7, 8, 9]);
        let stripes = rows(100, 2, |x, _| [x as u8, 200, 100]);
        let twice = rows(100, 1, |x, _| [x as u8 % 25, 200, 100]);
        let cases: [(&str, Vec<u8>, Vec<Token>); 3] = [
            ("one colour", flat, vec![literals(4), matched(258, 3), matched(39, 3), matched(256, 301), matched(45, 3)]),
            ("the same as above", stripes, vec![literals(301), matched(256, 301), matched(45, 301)]),
            ("the same as before", twice, vec![literals(76), matched(225, 75)]),
        ];
        for (name, rows, expected) in cases {
            let mut finder = Finder::default();
            assert_eq!(finder.tokens::<3>(&rows, 301), expected, "{name}");
            assert!(told(&expected, &rows) == rows, "{name}");
        }
    }

    #[test]
    fn noise_is_hardly_looked_at_and_what_follows_is_still_found() {
        let noise = |x: usize, y: usize| ((x * 7919 + y * 104_729).wrapping_mul(0x9E37_79B9) >> 11) as u8;
        let rows = rows(1000, 20, |x, y| if y < 10 { [noise(x, y), noise(y, x), noise(x + y, y)] } else { [3; 3] });
        let mut finder = Finder::default();
        let tokens = finder.tokens::<3>(&rows, 3001);
        assert!(told(tokens, &rows) == rows);
        assert!(tokens.len() < 400, "{}", tokens.len());
    }

    #[test]
    fn zeros_are_runs() {
        let rows = [vec![1; 8], vec![0; 600], vec![2; 9]].concat();
        let mut tokens = Vec::new();
        zeros(&rows, &mut tokens);
        let run = |length| Token::Match { length, distance: 1 };
        assert_eq!(tokens, [Token::Literals(9), run(258), run(258), run(83), Token::Literals(9)]);
        assert!(told(&tokens, &rows) == rows);
    }

    proptest! {
        #[test]
        fn tokens_tell_the_rows(
            few in proptest::collection::vec(0_u8..4, 0..4000),
            row_len in 1_usize..2000,
            repeated in 1_usize..40,
        ) {
            // Longer than the window, and than 16 bits can express.
            let rows = few.repeat(repeated);
            let mut finder = Finder::default();
            prop_assert!(told(finder.tokens::<3>(&rows, row_len), &rows) == rows);
            prop_assert!(told(finder.tokens::<1>(&rows, row_len), &rows) == rows);
            let long: Vec<u8> = few.iter().flat_map(|byte| vec![*byte; repeated]).collect();
            let mut tokens = Vec::new();
            zeros(&long, &mut tokens);
            prop_assert!(told(&tokens, &long) == long);
        }
    }
}
