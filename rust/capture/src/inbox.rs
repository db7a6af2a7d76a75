//! Whether a client has read the data of its X server, by `sock_diag(7)`: for windows that answer no pings.

use std::fs;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::fstat;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, recv, send};

use crate::sock_diag::{self, half, word};

const HEADER: usize = 16;
const QUERY: usize = HEADER + 24;
/// Of an answer, before its attributes.
const FIXED: usize = 16;
const INODE: usize = 4;
const MOST_ANSWER: usize = 512;
pub(crate) const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 1;
pub(crate) const SHOW_NAME: u32 = 1;
pub(crate) const SHOW_PEER: u32 = 4;
pub(crate) const SHOW_QUEUES: u32 = 16;
const NAME: u16 = 0;
const PEER: u16 = 2;
const QUEUES: u16 = 4;
/// The most open files of a process that are examined.
const MOST_FILES: usize = 1024;

/// The connections of one process to an X server.
pub(crate) struct Inbox {
    netlink: OwnedFd,
    /// Each one's inode, and how many bytes it leaves unread without any request.
    connections: Vec<(u32, u32)>,
}

/// The kernel's report on one socket of this machine.
#[derive(Default)]
pub(crate) struct Told {
    pub(crate) socket: u32,
    /// A server listens at a path, and at the same name as an abstract one: without the zero that such a name begins with.
    pub(crate) name: Vec<u8>,
    pub(crate) peer: u32,
    pub(crate) unread: u32,
}

impl Inbox {
    /// Those of `process`, to the server at the other end of `ours`; `None` where the kernel does not report them.
    pub(crate) fn of(process: u32, ours: BorrowedFd<'_>) -> Option<Self> {
        let mut inbox = Self { netlink: sock_diag::kernel()?, connections: Vec::new() };
        let display = server_of(&inbox.netlink, u32::try_from(fstat(ours).ok()?.st_ino).ok()?)?;
        let files = fs::read_dir(format!("/proc/{process}/fd")).ok()?.flatten().take(MOST_FILES);
        let sockets = files.filter_map(|file| socket_at(&file.path()));
        let is_shown = |&socket: &u32| server_of(&inbox.netlink, socket).as_ref() == Some(&display);
        let found: Vec<u32> = sockets.filter(is_shown).collect();
        // Of several, one may never be read; with one only, its unread bytes are the window's.
        let sole = found.len() == 1;
        let left = |socket| if sole { 0 } else { inbox.unread(socket) };
        let connections = found.into_iter().map(|socket| (socket, left(socket))).collect::<Vec<_>>();
        inbox.connections = connections;
        (!inbox.connections.is_empty()).then_some(inbox)
    }

    /// Whether there is something that the process has not read.
    pub(crate) fn is_unread(&self) -> bool {
        self.connections.iter().any(|&(socket, left)| self.unread(socket) > left)
    }

    fn unread(&self, socket: u32) -> u32 {
        ask(&self.netlink, socket, SHOW_QUEUES).map_or(0, |told| told.unread)
    }
}

/// The socket that a descriptor in `/proc` is; `None` if it is none.
pub(crate) fn socket_at(descriptor: &Path) -> Option<u32> {
    let link = fs::read_link(descriptor).ok()?;
    link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// The name of the server at the other end of a socket.
pub(crate) fn server_of(kernel: &OwnedFd, socket: u32) -> Option<Vec<u8>> {
    let peer = ask(kernel, socket, SHOW_PEER)?.peer;
    let name = ask(kernel, peer, SHOW_NAME)?.name;
    (!name.is_empty()).then_some(name)
}

fn ask(kernel: &OwnedFd, socket: u32, show: u32) -> Option<Told> {
    // In any state.
    send(kernel, &question(NLM_F_REQUEST, u32::MAX, socket, show), SendFlags::empty()).ok()?;
    let mut answer = [0; MOST_ANSWER];
    // The kernel has answered when it has taken the request.
    let (length, _) = recv(kernel, &mut answer, RecvFlags::DONTWAIT).ok()?;
    let mut found = Vec::new();
    sock_diag::entries(answer.get(..length)?, SOCK_DIAG_BY_FAMILY, &mut found, told)?;
    found.pop()
}

/// Asks for the socket with this number, or for a list.
pub(crate) fn question(flags: u16, states: u32, socket: u32, show: u32) -> Vec<u8> {
    let mut query = Vec::with_capacity(QUERY);
    query.extend((QUERY as u32).to_ne_bytes());
    query.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    query.extend(flags.to_ne_bytes());
    query.extend([0; 8]);
    query.extend([AddressFamily::UNIX.as_raw() as u8, 0, 0, 0]);
    for word in [states, socket, show, u32::MAX, u32::MAX] {
        query.extend(word.to_ne_bytes());
    }
    query
}

/// Reads a `unix_diag_msg` and its attributes.
pub(crate) fn told(answer: &[u8]) -> Option<Told> {
    let mut attributes = answer.get(FIXED..)?;
    let mut told = Told { socket: word(answer, INODE)?, ..Told::default() };
    while let (Some(length), Some(kind)) = (half(attributes, 0), half(attributes, 2)) {
        let value = attributes.get(4..usize::from(length))?;
        match kind {
            NAME => told.name = value.iter().copied().filter(|&byte| byte != 0).collect(),
            PEER => told.peer = word(value, 0)?,
            QUEUES => told.unread = word(value, 0)?,
            _ => {}
        }
        attributes = attributes.get(usize::from(length).next_multiple_of(4)..).unwrap_or_default();
    }
    Some(told)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::fd::AsFd;
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;

    #[test]
    fn what_a_process_has_not_read_is_told() {
        let path = std::env::temp_dir().join(format!("deskhand-inbox-{}", std::process::id()));
        let listener = UnixListener::bind(&path).expect("a listener");
        let mut client = UnixStream::connect(&path).expect("a client");
        std::fs::remove_file(&path).expect("a socket");
        let (mut server, _) = listener.accept().expect("a connection");
        let inbox = Inbox::of(std::process::id(), client.as_fd()).expect("a kernel that tells");
        assert!(!inbox.is_unread());
        server.write_all(&[7; 96]).expect("room");
        assert!(inbox.is_unread());
        client.read_exact(&mut [0; 96]).expect("as many bytes");
        assert!(!inbox.is_unread());
        drop((client, server));
        assert!(!inbox.is_unread());
    }

    #[test]
    fn a_connection_that_nobody_reads_beside_another_does_not_count() {
        let path = std::env::temp_dir().join(format!("deskhand-inboxes-{}", std::process::id()));
        let listener = UnixListener::bind(&path).expect("a listener");
        let clients = [(); 2].map(|()| UnixStream::connect(&path).expect("a client"));
        std::fs::remove_file(&path).expect("a socket");
        let mut servers = [(); 2].map(|()| listener.accept().expect("a connection").0);
        servers[0].write_all(&[7; 96]).expect("room");
        let inbox = Inbox::of(std::process::id(), clients[1].as_fd()).expect("a kernel that tells");
        assert!(!inbox.is_unread());
        servers[1].write_all(&[7; 96]).expect("room");
        assert!(inbox.is_unread());
    }
}
