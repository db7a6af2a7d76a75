//! `_native.Screen`: see `imaging::Screen`.

use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use imaging::{ImagingError, Patch, Png, Rect, SharedSize, Size, Stamp, View};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyBytes;

use crate::errors;

pub(crate) type RectTuple = (u32, u32, u32, u32);
type SizeTuple = (u32, u32);

fn rect((x, y, w, h): RectTuple) -> Rect {
    Rect { x, y, w, h }
}

fn tuples(rects: &[Rect]) -> Vec<RectTuple> {
    rects.iter().map(|rect| (rect.x, rect.y, rect.w, rect.h)).collect()
}

fn view(size: Option<SizeTuple>, region: Option<RectTuple>, cursor: bool) -> View {
    View { size: size.map(|(w, h)| Size { w, h }), region: region.map(rect), cursor }
}

/// New `bytes` that `write` writes every byte of. `PyBytes::new_with` would fill them with zeros first, which takes a third as long
/// as the pixels themselves.
fn bytes_of(
    py: Python<'_>,
    len: usize,
    write: impl FnOnce(&mut [MaybeUninit<u8>]) -> PyResult<()>,
) -> PyResult<Bound<'_, PyBytes>> {
    // SAFETY: without a pointer Python only takes the memory: `len` bytes that no other code has yet.
    let bytes = unsafe {
        let object = pyo3::ffi::PyBytes_FromStringAndSize(std::ptr::null(), len as isize);
        Bound::from_owned_ptr_or_err(py, object)?.cast_into_unchecked::<PyBytes>()
    };
    // SAFETY: the memory just taken, which need not hold anything yet; if `write` fails, the object is dropped unused.
    write(unsafe { std::slice::from_raw_parts_mut(pyo3::ffi::PyBytes_AsString(bytes.as_ptr()).cast(), len) })?;
    Ok(bytes)
}

/// Framebuffer, generation counter, and what changed since a generation.
#[pyclass(frozen, module = "deskhand._native")]
pub(crate) struct Screen {
    inner: Arc<Mutex<imaging::Screen>>,
    size: SharedSize,
    /// The file given out last, so that an unchanged screen costs no copy; the number is its stamp.
    file: Mutex<Option<(u64, Py<PyBytes>)>>,
    /// The same of pixels.
    pixels: Mutex<Option<(Stamp, Py<PyBytes>)>>,
}

impl Screen {
    pub(crate) fn of(screen: Arc<Mutex<imaging::Screen>>) -> Self {
        let size = link::locked(&screen).shared_size();
        Self { inner: screen, size, file: Mutex::default(), pixels: Mutex::default() }
    }

    pub(crate) fn shared(&self) -> Arc<Mutex<imaging::Screen>> {
        Arc::clone(&self.inner)
    }

    fn locked(&self) -> MutexGuard<'_, imaging::Screen> {
        link::locked(&self.inner)
    }

    /// Runs with the screen and without the GIL: the lock may be held by a thread that encodes.
    fn with<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut imaging::Screen) -> T + Send) -> PyResult<T> {
        errors::detached(py, || work(&mut self.locked()))
    }

    /// What takes microseconds, with the GIL: to hand that over takes longer. The lock is not waited for with it.
    fn peek<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut imaging::Screen) -> T + Send) -> PyResult<T> {
        match self.inner.try_lock() {
            Ok(mut screen) => errors::caught(|| work(&mut screen)),
            Err(_) => self.with(py, work),
        }
    }

    /// A file as `bytes`: the same object as last time, if it is the same file.
    fn file(
        &self,
        py: Python<'_>,
        encode: impl FnOnce(&mut imaging::Screen) -> Result<Png, ImagingError> + Send,
    ) -> PyResult<Py<PyBytes>> {
        let png = self.with(py, encode)?.map_err(|e| errors::imaging(&e))?;
        let mut file = self.file.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        if let Some((stamp, bytes)) = &*file
            && *stamp == png.stamp()
        {
            return Ok(bytes.clone_ref(py));
        }
        let bytes = PyBytes::new_with(py, png.len(), |out| {
            png.write_to(out);
            Ok(())
        })?;
        Ok(file.insert((png.stamp(), bytes.unbind())).1.clone_ref(py))
    }
}

#[pymethods]
impl Screen {
    #[new]
    fn new(width: u32, height: u32) -> PyResult<Self> {
        let screen = errors::caught(|| imaging::Screen::new(Size { w: width, h: height }))?;
        Ok(Self::of(Arc::new(Mutex::new(screen))))
    }

    #[getter]
    fn size(&self) -> SizeTuple {
        // A thread that reads pixels from a server holds the screen's lock until that server has answered.
        let Size { w, h } = self.size.get();
        (w, h)
    }

    #[getter]
    fn generation(&self, py: Python<'_>) -> PyResult<u64> {
        self.peek(py, |screen| screen.generation())
    }

    #[getter]
    fn epoch(&self, py: Python<'_>) -> PyResult<u64> {
        self.peek(py, |screen| screen.epoch())
    }

    #[getter]
    fn pointer(&self, py: Python<'_>) -> PyResult<(i32, i32)> {
        self.peek(py, |screen| screen.pointer())
    }

    #[getter]
    fn cursor(&self, py: Python<'_>) -> PyResult<Option<RectTuple>> {
        self.peek(py, |screen| screen.cursor().map(|c| (c.size.w, c.size.h, c.hot.0, c.hot.1)))
    }

    /// The name of the cursor's image, as its application gave it.
    #[getter]
    fn cursor_name(&self, py: Python<'_>) -> PyResult<String> {
        self.peek(py, |screen| screen.cursor().map(|cursor| cursor.name.clone()).unwrap_or_default())
    }

    #[getter]
    fn stats(&self, py: Python<'_>) -> PyResult<HashMap<&'static str, u64>> {
        let stats = self.peek(py, |screen| screen.stats())?;
        Ok(HashMap::from([
            ("patches", stats.patches),
            ("bytes_compared", stats.bytes_compared),
            ("strips_deflated", stats.strips_deflated),
            ("bytes_deflated", stats.bytes_deflated),
            ("strips_tightened", stats.strips_tightened),
        ]))
    }

    fn expect(&self, py: Python<'_>, times: u32) -> PyResult<()> {
        self.peek(py, |screen| screen.expect(times))
    }

    #[pyo3(signature = (size=None, region=None, cursor=true))]
    fn png(
        &self,
        py: Python<'_>,
        size: Option<SizeTuple>,
        region: Option<RectTuple>,
        cursor: bool,
    ) -> PyResult<Py<PyBytes>> {
        self.file(py, |screen| screen.png(&view(size, region, cursor)))
    }

    #[pyo3(signature = (size=None, region=None, cursor=true))]
    fn indexed_png(
        &self,
        py: Python<'_>,
        size: Option<SizeTuple>,
        region: Option<RectTuple>,
        cursor: bool,
    ) -> PyResult<Py<PyBytes>> {
        self.file(py, |screen| screen.indexed_png(&view(size, region, cursor)))
    }

    #[pyo3(signature = (size=None, region=None, cursor=true))]
    fn rgb(
        &self,
        py: Python<'_>,
        size: Option<SizeTuple>,
        region: Option<RectTuple>,
        cursor: bool,
    ) -> PyResult<(u32, u32, Py<PyBytes>)> {
        let view = view(size, region, cursor);
        let sized = |screen: &mut imaging::Screen| Ok((screen.size_of(&view)?, screen.stamp(&view)?));
        let (size, stamp) = self.peek(py, sized)?.map_err(|e| errors::imaging(&e))?;
        let held = || self.pixels.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        if let Some((_, bytes)) = held().as_ref().filter(|(held, _)| *held == stamp) {
            return Ok((size.w, size.h, bytes.clone_ref(py)));
        }
        let mut stamp = stamp;
        let bytes = bytes_of(py, size.w as usize * size.h as usize * 3, |out| {
            let written = |screen: &mut imaging::Screen| {
                stamp = screen.stamp(&view)?;
                screen.rgb_into(&view, out)
            };
            self.with(py, written)?.map_err(|e| errors::imaging(&e))
        })?;
        let bytes = bytes.unbind();
        *held() = Some((stamp, bytes.clone_ref(py)));
        Ok((size.w, size.h, bytes))
    }

    fn tighten(&self, py: Python<'_>) -> PyResult<bool> {
        errors::detached(py, || {
            let Some(slack) = self.locked().slack()? else { return Ok(false) };
            let strip = slack.tighten()?;
            self.locked().install(strip);
            Ok(true)
        })?
        .map_err(|e| errors::imaging(&e))
    }

    fn changes(&self, py: Python<'_>, since: u64) -> PyResult<Vec<RectTuple>> {
        self.with(py, |screen| tuples(&screen.changes(since)))
    }

    fn keep(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, imaging::Screen::keep)
    }

    fn hashes(&self, py: Python<'_>) -> PyResult<Vec<(u64, u64)>> {
        self.with(py, |screen| screen.hashes().iter().map(|tile| (tile.exact, tile.look)).collect())
    }

    fn history(&self, py: Python<'_>, since: u64) -> PyResult<Vec<(u64, f64, Vec<RectTuple>)>> {
        self.peek(py, |screen| {
            screen.history(since).iter().map(|change| (change.generation, change.at, tuples(&change.rects))).collect()
        })
    }

    fn update(&self, py: Python<'_>, area: RectTuple, bgrx: &[u8], at: f64) -> PyResult<bool> {
        let area = rect(area);
        self.with(py, |screen| screen.update(&[Patch { rect: area, pixels: bgrx, stride: area.w as usize * 4 }], at))?
            .map_err(|error| errors::imaging(&error))
    }

    fn resize(&self, py: Python<'_>, width: u32, height: u32, at: f64) -> PyResult<()> {
        self.with(py, |screen| screen.resize(Size { w: width, h: height }, at))
    }

    fn set_pointer(&self, py: Python<'_>, x: i32, y: i32) -> PyResult<()> {
        self.peek(py, |screen| screen.set_pointer((x, y)))
    }
}
