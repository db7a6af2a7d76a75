//! Properties of the whole crate over random input, checked against the plainest possible model and against the `png`
//! crate as an independent decoder.

use imaging::{Cursor, Frame, Patch, Rect, Screen, Size, View, blit};
use proptest::prelude::*;

const MAX_W: u32 = 150;
const MAX_H: u32 = 100;

fn sizes() -> impl Strategy<Value = Size> {
    (1..=MAX_W, 1..=MAX_H).prop_map(|(w, h)| Size { w, h })
}

/// Pixels with long equal runs, as screens have them: one of a few colours for each block, padding at random.
fn pixels(size: Size, seed: u32) -> Vec<u8> {
    let hash = |v: u32| (v ^ seed).wrapping_mul(0x9E37_79B1).rotate_left(13).wrapping_mul(0x85EB_CA6B);
    (0..size.h)
        .flat_map(|y| (0..size.w).map(move |x| (x, y)))
        .flat_map(|(x, y)| {
            let colour = hash(x / 9 + y / 5 * 1000) >> 30;
            let shade = [0_u8, 80, 200, 255][colour as usize];
            [shade, shade / 2, 255 - shade, hash(x * y).to_le_bytes()[0]]
        })
        .collect()
}

/// The corner and extent of a rectangle, in parts of a thousand of whatever it will be inside.
type Place = (u32, u32, u32, u32);

fn places() -> impl Strategy<Value = Place> {
    (0..1000_u32, 0..1000_u32, 1..=1000_u32, 1..=1000_u32)
}

fn place((x, y, w, h): Place, size: Size) -> Rect {
    let (x, y) = (x * size.w / 1000, y * size.h / 1000);
    let extent = |part: u32, room: u32| (part * room / 1000).max(1);
    Rect { x, y, w: extent(w, size.w - x), h: extent(h, size.h - y) }
}

fn stride(rect: Rect) -> usize {
    rect.w as usize * 4
}

/// Red, green and blue of each pixel, rows one after the other.
fn colours(frame: &Frame) -> Vec<[u8; 3]> {
    frame.as_bytes().chunks(4).map(|pixel| [pixel[2], pixel[1], pixel[0]]).collect()
}

fn points(size: Size) -> impl Iterator<Item = (u32, u32)> {
    (0..size.h).flat_map(move |y| (0..size.w).map(move |x| (x, y)))
}

fn has(rect: Rect, (x, y): (u32, u32)) -> bool {
    rect.contains(Rect { x, y, w: 1, h: 1 })
}

/// Where two frames of one size differ in colour.
fn differing(a: &Frame, b: &Frame) -> Vec<(u32, u32)> {
    points(a.size()).zip(colours(a).iter().zip(&colours(b))).filter(|(_, (a, b))| a != b).map(|(p, _)| p).collect()
}

fn decode(file: &[u8]) -> (Size, Vec<u8>) {
    let mut options = png::DecodeOptions::default();
    options.set_ignore_adler32(false);
    options.set_ignore_crc(false);
    let mut decoder = png::Decoder::new_with_options(std::io::Cursor::new(file), options);
    // To RGB, of a palette.
    decoder.set_transformations(png::Transformations::EXPAND);
    let mut reader = decoder.read_info().unwrap();
    let mut rgb = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut rgb).unwrap();
    assert_eq!((info.color_type, info.bit_depth), (png::ColorType::Rgb, png::BitDepth::Eight));
    reader.finish().unwrap();
    (Size { w: info.width, h: info.height }, rgb)
}

#[derive(Clone, Debug)]
enum Step {
    Update(Vec<(Place, u32)>),
    Copy(Place, u32, u32),
    Resize(Size),
    Cursor(Option<(Size, (u32, u32), u32)>),
    Pointer((i32, i32)),
    Tighten,
    GetReady,
    Look { region: Option<Place>, size: Option<Size>, cursor: bool },
}

fn steps() -> impl Strategy<Value = Step> {
    let cursor = ((0..24_u32, 0..24_u32).prop_map(|(w, h)| Size { w, h }), (0..24_u32, 0..24_u32), any::<u32>());
    let look = (proptest::option::of(places()), proptest::option::weighted(0.3, sizes()), any::<bool>());
    prop_oneof![
        4 => proptest::collection::vec((places(), 0..4_u32), 0..4).prop_map(Step::Update),
        2 => (places(), 0..1000_u32, 0..1000_u32).prop_map(|(src, x, y)| Step::Copy(src, x, y)),
        1 => sizes().prop_map(Step::Resize),
        2 => proptest::option::weighted(0.8, cursor).prop_map(Step::Cursor),
        3 => (-20..170_i32, -20..120_i32).prop_map(Step::Pointer),
        1 => Just(Step::Tighten),
        2 => Just(Step::GetReady),
        6 => look.prop_map(|(region, size, cursor)| Step::Look { region, size, cursor }),
    ]
}

fn update(screen: &mut Screen, places: &[(Place, u32)]) -> bool {
    let sources: Vec<(Rect, Vec<u8>)> = places
        .iter()
        .map(|(at, seed)| (place(*at, screen.size()), *seed))
        .map(|(rect, seed)| (rect, pixels(rect.size(), seed)))
        .collect();
    let patches: Vec<Patch<'_>> =
        sources.iter().map(|(rect, pixels)| Patch { rect: *rect, pixels, stride: stride(*rect) }).collect();
    screen.update(&patches, 0.0).unwrap()
}

/// Does a step; returns the view of a look.
fn perform(screen: &mut Screen, step: &Step) -> Option<View> {
    match step {
        Step::Update(places) => {
            update(screen, places);
        }
        Step::Copy(src, x, y) => {
            let (src, size) = (place(*src, screen.size()), screen.size());
            let to = (x * (size.w - src.w) / 1000, y * (size.h - src.h) / 1000);
            screen.copy_rect(src, to, 0.0).unwrap();
        }
        Step::Resize(size) => screen.resize(*size, 0.0),
        Step::Cursor(cursor) => screen.set_cursor(cursor.map(|(size, hot, seed)| Cursor {
            size,
            hot,
            argb: (0..size.w * size.h).map(|i| i.wrapping_mul(seed)).collect(),
            serial: 1,
            name: String::new(),
        })),
        Step::Pointer(pointer) => screen.set_pointer(*pointer),
        Step::Tighten => {
            while let Some(slack) = screen.slack().unwrap() {
                screen.install(slack.tighten().unwrap());
            }
        }
        Step::GetReady => {
            screen.expect(1);
            screen.get_ready();
        }
        Step::Look { region, size, cursor } => {
            let region = region.map(|at| place(at, screen.size()));
            return Some(View { size: *size, region, cursor: *cursor });
        }
    }
    None
}

/// The same pixels and cursor in a screen that has never encoded anything.
fn fresh(screen: &Screen) -> Screen {
    let mut fresh = Screen::new(screen.size());
    let rect = screen.size().rect();
    let patch = Patch { rect, pixels: screen.frame().as_bytes(), stride: stride(rect) };
    fresh.update(&[patch], 0.0).unwrap();
    fresh.set_cursor(screen.cursor().cloned());
    fresh.set_pointer(screen.pointer());
    fresh
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_diff_finds_what_differs_and_patches_it(
        size in sizes(),
        seeds in (0..3_u32, 0..3_u32),
        changed in proptest::collection::vec((places(), 0..3_u32), 0..6),
    ) {
        let a = Frame::from_bgrx(size, pixels(size, seeds.0)).unwrap();
        let mut b = if changed.is_empty() { Frame::from_bgrx(size, pixels(size, seeds.1)).unwrap() } else { a.clone() };
        for (at, seed) in &changed {
            let rect = place(*at, size);
            blit(&mut b, rect, &pixels(rect.size(), *seed), stride(rect));
        }
        let truth = differing(&a, &b);

        let mut written = a.clone();
        let rects = blit(&mut written, size.rect(), b.as_bytes(), stride(size.rect()));
        prop_assert_eq!(colours(&written), colours(&b));
        prop_assert_eq!(blit(&mut written, size.rect(), b.as_bytes(), stride(size.rect())), []);
        prop_assert_eq!(rects.is_empty(), truth.is_empty());
        prop_assert!(truth.iter().all(|point| rects.iter().any(|rect| has(*rect, *point))));

        for rect in &rects {
            prop_assert!(size.rect().contains(*rect) && !rect.is_empty());
            let inside: Vec<_> = truth.iter().filter(|point| has(*rect, **point)).collect();
            let (left, right) = (inside.iter().map(|p| p.0).min(), inside.iter().map(|p| p.0 + 1).max());
            let (top, bottom) = (inside.iter().map(|p| p.1).min(), inside.iter().map(|p| p.1 + 1).max());
            prop_assert_eq!((left, right), (Some(rect.x), Some(rect.right())), "{}", rect);
            prop_assert_eq!((top, bottom), (Some(rect.y), Some(rect.bottom())), "{}", rect);
        }

        let mut patched = a.clone();
        for rect in &rects {
            let start = (rect.y * size.w + rect.x) as usize * 4;
            blit(&mut patched, *rect, &b.as_bytes()[start..], stride(size.rect()));
        }
        prop_assert_eq!(colours(&patched), colours(&b));
    }

    #[test]
    fn padding_is_never_seen(size in sizes(), seed in any::<u32>(), padding in any::<u8>()) {
        let mut screen = Screen::new(size);
        let mut bytes = pixels(size, seed);
        let rect = size.rect();
        screen.update(&[Patch { rect, pixels: &bytes, stride: stride(rect) }], 0.0).unwrap();
        let view = View { size: Some(Size { w: 40, h: 30 }), ..View::default() };
        let before = (screen.generation(), screen.png(&view).unwrap().to_vec());
        bytes.chunks_mut(4).for_each(|pixel| pixel[3] = padding);
        let changed = screen.update(&[Patch { rect, pixels: &bytes, stride: stride(rect) }], 1.0);
        prop_assert!(!changed.unwrap());
        prop_assert_eq!((screen.generation(), screen.png(&view).unwrap().to_vec()), before);
        prop_assert_eq!(fresh(&screen).png(&view).unwrap().to_vec(), screen.png(&view).unwrap().to_vec());
    }

    #[test]
    fn every_look_is_what_a_new_screen_would_show(
        size in sizes(),
        scaled in proptest::option::of(sizes()),
        steps in proptest::collection::vec(steps(), 1..24),
    ) {
        let mut screen = Screen::new(size);
        // Looked at again and again, as agents do, so that every step meets strips kept from before it.
        let usual = View { size: scaled, region: None, cursor: true };
        for step in &steps {
            let view = perform(&mut screen, step).unwrap_or(usual);
            let before = screen.frame().clone();
            let file = screen.png(&view).unwrap().to_vec();
            let rgb = screen.rgb(&view).unwrap();
            prop_assert_eq!(&decode(&file), &rgb);
            prop_assert_eq!(&decode(&screen.indexed_png(&view).unwrap().to_vec()), &rgb);
            prop_assert_eq!(screen.hashes().to_vec(), fresh(&screen).hashes().to_vec());
            prop_assert_eq!(&fresh(&screen).rgb(&view).unwrap(), &rgb);
            prop_assert!(differing(&before, screen.frame()).is_empty(), "looking changed the framebuffer");
            let shown = view.region.unwrap_or(screen.size().rect());
            prop_assert_eq!(rgb.0, view.size.unwrap_or(shown.size()));
            if view.size.is_none() && !view.cursor {
                let all = colours(screen.frame());
                let plain: Vec<u8> = points(screen.size())
                    .zip(all)
                    .filter(|(point, _)| has(shown, *point))
                    .flat_map(|(_, colour)| colour)
                    .collect();
                prop_assert_eq!(rgb.1, plain);
            }
        }
    }

    #[test]
    fn what_is_kept_tells_exactly_what_differs(
        size in sizes(),
        first in proptest::collection::vec(steps(), 0..4),
        steps in proptest::collection::vec(steps(), 1..12),
    ) {
        let mut screen = Screen::new(size);
        for step in &first {
            perform(&mut screen, step);
        }
        let (since, epoch, before) = (screen.generation(), screen.epoch(), screen.frame().clone());
        screen.keep();
        for step in &steps {
            perform(&mut screen, step);
        }
        let rects = screen.changes(since);
        if screen.epoch() == epoch {
            let found = differing(&before, screen.frame());
            prop_assert!(found.iter().all(|point| rects.iter().any(|rect| has(*rect, *point))));
            // Patches of one step may undo each other.
            let one_by_one = |step: &Step| !matches!(step, Step::Update(places) if places.len() > 1);
            prop_assert!(!found.is_empty() || rects.is_empty() || !steps.iter().all(one_by_one));
        }
    }

    #[test]
    fn changes_cover_every_changed_pixel(
        size in sizes(),
        steps in proptest::collection::vec(steps(), 1..20),
    ) {
        let mut screen = Screen::new(size);
        let mut past = vec![(0, screen.frame().clone())];
        for step in &steps {
            let generation = screen.generation();
            perform(&mut screen, step);
            let differs = past.last().is_none_or(|(_, frame)| {
                frame.size() != screen.size() || !differing(frame, screen.frame()).is_empty()
            });
            let steps = u64::from(differs || matches!(step, Step::Resize(_)));
            prop_assert!(screen.generation() == generation + steps || matches!(step, Step::Update(_)));
            past.push((screen.generation(), screen.frame().clone()));
        }
        prop_assert_eq!(screen.changes(screen.generation()), []);
        for (since, frame) in past {
            let rects = screen.changes(since);
            if frame.size() == screen.size() {
                let covered = |point| rects.iter().any(|rect| has(*rect, point));
                prop_assert!(differing(&frame, screen.frame()).into_iter().all(covered));
            } else {
                prop_assert_eq!(&rects, &[screen.size().rect()]);
            }
            let history = screen.history(since);
            prop_assert!(history.iter().all(|change| change.generation > since));
            prop_assert!(history.iter().flat_map(|change| &change.rects).all(|r| screen.size().rect().contains(*r)));
        }
    }
}
