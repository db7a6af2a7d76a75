//! Requests over the network that the processes behind a window have sent and that nobody has answered yet: what comes back may
//! change the screen. The kernel tells of each TCP connection when data were last sent and last received (`sock_diag(7)`).

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fd::OwnedFd;
use rustix::fs::getxattr;

use crate::inbox;
use crate::sock_diag::{self, half, word};
use crate::stat::Kept;

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(1);
/// The kernel repeats the first packet of a connection after this time (RFC 6298 §2).
const REPEATED: Duration = Duration::from_secs(1);
/// The kernel tells times in ticks, of which a second has at least a hundred: a request may look older than it is by one.
const TICK: Duration = Duration::from_millis(10);
/// So often in a row nothing has come from an address in time: it is not waited for until something does.
const GIVEN_UP: u8 = 2;
/// On a machine with more connections than this the look takes too long.
const MOST_CONNECTIONS: usize = 2000;
/// Addresses that are remembered.
const MOST_ADDRESSES: usize = 256;

/// The port of an X server's first display.
const X11_PORT: u16 = 6000;

const ESTABLISHED: u8 = 1;
const SYN_SENT: u8 = 2;
const LISTEN: u8 = 10;
/// The older request for a list (`TCPDIAG_GETSOCK`) goes through the connections of both families at once.
const LIST: u16 = 18;

/// The address of the other side: family, port, address.
type Address = [u8; 19];

/// One connection, as the kernel reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Connection {
    inode: u32,
    address: Address,
    /// The port of this side, as the kernel has it.
    port: [u8; 2],
    state: u8,
    /// How long ago the last data were sent; `None` where none were.
    sent: Option<Duration>,
    /// How long ago the last data were received; `None` where that was before they were sent.
    answered: Option<Duration>,
}

/// What the processes wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Awaited {
    Nothing,
    Answer,
    /// An answer that did not come in time.
    Late,
}

/// The socket over which the kernel is asked.
#[derive(Default)]
enum Kernel {
    #[default]
    Unasked,
    Tells(OwnedFd),
    IsSilent,
}

/// The network of one connection's applications.
#[derive(Default)]
pub(crate) struct Traffic {
    kernel: Kernel,
    counters: Option<Kept>,
    /// Segments that this machine had sent when the action began.
    sent: Option<u64>,
    /// Connections on which a question was seen, until it is answered.
    waited_for: HashMap<u32, Address>,
    /// Those whose answer was waited for in vain since the action began.
    late: HashSet<u32>,
    silent: HashMap<Address, u8>,
    /// Whether something was sent and answered since the action began: the kernel does not tell whether that was the whole answer.
    answered: bool,
    /// The port of the display, where applications reach it over TCP: nobody answers what is drawn.
    display: Option<u16>,
}

impl Traffic {
    /// Leave out what is drawn on this display (`host:10.0`).
    pub(crate) fn expect_drawing(&mut self, display: &str) {
        self.display = port_of(display);
    }

    /// Called before an action.
    pub(crate) fn take_stock(&mut self) {
        self.sent = self.segments();
        self.late.clear();
        self.answered = false;
    }

    /// Whether something was sent since the action began, and at least a part of an answer came, as far as was looked.
    pub(crate) fn has_answered(&self) -> bool {
        self.answered
    }

    /// How many segments were sent over TCP; `None` where that is not told.
    fn segments(&mut self) -> Option<u64> {
        if self.counters.is_none() {
            self.counters = File::open("/proc/net/snmp").ok().and_then(|file| Kept::new(file).ok());
        }
        let Kept(file) = self.counters.as_ref()?;
        let mut text = [0; 4096];
        let length = file.read_at(&mut text, 0).ok()?;
        segments_sent(str::from_utf8(&text[..length]).ok()?)
    }

    /// What was asked for since an action began, by processes that have these TCP `sockets`, and which were `seen` at rest.
    pub(crate) fn awaited(&mut self, acted: Instant, seen: Instant, sockets: impl FnOnce() -> HashSet<u32>) -> Awaited {
        // The list takes 0.15 to 1 ms, because the kernel goes through a large table. This takes 0.02 ms, and the sockets of a
        // terminal 0.2 ms.
        if self.sent.is_some() && self.segments() == self.sent {
            return Awaited::Nothing;
        }
        let owned = sockets();
        if owned.is_empty() && self.waited_for.is_empty() {
            return Awaited::Nothing;
        }
        let Some(connections) = self.connections() else { return Awaited::Nothing };
        let owns = |inode| owned.contains(&inode);
        // Measured after the look: before it we may have had to wait for a processor.
        self.judge(&connections, acted.elapsed() + TICK, seen.elapsed() + TICK, owns)
    }

    /// What the connections tell of what was sent within one time. What has answered within another is yet to be seen.
    fn judge(
        &mut self,
        connections: &[Connection],
        since: Duration,
        unseen: Duration,
        owns: impl Fn(u32) -> bool,
    ) -> Awaited {
        let before = self.waited_for.len();
        self.waited_for.retain(|inode, _| connections.iter().any(|one| one.inode == *inode));
        let mut awaited = Awaited::Nothing;
        // What was closed may have answered before, just now.
        let mut comes = self.waited_for.len() < before;
        for Connection { inode, address, sent, answered, .. } in connections {
            if answered.is_some() && self.waited_for.remove(inode).is_some() {
                self.silent.remove(address);
            }
            let Some(age) = sent.filter(|&age| age < since) else { continue };
            if let Some(answered) = *answered {
                // What comes all the time is not waited for.
                let new = answered < unseen && age < PATIENCE;
                if (new || !self.answered) && owns(*inode) {
                    self.answered = true;
                    comes |= new;
                }
                continue;
            }
            if age >= PATIENCE && self.late.contains(inode) {
                awaited = Awaited::Late;
                continue;
            }
            if !owns(*inode) {
                continue;
            }
            let given_up = self.silent.get(address).is_some_and(|&times| times >= GIVEN_UP);
            if age < PATIENCE {
                self.waited_for.insert(*inode, *address);
            }
            if given_up {
                continue;
            }
            if age < PATIENCE {
                return Awaited::Answer;
            }
            awaited = Awaited::Late;
            self.late.insert(*inode);
            if self.waited_for.contains_key(inode) {
                if self.silent.len() >= MOST_ADDRESSES {
                    self.silent.clear();
                }
                *self.silent.entry(*address).or_default() += 1;
            }
        }
        if comes { Awaited::Answer } else { awaited }
    }

    fn kernel(&mut self) -> Option<&OwnedFd> {
        if let Kernel::Unasked = self.kernel {
            self.kernel = sock_diag::kernel().map_or(Kernel::IsSilent, Kernel::Tells);
        }
        match &self.kernel {
            Kernel::Tells(kernel) => Some(kernel),
            Kernel::Unasked | Kernel::IsSilent => None,
        }
    }

    /// The connections of this machine that were not made to one of its servers, which sends last when it has answered, nor to the
    /// display; `None` where the kernel does not tell.
    fn connections(&mut self) -> Option<Vec<Connection>> {
        let listed = sock_diag::list(self.kernel()?, &question(), LIST, MOST_CONNECTIONS, connection);
        let Some(mut found) = listed else {
            self.kernel = Kernel::IsSilent;
            return None;
        };
        let servers: Vec<[u8; 2]> = found.iter().filter(|one| one.state == LISTEN).map(|one| one.port).collect();
        let draws = |one: &Connection| self.display == Some(u16::from_be_bytes([one.address[1], one.address[2]]));
        found.retain(|one| !servers.contains(&one.port) && !draws(one));
        Some(found)
    }
}

/// The port of a display that is reached over TCP.
fn port_of(display: &str) -> Option<u16> {
    let (host, number) = display.rsplit_once(':')?;
    let number = number.split('.').next()?.parse().ok()?;
    if matches!(host, "" | "unix") { None } else { X11_PORT.checked_add(number) }
}

/// The TCP sockets of these processes, and those whose protocol is not told.
pub(crate) fn sockets_of(processes: &[u32]) -> HashSet<u32> {
    let files = |process| fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    let sockets = processes.iter().flat_map(files).filter_map(|file| {
        let path = file.path();
        inbox::socket_at(&path).filter(|_| may_be_tcp(&path))
    });
    sockets.collect()
}

fn may_be_tcp(socket: &Path) -> bool {
    // `TCP`, `TCPv6` and `MPTCP`; see `sockfs_xattr_get` in the kernel's net/socket.c.
    let mut name = [0; 32];
    getxattr(socket, "system.sockprotoname", &mut name).is_err() || name.windows(3).any(|part| part == b"TCP")
}

/// A `nlmsghdr` and an `inet_diag_req`: a list of the TCP connections, with `tcp_info`.
fn question() -> [u8; 76] {
    const DUMP: u16 = 0x301;
    const INFO: u8 = 1 << 1;
    let mut message = [0; 76];
    message[..4].copy_from_slice(&76u32.to_ne_bytes());
    message[4..6].copy_from_slice(&LIST.to_ne_bytes());
    message[6..8].copy_from_slice(&DUMP.to_ne_bytes());
    message[19] = INFO;
    message[68..72].copy_from_slice(&(1u32 << ESTABLISHED | 1 << SYN_SENT | 1 << LISTEN).to_ne_bytes());
    message
}

/// `OutSegs` of TCP, in the lines of `/proc/net/snmp`: names, and then numbers in their order.
fn segments_sent(text: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let (names, numbers) = (lines.next()?, lines.next()?);
    let place = names.split(' ').position(|name| name == "OutSegs")?;
    numbers.split(' ').nth(place)?.parse().ok()
}

/// Reads an `inet_diag_msg` and its attributes.
fn connection(body: &[u8]) -> Option<Connection> {
    const INFO: u16 = 2;
    const TIMER: usize = 52;
    let (state, repeats) = (*body.get(1)?, *body.get(3)?);
    let mut address = [0; 19];
    address[0] = *body.first()?;
    address[1..3].copy_from_slice(body.get(6..8)?);
    address[3..].copy_from_slice(body.get(24..40)?);
    let ago = |milliseconds| Duration::from_millis(u64::from(milliseconds));
    let (mut asked, mut answered) = (None, None);
    if state == SYN_SENT {
        // Nothing was received; the timer tells when the first packet is sent again.
        asked = Some(if repeats == 0 { REPEATED.saturating_sub(ago(word(body, TIMER)?)) } else { PATIENCE });
    }
    let mut attributes = body.get(72..)?;
    while let Some(length) = half(attributes, 0).map(usize::from).filter(|&length| length >= 4) {
        if half(attributes, 2)? == INFO && state == ESTABLISHED {
            // `tcpi_last_data_sent` and `tcpi_last_data_recv`, which count from the beginning of a connection.
            let (sent, received) = (word(attributes, 4 + 44)?, word(attributes, 4 + 52)?);
            // In one tick: an answer acknowledges its question. What has yet to be acknowledged, or was later (`tcpi_unacked`,
            // `tcpi_last_ack_recv`), was sent after the answer.
            let next = sent == received && (word(attributes, 4 + 24)? > 0 || word(attributes, 4 + 56)? < received);
            // `tcpi_data_segs_out`, and `tcpi_bytes_received`.
            let has_sent = word(attributes, 4 + 156).is_none_or(|segments| segments > 0);
            let first = has_sent && (word(attributes, 4 + 128), word(attributes, 4 + 132)) == (Some(0), Some(0));
            asked = has_sent.then(|| ago(sent));
            answered = (!(sent < received || first || next)).then(|| ago(received));
        }
        attributes = attributes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    let port = body.get(4..6)?.try_into().ok()?;
    Some(Connection { inode: word(body, 68)?, address, port, state, sent: asked, answered })
}

#[cfg(test)]
mod tests;
