//! Makes requested files smaller between calls.

use std::sync::Mutex;
use std::time::Duration;

use imaging::{ImagingError, Screen};

use crate::locked;

/// After this long without a call, none is likely soon: there is time to make requested files smaller.
pub const TIGHTEN_AFTER: Duration = Duration::from_millis(300);

/// Makes one strip of such a file smaller, without the screen's lock meanwhile; `false` when none is left.
///
/// # Errors
/// When the strip cannot be written.
pub fn tighten_one(screen: &Mutex<Screen>) -> Result<bool, ImagingError> {
    let Some(slack) = locked(screen).slack()? else { return Ok(false) };
    let strip = slack.tighten()?;
    locked(screen).install(strip);
    Ok(true)
}
