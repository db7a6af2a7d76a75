//! What real servers sent.

use imaging::Size;
use rfb::{Event, Features, PixelFormat, Recording};

use crate::seeds;
use crate::wire::{fed, pixels, session};

/// The size and the RGB bytes of a PNG file.
pub fn rgb(file: &[u8]) -> (Size, Vec<u8>) {
    let mut decoder = png::Decoder::new(std::io::Cursor::new(file));
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    let mut reader = decoder.read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    pixels.truncate(info.buffer_size());
    let rgb = match info.color_type {
        png::ColorType::Grayscale => pixels.into_iter().flat_map(|grey| [grey; 3]).collect(),
        png::ColorType::Rgb => pixels,
        other => panic!("a fixture of {other:?}"),
    };
    (Size { w: info.width, h: info.height }, rgb)
}

macro_rules! fixtures {
    ($($name:literal: $furthest:expr, $mean:expr;)*) => {
        [$((
            $name,
            &include_bytes!(concat!("../fixtures/", $name, ".rfb"))[..],
            &include_bytes!(concat!("../fixtures/", $name, ".png"))[..],
            $furthest,
            $mean,
        )),*]
    };
}

/// Recordings of `Xvnc` (`TigerVNC` 1.12) and x11vnc 0.9.16, each with what X itself said of the display at the end; and how far off
/// a sample may be at most, and on average.
#[test]
fn what_real_servers_sent_shows_what_x_showed() {
    let fixtures = fixtures! {
        "xvnc-copyrect-hextile": 0, 0.0;
        "xvnc-zrle": 0, 0.0;
        "xvnc-tight": 0, 0.0;
        "x11vnc-zlib": 0, 0.0;
        "x11vnc-zrle": 0, 0.0;
        // Steps of a colour in 5 bits are 8.2 apart, in 3 bits 36.4, in 2 bits 85; servers may round down.
        "xvnc-hextile-565": 9, 9.0;
        "x11vnc-tight-565": 9, 9.0;
        "xvnc-tight-332": 85, 85.0;
        "xvnc-tight-jpeg": 255, 5.0;
    };
    for (name, file, png, furthest, mean) in fixtures {
        let recording = Recording::parse(file).unwrap();
        let (size, expected) = rgb(png);
        assert_eq!(size, recording.size, "{name}");
        let stream = recording.stream();
        seeds::session(
            match recording.format {
                PixelFormat { bits_per_pixel: 16, .. } => 2,
                PixelFormat { bits_per_pixel: 8, .. } => 3,
                PixelFormat { big_endian, .. } => u8::from(big_endian),
            },
            &stream,
        );
        for piece in [1, 1460, file.len()] {
            let mut session = session(size.w, size.h, &recording.format);
            session.start(&recording.format, &recording.encodings).unwrap();
            let (events, violation) = fed(&mut session, &stream, &[piece]);
            assert_eq!(violation, None, "{name}");
            assert!(events.iter().any(|event| matches!(event, Event::Updated { changed: true, .. })), "{name}");
            let got = pixels(&session).into_iter().flat_map(|pixel| pixel.to_be_bytes()[1..].to_vec());
            let off: Vec<u8> = got.zip(&expected).map(|(a, b)| a.abs_diff(*b)).collect();
            let sum: u64 = off.iter().map(|off| u64::from(*off)).sum();
            let found = (*off.iter().max().unwrap(), sum as f64 / off.len() as f64);
            assert!(found.0 <= furthest && found.1 <= mean, "{name}: off by {found:?}");
        }
    }
}

#[test]
fn what_servers_told_besides_pixels() {
    let of = |file: &'static [u8]| {
        let recording = Recording::parse(file).unwrap();
        let mut session = session(recording.size.w, recording.size.h, &recording.format);
        session.start(&recording.format, &recording.encodings).unwrap();
        let (events, violation) = fed(&mut session, &recording.stream(), &[file.len()]);
        assert_eq!(violation, None);
        (events, session.features())
    };
    let (events, features) = of(include_bytes!("../fixtures/xvnc-zrle.rfb"));
    let known = Features {
        fence: true,
        continuous_updates: true,
        mouse_buttons: false,
        set_desktop_size: true,
        clipboard: true,
    };
    assert_eq!(features, known, "of TigerVNC 1.12");
    assert!(events.iter().any(|event| matches!(event, Event::Cursor { .. })));
    assert!(events.iter().any(|event| matches!(event, Event::Leds(_))));
    let (events, features) = of(include_bytes!("../fixtures/x11vnc-zlib.rfb"));
    let known = Features { set_desktop_size: true, clipboard: true, ..Features::default() };
    assert_eq!(features, known, "of x11vnc");
    assert!(events.iter().any(|event| matches!(event, Event::Cursor { visible: true })));
}
