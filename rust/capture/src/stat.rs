//! The kernel's facts about a process, in `/proc`.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};

/// The numbers of the calls that wait for something to happen, and which of their arguments is the limit in milliseconds: `poll`,
/// `epoll_wait`, `epoll_pwait`. Elsewhere `poll` is `ppoll`, whose limit is not among the arguments that are told.
const WAITS: &[(u32, usize)] =
    if cfg!(all(target_arch = "x86_64", target_pointer_width = "64")) { &[(7, 2), (232, 3), (281, 3)] } else { &[] };

/// Files of `/proc` that are kept open, of all desktops together: a quarter of what a process may open without being configured.
pub(crate) const MAX_OPEN: usize = 256;

static OPEN: AtomicUsize = AtomicUsize::new(0);

/// A file that counts among those kept open.
pub(crate) struct Kept(pub(crate) File);

impl Kept {
    /// `Err` with the file when there are enough.
    pub(crate) fn new(file: File) -> Result<Self, File> {
        let room =
            OPEN.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |open| (open < MAX_OPEN).then_some(open + 1));
        if room.is_ok() { Ok(Self(file)) } else { Err(file) }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        OPEN.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The contents of a `stat` file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) state: char,
    pub(crate) parent: u32,
    group: i32,
    /// The number of its controlling terminal; 0 for none.
    pub(crate) terminal: i32,
    /// The process group that has that terminal's keyboard.
    foreground: i32,
    /// The page faults of the children that were waited for.
    pub(crate) reaped: u64,
    /// When it began, in hundredths of a second since the machine did.
    pub(crate) begun: u64,
}

/// The same number for now.
pub(crate) fn boot_ticks() -> u64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Boottime);
    tv_sec as u64 * 100 + tv_nsec as u64 / 10_000_000
}

impl Stat {
    pub(crate) fn of(path: &str) -> Option<Self> {
        let stat = fs::read(path).ok()?;
        // The name before them, in brackets, may contain anything.
        let after_name = stat.iter().rposition(|&byte| byte == b')')? + 1;
        let mut words = str::from_utf8(&stat[after_name..]).ok()?.split_ascii_whitespace();
        let state = words.next()?.chars().next()?;
        let parent = words.next()?.parse().ok()?;
        let group = words.next()?.parse().ok()?;
        let terminal = words.nth(1)?.parse().ok()?;
        let foreground = words.next()?.parse().ok()?;
        let reaped = words.nth(2)?.parse().ok()?;
        let begun = words.nth(10)?.parse().ok()?;
        Some(Self { state, parent, group, terminal, foreground, reaped, begun })
    }

    /// Whether a process has been stopped: it has not yet read its input.
    pub(crate) fn is_stopped(&self) -> bool {
        matches!(self.state, 'T' | 't')
    }

    /// Whether it is of the job that a terminal's shell waits for.
    pub(crate) fn is_in_foreground(&self) -> bool {
        self.terminal != 0 && self.group == self.foreground
    }
}

/// What a thread sleeps for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sleep {
    /// The end of a time, and nothing else.
    Timer,
    /// A child's end.
    Child,
    /// For its control group to be thawed.
    Freezer,
    /// For something that happens, such as input, or it does not sleep, or it is not known.
    Other,
}

/// A process's main thread, and where the kernel shows what it sleeps for.
pub(crate) struct Sleeper {
    pub(crate) process: u32,
    wchan: Option<Kept>,
}

impl Sleeper {
    pub(crate) fn new(process: u32) -> Self {
        Self { process, wchan: None }
    }

    /// What it sleeps for now.
    pub(crate) fn sleep(&mut self) -> Sleep {
        if let Some(Kept(file)) = &self.wchan {
            return Sleep::of(file);
        }
        let Ok(file) = File::open(format!("/proc/{}/wchan", self.process)) else { return Sleep::Other };
        let sleep = Sleep::of(&file);
        self.wchan = Kept::new(file).ok();
        sleep
    }
}

impl Sleep {
    /// By a `wchan` file: the kernel's function that has put it to sleep.
    fn of(wchan: &File) -> Self {
        let mut name = [0; 64];
        let length = wchan.read_at(&mut name, 0).unwrap_or(0);
        match &name[..length] {
            b"hrtimer_nanosleep" => Self::Timer,
            b"do_wait" | b"__do_wait" => Self::Child,
            b"do_freezer_trap" | b"__refrigerator" => Self::Freezer,
            _ => Self::Other,
        }
    }
}

/// What a process's main thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// Nothing: it runs, or waits for a processor.
    Nothing,
    /// Something that happens, and no timer.
    Event,
    /// Something that happens, or a timer that ended so long after the wait began.
    EventOrTimer(Duration),
    /// It is not known.
    Unknown,
}

impl Waiting {
    pub(crate) fn of(process: u32) -> Self {
        fs::read_to_string(format!("/proc/{process}/syscall")).map_or(Self::Unknown, |call| Self::read(&call))
    }

    /// Reads a `syscall` file: the number of the call that the thread is in, and its arguments.
    fn read(call: &str) -> Self {
        let mut words = call.split_ascii_whitespace();
        let number = match words.next() {
            Some("running") => return Self::Nothing,
            number => number.and_then(|number| number.parse::<u32>().ok()),
        };
        let Some(&(_, argument)) = WAITS.iter().find(|(call, _)| Some(*call) == number) else { return Self::Unknown };
        let limit = words.nth(argument).and_then(|limit| u64::from_str_radix(limit.strip_prefix("0x")?, 16).ok());
        // Without a limit it is negative, in 32 bits.
        limit.map_or(Self::Unknown, |limit| {
            u64::try_from(limit as u32 as i32)
                .map_or(Self::Event, |limit| Self::EventOrTimer(Duration::from_millis(limit)))
        })
    }
}

/// Whether a process has this display in its environment (`:99`); `None` where it shows no environment, as between two programs.
pub(crate) fn is_shown_on(process: u32, display: &str) -> Option<bool> {
    let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
    let is_display = |entry: &[u8]| {
        let rest = entry.strip_prefix(b"DISPLAY=").and_then(|value| value.strip_prefix(display.as_bytes()));
        rest.is_some_and(|screen| screen.is_empty() || screen[0] == b'.')
    };
    (!environment.is_empty()).then(|| environment.split(|&byte| byte == 0).any(is_display))
}

/// Whether a process has loaded GTK, of any version.
pub(crate) fn uses_gtk(process: u32) -> bool {
    const LIBRARY: &[u8] = b"/libgtk-";
    let maps = fs::read(format!("/proc/{process}/maps")).unwrap_or_default();
    maps.windows(LIBRARY.len()).any(|part| part == LIBRARY)
}

/// The entries of a directory of `/proc` that are numbers.
pub(crate) fn numbers(directory: &str) -> impl Iterator<Item = u32> + use<> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// Whether any thread of this machine but this one wants a processor now.
pub(crate) fn is_contended() -> bool {
    let loads = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let runnable = loads.split_ascii_whitespace().nth(3).and_then(|counts| counts.split('/').next());
    runnable.is_none_or(|count| count != "1")
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn the_numbers_of_a_process_are_read() {
        let ours = Stat::of("/proc/self/stat").expect("a process");
        assert_eq!(ours.parent, std::os::unix::process::parent_id());
        assert!(!ours.is_stopped());
        assert!(ours.begun <= boot_ticks());
        assert!(ours.begun + 360_000 > boot_ticks(), "an hour ago");
        assert!(Stat::of("/proc/self/comm").is_none());
    }

    #[test]
    fn the_display_of_a_process_is_that_of_its_environment() {
        let shown_on = |display: Option<&str>| {
            let mut command = Command::new("cat");
            command.env_clear().envs(display.map(|display| ("DISPLAY", display))).stdin(Stdio::piped());
            let mut program = command.spawn().expect("cat");
            let shown = is_shown_on(program.id(), ":7");
            drop(program.stdin.take());
            program.wait().expect("a child");
            shown
        };
        assert_eq!(shown_on(Some(":7")), Some(true));
        assert_eq!(shown_on(Some(":7.1")), Some(true));
        assert_eq!(shown_on(Some(":77")), Some(false));
        assert_eq!(shown_on(None), None);
    }

    #[test]
    #[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
    fn what_a_process_waits_for_is_told() {
        let cases = [
            ("running\n", Waiting::Nothing),
            ("7 0x55 0x3 0xffffffff 0x0 0x0 0x0 0x7ffd 0x7f72\n", Waiting::Event),
            ("7 0x55 0x3 0xffffffffffffffff 0x0 0x0 0x0 0x7ffd 0x7f72\n", Waiting::Event),
            ("7 0x55 0x3 0xf7 0x0 0x0 0x0 0x7ffd 0x7f72\n", Waiting::EventOrTimer(Duration::from_millis(247))),
            ("281 0x5 0x7f 0x20 0x1f4 0x0 0x8 0x7ffd 0x7f72\n", Waiting::EventOrTimer(Duration::from_millis(500))),
            ("202 0x7f72 0x189 0x0 0x0 0x0 0x0 0x7ffd 0x7f72\n", Waiting::Unknown),
            ("-1 0x7ffd 0x7f72\n", Waiting::Unknown),
            ("7 0x55\n", Waiting::Unknown),
            ("", Waiting::Unknown),
        ];
        for (call, waiting) in cases {
            assert_eq!(Waiting::read(call), waiting, "{call}");
        }
    }

    #[test]
    fn what_a_process_sleeps_for_is_told() {
        let scripts =
            [("exec sleep 60", Sleep::Timer), ("sh -c 'read -r _'; true", Sleep::Child), ("read -r _", Sleep::Other)];
        for (script, sleep) in scripts {
            let mut shell = Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).spawn().expect("a shell");
            let mut sleeper = Sleeper::new(shell.id());
            let told = (0..400).any(|_| {
                std::thread::sleep(std::time::Duration::from_millis(5));
                sleeper.sleep() == sleep
            });
            // A child ends with its input.
            drop(shell.stdin.take());
            let _ = shell.kill();
            let _ = shell.wait();
            assert!(told, "{script}");
        }
    }
}
