//! The one place where an error of the crates becomes a Python exception, and where a waiting call notices a signal.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use capture::Error;
use imaging::ImagingError;
use link::Interrupt;
use pyo3::exceptions::PyBaseException;
use pyo3::prelude::*;

/// The classes drawn in `deskhand/errors.py`.
mod python {
    pyo3::import_exception!(deskhand.errors, AuthFailed);
    pyo3::import_exception!(deskhand.errors, BackendError);
    pyo3::import_exception!(deskhand.errors, ConnectFailed);
    pyo3::import_exception!(deskhand.errors, DeskhandTimeout);
    pyo3::import_exception!(deskhand.errors, DesktopLost);
    pyo3::import_exception!(deskhand.errors, ImagingError);
    pyo3::import_exception!(deskhand.errors, ProtocolViolation);
    pyo3::import_exception!(deskhand.errors, ServerSilent);
    pyo3::import_exception!(deskhand.errors, UnsupportedAction);
    pyo3::import_exception!(deskhand.errors, Untypable);
}

pyo3::create_exception!(
    deskhand._native,
    Interrupted,
    PyBaseException,
    "The call was ended by interrupt(), from another thread. It is not an Exception, so `except Exception` does not catch it."
);

thread_local! {
    /// The exception of a signal handler that ran during a wait of this thread, until the wait has come back with it.
    static RAISED: Cell<Option<PyErr>> = const { Cell::new(None) };
}

/// Whether a signal (Ctrl-C) wants a wait of this thread to end.
fn signalled() -> bool {
    // At interpreter shutdown there is no interpreter to attach to.
    Python::try_attach(|py| match py.check_signals() {
        Ok(()) => false,
        Err(error) => {
            RAISED.set(Some(error));
            true
        }
    })
    .unwrap_or(false)
}

/// What ends a wait: a request from another thread, or a signal.
pub(crate) fn interrupt() -> Interrupt {
    Interrupt::new(signalled)
}

fn interrupted() -> PyErr {
    RAISED.take().unwrap_or_else(|| Interrupted::new_err("this call was stopped"))
}

/// Does `work`, in which a panic, a bug, becomes an error like others. pyo3's `PanicException` is not an `Exception`, so callers miss
/// it. A connection gives itself up when a call of it panics.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let said = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref().copied());
        let said = said.unwrap_or("no reason was given");
        python::BackendError::new_err(format!("a bug in deskhand ended this call: {said}: please report it"))
    })
}

/// The same without the GIL.
pub(crate) fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    py.detach(|| caught(work))
}

pub(crate) fn imaging(error: &ImagingError) -> PyErr {
    python::ImagingError::new_err(error.to_string())
}

pub(crate) fn capture(error: Error) -> PyErr {
    let message = error.to_string();
    match error {
        Error::Connect { display, reason, refused: true } => {
            let hint = "give the path of its cookie file (xauthority=, or XAUTHORITY in the environment)";
            python::AuthFailed::new_err((display, reason, hint))
        }
        Error::Connect { display, reason, refused: false } => {
            let hint =
                "check that an X server runs there (`deskhand ls`, `deskhand doctor`), or start one with launch()";
            python::ConnectFailed::new_err((display, reason, hint))
        }
        Error::Leased(what) => {
            let hint = "close that driver first, or look only with view_only=True";
            python::ConnectFailed::new_err((what, "one driver at a time", hint))
        }
        Error::Lost(detail) => python::DesktopLost::new_err(("x_server", detail)),
        Error::Violation(_) => {
            let hint = "the connection was closed; the server is broken, or hostile";
            python::ProtocolViolation::new_err(format!("{message}: {hint}"))
        }
        Error::NoKeycode(keysym) => {
            let char = xkeysym_char(keysym);
            let hint = "this server's keymap has no free keycode; use paste=True";
            python::Untypable::new_err((vec![(0, char)], hint))
        }
        Error::Reserved(key) => {
            let hint = "the X server takes this key for itself (consoles, video modes, grabs) and no application sees it; \
                        a desktop that deskhand launches does not";
            python::UnsupportedAction::new_err(("x11", format!("press ctrl+alt+{key}"), hint))
        }
        Error::NoButton(button) => {
            let hint = "the server's pointer map has no such button; `xmodmap -pp` shows it";
            python::UnsupportedAction::new_err(("x11", format!("press button {button}"), hint))
        }
        Error::Interrupted => interrupted(),
        Error::Silent(_) => python::ServerSilent::new_err(message),
        Error::Timeout { .. } => python::DeskhandTimeout::new_err(message),
        Error::Imaging(error) => imaging(&error),
        // Non-exhaustive: any other error of the connection is the other side's refusal of one call.
        _ => python::BackendError::new_err(message),
    }
}

pub(crate) fn violation(violation: &rfb::Violation) -> PyErr {
    let hint = "the connection was closed; the server is broken, or no VNC server";
    python::ProtocolViolation::new_err(format!("{violation}: {hint}"))
}

pub(crate) fn vnc(error: vnc::Error) -> PyErr {
    let message = error.to_string();
    match error {
        vnc::Error::Lost(detail) => python::DesktopLost::new_err(("network", detail)),
        vnc::Error::Violation(broken) => violation(&broken),
        vnc::Error::Interrupted => interrupted(),
        vnc::Error::Timeout { .. } => python::DeskhandTimeout::new_err(message),
        // Non-exhaustive: with any other error, the connection is fine.
        _ => python::BackendError::new_err(message),
    }
}

pub(crate) fn elements(error: elements::Error) -> PyErr {
    match error {
        elements::Error::Interrupted => interrupted(),
        elements::Error::Silent => python::ServerSilent::new_err(error.to_string()),
        other => python::BackendError::new_err(other.to_string()),
    }
}

/// The character of a Unicode or Latin-1 keysym, which are the only ones that borrow keycodes.
fn xkeysym_char(keysym: u32) -> char {
    char::from_u32(keysym & 0x00ff_ffff).unwrap_or(char::REPLACEMENT_CHARACTER)
}
