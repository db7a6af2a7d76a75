//! `_native.Elements`: see `elements::Session`.

use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::Mutex;
use std::time::Duration;

use elements::{Area, Cover, Error, Seen, Session, Window};
use link::{Interrupt, locked};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::errors;
use crate::owned::Owned;

type AreaTuple = (i32, i32, i32, i32);
/// Windows with their processes, and what is covered with the seconds that it has been.
type WindowTuples = (Vec<(u32, AreaTuple)>, Vec<(AreaTuple, f64)>);

/// The accessibility tree of one desktop.
#[pyclass(frozen, module = "deskhand._native")]
pub(crate) struct Elements {
    /// None once closed.
    session: Owned<Mutex<Option<Session>>>,
    interrupt: Interrupt,
}

fn socket(fd: RawFd) -> PyResult<OwnedFd> {
    if fd < 0 {
        return Err(PyValueError::new_err(format!("{fd} is no descriptor")));
    }
    // SAFETY: the caller has detached the descriptor from the Python socket that had it, so no other code closes or uses it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn seconds(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds.max(0.0)).map_err(|error| PyValueError::new_err(error.to_string()))
}

fn area((x, y, width, height): AreaTuple) -> Area {
    Area { x, y, width, height }
}

/// See `elements::accessibility_address`; takes the descriptor over.
#[pyfunction]
pub(crate) fn accessibility_address(py: Python<'_>, fd: RawFd, timeout: f64) -> PyResult<String> {
    let (stream, limit, stop) = (socket(fd)?, seconds(timeout)?, errors::interrupt());
    errors::detached(py, || elements::accessibility_address(stream, limit, &stop))?.map_err(errors::elements)
}

impl Elements {
    fn call<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Session, &Interrupt) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        errors::detached(py, || {
            let session = self.session.get().map_err(|_| Error::Gone)?;
            work(locked(session).as_ref().ok_or(Error::Gone)?, &self.interrupt)
        })?
        .map_err(errors::elements)
    }
}

#[pymethods]
impl Elements {
    /// Takes the descriptor over, of a socket that is connected to the accessibility bus.
    #[new]
    fn new(py: Python<'_>, fd: RawFd, timeout: f64) -> PyResult<Self> {
        let (stream, limit, interrupt) = (socket(fd)?, seconds(timeout)?, errors::interrupt());
        let session = errors::detached(py, || Session::open(stream, limit, &interrupt))?.map_err(errors::elements)?;
        Ok(Self { session: Owned::new(Mutex::new(Some(session))), interrupt })
    }

    /// The elements that show, or None where nothing has changed since `version`; see `elements::Session::read`.
    fn read<'py>(
        &self,
        py: Python<'py>,
        changed: (Vec<AreaTuple>, f64),
        windows: WindowTuples,
        timeout: f64,
        version: Option<u64>,
        wanted: (bool, Option<u64>, bool),
    ) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let (windows, covers) = windows;
        let windows = windows.into_iter().map(|(pid, rect)| Window { pid, area: area(rect) }).collect();
        let covers = covers.into_iter().map(|(rect, age)| Ok(Cover { area: area(rect), age: seconds(age)? }));
        let covers = covers.collect::<PyResult<_>>()?;
        let (changed, age) = (changed.0.into_iter().map(area).collect(), seconds(changed.1)?);
        let (deep, target, scrolling) = wanted;
        let seen = Seen { changed, age, windows, covers, deep, target, scrolling };
        let limit = seconds(timeout)?;
        let found = self.call(py, |session, stop| session.read(seen, limit, stop))?;
        if version == Some(found.version) {
            return Ok(None);
        }
        let applications = PyList::empty(py);
        for each in found.applications {
            applications.append((each.name, each.toolkit, each.version, each.pid, each.left_out))?;
        }
        let elements = PyList::empty(py);
        for each in found.elements {
            let place = each.area.map(|area| (area.x, area.y, area.width, area.height));
            let identity = (each.reference, each.depth, each.application, each.role, each.states);
            let words = (&*each.name, &*each.description, each.text.as_deref(), each.value);
            elements.append((identity, words, place, PyTuple::new(py, each.actions.iter())?, each.hidden))?;
        }
        (found.version, applications, elements).into_pyobject(py).map(Some)
    }

    /// Asks an application to scroll an element into view; see `elements::Session::scroll_to`.
    fn scroll_to(&self, py: Python<'_>, reference: u64, timeout: f64) -> PyResult<bool> {
        let limit = seconds(timeout)?;
        self.call(py, |session, stop| session.scroll_to(reference, limit, stop))
    }

    /// Seconds since a line was written in, in the application of an element; see `elements::Session::since_written`.
    fn since_written(&self, py: Python<'_>, reference: u64) -> PyResult<Option<f64>> {
        self.call(py, |session, _| Ok(session.since_written(reference).map(|since| since.as_secs_f64())))
    }

    /// Makes the reading that is under way, or the next one, raise `Interrupted`.
    fn interrupt(&self) {
        self.interrupt.set();
    }

    /// Forgets an earlier `interrupt`.
    fn clear_interrupt(&self) {
        self.interrupt.clear();
    }

    /// Ends the connection; later calls raise.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        errors::detached(py, || {
            if let Ok(session) = self.session.get() {
                drop(locked(session).take());
            }
        })
    }
}
