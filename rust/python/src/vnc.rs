//! `_native.Vnc` and `_native.VncHandshake`: see `vnc::Connection` and `rfb::Handshake`.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::{Mutex, MutexGuard};

use imaging::{Rect, Size};
use link::locked;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rfb::{Handshake, Limits, Security, Step, VeNCrypt};
use vnc::{Connection, Error};

use crate::errors;
use crate::events::{self, EventTuple};
use crate::owned::Owned;
use crate::screen::{RectTuple, Screen};

/// One desktop over VNC, from the end of the handshake on.
#[pyclass(frozen, module = "deskhand._native")]
pub(crate) struct Vnc {
    connection: Owned<Connection>,
}

impl Vnc {
    fn call<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&Connection) -> Result<T, Error> + Send) -> PyResult<T> {
        errors::detached(py, || work(self.connection()?))?.map_err(errors::vnc)
    }

    fn connection(&self) -> Result<&Connection, Error> {
        self.connection.get().map_err(Error::Lost)
    }

    fn mine(&self) -> PyResult<&Connection> {
        self.connection().map_err(errors::vnc)
    }
}

#[pymethods]
impl Vnc {
    #[new]
    #[pyo3(signature = (fd, size, rest, *, local, screen=None))]
    fn new(
        py: Python<'_>,
        fd: RawFd,
        size: (u32, u32),
        rest: Vec<u8>,
        local: bool,
        screen: Option<&Screen>,
    ) -> PyResult<Self> {
        if fd < 0 {
            return Err(PyValueError::new_err("no file descriptor"));
        }
        // SAFETY: the caller gives the descriptor up (`socket.detach`), so no other code closes or uses it.
        #[allow(unsafe_code)]
        let stream = unsafe { OwnedFd::from_raw_fd(fd) };
        let (screen, interrupt) = (screen.map(Screen::shared), errors::interrupt());
        let size = Size { w: size.0, h: size.1 };
        let connection = errors::detached(py, || Connection::new(stream, size, rest, local, screen, interrupt))?;
        Ok(Self { connection: Owned::new(connection.map_err(errors::vnc)?) })
    }

    #[getter]
    fn screen(&self) -> PyResult<Screen> {
        Ok(Screen::of(self.mine()?.screen()))
    }

    /// Which extensions the server has shown to know.
    #[getter]
    fn features(&self) -> PyResult<Vec<&'static str>> {
        let connection = self.mine()?;
        let features = connection.features();
        Ok([
            (features.fence, "fence"),
            (features.continuous_updates, "continuous_updates"),
            (features.mouse_buttons, "mouse_buttons"),
            (features.set_desktop_size, "set_desktop_size"),
            (features.clipboard, "clipboard"),
            (connection.tells_locks(), "locks"),
        ]
        .into_iter()
        .filter_map(|(known, name)| known.then_some(name))
        .collect())
    }

    /// How many rectangles were skipped because they had not been requested, by their encodings' numbers.
    #[getter]
    fn skipped(&self) -> PyResult<Vec<(i32, u64)>> {
        Ok(self.mine()?.skipped())
    }

    /// The number and the place of each monitor that the server reports.
    #[getter]
    fn monitors(&self) -> PyResult<Vec<(u32, RectTuple)>> {
        let monitors = self.mine()?.monitors();
        let tuple = |monitor: rfb::Monitor| {
            let Rect { x, y, w, h } = monitor.rect;
            (monitor.id, (x, y, w, h))
        };
        Ok(monitors.into_iter().map(tuple).collect())
    }

    #[getter]
    fn lag(&self) -> PyResult<(f64, f64, f64, f64)> {
        Ok(self.mine()?.lag().into())
    }

    #[getter]
    fn silent(&self) -> PyResult<f64> {
        Ok(self.mine()?.silent())
    }

    fn locks(&self, py: Python<'_>) -> PyResult<Option<(bool, bool)>> {
        self.call(py, Connection::locks)
    }

    fn wait_first(&self, py: Python<'_>, timeout: f64) -> PyResult<()> {
        self.call(py, |connection| connection.wait_first(timeout))
    }

    fn send(&self, py: Python<'_>, events: Vec<EventTuple>) -> PyResult<()> {
        let events = events::read(events)?;
        self.call(py, |connection| connection.send(&events))
    }

    fn release(&self, py: Python<'_>, events: Vec<EventTuple>) -> PyResult<()> {
        let events = events::read(events)?;
        self.call(py, |connection| connection.release(&events))
    }

    fn pressed(&self) -> PyResult<(Vec<u32>, Vec<u8>)> {
        Ok(self.mine()?.pressed())
    }

    #[pyo3(signature = (limit=None))]
    fn look(&self, py: Python<'_>, limit: Option<f64>) -> PyResult<()> {
        self.call(py, |connection| connection.look(limit))
    }

    #[pyo3(signature = (limit=None))]
    fn mark(&self, py: Python<'_>, limit: Option<f64>) -> PyResult<Option<u32>> {
        self.call(py, |connection| connection.mark(limit))
    }

    fn marked(&self, py: Python<'_>, mark: u32) -> PyResult<Option<u64>> {
        self.call(py, |connection| connection.marked(mark))
    }

    fn wait(&self, py: Python<'_>, timeout: f64) -> PyResult<bool> {
        self.call(py, |connection| connection.wait(timeout))
    }

    fn probe(&self, py: Python<'_>) -> PyResult<u32> {
        self.call(py, Connection::probe)
    }

    fn answered(&self, py: Python<'_>, probe: u32) -> PyResult<bool> {
        self.call(py, |connection| connection.answered(probe))
    }

    fn resize(&self, py: Python<'_>, width: u32, height: u32) -> PyResult<()> {
        self.call(py, |connection| connection.resize(Size { w: width, h: height }))
    }

    fn read_clipboard(&self, py: Python<'_>, timeout: f64) -> PyResult<Option<String>> {
        self.call(py, |connection| connection.read_clipboard(timeout))
    }

    fn write_clipboard(&self, py: Python<'_>, text: &str) -> PyResult<()> {
        self.call(py, |connection| connection.write_clipboard(text))
    }

    fn wait_pasted(&self, py: Python<'_>, timeout: f64) -> PyResult<()> {
        self.call(py, |connection| connection.wait_pasted(timeout))
    }

    fn interrupt(&self) -> PyResult<()> {
        self.mine()?.interrupt().set();
        Ok(())
    }

    fn clear_interrupt(&self) -> PyResult<()> {
        self.mine()?.interrupt().clear();
        Ok(())
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let Ok(connection) = self.connection() else { return Ok(()) };
        errors::detached(py, || connection.close())
    }

    /// Its socket, for a process that was forked.
    fn sockets(&self) -> Vec<i32> {
        self.connection.of_any().map(|connection| connection.socket().as_raw_fd()).into_iter().collect()
    }
}

/// `(what, numbers, bytes, text)`: see [`VncHandshake::feed`].
type StepTuple = (&'static str, Vec<u32>, Vec<u8>, String);

/// The client's side of a handshake, without any I/O.
#[pyclass(frozen, module = "deskhand._native")]
pub(crate) struct VncHandshake {
    handshake: Mutex<Handshake>,
}

impl VncHandshake {
    fn locked(&self) -> MutexGuard<'_, Handshake> {
        locked(&self.handshake)
    }
}

#[pymethods]
impl VncHandshake {
    /// Other clients of the server stay.
    #[new]
    fn new() -> Self {
        Self { handshake: Mutex::new(Handshake::new(true, Limits::default())) }
    }

    fn feed(&self, data: &[u8]) -> PyResult<Option<StepTuple>> {
        let step = errors::caught(|| self.locked().feed(data))?.map_err(|violation| errors::violation(&violation))?;
        let none = || (Vec::new(), Vec::new(), String::new());
        Ok(step.and_then(|step| {
            let (what, (numbers, bytes, text)) = match step {
                Step::Security(types) => {
                    ("security", (types.iter().map(|kind| kind.number().into()).collect(), Vec::new(), String::new()))
                }
                Step::VeNCrypt(types) => {
                    ("vencrypt", (types.iter().map(|kind| kind.number()).collect(), Vec::new(), String::new()))
                }
                Step::Challenge(challenge) => ("challenge", (Vec::new(), challenge.to_vec(), String::new())),
                Step::WantsCredentials => ("credentials", none()),
                Step::StartTls => ("tls", none()),
                Step::Refused(reason) => ("refused", (Vec::new(), Vec::new(), reason)),
                Step::Ready(init) => ("ready", (vec![init.size.w, init.size.h], Vec::new(), init.name)),
                _ => return None,
            };
            Some((what, numbers, bytes, text))
        }))
    }

    fn to_send(&self) -> Vec<u8> {
        self.locked().to_send()
    }

    fn rest(&self) -> Vec<u8> {
        self.locked().rest()
    }

    fn choose(&self, number: u8) {
        self.locked().choose(Security::of(number));
    }

    fn choose_vencrypt(&self, number: u32) {
        self.locked().choose_vencrypt(VeNCrypt::of(number));
    }

    fn respond(&self, response: [u8; 16]) {
        self.locked().respond(response);
    }

    fn credentials(&self, name: &str, password: &str) {
        self.locked().credentials(name, password);
    }

    fn resume(&self) {
        self.locked().resume();
    }
}
