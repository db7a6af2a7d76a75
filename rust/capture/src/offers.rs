//! What each selection offers, shared by writers of the clipboard and the thread that serves it.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex};
use std::time::Instant;

use link::locked;
use x11rb::protocol::xproto::{Atom, AtomEnum, Window};

use crate::selection::Contents;
use crate::server::Server;

/// Windows whose requests are remembered.
const MOST_TAKERS: usize = 256;

/// The selections that are served, by their place in lists.
pub(crate) const CLIPBOARD: usize = 0;
pub(crate) const PRIMARY: usize = 1;
/// Of what is dragged.
pub(crate) const DROP: usize = 2;
pub(crate) const SELECTIONS: usize = 3;

pub(crate) fn atom_of(server: &Server, selection: usize) -> Atom {
    match selection {
        PRIMARY => AtomEnum::PRIMARY.into(),
        DROP => server.atoms.XdndSelection,
        _ => server.atoms.CLIPBOARD,
    }
}

pub(crate) fn selection_of(server: &Server, atom: Atom) -> Option<usize> {
    (0..SELECTIONS).find(|&selection| atom_of(server, selection) == atom)
}

/// What one selection offers.
#[derive(Default)]
pub(crate) struct Offer {
    /// `None` when it is not ours.
    pub(crate) contents: Option<Contents>,
    pub(crate) version: u64,
    pub(crate) owned: u64,
    /// What it held before a text was lent; `None` when nothing is to be given back.
    pub(crate) before: Option<Contents>,
    /// Another client has taken it between the former contents and the text.
    pub(crate) overtaken: bool,
}

#[derive(Default)]
pub(crate) struct Offers {
    pub(crate) of: [Offer; SELECTIONS],
    /// The version of the latest offer.
    pub(crate) version: u64,
    /// How often it was handed to any client in full, and when last to which window.
    pub(crate) served: u64,
    pub(crate) takers: HashMap<Window, Instant>,
    /// Requests answered, of every kind.
    pub(crate) answered: u64,
    /// How often a caller has wanted all requests so far to be answered, and up to which of these they are.
    pub(crate) wanted: u64,
    pub(crate) caught_up: u64,
    pub(crate) ended: bool,
    pub(crate) stop: bool,
}

impl Offers {
    /// From now on these are handed out, once the selection is owned again.
    pub(crate) fn put(&mut self, selection: usize, contents: Contents) {
        let offer = &mut self.of[selection];
        (offer.contents, offer.version) = (Some(contents), self.version);
    }

    pub(crate) fn begin_version(&mut self) -> u64 {
        self.version += 1;
        self.served = 0;
        self.takers.clear();
        self.version
    }

    pub(crate) fn owned(&self) -> bool {
        self.of.iter().all(|offer| offer.owned == offer.version)
    }
}

#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) offers: Mutex<Offers>,
    pub(crate) changed: Condvar,
}

impl Shared {
    /// Notes that a text was handed to a window in full.
    pub(crate) fn served(&self, version: u64, window: Window) {
        let mut offers = locked(&self.offers);
        if offers.version == version {
            offers.served += 1;
            if offers.takers.len() >= MOST_TAKERS
                && let Some(oldest) = offers.takers.iter().min_by_key(|(_, at)| **at).map(|(&window, _)| window)
            {
                offers.takers.remove(&oldest);
            }
            offers.takers.insert(window, Instant::now());
            self.changed.notify_all();
        }
    }
}

/// Reports that the thread has ended, when it ends, also by a panic.
pub(crate) struct Ended<'a>(pub(crate) &'a Shared);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        locked(&self.0.offers).ended = true;
        self.0.changed.notify_all();
    }
}
