//! Input events, as Python hands them over.

use link::Event;
use pyo3::PyResult;
use pyo3::exceptions::PyValueError;

/// `(kind, a, b)`: 0 moves to a, b; 1 is button a, 2 key a, down where b is not 0; 3 is a pause of a milliseconds.
pub(crate) type EventTuple = (u8, i64, i64);

/// The same as events.
pub(crate) fn read(events: Vec<EventTuple>) -> PyResult<Vec<Event>> {
    let event = |(kind, a, b)| {
        Ok(match kind {
            0 => Event::Move(a as u16, b as u16),
            1 => Event::Button(a as u8, b != 0),
            2 => Event::Key(a as u32, b != 0),
            3 => Event::Pause(a as u32),
            _ => return Err(PyValueError::new_err(format!("no event of kind {kind}"))),
        })
    };
    events.into_iter().map(event).collect()
}
