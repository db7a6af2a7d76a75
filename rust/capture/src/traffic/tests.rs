use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::process;
use std::thread::sleep;

use rustix::fs::fstat;
use rustix::net::sockopt::set_tcp_quickack;
use rustix::net::{AddressFamily, SendFlags, SocketType, connect, send, socket};

use super::*;

/// Two ends of a connection, and the number of the first one's socket.
fn pair() -> (TcpStream, TcpStream, u32) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let near = TcpStream::connect(listener.local_addr().expect("its address")).expect("a connection");
    let (far, _) = listener.accept().expect("the other end");
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&near));
    let inode = fs::metadata(path).expect("a socket").ino() as u32;
    (near, far, inode)
}

/// What a look finds that no other program has held up: how long one takes counts.
fn unhindered(mut look: impl FnMut() -> Awaited) -> Awaited {
    loop {
        let begun = Instant::now();
        let found = look();
        if begun.elapsed() < TICK {
            return found;
        }
    }
}

#[test]
fn a_request_is_awaited_until_its_answer_comes() {
    let (mut near, mut far, inode) = pair();
    let mut traffic = Traffic::default();
    let long_ago = Instant::now();
    let mut awaited = |acted| {
        let ours = || sockets_of(&[process::id()]).into_iter().filter(|&socket| socket == inode).collect();
        traffic.awaited(acted, Instant::now(), ours)
    };
    assert_eq!(awaited(long_ago), Awaited::Nothing);
    // The first one in the millisecond in which the connection begins.
    near.write_all(b"question").expect("sent");
    sleep(Duration::from_millis(30));
    assert_eq!(awaited(long_ago), Awaited::Answer);
    assert_eq!(unhindered(|| awaited(Instant::now())), Awaited::Nothing, "it was sent before");
    far.write_all(b"answer").expect("sent");
    near.read_exact(&mut [0; 6]).expect("received");
    sleep(2 * TICK);
    assert_eq!(unhindered(|| awaited(long_ago)), Awaited::Nothing);
    near.write_all(b"question").expect("sent");
    sleep(Duration::from_millis(10));
    assert_eq!(awaited(long_ago), Awaited::Answer);
    assert!(!sockets_of(&[1]).contains(&inode));
    assert!(traffic.has_answered());
    traffic.take_stock();
    assert!(!traffic.has_answered());
}

#[test]
fn a_socket_that_is_connected_later_is_known() {
    let (local, _other) = UnixStream::pair().expect("two sockets");
    let early = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    let [local, inode] = [local.as_fd(), early.as_fd()].map(|one| fstat(one).expect("a socket").st_ino as u32);
    let found = sockets_of(&[process::id()]);
    assert!(found.contains(&inode));
    assert!(!found.contains(&local), "over a local socket nothing goes to the network");
    let mut traffic = Traffic::default();
    let acted = Instant::now();
    assert_eq!(traffic.awaited(acted, Instant::now(), || HashSet::from([inode])), Awaited::Nothing);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    connect(&early, &listener.local_addr().expect("its address")).expect("a connection");
    send(&early, b"question", SendFlags::empty()).expect("sent");
    sleep(Duration::from_millis(30));
    assert_eq!(traffic.awaited(acted, Instant::now(), HashSet::new), Awaited::Nothing);
    assert_eq!(traffic.awaited(acted, Instant::now(), || HashSet::from([inode])), Awaited::Answer);
}

#[test]
fn what_is_drawn_is_no_request() {
    let (mut near, far, inode) = pair();
    let port = far.local_addr().expect("its address").port();
    let mut traffic = Traffic::default();
    let acted = Instant::now();
    near.write_all(b"question").expect("sent");
    sleep(Duration::from_millis(30));
    for (display, awaited) in [(Some(port), Awaited::Nothing), (None, Awaited::Answer)] {
        traffic.display = display;
        assert_eq!(traffic.awaited(acted, Instant::now(), || HashSet::from([inode])), awaited);
    }
    for (display, port) in
        [("localhost:10.0", Some(6010)), ("host:0", Some(6000)), (":10", None), ("unix:1", None), ("a", None)]
    {
        assert_eq!(port_of(display), port, "{display}");
    }
}

#[test]
fn a_request_in_the_tick_of_the_action_counts() {
    let (mut near, mut far, inode) = pair();
    let mut traffic = Traffic::default();
    for round in 0..40 {
        let acted = Instant::now();
        near.write_all(b"question").expect("sent");
        // Looks at other places between two ticks.
        sleep(Duration::from_micros(10_000 + 730 * round));
        assert_eq!(traffic.awaited(acted, Instant::now(), || HashSet::from([inode])), Awaited::Answer, "round {round}");
        far.write_all(b"answer").expect("sent");
        near.read_exact(&mut [0; 6]).expect("received");
        sleep(TICK);
    }
}

#[test]
fn a_request_in_the_tick_of_an_answer_counts() {
    let (mut near, mut far, inode) = pair();
    let mut traffic = Traffic::default();
    let mut awaited = |acted| traffic.awaited(acted, Instant::now(), || HashSet::from([inode]));
    for round in 0..20 {
        let acted = Instant::now();
        near.write_all(b"question").expect("sent");
        far.read_exact(&mut [0; 8]).expect("received");
        far.write_all(b"answer").expect("sent");
        near.read_exact(&mut [0; 6]).expect("received");
        // One that is acknowledged in the same tick too, as on a busy machine, looks like the first.
        set_tcp_quickack(&far, false).expect("a connection");
        near.write_all(b"another!").expect("sent");
        sleep(2 * TICK);
        assert_eq!(awaited(acted), Awaited::Answer, "round {round}");
        far.read_exact(&mut [0; 8]).expect("received");
        let answered = Instant::now();
        far.write_all(b"answer").expect("sent");
        near.read_exact(&mut [0; 6]).expect("received");
        let comes = awaited(acted) == Awaited::Answer;
        assert!(comes || answered.elapsed() > TICK, "round {round}: it has just come");
        sleep(2 * TICK);
        assert_eq!(unhindered(|| awaited(acted)), Awaited::Nothing, "round {round}");
    }
}

#[test]
fn a_server_that_has_answered_waits_for_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let mut near = TcpStream::connect(listener.local_addr().expect("its address")).expect("a connection");
    let (mut far, _) = listener.accept().expect("the other end");
    near.write_all(b"question").expect("sent");
    far.read_exact(&mut [0; 8]).expect("received");
    sleep(Duration::from_millis(20));
    far.write_all(b"answer").expect("sent");
    near.read_exact(&mut [0; 6]).expect("received");
    sleep(Duration::from_millis(10));
    let port = listener.local_addr().expect("its address").port().to_be_bytes();
    let mut traffic = Traffic::default();
    let connections = traffic.connections().expect("a kernel that tells");
    assert!(connections.iter().all(|one| one.port != port));
    assert!(connections.iter().any(|one| one.address[1..3] == port && one.answered.is_some()));
}

#[test]
fn nothing_is_asked_while_nothing_is_sent() {
    let text = "Ip: Forwarding DefaultTTL\nIp: 2 64\nTcp: InSegs OutSegs RetransSegs\nTcp: 5 17 0\n";
    assert_eq!(segments_sent(text), Some(17));
    assert_eq!(segments_sent("Tcp: InSegs\nTcp: 5\n"), None);
    let (mut near, _far, _) = pair();
    let mut traffic = Traffic::default();
    traffic.take_stock();
    let before = traffic.sent.expect("a kernel that counts");
    near.write_all(b"question").expect("sent");
    assert!(traffic.segments() > Some(before));
}

#[test]
fn an_address_that_does_not_answer_is_given_up_until_it_does() {
    let minute = Duration::from_secs(60);
    let at = |inode, milliseconds: Option<u64>| Connection {
        inode,
        address: [7; 19],
        port: [1, 2],
        state: ESTABLISHED,
        sent: Some(milliseconds.map_or(Duration::from_millis(90), Duration::from_millis)),
        answered: milliseconds.is_none().then_some(Duration::from_millis(50)),
    };
    let mut traffic = Traffic::default();
    let judge = |traffic: &mut Traffic, connection| traffic.judge(&[connection], minute, TICK, |_| true);
    for _ in 0..GIVEN_UP {
        traffic.take_stock();
        assert_eq!(judge(&mut traffic, at(9, Some(500))), Awaited::Answer);
        assert_eq!(judge(&mut traffic, at(9, Some(1100))), Awaited::Late);
        assert_eq!(judge(&mut traffic, at(9, Some(1200))), Awaited::Late, "a later look of the same action");
    }
    traffic.take_stock();
    assert_eq!(judge(&mut traffic, at(9, Some(10))), Awaited::Nothing);
    assert_eq!(judge(&mut traffic, at(9, Some(1100))), Awaited::Nothing);
    // Its answer comes, however late: it is waited for again.
    assert_eq!(judge(&mut traffic, at(9, None)), Awaited::Nothing);
    assert_eq!(judge(&mut traffic, at(9, Some(10))), Awaited::Answer);
    assert_eq!(traffic.judge(&[at(9, Some(10))], minute, TICK, |_| false), Awaited::Nothing);
    assert_eq!(traffic.judge(&[], minute, TICK, |_| true), Awaited::Answer, "closed, perhaps after its answer");
    assert_eq!(traffic.judge(&[], minute, TICK, |_| true), Awaited::Nothing);
    assert!(traffic.waited_for.is_empty());
}

#[test]
fn an_answer_that_came_after_the_look_is_yet_to_be_shown() {
    let minute = Duration::from_secs(60);
    // What goes on for long (a stream) is not waited for.
    for (sent, received, awaited) in
        [(30, 3, Awaited::Answer), (300, 90, Awaited::Nothing), (5000, 3, Awaited::Nothing)]
    {
        let mut traffic = Traffic::default();
        let (sent, received) = (Duration::from_millis(sent), Duration::from_millis(received));
        let answered = Some(received);
        let answered =
            Connection { inode: 9, address: [7; 19], port: [1, 2], state: ESTABLISHED, sent: Some(sent), answered };
        assert_eq!(traffic.judge(&[answered], minute, 2 * TICK, |_| true), awaited, "{sent:?} {received:?}");
    }
}

#[test]
fn what_the_kernel_does_not_say_is_not_read() {
    let mut found = Vec::new();
    assert_eq!(sock_diag::entries(&[], LIST, &mut found, connection), Some(false));
    for length in [0u32, 8, 15, 17, 200, u32::MAX] {
        let mut message = [0; 72];
        message[..4].copy_from_slice(&length.to_ne_bytes());
        message[4..6].copy_from_slice(&LIST.to_ne_bytes());
        let _ = sock_diag::entries(&message, LIST, &mut found, connection);
    }
    assert!(found.is_empty());
}
