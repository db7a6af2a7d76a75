//! What can go wrong on one X11 connection; the binding maps each kind to one Python exception.

use std::time::Duration;

use x11rb::errors::{ConnectError, ConnectionError, ParseError, ReplyError, ReplyOrIdError};
use x11rb::protocol::ErrorKind;
use xkeysym::Keysym;

use crate::incoming::Violation;
use crate::keyboard::Refusal;

/// Characters of a server's reason for a refusal that are shown.
const SHOWN: usize = 256;

/// Every failure of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The display could not be opened.
    #[error("cannot open display {display}: {reason}")]
    Connect {
        /// As `DISPLAY` would name it.
        display: String,
        /// What the socket or the server said.
        reason: String,
        /// The server refused the cookie.
        refused: bool,
    },
    /// The connection to the X server is gone, or it has been silent for longer than a live server can be.
    #[error("the X server is gone: {0}")]
    Lost(String),
    /// The server did what X11 does not allow, or sent more than is sensible; the connection was given up.
    #[error("the X server broke the protocol: {0}")]
    Violation(String),
    /// The server refused one request; the connection is fine.
    #[error("X11 request {request} refused: {kind}{detail}")]
    Request {
        /// Name of the request, such as `XTEST FakeInput`.
        request: String,
        /// Name of the X error, such as `BadValue`.
        kind: String,
        /// The value complained about, if any.
        detail: String,
    },
    /// Another driver holds this desktop.
    #[error("{0}")]
    Leased(String),
    /// The caller's thread was asked to stop waiting (a signal, or a cancelled task).
    #[error("interrupted")]
    Interrupted,
    /// The server has not answered for as long as the caller allowed; the connection is fine.
    #[error(
        "the X server has not answered for {0} s: another program may have grabbed it, or it has been stopped; what was sent \
         last may arrive later"
    )]
    Silent(f64),
    /// A wait reached its limit.
    #[error("{what} took longer than {seconds} s")]
    Timeout {
        /// What was awaited.
        what: String,
        /// The limit.
        seconds: f64,
    },
    /// These events (by index) were not sent: the window did not read its new keymap.
    #[error("the window stopped reading its input; {sent} of {total} events were sent")]
    Stalled {
        /// Events sent before.
        sent: usize,
        /// Events asked for.
        total: usize,
    },
    /// These events (by index) were not sent: every spare keycode carries a character that a window may still have to look up.
    #[error(
        "no key is free for more characters: the window that the earlier ones were typed into has not shown that it has read them; \
         {sent} of {total} events were sent; paste the rest (paste=True)"
    )]
    Unread {
        /// Events sent before.
        sent: usize,
        /// Events asked for.
        total: usize,
    },
    /// The keyboard layout was changed before the window had read what was typed.
    #[error(
        "the keyboard layout was changed while a text was typed; its last part may be wrong: look at it before going on"
    )]
    LayoutChanged,
    /// No keycode can carry this keysym on this server.
    #[error("no keycode can carry keysym {0:#x}")]
    NoKeycode(u32),
    /// The server obeys this key itself while Control and Alt are held.
    #[error("the server obeys {0} itself while Control and Alt are held")]
    Reserved(&'static str),
    /// The server's pointer map makes this button of none of the pointer's own.
    #[error("the pointer map has no button {0}")]
    NoButton(u8),
    /// Something the server lacks.
    #[error("{0}")]
    Unsupported(String),
    /// Pixels that do not fit the framebuffer.
    #[error(transparent)]
    Imaging(#[from] imaging::ImagingError),
}

impl Error {
    /// Whether this connection is of no use any more.
    pub(crate) fn is_fatal(&self) -> bool {
        matches!(self, Self::Lost(_) | Self::Violation(_))
    }

    /// Whether the caller's own limit or interruption is its cause.
    pub(crate) fn is_ours(&self) -> bool {
        matches!(self, Self::Interrupted | Self::Silent(_))
    }
}

/// Marks an I/O error made by [`crate::stream`] when the caller asked to stop waiting.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub(crate) struct InterruptedMark;

/// Marks one made there when the server was silent for as long as the caller allowed.
#[derive(Debug, thiserror::Error)]
#[error("no answer in {0:?}")]
pub(crate) struct SilentMark(pub(crate) Duration);

fn is_ours(inner: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    inner.is::<InterruptedMark>() || inner.is::<SilentMark>()
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        match error.get_ref() {
            Some(inner) if inner.is::<InterruptedMark>() => Self::Interrupted,
            Some(inner) if inner.is::<SilentMark>() => Self::Silent(
                inner.downcast_ref().map_or(0.0, |SilentMark(given)| (given.as_secs_f64() * 1e3).round() / 1e3),
            ),
            Some(inner) if inner.is::<Violation>() => Self::Violation(inner.to_string()),
            _ => Self::Lost(error.to_string()),
        }
    }
}

impl From<Violation> for Error {
    fn from(violation: Violation) -> Self {
        Self::Violation(violation.to_string())
    }
}

impl From<ParseError> for Error {
    fn from(error: ParseError) -> Self {
        Self::Violation(format!("it sent a packet that cannot be read: {error}"))
    }
}

impl From<ConnectionError> for Error {
    fn from(error: ConnectionError) -> Self {
        match error {
            ConnectionError::IoError(io) => io.into(),
            ConnectionError::ParseError(error) => error.into(),
            ConnectionError::UnsupportedExtension => Self::Unsupported("an X extension is missing".into()),
            other => Self::Lost(other.to_string()),
        }
    }
}

impl From<ReplyError> for Error {
    fn from(error: ReplyError) -> Self {
        match error {
            ReplyError::ConnectionError(error) => error.into(),
            ReplyError::X11Error(error) => x_error(&error),
        }
    }
}

impl From<ReplyOrIdError> for Error {
    fn from(error: ReplyOrIdError) -> Self {
        match error {
            ReplyOrIdError::ConnectionError(error) => error.into(),
            ReplyOrIdError::X11Error(error) => x_error(&error),
            ReplyOrIdError::IdsExhausted => Self::Lost("the connection ran out of resource ids".into()),
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NoKeycode(keysym) => Self::NoKeycode(keysym),
            Refusal::Reserved(keysym) => {
                let name = Keysym::from(keysym).name().unwrap_or("that key");
                Self::Reserved(name.trim_start_matches("XK_"))
            }
        }
    }
}

/// Names the request and the error as X11 does.
pub(crate) fn x_error(error: &x11rb::x11_utils::X11Error) -> Error {
    let kind = match error.error_kind {
        ErrorKind::Unknown(code) => format!("error {code}"),
        ref known => format!("Bad{known:?}"),
    };
    let request = error
        .request_name
        .map_or_else(|| format!("{}.{}", error.major_opcode, error.minor_opcode), ToString::to_string);
    let request = match &error.extension_name {
        Some(extension) => format!("{extension} {request}"),
        None => request,
    };
    Error::Request { request, kind, detail: format!(" (value {:#x})", error.bad_value) }
}

pub(crate) fn connect_error(display: &str, error: ConnectError) -> Error {
    let said = |reason: &[u8]| {
        let reason = String::from_utf8_lossy(reason);
        reason.trim().chars().take(SHOWN).collect::<String>()
    };
    let (reason, refused) = match error {
        ConnectError::IoError(io) if io.get_ref().is_some_and(is_ours) => return io.into(),
        ConnectError::SetupAuthenticate(setup) => (said(&setup.reason), true),
        ConnectError::SetupFailed(setup) => {
            let reason = said(&setup.reason);
            // "Authorization required, ...", "Invalid MIT-MAGIC-COOKIE-1 key".
            let refused = ["auth", "cookie"].iter().any(|word| reason.to_ascii_lowercase().contains(word));
            (reason, refused)
        }
        other => (other.to_string(), false),
    };
    Error::Connect { display: display.to_owned(), reason, refused }
}

/// The result of everything here.
pub type Result<T> = std::result::Result<T, Error>;
