//! What the processes behind a window are doing, as far as this machine shows it.
//!
//! The window that gets the input belongs to one process, but the work that follows is often done by others: a browser's
//! renderer, the command in a terminal, a dialog's helper. So a whole family is looked at: everything below the highest ancestor of
//! that process which is neither ours nor init. What a process does while nobody acts (a spinner, a video) it does on its
//! own account, and does not count.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::process;
use std::time::{Duration, Instant};

use rustix::fd::BorrowedFd;
use rustix::fs::{PROC_SUPER_MAGIC, fstatfs};

use crate::inbox::Inbox;
use crate::jobs::Jobs;
use crate::stat::{Kept, Sleep, Sleeper, Stat, boot_ticks, is_contended, is_shown_on, numbers, poll_limit, uses_gtk};

/// Time not asleep above what is usual, as a share of the time that passed, from which on a family is at work. Measured: an idle
/// browser is below 3 %, a thread that computes near 100 %, whatever else runs.
const BUSY_SHARE: f64 = 0.3;
/// What moves on its own takes a little more at one time than at another.
const AMBIENT_TOLERANCE: f64 = 1.5;
/// A process that is usually awake for less than this share of the time, and is awake now, has something to do. It is looked at
/// again until it has done it, so this may not hold for what never sleeps.
const RESTING_SHARE: f64 = 0.5;
/// How far one look back goes: as long as the screen must be quiet, so that the work that led to its last change is over.
const LOOKBACK: Duration = Duration::from_millis(50);
/// For so long after a thread that computed was found to have ended, nobody has come round to what it made. A look comes so much
/// later than the one before it.
const HANDED_ON: Duration = Duration::from_millis(25);
/// A process that was found to have begun or ended within this time shows that a command goes on, however short each of its
/// processes lives. Less than `LATELY`, so that what the sample taken then finds (a lone command that has ended) is not waited for.
const IN_TURN: Duration = Duration::from_millis(15);
/// On a busy machine it takes the main thread so long at most to come round to it.
const AFTERMATH: Duration = Duration::from_millis(250);
/// How often in a second a thread wakes at least while it animates, though no pixel changes: the clock of an animation ticks with
/// every frame, 60 times a second. Measured beside it: at most 40, a browser's after a key.
const TICKS: f64 = 45.0;
/// Over a shorter time ticks cannot be counted.
const COUNTABLE: Duration = Duration::from_millis(40);
/// GTK shows a button that a key has pressed for so long before it does what the button is for. A timer that ends within that time
/// may be the one that it waits for.
const PRESSED: Duration = Duration::from_millis(250);
/// One that ends sooner after the key is another's (an editor's, 0.05 s after a line end), even where the key was read late.
const SOONEST: Duration = Duration::from_millis(120);
/// A program that was started is given so long to show a window; it does not compute all the time.
const STARTING: Duration = Duration::from_millis(300);
/// A thread that has not woken for so long sleeps for longer than what polls (a game's loop).
const ASLEEP: Duration = Duration::from_millis(25);
/// What animates wakes at least once in this time.
const FRAME: Duration = Duration::from_millis(17);
/// When a wait is about to end so soon, there must be a sample, for what has been done lately.
pub(crate) const LATELY: Duration = Duration::from_millis(20);
/// Over a shorter time the answer to our own ping weighs too much.
const SHORTEST_SPAN: Duration = Duration::from_millis(5);
/// Over a shorter time it cannot be told what is usual.
const SHORTEST_REST: Duration = Duration::from_millis(100);
const MAX_SAMPLES: usize = 16;
/// Parents are remembered, for they may be gone when they are asked for; not for ever.
const MAX_PARENTS: usize = 1 << 16;
const INIT: u32 = 1;
/// A process that has a number already may not be listed yet; so long after its number was given, it is.
const LISTED_AFTER: Duration = Duration::from_millis(20);

/// What the processes behind a window do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// They do not run on this machine, or there is no saying which they are.
    Unknown,
    /// Nothing, or what they do while nobody acts.
    Resting,
    /// A thread wakes as often as frames are shown: an animation goes on, even if no pixel changes just now.
    Ticking,
    /// A command of a terminal sleeps for a time, and goes on by itself.
    Sleeping,
    /// They compute, wait for a processor, or have not come to what they were sent.
    Computing,
}

/// What one thread has done since it began.
struct Thread {
    process: u32,
    id: u32,
    done: Done,
}

/// Time not asleep: running, or waiting for a processor. The latter counts, for on a loaded machine an application at work gets
/// little of one. And how often it was given a processor.
#[derive(Clone, Copy, Default)]
struct Done {
    awake: Duration,
    wakes: u32,
}

/// What one process did over a time.
#[derive(Clone, Copy, Default)]
struct Rate {
    /// How long its threads together were awake, as a share of the time that passed.
    share: f64,
    /// How often in a second the thread that woke most often did.
    wakes: f64,
}

/// What a family does while nobody acts.
#[derive(Default)]
struct Ambient {
    /// Of each process that does anything.
    rates: HashMap<u32, Rate>,
    /// The threads that do it.
    stirring: HashSet<(u32, u32)>,
    /// The processes in which threads begin and end: one that was not there before tells nothing.
    churning: HashSet<u32>,
    /// The processes whose children begin and end.
    parents: HashSet<u32>,
}

impl Ambient {
    fn between(earlier: &Sample, now: &Sample) -> Self {
        let (before, after) = (earlier.ids(), now.ids());
        let stirs = |thread: &&Thread| thread.done.awake > earlier.done(thread.process, thread.id).awake;
        Self {
            rates: now.rates_since(earlier),
            stirring: now.threads.iter().filter(stirs).map(|thread| (thread.process, thread.id)).collect(),
            churning: before.symmetric_difference(&after).map(|&(process, _)| process).collect(),
            parents: HashSet::new(),
        }
    }

    fn rate(&self, process: u32) -> Rate {
        self.rates.get(&process).copied().unwrap_or_default()
    }

    /// Whether a thread that is awake has been given something to do.
    fn is_news(&self, thread: &Thread) -> bool {
        let (process, id) = (thread.process, thread.id);
        let idle = !self.churning.contains(&process) && !self.stirring.contains(&(process, id));
        idle || self.rate(process).share < RESTING_SHARE
    }
}

/// A family's threads, by process and thread id in ascending order.
struct Sample {
    at: Instant,
    threads: Vec<Thread>,
}

impl Sample {
    fn done(&self, process: u32, id: u32) -> Done {
        let found = self.threads.binary_search_by_key(&(process, id), |thread| (thread.process, thread.id));
        found.map_or_else(|_| Done::default(), |index| self.threads[index].done)
    }

    fn ids(&self) -> HashSet<(u32, u32)> {
        self.threads.iter().map(|thread| (thread.process, thread.id)).collect()
    }

    /// What each process that was awake did since `earlier`.
    fn rates_since(&self, earlier: &Self) -> HashMap<u32, Rate> {
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

/// The three numbers of a `schedstat`: nanoseconds on a processor, nanoseconds waiting for one, and how often it got one.
fn done(file: &File) -> Option<Done> {
    let mut text = [0; 64];
    let length = file.read_at(&mut text, 0).ok()?;
    let mut words = str::from_utf8(&text[..length]).ok()?.split_ascii_whitespace();
    let mut number = || words.next()?.parse::<u64>().ok();
    let awake = Duration::from_nanos(number()?) + Duration::from_nanos(number()?);
    Some(Done { awake, wakes: u32::try_from(number()?).unwrap_or(u32::MAX) })
}

/// A thread of the family, and where the kernel tells what it has done.
struct Member {
    process: u32,
    id: u32,
    schedstat: Option<Kept>,
}

impl Member {
    fn new(process: u32, id: u32) -> Self {
        Self { process, id, schedstat: None }
    }

    /// What it has done; `None` once it is gone.
    fn done(&mut self) -> Option<Done> {
        if let Some(Kept(file)) = &self.schedstat {
            return done(file);
        }
        let file = File::open(format!("/proc/{}/task/{}/schedstat", self.process, self.id)).ok()?;
        let done = done(&file);
        self.schedstat = Kept::new(file).ok();
        done
    }
}

/// Tells whether processes or threads were started: the kernel gives each a number, and says which was the last.
#[derive(Default)]
struct Births {
    loads: Option<Kept>,
    /// The last number given, and when it was first seen.
    latest: Option<(u32, Instant)>,
    listed_at: Option<Instant>,
}

impl Births {
    fn new() -> Self {
        // A container's own `/proc/loadavg` (lxcfs) is seconds behind.
        let genuine = |file: &File| fstatfs(file).is_ok_and(|fs| fs.f_type == PROC_SUPER_MAGIC);
        let loads = File::open("/proc/loadavg").ok().filter(genuine).and_then(|file| Kept::new(file).ok());
        Self { loads, latest: None, listed_at: None }
    }

    /// Whether all that live now were listed by whoever listed them when this was asked before.
    fn none_since_listed(&mut self) -> bool {
        let now = Instant::now();
        let Some(number) = self.loads.as_ref().and_then(|Kept(file)| last_number(file)) else { return false };
        match self.latest {
            Some((latest, seen)) if latest == number => {
                let listed = self.listed_at.is_some_and(|at| at.duration_since(seen) >= LISTED_AFTER);
                if !listed {
                    self.listed_at = Some(now);
                }
                listed
            }
            _ => {
                self.latest = Some((number, now));
                self.listed_at = Some(now);
                false
            }
        }
    }
}

/// The last of the numbers in `/proc/loadavg`; one that is always 0 is not the kernel's.
fn last_number(loads: &File) -> Option<u32> {
    let mut text = [0; 128];
    let length = loads.read_at(&mut text, 0).ok()?;
    let number = str::from_utf8(&text[..length]).ok()?.split_ascii_whitespace().nth(4)?.parse().ok()?;
    (number != 0).then_some(number)
}

/// The work of one connection's applications.
#[derive(Default)]
pub(crate) struct Work {
    /// The process that was given the input.
    asked: Option<u32>,
    /// The process of a window that answers no pings, and what it has been sent, where that is told.
    inbox: Option<(Sleeper, Option<Inbox>)>,
    /// When something was last found there that it had not read.
    unread: Option<Instant>,
    /// Whether its main thread sleeps for a time while nobody acts.
    dozes: bool,
    /// How often that had woken when something was last found there that it had not read.
    held: Option<u32>,
    /// Whether the process that was given the input has loaded GTK, once that was asked.
    gtk: Option<bool>,
    jobs: Jobs,
    /// The highest process of the family that is looked at.
    root: Option<u32>,
    /// Of each process that was listed, its parent and when it began.
    parents: HashMap<u32, (u32, u64)>,
    /// The display, where its server counts processes as we do, and when the last action began.
    display: Option<String>,
    begun: u64,
    /// Programs that were started since for this display, by whom ever (a window manager's menu), and when they were found.
    young: Vec<(u32, Instant)>,
    /// The family's threads, by process and id in ascending order.
    members: Vec<Member>,
    /// Of each of its processes, the page faults of the children that it has waited for: they grow with each that ends.
    reaped: HashMap<u32, u64>,
    /// Whose children were found to have begun or ended since the last action began, and when that was.
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
            (self.asked, self.gtk) = (pid, None);
        }
        let root = pid.map(|pid| self.root_of(pid));
        if self.root != root {
            (self.root, self.births) = (root, None);
            self.members.clear();
            self.reaped.clear();
            self.jobs = Jobs::default();
        }
    }

    /// The window that was given the input tells by itself what it has read.
    pub(crate) fn expect_pongs(&mut self) {
        self.inbox = None;
    }

    /// It does not: the kernel is asked what its process has read. `ours` is a connection to the same server.
    pub(crate) fn expect_reading(&mut self, ours: BorrowedFd<'_>) {
        if self.asked != self.inbox.as_ref().map(|(main, _)| main.process) {
            self.inbox = self.asked.map(|process| (Sleeper::new(process), Inbox::of(process, ours)));
            (self.unread, self.held, self.dozes) = (None, None, false);
        }
    }

    /// Also look at programs that are started for this display.
    pub(crate) fn expect_programs(&mut self, display: String) {
        (self.display, self.begun) = (Some(display), boot_ticks());
    }

    /// Whether a button may look pressed by a key, read so long ago, that has yet to do what it is for.
    pub(crate) fn is_button_down(&mut self, since: Duration) -> bool {
        let Some(asked) = self.asked else { return false };
        let is_its_timer = |limit| limit <= PRESSED && since + limit >= SOONEST;
        poll_limit(asked).is_some_and(is_its_timer) && *self.gtk.get_or_insert_with(|| uses_gtk(asked))
    }

    /// Takes note of what the family has done so far.
    pub(crate) fn sample(&mut self) {
        if (self.root.is_some() || self.display.is_some())
            && self.samples.back().is_none_or(|last| last.at.elapsed() >= SHORTEST_SPAN)
        {
            let now = self.take();
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
        // How long it has just waited for a processor may not have been told yet: so each time that ends there is looked at.
        let is_busy_since = |earlier: &Sample| {
            let awake = last.done(process, id).awake.saturating_sub(earlier.done(process, id).awake);
            awake > last.at.duration_since(earlier.at).mul_f64(BUSY_SHARE)
        };
        !self.ambient.churning.contains(&process) && self.samples.iter().any(is_busy_since)
    }

    /// Finds the family's threads; those known before stay as they are.
    fn list(&mut self) {
        let root = self.root;
        let belongs = |&pid: &u32| root.is_some_and(|root| self.descends(pid, root)) || self.is_young(pid);
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
            self.turn(self.parents.get(&process).map(|&(parent, _)| parent));
        }
    }

    /// Takes note of a process of the family that was not there before, and of children that have ended since it was looked at: the
    /// kernel adds what they did to its own numbers.
    fn count_children(&mut self, process: u32, stat: &Stat, first: bool) {
        match self.reaped.insert(process, stat.reaped) {
            Some(reaped) if reaped != stat.reaped => self.turn(Some(process)),
            // The first listing finds who was there before.
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

    /// An action is about to begin: what was done since the last look was done without one.
    pub(crate) fn take_stock(&mut self) {
        self.begun = boot_ticks();
        self.young.clear();
        self.jobs.take_stock();
        self.dozes = self.inbox.as_mut().is_some_and(|(main, _)| is_dozing(main));
        (self.unread, self.held) = (None, None);
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
        let activity = if self.is_behind(&now) || self.computes(&now) {
            Activity::Computing
        } else if self.root.is_none() {
            Activity::Unknown
        } else if self.jobs.sleep() {
            Activity::Sleeping
        } else if self.ticks(&now) {
            Activity::Ticking
        } else {
            Activity::Resting
        };
        self.push(now);
        activity
    }

    /// Whether the process of a window that answers no pings has yet to come to what it was sent, or has just come to it.
    fn is_behind(&mut self, now: &Sample) -> bool {
        let Some((main, inbox)) = &mut self.inbox else { return false };
        let (process, wakes) = (main.process, now.done(main.process, main.process).wakes);
        if inbox.as_ref().is_some_and(Inbox::is_unread) {
            (self.unread, self.held) = (Some(now.at), Some(wakes));
        } else if self.held.take_if(|held| *held != wakes).is_some() {
            // It has come out of its sleep and read: when it sleeps now, it may be for that.
            self.dozes = false;
        }
        if self.unread.is_some_and(|at| now.at.duration_since(at) < LOOKBACK) {
            return true;
        }
        // An application waits for input. One that sleeps for a time does so within a handler, unless it does that all the time.
        let is_asleep_since = |sample: &Sample| sample.done(process, process).wakes == wakes;
        let before = self.samples.iter().rev().find(|sample| now.at.duration_since(sample.at) >= ASLEEP);
        before.is_some_and(is_asleep_since) && !self.dozes && is_dozing(main)
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
        // Only who got the input: a job that a terminal's shell has stopped is at rest.
        let stat = self.asked.and_then(|pid| Stat::of(&format!("/proc/{pid}/stat")));
        if stat.is_some_and(|stat| stat.is_stopped()) {
            return true;
        }
        // Where nobody waits for a processor, only a wait for a disk is left to be found; it is the main thread that starts.
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

    fn parent(&mut self, pid: u32) -> Option<u32> {
        self.origin(pid).map(|(parent, _)| parent)
    }

    /// Its parent, and when it began.
    fn origin(&mut self, pid: u32) -> Option<(u32, u64)> {
        if let Some(&origin) = self.parents.get(&pid) {
            return Some(origin);
        }
        let Stat { parent, begun, .. } = Stat::of(&format!("/proc/{pid}/stat"))?;
        if self.parents.len() >= MAX_PARENTS {
            self.parents.clear();
        }
        self.parents.insert(pid, (parent, begun));
        Some((parent, begun))
    }

    /// Whether a process was started for this display since the action began.
    fn is_young(&mut self, pid: u32) -> bool {
        if self.display.is_none() || self.origin(pid).is_none_or(|(_, begun)| begun < self.begun) {
            return false;
        }
        let known = self.young.iter().any(|&(young, _)| young == pid);
        if !known && self.display.as_ref().is_some_and(|display| is_shown_on(pid, display)) {
            self.young.push((pid, Instant::now()));
            return true;
        }
        known
    }

    fn descends(&mut self, mut pid: u32, root: u32) -> bool {
        while pid != root {
            match self.parent(pid) {
                Some(parent) if parent > INIT => pid = parent,
                _ => return false,
            }
        }
        true
    }

    fn root_of(&mut self, pid: u32) -> u32 {
        let mut ours = vec![process::id()];
        while let Some(parent) = self.parent(ours[ours.len() - 1]).filter(|&parent| parent > INIT) {
            ours.push(parent);
        }
        let mut root = pid;
        while let Some(parent) = self.parent(root).filter(|parent| *parent > INIT && !ours.contains(parent)) {
            root = parent;
        }
        root
    }
}

/// Whether a main thread sleeps for something else than input.
fn is_dozing(main: &mut Sleeper) -> bool {
    main.sleep() != Sleep::Other
}

/// Whether a thread is running, or waiting for a processor or a disk. How long it has waited so far is in no `schedstat` yet.
fn is_awake(thread: &Thread) -> bool {
    Stat::of(&format!("/proc/{}/task/{}/stat", thread.process, thread.id))
        .is_some_and(|stat| matches!(stat.state, 'R' | 'D'))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::process::{Child, Command, Stdio};
    use std::thread::sleep;

    use super::*;
    use crate::stat::MAX_OPEN;

    /// A program of the shell's, ended with the test.
    struct Program(Child);

    impl Program {
        fn run(script: &str) -> Self {
            Self(Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).spawn().expect("a shell"))
        }

        /// Lets a `read` in the script return.
        fn go_on(&mut self) {
            self.0.stdin.as_mut().expect("a pipe").write_all(b"\n").expect("a reader");
        }

        fn work(&self) -> Work {
            let mut work = Work::default();
            work.follow(Some(self.0.id()));
            work
        }
    }

    impl Drop for Program {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    fn activity_of_the_next(span: Duration, work: &mut Work) -> Activity {
        work.sample();
        sleep(span);
        work.activity()
    }

    /// Until it is, or long after it should have been.
    fn becomes(work: &mut Work, activity: Activity) -> bool {
        (0..200).any(|_| activity_of_the_next(LOOKBACK, work) == activity)
    }

    #[test]
    fn a_program_that_sleeps_is_not_busy() {
        let program = Program::run("exec sleep 60");
        assert!(becomes(&mut program.work(), Activity::Resting));
    }

    #[test]
    fn a_program_that_is_stopped_is_at_work() {
        let program = Program::run("exec sleep 60");
        let mut work = program.work();
        for (signal, activity) in [("STOP", Activity::Computing), ("CONT", Activity::Resting)] {
            let told = Command::new("kill").args(["-s", signal, &program.0.id().to_string()]).status();
            assert!(told.expect("kill").success());
            assert!(becomes(&mut work, activity));
        }
    }

    #[test]
    fn of_what_does_not_run_here_nothing_is_known() {
        let mut work = Work::default();
        work.follow(None);
        assert_eq!(activity_of_the_next(LOOKBACK, &mut work), Activity::Unknown);
    }

    #[test]
    fn a_sample_of_just_now_hides_no_work() {
        let program = Program::run("while :; do :; done");
        let mut work = program.work();
        for _ in 0..10 {
            let long_ago = work.take();
            work.samples = VecDeque::from([long_ago]);
            sleep(2 * LOOKBACK);
            let just_now = work.take();
            work.push(just_now);
            assert_eq!(work.activity(), Activity::Computing);
        }
    }

    #[test]
    fn what_a_program_started_counts_until_it_is_over() {
        let program = Program::run("sh -c 'i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done'; exec sleep 60");
        let mut work = program.work();
        assert!(becomes(&mut work, Activity::Computing));
        assert!(becomes(&mut work, Activity::Resting));
    }

    #[test]
    fn what_is_started_after_the_family_was_listed_is_found() {
        let mut program =
            Program::run("read -r _; sh -c 'i=0; while [ $i -lt 500000 ]; do i=$((i+1)); done'; exec sleep 60");
        let mut work = program.work();
        assert!(becomes(&mut work, Activity::Resting));
        // Listed once more, for what has a number and is not listed yet; from here on nothing is until something starts.
        sleep(LISTED_AFTER);
        work.take();
        program.go_on();
        assert!(becomes(&mut work, Activity::Computing));
    }

    #[test]
    fn processes_that_begin_and_end_are_work_however_short_they_live() {
        let mut program = Program::run("read -r _; for i in 1 2 3; do /bin/true; done; read -r _; exec sleep 60");
        let mut work = program.work();
        assert!(becomes(&mut work, Activity::Resting));
        program.go_on();
        // The first listing after the last of them sees none of them, and that their parent has waited for them.
        let children = || Stat::of(&format!("/proc/{}/stat", program.0.id())).map(|stat| stat.reaped);
        let before = work.reaped.get(&program.0.id()).copied();
        assert!((0..2000).any(|_| {
            sleep(SHORTEST_SPAN);
            children() > before && numbers("/proc").all(|pid| work.parent(pid) != Some(program.0.id()))
        }));
        work.sample();
        assert!(work.turned.is_some());
        // On a busy machine we may be late ourselves.
        assert!((0..200).any(|_| {
            work.turned = Some(Instant::now());
            work.activity() == Activity::Computing
        }));
        assert!(becomes(&mut work, Activity::Resting));
    }

    #[test]
    fn whose_children_come_and_go_while_nobody_acts_is_not_at_work_for_it() {
        let program = Program::run("while :; do sleep 0.01; done");
        let mut work = program.work();
        work.sample();
        assert!((0..200).any(|_| {
            sleep(SHORTEST_REST);
            work.take_stock();
            sleep(LOOKBACK);
            work.sample();
            work.turned.is_none() && work.ambient.parents == HashSet::from([program.0.id()])
        }));
    }

    #[test]
    fn files_beyond_the_limit_are_opened_each_time() {
        let program = Program::run("exec sleep 60");
        let open = || File::open("/proc/self/schedstat").expect("a file of ours");
        let kept: Vec<Kept> = std::iter::from_fn(|| Kept::new(open()).ok()).collect();
        assert!(kept.len() <= MAX_OPEN);
        let mut member = Member::new(program.0.id(), program.0.id());
        assert!(member.done().is_some());
        assert!(member.schedstat.is_none());
        drop(kept);
        assert!(member.done().is_some());
        assert!(member.schedstat.is_some());
    }

    #[test]
    fn a_thread_that_is_gone_is_told_from_one_that_sleeps() {
        let mut program = Program::run("read -r _");
        let mut member = Member::new(program.0.id(), program.0.id());
        assert!(member.done().is_some());
        program.go_on();
        program.0.wait().expect("a child");
        assert!(member.done().is_none());
    }

    #[test]
    fn what_it_does_while_nobody_acts_does_not_count() {
        let program = Program::run("while :; do :; done");
        let mut work = program.work();
        assert!(becomes(&mut work, Activity::Computing));
        // How long it waits for a processor is told later: on a busy machine what is usual may be told too low.
        assert!((0..200).any(|_| {
            sleep(SHORTEST_REST);
            work.take_stock();
            activity_of_the_next(LOOKBACK, &mut work) != Activity::Computing
        }));
    }

    #[test]
    fn what_has_computed_and_ended_has_handed_something_on() {
        let mut program = Program::run("sh -c 'while :; do :; done' & read -r _; kill $!; wait; exec sleep 60");
        let mut work = program.work();
        assert!(becomes(&mut work, Activity::Computing));
        let child = work.members.iter().map(|member| member.process).find(|&process| process != program.0.id());
        let child = child.expect("a child that computes");
        // How long it waits for a processor is told later.
        assert!((0..200).any(|_| {
            sleep(SHORTEST_SPAN);
            work.sample();
            work.has_computed(child, child)
        }));
        program.go_on();
        assert!((0..2000).any(|_| {
            sleep(SHORTEST_SPAN);
            !fs::exists(format!("/proc/{child}")).expect("a path")
        }));
        assert!(work.ended.is_none());
        work.sample();
        assert!(work.ended.is_some());
        // On a busy machine we may be late ourselves.
        assert!((0..200).any(|_| {
            work.ended = Some(Instant::now());
            work.activity() == Activity::Computing
        }));
        assert!(becomes(&mut work, Activity::Resting));
    }

    #[test]
    fn for_a_while_after_that_the_main_thread_owes_an_answer() {
        let program = Program::run("while :; do :; done");
        let (pid, mut work) = (program.0.id(), program.work());
        work.ambient.rates.insert(pid, Rate { share: 100.0, wakes: 0.0 });
        work.ambient.stirring.insert((pid, pid));
        let mut activity_after = |ended: Option<Duration>| {
            work.ended = None;
            work.sample();
            sleep(LOOKBACK);
            work.ended = ended.and_then(|time| Instant::now().checked_sub(time));
            work.activity()
        };
        // On a busy machine we may be late ourselves.
        assert!((0..200).any(|_| activity_after(Some(2 * HANDED_ON)) == Activity::Computing));
        assert_ne!(activity_after(Some(AFTERMATH)), Activity::Computing);
        assert_ne!(activity_after(None), Activity::Computing);
    }

    #[test]
    fn what_sleeps_and_ends_has_handed_nothing_on() {
        let mut program = Program::run("sleep 60 & read -r _; kill $!; wait; exec sleep 60");
        let mut work = program.work();
        assert!(becomes(&mut work, Activity::Resting));
        let child = work.members.iter().map(|member| member.process).find(|&process| process != program.0.id());
        let child = child.expect("a child that sleeps");
        // Starting was work, and so is ending.
        work.samples.clear();
        work.sample();
        sleep(LOOKBACK);
        work.sample();
        program.go_on();
        assert!((0..2000).any(|_| {
            sleep(SHORTEST_SPAN);
            !fs::exists(format!("/proc/{child}")).expect("a path")
        }));
        work.sample();
        assert!(work.samples.back().is_some_and(|last| last.threads.iter().all(|thread| thread.process != child)));
        assert!(work.ended.is_none());
    }

    #[test]
    fn a_thread_that_has_slept_is_news_where_others_are_awake() {
        let begun = Instant::now();
        let sample = |milliseconds: u64, threads: &[(u32, u32, u64)]| {
            let done = |awake| Done { awake: Duration::from_millis(awake), wakes: 0 };
            let threads = threads.iter().map(|&(process, id, awake)| Thread { process, id, done: done(awake) });
            Sample { at: begun + Duration::from_millis(milliseconds), threads: threads.collect() }
        };
        let earlier = sample(0, &[(1, 1, 0), (1, 2, 0), (3, 3, 0), (3, 4, 0), (5, 5, 0)]);
        let now = sample(100, &[(1, 1, 90), (1, 2, 0), (3, 3, 90), (3, 6, 0), (5, 5, 40)]);
        let ambient = Ambient::between(&earlier, &now);
        let later =
            sample(200, &[(1, 1, 180), (1, 2, 50), (1, 7, 50), (3, 3, 180), (3, 6, 50), (5, 5, 80), (8, 8, 50)]);
        let news: Vec<u32> =
            later.threads.iter().filter(|thread| ambient.is_news(thread)).map(|thread| thread.id).collect();
        // Of the first process all but the one that is always awake; of one whose threads come and go none.
        assert_eq!(news, [2, 7, 5, 8]);
    }

    #[test]
    fn a_program_that_wakes_with_every_frame_ticks() {
        let program = Program::run("exec python3 -c 'import time\nwhile True: time.sleep(0.016)'");
        assert!(becomes(&mut program.work(), Activity::Ticking));
    }

    #[test]
    fn ticks_while_nobody_acts_do_not_count() {
        let program = Program::run("exec python3 -c 'import time\nwhile True: time.sleep(0.016)'");
        let mut work = program.work();
        assert!(becomes(&mut work, Activity::Ticking));
        sleep(SHORTEST_REST);
        work.take_stock();
        assert!(becomes(&mut work, Activity::Resting));
    }

    #[test]
    fn we_are_not_our_programs_family() {
        let program = Program::run("exec sleep 60");
        assert_eq!(program.work().root, Some(program.0.id()));
    }

    #[test]
    fn the_numbers_of_proc_are_read() {
        let read = |path: &str| done(&File::open(path).expect("a file of ours"));
        assert!(read("/proc/self/schedstat").is_some());
        assert!(read("/proc/self/comm").is_none());
    }
}
