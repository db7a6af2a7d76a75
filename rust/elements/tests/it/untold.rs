//! What Qt and GTK 4 do not tell, and what Chromium tells late.

use elements::{Area, Seen, Snapshot};

use crate::application::{Application, Bus, Object, ROOT, SHOWING};

const ITEM: u32 = 32;
const LONG: std::time::Duration = std::time::Duration::from_secs(20);

/// A window with a button and an item of a list, which is not new any more.
fn bus(toolkit: &'static str) -> (Bus, Snapshot) {
    let objects = [
        (ROOT, Object::new("Program", 75, &["/w"])),
        ("/w", Object { area: (0, 0, 100, 100), ..Object::new("Untitled", 23, &["/go", "/item"]) }),
        ("/go", Object::new("Go", 43, &[])),
        ("/item", Object { area: (50, 50, 10, 10), ..Object::new("One", ITEM, &[]) }),
    ];
    let mut bus = Bus::new(vec![Application { toolkit, ..Application::new(":1.1", &objects) }]);
    bus.read(Seen::default());
    bus.now += LONG;
    let found = bus.read(Seen::default());
    bus.applications[0].asked.clear();
    (bus, found)
}

fn changed(x: i32, y: i32) -> Seen {
    Seen { changed: vec![Area { x, y, width: 1, height: 1 }], ..Seen::default() }
}

fn object<'a>(bus: &'a mut Bus, path: &str) -> &'a mut Object {
    bus.applications[0].objects.get_mut(path).unwrap()
}

#[test]
fn names_are_asked_again_where_pixels_changed_and_of_windows_always() {
    for (toolkit, asked) in [("Qt", true), ("gtk", false)] {
        let (mut bus, _) = bus(toolkit);
        object(&mut bus, "/go").name = "Went".into();
        object(&mut bus, "/w").name = "Titled".into();
        // A pixel of the button; its window is asked for its title wherever it was.
        let found = bus.read(changed(5, 5));
        let names: Vec<&str> = found.elements.iter().map(|each| &*each.name).collect();
        assert_eq!(names, if asked { ["Titled", "Went", "One"] } else { ["Untitled", "Go", "One"] });
        assert!(!bus.applications[0].asked.iter().any(|asked| asked == "GetState /item"));
    }
}

#[test]
fn what_may_change_along_is_asked_with_a_change_only() {
    let (mut bus, _) = bus("Qt");
    bus.read(changed(5, 5));
    assert!(!bus.applications[0].asked.iter().any(|asked| asked.starts_with("GetRole")));
    object(&mut bus, "/go").name = "Went".into();
    object(&mut bus, "/go").role = 62;
    let found = bus.read(changed(5, 5));
    assert_eq!(found.elements[1].role, 62);
}

#[test]
fn an_item_with_another_name_has_another_reference_and_a_widget_keeps_its_own() {
    let (mut bus, before) = bus("Qt");
    object(&mut bus, "/go").name = "Went".into();
    object(&mut bus, "/item").name = "Two".into();
    let found = bus.read(Seen { changed: vec![Area { x: 0, y: 0, width: 100, height: 100 }], ..Seen::default() });
    assert_eq!(before.elements[1].reference, found.elements[1].reference);
    assert_ne!(before.elements[2].reference, found.elements[2].reference);
    assert_eq!((&*found.elements[2].name, found.elements[2].area.unwrap().x), ("Two", 50));
}

#[test]
fn one_that_begins_to_show_where_one_shows_is_another_one() {
    let (mut bus, before) = bus("Qt");
    object(&mut bus, "/go").name = "Next".into();
    bus.event(":1.1", "/go", "StateChanged", "showing", 1, None);
    let found = bus.read(Seen::default());
    assert_eq!(&*found.elements[1].name, "Next");
    assert_ne!(before.elements[1].reference, found.elements[1].reference);
    // One that was hidden is the same one.
    object(&mut bus, "/go").states = 0;
    bus.event(":1.1", "/go", "StateChanged", "showing", 0, None);
    assert_eq!(bus.read(Seen::default()).elements.len(), 2);
    object(&mut bus, "/go").states = SHOWING;
    bus.event(":1.1", "/go", "StateChanged", "showing", 1, None);
    assert_eq!(found.elements[1].reference, bus.read(Seen::default()).elements[1].reference);
}

#[test]
fn one_that_is_acted_on_is_asked_where_it_is() {
    for (toolkit, around) in [("Qt", true), ("Chromium", true), ("gtk", false), ("GTK", false)] {
        let (mut bus, before) = bus(toolkit);
        object(&mut bus, "/go").area = (30, 30, 10, 10);
        let found = bus.read(Seen { target: Some(before.elements[1].reference), ..Seen::default() });
        assert_eq!(found.elements[1].area.unwrap().x, 30, "{toolkit}");
        // What it is in is asked where no event says so, or too late.
        assert_eq!(bus.applications[0].asked.iter().any(|asked| asked == "GetState /w"), around, "{toolkit}");
    }
}

#[test]
fn what_chromium_tells_of_places_is_asked_once_more_when_it_cannot_be_late_any_more() {
    for (toolkit, age, again) in [("Chromium", 0, true), ("Chromium", 5, false), ("gtk", 0, false)] {
        let (mut bus, _) = bus(toolkit);
        let age = std::time::Duration::from_secs(age);
        bus.read(Seen { age, ..changed(5, 5) });
        object(&mut bus, "/go").area = (0, 2, 10, 10);
        bus.now += std::time::Duration::from_secs(1);
        let found = bus.read(Seen::default());
        assert_eq!(found.elements[1].area.unwrap().y, if again { 2 } else { 0 });
        // And then, once what is beside it was asked as well, no more.
        bus.read(Seen::default());
        bus.now += std::time::Duration::from_secs(1);
        bus.applications[0].asked.clear();
        bus.read(Seen::default());
        assert!(!bus.applications[0].asked.iter().any(|asked| asked.starts_with("GetExtents")));
    }
}

#[test]
fn a_line_that_was_written_in_is_known_for_its_application() {
    const WRITTEN: u64 = SHOWING | 1 << 12 | 1 << 7 | 1 << 26;
    for (toolkit, states, known) in [("gtk", WRITTEN, true), ("gtk", SHOWING, false), ("Qt", WRITTEN, false)] {
        let (mut bus, before) = bus(toolkit);
        object(&mut bus, "/go").states = states;
        bus.read(changed(5, 5));
        bus.event(":1.1", "/go", "TextChanged", "insert", 0, Some("A"));
        let now = bus.now + LONG;
        let since = bus.collector.since_written(before.elements[2].reference, now);
        assert_eq!(since, known.then_some(LONG));
    }
}

#[test]
fn what_is_in_a_list_that_opens_is_asked_where_it_is() {
    let objects = [
        (ROOT, Object::new("Program", 75, &["/w"])),
        ("/w", Object::new("Untitled", 23, &["/list"])),
        ("/list", Object { area: (0, 0, 0, 0), ..Object::new("", 31, &["/item"]) }),
        ("/item", Object { area: (0, 0, 10, 10), ..Object::new("One", ITEM, &[]) }),
    ];
    let mut bus = Bus::new(vec![Application { toolkit: "Qt", ..Application::new(":1.1", &objects) }]);
    bus.read(Seen::default());
    bus.now += LONG;
    bus.read(Seen::default());
    object(&mut bus, "/list").area = (50, 50, 10, 10);
    object(&mut bus, "/item").area = (50, 50, 10, 10);
    // It opens: an event says that it shows, which it did already.
    bus.event(":1.1", "/list", "StateChanged", "showing", 1, None);
    let found = bus.read(changed(55, 55));
    assert_eq!(found.elements[2].area.unwrap().x, 50);
}

#[test]
fn what_hides_is_asked_whether_it_shows_where_another_one_is_acted_on() {
    for toolkit in ["Qt", "Chromium", "gtk"] {
        let (mut bus, before) = bus(toolkit);
        object(&mut bus, "/item").states = 0;
        bus.event(":1.1", "/item", "StateChanged", "showing", 0, None);
        object(&mut bus, "/item").states = SHOWING;
        let target = Some(before.elements[1].reference);
        let found = bus.read(Seen { deep: true, target, ..Seen::default() });
        assert_eq!(found.elements[2].states, SHOWING, "{toolkit}");
    }
}

#[test]
fn a_label_that_has_another_name_is_asked_for_its_text() {
    let objects = [
        (ROOT, Object::new("Program", 75, &["/w"])),
        ("/w", Object::new("Untitled", 23, &["/label"])),
        ("/label", Object::new("Before", 29, &[])),
    ];
    let mut bus = Bus::new(vec![Application { toolkit: "GTK", ..Application::new(":1.1", &objects) }]);
    bus.read(Seen::default());
    bus.now += LONG;
    bus.read(Seen::default());
    bus.applications[0].asked.clear();
    // It may be below another element: no pixel changes.
    bus.event(":1.1", "/label", "PropertyChange", "accessible-name", 0, Some("After"));
    bus.read(Seen::default());
    assert!(bus.applications[0].asked.contains(&"GetText /label".to_owned()));
}
