//! The pings that are under way.
//!
//! An answer counts for one ping: it must carry the token that went to that window. Tokens cannot be guessed, since every
//! client may send an answer.

use std::collections::VecDeque;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;

use x11rb::protocol::xproto::Window;

/// The most unanswered pings. If a window does not answer for long, the oldest are given up.
const MOST: usize = 4096;

struct Ping {
    id: u64,
    window: Window,
    token: u32,
}

#[derive(Default)]
pub(crate) struct Pings {
    secret: RandomState,
    latest: u64,
    unanswered: VecDeque<Ping>,
    given_up: u64,
}

impl Pings {
    /// A new ping for a window: its number, and the token to send.
    pub(crate) fn new_ping(&mut self, window: Window) -> (u64, u32) {
        self.latest += 1;
        let token = (self.secret.hash_one(self.latest) >> 32) as u32;
        if self.unanswered.len() == MOST {
            self.given_up = self.unanswered.pop_front().map_or(self.given_up, |ping| ping.id);
        }
        self.unanswered.push_back(Ping { id: self.latest, window, token });
        (self.latest, token)
    }

    /// Takes an answer; `false` if it answers no ping. A window answers in order: its earlier pings are answered too.
    pub(crate) fn take_answer(&mut self, window: Window, token: u32) -> bool {
        let Some(answered) = self.unanswered.iter().find(|ping| ping.window == window && ping.token == token) else {
            return false;
        };
        let id = answered.id;
        self.unanswered.retain(|ping| ping.window != window || ping.id > id);
        true
    }

    /// A window is gone: it will read nothing more. `false` if no ping was under way.
    pub(crate) fn forget(&mut self, window: Window) -> bool {
        let before = self.unanswered.len();
        self.unanswered.retain(|ping| ping.window != window);
        self.unanswered.len() < before
    }

    pub(crate) fn answered(&self, id: u64) -> bool {
        id > self.given_up && self.unanswered.iter().all(|ping| ping.id != id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_counts_for_its_window_and_what_came_before() {
        let mut pings = Pings::default();
        let ((first, _), (other, token_of_other), (second, token)) =
            (pings.new_ping(1), pings.new_ping(2), pings.new_ping(1));
        assert!(!pings.take_answer(2, token));
        assert!(!pings.take_answer(1, token_of_other));
        assert!(pings.take_answer(1, token));
        assert!(pings.answered(first) && pings.answered(second) && !pings.answered(other));
        assert!(!pings.take_answer(1, token), "twice");
        assert!(pings.forget(2) && pings.answered(other));
        assert!(!pings.forget(2));
    }

    #[test]
    fn none_of_very_many_is_answered_by_an_older_answer() {
        let mut pings = Pings::default();
        for _ in 0..3 << 20 {
            let (id, token) = pings.new_ping(1);
            assert!(!pings.answered(id));
            assert!(pings.take_answer(1, token));
            assert!(pings.answered(id));
        }
    }

    #[test]
    fn tokens_are_not_in_order_and_not_the_same_again() {
        let tokens = |mut pings: Pings| (0..100).map(|_| pings.new_ping(1).1).collect::<Vec<_>>();
        let found = tokens(Pings::default());
        assert!(found.windows(2).any(|pair| pair[0] > pair[1]));
        assert_ne!(found, tokens(Pings::default()));
    }

    #[test]
    fn what_nobody_answers_stays_unanswered() {
        let mut pings = Pings::default();
        let first = pings.new_ping(1).0;
        for _ in 0..2 * MOST {
            pings.new_ping(1);
        }
        assert!(!pings.answered(first));
        let (latest, token) = pings.new_ping(1);
        assert!(pings.take_answer(1, token) && pings.answered(latest));
    }
}
