//! What kinds a selection offers, and one of them in full.

use std::time::{Duration, Instant};

use link::Interrupt;
use x11rb::protocol::xproto::{Atom, ConnectionExt as _};

use super::asking::{Answer, Bounds, late};
use super::{IDS, LONGEST_NAME, MOST_KINDS, Party, watching};
use crate::error::{Error, Result};
use crate::server::Target;
use crate::windows::gone;

impl Party {
    /// The kinds that a selection offers which this party watches; `None` when nobody owns it or the owner does not list them.
    pub(super) fn offered(
        &self,
        selection: Atom,
        deadline: Instant,
        timeout: Duration,
        interrupt: &Interrupt,
    ) -> Result<Option<Vec<Atom>>> {
        loop {
            let mut bounds = Bounds::until(deadline);
            let targets = [self.server.atoms.TARGETS];
            let Some(mut answers) = self.ask(selection, &targets, &mut bounds, interrupt)? else { continue };
            return match answers.remove(0) {
                Answer::Unfinished => Err(late(timeout)),
                answer => Ok(Self::targets(answer)),
            };
        }
    }

    /// Names that can be asked for: printable ASCII, and not too long.
    pub(super) fn printable_names(&self, atoms: &[Atom]) -> Result<Vec<String>> {
        let conn = &self.server.conn;
        let asked = atoms.iter().map(|&atom| conn.get_atom_name(atom)).collect::<std::result::Result<Vec<_>, _>>()?;
        let mut names = Vec::with_capacity(asked.len());
        for cookie in asked {
            // The owner may have offered something that is not an atom.
            let Some(reply) = gone(cookie.reply().map_err(Error::from))? else { continue };
            if reply.name.len() <= LONGEST_NAME && reply.name.iter().all(u8::is_ascii_graphic) {
                names.extend(String::from_utf8(reply.name).ok());
            }
        }
        Ok(names)
    }

    /// One kind of what is on a selection that this party watches; `None` if it is not offered.
    pub(super) fn kind(
        &self,
        selection: Atom,
        name: &str,
        timeout: Duration,
        interrupt: &Interrupt,
    ) -> Result<Option<Vec<u8>>> {
        let deadline = Instant::now() + timeout;
        loop {
            // Some owners (xclip) hand out whatever they have under any requested name.
            let offered = self.offered(selection, deadline, timeout, interrupt)?.unwrap_or_default();
            // An owner may make an atom of its name only when it lists it.
            let target = self.server.conn.intern_atom(true, name.as_bytes())?.reply()?.atom;
            if target == x11rb::NONE || self.about().contains(&target) || !offered.contains(&target) {
                return Ok(None);
            }
            let mut bounds = Bounds::until(deadline);
            let Some(mut answers) = self.ask(selection, &[target], &mut bounds, interrupt)? else { continue };
            return match answers.remove(0) {
                Answer::Refused => Ok(None),
                Answer::Given(kind) if IDS.map(u32::from).contains(&kind.type_) => {
                    Err(Error::Unsupported(format!("what the clipboard holds as {name} is the id of a resource")))
                }
                Answer::Given(kind) => Ok(Some(kind.data.to_vec())),
                other => Err(other.refusal(timeout)),
            };
        }
    }
}

/// The names of the kinds that the clipboard offers, as its owner lists them: untrusted, printable ASCII, at most 64.
///
/// # Errors
///
/// [`Error::Timeout`] when the owner does not tell in time, [`Error::Lost`].
pub fn kinds(target: &Target, timeout: Duration, interrupt: &Interrupt) -> Result<Vec<String>> {
    let (party, clipboard) = watching(target, interrupt)?;
    let told = party.offered(clipboard, Instant::now() + timeout, timeout, interrupt)?.unwrap_or_default();
    let about = party.about();
    let mut kinds = Vec::new();
    for kind in told {
        if kinds.len() < MOST_KINDS && !about.contains(&kind) && !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    party.printable_names(&kinds)
}

/// What the clipboard holds of this kind; `None` when it does not offer it.
///
/// # Errors
///
/// [`Error::Timeout`] when the owner does not deliver in time, [`Error::Unsupported`] beyond 64 MiB and for ids of the owner's
/// resources, [`Error::Lost`].
pub fn read_kind(target: &Target, name: &str, timeout: Duration, interrupt: &Interrupt) -> Result<Option<Vec<u8>>> {
    let (party, clipboard) = watching(target, interrupt)?;
    party.kind(clipboard, name, timeout, interrupt)
}
