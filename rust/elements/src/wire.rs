//! D-Bus messages: what is read of them. How those that are sent are made is in [`writing`].
//!
//! A message is untrusted: each length is checked against what is there before anything is allocated. The format is that of the
//! D-Bus specification, "Message Protocol".

mod writing;

use thiserror::Error;

pub use writing::{Argument, call, said};

/// No message longer than this is read; the specification allows 128 MiB.
pub const LONGEST_MESSAGE: usize = 32 << 20;
const LONGEST_HEADER: usize = 64 << 10;
const FIXED: usize = 16;
const DEEPEST: usize = 32;

/// A message is not what the specification says.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("the accessibility bus sent what is no D-Bus message: {0}")]
pub struct Malformed(&'static str);

type Result<T> = std::result::Result<T, Malformed>;

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A call of a method of ours.
    Call,
    /// The answer to a call.
    Return,
    /// The refusal of a call.
    Error,
    /// A signal.
    Signal,
    /// Of a later version of the protocol.
    Unknown,
}

/// One message.
#[derive(Debug)]
pub struct Message<'a> {
    /// What it is.
    pub kind: Kind,
    /// Its number; a caller wants it in the answer.
    pub serial: u32,
    /// The number of the call that it answers; 0 for none.
    pub reply_to: u32,
    /// Its destination.
    pub destination: &'a str,
    /// Its sender, as filled in by the bus, so that it cannot be forged.
    pub sender: &'a str,
    /// The object that it is about.
    pub path: &'a str,
    /// The interface of the method or signal.
    pub interface: &'a str,
    /// The method or signal.
    pub member: &'a str,
    /// The types of the body.
    pub signature: &'a str,
    body: Reader<'a>,
}

impl<'a> Message<'a> {
    /// What it carries.
    #[must_use]
    pub fn body(&self) -> Reader<'a> {
        self.body.clone()
    }
}

/// How long the first message in `bytes` is, which may be longer than [`LONGEST_MESSAGE`]; None while its first 16 bytes are not there.
///
/// # Errors
/// When it is no message.
pub fn length(bytes: &[u8]) -> Result<Option<usize>> {
    let Some(fixed) = bytes.get(..FIXED) else { return Ok(None) };
    let mut reader = Reader::new(fixed, is_big(fixed[0])?);
    reader.at = 4;
    let body = reader.u32()? as usize;
    reader.at = 12;
    let fields = reader.u32()? as usize;
    if fields > LONGEST_HEADER {
        return Err(Malformed("its header is too long"));
    }
    Ok(Some((FIXED + fields).next_multiple_of(8) + body))
}

/// Reads a whole message.
///
/// # Errors
/// When it is none.
pub fn parse(bytes: &[u8]) -> Result<Message<'_>> {
    let Some(total) = length(bytes)?.filter(|total| *total == bytes.len()) else {
        return Err(Malformed("its length is wrong"));
    };
    let mut reader = Reader::new(bytes, is_big(bytes[0])?);
    reader.at = 1;
    let kind = match reader.u8()? {
        1 => Kind::Call,
        2 => Kind::Return,
        3 => Kind::Error,
        4 => Kind::Signal,
        _ => Kind::Unknown,
    };
    reader.at = 4;
    let length = reader.u32()? as usize;
    let serial = reader.u32()?;
    let mut message = Message {
        kind,
        serial,
        reply_to: 0,
        destination: "",
        sender: "",
        path: "",
        interface: "",
        member: "",
        signature: "",
        body: Reader::new(&bytes[total - length..], reader.big),
    };
    let end = reader.array(8)?;
    while reader.at < end {
        reader.align(8)?;
        let field = reader.u8()?;
        let signature = reader.signature()?;
        match (field, signature) {
            (1, "o") => message.path = reader.str()?,
            (2, "s") => message.interface = reader.str()?,
            (3, "s") => message.member = reader.str()?,
            (5, "u") => message.reply_to = reader.u32()?,
            (6, "s") => message.destination = reader.str()?,
            (7, "s") => message.sender = reader.str()?,
            (8, "g") => message.signature = reader.signature()?,
            (_, other) => reader.skip(other, 0)?,
        }
    }
    Ok(message)
}

fn is_big(endian: u8) -> Result<bool> {
    match endian {
        b'l' => Ok(false),
        b'B' => Ok(true),
        _ => Err(Malformed("it has no byte order")),
    }
}

/// Reads values, one after the other.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    big: bool,
}

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8], big: bool) -> Self {
        Self { bytes, at: 0, big }
    }

    /// Whether nothing is left before `end`.
    #[must_use]
    pub fn reached(&self, end: usize) -> bool {
        self.at >= end
    }

    fn align(&mut self, to: usize) -> Result<()> {
        self.at = self.at.next_multiple_of(to);
        if self.at > self.bytes.len() { Err(Malformed("it ends too early")) } else { Ok(()) }
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.align(N)?;
        let Some(bytes) = self.bytes[self.at..].first_chunk::<N>() else { return Err(Malformed("it ends too early")) };
        self.at += N;
        Ok(*bytes)
    }

    /// One byte.
    ///
    /// # Errors
    /// When there is none.
    pub fn u8(&mut self) -> Result<u8> {
        self.take::<1>().map(|[byte]| byte)
    }

    /// A number; also how a boolean is written.
    ///
    /// # Errors
    /// When there is none.
    pub fn u32(&mut self) -> Result<u32> {
        self.take().map(if self.big { u32::from_be_bytes } else { u32::from_le_bytes })
    }

    /// A signed number.
    ///
    /// # Errors
    /// When there is none.
    pub fn i32(&mut self) -> Result<i32> {
        self.u32().map(u32::cast_signed)
    }

    fn u64(&mut self) -> Result<u64> {
        self.take().map(if self.big { u64::from_be_bytes } else { u64::from_le_bytes })
    }

    fn slice(&mut self, length: usize) -> Result<&'a str> {
        let end = self.at.checked_add(length).filter(|end| *end < self.bytes.len());
        let Some(end) = end else { return Err(Malformed("it ends too early")) };
        let text = std::str::from_utf8(&self.bytes[self.at..end]).map_err(|_| Malformed("a text is not UTF-8"))?;
        // The zero byte that ends it.
        self.at = end + 1;
        Ok(text)
    }

    /// A text or a path.
    ///
    /// # Errors
    /// When there is none.
    pub fn str(&mut self) -> Result<&'a str> {
        let length = self.u32()? as usize;
        self.slice(length)
    }

    fn signature(&mut self) -> Result<&'a str> {
        let length = usize::from(self.u8()?);
        self.slice(length)
    }

    /// Begins an array whose elements are aligned to `alignment`; returns where it ends.
    ///
    /// # Errors
    /// When it would end outside the message.
    pub fn array(&mut self, alignment: usize) -> Result<usize> {
        let length = self.u32()? as usize;
        self.align(alignment)?;
        match self.at.checked_add(length).filter(|end| *end <= self.bytes.len()) {
            Some(end) => Ok(end),
            None => Err(Malformed("an array ends outside it")),
        }
    }

    /// Begins a structure.
    ///
    /// # Errors
    /// When nothing is left.
    pub fn structure(&mut self) -> Result<()> {
        self.align(8)
    }

    /// An object: who has it, and its path.
    ///
    /// # Errors
    /// When there is none.
    pub fn object(&mut self) -> Result<(&'a str, &'a str)> {
        self.structure()?;
        Ok((self.str()?, self.str()?))
    }

    /// A value of any type.
    ///
    /// # Errors
    /// When there is none.
    pub fn variant(&mut self) -> Result<Value<'a>> {
        let signature = self.signature()?;
        Ok(match signature {
            "s" | "o" => Value::Text(self.str()?),
            "i" => Value::Number(f64::from(self.i32()?)),
            "u" | "b" => Value::Number(f64::from(self.u32()?)),
            "d" => Value::Number(f64::from_bits(self.u64()?)),
            "(so)" => {
                let (bus, path) = self.object()?;
                Value::Object(bus, path)
            }
            other => {
                self.skip(other, 0)?;
                Value::Other
            }
        })
    }

    /// Leaves out one value of each type that `signature` names.
    fn skip(&mut self, signature: &str, depth: usize) -> Result<()> {
        if depth > DEEPEST {
            return Err(Malformed("its values are nested too deeply"));
        }
        let mut rest = signature;
        while !rest.is_empty() {
            let (one, after) = split(rest)?;
            rest = after;
            match one.as_bytes()[0] {
                b'y' => drop(self.u8()?),
                b'n' | b'q' => drop(self.take::<2>()?),
                b'b' | b'i' | b'u' | b'h' => drop(self.u32()?),
                b'x' | b't' | b'd' => drop(self.u64()?),
                b's' | b'o' => drop(self.str()?),
                b'g' => drop(self.signature()?),
                b'v' => {
                    let inner = self.signature()?;
                    self.skip(inner, depth + 1)?;
                }
                b'a' => self.at = self.array(alignment(&one[1..]))?,
                _ => {
                    self.structure()?;
                    self.skip(&one[1..one.len() - 1], depth + 1)?;
                }
            }
        }
        Ok(())
    }
}

/// The first whole type of a signature, and the rest.
fn split(signature: &str) -> Result<(&str, &str)> {
    let mut open = 0_usize;
    for (at, sign) in signature.bytes().enumerate() {
        match sign {
            b'(' | b'{' => open += 1,
            b')' | b'}' => open = open.checked_sub(1).ok_or(Malformed("a signature is wrong"))?,
            b'a' => continue,
            b'y' | b'n' | b'q' | b'b' | b'i' | b'u' | b'h' | b'x' | b't' | b'd' | b's' | b'o' | b'g' | b'v' => {}
            _ => return Err(Malformed("a signature is wrong")),
        }
        if open == 0 {
            return Ok(signature.split_at(at + 1));
        }
    }
    Err(Malformed("a signature is wrong"))
}

fn alignment(signature: &str) -> usize {
    match signature.as_bytes().first() {
        Some(b'y' | b'g' | b'v') => 1,
        Some(b'n' | b'q') => 2,
        Some(b'x' | b't' | b'd' | b'(' | b'{') => 8,
        _ => 4,
    }
}

/// A value whose type the message names.
#[derive(Debug, PartialEq)]
pub enum Value<'a> {
    /// A text or a path.
    Text(&'a str),
    /// A number of at most 32 bits, or a double.
    Number(f64),
    /// The connection that has an object, and its path.
    Object(&'a str, &'a str),
    /// Of a type that nothing here reads.
    Other,
}
