//! The processes that belong together, and their threads, as `/proc` lists them.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::process;
use std::time::{Duration, Instant};

use rustix::fs::{PROC_SUPER_MAGIC, fstatfs};

use crate::sample::Done;
use crate::stat::{Kept, Stat};

/// Parents are remembered for a while, because they may be gone when they are looked up.
const MAX_PARENTS: usize = 1 << 16;
pub(crate) const INIT: u32 = 1;
/// A process that has a number already may not be listed yet; after this long it is.
pub(crate) const LISTED_AFTER: Duration = Duration::from_millis(20);

/// The three numbers of a `schedstat`: nanoseconds on a processor, nanoseconds waiting for one, and how often it got one.
fn done(file: &File) -> Option<Done> {
    let mut text = [0; 64];
    let length = file.read_at(&mut text, 0).ok()?;
    let mut words = str::from_utf8(&text[..length]).ok()?.split_ascii_whitespace();
    let mut number = || words.next()?.parse::<u64>().ok();
    let awake = Duration::from_nanos(number()?) + Duration::from_nanos(number()?);
    Some(Done { awake, wakes: u32::try_from(number()?).unwrap_or(u32::MAX) })
}

/// A thread of the family, and where the kernel reports what it has done.
pub(crate) struct Member {
    pub(crate) process: u32,
    pub(crate) id: u32,
    pub(crate) schedstat: Option<Kept>,
}

impl Member {
    pub(crate) fn new(process: u32, id: u32) -> Self {
        Self { process, id, schedstat: None }
    }

    /// What it has done; `None` once it is gone.
    pub(crate) fn done(&mut self) -> Option<Done> {
        if let Some(Kept(file)) = &self.schedstat {
            return done(file);
        }
        let file = File::open(format!("/proc/{}/task/{}/schedstat", self.process, self.id)).ok()?;
        let done = done(&file);
        self.schedstat = Kept::new(file).ok();
        done
    }
}

/// Detects whether processes or threads were started: the kernel numbers each, and publishes the latest number.
#[derive(Default)]
pub(crate) struct Births {
    loads: Option<Kept>,
    /// The last number given, and when it was first seen.
    latest: Option<(u32, Instant)>,
    listed_at: Option<Instant>,
}

impl Births {
    pub(crate) fn new() -> Self {
        // A container's own `/proc/loadavg` (lxcfs) is seconds behind.
        let genuine = |file: &File| fstatfs(file).is_ok_and(|fs| fs.f_type == PROC_SUPER_MAGIC);
        let loads = File::open("/proc/loadavg").ok().filter(genuine).and_then(|file| Kept::new(file).ok());
        Self { loads, latest: None, listed_at: None }
    }

    /// Whether everything that runs now was in the listing made when this was last called.
    pub(crate) fn none_since_listed(&mut self) -> bool {
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

/// The listed processes, with their parents.
#[derive(Default)]
pub(crate) struct Ancestry {
    /// Of each its parent, and when it began.
    origins: HashMap<u32, (u32, u64)>,
}

impl Ancestry {
    pub(crate) fn parent(&mut self, pid: u32) -> Option<u32> {
        self.origin(pid).map(|(parent, _)| parent)
    }

    /// Its parent, and when it began.
    pub(crate) fn origin(&mut self, pid: u32) -> Option<(u32, u64)> {
        if let Some(&origin) = self.origins.get(&pid) {
            return Some(origin);
        }
        let Stat { parent, begun, .. } = Stat::of(&format!("/proc/{pid}/stat"))?;
        if self.origins.len() >= MAX_PARENTS {
            self.origins.clear();
        }
        self.origins.insert(pid, (parent, begun));
        Some((parent, begun))
    }

    pub(crate) fn descends(&mut self, mut pid: u32, root: u32) -> bool {
        while pid != root {
            match self.parent(pid) {
                Some(parent) if parent > INIT => pid = parent,
                _ => return false,
            }
        }
        true
    }

    pub(crate) fn root_of(&mut self, pid: u32) -> u32 {
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

    /// The parent of a process that may be gone, if it was looked up before.
    pub(crate) fn known_parent(&self, pid: u32) -> Option<u32> {
        self.origins.get(&pid).map(|&(parent, _)| parent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_proc_are_read() {
        let read = |path: &str| done(&File::open(path).expect("a file of ours"));
        assert!(read("/proc/self/schedstat").is_some());
        assert!(read("/proc/self/comm").is_none());
    }
}
