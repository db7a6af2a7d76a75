//! Whether the clients of an X server have read what it sent them, by `sock_diag(7)`. Nobody tells who gets a hot key, and who
//! gets it may start a program.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::fs::fstat;

use crate::inbox::{self, SHOW_NAME, SHOW_PEER, SHOW_QUEUES, SOCK_DIAG_BY_FAMILY};
use crate::sock_diag;
use crate::stat::{Stat, numbers};

/// How long after a key a client is waited for.
const PATIENCE: Duration = Duration::from_secs(1);
/// What has just read a key has yet to do what it is for.
const HANDLING: Duration = Duration::from_millis(50);
/// On a machine with more sockets than this the look takes too long.
const MOST_SOCKETS: usize = 4_000;
/// Nor are the processes of clients looked for among more than these.
const MOST_PROCESSES: usize = 1_000;
const ESTABLISHED: u32 = 1 << 1;
const LIST: u16 = 0x301;

/// Whether a client has yet to read what the server sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behind {
    No,
    Yes,
    /// It did not read in time, and is not waited for until it has.
    Late,
}

/// A server, as the kernel knows it.
struct Server {
    netlink: OwnedFd,
    /// The connection that asks.
    ours: u32,
    /// The name of the server's own ends.
    name: Vec<u8>,
}

/// The clients of one X server, without those of this process.
pub(crate) struct Clients {
    /// `None` where the kernel does not report them.
    server: Option<Server>,
    /// Whether connections of this process do not count: they are read by threads that nobody waits for.
    leaves_out_own: bool,
    /// Those that have not read an earlier key in time.
    late: HashSet<u32>,
    /// Whether this key may be hot: anybody may get it.
    hot: bool,
    /// Those that had yet to read just after this key was sent, until their processes are looked for.
    early: HashSet<u32>,
    /// Those that were found not to have read soon after this key, and their processes.
    slow: HashSet<u32>,
    readers: Vec<u32>,
    /// When one of these was last found not to have read.
    behind: Option<Instant>,
    /// All of them, as of the latest look; those whose processes were looked for, and these; and which of these ran before the key.
    connected: HashSet<u32>,
    known: HashSet<u32>,
    processes: Vec<u32>,
    awake: HashSet<u32>,
}

impl Server {
    fn of(ours: BorrowedFd<'_>) -> Option<Self> {
        let netlink = sock_diag::kernel()?;
        let ours = u32::try_from(fstat(ours).ok()?.st_ino).ok()?;
        let name = inbox::server_of(&netlink, ours)?;
        Some(Self { netlink, ours, name })
    }

    /// The clients, and whether each has something to read.
    fn clients(&self) -> Option<HashMap<u32, bool>> {
        let question = inbox::question(LIST, ESTABLISHED, 0, SHOW_NAME | SHOW_PEER | SHOW_QUEUES);
        let sockets = sock_diag::list(&self.netlink, &question, SOCK_DIAG_BY_FAMILY, MOST_SOCKETS, inbox::told)?;
        let servers: HashSet<u32> = sockets.iter().filter(|one| one.name == self.name).map(|one| one.socket).collect();
        let is_client = |one: &&inbox::Told| one.socket != self.ours && servers.contains(&one.peer);
        Some(sockets.iter().filter(is_client).map(|one| (one.socket, one.unread > 0)).collect())
    }
}

impl Clients {
    /// Those of the server at the other end of `ours`.
    pub(crate) fn of(ours: BorrowedFd<'_>) -> Self {
        Self {
            server: Server::of(ours),
            leaves_out_own: true,
            late: HashSet::new(),
            hot: false,
            early: HashSet::new(),
            slow: HashSet::new(),
            readers: Vec::new(),
            behind: None,
            connected: HashSet::new(),
            known: HashSet::new(),
            processes: Vec::new(),
            awake: HashSet::new(),
        }
    }

    /// Called before keys are sent, which may be `hot`: who has read by now is waited for again.
    pub(crate) fn begin(&mut self, hot: bool) {
        self.forget();
        self.awake.clear();
        self.hot = hot;
        if hot {
            self.awake.extend(self.processes.iter().copied().filter(|&process| is_running(process)));
        }
        if !self.late.is_empty() {
            let unread = self.unread();
            self.late.retain(|client| unread.contains(client));
        }
    }

    /// Called just after keys were sent, to know who gets them: who reads them may be stopped before it handles them.
    pub(crate) fn note_early(&mut self) {
        self.early = self.unread();
        self.early.retain(|client| !self.late.contains(client));
    }

    /// Looks through all processes for those, and after a hot key for all clients' if there are new ones.
    pub(crate) fn find_early(&mut self) {
        let early = std::mem::take(&mut self.early);
        self.expect(&early);
        if self.hot && !self.connected.is_subset(&self.known) {
            self.known.clone_from(&self.connected);
            self.processes = owners(&self.known);
            self.processes.retain(|&process| process != std::process::id());
        }
    }

    /// Whether one of them has yet to read what it was sent, or has only just read it, `since` after a key was. What processes do that
    /// are `examined` otherwise does not matter.
    pub(crate) fn are_behind(&mut self, since: Duration, examined: impl Fn(u32) -> bool) -> Behind {
        self.find_early();
        let mut unread = self.unread();
        unread.retain(|client| !self.late.contains(client));
        let patient = since < PATIENCE;
        if patient {
            self.expect(&unread);
        }
        unread.retain(|client| self.slow.contains(client));
        if !unread.is_empty() {
            self.behind = Some(Instant::now());
        } else if !self.are_handling(examined) {
            return Behind::No;
        }
        if patient {
            return Behind::Yes;
        }
        self.late.extend(unread);
        self.forget();
        Behind::Late
    }

    /// From now on until the next key, these clients are waited for.
    fn expect(&mut self, unread: &HashSet<u32>) {
        if unread.iter().all(|client| self.slow.contains(client)) {
            return;
        }
        let own = if self.leaves_out_own { sockets_of("self") } else { HashSet::new() };
        let is_news = |client: &u32| !self.slow.contains(client) && !own.contains(client);
        let news: HashSet<u32> = unread.iter().copied().filter(is_news).collect();
        self.readers.extend(owners(&news));
        self.slow.extend(news);
    }

    /// Whether a key may not have been handled that was read. Who read it before anybody looked runs now, and did not before.
    fn are_handling(&self, examined: impl Fn(u32) -> bool) -> bool {
        let begins = |&process: &u32| !self.awake.contains(&process) && !examined(process) && is_running(process);
        self.behind.is_some_and(|at| at.elapsed() < HANDLING)
            || self.readers.iter().any(|&process| is_up(process))
            || (self.hot && self.processes.iter().any(begins))
    }

    fn forget(&mut self) {
        self.early.clear();
        self.slow.clear();
        self.readers.clear();
        self.behind = None;
    }

    /// The clients with something to read; none where the kernel does not tell.
    fn unread(&mut self) -> HashSet<u32> {
        let clients = self.server.as_ref().and_then(Server::clients);
        if clients.is_none() {
            self.server = None;
        }
        let clients = clients.unwrap_or_default();
        self.connected = clients.keys().copied().collect();
        clients.into_iter().filter_map(|(client, is_unread)| is_unread.then_some(client)).collect()
    }
}

/// The processes that have one of these sockets.
fn owners(sockets: &HashSet<u32>) -> Vec<u32> {
    let processes: Vec<u32> = numbers("/proc").take(MOST_PROCESSES + 1).collect();
    if sockets.is_empty() || processes.len() > MOST_PROCESSES {
        return Vec::new();
    }
    let has_one = |process: &u32| !sockets_of(&process.to_string()).is_disjoint(sockets);
    processes.into_iter().filter(has_one).collect()
}

/// The numbers of a process's sockets.
fn sockets_of(process: &str) -> HashSet<u32> {
    let descriptors = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    let number = |name: &str| name.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok();
    descriptors.filter_map(|each| number(fs::read_link(each.path()).ok()?.to_str()?)).collect()
}

/// Whether a process has not come to rest, because it is at work, waits for a processor, or is stopped.
fn is_up(process: u32) -> bool {
    Stat::of(&format!("/proc/{process}/stat")).is_some_and(|stat| stat.is_stopped() || matches!(stat.state, 'R' | 'D'))
}

/// Whether a process runs, or waits for a processor.
fn is_running(process: u32) -> bool {
    Stat::of(&format!("/proc/{process}/stat")).is_some_and(|stat| stat.state == 'R')
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::fd::AsFd;
    use std::os::unix::net::{UnixListener, UnixStream};

    use std::process;

    use super::*;

    #[test]
    fn a_client_that_has_not_read_is_waited_for_and_then_given_up() {
        let path = std::env::temp_dir().join(format!("deskhand-clients-{}", process::id()));
        let listener = UnixListener::bind(&path).expect("a listener");
        let [ours, mut slow, mut other] = [(); 3].map(|()| UnixStream::connect(&path).expect("a client"));
        fs::remove_file(&path).expect("a socket");
        let mut servers = [(); 3].map(|()| listener.accept().expect("a connection").0);
        let mut send = |client: usize| servers[client].write_all(&[7; 32]).expect("room");
        let receive = |client: &mut UnixStream| client.read_exact(&mut [0; 32]).expect("as many bytes");
        let mut clients = Clients::of(ours.as_fd());
        let soon = Duration::from_millis(100);
        send(1);
        assert_eq!(clients.are_behind(soon, |_| false), Behind::No, "a connection of this process");
        clients.leaves_out_own = false;
        send(0);
        receive(&mut slow);
        assert_eq!(clients.are_behind(soon, |_| false), Behind::No, "the connection that asks");
        send(1);
        assert_eq!(
            clients.are_behind(PATIENCE, |_| false),
            Behind::No,
            "it has got something just now, long after the key"
        );
        assert_eq!(clients.are_behind(soon, |_| false), Behind::Yes);
        assert!(clients.readers.contains(&process::id()));
        assert_eq!(clients.are_behind(PATIENCE, |_| false), Behind::Late);
        assert_eq!(clients.are_behind(soon, |_| false), Behind::No, "it is given up");
        clients.begin(true);
        assert_eq!(clients.are_behind(soon, |_| false), Behind::No, "it has still not read");
        send(2);
        assert_eq!(clients.are_behind(soon, |_| false), Behind::Yes, "another has not");
        assert_eq!(clients.slow.len(), 1);
        receive(&mut slow);
        receive(&mut other);
        clients.readers.clear();
        // Times that no load of the machine reaches.
        clients.behind = Instant::now().checked_add(Duration::from_secs(3600));
        assert_eq!(clients.are_behind(soon, |_| false), Behind::Yes, "it has only just read");
        clients.behind = Instant::now().checked_sub(HANDLING);
        assert_eq!(clients.are_behind(soon, |_| false), Behind::No, "it has done what the key is for");
        clients.begin(true);
        send(1);
        clients.note_early();
        receive(&mut slow);
        clients.are_behind(soon, |_| false);
        assert!(clients.readers.contains(&process::id()), "it has read before anybody looked");
        clients.begin(true);
        send(1);
        assert_eq!(clients.are_behind(soon, |_| false), Behind::Yes, "it has read since it was given up");
    }

    #[test]
    fn a_process_that_runs_since_the_key_may_have_read_it() {
        let [ours, _peer] = UnixStream::pair().expect("a pair").into();
        let mut clients = Clients::of(ours.as_fd());
        let mut program = process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("a shell");
        clients.processes.push(program.id());
        let soon = Duration::from_millis(100);
        let runs = (0..2000).any(|_| {
            std::thread::sleep(Duration::from_millis(1));
            is_running(program.id())
        });
        let after_another = clients.are_behind(soon, |_| false);
        clients.hot = true;
        let told = clients.are_behind(soon, |_| false);
        let examined = clients.are_behind(soon, |process| process == program.id());
        clients.begin(true);
        let before = clients.are_behind(soon, |_| false);
        program.kill().expect("a child");
        program.wait().expect("a child");
        assert!(runs);
        assert_eq!(after_another, Behind::No, "the key is not hot");
        assert_eq!(told, Behind::Yes);
        assert_eq!(examined, Behind::No);
        assert_eq!(before, Behind::No, "it ran before the key");
        clients.begin(true);
        assert_eq!(clients.are_behind(soon, |_| false), Behind::No);
    }
}
