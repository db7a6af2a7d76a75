//! What the threads of some processes have done up to a moment, and what they did between two. Pure.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// A process that is usually awake for less than this share of the time, and is awake now, has something to do. It is looked at
/// again until it has done it, so this may not hold for what never sleeps.
const RESTING_SHARE: f64 = 0.5;

/// What one thread has done since it began.
pub(crate) struct Thread {
    pub(crate) process: u32,
    pub(crate) id: u32,
    pub(crate) done: Done,
}

/// Time not asleep: running, or waiting for a processor. The latter counts, because on a loaded machine an application at work gets
/// little of one. And how often it was given a processor.
#[derive(Clone, Copy, Default)]
pub(crate) struct Done {
    pub(crate) awake: Duration,
    pub(crate) wakes: u32,
}

/// What one process did over a time.
#[derive(Clone, Copy, Default)]
pub(crate) struct Rate {
    /// How long its threads together were awake, as a share of the time that passed.
    pub(crate) share: f64,
    /// How often in a second the thread that woke most often did.
    pub(crate) wakes: f64,
}

/// What a family does on its own, without any input.
#[derive(Default)]
pub(crate) struct Ambient {
    /// The activity of each process that does anything.
    pub(crate) rates: HashMap<u32, Rate>,
    /// The threads that do it.
    pub(crate) stirring: HashSet<(u32, u32)>,
    /// The processes in which threads begin and end: a new one proves nothing.
    pub(crate) churning: HashSet<u32>,
    /// The processes whose children begin and end.
    pub(crate) parents: HashSet<u32>,
}

impl Ambient {
    pub(crate) fn between(earlier: &Sample, now: &Sample) -> Self {
        let (before, after) = (earlier.ids(), now.ids());
        let stirs = |thread: &&Thread| thread.done.awake > earlier.done(thread.process, thread.id).awake;
        Self {
            rates: now.rates_since(earlier),
            stirring: now.threads.iter().filter(stirs).map(|thread| (thread.process, thread.id)).collect(),
            churning: before.symmetric_difference(&after).map(|&(process, _)| process).collect(),
            parents: HashSet::new(),
        }
    }

    pub(crate) fn rate(&self, process: u32) -> Rate {
        self.rates.get(&process).copied().unwrap_or_default()
    }

    /// Whether a thread that is awake has been given something to do.
    pub(crate) fn is_news(&self, thread: &Thread) -> bool {
        let (process, id) = (thread.process, thread.id);
        let idle = !self.churning.contains(&process) && !self.stirring.contains(&(process, id));
        idle || self.rate(process).share < RESTING_SHARE
    }
}

/// A family's threads, by process and thread id in ascending order.
pub(crate) struct Sample {
    /// When the first thread was looked at, and when all had been.
    pub(crate) begun: Instant,
    pub(crate) at: Instant,
    pub(crate) threads: Vec<Thread>,
}

impl Sample {
    pub(crate) fn done(&self, process: u32, id: u32) -> Done {
        let found = self.threads.binary_search_by_key(&(process, id), |thread| (thread.process, thread.id));
        found.map_or_else(|_| Done::default(), |index| self.threads[index].done)
    }

    pub(crate) fn ids(&self) -> HashSet<(u32, u32)> {
        self.threads.iter().map(|thread| (thread.process, thread.id)).collect()
    }

    /// What each process that was awake did since `earlier`.
    pub(crate) fn rates_since(&self, earlier: &Self) -> HashMap<u32, Rate> {
        let span = self.at.duration_since(earlier.at).as_secs_f64();
        let mut rates: HashMap<u32, Rate> = HashMap::new();
        for &Thread { process, id, done } in &self.threads {
            let before = earlier.done(process, id);
            let awake = done.awake.saturating_sub(before.awake);
            if !awake.is_zero() {
                let rate = rates.entry(process).or_default();
                rate.share += awake.as_secs_f64() / span;
                rate.wakes = rate.wakes.max(f64::from(done.wakes.saturating_sub(before.wakes)) / span);
            }
        }
        rates
    }
}
