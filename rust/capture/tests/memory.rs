//! Every way to capture, on an Xvfb of its own: what `tools/sanitize` runs, for the memory that is shared with the server.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use capture::{Display, Method, Options, Target};
use imaging::{Size, View};
use link::{Event, Interrupt};
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{ChangeWindowAttributesAux, ConnectionExt};
use x11rb::wrapper::ConnectionExt as _;

/// An X server that ends with this value.
struct Server {
    process: Child,
    target: Target,
}

impl Server {
    fn start() -> Self {
        let mut process = Command::new("Xvfb")
            .args(["-displayfd", "1", "-screen", "0", "1280x1024x24", "-nolisten", "tcp", "-noreset"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("Xvfb is installed (apt-get install xvfb)");
        let mut number = String::new();
        let told = BufReader::new(process.stdout.take().expect("it is piped")).read_line(&mut number);
        told.expect("Xvfb tells its number");
        let target = Target { display: format!(":{}", number.trim()), auth: (Vec::new(), Vec::new()), socket: None };
        Self { process, target }
    }

    /// The whole screen in one colour.
    fn paint(&self, colour: u32) {
        let (conn, screen) = x11rb::connect(Some(&self.target.display)).expect("a connection");
        let root = conn.setup().roots[screen].root;
        let pixel = ChangeWindowAttributesAux::new().background_pixel(colour);
        conn.change_window_attributes(root, &pixel).expect("sent");
        conn.clear_area(false, root, 0, 0, 0, 0).expect("sent");
        conn.sync().expect("an answer");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The colours on the screen.
fn colours(display: &Display) -> Vec<[u8; 3]> {
    let screen = display.screen();
    let screen = screen.lock().expect("a screen");
    let (_, rgb) = screen.rgb(&View { size: None, region: None, cursor: false }).expect("a picture");
    let mut colours: Vec<[u8; 3]> = rgb.as_chunks().0.to_vec();
    colours.dedup();
    colours
}

#[test]
fn every_way_to_capture_shows_the_screen_until_it_is_closed() {
    let server = Server::start();
    for method in [Method::SharedFd, Method::SharedId, Method::Socket] {
        let options = Options { method: Some(method), ..Options::default() };
        let display = Display::open(&server.target, &options, Interrupt::never()).expect("an open display");
        for (colour, expected) in [(0x0011_2233, [0x11, 0x22, 0x33]), (0x00ff_00aa, [0xff, 0x00, 0xaa])] {
            server.paint(colour);
            display.look().expect("a look");
            assert_eq!(colours(&display), [expected], "{method:?}");
        }
        display.send(&[Event::Move(7, 9), Event::Key(0x61, true), Event::Key(0x61, false)]).expect("sent");
        display.resize(Size { w: 800, h: 600 }).expect("a smaller screen");
        server.paint(0x0000_00ff);
        display.look().expect("a look");
        assert_eq!(colours(&display), [[0, 0, 0xff]], "{method:?}");
        display.resize(Size { w: 1280, h: 1024 }).expect("a larger screen");
        display.close();
    }
}

#[test]
fn the_screen_outlives_its_connection() {
    let server = Server::start();
    server.paint(0x0011_2233);
    let display = Display::open(&server.target, &Options::default(), Interrupt::never()).expect("an open display");
    display.look().expect("a look");
    let screen = display.screen();
    drop(display);
    drop(server);
    assert_eq!(screen.lock().expect("a screen").size(), Size { w: 1280, h: 1024 });
}
