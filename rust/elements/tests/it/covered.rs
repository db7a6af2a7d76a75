use std::time::Duration;

use elements::{Area, Cover, Seen, Window};

use crate::application::{Application, Bus, Object, ROOT};

const VISIBLE: u64 = 1 << 30;
const FOCUSED: u64 = 1 << 12;

fn area(x: i32, y: i32, width: i32, height: i32) -> Area {
    Area { x, y, width, height }
}

/// A menu from (0, 20) to (30, 60), since `age`; what is around it is drawn anew along with it.
fn menu(age: Duration) -> Seen {
    let covers = vec![Cover { area: area(0, 20, 30, 40), age }];
    Seen { changed: vec![area(0, 0, 50, 60)], covers, ..Seen::default() }
}

fn editor(toolkit: &'static str) -> Application {
    let placed = |name, role, area| Object { area, ..Object::new(name, role, &[]) };
    let objects = [
        (ROOT, Object::new("Editor", 75, &["/w"])),
        ("/w", Object { area: (0, 0, 100, 100), ..Object::new("Untitled", 23, &["/bar", "/save", "/beside"]) }),
        ("/bar", placed("File", 33, (0, 0, 30, 20))),
        ("/save", placed("Save", 43, (5, 30, 20, 10))),
        ("/beside", placed("Help", 43, (25, 30, 20, 10))),
    ];
    Application { toolkit, has_items: true, ..Application::new(":1.1", &objects) }
}

/// What is asked of an object in a reading that begins a minute after the first.
fn asked(bus: &mut Bus, seen: Seen, path: &str) -> Vec<String> {
    bus.applications[0].asked.clear();
    bus.read(seen);
    let of_it = bus.applications[0].asked.iter().filter_map(|asked| asked.strip_suffix(&format!(" {path}")));
    of_it.map(str::to_owned).collect()
}

fn read(application: Application) -> Bus {
    let mut bus = Bus::new(vec![application]);
    bus.read(Seen::default());
    bus.now += Duration::from_secs(60);
    // Once more, all of it is asked: it may not have sent events in its first seconds.
    bus.read(Seen::default());
    bus
}

#[test]
fn what_a_menu_covers_is_not_asked() {
    let mut bus = read(editor("gtk"));
    assert_eq!(asked(&mut bus, menu(Duration::ZERO), "/save"), [""; 0]);
    for drawn in ["/w", "/bar", "/beside"] {
        assert!(asked(&mut bus, menu(Duration::ZERO), drawn).contains(&"GetState".to_owned()), "{drawn}");
    }
    // A menu takes the keys.
    bus.applications[0].objects.get_mut("/save").unwrap().states |= FOCUSED;
    bus.event(":1.1", "/save", "StateChanged", "focused", 1, None);
    assert_eq!(asked(&mut bus, menu(Duration::ZERO), "/save"), ["GetState"]);
    // Once the menu has gone.
    let changed = vec![area(0, 0, 30, 60)];
    assert!(asked(&mut bus, Seen { changed, ..Seen::default() }, "/save").contains(&"GetState".to_owned()));
}

#[test]
fn what_may_be_in_the_menu_is_asked() {
    let mut bus = read(editor("gtk"));
    let long = Duration::from_secs(60);
    assert!(asked(&mut bus, menu(long), "/save").contains(&"GetState".to_owned()));
    // It was hidden for a moment, half a second before the menu came.
    for states in [0, VISIBLE | 1 << 25] {
        bus.applications[0].objects.get_mut("/save").unwrap().states = states;
        bus.event(":1.1", "/save", "StateChanged", "showing", u32::from(states != 0), None);
        bus.read(Seen::default());
    }
    bus.now += Duration::from_millis(500);
    assert!(asked(&mut bus, menu(Duration::ZERO), "/save").contains(&"GetState".to_owned()));
}

#[test]
fn who_sends_no_events_of_all_that_changes_is_asked_below_a_menu() {
    for toolkit in ["Qt", "Chromium"] {
        let mut bus = read(editor(toolkit));
        assert!(asked(&mut bus, menu(Duration::ZERO), "/save").contains(&"GetState".to_owned()), "{toolkit}");
    }
}

#[test]
fn the_children_of_a_label_are_asked_when_its_text_changes() {
    let mut editor = editor("gtk");
    editor.objects.get_mut("/save").unwrap().role = 29;
    let mut bus = read(editor);
    let changed = vec![area(5, 30, 2, 2)];
    let seen = Seen { changed, ..Seen::default() };
    let of_label = asked(&mut bus, seen.clone(), "/save");
    assert!(of_label.contains(&"GetState".to_owned()));
    assert!(!of_label.contains(&"GetChildren".to_owned()));
    assert!(asked(&mut bus, seen.clone(), "/w").contains(&"GetChildren".to_owned()));
    for (event, detail) in [("TextChanged", "insert"), ("PropertyChange", "accessible-name")] {
        bus.event(":1.1", "/save", event, detail, 0, Some("a link"));
        assert!(asked(&mut bus, Seen::default(), "/save").contains(&"GetChildren".to_owned()), "{event}");
    }
}

#[test]
fn gtk_4_is_asked_for_a_place_where_something_was_drawn() {
    let unplaced = |name, children| Object { states: VISIBLE, area: (0, 0, 0, 0), ..Object::new(name, 39, children) };
    let placed = |name, area, children| Object { states: VISIBLE, area, ..Object::new(name, 39, children) };
    let objects = [
        (ROOT, Object::new("Demo", 75, &["/w"])),
        ("/w", placed("Demo", (0, 0, 100, 100), &["/left", "/right"])),
        ("/left", placed("Left", (0, 0, 40, 100), &["/page"])),
        ("/right", placed("Right", (60, 0, 40, 100), &["/other"])),
        ("/page", unplaced("Page", &["/button"])),
        ("/button", unplaced("Button", &[])),
        ("/other", unplaced("Other", &[])),
    ];
    let mut bus = read(Application { toolkit: "GTK", has_items: true, ..Application::new(":1.1", &objects) });
    // Room for a shadow is left around each window.
    let windows = vec![Window { pid: 4711, area: area(-40, 0, 200, 100) }];
    let seen = |x| Seen { changed: vec![area(x, 50, 1, 1)], windows: windows.clone(), ..Seen::default() };
    asked(&mut bus, seen(-39), "/w");
    let (left, right) = (seen(-39), seen(60));
    assert_eq!(asked(&mut bus, left.clone(), "/page"), ["GetExtents"]);
    assert_eq!(asked(&mut bus, left.clone(), "/other"), [""; 0]);
    assert_eq!(asked(&mut bus, right, "/other"), ["GetExtents"]);
    // What is in something without a place has none either.
    assert_eq!(asked(&mut bus, left.clone(), "/button"), [""; 0]);
    for path in ["/page", "/button"] {
        bus.applications[0].objects.get_mut(path).unwrap().area = (1, 1, 20, 20);
    }
    assert!(asked(&mut bus, left, "/button").contains(&"GetExtents".to_owned()));
}
