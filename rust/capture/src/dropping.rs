//! Drops files on a window, as a program does that they are dragged from (XDND, version 5 of
//! <https://www.freedesktop.org/wiki/Specifications/XDND/>).

use std::time::{Duration, Instant};

use link::{Interrupt, locked};
use x11rb::connection::Connection;
use x11rb::protocol::Event as XEvent;
use x11rb::protocol::xproto::{
    AtomEnum, ClientMessageEvent, ConnectionExt as _, EventMask, PropMode, Timestamp, Window,
};
use x11rb::wrapper::ConnectionExt as _;

use crate::clipboard::Clipboard;
use crate::error::{Error, Result};
use crate::offers::DROP;
use crate::selection::{Kind, Party};
use crate::windows::gone;

const VERSION: u32 = 5;
/// Versions before this have other messages.
const OLDEST: u32 = 3;
/// An application that must first look at what is offered is asked again after this time, and is believed after so long.
const AGAIN: Duration = Duration::from_millis(50);
const UNDECIDED: Duration = Duration::from_secs(2);
const YES: u32 = 1;

/// A window that takes drops.
struct Destination {
    window: Window,
    /// Where its messages go.
    listener: Window,
    version: u32,
}

impl Clipboard {
    /// Drops what `uris` lists (`text/uri-list`) on the window under the pointer, which is at this place, and waits until its
    /// application has taken it.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] when it takes no drops, or not these; [`Error::Timeout`], [`Error::Lost`], [`Error::Interrupted`].
    pub fn drop_uris(&self, uris: &[u8], place: (u16, u16), timeout: Duration, interrupt: &Interrupt) -> Result<()> {
        let source = Party::open(self.target(), interrupt)?;
        let destination = source.destination()?;
        let target = source.server.atoms.TEXT_URI_LIST;
        let kind = Kind { target, type_: target, format: 8, data: uris.into() };
        {
            let mut offers = locked(&self.shared().offers);
            offers.begin_version();
            offers.put(DROP, [kind].into());
        }
        let dropped = self
            .wait_owned(timeout, interrupt)
            .and_then(|()| source.drop_on(&destination, place, Instant::now() + timeout, timeout, interrupt));
        locked(&self.shared().offers).of[DROP].contents = None;
        dropped
    }
}

impl Party {
    fn destination(&self) -> Result<Destination> {
        let (server, atoms) = (&self.server, &self.server.atoms);
        let no = || Error::Unsupported("the window under the pointer takes no drops (it does not know XDND)".into());
        let word = |window, property| {
            let told: Result<_> = gone(server.words(window, property, 1));
            told.map(|told| told.and_then(|told| told.first().copied()))
        };
        let version = |window: Window| word(window, atoms.XdndAware);
        let inner = server.under_pointer()?.ok_or_else(no)?;
        let (window, found) = server.climb(inner, |window| Ok(version(window)?.is_some()))?;
        let theirs = if found { version(window)? } else { None };
        let version = theirs.filter(|&theirs| theirs >= OLDEST).ok_or_else(no)?.min(VERSION);
        // Another window may listen for it, which then says so of itself.
        let listener = match word(window, atoms.XdndProxy)? {
            Some(other) if word(other, atoms.XdndProxy)? == Some(other) => other,
            _ => window,
        };
        Ok(Destination { window, listener, version })
    }

    /// Drags over it until it accepts, and drops.
    fn drop_on(
        &self,
        to: &Destination,
        place: (u16, u16),
        deadline: Instant,
        timeout: Duration,
        interrupt: &Interrupt,
    ) -> Result<()> {
        let atoms = &self.server.atoms;
        let time = self.server_time(deadline, timeout, interrupt)?;
        let place = u32::from(place.0) << 16 | u32::from(place.1);
        self.say(to, atoms.XdndEnter, [to.version << 24, atoms.TEXT_URI_LIST, 0, 0])?;
        let begun = Instant::now();
        loop {
            self.say(to, atoms.XdndPosition, [0, place, time, atoms.XdndActionCopy])?;
            let status = self.heard(to, atoms.XdndStatus, deadline, interrupt);
            match status {
                Ok(Some(flags)) if flags & YES != 0 => break,
                Ok(Some(_)) if begun.elapsed() < UNDECIDED => {
                    let again = (Instant::now() + AGAIN).min(deadline);
                    while self.next_event(again, interrupt)?.is_some() {}
                }
                other => {
                    self.say(to, atoms.XdndLeave, [0; 4])?;
                    return Err(match other? {
                        Some(_) => Error::Unsupported("the application under the pointer takes no files there".into()),
                        None => silent(timeout),
                    });
                }
            }
        }
        self.say(to, atoms.XdndDrop, [0, time, 0, 0])?;
        match self.heard(to, atoms.XdndFinished, deadline, interrupt)? {
            // Before version 5 it did not say.
            Some(flags) if flags & YES != 0 || to.version < VERSION => Ok(()),
            Some(_) => Err(Error::Unsupported("the application under the pointer did not take the files".into())),
            None => Err(silent(timeout)),
        }
    }

    fn say(&self, to: &Destination, what: u32, [one, two, three, four]: [u32; 4]) -> Result<()> {
        let event = ClientMessageEvent::new(32, to.window, what, [self.window, one, two, three, four]);
        self.server.conn.send_event(false, to.listener, EventMask::NO_EVENT, event)?;
        self.server.conn.flush()?;
        Ok(())
    }

    /// The flags of its next message of this kind; `None` when it sends none.
    fn heard(&self, to: &Destination, what: u32, deadline: Instant, interrupt: &Interrupt) -> Result<Option<u32>> {
        while let Some(event) = self.next_event(deadline, interrupt)? {
            if let XEvent::ClientMessage(message) = event
                && (message.type_, message.format) == (what, 32)
                && message.data.as_data32()[0] == to.window
            {
                return Ok(Some(message.data.as_data32()[1]));
            }
        }
        Ok(None)
    }

    /// The server's time, which the change of a property of ours carries.
    fn server_time(&self, deadline: Instant, timeout: Duration, interrupt: &Interrupt) -> Result<Timestamp> {
        let slot = self.server.atoms._DESKHAND_CLIPBOARD;
        self.server.conn.change_property8(PropMode::APPEND, self.window, slot, AtomEnum::STRING, &[])?;
        self.server.conn.flush()?;
        while let Some(event) = self.next_event(deadline, interrupt)? {
            if let XEvent::PropertyNotify(change) = event
                && (change.window, change.atom) == (self.window, slot)
            {
                return Ok(change.time);
            }
        }
        Err(silent(timeout))
    }
}

fn silent(timeout: Duration) -> Error {
    Error::Timeout { what: "the application to take the files".into(), seconds: timeout.as_secs_f64() }
}
