//! `deskhand._native`: converts arguments, releases the GIL, calls the crates below, maps their errors. No algorithm lives here.

mod elements;
mod errors;
mod events;
mod owned;
mod parser;
mod screen;
mod vnc;
mod x11;

use pyo3::prelude::*;

/// `data` in base64, in half the time that Python's own takes.
#[pyfunction]
fn base64(data: &[u8]) -> String {
    base64_simd::STANDARD.encode_to_string(data)
}

/// To be called in a process that was just forked: connections opened before belong to its parent from now on.
#[pyfunction]
fn forked() {
    imaging::forked();
}

/// The binding module.
#[pymodule]
#[pyo3(name = "_native")]
fn native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<elements::Elements>()?;
    module.add_class::<screen::Screen>()?;
    module.add_class::<vnc::Vnc>()?;
    module.add_class::<vnc::VncHandshake>()?;
    module.add_class::<parser::VncParser>()?;
    module.add_class::<x11::X11>()?;
    module.add_function(wrap_pyfunction!(x11::glance, module)?)?;
    module.add_function(wrap_pyfunction!(elements::accessibility_address, module)?)?;
    module.add_function(wrap_pyfunction!(base64, module)?)?;
    module.add_function(wrap_pyfunction!(forked, module)?)?;
    module.add("Interrupted", module.py().get_type::<errors::Interrupted>())?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
