//! A table that has too many cells to list.

use elements::{Area, Element, Seen, Snapshot};

use crate::application::{Application, Bus, Object, ROOT, SHOWING, Sheet};

const MANAGES_DESCENDANTS: u64 = 1 << 31;

fn bus(first: (i32, i32), last: (i32, i32)) -> Bus {
    let table =
        Object { states: SHOWING | MANAGES_DESCENDANTS, area: (0, 0, 50, 50), ..Object::new("Sheet1", 55, &[]) };
    let objects = [
        (ROOT, Object::new("Calc", 75, &["/w"])),
        ("/w", Object { area: (0, 0, 50, 50), ..Object::new("Untitled", 23, &["/table"]) }),
        ("/table", table),
    ];
    let sheet = Sheet { first, last, given: 0, oldest: 0, text: "3".into(), states: SHOWING };
    Bus::new(vec![Application { sheet: Some(sheet), ..Application::new(":1.1", &objects) }])
}

fn sheet(bus: &mut Bus) -> &mut Sheet {
    bus.applications[0].sheet.as_mut().unwrap()
}

fn everywhere() -> Seen {
    Seen { changed: vec![Area { x: 0, y: 0, width: 50, height: 50 }], ..Seen::default() }
}

fn cells(found: &Snapshot) -> Vec<&Element> {
    found.elements.iter().filter(|each| each.role == 56).collect()
}

fn names(found: &Snapshot) -> Vec<String> {
    cells(found).iter().map(|cell| cell.name.to_string()).collect()
}

#[test]
fn the_cells_in_view_are_elements_of_their_table() {
    let mut bus = bus((2, 3), (3, 4));
    let found = bus.read(Seen::default());
    assert_eq!(names(&found), ["R2C3", "R2C4", "R3C3", "R3C4"]);
    let last = cells(&found)[3];
    assert_eq!((last.depth, last.text.as_deref()), (2, Some("3")));
    assert_eq!(last.area, Some(Area { x: 10, y: 10, width: 10, height: 10 }));
    // The table says how many there are besides.
    assert_eq!(found.elements[1].hidden, i32::MAX as u32 - 4);
}

#[test]
fn what_has_not_changed_is_not_asked_again() {
    let mut bus = bus((0, 0), (1, 1));
    bus.read(Seen::default());
    bus.applications[0].asked.clear();
    bus.read(Seen::default());
    assert_eq!(bus.applications[0].asked, [format!("Ping {ROOT}")]);
}

#[test]
fn a_cell_keeps_its_reference_while_it_is_in_view() {
    let mut bus = bus((0, 0), (1, 1));
    let before = bus.read(Seen::default());
    sheet(&mut bus).text = "4".into();
    (sheet(&mut bus).first, sheet(&mut bus).last) = ((1, 0), (2, 1));
    let after = bus.read(everywhere());
    assert_eq!(names(&after), ["R1C0", "R1C1", "R2C0", "R2C1"]);
    assert!(cells(&after).iter().all(|cell| cell.text.as_deref() == Some("4")));
    assert_eq!(cells(&before)[2].reference, cells(&after)[0].reference);
    assert_eq!(cells(&after)[0].area, Some(Area { x: 0, y: 0, width: 10, height: 10 }));
    // One that has left the view and comes back has another reference.
    (sheet(&mut bus).first, sheet(&mut bus).last) = ((0, 0), (1, 1));
    let back = bus.read(everywhere());
    assert_ne!(cells(&before)[0].reference, cells(&back)[0].reference);
    assert_eq!(cells(&before)[2].reference, cells(&back)[2].reference);
}

#[test]
fn a_cell_whose_object_is_gone_has_another() {
    let mut bus = bus((0, 0), (1, 1));
    let before = bus.read(Seen::default());
    sheet(&mut bus).oldest = sheet(&mut bus).given + 1;
    sheet(&mut bus).text = "5".into();
    let after = bus.read(everywhere());
    assert_eq!(names(&after), names(&before));
    assert_eq!(cells(&before)[3].reference, cells(&after)[3].reference);
    assert_eq!(cells(&after)[3].text.as_deref(), Some("5"));
}

#[test]
fn a_chosen_cell_that_changed_is_asked_again_until_its_text_is_another() {
    let mut bus = bus((0, 0), (1, 1));
    sheet(&mut bus).states |= 1 << 12;
    bus.read(Seen::default());
    // Calc gives the old text of a cell that was emptied.
    bus.read(everywhere());
    sheet(&mut bus).text = String::new();
    let elsewhere = Seen { changed: vec![Area { x: 40, y: 40, width: 1, height: 1 }], ..Seen::default() };
    let after = bus.read(elsewhere.clone());
    assert!(cells(&after).iter().all(|cell| cell.text.as_deref() == Some("")));
    bus.applications[0].asked.clear();
    bus.read(elsewhere);
    assert!(!bus.applications[0].asked.iter().any(|asked| asked.starts_with("GetText")));
}

#[test]
fn a_table_without_cells_at_its_corners_has_none() {
    for (first, last) in [((0, 0), (0, -1)), ((5, 5), (2, 2)), ((-7, 0), (3, 3))] {
        let found = bus(first, last).read(Seen::default());
        assert_eq!(names(&found), [""; 0], "{first:?} to {last:?}");
        assert_eq!(found.applications[0].left_out, "");
    }
}

#[test]
fn a_table_with_too_many_cells_in_view_says_so() {
    let found = bus((0, 0), (99, 99)).read(Seen::default());
    assert_eq!(names(&found), [""; 0]);
    assert_eq!(found.applications[0].left_out, "it has too many elements, or too deep ones");
}
