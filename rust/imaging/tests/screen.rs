//! What a screen promises, case by case: cost, refusals, the log, and the bytes of a PNG file.

use imaging::{Cursor, ImagingError, Patch, Rect, Screen, Size, Stats, View};

const SIZE: Size = Size { w: 640, h: 320 };
const ALL: View = View { size: None, region: None, cursor: false };
const WITH_CURSOR: View = View { cursor: true, ..ALL };

fn rect(x: u32, y: u32, w: u32, h: u32) -> Rect {
    Rect { x, y, w, h }
}

fn paint(screen: &mut Screen, rect: Rect, shade: u8) -> bool {
    let pixels = vec![shade; (rect.w * rect.h * 4) as usize];
    screen.update(&[Patch { rect, pixels: &pixels, stride: rect.w as usize * 4 }], 1.5).unwrap()
}

fn deflated(screen: &mut Screen, view: &View) -> u64 {
    let before = screen.stats();
    screen.png(view).unwrap();
    screen.stats().strips_deflated - before.strips_deflated
}

fn arrow() -> Cursor {
    Cursor { size: Size { w: 8, h: 8 }, hot: (0, 0), argb: vec![0xFFFF_FFFF; 64], serial: 7, name: String::new() }
}

#[test]
fn a_screen_may_be_shared_between_threads() {
    fn check<T: Send + Sync>(_: &T) {}
    check(&Screen::new(SIZE));
}

#[test]
fn cost_follows_change() {
    let mut screen = Screen::new(SIZE);
    assert_eq!(screen.stats(), Stats::default());
    assert_eq!(deflated(&mut screen, &ALL), 10);
    assert_eq!(screen.stats().bytes_deflated, 320 * (1 + 640 * 3));
    let first = screen.png(&ALL).unwrap();

    assert_eq!(first.stamp(), screen.png(&ALL).unwrap().stamp(), "unchanged: the same file");
    assert!(!paint(&mut screen, rect(0, 0, 50, 50), 0));
    assert_eq!(deflated(&mut screen, &ALL), 0, "written, but with the same colour");
    assert!(paint(&mut screen, rect(100, 40, 300, 14), 9));
    assert_eq!(deflated(&mut screen, &ALL), 1, "one line of text");
    paint(&mut screen, rect(100, 60, 300, 8), 9);
    assert_eq!(deflated(&mut screen, &ALL), 2, "across two strips");
}

#[test]
fn a_scaled_look_costs_what_changed_too() {
    let mut screen = Screen::new(SIZE);
    let view = View { size: Some(Size { w: 320, h: 160 }), ..ALL };
    assert_eq!(deflated(&mut screen, &view), 10);
    paint(&mut screen, rect(100, 72, 300, 14), 9);
    assert_eq!(deflated(&mut screen, &view), 1);
    paint(&mut screen, rect(0, 0, 640, 1), 1);
    assert_eq!(deflated(&mut screen, &view), 1);
}

#[test]
fn the_cursor_costs_the_strips_it_leaves_and_enters() {
    let mut screen = Screen::new(SIZE);
    deflated(&mut screen, &WITH_CURSOR);
    screen.set_cursor(Some(arrow()));
    screen.set_pointer((5, 5));
    assert_eq!(deflated(&mut screen, &WITH_CURSOR), 1);
    screen.set_pointer((90, 7));
    assert_eq!(deflated(&mut screen, &WITH_CURSOR), 1, "moved within a strip");
    screen.set_pointer((6, 200));
    assert_eq!(deflated(&mut screen, &WITH_CURSOR), 2);
    screen.set_cursor(Some(arrow()));
    assert_eq!(deflated(&mut screen, &WITH_CURSOR), 0, "the same image again");
    screen.set_cursor(Some(Cursor { argb: vec![0xFF00_0000; 64], ..arrow() }));
    assert_eq!(deflated(&mut screen, &WITH_CURSOR), 1, "another image with the same serial");
    screen.set_pointer((9999, -9999));
    assert_eq!(deflated(&mut screen, &WITH_CURSOR), 1);
    assert_eq!(screen.generation(), 0, "a cursor is no change of the screen");
}

#[test]
fn four_outputs_are_remembered() {
    let mut screen = Screen::new(SIZE);
    let views: Vec<View> = (0..5).map(|i| View { region: Some(rect(i, 0, 100, 32)), ..ALL }).collect();
    let mut look = |i: usize| deflated(&mut screen, &views[i]);
    assert_eq!([0, 1, 2, 3].map(&mut look), [1; 4]);
    assert_eq!([0, 1, 2, 3].map(&mut look), [0; 4]);
    assert_eq!(look(0), 0);
    assert_eq!(look(4), 1, "takes the place of the one not used for longest");
    assert_eq!([0, 2, 3, 4].map(&mut look), [0; 4]);
    assert_eq!(look(1), 1);
}

#[test]
fn the_whole_screen_as_a_region_is_the_same_output() {
    let mut screen = Screen::new(SIZE);
    deflated(&mut screen, &ALL);
    let spelled_out = View { size: Some(SIZE), region: Some(SIZE.rect()), cursor: false };
    assert_eq!(deflated(&mut screen, &spelled_out), 0);
}

#[test]
fn refusals_name_the_numbers_and_write_nothing() {
    let mut screen = Screen::new(SIZE);
    let pixels = [1; 400];
    let good = Patch { rect: rect(0, 0, 10, 10), pixels: &pixels, stride: 40 };
    let cases = [
        (Patch { rect: rect(631, 0, 10, 10), ..good }, "patch 10x10+631+0 is not inside the screen of 640x320"),
        (Patch { rect: rect(5, 5, u32::MAX, 1), ..good }, "patch 4294967295x1+5+5 is not inside the screen of 640x320"),
        (Patch { stride: 39, ..good }, "patch 10x10+0+0 has a stride of 39 bytes, a row needs 40"),
        (Patch { stride: 41, ..good }, "patch 10x10+0+0 needs 409 bytes of BGRX, got 400"),
        (Patch { stride: usize::MAX, ..good }, &format!("patch 10x10+0+0 needs {} bytes of BGRX, got 400", usize::MAX)),
    ];
    for (bad, message) in cases {
        assert_eq!(screen.update(&[good, bad], 0.0).unwrap_err().to_string(), message);
    }
    assert_eq!(screen.generation(), 0);
    assert!(screen.frame().as_bytes().iter().all(|byte| *byte == 0));

    let outside = screen.copy_rect(rect(0, 0, 10, 10), (0, 311), 0.0).unwrap_err();
    assert_eq!(outside.to_string(), "copy of 10x10+0+0 to 0,311 is not inside the screen of 640x320");
}

#[test]
fn impossible_views_are_refused() {
    let mut screen = Screen::new(SIZE);
    for region in [rect(0, 0, 0, 5), rect(600, 0, 41, 1), rect(640, 320, 1, 1), rect(1, 1, u32::MAX, u32::MAX)] {
        let view = View { region: Some(region), ..ALL };
        assert!(matches!(screen.png(&view), Err(ImagingError::RegionOutside { .. })), "{region}");
        assert!(matches!(screen.rgb(&view), Err(ImagingError::RegionOutside { .. })), "{region}");
    }
    for size in [Size { w: 0, h: 5 }, Size { w: 5, h: 0 }, Size { w: 16_385, h: 1 }] {
        let view = View { size: Some(size), ..ALL };
        assert!(matches!(screen.png(&view), Err(ImagingError::OutputSize { .. })), "{size}");
    }
    let mut empty = Screen::new(Size { w: 0, h: 9 });
    assert!(empty.png(&ALL).is_err());
    assert!(!empty.update(&[], 0.0).unwrap());
}

#[test]
fn overlapping_copies_read_before_they_write() {
    for (to, expected) in [((1, 0), [1, 1, 2, 3]), ((0, 0), [1, 2, 3, 4])] {
        let mut screen = Screen::new(Size { w: 4, h: 1 });
        for x in 0..4 {
            paint(&mut screen, rect(x.into(), 0, 1, 1), x + 1);
        }
        assert_eq!(screen.copy_rect(rect(0, 0, 3, 1), to, 2.0).unwrap(), to != (0, 0));
        let shades: Vec<u8> = screen.frame().as_bytes().chunks(4).map(|pixel| pixel[0]).collect();
        assert_eq!(shades, expected);
    }
}

#[test]
fn the_log_is_bounded_and_says_everything_when_it_does_not_know() {
    let mut screen = Screen::new(SIZE);
    for i in 0..600_u32 {
        assert!(paint(&mut screen, rect(i, 3, 1, 1), 200));
    }
    assert_eq!(screen.history(0).len(), 512);
    assert_eq!(screen.changes(0), [SIZE.rect()]);
    assert_eq!(screen.changes(87), [SIZE.rect()]);
    assert_eq!(screen.changes(88), [rect(88, 3, 512, 1)]);
    assert_eq!(screen.changes(599), [rect(599, 3, 1, 1)]);
    assert_eq!((screen.changes(600), screen.changes(u64::MAX)), (vec![], vec![]));
    let last = screen.history(599);
    assert_eq!((last.len(), last[0].generation), (1, 600));
    assert!((last[0].at - 1.5).abs() < f64::EPSILON);
}

#[test]
fn what_appears_and_goes_again_has_changed_nothing() {
    let (window, other) = (rect(33, 20, 200, 100), rect(500, 200, 10, 10));
    let mut screen = Screen::new(SIZE);
    assert!(paint(&mut screen, window, 1));
    screen.keep();
    let since = screen.generation();
    assert!(paint(&mut screen, window, 2));
    assert_eq!(screen.changes(since), [window]);
    assert!(paint(&mut screen, window, 1));
    assert_eq!(screen.changes(since), []);
    assert!(paint(&mut screen, other, 1));
    assert!(paint(&mut screen, rect(40, 30, 5, 5), 3));
    assert_eq!(screen.changes(since), [rect(40, 30, 5, 5), other]);
    // Of what was before, only the steps are known.
    assert_eq!(screen.changes(since - 1), [window, other]);
    screen.rest();
    assert_eq!(screen.changes(since), [window, other]);
}

#[test]
fn a_resize_changes_everything() {
    let mut screen = Screen::new(SIZE);
    paint(&mut screen, rect(0, 0, 9, 9), 1);
    deflated(&mut screen, &ALL);
    screen.resize(SIZE, 4.0);
    assert_eq!((screen.epoch(), screen.generation()), (1, 2));
    assert_eq!(deflated(&mut screen, &ALL), 10);
    paint(&mut screen, rect(0, 0, 9, 9), 1);
    for since in [0, 1] {
        assert_eq!(screen.changes(since), [SIZE.rect()]);
    }
    assert_eq!(screen.changes(2), [rect(0, 0, 9, 9)]);
}

#[test]
fn patches_of_one_update_are_one_step() {
    let mut screen = Screen::new(SIZE);
    let pixels = [77; 4];
    let at = |x, y| Patch { rect: rect(x, y, 1, 1), pixels: &pixels, stride: 4 };
    assert!(screen.update(&[at(0, 0), at(600, 300), Patch { rect: rect(3, 3, 0, 0), ..at(0, 0) }], 0.0).unwrap());
    assert_eq!(screen.generation(), 1);
    assert_eq!(screen.changes(0), [rect(0, 0, 1, 1), rect(600, 300, 1, 1)]);
}

#[test]
fn the_file_is_laid_out_as_documented() {
    let mut screen = Screen::new(Size { w: 2, h: 33 });
    let file = screen.png(&ALL).unwrap().to_vec();
    let mut chunks = Vec::new();
    let mut rest = &file[8..];
    while let Some((head, tail)) = rest.split_at_checked(8) {
        let len = u32::from_be_bytes(head[..4].try_into().unwrap()) as usize;
        chunks.push((String::from_utf8_lossy(&head[4..]).into_owned(), tail[..len].to_vec()));
        rest = &tail[len + 4..];
    }
    let kinds: Vec<&str> = chunks.iter().map(|chunk| chunk.0.as_str()).collect();
    assert_eq!(kinds, ["IHDR", "IDAT", "IDAT", "IDAT", "IDAT", "IEND"]);
    assert_eq!(chunks[0].1, [0, 0, 0, 2, 0, 0, 0, 33, 8, 2, 0, 0, 0]);
    assert_eq!(chunks[1].1, [0x78, 0x5E]);
    for strip in &chunks[2..4] {
        assert!(strip.1.ends_with(&[0, 0, 0xFF, 0xFF]), "a full flush ends with an empty stored block");
    }
    // 33 rows of a filter byte and six zeros: the sum stays 1, and is added up once a byte.
    assert_eq!(chunks[4].1, [3, 0, 0, 33 * 7, 0, 1]);
}

/// Text-like pixels: they leave something to gain.
fn write_page(screen: &mut Screen) {
    let size = screen.size();
    let glyph = |x: u32, y: u32| (x / 7 * 31 + y / 11 * 17 + x % 7 * (y % 11)).wrapping_mul(0x9E37_79B1) >> 30;
    let pixels: Vec<u8> = (0..size.h)
        .flat_map(|y| (0..size.w).flat_map(move |x| if glyph(x, y) == 0 { [0; 4] } else { [255; 4] }))
        .collect();
    screen.update(&[Patch { rect: size.rect(), pixels: &pixels, stride: size.w as usize * 4 }], 0.0).unwrap();
}

fn tighten(screen: &mut Screen) -> u64 {
    let before = screen.stats().strips_tightened;
    while let Some(slack) = screen.slack().unwrap() {
        screen.install(slack.tighten().unwrap());
    }
    screen.stats().strips_tightened - before
}

#[test]
fn strips_that_stay_get_smaller() {
    let mut screen = Screen::new(SIZE);
    write_page(&mut screen);
    assert!(screen.slack().unwrap().is_none(), "nothing was looked at yet");
    let first = screen.png(&ALL).unwrap();
    assert!(screen.slack().unwrap().is_none(), "it may change before the next look");
    screen.png(&ALL).unwrap();
    assert_eq!(tighten(&mut screen), 10);
    let tight = screen.png(&ALL).unwrap();
    assert!(tight.len() < first.len(), "{} of {}", tight.len(), first.len());
    assert_eq!(decode(&tight.to_vec()), screen.rgb(&ALL).unwrap());
    assert_eq!(deflated(&mut screen, &ALL), 0);
    assert_eq!(tighten(&mut screen), 0, "all is tight");

    paint(&mut screen, rect(100, 40, 300, 14), 9);
    screen.png(&ALL).unwrap();
    assert!(screen.slack().unwrap().is_none(), "what has changed is not worth it until it is looked at twice");
    screen.png(&ALL).unwrap();
    assert_eq!(tighten(&mut screen), 1);
}

#[test]
fn a_file_that_is_expected_is_made_before_it_is_asked_for() {
    let mut screen = Screen::new(SIZE);
    write_page(&mut screen);
    screen.expect(1);
    screen.get_ready();
    assert_eq!(screen.stats().strips_deflated, 0, "nobody has asked for a file yet: which one is not known");
    screen.png(&ALL).unwrap();

    paint(&mut screen, rect(0, 40, 300, 14), 9);
    screen.expect(0);
    screen.get_ready();
    assert_eq!(screen.stats().strips_deflated, 10, "no file is expected");
    screen.expect(2);
    screen.get_ready();
    assert_eq!(screen.stats().strips_deflated, 11);
    screen.get_ready();
    let file = screen.png(&ALL).unwrap();
    assert_eq!(screen.stats().strips_deflated, 11, "it was ready");
    assert_eq!(decode(&file.to_vec()), screen.rgb(&ALL).unwrap());
    assert_eq!(tighten(&mut screen), 9, "what only one file has is left as it is");

    for shade in 10..13 {
        paint(&mut screen, rect(0, 40, 300, 14), shade);
        screen.get_ready();
    }
    assert_eq!(screen.stats().strips_deflated, 12, "one more was expected");
    assert_eq!(decode(&screen.png(&ALL).unwrap().to_vec()), screen.rgb(&ALL).unwrap());
}

#[test]
fn a_strip_tightened_too_late_is_dropped() {
    let mut screen = Screen::new(SIZE);
    write_page(&mut screen);
    screen.png(&ALL).unwrap();
    screen.png(&ALL).unwrap();
    let late = screen.slack().unwrap().unwrap().tighten().unwrap();
    paint(&mut screen, rect(0, 0, 50, 5), 9);
    let file = screen.png(&ALL).unwrap();
    screen.install(late);
    assert_eq!(screen.png(&ALL).unwrap().stamp(), file.stamp());
    assert_eq!(screen.stats().strips_tightened, 0);
    assert_eq!(decode(&file.to_vec()), screen.rgb(&ALL).unwrap());
}

#[test]
fn looking_counts_what_it_compares() {
    let mut screen = Screen::new(SIZE);
    paint(&mut screen, rect(0, 0, 10, 20), 1);
    paint(&mut screen, rect(0, 0, 10, 20), 1);
    assert_eq!((screen.stats().patches, screen.stats().bytes_compared), (2, 2 * 800));
}

#[test]
fn rgb_goes_into_exactly_its_length() {
    let screen = Screen::new(SIZE);
    let error = screen.rgb_into(&ALL, &mut [0; 5]).unwrap_err();
    assert_eq!(error.to_string(), "a picture of 640x320 needs 614400 bytes of RGB, got room for 5");
}

fn decode(file: &[u8]) -> (Size, Vec<u8>) {
    let mut decoder = png::Decoder::new(std::io::Cursor::new(file));
    decoder.set_transformations(png::Transformations::EXPAND);
    let mut reader = decoder.read_info().unwrap();
    let mut rgb = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut rgb).unwrap();
    (Size { w: info.width, h: info.height }, rgb)
}

#[test]
fn a_palette_where_it_holds_all_colours() {
    let mut screen = Screen::new(SIZE);
    write_page(&mut screen);
    let plain = screen.png(&ALL).unwrap();
    let indexed = screen.indexed_png(&ALL).unwrap();
    assert!(indexed.len() < plain.len());
    assert_eq!(indexed.to_vec()[25], 3, "the header's colour type");
    assert_eq!(decode(&indexed.to_vec()), screen.rgb(&ALL).unwrap());
    assert_eq!(screen.indexed_png(&ALL).unwrap().stamp(), indexed.stamp(), "unchanged: the same file");
    screen.set_cursor(Some(arrow()));
    assert_ne!(screen.indexed_png(&WITH_CURSOR).unwrap().stamp(), indexed.stamp());

    for shade in 0..=255 {
        paint(&mut screen, rect(u32::from(shade), 0, 1, 1), shade);
    }
    assert_eq!(decode(&screen.indexed_png(&ALL).unwrap().to_vec()), screen.rgb(&ALL).unwrap());
    screen.update(&[Patch { rect: rect(600, 0, 1, 1), pixels: &[1, 2, 3, 4], stride: 4 }], 0.0).unwrap();
    let plain = screen.png(&ALL).unwrap();
    assert_eq!(screen.indexed_png(&ALL).unwrap().stamp(), plain.stamp(), "257 colours: the ordinary file");
}

#[test]
fn fingerprints_follow_pixels() {
    let mut screen = Screen::new(Size { w: 200, h: 100 });
    let blank = screen.hashes().to_vec();
    assert_eq!(blank.len(), 4 * 2);
    assert_eq!(blank[0], blank[1], "the same pixels");
    assert_ne!(blank[0].exact, blank[3].exact, "not the same size");
    paint(&mut screen, rect(70, 10, 5, 5), 200);
    let painted = screen.hashes().to_vec();
    let differing: Vec<usize> = (0..8).filter(|i| painted[*i] != blank[*i]).collect();
    assert_eq!(differing, [1]);
    paint(&mut screen, rect(70, 10, 1, 1), 201);
    let shaded = screen.hashes().to_vec();
    assert_ne!(shaded[1].exact, painted[1].exact);
    assert_eq!(shaded[1].look, painted[1].look, "it looks the same");
    paint(&mut screen, rect(70, 10, 5, 5), 0);
    assert_eq!(screen.hashes(), blank);
    screen.resize(Size { w: 10, h: 10 }, 0.0);
    assert_eq!(screen.hashes().len(), 1);
}

#[test]
fn incompressible_pixels_fit_too() {
    let mut screen = Screen::new(SIZE);
    let mut state = 1_u64;
    let noise: Vec<u8> = (0..SIZE.w * SIZE.h * 4)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state.to_be_bytes()[0]
        })
        .collect();
    screen.update(&[Patch { rect: SIZE.rect(), pixels: &noise, stride: 2560 }], 0.0).unwrap();
    assert_eq!(decode(&screen.png(&ALL).unwrap().to_vec()), screen.rgb(&ALL).unwrap());
}
