//! How messages that are sent are made.

/// An argument of a call.
#[derive(Debug, Clone, Copy)]
pub enum Argument<'a> {
    /// A text.
    Text(&'a str),
    /// A signed number.
    Signed(i32),
    /// A number.
    Unsigned(u32),
}

/// Appends a call to `out`.
pub fn call(
    out: &mut Vec<u8>,
    serial: u32,
    (destination, path): (&str, &str),
    (interface, member): (&str, &str),
    arguments: &[Argument],
) {
    let begin = out.len();
    let mut signature = String::new();
    let mut body = Vec::new();
    for argument in arguments {
        match argument {
            Argument::Text(text) => {
                signature.push('s');
                write_str(&mut body, 0, text);
            }
            Argument::Signed(number) => {
                signature.push('i');
                pad(&mut body, 0, 4);
                body.extend(number.to_le_bytes());
            }
            Argument::Unsigned(number) => {
                signature.push('u');
                pad(&mut body, 0, 4);
                body.extend(number.to_le_bytes());
            }
        }
    }
    out.extend([b'l', 1, 0, 1]);
    out.extend((body.len() as u32).to_le_bytes());
    out.extend(serial.to_le_bytes());
    out.extend([0; 4]);
    let fields = out.len();
    for (field, kind, text) in [(1, b'o', path), (6, b's', destination), (2, b's', interface), (3, b's', member)] {
        pad(out, begin, 8);
        out.extend([field, 1, kind, 0]);
        write_str(out, begin, text);
    }
    if !signature.is_empty() {
        pad(out, begin, 8);
        out.extend([8, 1, b'g', 0, signature.len() as u8]);
        out.extend(signature.as_bytes());
        out.push(0);
    }
    let length = (out.len() - fields) as u32;
    out[fields - 4..fields].copy_from_slice(&length.to_le_bytes());
    pad(out, begin, 8);
    out.extend(body);
}

/// Appends to `out` what an application sends, for tests: an answer to `reply_to`, or a signal where that is 0.
pub fn said(
    out: &mut Vec<u8>,
    reply_to: u32,
    (sender, path): (&str, &str),
    (interface, member): (&str, &str),
    (signature, body): (&str, &[u8]),
) {
    let begin = out.len();
    out.extend([b'l', if reply_to == 0 { 4 } else { 2 }, 1, 1]);
    out.extend((body.len() as u32).to_le_bytes());
    out.extend([1, 0, 0, 0, 0, 0, 0, 0]);
    let fields = out.len();
    for (field, kind, text) in [(1, b'o', path), (2, b's', interface), (3, b's', member), (7, b's', sender)] {
        if !text.is_empty() {
            pad(out, begin, 8);
            out.extend([field, 1, kind, 0]);
            write_str(out, begin, text);
        }
    }
    if reply_to != 0 {
        pad(out, begin, 8);
        out.extend([5, 1, b'u', 0]);
        out.extend(reply_to.to_le_bytes());
    }
    pad(out, begin, 8);
    out.extend([8, 1, b'g', 0, signature.len() as u8]);
    out.extend(signature.as_bytes());
    out.push(0);
    let length = (out.len() - fields) as u32;
    out[fields - 4..fields].copy_from_slice(&length.to_le_bytes());
    pad(out, begin, 8);
    out.extend(body);
}

fn pad(out: &mut Vec<u8>, begin: usize, to: usize) {
    out.resize(begin + (out.len() - begin).next_multiple_of(to), 0);
}

fn write_str(out: &mut Vec<u8>, begin: usize, text: &str) {
    pad(out, begin, 4);
    out.extend((text.len() as u32).to_le_bytes());
    out.extend(text.as_bytes());
    out.push(0);
}
