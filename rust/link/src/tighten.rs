//! Making the files that were looked at smaller while nobody calls.

use std::sync::Mutex;
use std::time::Duration;

use imaging::{ImagingError, Screen};

use crate::locked;

/// Nobody who has not called for this long is about to: there is time to make the files that were looked at smaller.
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
