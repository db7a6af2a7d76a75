//! What the processes behind a window are doing, as far as this machine shows.
//!
//! The window that gets the input belongs to one process, but the work that follows is often done by others: a browser's
//! renderer, the command in a terminal, a dialog's helper. So a whole family is examined: everything below the highest ancestor of
//! that process which is neither ours nor init. What a process does without any input (a spinner, a video) it does on its
//! own account, and does not count.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use rustix::fd::BorrowedFd;

use crate::family::{Ancestry, Births, Member};
use crate::inbox::Inbox;
use crate::jobs::Jobs;
use crate::sample::{Ambient, Rate, Sample, Thread};
use crate::stat::{Sleep, Sleeper, Stat, Waiting, boot_ticks, is_contended, is_shown_on, numbers, uses_gtk};

/// Time not asleep above what is usual, as a share of the time that passed, from which on a family is at work. Measured: an idle
/// browser is below 3 %, a thread that computes near 100 %, whatever else runs.
const BUSY_SHARE: f64 = 0.3;
/// What moves on its own takes a little more at one time than at another.
const AMBIENT_TOLERANCE: f64 = 1.5;
/// How far one look back goes: as long as the screen must be quiet, so that the work that led to its last change is over.
const LOOKBACK: Duration = Duration::from_millis(50);
/// For this long after a thread that computed was found to have ended, its results may not have been handled yet. A look comes this
/// much later than the one before it.
const HANDED_ON: Duration = Duration::from_millis(25);
/// A process that was found to have begun or ended within this time shows that a command goes on, however short each of its
/// processes lives. Less than `LATELY`, so that what the sample taken then finds (a lone command that has ended) is not waited for.
const IN_TURN: Duration = Duration::from_millis(15);
/// On a busy machine the main thread takes at most this long to handle them.
const AFTERMATH: Duration = Duration::from_millis(250);
/// How often in a second a thread wakes at least while it animates, though no pixel changes: the clock of an animation ticks with
/// every frame, 60 times a second. Measured beside it: at most 40, a browser's after a key.
const TICKS: f64 = 45.0;
/// Over a shorter time ticks cannot be counted.
const COUNTABLE: Duration = Duration::from_millis(40);
/// GTK shows a button that a key has pressed this long before it does what the button is for. A timer that ends within that time
/// may be the one that it waits for.
const PRESSED: Duration = Duration::from_millis(250);
/// One that ends sooner after the key has another purpose (an editor's, 0.05 s after a line end), even where the key was read late.
const SOONEST: Duration = Duration::from_millis(120);
/// A timer that ends so long after the action began may be of an answer. GTK's caret blinks 0.6 s after a key that has woken it, and
/// 1.2 s after others.
const FORESEEN: Duration = Duration::from_millis(590);
/// A timer that may run for so long is none that ends again and again, as a caret's does.
const RARE: Duration = Duration::from_secs(2);
/// A program that was started gets this long to show a window; it does not compute all the time.
const STARTING: Duration = Duration::from_millis(300);
/// A thread that has not woken for this long sleeps for longer than what polls (a game's loop).
const ASLEEP: Duration = Duration::from_millis(25);
/// So often after an action a thread that has only just fallen asleep is looked at again.
const MOST_DOUBTS: u32 = 2;
/// What animates wakes at least once in this time.
const FRAME: Duration = Duration::from_millis(17);
/// When a wait is about to end this soon, a sample of the latest work is needed.
pub(crate) const LATELY: Duration = Duration::from_millis(20);
/// Over a shorter time the answer to our own ping weighs too much.
const SHORTEST_SPAN: Duration = Duration::from_millis(5);
/// Over a shorter time the usual activity cannot be measured.
const SHORTEST_REST: Duration = Duration::from_millis(100);
const MAX_SAMPLES: usize = 16;
/// What the processes behind a window do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// They do not run on this machine, or it is unknown which they are.
    Unknown,
    /// Nothing, or what they do without any input.
    Resting,
    /// A thread wakes as often as frames are shown: an animation goes on, even if no pixel changes just now.
    Ticking,
    /// A command of a terminal sleeps for a time, and goes on by itself.
    Sleeping,
    /// Nothing, but it has set a timer since the action began.
    Timed,
    /// They compute, wait for a processor, or have not reached their input.
    Computing,
}

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
    /// When the last action began, where its main thread waited for no timer, or for a rare one.
    untimed: Option<Instant>,
    /// Whether the process that got the input has loaded GTK, once that was checked.
    gtk: Option<bool>,
    jobs: Jobs,
    /// The highest process of the family that is examined.
    root: Option<u32>,
    ancestry: Ancestry,
    /// The display, where its server counts processes as this one does, and when the last action began.
    display: Option<String>,
    begun: u64,
    /// Programs that were started since for this display, by any program (a window manager's menu), and when they were found.
    young: Vec<(u32, Instant)>,
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
}

impl Work {
    /// From now on, look at the family of this process; of none when it does not run on this machine.
    pub(crate) fn follow(&mut self, pid: Option<u32>) {
        if self.asked != pid {
            (self.asked, self.gtk, self.untimed) = (pid, None, None);
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

    /// Also examine programs that are started for this display.
    pub(crate) fn expect_programs(&mut self, display: String) {
        (self.display, self.begun) = (Some(display), boot_ticks());
    }

    /// Whether a button may look pressed by a key, read so long ago, that has yet to do what it is for.
    pub(crate) fn is_button_down(&mut self, since: Duration) -> bool {
        let Some(asked) = self.asked else { return false };
        let hides = self.ambient.rate(asked).wakes > TICKS;
        may_press(Waiting::of(asked), since, hides) && *self.gtk.get_or_insert_with(|| uses_gtk(asked))
    }

    /// Records what the family has done so far.
    pub(crate) fn sample(&mut self) {
        if (self.root.is_some() || self.display.is_some())
            && self.samples.back().is_none_or(|last| last.at.elapsed() >= SHORTEST_SPAN)
        {
            let now = self.take();
            self.note_unread(&now);
            self.push(now);
        }
    }

    fn take(&mut self) -> Sample {
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
        Sample { at: Instant::now(), threads }
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
        let belongs = |&pid: &u32| root.is_some_and(|root| self.ancestry.descends(pid, root)) || self.is_young(pid);
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
        self.begun = boot_ticks();
        self.young.clear();
        self.jobs.take_stock();
        self.dozes = self.inbox.as_mut().is_some_and(|(main, _)| is_dozing(main));
        self.untimed = self.asked.filter(|&process| is_untimed(Waiting::of(process))).map(|_| Instant::now());
        (self.unread, self.held, self.doubts) = (None, None, 0);
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

    /// What the family did just now.
    pub(crate) fn activity(&mut self) -> Activity {
        if self.root.is_none() && self.display.is_none() {
            return Activity::Unknown;
        }
        let now = self.take();
        // Before and after: between two looks at one that sleeps each time it would have to sleep for the whole of its time.
        let slept = self.jobs.sleep();
        let activity = if self.is_behind(&now) || self.computes(&now) {
            Activity::Computing
        } else if self.root.is_none() {
            Activity::Unknown
        } else if self.has_turned_since(now.at) {
            Activity::Computing
        } else if slept || self.jobs.sleep() {
            Activity::Sleeping
        } else if self.ticks(&now) {
            Activity::Ticking
        } else if self.has_set_timer(&now) {
            Activity::Timed
        } else {
            Activity::Resting
        };
        self.push(now);
        activity
    }

    /// Whether a process of the family has begun or ended since it was listed for this sample. Who waits for one that is not listed
    /// looks at rest, and on a busy machine we come late to look.
    fn has_turned_since(&mut self, at: Instant) -> bool {
        if !self.births.get_or_insert_with(Births::new).none_since_listed() {
            self.list();
        }
        self.turned.is_some_and(|turned| turned >= at)
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

    /// Whether the process of a window that answers no pings has yet to reach its input, or has just reached it.
    fn is_behind(&mut self, now: &Sample) -> bool {
        self.note_unread(now);
        let Some((main, _)) = &mut self.inbox else { return false };
        let process = main.process;
        if self.unread.is_some_and(|at| now.at.duration_since(at) < LOOKBACK) {
            return true;
        }
        // An application waits for input. One that sleeps for a time does so within a handler, unless it does that all the time.
        if self.dozes || !is_dozing(main) {
            return false;
        }
        let wakes = now.done(process, process).wakes;
        let before = self.samples.iter().rev().find(|sample| now.at.duration_since(sample.at) >= ASLEEP);
        if before.is_some_and(|sample| sample.done(process, process).wakes == wakes) {
            // What it does when it wakes is still to be drawn.
            self.unread = Some(now.at);
            return true;
        }
        // It has only just fallen asleep: the next look tells for how long. What polls has fallen asleep again by then.
        self.doubts += 1;
        self.doubts <= MOST_DOUBTS
    }

    fn computes(&self, now: &Sample) -> bool {
        let age = |sample: &&Sample| now.at.duration_since(sample.at);
        // On a busy machine we are late too: the last sample may be of just now, and the one before of long ago.
        let mut earlier = self.samples.iter().filter(|sample| age(sample) >= SHORTEST_SPAN);
        let recent = earlier.clone().find(|sample| age(sample) <= LOOKBACK).or_else(|| earlier.next_back());
        let beyond =
            |(&process, rate): (&u32, &Rate)| rate.share - AMBIENT_TOLERANCE * self.ambient.rate(process).share;
        if let Some(recent) = recent
            && now.rates_since(recent).iter().map(|process| beyond(process).max(0.0)).sum::<f64>() > BUSY_SHARE
        {
            return true;
        }
        let ended_within = |time| self.ended.is_some_and(|at| now.at.saturating_duration_since(at) < time);
        let turned = self.turned.is_some_and(|at| now.at.saturating_duration_since(at) < IN_TURN);
        let starts = |&(process, at): &(u32, Instant)| {
            now.at.saturating_duration_since(at) < STARTING
                && now.threads.iter().any(|thread| thread.process == process)
        };
        if turned || ended_within(HANDED_ON) || self.young.iter().any(starts) {
            return true;
        }
        // The main thread draws what others have made, also where it is usually awake.
        let owes = |thread: &Thread| thread.id == thread.process && ended_within(AFTERMATH);
        let mut asked = now.threads.iter().filter(|thread| self.ambient.is_news(thread) || owes(thread));
        // Only the process that got the input: a job that a terminal's shell has stopped is at rest.
        let stat = self.asked.and_then(|pid| Stat::of(&format!("/proc/{pid}/stat")));
        if stat.is_some_and(|stat| stat.is_stopped()) {
            return true;
        }
        // Where no thread waits for a processor, only a wait for a disk is left to be found; it is the main thread that starts.
        let contended = is_contended();
        asked.any(|thread| (contended || thread.id == thread.process) && is_awake(thread))
    }

    /// What had something to do when the screen changed has done it; what ticks has woken lately too.
    fn ticks(&self, now: &Sample) -> bool {
        let before = |time| self.samples.iter().rev().find(|sample| now.at.duration_since(sample.at) >= time);
        let (Some(lately), Some(earlier)) = (before(FRAME), before(COUNTABLE)) else { return false };
        let span = now.at.duration_since(earlier.at).as_secs_f64();
        now.threads.iter().any(|&Thread { process, id, done }| {
            let wakes_since = |sample: &Sample| done.wakes.saturating_sub(sample.done(process, id).wakes);
            let rate = f64::from(wakes_since(earlier)) / span;
            rate - AMBIENT_TOLERANCE * self.ambient.rate(process).wakes > TICKS && wakes_since(lately) > 0
        })
    }

    /// Whether the process that was given the input has set a timer since the action began.
    fn has_set_timer(&self, now: &Sample) -> bool {
        let Some((asked, begun)) = self.asked.zip(self.untimed) else { return false };
        let Waiting::EventOrTimer(limit) = Waiting::of(asked) else { return false };
        // It has waited since before the first sample that found it asleep as now.
        let wakes = |sample: &Sample| sample.done(asked, asked).wakes;
        let waits = self.samples.iter().rev().take_while(|sample| wakes(sample) == wakes(now)).last().unwrap_or(now);
        waits.at + limit <= begun + FORESEEN
    }

    /// Whether a process was started for this display since the action began.
    fn is_young(&mut self, pid: u32) -> bool {
        if self.display.is_none() || self.ancestry.origin(pid).is_none_or(|(_, begun)| begun < self.begun) {
            return false;
        }
        let known = self.young.iter().any(|&(young, _)| young == pid);
        if !known && self.display.as_ref().is_some_and(|display| is_shown_on(pid, display)) {
            self.young.push((pid, Instant::now()));
            return true;
        }
        known
    }
}

/// Whether a main thread that waits so while nobody acts waits for no timer, or for a rare one. How long it has waited is not told.
fn is_untimed(waiting: Waiting) -> bool {
    match waiting {
        Waiting::Event => true,
        Waiting::EventOrTimer(limit) => limit >= RARE,
        Waiting::Nothing | Waiting::Unknown => false,
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

/// Whether a thread is running, or waiting for a processor or a disk. How long it has waited so far is in no `schedstat` yet.
fn is_awake(thread: &Thread) -> bool {
    Stat::of(&format!("/proc/{}/task/{}/stat", thread.process, thread.id))
        .is_some_and(|stat| matches!(stat.state, 'R' | 'D'))
}

#[cfg(test)]
mod tests;
