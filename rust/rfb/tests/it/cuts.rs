//! What comes out does not depend on how the bytes were cut, and it is what an encoder put in.

use proptest::prelude::*;
use rfb::PixelFormat;

use crate::encoders::{Dice, Encoder, Picture, paint};
use crate::wire::{RGB332, RGB565, counted, fed, header, pixels, rect, session};

const W: usize = 150;
const H: usize = 90;

fn formats() -> Vec<PixelFormat> {
    let bgrx = PixelFormat::BGRX;
    let big = |format| PixelFormat { big_endian: true, ..format };
    let high = PixelFormat { shift: [24, 16, 8], ..bgrx };
    let rgbx = PixelFormat { shift: [0, 8, 16], ..bgrx };
    let rgb666 = PixelFormat { depth: 18, max: [63; 3], shift: [12, 6, 0], ..bgrx };
    let ten = PixelFormat { depth: 30, max: [1023; 3], shift: [20, 10, 0], ..bgrx };
    let bgr233 = PixelFormat { max: [7, 7, 3], shift: [0, 3, 6], ..RGB332 };
    vec![bgrx, big(bgrx), high, big(high), rgbx, big(rgbx), rgb666, big(ten), RGB565, big(RGB565), RGB332, bgr233]
}

/// A picture of few colours or many, in runs or not.
fn picture(w: usize, h: usize, mask: u32, dice: &mut Dice) -> Picture {
    let colours = [1, 2, 3, 5, 16, 17, 100, 300][dice.below(8)];
    let palette: Vec<u32> =
        (0..colours).map(|_| (dice.below(1 << 31) as u32).wrapping_mul(0x9E37_79B1) & mask).collect();
    let steady = [1, 3, 40][dice.below(3)];
    let mut here = 0;
    let raw = (0..w * h)
        .map(|_| {
            if dice.below(steady) == 0 {
                here = dice.below(colours);
            }
            palette[here]
        })
        .collect();
    Picture { w, h, raw }
}

/// A stream of updates and other messages, and what the screen shows in the end.
fn stream(format: PixelFormat, encodings: &[i32], seed: u64) -> (Vec<u8>, Vec<u32>) {
    let dice = &mut Dice(seed);
    let mut encoder = Encoder::new(format);
    let (mut out, mut screen) = (Vec::new(), vec![0; W * H]);
    for chunk in encodings.chunks(3) {
        let open_ended = dice.below(3) == 0;
        let count = if open_ended { u16::MAX } else { chunk.len() as u16 };
        out.extend([0, 0]);
        out.extend(count.to_be_bytes());
        for encoding in chunk {
            let (w, h) = (1 + dice.below(W), 1 + dice.below(H));
            let place = rect(dice.below(W - w + 1) as u32, dice.below(H - h + 1) as u32, w as u32, h as u32);
            out.extend(header(place, *encoding));
            if *encoding == 1 {
                let (x, y) = (dice.below(W - w + 1), dice.below(H - h + 1));
                out.extend([x, y].into_iter().flat_map(|side| (side as u16).to_be_bytes()));
                let copied: Vec<u32> = (0..w * h).map(|i| screen[(y + i / w) * W + x + i % w]).collect();
                for (i, pixel) in copied.into_iter().enumerate() {
                    screen[(place.y as usize + i / w) * W + place.x as usize + i % w] = pixel;
                }
            } else {
                let picture = picture(w, h, encoder.form.mask(), dice);
                out.extend(encoder.encode(*encoding, &picture, dice));
                paint(&mut screen, W, place, &picture, encoder.form);
            }
        }
        if open_ended {
            out.extend(header(rect(0, 0, 0, 0), -224));
        }
        out.extend(match dice.below(6) {
            0 => vec![2],
            1 => counted(&[3, 0, 0, 0], b"text"),
            2 => [&[248, 0, 0, 0, 0x80, 0, 0, 3, 4][..], b"mark"].concat(),
            3 => [&[0, 0, 0, 1][..], &header(rect(1, 0, 2, 2), -314), &[0; 20]].concat(),
            4 => vec![150],
            _ => vec![],
        });
    }
    (out, screen)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_was_encoded_is_decoded_however_it_is_cut(
        format in proptest::sample::select(formats()),
        encodings in proptest::collection::vec(proptest::sample::select(vec![0, 1, 5, 6, 7, 16]), 1..10),
        seed in any::<u64>(),
        cuts in proptest::collection::vec(1_usize..5000, 1..50),
    ) {
        let (stream, expected) = stream(format, &encodings, seed);
        let show = |pieces: &[usize]| {
            let mut session = session(W as u32, H as u32, &format);
            let (events, violation) = fed(&mut session, &stream, pieces);
            assert_eq!(violation, None);
            (pixels(&session), events, session.to_send(), session.features())
        };
        let whole = show(&[stream.len()]);
        prop_assert_eq!(&whole.0, &expected);
        prop_assert_eq!(&whole, &show(&[1]));
        prop_assert_eq!(&whole, &show(&cuts));
    }

    #[test]
    fn damage_ends_in_a_violation_or_not_at_all_but_at_the_same_place_however_it_is_cut(
        format in proptest::sample::select(formats()),
        encodings in proptest::collection::vec(proptest::sample::select(vec![0, 1, 5, 6, 7, 16]), 1..6),
        seed in any::<u64>(),
        damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..8),
        cuts in proptest::collection::vec(1_usize..500, 1..50),
    ) {
        let (mut stream, _) = stream(format, &encodings, seed);
        for (place, byte) in damage {
            let place = place.index(stream.len().min(4000));
            stream[place] = byte;
        }
        let end = |pieces: &[usize]| {
            let mut session = session(W as u32, H as u32, &format);
            let (events, violation) = fed(&mut session, &stream, pieces);
            (pixels(&session), events, session.to_send(), violation.map(|violation| violation.offset))
        };
        let whole = end(&[stream.len()]);
        prop_assert_eq!(&whole, &end(&cuts));
        prop_assert_eq!(&whole, &end(&[1]));
    }
}
