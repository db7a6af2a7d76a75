//! Programs that other applications start for a display once an action has begun: a window manager's menu, a hot key's. A
//! command that runs in another window (a build, a loop of a shell) starts programs too, all the time, and for no action.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use crate::family::{Ancestry, INIT};
use crate::stat::{Stat, boot_ticks, is_shown_on};

/// Of the programs that one process starts during an action, more than this many are not the action's.
const MOST: u32 = 4;
/// A process that has started so many is known for this long, and for as long as children of its own end between two actions.
const KNOWN: Duration = Duration::from_secs(1);

/// A process that was there before the action, and starts programs.
struct Starter {
    /// How many since the action began; `MOST` at least for one that is known to start them all the time.
    programs: u32,
    /// The page faults of the children that it had waited for, and when these were last found to be more, or a child new.
    reaped: u64,
    at: Instant,
}

/// The programs started for one display since an action began.
pub(crate) struct Started {
    display: String,
    /// When the action began.
    begun: u64,
    /// Those that count, and when they were found; and those that do not.
    young: Vec<(u32, Instant)>,
    others: HashSet<u32>,
    starters: HashMap<u32, Starter>,
}

impl Starter {
    /// Whether it starts programs all the time, also while nobody acts.
    fn goes_on(&mut self, process: u32) -> bool {
        let Some(stat) = Stat::of(&format!("/proc/{process}/stat")).filter(|_| self.programs >= MOST) else {
            return false;
        };
        if stat.reaped != self.reaped {
            (self.reaped, self.at) = (stat.reaped, Instant::now());
        }
        self.at.elapsed() < KNOWN
    }
}

impl Started {
    pub(crate) fn new(display: String) -> Self {
        Self { display, begun: boot_ticks(), young: Vec::new(), others: HashSet::new(), starters: HashMap::new() }
    }

    /// Called before an action.
    pub(crate) fn take_stock(&mut self) {
        self.begun = boot_ticks();
        self.young.clear();
        self.others.clear();
        self.starters.retain(|&process, starter| starter.goes_on(process));
    }

    /// Those that count, and when they were found.
    pub(crate) fn young(&self) -> &[(u32, Instant)] {
        &self.young
    }

    /// Whether a process was started for this display since the action began, and may be of that action.
    pub(crate) fn counts(&mut self, process: u32, ancestry: &mut Ancestry) -> bool {
        let Some((parent, begun)) = ancestry.origin(process) else { return false };
        if begun < self.begun || self.others.contains(&process) {
            return false;
        }
        if self.young.iter().any(|&(young, _)| young == process) {
            return true;
        }
        // Between two programs it shows no display: then that of who has started it counts, if that one is known.
        let is_shown = is_shown_on(process, &self.display)
            .unwrap_or_else(|| parent <= INIT || is_shown_on(parent, &self.display) == Some(true));
        if !is_shown {
            return false;
        }
        let counts = !self.others.contains(&parent) && self.is_one_of_few(parent, ancestry);
        if counts {
            self.young.push((process, Instant::now()));
        } else {
            self.others.insert(process);
        }
        counts
    }

    /// Whether this process has not started many programs yet. Nobody knows whose an orphan is, and what was started for the
    /// action itself may start any number.
    fn is_one_of_few(&mut self, parent: u32, ancestry: &mut Ancestry) -> bool {
        if parent <= INIT || ancestry.origin(parent).is_none_or(|(_, begun)| begun >= self.begun) {
            return true;
        }
        let reaped = || Stat::of(&format!("/proc/{parent}/stat")).map_or(0, |stat| stat.reaped);
        let now = Instant::now();
        let starter = self.starters.entry(parent).or_insert_with(|| Starter { programs: 0, reaped: reaped(), at: now });
        starter.at = now;
        let few = starter.programs < MOST;
        starter.programs += u32::from(few);
        few
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::process::{Child, Command, Stdio};
    use std::thread::sleep;

    use super::*;
    use crate::stat::numbers;

    const DISPLAY: &str = ":deskhand-started";
    const SLEEP: &str = "sleep 60 &";

    /// A shell that carries out the lines that it reads, with its programs in a group of their own.
    struct Shell(Child);

    impl Shell {
        fn new() -> Self {
            let mut command = Command::new("setsid");
            command.args(["sh", "-c", "while read -r line; do eval \"$line\"; echo; done"]);
            command.env("DISPLAY", DISPLAY).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
            let mut shell = Self(command.spawn().expect("a shell"));
            shell.run(":");
            shell
        }

        fn run(&mut self, line: &str) {
            writeln!(self.0.stdin.as_mut().expect("a pipe"), "{line}").expect("a reader");
            self.0.stdout.as_mut().expect("a pipe").read_exact(&mut [0]).expect("an answer");
        }

        /// Starts one more, and returns whether it counts.
        fn start(&mut self, started: &mut Started) -> bool {
            let ancestry = &mut Ancestry::default();
            let before = children(self.0.id());
            self.run(SLEEP);
            let new: Vec<u32> = children(self.0.id()).difference(&before).copied().collect();
            assert_eq!(new.len(), 1);
            // Between two programs a process shows no environment.
            let environment = || std::fs::read(format!("/proc/{}/environ", new[0])).expect("a process of ours");
            assert!((0..2000).any(|_| {
                sleep(Duration::from_millis(1));
                !environment().is_empty()
            }));
            let counts = started.counts(new[0], ancestry);
            assert_eq!(started.counts(new[0], ancestry), counts, "it is asked twice");
            assert_eq!(started.young().iter().any(|&(young, _)| young == new[0]), counts);
            counts
        }
    }

    impl Drop for Shell {
        fn drop(&mut self) {
            let _ = writeln!(self.0.stdin.as_mut().expect("a pipe"), "kill -s KILL 0");
            let _ = self.0.wait();
        }
    }

    fn children(parent: u32) -> HashSet<u32> {
        let is_child = |pid: &u32| Stat::of(&format!("/proc/{pid}/stat")).is_some_and(|stat| stat.parent == parent);
        numbers("/proc").filter(is_child).collect()
    }

    fn later() {
        // Two clocks that tick a hundred times a second.
        sleep(Duration::from_millis(20));
    }

    #[test]
    fn what_starts_programs_all_the_time_does_not_do_so_for_an_action() {
        let mut shell = Shell::new();
        later();
        let mut started = Started::new(DISPLAY.into());
        let counted = (0..=MOST).filter(|_| shell.start(&mut started)).count();
        assert_eq!(counted, MOST as usize);
        started.take_stock();
        assert!(!shell.start(&mut started), "it has done so until just now");
        let long_ago = || Instant::now().checked_sub(KNOWN).expect("a time");
        started.starters.get_mut(&shell.0.id()).expect("a starter").at = long_ago();
        shell.run("kill $!; wait $!");
        started.take_stock();
        assert!(!shell.start(&mut started), "a child of its own has ended since");
        started.starters.get_mut(&shell.0.id()).expect("a starter").at = long_ago();
        started.take_stock();
        later();
        assert!(shell.start(&mut started), "it does so no more");
    }

    #[test]
    fn what_was_started_for_the_action_may_start_any_number() {
        let mut started = Started::new(DISPLAY.into());
        let mut shell = Shell::new();
        assert!(started.counts(shell.0.id(), &mut Ancestry::default()));
        assert!((0..3 * MOST).all(|_| shell.start(&mut started)));
    }

    #[test]
    fn the_programs_of_another_display_do_not_count() {
        let mut started = Started::new(format!("{DISPLAY}-other"));
        let mut shell = Shell::new();
        assert!(!shell.start(&mut started));
    }

    #[test]
    fn what_was_there_before_the_action_does_not_count() {
        let mut started = Started::new(DISPLAY.into());
        let mut shell = Shell::new();
        assert!(shell.start(&mut started));
        later();
        started.take_stock();
        assert!(children(shell.0.id()).iter().all(|&child| !started.counts(child, &mut Ancestry::default())));
    }
}
