//! Carries out planned steps: sends them through XTEST, and never so many at once that a release would come late.

use std::time::Duration;

use link::Event;
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{
    BUTTON_PRESS_EVENT, BUTTON_RELEASE_EVENT, ConnectionExt as _, KEY_PRESS_EVENT, KEY_RELEASE_EVENT,
    MOTION_NOTIFY_EVENT,
};
use x11rb::protocol::xtest::ConnectionExt as _;

use crate::error::{Error, Result};
use crate::keyboard::Step;
use crate::wire::Wire;

/// XTEST delays hold the server's side of this connection up, and whatever is sent after them: a release too, which must not come
/// later than this after it was requested.
const DELAY_PER_ROUND_TRIP: u32 = 50;
/// The same of events without a delay, of which a server takes some hundred in a millisecond: at most twice as many are on their way.
const EVENTS_PER_MARK: u32 = 400;

/// Sends these steps, and waits for a pause at their end.
pub(crate) fn execute(wire: &Wire, steps: &[Step]) -> Result<()> {
    let server = &wire.server;
    let (mut delay, mut since_round_trip, mut events, mut mark) = (0, 0, 0, None);
    for step in steps {
        let (kind, detail, x, y) = match *step {
            Step::Key(keycode, down) => (if down { KEY_PRESS_EVENT } else { KEY_RELEASE_EVENT }, keycode, 0, 0),
            Step::Other(Event::Button(button, down)) => {
                (if down { BUTTON_PRESS_EVENT } else { BUTTON_RELEASE_EVENT }, button, 0, 0)
            }
            Step::Other(Event::Move(x, y)) => (MOTION_NOTIFY_EVENT, 0, x as i16, y as i16),
            Step::Other(Event::Pause(milliseconds)) => {
                delay += milliseconds;
                continue;
            }
            Step::Other(Event::Key(..)) => unreachable!("plan turns every key into a keycode"),
        };
        let delayed = since_round_trip > 0 && since_round_trip + delay > DELAY_PER_ROUND_TRIP;
        if delayed || events >= EVENTS_PER_MARK {
            // Without a delay the server has work while the answer is on its way: the mark before this one is waited for.
            let here = server.conn.get_input_focus()?;
            server.conn.flush()?;
            if let Some(passed) = if delayed { Some(here) } else { mark.replace(here) } {
                passed.reply()?;
            }
            if wire.interrupt.requested() {
                return Err(Error::Interrupted);
            }
            (since_round_trip, events) = (0, 0);
        }
        server.conn.xtest_fake_input(kind, detail, delay, server.root, x, y, 0)?;
        since_round_trip += delay;
        events += 1;
        delay = 0;
    }
    server.conn.flush()?;
    if delay > 0 {
        wire.pause(Duration::from_millis(delay.into()))?;
    }
    Ok(())
}

/// Does `work` while no other client is served; ends that even if the work fails.
pub(crate) fn grabbed<T>(wire: &Wire, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let conn = &wire.server.conn;
    conn.grab_server()?;
    let result = work();
    conn.ungrab_server()?;
    conn.flush()?;
    result
}
