use std::time::Duration;

use elements::wire::said;
use elements::{Area, Seen, Snapshot};

use crate::application::{Application, Bus, Object, ROOT, SHOWING};
use crate::body::Body;

fn editor() -> Application {
    let objects = [
        (ROOT, Object::new("Editor", 75, &["/w"])),
        ("/w", Object::new("Untitled", 23, &["/save", "/menu"])),
        ("/save", Object::new("Save", 43, &[])),
        ("/menu", Object::new("File", 33, &["/open"])),
        ("/open", Object { states: 1 << 30, ..Object::new("Open", 35, &[]) }),
    ];
    Application::new(":1.1", &objects)
}

fn names(found: &Snapshot) -> Vec<String> {
    found.elements.iter().map(|each| format!("{}{}", "  ".repeat(each.depth.into()), each.name)).collect()
}

fn reference(found: &Snapshot, name: &str) -> u64 {
    found.elements.iter().find(|each| &*each.name == name).expect("it is there").reference
}

#[test]
fn what_shows_is_read_in_order() {
    for has_items in [false, true] {
        let mut bus = Bus::new(vec![Application { has_items, ..editor() }]);
        let found = bus.read(Seen::default());
        assert_eq!(names(&found), ["Untitled", "  Save", "  File"]);
        let about = &found.applications[0];
        assert_eq!((about.name.as_str(), about.toolkit.as_str(), about.pid), ("Editor", "played", 4711));
        assert_eq!(found.elements[1].area, Some(Area { x: 0, y: 0, width: 10, height: 10 }));
        // What does not show is not asked where it is.
        assert!(!bus.applications[0].asked.iter().any(|asked| asked == "GetExtents /open"));
    }
}

#[test]
fn what_has_not_changed_is_not_asked_again() {
    let mut bus = Bus::new(vec![editor()]);
    let first = bus.read(Seen::default());
    bus.applications[0].asked.clear();
    let second = bus.read(Seen::default());
    assert_eq!(bus.applications[0].asked, [format!("Ping {ROOT}")]);
    assert_eq!(first.version, second.version);
}

#[test]
fn events_change_what_is_known() {
    let mut bus = Bus::new(vec![editor()]);
    let first = bus.read(Seen::default());
    bus.event(":1.1", "/save", "PropertyChange", "accessible-name", 0, Some("Save all"));
    bus.applications[0].objects.get_mut("/open").unwrap().states |= 1 << 25;
    bus.event(":1.1", "/open", "StateChanged", "showing", 1, None);
    let second = bus.read(Seen::default());
    assert_eq!(names(&second), ["Untitled", "  Save all", "  File", "    Open"]);
    assert_eq!(reference(&first, "Save"), reference(&second, "Save all"));
    assert!(second.version > first.version);
}

#[test]
fn a_reference_is_never_given_again() {
    let mut bus = Bus::new(vec![editor()]);
    let first = bus.read(Seen::default());
    bus.applications[0].objects.get_mut("/w").unwrap().children.remove(0);
    bus.event(":1.1", "/w", "ChildrenChanged", "remove", 0, None);
    assert_eq!(names(&bus.read(Seen::default())), ["Untitled", "  File"]);
    bus.applications[0].objects.get_mut("/w").unwrap().children.push("/save".into());
    bus.event(":1.1", "/w", "ChildrenChanged", "add", 1, None);
    let again = bus.read(Seen::default());
    assert_eq!(names(&again), ["Untitled", "  File", "  Save"]);
    assert_ne!(reference(&first, "Save"), reference(&again, "Save"));
}

#[test]
fn where_pixels_changed_is_asked_again() {
    let mut bus = Bus::new(vec![editor()]);
    bus.applications[0].objects.get_mut("/menu").unwrap().area = (100, 100, 5, 5);
    bus.read(Seen::default());
    bus.applications[0].asked.clear();
    bus.applications[0].objects.get_mut("/save").unwrap().area = (3, 3, 10, 10);
    let changed = vec![Area { x: 0, y: 0, width: 4, height: 4 }];
    let found = bus.read(Seen { changed, ..Seen::default() });
    assert_eq!(found.elements[1].area, Some(Area { x: 3, y: 3, width: 10, height: 10 }));
    // What is beside what moved may have moved too.
    assert!(bus.applications[0].asked.contains(&"GetExtents /menu".to_owned()));
}

#[test]
fn who_is_silent_is_not_waited_for_again_until_it_answers() {
    let mut silent = editor();
    silent.bus = ":1.2".into();
    let mut bus = Bus::new(vec![editor(), silent]);
    let before = bus.read(Seen::default()).version;
    assert_eq!(bus.collector.snapshot().elements.len(), 6);
    bus.applications[1].answers = false;
    bus.collector.begin(Seen::default(), bus.now);
    bus.settle();
    assert!(!bus.collector.is_done());
    bus.collector.end();
    let silent = bus.collector.snapshot();
    assert_eq!(silent.applications[1].left_out, "it does not answer");
    // Who keeps a snapshot by its version is to know of that.
    assert!(silent.version > before);
    // It owes an answer: this reading ends without it.
    bus.collector.begin(Seen::default(), bus.now);
    bus.settle();
    assert!(bus.collector.is_done());
    bus.collector.end();
    assert_eq!(bus.collector.snapshot().elements.len(), 6);
    bus.applications[1].answers = true;
    let back = bus.read(Seen::default());
    assert_eq!(back.applications[1].left_out, "");
    assert!(back.version > silent.version);
}

#[test]
fn an_application_that_goes_takes_its_elements_along() {
    let mut bus = Bus::new(vec![editor()]);
    assert_eq!(bus.read(Seen::default()).elements.len(), 3);
    let mut body = Body::default();
    body.str(":1.1").str(":1.1").str("");
    let mut out = Vec::new();
    let sender = ("org.freedesktop.DBus", "/org/freedesktop/DBus");
    said(&mut out, 0, sender, ("org.freedesktop.DBus", "NameOwnerChanged"), ("sss", &body.0));
    bus.feed(&out);
    bus.applications.clear();
    assert!(bus.read(Seen::default()).applications.is_empty());
}

#[test]
fn nobody_answers_for_another() {
    let mut bus = Bus::new(vec![editor(), Application { bus: ":1.9".into(), ..editor() }]);
    bus.read(Seen::default());
    bus.event(":1.9", "/save", "PropertyChange", "accessible-name", 0, Some("of the other"));
    bus.event(":1.7", "/save", "PropertyChange", "accessible-name", 0, Some("of nobody"));
    let found = bus.read(Seen::default());
    let mine: Vec<_> = found.elements.iter().filter(|each| each.application == 0).map(|each| &*each.name).collect();
    assert_eq!(mine, ["Untitled", "Save", "File"]);
}

#[test]
fn objects_in_themselves_end() {
    let objects = [
        (ROOT, Object::new("Round", 75, &["/a"])),
        ("/a", Object::new("a", 23, &["/b", "/a", ROOT])),
        ("/b", Object::new("b", 39, &["/a", "/b", "/b"])),
    ];
    let mut bus = Bus::new(vec![Application::new(":1.1", &objects)]);
    assert_eq!(names(&bus.read(Seen::default())), ["a", "  b"]);
}

#[test]
fn what_is_too_deep_or_too_many_is_cut_and_said() {
    let paths: Vec<String> = (0..5_000).map(|number| format!("/{number}")).collect();
    let mut deep = vec![(ROOT.to_owned(), Object::new("Deep", 75, &["/0"]))];
    for (number, path) in paths.iter().enumerate() {
        let below = format!("/{}", number + 1);
        deep.push((path.clone(), Object::new(path, 39, &[&below])));
    }
    let wide: Vec<String> = (0..3000).map(|number| format!("/w{number}")).collect();
    let children: Vec<&str> = wide.iter().map(String::as_str).collect();
    let mut broad =
        vec![(ROOT.to_owned(), Object::new("Wide", 75, &["/w"])), ("/w".into(), Object::new("w", 23, &children))];
    broad.extend(wide.iter().map(|path| (path.clone(), Object::new(path, 39, &[]))));
    let in_groups = |group: usize| (0..1_000).map(move |number| format!("/g{group}/{number}"));
    let groups: Vec<String> = (0..100).map(|group| format!("/g{group}")).collect();
    let listed: Vec<&str> = groups.iter().map(String::as_str).collect();
    let mut many =
        vec![(ROOT.to_owned(), Object::new("Many", 75, &["/w"])), ("/w".into(), Object::new("w", 23, &listed))];
    for (group, path) in groups.iter().enumerate() {
        let children: Vec<String> = in_groups(group).collect();
        let listed: Vec<&str> = children.iter().map(String::as_str).collect();
        many.push((path.clone(), Object::new(path, 39, &listed)));
        many.extend(children.iter().map(|path| (path.clone(), Object::new(path, 39, &[]))));
    }
    for (objects, most) in [(deep, 101), (broad, 1_001), (many, 20_000)] {
        let objects: Vec<(&str, Object)> =
            objects.iter().map(|(path, object)| (path.as_str(), object.clone())).collect();
        let mut bus = Bus::new(vec![Application::new(":1.1", &objects)]);
        let found = bus.read(Seen::default());
        assert!(found.elements.len() <= most, "{}", found.elements.len());
        assert_eq!(found.applications[0].left_out, "it has too many elements, or too deep ones");
    }
}

#[test]
fn names_have_a_bound() {
    let long = "ä".repeat(10_000_000);
    let objects = [(ROOT, Object::new("Long", 75, &["/w"])), ("/w", Object::new(&long, 23, &[]))];
    let mut bus = Bus::new(vec![Application::new(":1.1", &objects)]);
    assert_eq!(bus.read(Seen::default()).elements[0].name.len(), 1_000);
}

#[test]
fn what_a_password_field_has_is_never_told() {
    let text = 60;
    let mut bus = Bus::new(vec![Application::new(
        ":1.1",
        &[(ROOT, Object::new("Login", 75, &["/w"])), ("/w", Object::new("Key", text, &[]))],
    )]);
    assert_eq!(bus.read(Seen::default()).elements[0].text.as_deref(), Some("written"));
    // It becomes one while it has a text.
    bus.applications[0].objects.get_mut("/w").unwrap().role = 40;
    bus.event(":1.1", "/w", "PropertyChange", "accessible-role", 0, None);
    let found = bus.read(Seen::default());
    assert_eq!((found.elements[0].role, found.elements[0].text.as_deref()), (40, None));
    // One that always was is not even asked.
    let mut bus = Bus::new(vec![Application::new(
        ":1.1",
        &[(ROOT, Object::new("Login", 75, &["/w"])), ("/w", Object::new("Key", 40, &[]))],
    )]);
    bus.read(Seen::default());
    assert!(!bus.applications[0].asked.iter().any(|asked| asked.starts_with("GetText")));
}

#[test]
fn only_the_bus_says_whose_process_it_is() {
    let mut bus = Bus::new(vec![editor(), Application { bus: ":1.9".into(), ..editor() }]);
    bus.collector.begin(Seen::default(), bus.now);
    let mut forged = Vec::new();
    for serial in 1..60 {
        said(&mut forged, serial, (":1.9", ""), ("", ""), ("u", &1_u32.to_le_bytes()));
        bus.feed(&forged);
        forged.clear();
    }
    bus.settle();
    bus.collector.end();
    assert!(bus.collector.snapshot().applications.iter().all(|about| about.pid == 4711));
}

const VISIBLE: u64 = 1 << 30 | 1 << 8;

/// A list of four rows of which one shows, in a window.
fn list() -> Application {
    let row = |name, states| Object { states, ..Object::new(name, 32, &[]) };
    let objects = [
        (ROOT, Object::new("Lists", 75, &["/w"])),
        ("/w", Object::new("Window", 23, &["/list", "/menu", "/page"])),
        ("/list", Object::new("List", 31, &["/0", "/1", "/2"])),
        ("/0", row("First", VISIBLE)),
        ("/1", row("Second", SHOWING)),
        ("/2", row("Third", VISIBLE)),
        ("/menu", Object::new("Menu", 33, &["/item"])),
        ("/item", row("Closed", VISIBLE)),
        ("/page", Object { states: 1 << 8, ..Object::new("Hidden", 39, &["/in"]) }),
        ("/in", row("In a hidden one", VISIBLE)),
    ];
    Application::new(":1.1", &objects)
}

#[test]
fn what_is_scrolled_out_of_sight_is_read_when_it_is_wanted() {
    for has_items in [false, true] {
        let mut bus = Bus::new(vec![Application { has_items, ..list() }]);
        let shown = ["Window", "  List", "    Second", "  Menu"];
        assert_eq!(names(&bus.read(Seen::default())), shown);
        let deep = Seen { deep: true, ..Seen::default() };
        assert_eq!(
            names(&bus.read(deep.clone())),
            ["Window", "  List", "    First", "    Second", "    Third", "  Menu"]
        );
        assert_eq!(names(&bus.read(Seen::default())), shown);
        bus.applications[0].asked.clear();
        bus.read(deep);
        // Only whether it still does not show: an application may not say when it does.
        assert!(bus.applications[0].asked[1..].iter().all(|asked| asked.starts_with("GetState")));
    }
}

#[test]
fn where_one_went_out_of_sight_others_may_have_come() {
    let mut bus = Bus::new(vec![list()]);
    bus.read(Seen::default());
    for (path, states) in [("/1", VISIBLE), ("/2", SHOWING)] {
        bus.applications[0].objects.get_mut(path).unwrap().states = states;
    }
    let changed = vec![Area { x: 0, y: 0, width: 4, height: 4 }];
    let found = bus.read(Seen { changed, ..Seen::default() });
    assert_eq!(names(&found), ["Window", "  List", "    Third", "  Menu"]);
}

#[test]
fn what_shows_before_an_application_sends_events_is_seen_where_pixels_changed() {
    for (age, seen) in [(0, true), (60, false)] {
        let mut bus = Bus::new(vec![Application { has_items: true, ..list() }]);
        bus.read(Seen::default());
        bus.now += Duration::from_secs(age);
        bus.read(Seen::default());
        bus.applications[0].objects.get_mut("/2").unwrap().states = SHOWING;
        let changed = vec![Area { x: 0, y: 0, width: 4, height: 4 }];
        let found = bus.read(Seen { changed, ..Seen::default() });
        assert_eq!(names(&found).contains(&"    Third".to_owned()), seen);
    }
}

#[test]
fn one_that_is_to_be_seen_is_asked_again() {
    let mut bus = Bus::new(vec![list()]);
    let deep = bus.read(Seen { deep: true, ..Seen::default() });
    let third = reference(&deep, "Third");
    bus.applications[0].objects.get_mut("/2").unwrap().states = SHOWING;
    assert_eq!(names(&bus.read(Seen::default())).len(), 4);
    let found = bus.read(Seen { target: Some(third), scrolling: true, ..Seen::default() });
    assert_eq!(names(&found), ["Window", "  List", "    Second", "    Third", "  Menu"]);
}

#[test]
fn an_application_says_whether_it_scrolls() {
    let mut bus = Bus::new(vec![list()]);
    let deep = bus.read(Seen { deep: true, ..Seen::default() });
    // This one refuses.
    bus.collector.scroll_to(reference(&deep, "Third"));
    assert_eq!(bus.collector.scrolled(), None);
    bus.settle();
    assert_eq!(bus.collector.scrolled(), Some(false));
    assert!(bus.applications[0].asked.contains(&"ScrollTo /2".to_owned()));
    bus.collector.scroll_to(4711);
    assert_eq!(bus.collector.scrolled(), Some(false));
}

#[test]
fn what_firefox_says_of_a_new_page_is_asked_again() {
    let mut browser = list();
    browser.toolkit = "Gecko";
    browser.objects.get_mut("/1").unwrap().name = String::new();
    let mut bus = Bus::new(vec![browser]);
    assert_eq!(names(&bus.read(Seen::default())), ["Window", "  List", "    ", "  Menu"]);
    // It knows more of it now, and does not say so; who reads after a long time learns it as well.
    bus.applications[0].objects.get_mut("/1").unwrap().name = "Second".into();
    bus.applications[0].objects.get_mut("/2").unwrap().states = SHOWING;
    bus.now += Duration::from_secs(60);
    let found = bus.read(Seen::default());
    assert_eq!(names(&found), ["Window", "  List", "    Second", "    Third", "  Menu"]);
}

#[test]
fn what_gtk_4_calls_visible_is_left_out_where_it_is_scrolled_away() {
    let mut application = list();
    application.toolkit = "GTK";
    for (path, at) in [("/0", -50), ("/1", 5), ("/2", 50)] {
        let object = application.objects.get_mut(path).unwrap();
        (object.states, object.area) = (VISIBLE, (0, at, 10, 5));
    }
    application.objects.get_mut("/list").unwrap().role = 49;
    application.objects.get_mut("/item").unwrap().states = 0;
    let mut bus = Bus::new(vec![application]);
    assert_eq!(names(&bus.read(Seen::default())), ["Window", "  List", "    Second", "  Menu"]);
    assert!(!bus.applications[0].asked.iter().any(|asked| asked == "GetText /2" || asked == "GetChildren /2"));
    let deep = bus.read(Seen { deep: true, ..Seen::default() });
    assert_eq!(names(&deep).len(), 6);
    // One row further.
    for (path, at) in [("/1", -40), ("/2", 5)] {
        bus.applications[0].objects.get_mut(path).unwrap().area.1 = at;
    }
    let window = elements::Window { pid: 4711, area: Area { x: 0, y: 0, width: 10, height: 10 } };
    let changed = vec![Area { x: 0, y: 0, width: 10, height: 10 }];
    let found = bus.read(Seen { changed, windows: vec![window], ..Seen::default() });
    assert_eq!(names(&found), ["Window", "  List", "    Third", "  Menu"]);
}

#[test]
fn what_chromiums_roles_say_is_not_asked() {
    let mut browser = list();
    browser.toolkit = "Chromium";
    browser.objects.get_mut("/1").unwrap().role = 116;
    let mut bus = Bus::new(vec![browser]);
    let found = bus.read(Seen::default());
    assert_eq!(names(&found), ["Window", "  List", "    Second", "  Menu"]);
    assert_eq!(found.elements[2].area, Some(Area { x: 0, y: 0, width: 10, height: 10 }));
    assert!(!bus.applications[0].asked.iter().any(|asked| asked.starts_with("GetInterfaces")));
    assert!(!bus.applications[0].asked.contains(&"GetChildren /1".to_owned()));
}

#[test]
fn a_page_that_comes_late_is_read() {
    let mut browser = list();
    browser.toolkit = "Chromium";
    let mut bus = Bus::new(vec![browser]);
    let begun = bus.now;
    assert_eq!(bus.read(Seen::default()).elements.len(), 4);
    assert!(bus.now - begun >= Duration::from_secs(2));
    // The next reading does not wait for a page, and the one after it has it.
    let waited = bus.now;
    bus.read(Seen::default());
    assert_eq!(bus.now, waited);
    let objects = &mut bus.applications[0].objects;
    objects.insert("/page".into(), Object::new("Page", 95, &["/text"]));
    objects.insert("/text".into(), Object::new("Text", 116, &[]));
    let found = bus.read(Seen::default());
    assert_eq!(names(&found)[3..], ["  Menu", "  Page", "    Text"]);
    // From then on only what may be different is asked.
    bus.applications[0].asked.clear();
    bus.read(Seen::default());
    assert!(bus.applications[0].asked.iter().all(|asked| asked.starts_with("Ping") || asked.starts_with("GetActions")));
}
