//! What the processes behind a window are doing, as far as this machine shows it.
//!
//! The window that gets the input belongs to one process, but the work that follows is often done by others: a browser's
//! renderer, the command in a terminal, a dialog's helper. So a whole family is looked at: everything below the highest ancestor of
//! that process which is neither ours nor init. What a process does while nobody acts (a spinner, a video) it does on its
//! own account, and does not count.

use std::collections::{HashMap, VecDeque};
use std::fs::{self, File};
use std::io::Read;
use std::process;
use std::time::{Duration, Instant};

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
/// Over a shorter time the answer to our own ping weighs too much.
const SHORTEST_SPAN: Duration = Duration::from_millis(5);
/// Over a shorter time it cannot be told what is usual.
const SHORTEST_REST: Duration = Duration::from_millis(100);
const MAX_SAMPLES: usize = 16;
/// Parents are remembered, for they may be gone when they are asked for; not for ever.
const MAX_PARENTS: usize = 1 << 16;
const INIT: u32 = 1;

/// How long one thread has not been asleep since it began: running, or waiting for a processor. The latter counts, for on a
/// loaded machine an application at work gets little of one.
struct Thread {
    process: u32,
    id: u32,
    awake: Duration,
}

/// A family's threads, by process and thread id in ascending order.
struct Sample {
    at: Instant,
    threads: Vec<Thread>,
}

impl Sample {
    fn take(processes: &[u32]) -> Self {
        let mut threads: Vec<Thread> = processes.iter().flat_map(|&process| threads_of(process)).collect();
        threads.sort_unstable_by_key(|thread| (thread.process, thread.id));
        Self { at: Instant::now(), threads }
    }

    fn awake(&self, process: u32, id: u32) -> Duration {
        let found = self.threads.binary_search_by_key(&(process, id), |thread| (thread.process, thread.id));
        found.map_or(Duration::ZERO, |index| self.threads[index].awake)
    }

    /// How long each process's threads together were awake since `earlier`, as a share of the time that passed.
    fn shares_since(&self, earlier: &Self) -> HashMap<u32, f64> {
        let span = self.at.duration_since(earlier.at).as_secs_f64();
        let mut shares = HashMap::new();
        for &Thread { process, id, awake } in &self.threads {
            let awake = awake.saturating_sub(earlier.awake(process, id));
            if !awake.is_zero() {
                *shares.entry(process).or_default() += awake.as_secs_f64() / span;
            }
        }
        shares
    }
}

/// The entries of a directory of `/proc` that are numbers.
fn numbers(directory: &str) -> impl Iterator<Item = u32> + use<> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

fn threads_of(process: u32) -> impl Iterator<Item = Thread> {
    numbers(&format!("/proc/{process}/task")).filter_map(move |id| {
        Some(Thread { process, id, awake: awake(&format!("/proc/{process}/task/{id}/schedstat"))? })
    })
}

/// The first two numbers of a `schedstat`: nanoseconds on a processor, and waiting for one.
fn awake(path: &str) -> Option<Duration> {
    let mut text = [0; 64];
    let length = File::open(path).ok()?.read(&mut text).ok()?;
    let mut words = str::from_utf8(&text[..length]).ok()?.split_ascii_whitespace();
    let mut nanoseconds = || words.next()?.parse().ok().map(Duration::from_nanos);
    Some(nanoseconds()? + nanoseconds()?)
}

/// The work of one connection's applications.
#[derive(Default)]
pub(crate) struct Work {
    /// The highest process of the family that is looked at.
    root: Option<u32>,
    parents: HashMap<u32, u32>,
    samples: VecDeque<Sample>,
    /// How much of the time each process's threads are awake while nobody acts.
    ambient: HashMap<u32, f64>,
}

impl Work {
    /// From now on, look at the family of this process; of none when it does not run on this machine.
    pub(crate) fn follow(&mut self, pid: Option<u32>) {
        self.root = pid.map(|pid| self.root_of(pid));
    }

    /// Takes note of what the family has done so far.
    pub(crate) fn sample(&mut self) {
        if self.root.is_some() && self.samples.back().is_none_or(|last| last.at.elapsed() >= SHORTEST_SPAN) {
            let now = self.take();
            self.push(now);
        }
    }

    fn take(&mut self) -> Sample {
        let Some(root) = self.root else { return Sample::take(&[]) };
        let family: Vec<u32> = numbers("/proc").filter(|&pid| self.descends(pid, root)).collect();
        Sample::take(&family)
    }

    fn push(&mut self, sample: Sample) {
        if self.samples.len() == MAX_SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }

    /// An action is about to begin: what was done since the last look was done without one.
    pub(crate) fn take_stock(&mut self) {
        if self.samples.back().is_none_or(|last| last.at.elapsed() < SHORTEST_REST) {
            return;
        }
        let now = self.take();
        if let Some(last) = self.samples.back() {
            self.ambient = now.shares_since(last);
        }
        self.push(now);
    }

    /// Whether the family was at work just now.
    pub(crate) fn busy(&mut self) -> bool {
        let now = self.take();
        let recent = self.samples.iter().find(|sample| now.at.duration_since(sample.at) <= LOOKBACK);
        let Some(earlier) = recent.or(self.samples.back()) else { return false };
        if now.at.duration_since(earlier.at) < SHORTEST_SPAN {
            return false;
        }
        let usual = |process| self.ambient.get(&process).copied().unwrap_or(0.0);
        let shares = now.shares_since(earlier);
        let unusual: f64 =
            shares.iter().map(|(&process, share)| (share - AMBIENT_TOLERANCE * usual(process)).max(0.0)).sum();
        let mut resting = now.threads.iter().filter(|thread| usual(thread.process) < RESTING_SHARE);
        let busy = unusual > BUSY_SHARE || {
            // Where nobody waits for a processor, only a wait for a disk is left to be found; it is the main thread that starts.
            let contended = is_contended();
            resting.any(|thread| (contended || thread.id == thread.process) && is_awake(thread))
        };
        self.push(now);
        busy
    }

    fn parent(&mut self, pid: u32) -> Option<u32> {
        if let Some(&parent) = self.parents.get(&pid) {
            return Some(parent);
        }
        let (_, parent) = stat(&format!("/proc/{pid}/stat"))?;
        if self.parents.len() >= MAX_PARENTS {
            self.parents.clear();
        }
        self.parents.insert(pid, parent);
        Some(parent)
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

/// Whether a thread is running, or waiting for a processor or a disk. How long it has waited so far is in no `schedstat` yet.
fn is_awake(thread: &Thread) -> bool {
    stat(&format!("/proc/{}/task/{}/stat", thread.process, thread.id))
        .is_some_and(|(state, _)| matches!(state, 'R' | 'D'))
}

/// Whether any thread of this machine but ours wants a processor now.
fn is_contended() -> bool {
    let loads = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let runnable = loads.split_ascii_whitespace().nth(3).and_then(|counts| counts.split('/').next());
    runnable.is_none_or(|count| count != "1")
}

/// State and parent in a `stat` file. The name before them, in brackets, may contain anything.
fn stat(path: &str) -> Option<(char, u32)> {
    let stat = fs::read(path).ok()?;
    let after_name = stat.iter().rposition(|&byte| byte == b')')? + 1;
    let mut words = str::from_utf8(&stat[after_name..]).ok()?.split_ascii_whitespace();
    Some((words.next()?.chars().next()?, words.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};
    use std::thread::sleep;

    use super::*;

    /// A program of the shell's, ended with the test.
    struct Program(Child);

    impl Program {
        fn run(script: &str) -> Self {
            Self(Command::new("sh").args(["-c", script]).spawn().expect("a shell"))
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

    fn busy_in_the_next(span: Duration, work: &mut Work) -> bool {
        work.sample();
        sleep(span);
        work.busy()
    }

    /// Until it is, or long after it should have been.
    fn becomes_busy(work: &mut Work, busy: bool) -> bool {
        (0..200).any(|_| busy_in_the_next(LOOKBACK, work) == busy)
    }

    #[test]
    fn a_program_that_sleeps_is_not_busy() {
        let program = Program::run("exec sleep 60");
        assert!(becomes_busy(&mut program.work(), false));
    }

    #[test]
    fn what_a_program_started_counts_until_it_is_over() {
        let program = Program::run("sh -c 'i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done'; exec sleep 60");
        let mut work = program.work();
        assert!(becomes_busy(&mut work, true));
        assert!(becomes_busy(&mut work, false));
    }

    #[test]
    fn what_it_does_while_nobody_acts_does_not_count() {
        let program = Program::run("while :; do :; done");
        let mut work = program.work();
        assert!(becomes_busy(&mut work, true));
        sleep(SHORTEST_REST);
        work.take_stock();
        assert!(!busy_in_the_next(LOOKBACK, &mut work));
    }

    #[test]
    fn we_are_not_our_programs_family() {
        let program = Program::run("exec sleep 60");
        assert_eq!(program.work().root, Some(program.0.id()));
    }

    #[test]
    fn the_numbers_of_proc_are_read() {
        assert!(awake(&format!("/proc/{}/schedstat", process::id())).is_some());
        assert_eq!(stat("/proc/self/stat").map(|(_, parent)| parent), Some(std::os::unix::process::parent_id()));
        assert_eq!(awake("/proc/self/comm"), None);
    }
}
