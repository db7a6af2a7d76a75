//! How current what is seen is: probes that the server answers in their turn, and places in what it sends.

use link::{Interrupt, locked, now};

use crate::Result;
use crate::connection::Connection;
use crate::reader::SILENCE_LIMIT;

/// Servers without fences give no proof that they have looked at their screen since some input. Measured: x11vnc, which naps when
/// nothing happens, up to 328 ms.
const NAP: f64 = 0.3;
/// A proof that came this recently still holds.
const FRESH: f64 = 0.001;
/// For this long a server at rest counts as alive without a probe, if answers take less than [`FRESH`]. The reader sends probes
/// twice as often while a caller looks.
const ALIVE: f64 = 0.1;

impl Connection {
    /// The lag of what is seen, in seconds: the server's frame interval, the least time that an answer takes, for how long it
    /// may not look at its screen, and how much of an answer's time is sure.
    #[must_use]
    pub fn lag(&self) -> [f64; 4] {
        let state = locked(&self.shared.state);
        let (fences, trip) = (state.features.fence, state.pacing.trip());
        let (nap, steady) = if fences { (0.0, state.pacing.steady()) } else { (NAP, 0.0) };
        [state.pacing.frame(fences), trip, nap, steady]
    }

    /// Seconds for which an answer of the server has been due.
    #[must_use]
    pub fn silent(&self) -> f64 {
        locked(&self.shared.state).waiting_since().map_or(0.0, |since| now() - since)
    }

    /// Asks the server for an answer that comes after all that it had to send before; gives the number of the probe.
    ///
    /// # Errors
    /// When the connection has ended.
    pub fn probe(&self) -> Result<u32> {
        let mut state = self.state()?;
        let id = state.probe(now());
        self.shared.flush(&mut state)?;
        Ok(id)
    }

    /// Whether that probe, or a later one, was answered.
    ///
    /// # Errors
    /// When the connection has ended.
    pub fn answered(&self, probe: u32) -> Result<bool> {
        Ok(self.state()?.answered >= probe)
    }

    /// Waits until the server has worked off all it was sent, or for this many seconds; returns whether it has.
    pub(crate) fn sync(&self, interrupt: Option<&Interrupt>, limit: Option<f64>) -> Result<bool> {
        let probe = self.probe()?;
        // The limit of silence, which ends the connection, is counted there.
        let limit = limit.unwrap_or(2.0 * SILENCE_LIMIT);
        self.wait_for(limit, interrupt, |state| state.answered >= probe)
    }

    /// Asks for a place in what the server sends: what comes before it was there before whatever is sent from now on.
    ///
    /// Where input was just sent or the screen is changing, a frame interval is waited first. A server without fences is looked at
    /// instead, for at most `limit` seconds, and `None` returned.
    ///
    /// # Errors
    /// When the connection has ended, or the wait was interrupted.
    pub fn mark(&self, limit: Option<f64>) -> Result<Option<u32>> {
        let rest = {
            let state = self.state()?;
            let frame = state.pacing.frame(state.features.fence);
            state.features.fence.then(|| state.active() + frame - now())
        };
        let Some(rest) = rest else { return self.look(limit).map(|()| None) };
        if rest > 0.0 {
            self.wait_until(limit.map_or(rest, |limit| rest.min(limit)), |_| false)?;
        }
        let mut state = self.state()?;
        let id = state.probe(now());
        state.mark = (id, None);
        self.shared.flush(&mut state)?;
        Ok(Some(id))
    }

    /// The screen's generation at a mark; `None` while the server has not reached it. Only for the latest mark.
    ///
    /// # Errors
    /// When the connection has ended.
    pub fn marked(&self, mark: u32) -> Result<Option<u64>> {
        let state = self.state()?;
        Ok(if state.mark.0 == mark { state.mark.1 } else { None })
    }

    /// Brings the screen to the server's state at the time of this call, except for changes that the server has not
    /// looked at yet. Where input was just sent or the screen is changing, this waits one frame interval for those too.
    ///
    /// A server without fences gets a probe only after input: its proof takes a frame interval. One at rest that is near, and has
    /// answered a moment ago, gets none: all that it has sent is here at once, and no answer would bring the rest.
    ///
    /// After `limit` seconds it returns with what is known.
    ///
    /// # Errors
    /// When the connection has ended, or the wait was interrupted.
    pub fn look(&self, limit: Option<f64>) -> Result<()> {
        let (begun, due) = {
            let mut state = self.state()?;
            let (begun, trip) = (now(), state.pacing.trip());
            let (sent, came) = state.proved;
            let due = state.active() + state.pacing.frame(state.features.fence) + trip;
            let near = trip < FRESH && due <= begun && self.shared.drained();
            let age = if near { ALIVE } else { trip.max(FRESH) };
            let believed = !state.features.fence && !self.shared.hung_up();
            let proved = sent > state.input && (begun - came < age || believed);
            state.looked = begun;
            (begun, if proved { None } else { Some(due) })
        };
        let Some(due) = due else { return Ok(()) };
        if self.sync(Some(&self.interrupt), limit)? && due > begun {
            let left = limit.map_or(f64::INFINITY, |limit| begun + limit - now());
            self.wait_until(left.min(due - now()), |_| false)?;
        }
        Ok(())
    }
}
