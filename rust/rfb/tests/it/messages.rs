//! What a server tells besides pixels, what it is answered, and what a client sends: bytes by hand.

use imaging::{Rect, Size};
use rfb::client::{self, fence};
use rfb::{Clipboard, Encoding, Event, Features, Formats, Leds, Monitor, Offered, PixelFormat, ResizedBy};

use crate::encoders::deflated;
use crate::wire::{INDEXED, counted, fed, header, one, pixels, raw_only, rect, session, update};

const NOWHERE: Rect = rect(0, 0, 0, 0);

/// The events of a stream, fed whole and byte by byte; and what is to be sent.
fn told(stream: &[u8]) -> (Vec<Event>, Vec<u8>) {
    let end = |pieces: &[usize]| {
        let mut session = session(4, 2, &PixelFormat::BGRX);
        let (events, violation) = fed(&mut session, stream, pieces);
        assert_eq!(violation, None);
        (events, session.to_send())
    };
    let whole = end(&[stream.len()]);
    assert_eq!(whole, end(&[1]));
    whole
}

fn nothing_painted() -> Event {
    Event::Updated { rects: vec![], changed: false, generation: 0 }
}

#[test]
fn texts_and_bells() {
    assert_eq!(told(&[2]).0, [Event::Bell]);
    let text = counted(&[3, 0, 0, 0], b"\xFCber\nline");
    assert_eq!(told(&text).0, [Event::CutText { text: "\u{fc}ber\nline".to_owned(), truncated: false }]);
    let name = one(NOWHERE, Encoding::DesktopName, &counted(&[], "d\u{e9}sk".as_bytes()));
    let expected = Event::DesktopName { name: "d\u{e9}sk".to_owned(), truncated: false };
    assert_eq!(told(&name).0, [expected, nothing_painted()]);
    let leds = Event::Leds(Leds { scroll: false, num: true, caps: true });
    assert_eq!(told(&one(NOWHERE, Encoding::QemuLeds, &[6])).0, [leds, nothing_painted()]);
}

#[test]
fn updates_tell_what_was_painted_and_whether_it_changed() {
    let red = [0, 0, 255, 0].repeat(4);
    let paint = one(rect(1, 0, 2, 2), Encoding::Raw, &red);
    let updated = |changed| Event::Updated { rects: vec![rect(1, 0, 2, 2)], changed, generation: 1 };
    assert_eq!(told(&[paint.clone(), paint].concat()).0, [updated(true), updated(false)]);
    assert_eq!(told(&[0, 0, 0, 0]).0, [nothing_painted()]);
}

#[test]
fn fences_are_answered_at_once_and_ours_are_told() {
    let known = Event::Features(Features { fence: true, ..Features::default() });
    let request = [&[248, 0, 0, 0, 0x80, 0, 0x12, 0xF3, 5][..], b"12345"].concat();
    let (events, answer) = told(&request);
    assert_eq!(events, std::slice::from_ref(&known));
    assert_eq!(
        answer,
        [&[248, 0, 0, 0, 0, 0, 0, 3, 5][..], b"12345"].concat(),
        "without the request, and unknown flags"
    );
    let (events, answer) = told(&[&[248, 0, 0, 0, 0, 0, 0, 1, 1][..], b"x"].concat());
    assert_eq!(events, [known, Event::Fence { flags: 1, payload: b"x".to_vec() }]);
    assert_eq!(answer, []);
}

#[test]
fn extensions_become_known() {
    let stream = update(&[(NOWHERE, -316, vec![]), (rect(0, 0, 4, 2), -308, vec![0; 4])]);
    let features = Features { mouse_buttons: true, set_desktop_size: true, ..Features::default() };
    let resized = Event::Resized { size: Size { w: 4, h: 2 }, monitors: vec![], by: ResizedBy::Server };
    assert_eq!(told(&stream).0, [Event::Features(features), resized, nothing_painted()]);
}

/// Its data is what rfbproto says, or libvncserver writes; pixels after it arrive only where its length is right.
#[test]
fn what_was_not_offered_is_skipped_and_counted() {
    let (cursor, sized) = (rect(1, 1, 9, 2), rect(0, 0, 6, 0));
    let unasked = [
        (NOWHERE, -232, vec![]),
        (cursor, -239, vec![9; 9 * 2 * 4 + 2 * 2]),
        (cursor, -240, vec![9; 6 + 2 * 2 * 2]),
        (NOWHERE, -240, vec![]),
        (NOWHERE, -257, vec![]),
        (NOWHERE, -258, vec![]),
        (NOWHERE, -259, vec![]),
        (NOWHERE, -261, vec![7]),
        (NOWHERE, -307, counted(&[], b"desk")),
        (cursor, -314, [&[0; 4][..], &[9; 9 * 2 * 4]].concat()),
        (NOWHERE, -316, vec![]),
        (cursor, 0x574d_5664, [&[0, 0][..], &[9; 2 * 9 * 2 * 4]].concat()),
        (cursor, 0x574d_5664, [&[1, 0][..], &[9; 9 * 2 * 4]].concat()),
        (NOWHERE, 0x574d_5665, vec![9; 2]),
        (cursor, 0x574d_5666, vec![]),
        (NOWHERE, 0x574d_5667, vec![9; 10]),
        (NOWHERE, 0x574d_5668, vec![9; 4]),
        (NOWHERE, 0x574d_566a, vec![9; 2]),
        (rect(7, 0, 0, 0), 0xfffe_0000_u32 as i32, vec![]),
        (sized, 0xfffe_0001_u32 as i32, vec![9; 6]),
        (sized, 0xfffe_0002_u32 as i32, vec![9; 6]),
        (sized, 0xfffe_0003_u32 as i32, vec![9; 6]),
    ];
    for (place, number, data) in &unasked {
        let stream = update(&[(*place, *number, data.clone()), (rect(3, 1, 1, 1), 0, vec![255; 4])]);
        for pieces in [&[stream.len() + 1][..], &[1]] {
            let mut session = raw_only(4, 2);
            let (events, violation) = fed(&mut session, &[&stream[..], &[2]].concat(), pieces);
            assert_eq!(violation, None, "{number}");
            let updated = Event::Updated { rects: vec![rect(3, 1, 1, 1)], changed: true, generation: 1 };
            assert_eq!(events, [updated, Event::Bell], "{number}");
            assert_eq!(session.skipped(), [(*number, 1)]);
            assert_eq!(session.rectangles(), [(Encoding::Raw, 1)]);
            assert_eq!(session.features(), Features::default());
        }
    }
    let mut session = raw_only(4, 2);
    session.feed(&[update(&[unasked[5].clone(), unasked[5].clone()]), update(&unasked)].concat(), 0.0).unwrap();
    assert_eq!(session.skipped()[0], (-258, 3));
    assert_eq!(session.skipped().iter().map(|(_, count)| count).sum::<u64>(), unasked.len() as u64 + 2);
    // What was offered is not skipped.
    let mut session = self::session(4, 2, &PixelFormat::BGRX);
    session.feed(&one(NOWHERE, Encoding::MouseButtons, &[]), 0.0).unwrap();
    assert_eq!((session.skipped(), session.features().mouse_buttons), (&[][..], true));
}

#[test]
fn continuous_updates_are_used_as_soon_as_they_are_known() {
    let mut session = session(4, 2, &PixelFormat::BGRX);
    session.follow();
    assert_eq!(session.to_send(), [3, 1, 0, 0, 0, 0, 0, 4, 0, 2]);
    session.feed(&[0, 0, 0, 0], 1.0).unwrap();
    assert_eq!(session.to_send(), [3, 1, 0, 0, 0, 0, 0, 4, 0, 2], "each update asks for the next");
    let known = Features { continuous_updates: true, ..Features::default() };
    assert_eq!(session.feed(&[150], 1.0).unwrap(), [Event::Features(known)]);
    assert_eq!(session.to_send(), [150, 1, 0, 0, 0, 0, 0, 4, 0, 2]);
    session.feed(&[0, 0, 0, 0], 1.0).unwrap();
    assert_eq!(session.to_send(), [], "they come by themselves");
    session.feed(&one(rect(0, 0, 5, 3), Encoding::DesktopSize, &[]), 1.0).unwrap();
    assert_eq!(session.to_send(), [150, 1, 0, 0, 0, 0, 0, 5, 0, 3], "of the whole of a new size");
    assert_eq!(session.feed(&[150], 1.0).unwrap(), [Event::ContinuousUpdatesEnded]);
    assert_eq!(session.to_send(), [3, 1, 0, 0, 0, 0, 0, 5, 0, 3], "asked for again");
    session.unfollow();
    session.feed(&[0, 0, 0, 0], 1.0).unwrap();
    assert_eq!(session.to_send(), []);
}

#[test]
fn a_new_size_keeps_what_fits_and_asks_incrementally() {
    let mut session = session(4, 2, &PixelFormat::BGRX);
    session.follow();
    let white = vec![255; 4 * 2 * 4];
    session.feed(&one(rect(0, 0, 4, 2), Encoding::Raw, &white), 1.0).unwrap();
    assert!(!session.to_send().is_empty());
    let layout = [&[2, 0, 0, 0][..], &[0, 0, 0, 7, 0, 1, 0, 2, 0, 3, 0, 4, 9, 9, 9, 9], &[0; 16]].concat();
    let events = session.feed(&one(rect(2, 0, 3, 3), Encoding::ExtendedDesktopSize, &layout), 2.0).unwrap();
    let monitors = vec![
        Monitor { id: 7, rect: rect(1, 2, 3, 4), flags: 0x0909_0909 },
        Monitor { id: 0, rect: rect(0, 0, 0, 0), flags: 0 },
    ];
    let size = Size { w: 3, h: 3 };
    assert_eq!(events[1], Event::Resized { size, monitors, by: ResizedBy::OtherClient });
    assert!(matches!(&events[2], Event::Updated { rects, changed: true, .. } if *rects == [size.rect()]));
    assert_eq!(pixels(&session), [0xFF_FFFF, 0xFF_FFFF, 0xFF_FFFF, 0xFF_FFFF, 0xFF_FFFF, 0xFF_FFFF, 0, 0, 0]);
    assert_eq!(session.size(), size);
    assert_eq!(session.to_send(), [3, 1, 0, 0, 0, 0, 0, 3, 0, 3]);
}

#[test]
fn a_size_refused_changes_nothing() {
    let refused = one(rect(1, 3, 500, 500), Encoding::ExtendedDesktopSize, &[0; 4]);
    let events = told(&refused).0;
    assert_eq!(events[1..], [Event::ResizeRefused { status: 3 }, nothing_painted()]);
    let ours = one(rect(1, 0, 4, 2), Encoding::ExtendedDesktopSize, &[0; 4]);
    assert!(matches!(told(&ours).0[1], Event::Resized { by: ResizedBy::Us, .. }));
}

#[test]
fn cursors() {
    let shapes: [(Encoding, Vec<u8>, [u32; 4]); 2] = [
        (
            Encoding::Cursor,
            [&[1, 2, 3, 0, 4, 5, 6, 0, 7, 8, 9, 0, 9, 9, 9, 9][..], &[0b1000_0000, 0b1100_0000]].concat(),
            [0xFF03_0201, 0, 0xFF09_0807, 0xFF09_0909],
        ),
        (
            Encoding::CursorWithAlpha,
            [&[0; 4][..], &[1, 2, 3, 128], &[4, 5, 6, 255], &[0; 4], &[7, 7, 7, 7]].concat(),
            [0x8001_0203, 0xFF04_0506, 0, 0x0707_0707],
        ),
    ];
    for (encoding, data, argb) in shapes {
        for pieces in [1, 1000] {
            let mut session = session(4, 2, &PixelFormat::BGRX);
            let (events, violation) = fed(&mut session, &one(rect(1, 0, 2, 2), encoding, &data), &[pieces]);
            assert_eq!((events, violation), (vec![Event::Cursor { visible: true }, nothing_painted()], None));
            let screen = session.screen().lock().unwrap();
            let cursor = screen.cursor().unwrap();
            assert_eq!((cursor.size, cursor.hot), (Size { w: 2, h: 2 }, (1, 0)), "{encoding:?}");
            assert_eq!(cursor.argb, argb, "{encoding:?}");
        }
        let empty = if encoding == Encoding::CursorWithAlpha { vec![0; 4] } else { vec![] };
        let mut session = session(4, 2, &PixelFormat::BGRX);
        session.feed(&one(rect(1, 0, 2, 2), encoding, &data), 1.0).unwrap();
        let events = session.feed(&one(NOWHERE, encoding, &empty), 1.0).unwrap();
        assert_eq!(events[0], Event::Cursor { visible: false }, "{encoding:?}");
        assert_eq!(session.screen().lock().unwrap().cursor(), None, "{encoding:?}");
    }
}

#[test]
fn nothing_is_shown_of_an_update_before_its_end() {
    let mut session = session(2, 1, &PixelFormat::BGRX);
    let head = [vec![0, 0, 0, 2], header(rect(0, 0, 2, 1), 0), vec![255; 8]].concat();
    assert_eq!(session.feed(&head, 1.0).unwrap(), []);
    assert_eq!(pixels(&session), [0, 0]);
    session.feed(&[header(rect(0, 0, 1, 1), 0), vec![0, 0, 255, 0]].concat(), 1.0).unwrap();
    assert_eq!(pixels(&session), [0x00FF_0000, 0x00FF_FFFF]);
}

#[test]
fn what_was_told_before_a_violation_is_not_lost() {
    let mut session = session(2, 1, &PixelFormat::BGRX);
    assert!(session.feed(&[2, 2, 99], 1.0).is_err());
    assert_eq!(session.unread(), [Event::Bell, Event::Bell]);
}

#[test]
fn a_colour_map_recolours_what_is_painted() {
    let mut session = session(3, 1, &INDEXED);
    let map = |first: u8, colours: &[[u8; 3]]| {
        let mut message = vec![1, 0, 0, first, 0, colours.len() as u8];
        message.extend(colours.iter().flatten().flat_map(|c| [*c, 0]));
        message
    };
    session.feed(&map(1, &[[255, 0, 0], [0, 255, 0]]), 1.0).unwrap();
    session.feed(&one(rect(0, 0, 3, 1), Encoding::Raw, &[1, 2, 0]), 1.0).unwrap();
    assert_eq!(pixels(&session), [0x00FF_0000, 0x0000_FF00, 0]);
    let events = session.feed(&map(2, &[[0, 0, 255]]), 1.0).unwrap();
    assert!(matches!(events[..], [Event::Updated { changed: true, .. }]));
    assert_eq!(pixels(&session), [0x00FF_0000, 0x0000_00FF, 0]);
}

fn extended(flags: u32, data: &[u8]) -> Vec<u8> {
    let len = -(data.len() as i32 + 4);
    [&[3, 0, 0, 0][..], &len.to_be_bytes(), &flags.to_be_bytes(), data].concat()
}

#[test]
fn the_extended_clipboard() {
    let caps = extended(0x1F00_0005, &[0, 16, 0, 0, 0, 0, 0, 9]);
    let (events, answer) = told(&caps);
    let offered = Offered {
        formats: vec![(Formats::TEXT, 1 << 20), (Formats::HTML, 9)],
        request: true,
        peek: true,
        notify: true,
        provide: true,
    };
    let known = Event::Features(Features { clipboard: true, ..Features::default() });
    assert_eq!(events, [known, Event::Clipboard(Clipboard::Caps(offered))]);
    assert_eq!(answer, client::clipboard_caps(1 << 20));
    let formats = Formats(Formats::TEXT.0 | Formats::RTF.0);
    let short = [
        (0x0200_0003, Clipboard::Request(formats)),
        (0x0400_0000, Clipboard::Peek),
        (0x0800_0003, Clipboard::Notify(formats)),
    ];
    for (flags, message) in short {
        assert_eq!(told(&extended(flags, &[])).0, [Event::Clipboard(message)]);
    }
    let data = ["\0\0\0\x0BZe\u{fc}\r\nweit\0".as_bytes(), &[0, 0, 0, 2], b"<>"].concat();
    let events = told(&extended(0x1000_0005, &deflated(&data))).0;
    let [Event::Clipboard(message)] = &events[..] else { panic!("{events:?}") };
    assert_eq!(message.text().as_deref(), Some("Ze\u{fc}\nweit"));
    let parts = vec![(Formats::TEXT, "Ze\u{fc}\r\nweit\0".into()), (Formats::HTML, b"<>".to_vec())];
    assert_eq!(*message, Clipboard::Provide { parts, truncated: false });
}

#[test]
fn what_a_client_sends() {
    let monitor = Monitor { id: 1, rect: rect(2, 3, 4, 5), flags: 6 };
    let cases: [(&str, Vec<u8>, &[u8]); 20] = [
        (
            "pixel format",
            client::set_pixel_format(&PixelFormat::BGRX),
            &[0, 0, 0, 0, 32, 24, 0, 1, 0, 255, 0, 255, 0, 255, 16, 8, 0, 0, 0, 0],
        ),
        (
            "encodings",
            client::set_encodings(&[Encoding::Zrle, Encoding::Cursor, Encoding::Clipboard]),
            &[2, 0, 0, 3, 0, 0, 0, 16, 0xFF, 0xFF, 0xFF, 0x11, 0xC0, 0xA1, 0xE5, 0xCE],
        ),
        ("request", client::update_request(false, rect(1, 2, 300, 4)), &[3, 0, 0, 1, 0, 2, 1, 44, 0, 4]),
        ("key", client::key(0x0100_20AC, true), &[4, 1, 0, 0, 1, 0, 0x20, 0xAC]),
        ("key up", client::key(0x61, false), &[4, 0, 0, 0, 0, 0, 0, 0x61]),
        ("pointer", client::pointer(258, 3, 0b1_0000_0101), &[5, 5, 1, 2, 0, 3]),
        ("wheel to the right", client::pointer(1, 1, 1 << 6), &[5, 64, 0, 1, 0, 1]),
        ("back", client::pointer_extended(258, 3, 0b0_1000_0001), &[5, 0x81, 1, 2, 0, 3, 1]),
        ("forward", client::pointer_extended(258, 3, 1 << 8), &[5, 0x80, 1, 2, 0, 3, 2]),
        ("not extended", client::pointer_extended(258, 3, 2), &[5, 2, 1, 2, 0, 3]),
        ("text", client::cut_text("\u{e9}").unwrap(), &[6, 0, 0, 0, 0, 0, 0, 1, 0xE9]),
        ("caps", client::clipboard_caps(9), &[6, 0, 0, 0, 255, 255, 255, 248, 0x1F, 0, 0, 1, 0, 0, 0, 9]),
        ("ask", client::clipboard_request(Formats::TEXT), &[6, 0, 0, 0, 255, 255, 255, 252, 2, 0, 0, 1]),
        ("peek", client::clipboard_peek(), &[6, 0, 0, 0, 255, 255, 255, 252, 4, 0, 0, 0]),
        ("notify", client::clipboard_notify(Formats::TEXT), &[6, 0, 0, 0, 255, 255, 255, 252, 8, 0, 0, 1]),
        ("fence", client::fence(fence::REQUEST | fence::BLOCK_BEFORE, b"ab"), &[248, 0, 0, 0, 128, 0, 0, 1, 2, 97, 98]),
        ("continuous", client::continuous_updates(true, rect(0, 0, 4, 2)), &[150, 1, 0, 0, 0, 0, 0, 4, 0, 2]),
        ("stop", client::continuous_updates(false, rect(0, 0, 4, 2)), &[150, 0, 0, 0, 0, 0, 0, 4, 0, 2]),
        ("size", client::set_desktop_size(Size { w: 800, h: 600 }, &[]), &[251, 0, 3, 32, 2, 88, 0, 0]),
        (
            "monitors",
            client::set_desktop_size(Size { w: 8, h: 6 }, &[monitor]),
            &[251, 0, 0, 8, 0, 6, 1, 0, 0, 0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 0, 0, 6],
        ),
    ];
    for (name, message, expected) in cases {
        assert_eq!(message, expected, "{name}");
    }
    assert_eq!(client::cut_text("\u{20ac}"), None);
    assert_eq!(client::fence(0, &[1; 99])[8], 64);
}

#[test]
fn text_that_is_provided_can_be_read_by_the_other_side() {
    let text = "Ze\u{fc} \u{4f60}\r\n\n\u{1f600}".to_owned() + &"x".repeat(100_000);
    let sent = client::clipboard_provide(&text);
    // Apart from its type, the message is the same in both directions.
    let events = told(&[&[3][..], &sent[1..]].concat()).0;
    let [Event::Clipboard(message)] = &events[..] else { panic!("{events:?}") };
    assert_eq!(message.text().unwrap(), text.replace("\r\n", "\n"));
}

#[test]
fn where_somebody_else_has_put_the_pointer() {
    for encoding in [Encoding::PointerPos, Encoding::CursorPosition] {
        let (events, _) = told(&one(rect(3, 1, 0, 0), encoding, &[]));
        assert_eq!(events, [Event::Pointer { x: 3, y: 1 }, nothing_painted()]);
    }
}

#[test]
fn a_cursor_drawn_into_the_picture_tells_where_the_pointer_is() {
    let (black, white) = ([0, 0, 0, 0], [255, 255, 255, 0]);
    // Two pixels, of which the second is see-through; its hotspot is the second.
    let cursor = one(rect(1, 0, 2, 1), Encoding::Cursor, &[&white[..], &black, &[0x80]].concat());
    let hidden = one(NOWHERE, Encoding::Cursor, &[]);
    let drawn = |pixels: [[u8; 4]; 2]| one(rect(2, 1, 2, 1), Encoding::Raw, &pixels.concat());
    let places = |stream: &[&[u8]]| -> Vec<Event> {
        told(&stream.concat()).0.into_iter().filter(|event| matches!(event, Event::Pointer { .. })).collect()
    };
    let at = Event::Pointer { x: 3, y: 1 };
    assert_eq!(places(&[&cursor, &hidden, &drawn([white, white])]), std::slice::from_ref(&at));
    assert_eq!(places(&[&cursor, &hidden, &drawn([white, black])]), [at]);
    // Something else of that size; our own cursor is not hidden; there was none.
    assert_eq!(places(&[&cursor, &hidden, &drawn([black, white])]), []);
    assert_eq!(places(&[&cursor, &drawn([white, white])]), []);
    assert_eq!(places(&[&hidden, &drawn([white, white])]), []);
}
