//! What the kernel tells of the sockets of this machine, by `sock_diag(7)`.

use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with};

const HEADER: usize = 16;
const DONE: u16 = 3;

/// A socket over which the kernel is asked.
pub(crate) fn kernel() -> Option<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(netlink::SOCK_DIAG)).ok()
}

/// Asks for a list, and reads its entries, which are messages of this `kind`; `None` if the kernel refuses, or there are more than
/// `most`. What comes after these stays in the socket.
pub(crate) fn list<T>(
    kernel: &OwnedFd,
    question: &[u8],
    kind: u16,
    most: usize,
    read: impl Fn(&[u8]) -> Option<T>,
) -> Option<Vec<T>> {
    send(kernel, question, SendFlags::empty()).ok()?;
    let mut found = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    while found.len() <= most {
        // The kernel has answered when it has taken the request, and goes on with a list as it is received.
        let (length, _) = recv(kernel, &mut *buffer, RecvFlags::empty()).ok()?;
        if entries(&buffer[..length], kind, &mut found, &read)? {
            return Some(found);
        }
    }
    None
}

/// Reads messages of one `kind`; whether a list ends with them, `None` if there are others.
pub(crate) fn entries<T>(
    mut messages: &[u8],
    kind: u16,
    found: &mut Vec<T>,
    read: impl Fn(&[u8]) -> Option<T>,
) -> Option<bool> {
    while !messages.is_empty() {
        let length = word(messages, 0)? as usize;
        let body = messages.get(HEADER..length)?;
        match half(messages, 4)? {
            DONE => return Some(true),
            other if other == kind => found.extend(read(body)),
            _ => return None,
        }
        messages = messages.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Some(false)
}

pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

pub(crate) fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}
