//! `_native.X11`: see `capture::Display` and `capture::Clipboard`.

use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use capture::{Activity, Clipboard, Cover, Display, Error, Method, Obstacle, Options, Target};
use imaging::Size;
use link::{Interrupt, locked};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::PyBytes;

use crate::errors;
use crate::events::{self, EventTuple};
use crate::owned::Owned;
use crate::screen::Screen;

type MissedTuple = (&'static str, String, Vec<(i32, i32, u32, u32)>);
type WindowTuple = (u32, String, String, Option<u32>, (i32, i32, u32, u32), bool, bool, String);
type MonitorTuple = (String, (i32, i32, u32, u32), bool);

fn method(name: Option<&str>) -> PyResult<Option<Method>> {
    Ok(Some(match name {
        None => return Ok(None),
        Some("shared-fd") => Method::SharedFd,
        Some("shared-id") => Method::SharedId,
        Some("socket") => Method::Socket,
        Some(other) => return Err(PyValueError::new_err(format!("no capture method {other:?}"))),
    }))
}

fn seconds(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds.max(0.0)).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// `socket` is a descriptor of the socket to connect to, opened with `O_PATH`; the caller keeps it.
fn target(display: String, auth: (Vec<u8>, Vec<u8>), socket: Option<i32>) -> PyResult<Target> {
    let mut target = Target { display, auth, socket: None };
    if let Some(descriptor) = socket {
        target.pin(descriptor).map_err(errors::capture)?;
    }
    Ok(target)
}

/// See `capture::glance`: width, height, and the display's driver.
#[pyfunction]
#[pyo3(signature = (display, auth, timeout, socket=None))]
pub(crate) fn glance(
    py: Python<'_>,
    display: String,
    auth: (Vec<u8>, Vec<u8>),
    timeout: f64,
    socket: Option<i32>,
) -> PyResult<(u32, u32, Option<String>)> {
    let target = target(display, auth, socket)?;
    let (interrupt, timeout) = (errors::interrupt(), seconds(timeout)?);
    let seen = errors::detached(py, || capture::glance(&target, &interrupt, timeout))?.map_err(errors::capture)?;
    Ok((seen.size.w, seen.size.h, seen.driver))
}

/// One desktop over X11.
#[pyclass(frozen, module = "deskhand._native")]
pub(crate) struct X11 {
    has: Owned<Connections>,
    interrupt: Interrupt,
}

struct Connections {
    /// None once closed: its resources are released even if the object lives on.
    display: Mutex<Option<Arc<Display>>>,
    clipboard: Mutex<Option<Clipboard>>,
    /// None likewise: it may hold a descriptor.
    target: Mutex<Option<Target>>,
}

impl X11 {
    fn call<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&Display) -> Result<T, Error> + Send) -> PyResult<T> {
        errors::detached(py, || work(&*self.open()?))?.map_err(errors::capture)
    }

    fn connections(&self) -> Result<&Connections, Error> {
        self.has.get().map_err(Error::Lost)
    }

    fn open(&self) -> Result<Arc<Display>, Error> {
        let display = locked(&self.connections()?.display).clone();
        display.ok_or_else(|| Error::Lost("this connection was closed".into()))
    }

    fn target(&self) -> Result<Target, Error> {
        let target = locked(&self.connections()?.target).clone();
        target.ok_or_else(|| Error::Lost("this connection was closed".into()))
    }

    fn with_clipboard<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Clipboard) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        errors::detached(py, || {
            let mut clipboard = locked(&self.connections()?.clipboard);
            let clipboard = match &mut *clipboard {
                Some(clipboard) => clipboard,
                none => none.insert(Clipboard::open(&self.target()?, &self.interrupt)?),
            };
            work(clipboard)
        })?
        .map_err(errors::capture)
    }
}

#[pymethods]
impl X11 {
    #[new]
    #[pyo3(signature = (display, auth, *, view_only, own, driver, method=None, socket=None))]
    #[expect(clippy::too_many_arguments, reason = "Python's keyword arguments")]
    fn new(
        py: Python<'_>,
        display: String,
        auth: (Vec<u8>, Vec<u8>),
        view_only: bool,
        own: bool,
        driver: String,
        method: Option<&str>,
        socket: Option<i32>,
    ) -> PyResult<Self> {
        let target = target(display, auth, socket)?;
        let options = Options { view_only, own, driver, method: self::method(method)? };
        let interrupt = errors::interrupt();
        let display = errors::detached(py, || Display::open(&target, &options, interrupt.clone()))?;
        let display = display.map_err(errors::capture)?;
        let display = Mutex::new(Some(Arc::new(display)));
        let has = Connections { display, clipboard: Mutex::default(), target: Mutex::new(Some(target)) };
        Ok(Self { has: Owned::new(has), interrupt })
    }

    #[getter]
    fn screen(&self, py: Python<'_>) -> PyResult<Screen> {
        self.call(py, |display| Ok(display.screen())).map(Screen::of)
    }

    #[getter]
    fn status(&self) -> Vec<String> {
        self.open().map_or_else(|_| Vec::new(), |display| display.status())
    }

    fn begin(&self) {
        if let Ok(display) = self.open() {
            display.begin();
        }
    }

    fn end(&self) {
        if let Ok(display) = self.open() {
            display.end();
        }
    }

    fn send(&self, py: Python<'_>, events: Vec<EventTuple>) -> PyResult<Option<MissedTuple>> {
        let events = events::read(events)?;
        let missed = self.call(py, |display| display.send(&events))?;
        Ok(missed.map(|missed| {
            let obstacle = match missed.obstacle {
                Obstacle::Unfocused => "unfocused",
                Obstacle::Keyboard => "keyboard",
                Obstacle::Pointer => "pointer",
                Obstacle::Unread => "unread",
            };
            (obstacle, missed.holder, missed.rects)
        }))
    }

    fn release(&self, py: Python<'_>, events: Vec<EventTuple>) -> PyResult<()> {
        let events = events::read(events)?;
        self.call(py, |display| display.release(&events))
    }

    fn pressed(&self, py: Python<'_>) -> PyResult<(Vec<u32>, Vec<u32>)> {
        let (keys, buttons) = self.call(py, Display::pressed)?;
        let numbers = |list: Vec<u8>| list.into_iter().map(u32::from).collect();
        Ok((numbers(keys), numbers(buttons)))
    }

    fn look(&self, py: Python<'_>) -> PyResult<()> {
        self.call(py, Display::look)
    }

    fn wait(&self, py: Python<'_>, timeout: f64) -> PyResult<bool> {
        let timeout = seconds(timeout)?;
        self.call(py, |display| display.wait(timeout))
    }

    #[pyo3(signature = (at_pointer, window=None))]
    fn ping(&self, py: Python<'_>, at_pointer: bool, window: Option<u32>) -> PyResult<Option<u64>> {
        self.call(py, |display| display.ping(at_pointer, window))
    }

    fn input_window(&self, py: Python<'_>) -> PyResult<Option<u32>> {
        self.call(py, Display::input_window)
    }

    fn answered(&self, py: Python<'_>, ping: u64) -> PyResult<bool> {
        self.call(py, |display| display.answered(ping))
    }

    fn take_stock(&self, py: Python<'_>) -> PyResult<()> {
        self.call(py, Display::take_stock)
    }

    fn activity(&self, py: Python<'_>, changed: bool) -> PyResult<&'static str> {
        let activity = self.call(py, |display| display.activity(changed))?;
        Ok(match activity {
            Activity::Unknown => "unknown",
            Activity::Resting => "resting",
            Activity::Ticking => "ticking",
            Activity::Sleeping => "sleeping",
            Activity::Timed => "timed",
            Activity::Awaiting => "awaiting",
            Activity::Computing => "computing",
        })
    }

    fn double_click_time(&self, py: Python<'_>) -> PyResult<Option<u32>> {
        self.call(py, Display::double_click_time)
    }

    fn focused_classes(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.call(py, Display::focused_classes)
    }

    fn windows(&self, py: Python<'_>) -> PyResult<Vec<WindowTuple>> {
        let windows = self.call(py, Display::windows)?;
        Ok(windows
            .into_iter()
            .map(|w| (w.id, w.title, w.class, w.pid, w.rect, w.active, w.minimized, w.startup_id))
            .collect())
    }

    fn covers(&self, py: Python<'_>) -> PyResult<Vec<Cover>> {
        self.call(py, Display::covers)
    }

    fn monitors(&self, py: Python<'_>) -> PyResult<Vec<MonitorTuple>> {
        let monitors = self.call(py, Display::monitors)?;
        Ok(monitors.into_iter().map(|monitor| (monitor.name, monitor.rect, monitor.primary)).collect())
    }

    fn activate(&self, py: Python<'_>, window: u32) -> PyResult<()> {
        self.call(py, |display| display.activate(window))
    }

    fn close_window(&self, py: Python<'_>, window: u32) -> PyResult<()> {
        self.call(py, |display| display.close_window(window))
    }

    fn has_window_manager(&self, py: Python<'_>) -> PyResult<bool> {
        self.call(py, Display::has_window_manager)
    }

    fn resize(&self, py: Python<'_>, width: u32, height: u32) -> PyResult<()> {
        self.call(py, |display| display.resize(Size { w: width, h: height }))
    }

    fn read_clipboard(&self, py: Python<'_>, timeout: f64) -> PyResult<Option<String>> {
        let timeout = seconds(timeout)?;
        errors::detached(py, || capture::read_clipboard(&self.target()?, timeout, &self.interrupt))?
            .map_err(errors::capture)
    }

    fn write_clipboard(&self, py: Python<'_>, text: &str, timeout: f64) -> PyResult<()> {
        let timeout = seconds(timeout)?;
        self.with_clipboard(py, |clipboard| clipboard.write(text, timeout, &self.interrupt))
    }

    fn clipboard_kinds(&self, py: Python<'_>, timeout: f64) -> PyResult<Vec<String>> {
        let timeout = seconds(timeout)?;
        errors::detached(py, || capture::clipboard_kinds(&self.target()?, timeout, &self.interrupt))?
            .map_err(errors::capture)
    }

    fn read_clipboard_kind(&self, py: Python<'_>, kind: &str, timeout: f64) -> PyResult<Option<Py<PyBytes>>> {
        let timeout = seconds(timeout)?;
        let read = || capture::read_clipboard_kind(&self.target()?, kind, timeout, &self.interrupt);
        let data = errors::detached(py, read)?.map_err(errors::capture)?;
        Ok(data.map(|data| PyBytes::new(py, &data).unbind()))
    }

    #[expect(clippy::needless_pass_by_value, reason = "Python's arguments")]
    fn write_clipboard_kinds(
        &self,
        py: Python<'_>,
        kinds: Vec<(PyBackedStr, PyBackedBytes)>,
        timeout: f64,
    ) -> PyResult<()> {
        let timeout = seconds(timeout)?;
        self.with_clipboard(py, |clipboard| {
            let kinds: Vec<(&str, &[u8])> = kinds.iter().map(|(kind, data)| (&**kind, &**data)).collect();
            clipboard.write_kinds(&kinds, timeout, &self.interrupt)
        })
    }

    fn drop_uris(&self, py: Python<'_>, uris: &[u8], x: u16, y: u16, timeout: f64) -> PyResult<()> {
        let timeout = seconds(timeout)?;
        self.with_clipboard(py, |clipboard| clipboard.drop_uris(uris, (x, y), timeout, &self.interrupt))
    }

    fn lend_clipboard(&self, py: Python<'_>, text: &str, with_primary: bool, timeout: f64) -> PyResult<Vec<String>> {
        let timeout = seconds(timeout)?;
        self.with_clipboard(py, |clipboard| clipboard.lend(text, with_primary, timeout, &self.interrupt))
    }

    fn return_clipboard(&self, py: Python<'_>, timeout: f64) -> PyResult<()> {
        let timeout = seconds(timeout)?;
        self.with_clipboard(py, |clipboard| clipboard.give_back(timeout, &self.interrupt))
    }

    fn wait_pasted(&self, py: Python<'_>, timeout: f64) -> PyResult<()> {
        let timeout = seconds(timeout)?;
        self.with_clipboard(py, |clipboard| {
            let display = self.open()?;
            clipboard.wait_taken(timeout, &self.interrupt, |window, at| display.is_typed_into(window, at))
        })
    }

    fn clipboard_answered(&self, py: Python<'_>, timeout: f64) -> PyResult<u64> {
        let timeout = seconds(timeout)?;
        self.with_clipboard(py, |clipboard| clipboard.answered(timeout, &self.interrupt))
    }

    fn allow(&self, seconds: Option<f64>) -> PyResult<()> {
        self.interrupt.allow(seconds.map(self::seconds).transpose()?);
        Ok(())
    }

    fn interrupt(&self) {
        self.interrupt.set();
    }

    fn clear_interrupt(&self) {
        self.interrupt.clear();
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let Ok(has) = self.has.get() else { return Ok(()) };
        errors::detached(py, || {
            drop(locked(&has.clipboard).take());
            drop(locked(&has.target).take());
            let display = locked(&has.display).take();
            if let Some(display) = display {
                display.close();
            }
        })
    }

    /// Its sockets, for a process that was forked: a call under way keeps the clipboard's.
    fn sockets(&self) -> Vec<i32> {
        let Some(has) = self.has.of_any() else { return Vec::new() };
        let display = has.display.try_lock().ok();
        let clipboard = has.clipboard.try_lock().ok();
        let display = display.iter().flat_map(|display| display.iter()).map(|display| display.socket());
        let clipboard = clipboard.iter().flat_map(|clipboard| clipboard.iter()).map(Clipboard::socket);
        display.chain(clipboard).map(|socket| socket.as_raw_fd()).collect()
    }
}
