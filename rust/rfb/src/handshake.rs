//! From the first byte to the server's description of itself (RFC 6143 §7.1 to §7.3), and `VeNCrypt`'s messages.
//!
//! The rule: it says what the server wants, and what the answer means; it knows no password, and starts no TLS. After
//! [`Step::StartTls`] it is fed what comes out of the TLS connection.

use imaging::Size;

use crate::input::Fields;
use crate::limits::Limits;
use crate::message::latin1;
use crate::pixel::PixelFormat;
use crate::security::{Inner, Security, VeNCrypt, Version};
use crate::violation::{Problem, Violation, limit, value};

/// The server's description of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerInit {
    /// The framebuffer's size.
    pub size: Size,
    /// The form of pixels that it uses by itself. [`Session::start`](crate::Session::start) refuses unusable ones.
    pub format: PixelFormat,
    /// The desktop's name, of which the end may be left out; untrusted.
    pub name: String,
}

/// The state that the handshake has reached.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// It offers these: answer with [`Handshake::choose`].
    Security(Vec<Security>),
    /// It offers these within `VeNCrypt`: answer with [`Handshake::choose_vencrypt`].
    VeNCrypt(Vec<VeNCrypt>),
    /// Encrypt this with the password (DES), and answer with [`Handshake::respond`].
    Challenge([u8; 16]),
    /// Answer with [`Handshake::credentials`].
    WantsCredentials,
    /// Send what is to be sent, start TLS, and go on within it.
    StartTls,
    /// The server refuses this client; its reason is untrusted.
    Refused(String),
    /// All is done. What follows is for a [`Session`](crate::Session).
    Ready(ServerInit),
}

/// The client's side of a handshake.
pub struct Handshake {
    limits: Limits,
    shared: bool,
    version: Version,
    state: State,
    buffer: Vec<u8>,
    /// The server's description, while the rest of its name is skipped.
    ready: Option<ServerInit>,
    skipped: usize,
    consumed: u64,
    outgoing: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Version,
    Security,
    Chosen,
    Challenge,
    VeNCryptVersion,
    VeNCryptAnswer,
    VeNCryptTypes,
    VeNCryptAccepted(VeNCrypt),
    Inner(VeNCrypt),
    Foreign,
    Result,
    Reason,
    Init,
    Skipping,
    Over,
}

/// Bytes that may wait until the caller answers; no server sends more before that.
const MAX_WAITING: usize = 64 << 10;

/// Bytes of the description before the name.
const INIT: usize = 24;

impl Handshake {
    /// A handshake that has not begun. `shared`: whether other clients may stay.
    #[must_use]
    pub const fn new(shared: bool, limits: Limits) -> Self {
        Self {
            limits,
            shared,
            version: Version::V3_8,
            state: State::Version,
            buffer: Vec::new(),
            ready: None,
            skipped: 0,
            consumed: 0,
            outgoing: Vec::new(),
        }
    }

    /// Takes in what the server sent; nothing, to go on after an answer. Returns what it has come to, at most one step at a
    /// time: feed nothing until it returns `None`.
    ///
    /// # Errors
    /// When the server breaks the protocol.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Option<Step>, Violation> {
        self.buffer.extend_from_slice(bytes);
        loop {
            let before = (self.state, self.buffer.len());
            match self.step() {
                Ok(None) if before == (self.state, self.buffer.len()) => break,
                Ok(None) => {}
                Ok(step) => return Ok(step),
                Err(problem) => return Err(self.violation(problem)),
            }
        }
        if self.buffer.len() > MAX_WAITING && self.state != State::Over {
            let waiting = self.buffer.len() as u64;
            let problem =
                Problem::Limit { what: "bytes that nothing was answered to", got: waiting, max: MAX_WAITING as u64 };
            return Err(self.violation(problem));
        }
        Ok(None)
    }

    /// Bytes for the server that have gathered.
    #[must_use]
    pub fn to_send(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.outgoing)
    }

    /// What came after the handshake: the beginning of what a [`Session`](crate::Session) is fed. In the middle of a foreign
    /// security, what came of it.
    #[must_use]
    pub fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.buffer)
    }

    /// Chooses a security that was offered. The caller itself works off an unsupported one, with the bytes of
    /// [`Handshake::rest`]; then follows [`Handshake::resume`].
    pub fn choose(&mut self, security: Security) {
        if self.version > Version::V3_3 {
            self.outgoing.push(security.number());
        }
        match security {
            Security::None => self.after_none(),
            Security::Vnc => self.state = State::Challenge,
            Security::VeNCrypt => self.state = State::VeNCryptVersion,
            Security::Other(_) => self.state = State::Foreign,
        }
    }

    /// Chooses a `VeNCrypt` subtype that was offered.
    pub fn choose_vencrypt(&mut self, subtype: VeNCrypt) {
        self.outgoing.extend(subtype.number().to_be_bytes());
        self.state = match subtype {
            VeNCrypt::Plain => State::Inner(subtype),
            VeNCrypt::Other(_) => State::Foreign,
            _ => State::VeNCryptAccepted(subtype),
        };
    }

    /// Answers a challenge with its encrypted form.
    pub fn respond(&mut self, response: [u8; 16]) {
        self.outgoing.extend(response);
        self.state = State::Result;
    }

    /// Answers with a name and a password.
    pub fn credentials(&mut self, name: &str, password: &str) {
        for text in [name, password] {
            self.outgoing.extend((text.len() as u32).to_be_bytes());
        }
        self.outgoing.extend([name, password].concat().into_bytes());
        self.state = State::Result;
    }

    /// Goes on after a foreign security has been worked off, where its result is awaited.
    pub fn resume(&mut self) {
        self.state = State::Result;
    }

    /// Without security there is no result, except for clients of 3.8.
    fn after_none(&mut self) {
        self.state = if self.version == Version::V3_8 { State::Result } else { self.send_init() };
    }

    fn send_init(&mut self) -> State {
        self.outgoing.push(u8::from(self.shared));
        State::Init
    }

    fn violation(&self, problem: Problem) -> Violation {
        Violation { offset: self.consumed, context: format!("the handshake ({:?})", self.state), problem }
    }

    fn take(&mut self, n: usize) -> Option<Vec<u8>> {
        if self.buffer.len() < n {
            return None;
        }
        self.consumed += n as u64;
        Some(self.buffer.drain(..n).collect())
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn word(&mut self) -> Option<u32> {
        self.take(4).map(|bytes| Fields(&bytes).u32())
    }

    /// A list whose length is its first byte, of items of `size` bytes.
    fn list(&mut self, size: usize) -> Option<Vec<u8>> {
        let count = usize::from(*self.buffer.first()?);
        self.take(1 + count * size).map(|bytes| bytes[1..].to_vec())
    }

    fn step(&mut self) -> Result<Option<Step>, Problem> {
        match self.state {
            State::Version => self.greet(),
            State::Security if self.version == Version::V3_3 => Ok(self.told_security()),
            State::Security => Ok(self.security()),
            State::VeNCryptVersion => self.vencrypt_version(),
            State::VeNCryptAnswer => self.vencrypt_answer(),
            State::VeNCryptTypes => Ok(self.list(4).map(|types| {
                self.state = State::Chosen;
                let types = types.chunks_exact(4).map(|bytes| VeNCrypt::of(Fields(bytes).u32()));
                Step::VeNCrypt(types.collect())
            })),
            State::VeNCryptAccepted(subtype) => match self.byte() {
                None => Ok(None),
                Some(1) => {
                    self.state = State::Inner(subtype);
                    Ok(Some(Step::StartTls))
                }
                Some(other) => Err(value("the answer to the VeNCrypt subtype", other, "1, which accepts it")),
            },
            State::Inner(subtype) => match subtype.inner() {
                Some(Inner::Plain) => {
                    self.state = State::Chosen;
                    Ok(Some(Step::WantsCredentials))
                }
                Some(Inner::Vnc) => {
                    self.state = State::Challenge;
                    Ok(None)
                }
                Some(Inner::None) | None => {
                    self.after_none();
                    Ok(None)
                }
            },
            State::Challenge => Ok(self.take(16).map(|challenge| {
                self.state = State::Chosen;
                Step::Challenge(challenge.try_into().expect("16 bytes were taken"))
            })),
            State::Result => self.result(),
            State::Reason => self.reason(),
            State::Init => self.init(),
            State::Skipping => Ok(self.skip()),
            State::Chosen | State::Foreign | State::Over => Ok(None),
        }
    }

    fn greet(&mut self) -> Result<Option<Step>, Problem> {
        const EXPECTED: &[u8; 12] = b"RFB 000.000\n";
        let fits = |(got, expected): (&u8, &u8)| if *expected == b'0' { got.is_ascii_digit() } else { got == expected };
        if let Some((wrong, _)) = self.buffer.iter().zip(EXPECTED).find(|pair| !fits(*pair)) {
            return Err(value("a byte of the protocol's version", *wrong, "`RFB`, two numbers and a newline"));
        }
        let Some(greeting) = self.take(12) else {
            return Ok(None);
        };
        let number = |digits: &[u8]| digits.iter().fold(0_u32, |n, digit| n * 10 + u32::from(digit - b'0'));
        let (major, minor) = (number(&greeting[4..7]), number(&greeting[8..11]));
        let (version, answer) = match (major, minor) {
            (..3, _) => return Err(value("the protocol's version", major, "3")),
            (3, ..7) => (Version::V3_3, b"RFB 003.003\n"),
            (3, 7) => (Version::V3_7, b"RFB 003.007\n"),
            _ => (Version::V3_8, b"RFB 003.008\n"),
        };
        self.version = version;
        self.outgoing.extend(answer);
        self.state = State::Security;
        Ok(None)
    }

    /// In 3.3 the server names the security.
    fn told_security(&mut self) -> Option<Step> {
        let number = self.word()?;
        if number == 0 {
            self.state = State::Reason;
            return None;
        }
        self.state = State::Chosen;
        Some(Step::Security(vec![Security::of(u8::try_from(number).unwrap_or(u8::MAX))]))
    }

    fn security(&mut self) -> Option<Step> {
        let types = self.list(1)?;
        if types.is_empty() {
            self.state = State::Reason;
            return None;
        }
        self.state = State::Chosen;
        Some(Step::Security(types.into_iter().map(Security::of).collect()))
    }

    fn vencrypt_version(&mut self) -> Result<Option<Step>, Problem> {
        let Some(version) = self.take(2) else {
            return Ok(None);
        };
        if version < vec![0, 2] {
            return Err(value("VeNCrypt's minor version", version[1], "2"));
        }
        self.outgoing.extend([0, 2]);
        self.state = State::VeNCryptAnswer;
        Ok(None)
    }

    fn vencrypt_answer(&mut self) -> Result<Option<Step>, Problem> {
        match self.byte() {
            None => Ok(None),
            Some(0) => {
                self.state = State::VeNCryptTypes;
                Ok(None)
            }
            Some(other) => Err(value("the answer to VeNCrypt 0.2", other, "0, which accepts it")),
        }
    }

    fn result(&mut self) -> Result<Option<Step>, Problem> {
        match self.word() {
            None => Ok(None),
            Some(0) => {
                self.state = self.send_init();
                Ok(None)
            }
            Some(1 | 2) if self.version == Version::V3_8 => {
                self.state = State::Reason;
                Ok(None)
            }
            Some(1 | 2) => {
                self.state = State::Over;
                Ok(Some(Step::Refused("authentication failed".to_owned())))
            }
            Some(other) => Err(value("the result of the authentication", other, "0, 1 or 2")),
        }
    }

    fn reason(&mut self) -> Result<Option<Step>, Problem> {
        let Some(len) = self.buffer.first_chunk().map(|len| u32::from_be_bytes(*len)) else {
            return Ok(None);
        };
        limit("bytes of a reason", len.into(), self.limits.name as u64 + self.limits.name_skipped)?;
        // What is beyond the limit is not waited for: nothing follows a reason.
        let kept = (len as usize).min(self.limits.name);
        Ok(self.take(4 + kept).map(|bytes| {
            self.state = State::Over;
            Step::Refused(latin1(&bytes[4..]))
        }))
    }

    fn init(&mut self) -> Result<Option<Step>, Problem> {
        let Some(header) = self.buffer.first_chunk::<INIT>() else {
            return Ok(None);
        };
        let mut fields = Fields(header);
        let size = Size { w: fields.u16().into(), h: fields.u16().into() };
        self.limits.framebuffer(size)?;
        let format: [u8; 16] = fields.bytes(16).try_into().expect("16 bytes were read");
        let format = PixelFormat::parse(format);
        let len = fields.u32();
        limit("bytes of the desktop's name", len.into(), self.limits.name as u64 + self.limits.name_skipped)?;
        let kept = (len as usize).min(self.limits.name);
        if let Some(bytes) = self.take(INIT + kept) {
            let name = String::from_utf8_lossy(&bytes[INIT..]).into_owned();
            self.ready = Some(ServerInit { size, format, name });
            self.skipped = len as usize - kept;
            self.state = State::Skipping;
        }
        Ok(None)
    }

    /// Skips the part of the name that is not kept.
    fn skip(&mut self) -> Option<Step> {
        let here = self.skipped.min(self.buffer.len());
        self.take(here);
        self.skipped -= here;
        if self.skipped > 0 {
            return None;
        }
        self.state = State::Over;
        self.ready.take().map(Step::Ready)
    }
}
