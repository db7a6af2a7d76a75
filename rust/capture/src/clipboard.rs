//! The clipboard, both ways, on a connection of its own: a selection must be served for as long as its text may be pasted, also
//! between calls. For the time of a paste the primary selection may be owned too.

use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use link::{Interrupt, Nudge, WAIT_SLICE, locked};
use rustix::fd::{AsFd, BorrowedFd};
use x11rb::protocol::xproto::{ConnectionExt as _, Window};

use crate::error::{Error, Result};
use crate::offers::{CLIPBOARD, Ended, Offers, PRIMARY, SELECTIONS, Shared, atom_of};
use crate::selection::{Contents, Copied, Kind, Party};
use crate::server::Target;
use crate::serving::serve;
use crate::stream::SILENCE_LIMIT;

/// Owns the clipboard once something was written to it, and serves it from a thread.
pub struct Clipboard {
    target: Target,
    shared: Arc<Shared>,
    nudge: Arc<Nudge>,
    party: Arc<Party>,
    thread: Option<JoinHandle<()>>,
}

impl Clipboard {
    /// Opens the connection; nothing is owned yet.
    ///
    /// # Errors
    ///
    /// As [`Server::open`].
    pub fn open(target: &Target, caller: &Interrupt) -> Result<Self> {
        // A thread serves the connection between calls; the caller waits only for its opening.
        let interrupt = Interrupt::never();
        interrupt.allow(Some(caller.left(SILENCE_LIMIT)));
        let party = Arc::new(Party::open(target, &interrupt)?);
        interrupt.allow(None);
        let shared = Arc::new(Shared::default());
        let nudge = Nudge::new().map_err(|errno| Error::Unsupported(format!("eventfd: {errno}")))?;
        let nudge = Arc::new(nudge);
        let thread = std::thread::Builder::new().name("deskhand-clipboard".into()).spawn({
            let (shared, nudge, party) = (Arc::clone(&shared), Arc::clone(&nudge), Arc::clone(&party));
            move || {
                let _ended = Ended(&shared);
                let _ = serve(&party, &shared, &nudge);
            }
        });
        let thread = Some(thread.map_err(|error| Error::Unsupported(format!("no thread: {error}")))?);
        Ok(Self { target: target.clone(), shared, nudge, party, thread })
    }

    /// Its connection's socket.
    #[must_use]
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.party.server.conn.stream().as_fd()
    }

    fn wait(&self, timeout: Duration, interrupt: &Interrupt, what: &str, done: impl Fn(&Offers) -> bool) -> Result<()> {
        let limit = interrupt.left(timeout);
        let deadline = Instant::now() + limit;
        let mut offers = locked(&self.shared.offers);
        loop {
            if done(&offers) {
                return Ok(());
            }
            if offers.ended {
                return Err(Error::Lost("the clipboard's connection ended".into()));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Error::Timeout { what: what.to_owned(), seconds: limit.as_secs_f64() });
            }
            if interrupt.requested() {
                return Err(Error::Interrupted);
            }
            let slice = left.min(WAIT_SLICE);
            (offers, _) = self.shared.changed.wait_timeout(offers, slice).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    pub(crate) fn wait_owned(&self, timeout: Duration, interrupt: &Interrupt) -> Result<()> {
        self.nudge.send();
        self.wait(timeout, interrupt, "owning the clipboard", Offers::owned)
    }

    /// The kinds that a text is offered as.
    fn text(&self, text: &str) -> Contents {
        let atoms = &self.party.server.atoms;
        let data: Arc<[u8]> = text.as_bytes().into();
        let kind = |target| Kind { target, type_: target, format: 8, data: Arc::clone(&data) };
        [atoms.UTF8_STRING, atoms.TEXT_PLAIN_UTF8].map(kind).into()
    }

    /// Owns the clipboard with this text from when this returns.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`], [`Error::Interrupted`].
    pub fn write(&self, text: &str, timeout: Duration, interrupt: &Interrupt) -> Result<()> {
        self.own(self.text(text), timeout, interrupt)
    }

    /// Owns the clipboard with these kinds, by name, from when this returns.
    ///
    /// # Errors
    ///
    /// As [`Clipboard::write`].
    pub fn write_kinds(&self, kinds: &[(&str, &[u8])], timeout: Duration, interrupt: &Interrupt) -> Result<()> {
        // The thread's own connection waits for no caller.
        let asker = Party::open(&self.target, interrupt)?;
        let mut contents = Vec::with_capacity(kinds.len());
        for &(name, data) in kinds {
            let target = asker.server.conn.intern_atom(false, name.as_bytes())?.reply()?.atom;
            contents.push(Kind { target, type_: target, format: 8, data: data.into() });
        }
        self.own(contents.into(), timeout, interrupt)
    }

    fn own(&self, contents: Contents, timeout: Duration, interrupt: &Interrupt) -> Result<()> {
        {
            let mut offers = locked(&self.shared.offers);
            offers.begin_version();
            offers.put(CLIPBOARD, contents);
            offers.of[CLIPBOARD].before = None;
        }
        self.wait_owned(timeout, interrupt)
    }

    /// Owns the clipboard, and the primary selection if so wanted, with this text until [`Clipboard::give_back`], which offers
    /// again what was there before. Names what could not be kept for that (untrusted text).
    ///
    /// An owner that sends nothing is waited for until `timeout`; then this goes on without what it has.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`], [`Error::Interrupted`].
    pub fn lend(
        &self,
        text: &str,
        with_primary: bool,
        timeout: Duration,
        interrupt: &Interrupt,
    ) -> Result<Vec<String>> {
        // What other clients have taken over by now is known afterwards.
        self.answered(timeout, interrupt)?;
        let selections = if with_primary { PRIMARY + 1 } else { CLIPBOARD + 1 };
        let foreign: Vec<usize> = {
            let offers = locked(&self.shared.offers);
            let is_foreign = |&selection: &usize| {
                let offer = &offers.of[selection];
                offer.before.is_none() && offer.contents.is_none()
            };
            (0..selections).filter(is_foreign).collect()
        };
        let asker = if foreign.is_empty() { None } else { Some(Party::open(&self.target, interrupt)?) };
        let mut found: [Option<Copied>; SELECTIONS] = Default::default();
        let deadline = Instant::now() + timeout;
        if let Some(asker) = &asker {
            for &selection in &foreign {
                let atom = atom_of(&asker.server, selection);
                asker.watch(atom)?;
                found[selection] = Some(asker.copied(atom, deadline, interrupt)?);
            }
        }
        {
            let text = self.text(text);
            let mut offers = locked(&self.shared.offers);
            offers.begin_version();
            for (selection, found) in found.iter_mut().enumerate().take(selections) {
                let kept = found.as_mut().map(|copied| std::mem::take(&mut copied.contents).into());
                let offer = &mut offers.of[selection];
                let before = offer.before.take().or(kept).or_else(|| offer.contents.take());
                // It was ours, and another client owns it since.
                offer.overtaken = before.is_none();
                offer.before = Some(before.unwrap_or_default());
                offers.put(selection, Arc::clone(&text));
            }
        }
        self.wait_owned(timeout, interrupt)?;
        self.answered(timeout, interrupt)?;
        self.not_kept(selections, &found, asker.as_ref())
    }

    /// Names of what was lost when a text was lent.
    fn not_kept(&self, selections: usize, found: &[Option<Copied>], asker: Option<&Party>) -> Result<Vec<String>> {
        let mut lost = Vec::new();
        for (selection, found) in found.iter().enumerate().take(selections) {
            let atom = atom_of(&self.party.server, selection);
            let (overtaken, names) = match (asker, found) {
                (Some(asker), Some(copied)) => {
                    (asker.was_taken(atom, self.party.window)?, asker.names(&copied.missing)?)
                }
                _ => (locked(&self.shared.offers).of[selection].overtaken, Vec::new()),
            };
            // Of contents that came in between, not even the kinds are known.
            let names = if overtaken { vec!["TARGETS".to_owned()] } else { names };
            lost.extend(names.into_iter().map(|name| match selection {
                PRIMARY => format!("PRIMARY {name}"),
                _ => name,
            }));
        }
        Ok(lost)
    }

    /// Offers the contents from before a text was lent again.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`], [`Error::Interrupted`].
    pub fn give_back(&self, timeout: Duration, interrupt: &Interrupt) -> Result<()> {
        {
            let mut offers = locked(&self.shared.offers);
            offers.begin_version();
            for selection in 0..SELECTIONS {
                if let Some(before) = offers.of[selection].before.clone() {
                    offers.put(selection, before);
                }
            }
        }
        self.wait_owned(timeout, interrupt)?;
        for offer in &mut locked(&self.shared.offers).of {
            offer.before = None;
        }
        Ok(())
    }

    /// How many requests were answered, after answering all that the server has passed on so far.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], [`Error::Lost`], [`Error::Interrupted`].
    pub fn answered(&self, timeout: Duration, interrupt: &Interrupt) -> Result<u64> {
        let wanted = {
            let mut offers = locked(&self.shared.offers);
            offers.wanted += 1;
            offers.wanted
        };
        self.nudge.send();
        self.wait(timeout, interrupt, "answering who asks for the clipboard", |offers| offers.caught_up >= wanted)?;
        Ok(locked(&self.shared.offers).answered)
    }

    /// Waits until the text last written was handed in full to a window that `counts`, a predicate that gets the time of that: the
    /// proof of a paste. Clipboard managers take whatever comes.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], [`Error::Lost`], [`Error::Interrupted`], and those of `counts`.
    pub fn wait_taken(
        &self,
        timeout: Duration,
        interrupt: &Interrupt,
        mut counts: impl FnMut(Window, Instant) -> Result<bool>,
    ) -> Result<()> {
        let deadline = Instant::now() + timeout;
        let mut seen = 0;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let what = if seen == 0 {
                "an application that takes the clipboard's text"
            } else {
                "the application with the keyboard to take the clipboard's text, which only others did"
            };
            self.wait(left, interrupt, what, |offers| offers.served > seen).map_err(|error| match error {
                Error::Timeout { what, .. } => Error::Timeout { what, seconds: timeout.as_secs_f64() },
                other => other,
            })?;
            let takers = {
                let offers = locked(&self.shared.offers);
                seen = offers.served;
                offers.takers.clone()
            };
            for (window, at) in takers {
                if counts(window, at)? {
                    return Ok(());
                }
            }
        }
    }
}

impl Drop for Clipboard {
    fn drop(&mut self) {
        locked(&self.shared.offers).stop = true;
        self.nudge.send();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
