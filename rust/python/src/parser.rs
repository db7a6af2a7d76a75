//! `_native.VncParser`: see `rfb::Session` and `rfb::Recording`.

use std::sync::{Arc, Mutex, MutexGuard};

use imaging::Size;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rfb::{Encoding, Limits, Piece, PixelFormat, Recording, Session};

use crate::errors;
use crate::screen::Screen;

/// Seconds since the recording began, and what came then.
type TimedBytes<'py> = (f64, Bound<'py, PyBytes>);

/// What a VNC server sends after its handshake, without any I/O.
#[pyclass(frozen, module = "deskhand._native")]
pub(crate) struct VncParser {
    session: Mutex<Session>,
    header: String,
}

impl VncParser {
    fn begin(size: Size, format: &PixelFormat, encodings: &[Encoding]) -> PyResult<Self> {
        let screen = Arc::new(Mutex::new(imaging::Screen::new(size)));
        let session = Session::new(size, screen, Limits::default(), 0.0).and_then(|mut session| {
            session.start(format, encodings)?;
            session.request(false);
            session.follow();
            Ok(session)
        });
        let session = Mutex::new(session.map_err(|violation| errors::violation(&violation))?);
        Ok(Self { session, header: Recording::line(size, format, encodings) })
    }

    fn locked(&self) -> MutexGuard<'_, Session> {
        link::locked(&self.session)
    }
}

#[pymethods]
impl VncParser {
    /// A parser that requests what a desktop's own connection requests, except for its clipboard; or these encodings only.
    #[new]
    #[pyo3(signature = (size, encodings=None, *, local=false))]
    fn new(size: (u32, u32), encodings: Option<Vec<i32>>, local: bool) -> PyResult<Self> {
        let known = |number| Encoding::of(number).ok_or_else(|| PyValueError::new_err(format!("no encoding {number}")));
        let encodings = match encodings {
            Some(numbers) => numbers.into_iter().map(known).collect::<PyResult<_>>()?,
            None => vnc::encodings(local, false),
        };
        Self::begin(Size { w: size.0, h: size.1 }, &PixelFormat::BGRX, &encodings)
    }

    /// A parser for a recording's offers, and the recording's pieces: seconds and bytes.
    #[staticmethod]
    fn replay<'py>(py: Python<'py>, file: &[u8]) -> PyResult<(Self, Vec<TimedBytes<'py>>)> {
        let recording = Recording::parse(file).map_err(|error| PyValueError::new_err(error.to_string()))?;
        let pieces = recording.pieces.iter().map(|piece| (piece.at, PyBytes::new(py, piece.bytes))).collect();
        Ok((Self::begin(recording.size, &recording.format, &recording.encodings)?, pieces))
    }

    /// A recording's first line.
    #[getter]
    fn header(&self) -> Vec<u8> {
        self.header.clone().into_bytes()
    }

    /// What stands before a piece in a recording.
    #[staticmethod]
    fn head(data: &[u8], at: f64) -> [u8; 12] {
        Piece { at, bytes: data }.head()
    }

    fn feed(&self, py: Python<'_>, data: &[u8], at: f64) -> PyResult<()> {
        let fed = errors::detached(py, || self.locked().feed(data, at).map(|_| ()))?;
        fed.map_err(|violation| errors::violation(&violation))
    }

    fn to_send(&self) -> Vec<u8> {
        self.locked().to_send()
    }

    #[getter]
    fn screen(&self) -> Screen {
        Screen::of(Arc::clone(self.locked().screen()))
    }

    #[getter]
    fn updates(&self) -> u64 {
        self.locked().updates()
    }

    /// How many rectangles of each encoding came in complete updates.
    #[getter]
    fn rectangles(&self) -> Vec<(String, u64)> {
        self.locked().rectangles().iter().map(|(encoding, count)| (format!("{encoding:?}"), *count)).collect()
    }

    /// How many of these were skipped because they had not been requested, by their encodings' numbers.
    #[getter]
    fn skipped(&self) -> Vec<(i32, u64)> {
        self.locked().skipped().to_vec()
    }
}
