//! Huffman's codes as deflate wants them (RFC 1951 §3.2.2): the shortest for what occurs most.

/// The longest code that the format can describe (RFC 1951 §3.2.7).
const MAX_LENGTH: u8 = 15;

/// The largest alphabet.
const MAX_SYMBOLS: usize = 286;

/// Bits to write, the first of them lowest.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Code {
    pub bits: u16,
    pub length: u8,
}

/// The length of each symbol's code by how often it occurs; zero for those that do not.
pub(crate) fn lengths<const N: usize>(counts: &[u32; N]) -> [u8; N] {
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
fn optimal<const N: usize>(counts: &[u32; N]) -> [u8; N] {
    let mut lengths = [0; N];
    let mut symbols: [u16; N] = std::array::from_fn(|i| i as u16);
    symbols.sort_unstable_by_key(|symbol| counts[usize::from(*symbol)]);
    let leaves = &symbols[counts.iter().filter(|count| **count == 0).count()..];
    // A tree's nodes: the leaves by weight, then those that join two, which come into being by weight, too.
    let mut weights = [0_u64; 2 * MAX_SYMBOLS];
    let mut parents = [0_u16; 2 * MAX_SYMBOLS];
    for (weight, symbol) in weights.iter_mut().zip(leaves) {
        *weight = u64::from(counts[usize::from(*symbol)]);
    }
    let (mut leaf, mut joint, mut next) = (0, leaves.len(), leaves.len());
    let last = (2 * leaves.len()).saturating_sub(1);
    while next < last {
        for _ in 0..2 {
            let lighter = if leaf < leaves.len() && (joint == next || weights[leaf] <= weights[joint]) {
                &mut leaf
            } else {
                &mut joint
            };
            parents[*lighter] = next as u16;
            weights[next] += weights[*lighter];
            *lighter += 1;
        }
        next += 1;
    }
    let mut depths = [0_u8; 2 * MAX_SYMBOLS];
    for node in (0..last.saturating_sub(1)).rev() {
        depths[node] = depths[usize::from(parents[node])] + 1;
    }
    for (depth, symbol) in depths.iter().zip(leaves) {
        // A symbol that is alone needs a code, too.
        lengths[usize::from(*symbol)] = (*depth).max(1);
    }
    lengths
}

/// The codes that the lengths imply.
pub(crate) fn codes<const N: usize>(lengths: &[u8; N]) -> [Code; N] {
    let mut of_length = [0_u16; MAX_LENGTH as usize + 1];
    for length in lengths {
        of_length[usize::from(*length)] += 1;
    }
    let mut next = [0_u16; MAX_LENGTH as usize + 1];
    for length in 2..=usize::from(MAX_LENGTH) {
        next[length] = (next[length - 1] + of_length[length - 1]) << 1;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_occurs_more_is_shorter() {
        let cases: [([u32; 5], [u8; 5]); 5] = [
            ([0; 5], [0; 5]),
            ([0, 9, 0, 0, 0], [0, 1, 0, 0, 0]),
            ([0, 9, 0, 0, 1], [0, 1, 0, 0, 1]),
            ([1, 1, 1, 1, 0], [2, 2, 2, 2, 0]),
            ([1, 20, 5, 0, 2], [3, 1, 2, 0, 3]),
        ];
        for (counts, expected) in cases {
            assert_eq!(lengths(&counts), expected, "{counts:?}");
        }
    }

    #[test]
    fn codes_of_the_standard() {
        // The example of RFC 1951 §3.2.2.
        let codes = codes(&[3, 3, 3, 3, 3, 2, 4, 4]);
        let bits = |code: &Code| {
            format!("{:0width$b}", code.bits.reverse_bits() >> (16 - code.length), width = code.length.into())
        };
        let written: Vec<String> = codes.iter().map(bits).collect();
        assert_eq!(written, ["010", "011", "100", "101", "110", "00", "1110", "1111"]);
    }
}
