//! What a family of processes is doing, told by its samples.

use std::time::{Duration, Instant};

use super::{BUSY_SHARE, SHORTEST_SPAN, TICKS, Work, is_dozing};
use crate::family::Births;
use crate::sample::{Rate, Sample, Thread};
use crate::started::Started;
use crate::stat::{Stat, Waiting, is_contended};
use crate::traffic::{Awaited, sockets_of};

/// What moves on its own takes a little more at one time than at another.
const AMBIENT_TOLERANCE: f64 = 1.5;
/// How far one look back goes: as long as the screen must be quiet, so that the work that led to its last change is over.
pub(super) const LOOKBACK: Duration = Duration::from_millis(50);
/// For this long after a thread that computed was found to have ended, its results may not have been handled yet. A look comes this
/// much later than the one before it.
pub(super) const HANDED_ON: Duration = Duration::from_millis(25);
/// On a busy machine the main thread takes at most this long to handle them.
pub(super) const AFTERMATH: Duration = Duration::from_millis(250);
/// A process that was found to have begun or ended within this time shows that a command goes on, however short each of its
/// processes lives. Less than `LATELY`, so that what the sample taken then finds (a lone command that has ended) is not waited for.
pub(super) const IN_TURN: Duration = Duration::from_millis(15);
/// What was stopped has come round to its input by this time after it goes on. What gets the processor in slices is stopped again by
/// then.
const CONTINUED: Duration = Duration::from_millis(100);
/// Over a shorter time ticks cannot be counted.
const COUNTABLE: Duration = Duration::from_millis(40);
/// A timer that ends so long after the action began may be of an answer. GTK's caret blinks 0.6 s after a key that has woken it, and
/// 1.2 s after others.
const FORESEEN: Duration = Duration::from_millis(590);
/// A timer that may run for so long is none that ends again and again, as a caret's does.
const RARE: Duration = Duration::from_secs(2);
/// Programs round the time that is left up to a whole millisecond.
const ROUNDED: Duration = Duration::from_millis(2);
/// A program that was started gets this long to show a window; it does not compute all the time.
const STARTING: Duration = Duration::from_millis(300);
/// A thread that has not woken for this long sleeps for longer than what polls (a game's loop).
pub(super) const ASLEEP: Duration = Duration::from_millis(25);
/// So often after an action a thread that has only just fallen asleep is looked at again.
const MOST_DOUBTS: u32 = 2;
/// What animates wakes at least once in this time.
const FRAME: Duration = Duration::from_millis(17);

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
    /// Nothing, but it has set a timer since the action began, got no answer over the network in time, or a client of the server has
    /// not read a key in time, or has started a program or had an answer that shows nothing yet.
    Timed,
    /// They have asked over the network since the action began, and wait for the answer.
    Awaiting,
    /// They compute, wait for a processor, or have not reached their input.
    Computing,
}

impl Work {
    /// What the family did just now.
    pub(crate) fn activity(&mut self) -> Activity {
        if self.root.is_none() && self.started.is_none() {
            return Activity::Unknown;
        }
        let now = self.take();
        self.note_stopped(now.at);
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
        } else {
            self.at_rest(&now)
        };
        self.push(now);
        activity
    }

    /// What a family waits for that does not compute.
    fn at_rest(&mut self, now: &Sample) -> Activity {
        let mut processes: Vec<u32> = now.threads.iter().map(|thread| thread.process).collect();
        processes.dedup();
        let acted = self.acted.unwrap_or(now.at);
        let awaited = self.traffic.awaited(acted, now.at, || sockets_of(&processes));
        match awaited {
            Awaited::Answer => Activity::Awaiting,
            // Also of what ticks: this may be the last look.
            Awaited::Late => Activity::Timed,
            Awaited::Nothing if self.ticks(now) => Activity::Ticking,
            Awaited::Nothing if self.has_set_timer(now) => Activity::Timed,
            Awaited::Nothing => Activity::Resting,
        }
    }

    /// Whether a process of the family has begun or ended since it was listed for this sample. Who waits for one that is not listed
    /// looks at rest, and on a busy machine we come late to look.
    fn has_turned_since(&mut self, at: Instant) -> bool {
        if !self.births.get_or_insert_with(Births::new).none_since_listed() {
            self.list();
        }
        self.turned.is_some_and(|turned| turned >= at)
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
        let young = self.started.as_ref().map_or(&[][..], Started::young);
        if turned || ended_within(HANDED_ON) || young.iter().any(starts) {
            return true;
        }
        // The main thread draws what others have made, also where it is usually awake.
        let owes = |thread: &Thread| thread.id == thread.process && ended_within(AFTERMATH);
        let mut asked = now.threads.iter().filter(|thread| self.ambient.is_news(thread) || owes(thread));
        if self.stopped.is_some_and(|at| now.at.saturating_duration_since(at) < CONTINUED) {
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

    /// Until when a timer of this process can only be of an action that begins now: before that, none ends that it waits for already.
    /// The kernel does not tell how long it has waited; the samples tell how long at most.
    pub(super) fn foreseen(&self, asked: u32) -> Option<Instant> {
        let latest = Instant::now() + FORESEEN;
        match Waiting::of(asked) {
            Waiting::EventOrTimer(limit) if limit < RARE => {
                let wakes = |sample: &Sample| sample.done(asked, asked).wakes;
                let now = wakes(self.samples.back()?);
                let earlier = self.samples.iter().rev().find(|sample| (1..now).contains(&wakes(sample)))?;
                Some(latest.min(earlier.begun + limit.saturating_sub(ROUNDED)))
            }
            Waiting::Event | Waiting::EventOrTimer(_) => Some(latest),
            Waiting::Nothing | Waiting::Unknown => None,
        }
    }

    /// Whether the process that was given the input has set a timer since the action began.
    pub(super) fn has_set_timer(&self, now: &Sample) -> bool {
        let Some((asked, foreseen)) = self.asked.zip(self.foreseen) else { return false };
        let Waiting::EventOrTimer(limit) = Waiting::of(asked) else { return false };
        // It has waited since before the first sample that found it asleep as now.
        let wakes = |sample: &Sample| sample.done(asked, asked).wakes;
        let waits = self.samples.iter().rev().take_while(|sample| wakes(sample) == wakes(now)).last().unwrap_or(now);
        waits.at + limit <= foreseen
    }
}

/// Whether a thread is running, or waiting for a processor or a disk. How long it has waited so far is in no `schedstat` yet.
fn is_awake(thread: &Thread) -> bool {
    Stat::of(&format!("/proc/{}/task/{}/stat", thread.process, thread.id))
        .is_some_and(|stat| matches!(stat.state, 'R' | 'D'))
}
