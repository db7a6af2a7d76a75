//! Handshakes by hand, fed whole and byte by byte.

use imaging::Size;
use rfb::{Handshake, Limits, PixelFormat, Security, ServerInit, Step, VeNCrypt};

use crate::seeds;

/// What a caller answers to a step.
fn answer(handshake: &mut Handshake, step: &Step, security: Security, subtype: VeNCrypt) {
    match step {
        Step::Security(_) => handshake.choose(security),
        Step::VeNCrypt(_) => handshake.choose_vencrypt(subtype),
        Step::Challenge(challenge) => handshake.respond(challenge.map(|byte| !byte)),
        Step::WantsCredentials => handshake.credentials("me", "s\u{e9}cret"),
        _ => {}
    }
}

/// The steps of a server's bytes, what was sent, and what is left over.
fn shaken(server: &[u8], security: Security, subtype: VeNCrypt) -> (Vec<Step>, Vec<u8>, Vec<u8>) {
    let run = |cut: usize| {
        let mut handshake = Handshake::new(true, Limits::default());
        let (mut steps, mut sent) = (Vec::new(), Vec::new());
        for piece in server.chunks(cut) {
            let mut piece = piece;
            while let Some(step) = handshake.feed(piece).unwrap() {
                piece = &[];
                answer(&mut handshake, &step, security, subtype);
                steps.push(step);
            }
            sent.extend(handshake.to_send());
        }
        (steps, sent, handshake.rest())
    };
    seeds::handshake(0, server);
    seeds::handshake(1, server);
    let whole = run(server.len());
    assert_eq!(whole, run(1));
    whole
}

fn init(name: &[u8]) -> Vec<u8> {
    [&[3, 32, 2, 88][..], &PixelFormat::BGRX.to_bytes(), &(name.len() as u32).to_be_bytes(), name].concat()
}

fn ready() -> Step {
    let size = Size { w: 800, h: 600 };
    Step::Ready(ServerInit { size, format: PixelFormat::BGRX, name: "desk".to_owned() })
}

const NONE: VeNCrypt = VeNCrypt::TlsNone;

#[test]
fn without_security() {
    let server = [&b"RFB 003.008\n"[..], &[2, 1, 30], &[0; 4], &init(b"desk"), b"rest"].concat();
    let (steps, sent, rest) = shaken(&server, Security::None, NONE);
    assert_eq!(steps, [Step::Security(vec![Security::None, Security::Other(30)]), ready()]);
    assert_eq!(sent, b"RFB 003.008\n\x01\x01");
    assert_eq!(rest, b"rest");
}

#[test]
fn older_versions() {
    let server = [&b"RFB 003.007\n"[..], &[1, 1], &init(b"desk")].concat();
    assert_eq!(shaken(&server, Security::None, NONE).1, b"RFB 003.007\n\x01\x01");
    for version in [b"RFB 003.003\n", b"RFB 003.005\n"] {
        let server = [&version[..], &[0, 0, 0, 1], &init(b"desk")].concat();
        let (steps, sent, _) = shaken(&server, Security::None, NONE);
        assert_eq!(steps, [Step::Security(vec![Security::None]), ready()]);
        assert_eq!(sent, b"RFB 003.003\n\x01");
    }
    for version in [b"RFB 003.889\n", b"RFB 004.001\n", b"RFB 005.000\n"] {
        let server = [&version[..], &[1, 1], &[0; 4], &init(b"desk")].concat();
        assert_eq!(shaken(&server, Security::None, NONE).1, b"RFB 003.008\n\x01\x01");
    }
}

#[test]
fn a_challenge() {
    let challenge: [u8; 16] = std::array::from_fn(|i| i as u8);
    let server = [&b"RFB 003.008\n"[..], &[1, 2], &challenge, &[0; 4], &init(b"desk")].concat();
    let (steps, sent, _) = shaken(&server, Security::Vnc, NONE);
    assert_eq!(steps, [Step::Security(vec![Security::Vnc]), Step::Challenge(challenge), ready()]);
    assert_eq!(sent, [&b"RFB 003.008\n\x02"[..], &challenge.map(|byte| !byte), &[1]].concat());
}

#[test]
fn refusals() {
    let reason = [&7_u32.to_be_bytes()[..], b"go away"].concat();
    let refused = Step::Refused("go away".to_owned());
    let cases = [
        ("no security", [&b"RFB 003.008\n"[..], &[0], &reason].concat()),
        ("3.3", [&b"RFB 003.003\n"[..], &[0; 4], &reason].concat()),
        ("a result", [&b"RFB 003.008\n"[..], &[1, 1], &[0, 0, 0, 1], &reason].concat()),
        ("too many tries", [&b"RFB 003.008\n"[..], &[1, 1], &[0, 0, 0, 2], &reason].concat()),
    ];
    for (name, server) in cases {
        assert_eq!(shaken(&server, Security::None, NONE).0.last(), Some(&refused), "{name}");
    }
    let server = [&b"RFB 003.007\n"[..], &[1, 2], &[0; 16], &[0, 0, 0, 1]].concat();
    assert!(matches!(shaken(&server, Security::Vnc, NONE).0.last(), Some(Step::Refused(_))));
}

/// A subtype, what is said within it, the step that is, and what is answered.
type Case = (VeNCrypt, &'static [u8], Option<Step>, &'static [u8]);

#[test]
fn vencrypt() {
    let types: Vec<u8> = [257_u32, 258, 262, 264].iter().flat_map(|number| number.to_be_bytes()).collect();
    let head = [&b"RFB 003.008\n"[..], &[1, 19], &[0, 2], &[0], &[4], &types].concat();
    let offered = Step::VeNCrypt(vec![VeNCrypt::TlsNone, VeNCrypt::TlsVnc, VeNCrypt::X509Plain, VeNCrypt::Other(264)]);
    let security = Step::Security(vec![Security::VeNCrypt]);
    let cases: [Case; 3] = [
        (VeNCrypt::TlsNone, &[], None, &[]),
        (VeNCrypt::TlsVnc, &[9; 16], Some(Step::Challenge([9; 16])), &[246; 16]),
        (VeNCrypt::X509Plain, &[], Some(Step::WantsCredentials), b"\0\0\0\x02\0\0\0\x07mes\xC3\xA9cret"),
    ];
    for (subtype, inner, step, answer) in cases {
        let server = [&head, &[1][..], inner, &[0; 4], &init(b"desk")].concat();
        let (steps, sent, _) = shaken(&server, Security::VeNCrypt, subtype);
        let expected = [security.clone(), offered.clone(), Step::StartTls].into_iter().chain(step).chain([ready()]);
        assert_eq!(steps, expected.collect::<Vec<_>>(), "{subtype:?}");
        let expected = [&b"RFB 003.008\n\x13\x00\x02"[..], &subtype.number().to_be_bytes(), answer, &[1]].concat();
        assert_eq!(sent, expected, "{subtype:?}");
    }
    let plain = [&b"RFB 003.008\n"[..], &[1, 19], &[0, 2], &[0], &[1, 0, 0, 1, 0], &[0; 4], &init(b"desk")].concat();
    let steps = shaken(&plain, Security::VeNCrypt, VeNCrypt::Plain).0;
    assert_eq!(steps[2..], [Step::WantsCredentials, ready()], "without TLS there is nothing to start");
}

#[test]
fn another_security_is_the_callers_to_work_off() {
    let mut handshake = Handshake::new(false, Limits::default());
    let step = handshake.feed(b"RFB 003.008\n\x01\x1Echallenge").unwrap();
    assert_eq!(step, Some(Step::Security(vec![Security::Other(30)])));
    handshake.choose(Security::Other(30));
    assert_eq!(handshake.feed(&[]).unwrap(), None);
    assert_eq!(handshake.rest(), b"challenge");
    handshake.resume();
    assert_eq!(handshake.feed(&[&[0; 4][..], &init(b"desk")].concat()).unwrap(), Some(ready()));
    assert_eq!(handshake.to_send(), b"RFB 003.008\n\x1E\x00");
}

#[test]
fn a_long_name_is_cut_and_read_over() {
    let server = [&b"RFB 003.008\n"[..], &[1, 1], &[0; 4], &init(&vec![b'n'; 200_000]), b"rest"].concat();
    let (steps, _, rest) = shaken(&server, Security::None, NONE);
    let Some(Step::Ready(init)) = steps.last() else { panic!("{steps:?}") };
    assert_eq!((init.name.len(), &rest[..]), (4096, &b"rest"[..]));
}

#[test]
fn malformed_handshakes() {
    let greeted = |rest: &[u8]| [b"RFB 003.008\n", rest].concat();
    let inits = |size: [u8; 4], len: u32| {
        greeted(&[&[1, 1, 0, 0, 0, 0][..], &size, &PixelFormat::BGRX.to_bytes(), &len.to_be_bytes()].concat())
    };
    let reason = |len: u32| greeted(&[&[0][..], &len.to_be_bytes()].concat());
    let cases: [(&str, Vec<u8>, &str); 10] = [
        ("HTTP", b"HTTP/1.1 400".to_vec(), "a byte of the protocol's version"),
        ("a version", b"RFB 3.8".to_vec(), "a byte of the protocol's version"),
        ("an old version", b"RFB 002.002\n".to_vec(), "the protocol's version is 2"),
        ("a result", greeted(&[1, 1, 0, 0, 0, 3]), "the result of the authentication is 3"),
        ("a reason", reason(u32::MAX), "bytes of a reason"),
        ("a width", inits([255, 255, 0, 1], 0), "the framebuffer's longer side"),
        ("an area", inits([64, 0, 16, 1], 0), "pixels of the framebuffer"),
        ("a name", inits([0, 1, 0, 1], u32::MAX), "bytes of the desktop's name"),
        ("VeNCrypt 0.1", greeted(&[1, 19, 0, 1]), "VeNCrypt's minor version"),
        ("waiting", greeted(&[&[1, 5][..], &vec![0; 70_000]].concat()), "bytes that nothing was answered to"),
    ];
    for (name, server, words) in cases {
        for cut in [1, server.len()] {
            let mut handshake = Handshake::new(true, Limits::default());
            let result = server.chunks(cut).try_for_each(|piece| {
                let mut piece = piece;
                while let Some(step) = handshake.feed(piece)? {
                    piece = &[];
                    if let Step::Security(offered) = &step {
                        handshake.choose(offered[0]);
                    }
                }
                Ok::<(), rfb::Violation>(())
            });
            let text = result.unwrap_err().to_string();
            assert!(text.contains(words), "{name}: {text}");
        }
    }
}
