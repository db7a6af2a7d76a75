use elements::wire::{Argument, Kind, Value, call, length, parse, said};

fn a_call() -> Vec<u8> {
    let mut out = Vec::new();
    let arguments = [Argument::Text("naïve"), Argument::Signed(-5), Argument::Unsigned(7)];
    call(&mut out, 9, (":1.4", "/a/b"), ("a.b", "Do"), &arguments);
    out
}

#[test]
fn what_is_written_is_read() {
    let bytes = a_call();
    assert_eq!(length(&bytes).unwrap(), Some(bytes.len()));
    let message = parse(&bytes).unwrap();
    assert_eq!((message.kind, message.serial, message.reply_to), (Kind::Call, 9, 0));
    assert_eq!((message.path, message.interface, message.member), ("/a/b", "a.b", "Do"));
    assert_eq!((message.destination, message.sender), (":1.4", ""));
    assert_eq!(message.signature, "siu");
    let mut body = message.body();
    assert_eq!((body.str().unwrap(), body.i32().unwrap(), body.u32().unwrap()), ("naïve", -5, 7));
    assert!(body.u8().is_err());
}

#[test]
fn a_part_of_a_message_is_waited_for() {
    let bytes = a_call();
    assert_eq!(length(&bytes[..15]).unwrap(), None);
    assert_eq!(length(&bytes[..16]).unwrap(), Some(bytes.len()));
    for end in 0..bytes.len() {
        assert!(parse(&bytes[..end]).is_err(), "{end}");
    }
}

#[test]
fn a_damaged_message_is_refused_or_read_within_bounds() {
    let bytes = a_call();
    for at in 0..bytes.len() {
        for value in [0, 1, 0x7f, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] = value;
            if let Ok(message) = parse(&damaged) {
                let mut body = message.body();
                let _ = (body.variant(), body.str(), body.object(), body.array(8));
            }
        }
    }
}

#[test]
fn lengths_are_not_believed() {
    let text = |length: u32| {
        let mut out = Vec::new();
        let body = [&length.to_le_bytes()[..], b"abc\0"].concat();
        said(&mut out, 1, (":1.1", ""), ("", ""), ("s", &body));
        out
    };
    assert_eq!(parse(&text(3)).unwrap().body().str().unwrap(), "abc");
    assert!(parse(&text(4)).unwrap().body().str().is_err());
    for wrong in [5, 1 << 20, u32::MAX] {
        assert!(parse(&text(wrong)).unwrap().body().str().is_err());
        assert!(parse(&text(wrong)).unwrap().body().array(1).is_err());
    }
}

#[test]
fn values_that_nothing_here_knows_are_left_out() {
    let mut body = vec![5, b'a', b'{', b's', b'v', b'}', 0, 0];
    body.extend(14_u32.to_le_bytes());
    body.resize(16, 0);
    // One pair: "k" and a byte.
    body.extend([1, 0, 0, 0, b'k', 0, 1, b'y', 0, 9, 0, 0, 0, 0]);
    body.extend([1, b'u', 0, 0, 0, 0, 42, 0, 0, 0]);
    let mut out = Vec::new();
    said(&mut out, 1, (":1.1", ""), ("", ""), ("vv", &body));
    let message = parse(&out).unwrap();
    let mut reader = message.body();
    assert_eq!(reader.variant().unwrap(), Value::Other);
    assert_eq!(reader.variant().unwrap(), Value::Number(42.0));
}

#[test]
fn values_in_values_without_end_are_refused() {
    let mut body = Vec::new();
    for _ in 0..100 {
        body.extend([1, b'v', 0]);
    }
    body.extend([1, b'y', 0, 1]);
    let mut out = Vec::new();
    said(&mut out, 1, (":1.1", ""), ("", ""), ("v", &body));
    assert!(parse(&out).unwrap().body().variant().is_err());
}
