//! Whether the clients of an X server have read what it sent them, by `sock_diag(7)`. Nobody tells who gets a hot key, and who
//! gets it may start a program.

use std::collections::HashSet;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::process;
use std::time::{Duration, Instant};

use rustix::fs::fstat;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::inbox::{self, SHOW_NAME, SHOW_PEER, SHOW_QUEUES, Told};
use crate::stat::{Stat, numbers};
use crate::traffic::owns;

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
const DONE: u16 = 3;

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
    /// The process whose own connections do not count: they are read by threads that nobody waits for.
    driver: u32,
    /// `None` where the kernel does not report them.
    server: Option<Server>,
    /// Those that did not read in time.
    late: HashSet<u32>,
    /// When one was last found that had not read, and the processes of those.
    behind: Option<Instant>,
    readers: Vec<u32>,
}

impl Server {
    fn of(ours: BorrowedFd<'_>) -> Option<Self> {
        let netlink = inbox::kernel()?;
        let ours = u32::try_from(fstat(ours).ok()?.st_ino).ok()?;
        let name = inbox::server_of(&netlink, ours)?;
        Some(Self { netlink, ours, name })
    }

    /// The clients with something to read.
    fn unread(&self) -> Option<HashSet<u32>> {
        let question = inbox::question(LIST, ESTABLISHED, 0, SHOW_NAME | SHOW_PEER | SHOW_QUEUES);
        send(&self.netlink, &question, SendFlags::empty()).ok()?;
        let mut sockets: Vec<Told> = Vec::new();
        let mut buffer = vec![0; 1 << 16];
        while sockets.len() <= MOST_SOCKETS {
            let (length, _) = recv(&self.netlink, &mut *buffer, RecvFlags::empty()).ok()?;
            if read(&buffer[..length], &mut sockets)? {
                let servers: HashSet<u32> =
                    sockets.iter().filter(|one| one.name == self.name).map(|one| one.socket).collect();
                let waits = |one: &&Told| one.unread > 0 && one.socket != self.ours && servers.contains(&one.peer);
                return Some(sockets.iter().filter(waits).map(|one| one.socket).collect());
            }
        }
        None
    }
}

impl Clients {
    /// Those of the server at the other end of `ours`.
    pub(crate) fn of(ours: BorrowedFd<'_>) -> Self {
        Self {
            driver: process::id(),
            server: Server::of(ours),
            late: HashSet::new(),
            behind: None,
            readers: Vec::new(),
        }
    }

    /// Whether one of them has yet to read what it was sent, or has only just read it, `since` after a key was.
    pub(crate) fn are_behind(&mut self, since: Duration) -> Behind {
        let Some(mut unread) = self.server.as_ref().and_then(Server::unread) else {
            self.server = None;
            return Behind::No;
        };
        unread.retain(|&client| !owns(&[self.driver], client));
        self.late.retain(|client| unread.contains(client));
        let waits = unread.iter().any(|client| !self.late.contains(client));
        if waits {
            if self.behind.is_none_or(|at| at.elapsed() >= since) {
                self.readers = owners(&unread);
            }
            self.behind = Some(Instant::now());
        }
        let handles = |at: Instant| {
            at.elapsed() < HANDLING.min(since) || (at.elapsed() < since && self.readers.iter().any(|&pid| is_up(pid)))
        };
        if !waits && !self.behind.is_some_and(handles) {
            return Behind::No;
        }
        if since < PATIENCE {
            return Behind::Yes;
        }
        self.late.extend(unread);
        Behind::Late
    }
}

/// The processes that have one of these sockets.
fn owners(sockets: &HashSet<u32>) -> Vec<u32> {
    let processes: Vec<u32> = numbers("/proc").take(MOST_PROCESSES + 1).collect();
    if processes.len() > MOST_PROCESSES {
        return Vec::new();
    }
    let has_one = |&process: &u32| sockets.iter().any(|&socket| owns(&[process], socket));
    processes.into_iter().filter(has_one).collect()
}

/// Whether a process has not come to rest, because it is at work, waits for a processor, or is stopped.
fn is_up(process: u32) -> bool {
    Stat::of(&format!("/proc/{process}/stat")).is_some_and(|stat| stat.is_stopped() || matches!(stat.state, 'R' | 'D'))
}

/// Reads one message of the kernel; whether it is the last.
fn read(mut message: &[u8], sockets: &mut Vec<Told>) -> Option<bool> {
    while !message.is_empty() {
        let length = u32::from_ne_bytes(message.get(..4)?.try_into().ok()?) as usize;
        if message.get(4..6)? == DONE.to_ne_bytes() {
            return Some(true);
        }
        sockets.push(inbox::told(message)?);
        message = message.get(length.next_multiple_of(4).max(4)..).unwrap_or_default();
    }
    Some(false)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::fd::AsFd;
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;

    #[test]
    fn a_client_that_has_not_read_is_waited_for_and_then_given_up() {
        let path = std::env::temp_dir().join(format!("deskhand-clients-{}", std::process::id()));
        let listener = UnixListener::bind(&path).expect("a listener");
        let [ours, mut other] = [(); 2].map(|()| UnixStream::connect(&path).expect("a client"));
        std::fs::remove_file(&path).expect("a socket");
        let mut servers = [(); 2].map(|()| listener.accept().expect("a connection").0);
        let mut clients = Clients::of(ours.as_fd());
        servers[1].write_all(&[7; 32]).expect("room");
        assert_eq!(clients.are_behind(PATIENCE), Behind::No, "a connection of this process");
        other.read_exact(&mut [0; 32]).expect("as many bytes");
        clients.driver = 0;
        let soon = Duration::from_millis(100);
        assert_eq!(clients.are_behind(soon), Behind::No);
        servers[0].write_all(&[7; 32]).expect("room");
        assert_eq!(clients.are_behind(soon), Behind::No, "our own connection does not count");
        servers[1].write_all(&[7; 32]).expect("room");
        assert_eq!(clients.are_behind(soon), Behind::Yes);
        assert_eq!(clients.readers, [std::process::id()]);
        assert_eq!(clients.are_behind(PATIENCE), Behind::Late);
        clients.readers.clear();
        assert_eq!(clients.are_behind(Duration::ZERO), Behind::No, "it is given up");
        other.read_exact(&mut [0; 32]).expect("as many bytes");
        assert_eq!(clients.are_behind(Duration::ZERO), Behind::No, "it had read before the key");
        servers[1].write_all(&[7; 32]).expect("room");
        assert_eq!(clients.are_behind(soon), Behind::Yes, "it has read since it was given up");
        other.read_exact(&mut [0; 32]).expect("as many bytes");
        // Times that no load of the machine reaches.
        let later = Duration::from_secs(3600);
        clients.behind = Instant::now().checked_add(later);
        assert_eq!(clients.are_behind(PATIENCE / 2), Behind::Yes, "it has only just read");
        assert_eq!(clients.are_behind(PATIENCE), Behind::Late);
        clients.readers.clear();
        clients.behind = Instant::now().checked_sub(HANDLING);
        assert_eq!(clients.are_behind(PATIENCE / 2), Behind::No, "it has done what the key is for");
    }
}
