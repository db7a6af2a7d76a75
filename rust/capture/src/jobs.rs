//! Commands of terminals that sleep for a time (`sleep 0.1` in a loop): they go on by themselves, whatever the screen shows.

use std::collections::HashSet;

use crate::stat::{Sleep, Sleeper, Stat};

/// A process that has a terminal.
struct Process {
    terminal: i32,
    main: Sleeper,
}

/// The processes of a family that have a terminal, by their numbers in ascending order.
#[derive(Default)]
pub(crate) struct Jobs {
    processes: Vec<Process>,
    /// The terminals whose commands sleep on their own, without any input.
    usual: HashSet<i32>,
}

impl Jobs {
    /// The processes that have a terminal now, with the number of that, by their own numbers in ascending order.
    pub(crate) fn list(&mut self, found: &[(u32, i32)]) {
        let mut known = std::mem::take(&mut self.processes).into_iter().peekable();
        for &(process, terminal) in found {
            while known.next_if(|job| job.main.process < process).is_some() {}
            let known = known.next_if(|job| job.main.process == process && job.terminal == terminal);
            self.processes.push(known.unwrap_or_else(|| Process { terminal, main: Sleeper::new(process) }));
        }
    }

    /// Called before an action: what sleeps now does so on its own account.
    pub(crate) fn take_stock(&mut self) {
        self.usual = self.processes.iter_mut().filter_map(Process::sleeping).collect();
    }

    /// Whether a command sleeps for a time where none did before.
    pub(crate) fn sleep(&mut self) -> bool {
        let usual = &self.usual;
        self.processes.iter_mut().filter(|job| !usual.contains(&job.terminal)).any(|job| job.sleeping().is_some())
    }
}

impl Process {
    /// The terminal whose shell waits for it, where it sleeps for a time.
    fn sleeping(&mut self) -> Option<i32> {
        if self.main.sleep() != Sleep::Timer {
            return None;
        }
        let stat = Stat::of(&format!("/proc/{}/stat", self.main.process))?;
        stat.is_in_foreground().then_some(self.terminal)
    }
}
