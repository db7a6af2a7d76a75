//! Looking at an Xvfb of its own of 1920x1080, beside an empty round trip to it, which no look gets below.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use capture::{Display, Options, Target};
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use link::Interrupt;
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{
    ChangeGCAux, ConnectionExt, CreateGCAux, CreateWindowAux, Gcontext, Rectangle, Window, WindowClass,
};
use x11rb::rust_connection::RustConnection;

const LINE: Rectangle = Rectangle { x: 10, y: 202, width: 600, height: 14 };
const EVERYTHING: Rectangle = Rectangle { x: 0, y: 0, width: 1920, height: 1080 };

/// An X server that ends with this value.
struct Server {
    process: Child,
    display: String,
}

impl Server {
    fn start() -> Self {
        let mut process = Command::new("Xvfb")
            .args(["-displayfd", "1", "-screen", "0", "1920x1080x24", "-nolisten", "tcp", "-noreset"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("Xvfb is installed (apt-get install xvfb)");
        let mut number = String::new();
        BufReader::new(process.stdout.take().expect("it is piped"))
            .read_line(&mut number)
            .expect("Xvfb tells its number");
        Self { process, display: format!(":{}", number.trim()) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Another client, which paints.
struct Painter {
    conn: RustConnection,
    window: Window,
    context: Gcontext,
    shade: u32,
}

impl Painter {
    fn new(display: &str) -> Self {
        let (conn, screen) = x11rb::connect(Some(display)).expect("a connection");
        let root = conn.setup().roots[screen].root;
        let (window, context) = (conn.generate_id().expect("an id"), conn.generate_id().expect("an id"));
        let (w, h) = (EVERYTHING.width, EVERYTHING.height);
        let (inherited, aux) = (x11rb::COPY_FROM_PARENT, CreateWindowAux::new().override_redirect(1));
        conn.create_window(0, window, root, 0, 0, w, h, 0, WindowClass::INPUT_OUTPUT, inherited, &aux).expect("sent");
        conn.map_window(window).expect("sent");
        conn.create_gc(context, window, &CreateGCAux::new()).expect("sent");
        Self { conn, window, context, shade: 0 }
    }

    /// Fills an area with a colour that it has not had, and waits until it is there.
    fn paint(&mut self, area: Rectangle) {
        self.shade += 0x01_0305;
        let colour = ChangeGCAux::new().foreground(self.shade & 0xFF_FFFF);
        self.conn.change_gc(self.context, &colour).expect("sent");
        self.conn.poly_fill_rectangle(self.window, self.context, &[area]).expect("sent");
        self.round_trip();
    }

    fn round_trip(&self) {
        self.conn.get_input_focus().expect("sent").reply().expect("an answer");
    }
}

fn look(c: &mut Criterion) {
    let server = Server::start();
    let mut painter = Painter::new(&server.display);
    c.bench_function("floor: empty round trip", |b| b.iter(|| painter.round_trip()));
    let target = Target { display: server.display.clone(), auth: (Vec::new(), Vec::new()), socket: None };
    let options = Options { view_only: true, ..Options::default() };
    let display = Display::open(&target, &options, Interrupt::never()).expect("an open display");
    c.bench_function("look, nothing changed", |b| b.iter(|| display.look()));
    for (name, area) in [("a changed line", LINE), ("everything changed", EVERYTHING)] {
        c.bench_function(&format!("look after {name}"), |b| {
            b.iter_batched(|| painter.paint(area), |()| display.look(), BatchSize::PerIteration);
        });
    }
}

criterion_group! {
    name = connection;
    config = Criterion::default().sample_size(20).measurement_time(Duration::from_secs(2)).warm_up_time(Duration::from_millis(500));
    targets = look
}
criterion_main!(connection);
