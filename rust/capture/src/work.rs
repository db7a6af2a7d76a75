//! What the processes behind a window are doing, as far as this machine shows.
//!
//! The window that gets the input belongs to one process, but the work that follows is often done by others: a browser's
//! renderer, the command in a terminal, a dialog's helper. So a whole family is examined: everything below the highest ancestor of
//! that process which is neither ours nor init. What a process does without any input (a spinner, a video) it does on its
//! own account, and does not count.

mod activity;

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use rustix::fd::BorrowedFd;

pub use self::activity::Activity;
use crate::family::{Ancestry, Births, Member};
use crate::inbox::Inbox;
use crate::jobs::Jobs;
use crate::sample::{Ambient, Sample, Thread};
use crate::started::Started;
use crate::stat::{Sleep, Sleeper, Stat, Waiting, numbers, uses_gtk};
use crate::traffic::Traffic;

/// Time not asleep above what is usual, as a share of the time that passed, from which on a family is at work. Measured: an idle
/// browser is below 3 %, a thread that computes near 100 %, whatever else runs.
const BUSY_SHARE: f64 = 0.3;
/// How often in a second a thread wakes at least while it animates, though no pixel changes: the clock of an animation ticks with
/// every frame, 60 times a second. Measured beside it: at most 40, a browser's after a key.
const TICKS: f64 = 45.0;
/// GTK shows a button that a key has pressed this long before it does what the button is for. A timer that ends within that time
/// may be the one that it waits for.
const PRESSED: Duration = Duration::from_millis(250);
/// One that ends sooner after the key has another purpose (an editor's, 0.05 s after a line end), even where the key was read late.
const SOONEST: Duration = Duration::from_millis(120);
/// When a wait is about to end this soon, a sample of the latest work is needed.
pub(crate) const LATELY: Duration = Duration::from_millis(20);
/// Over a shorter time the answer to our own ping weighs too much.
const SHORTEST_SPAN: Duration = Duration::from_millis(5);
/// Over a shorter time the usual activity cannot be measured.
const SHORTEST_REST: Duration = Duration::from_millis(100);
const MAX_SAMPLES: usize = 16;

/// The work of one connection's applications.
#[derive(Default)]
pub(crate) struct Work {
    /// The process that got the input.
    asked: Option<u32>,
    /// The process of a window that answers no pings, and its unread input, where that is known.
    inbox: Option<(Sleeper, Option<Inbox>)>,
    /// When something was last found there that it had not read, or its main thread asleep in a handler.
    unread: Option<Instant>,
    /// Whether its main thread sleeps for a time without any input.
    dozes: bool,
    /// How often it was found to have only just fallen asleep since the action began.
    doubts: u32,
    /// How often that had woken when something was last found there that it had not read.
    held: Option<u32>,
    /// A timer of its main thread that ends before this was set since the last action began.
    foreseen: Option<Instant>,
    /// Whether the process that got the input has loaded GTK, once that was checked.
    gtk: Option<bool>,
    jobs: Jobs,
    traffic: Traffic,
    /// When the last action began.
    acted: Option<Instant>,
    /// The highest process of the family that is examined.
    root: Option<u32>,
    ancestry: Ancestry,
    /// What any program starts for this display, where its server counts processes as this one does.
    started: Option<Started>,
    /// The family's threads, by process and id in ascending order.
    members: Vec<Member>,
    /// For each of its processes, the page faults of the children that it has waited for: they grow with each that ends.
    reaped: HashMap<u32, u64>,
    /// The processes whose children were found to have begun or ended since the last action began, and when that was.
    bearing: HashSet<u32>,
    turned: Option<Instant>,
    births: Option<Births>,
    samples: VecDeque<Sample>,
    ambient: Ambient,
    /// When a thread that computed was found to have ended.
    ended: Option<Instant>,
    /// When the process that got the input was last found stopped.
    stopped: Option<Instant>,
}

impl Work {
    /// From now on, look at the family of this process; of none when it does not run on this machine.
    pub(crate) fn follow(&mut self, pid: Option<u32>) {
        if self.asked != pid {
            (self.asked, self.gtk, self.foreseen) = (pid, None, None);
        }
        let root = pid.map(|pid| self.ancestry.root_of(pid));
        if self.root != root {
            (self.root, self.births) = (root, None);
            self.members.clear();
            self.reaped.clear();
            self.jobs = Jobs::default();
        }
    }

    /// The window that got the input reports by itself what it has read.
    pub(crate) fn expect_pongs(&mut self) {
        self.inbox = None;
    }

    /// It does not: the kernel shows what its process has read. `ours` is a connection to the same server.
    pub(crate) fn expect_reading(&mut self, ours: BorrowedFd<'_>) {
        if self.asked != self.inbox.as_ref().map(|(main, _)| main.process) {
            self.inbox = self.asked.map(|process| (Sleeper::new(process), Inbox::of(process, ours)));
            (self.unread, self.held, self.dozes) = (None, None, false);
        }
    }

    /// Whether a process is of the family.
    pub(crate) fn examines(&self, process: u32) -> bool {
        self.members.iter().any(|member| member.process == process)
    }

    /// Whether the latest action has left something that may still show: a program that it has started, outside of the family,
    /// and that is still there, or an answer over the network, which may be a part.
    pub(crate) fn may_show(&self) -> bool {
        let young = self.started.as_ref().map_or(&[][..], Started::young);
        self.traffic.has_answered() || young.iter().any(|&(process, _)| self.examines(process))
    }

    /// Also examine programs that are started for this display.
    pub(crate) fn expect_programs(&mut self, display: String) {
        self.started = Some(Started::new(display));
    }

    /// Applications may draw on this display over TCP.
    pub(crate) fn expect_drawing(&mut self, display: &str) {
        self.traffic.expect_drawing(display);
    }

    /// Whether a button may look pressed by a key, read so long ago, that has yet to do what it is for.
    pub(crate) fn is_button_down(&mut self, since: Duration) -> bool {
        let Some(asked) = self.asked else { return false };
        let hides = self.ambient.rate(asked).wakes > TICKS;
        may_press(Waiting::of(asked), since, hides) && *self.gtk.get_or_insert_with(|| uses_gtk(asked))
    }

    /// Records what the family has done so far.
    pub(crate) fn sample(&mut self) {
        if (self.root.is_some() || self.started.is_some())
            && self.samples.back().is_none_or(|last| last.at.elapsed() >= SHORTEST_SPAN)
        {
            let now = self.take();
            self.note_unread(&now);
            self.note_stopped(now.at);
            self.push(now);
        }
    }

    fn take(&mut self) -> Sample {
        let begun = Instant::now();
        let before: Vec<(u32, u32)> = self.members.iter().map(|member| (member.process, member.id)).collect();
        if !self.births.get_or_insert_with(Births::new).none_since_listed() {
            self.list();
        }
        let mut threads = Vec::with_capacity(self.members.len());
        self.members.retain_mut(|member| {
            let done = member.done();
            threads.extend(done.map(|done| Thread { process: member.process, id: member.id, done }));
            done.is_some()
        });
        let is_gone =
            |key: &(u32, u32)| threads.binary_search_by_key(key, |thread| (thread.process, thread.id)).is_err();
        if before.into_iter().filter(is_gone).any(|(process, id)| self.has_computed(process, id)) {
            self.ended = Some(Instant::now());
        }
        Sample { begun, at: Instant::now(), threads }
    }

    /// Whether a thread that is gone was at work when it was last seen.
    fn has_computed(&self, process: u32, id: u32) -> bool {
        let Some(last) = self.samples.back() else { return false };
        // Its latest wait for a processor may not have been reported yet, so each time that ends there is examined.
        let is_busy_since = |earlier: &Sample| {
            let awake = last.done(process, id).awake.saturating_sub(earlier.done(process, id).awake);
            awake > last.at.duration_since(earlier.at).mul_f64(BUSY_SHARE)
        };
        !self.ambient.churning.contains(&process) && self.samples.iter().any(is_busy_since)
    }

    /// Finds the family's threads; those known before stay as they are.
    fn list(&mut self) {
        let root = self.root;
        let (ancestry, mut started) = (&mut self.ancestry, self.started.as_mut());
        let belongs = |&pid: &u32| {
            root.is_some_and(|root| ancestry.descends(pid, root))
                || started.as_mut().is_some_and(|started| started.counts(pid, ancestry))
        };
        let mut family: Vec<u32> = numbers("/proc").filter(belongs).collect();
        family.sort_unstable();
        let mut known = std::mem::take(&mut self.members).into_iter().peekable();
        let first = self.reaped.is_empty();
        let mut terminals = Vec::new();
        for &process in &family {
            let mut ids: Vec<u32> = numbers(&format!("/proc/{process}/task")).collect();
            ids.sort_unstable();
            if let Some(stat) = Stat::of(&format!("/proc/{process}/stat")) {
                self.count_children(process, &stat, first);
                if stat.terminal != 0 {
                    terminals.push((process, stat.terminal));
                }
            }
            for id in ids {
                while known.next_if(|member| (member.process, member.id) < (process, id)).is_some() {}
                let member = known.next_if(|member| (member.process, member.id) == (process, id));
                self.members.push(member.unwrap_or_else(|| Member::new(process, id)));
            }
        }
        self.jobs.list(&terminals);
        let gone: Vec<u32> =
            self.reaped.keys().copied().filter(|process| family.binary_search(process).is_err()).collect();
        for process in gone {
            self.reaped.remove(&process);
            self.turn(self.ancestry.known_parent(process));
        }
    }

    /// Records a new process of the family, and children that have ended since the last look: the
    /// kernel adds what they did to its own numbers.
    fn count_children(&mut self, process: u32, stat: &Stat, first: bool) {
        match self.reaped.insert(process, stat.reaped) {
            Some(reaped) if reaped != stat.reaped => self.turn(Some(process)),
            // The first listing finds the processes that were there before.
            None if !first => self.turn(Some(stat.parent)),
            _ => {}
        }
    }

    /// A child of this process has begun or ended.
    fn turn(&mut self, parent: Option<u32>) {
        self.bearing.extend(parent);
        if parent.is_none_or(|parent| !self.ambient.parents.contains(&parent)) {
            self.turned = Some(Instant::now());
        }
    }

    fn push(&mut self, sample: Sample) {
        if self.samples.len() == MAX_SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }

    /// Called before an action: the work since the last look was done without one.
    pub(crate) fn take_stock(&mut self) {
        self.acted = Some(Instant::now());
        if let Some(started) = &mut self.started {
            started.take_stock();
        }
        self.traffic.take_stock();
        self.jobs.take_stock();
        self.dozes = self.inbox.as_mut().is_some_and(|(main, _)| is_dozing(main));
        (self.unread, self.held, self.doubts) = (None, None, 0);
        self.measure_rest();
        self.foreseen = self.asked.and_then(|asked| self.foreseen(asked));
    }

    /// What was done since the last look was done without an action, where that is long enough to tell.
    fn measure_rest(&mut self) {
        if self.samples.back().is_none_or(|last| last.at.elapsed() < SHORTEST_REST) {
            return;
        }
        self.bearing.clear();
        let now = self.take();
        if let Some(last) = self.samples.back() {
            self.ambient = Ambient { parents: std::mem::take(&mut self.bearing), ..Ambient::between(last, &now) };
        }
        self.push(now);
        (self.ended, self.turned) = (None, None);
    }

    /// How long ago the keys of the latest action were sent, if it has sent any.
    pub(crate) fn since_keys(&self, sent: Instant) -> Option<Duration> {
        self.acted.is_some_and(|acted| sent >= acted).then(|| sent.elapsed())
    }

    /// Takes note of what the process of a window that answers no pings has not read.
    fn note_unread(&mut self, now: &Sample) {
        let Some((main, inbox)) = &self.inbox else { return };
        let wakes = now.done(main.process, main.process).wakes;
        if inbox.as_ref().is_some_and(Inbox::is_unread) {
            (self.unread, self.held) = (Some(now.at), Some(wakes));
        } else if self.held.take_if(|held| *held != wakes).is_some() {
            // It has come out of its sleep and read: when it sleeps now, it may be for that.
            self.dozes = false;
        }
    }

    /// Takes note of whether the process that got the input is stopped. Only that one: a job that a terminal's shell has stopped is
    /// at rest.
    fn note_stopped(&mut self, at: Instant) {
        let stat = self.asked.and_then(|pid| Stat::of(&format!("/proc/{pid}/stat")));
        if stat.is_some_and(|stat| stat.is_stopped()) {
            self.stopped = Some(at);
        }
    }
}

/// Whether what a main thread waits for, so long after a key, may be the timer of a button that the key has pressed. Only the timer
/// that ends first is told: one of its own that ends all the time `hides` the button's.
fn may_press(waiting: Waiting, since: Duration, hides: bool) -> bool {
    match waiting {
        Waiting::EventOrTimer(limit) => limit <= PRESSED && (hides || since + limit >= SOONEST),
        // Another timer has just ended: what it waits for next is yet to be seen.
        Waiting::Nothing => true,
        Waiting::Event | Waiting::Unknown => false,
    }
}

/// Whether a main thread sleeps for something other than input.
fn is_dozing(main: &mut Sleeper) -> bool {
    main.sleep() != Sleep::Other
}

#[cfg(test)]
mod tests;
