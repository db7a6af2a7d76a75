//! Input events, as Python hands them over.

/// `(kind, a, b)`: 0 moves to a, b; 1 is button a, 2 key a, down where b is not 0; 3 is a pause of a milliseconds.
pub(crate) type EventTuple = (u8, i64, i64);

/// Makes `events`, which reads them as events of one crate: both crates have these kinds.
macro_rules! reads_events {
    ($Event:ident) => {
        fn events(events: Vec<$crate::events::EventTuple>) -> pyo3::PyResult<Vec<$Event>> {
            let event = |(kind, a, b)| {
                Ok(match kind {
                    0 => $Event::Move(a as _, b as _),
                    1 => $Event::Button(a as _, b != 0),
                    2 => $Event::Key(a as _, b != 0),
                    3 => $Event::Pause(a as _),
                    _ => return Err(pyo3::exceptions::PyValueError::new_err(format!("no event of kind {kind}"))),
                })
            };
            events.into_iter().map(event).collect()
        }
    };
}

pub(crate) use reads_events;
