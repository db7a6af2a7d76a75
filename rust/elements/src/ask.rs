//! What applications are asked.

use crate::wire::{Argument, call};

pub(crate) const ACCESSIBLE: &str = "org.a11y.atspi.Accessible";
pub(crate) const APPLICATION: &str = "org.a11y.atspi.Application";
pub(crate) const ROOT: &str = "/org/a11y/atspi/accessible/root";
pub(crate) const REGISTRY: &str = "org.a11y.atspi.Registry";
pub(crate) const BUS: &str = "org.freedesktop.DBus";
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";
/// Signs of a text that are read.
pub(crate) const LONGEST_TEXT: i32 = 4_000;
const COMPONENT: &str = "org.a11y.atspi.Component";
const TABLE: &str = "org.a11y.atspi.Table";
const SCREEN: u32 = 0;
/// Wherever on the screen it may be.
const ANYWHERE: u32 = 6;

/// A question about an object, or about the application that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ask {
    State,
    Children,
    /// How many children it has, where they may be too many to list.
    Count,
    Name,
    Description,
    Role,
    Interfaces,
    Extents,
    Text,
    Value,
    Actions,
    /// How many columns a table has.
    Columns,
    /// The cell in the upper left corner of a table.
    First,
    /// The one in its lower right corner.
    Last,
    /// Which child the first cell is.
    FirstIndex,
    /// Which child the last one is.
    LastIndex,
    /// Where the object of a cell is, by row and column.
    Cell,
    /// All that the application's cache has.
    Items,
    /// The application's toolkit.
    Toolkit,
    /// The toolkit's version.
    Version,
    /// A ping: all earlier events come before its answer.
    Ping,
    /// Its attributes, which are of no use here: browsers make the tree of a page when somebody asks for them.
    Wake,
    /// Which process has the connection. The bus itself answers that.
    Process,
    /// To be scrolled to where it can be seen.
    Scroll,
}

impl Ask {
    /// Its place in a set of questions.
    pub(crate) const fn bit(self) -> u32 {
        1 << self as u32
    }

    /// Those about an object.
    pub(crate) const OF_OBJECTS: [Self; 17] = [
        Self::State,
        Self::Count,
        Self::Children,
        Self::Name,
        Self::Description,
        Self::Role,
        Self::Interfaces,
        Self::Extents,
        Self::Text,
        Self::Value,
        Self::Actions,
        Self::Columns,
        Self::First,
        Self::Last,
        Self::FirstIndex,
        Self::LastIndex,
        Self::Cell,
    ];

    /// Appends the call to `out`, with the two numbers that some take: a place on the screen, a row and a column, or a range.
    pub(crate) fn write(self, out: &mut Vec<u8>, serial: u32, bus: &str, path: &str, (first, second): (i32, i32)) {
        let object = (bus, path);
        match self {
            Self::State => call(out, serial, object, (ACCESSIBLE, "GetState"), &[]),
            Self::Children => call(out, serial, object, (ACCESSIBLE, "GetChildren"), &[]),
            // One by one: `Properties.GetAll` crashes programs of Qt 5 and 6.4.
            Self::Name | Self::Description | Self::Count => {
                let name = match self {
                    Self::Name => "Name",
                    Self::Description => "Description",
                    _ => "ChildCount",
                };
                let property = [Argument::Text(ACCESSIBLE), Argument::Text(name)];
                call(out, serial, object, (PROPERTIES, "Get"), &property);
            }
            Self::Role => call(out, serial, object, (ACCESSIBLE, "GetRole"), &[]),
            Self::Interfaces => call(out, serial, object, (ACCESSIBLE, "GetInterfaces"), &[]),
            Self::Wake => call(out, serial, object, (ACCESSIBLE, "GetAttributes"), &[]),
            Self::Extents => {
                call(out, serial, object, (COMPONENT, "GetExtents"), &[Argument::Unsigned(SCREEN)]);
            }
            Self::Scroll => {
                call(out, serial, object, (COMPONENT, "ScrollTo"), &[Argument::Unsigned(ANYWHERE)]);
            }
            Self::Text => {
                let range = [Argument::Signed(first), Argument::Signed(second)];
                call(out, serial, object, ("org.a11y.atspi.Text", "GetText"), &range);
            }
            Self::Value => {
                let property = [Argument::Text("org.a11y.atspi.Value"), Argument::Text("CurrentValue")];
                call(out, serial, object, (PROPERTIES, "Get"), &property);
            }
            Self::Columns => {
                let property = [Argument::Text(TABLE), Argument::Text("NColumns")];
                call(out, serial, object, (PROPERTIES, "Get"), &property);
            }
            Self::First | Self::Last => {
                let place = [Argument::Signed(first), Argument::Signed(second), Argument::Unsigned(SCREEN)];
                call(out, serial, object, (COMPONENT, "GetAccessibleAtPoint"), &place);
            }
            Self::FirstIndex | Self::LastIndex => {
                call(out, serial, object, (ACCESSIBLE, "GetIndexInParent"), &[]);
            }
            Self::Cell => {
                let place = [Argument::Signed(first), Argument::Signed(second)];
                call(out, serial, object, (TABLE, "GetAccessibleAt"), &place);
            }
            Self::Actions => call(out, serial, object, ("org.a11y.atspi.Action", "GetActions"), &[]),
            Self::Items => {
                call(out, serial, (bus, "/org/a11y/atspi/cache"), ("org.a11y.atspi.Cache", "GetItems"), &[]);
            }
            Self::Toolkit | Self::Version => {
                let name = if self == Self::Toolkit { "ToolkitName" } else { "Version" };
                let property = [Argument::Text(APPLICATION), Argument::Text(name)];
                call(out, serial, (bus, ROOT), (PROPERTIES, "Get"), &property);
            }
            Self::Ping => call(out, serial, (bus, ROOT), ("org.freedesktop.DBus.Peer", "Ping"), &[]),
            Self::Process => {
                let who = [Argument::Text(bus)];
                call(out, serial, (BUS, "/org/freedesktop/DBus"), (BUS, "GetConnectionUnixProcessID"), &who);
            }
        }
    }
}

/// What is sent once, when a connection begins: which signals are wanted.
pub(crate) fn subscribe(out: &mut Vec<u8>, mut serial: impl FnMut() -> u32) {
    let rules = [
        "type='signal',interface='org.a11y.atspi.Event.Object'",
        "type='signal',interface='org.a11y.atspi.Event.Window'",
        "type='signal',interface='org.a11y.atspi.Cache'",
        "type='signal',sender='org.freedesktop.DBus',member='NameOwnerChanged'",
    ];
    for rule in rules {
        call(out, serial(), (BUS, "/org/freedesktop/DBus"), (BUS, "AddMatch"), &[Argument::Text(rule)]);
    }
    let events = [
        "object:state-changed",
        "object:children-changed",
        "object:property-change",
        "object:text-changed",
        "object:bounds-changed",
        "object:visible-data-changed",
        "object:model-changed",
        "object:row-inserted",
        "object:row-deleted",
        "window:",
    ];
    for event in events {
        let registry = (REGISTRY, "/org/a11y/atspi/registry");
        call(out, serial(), registry, (REGISTRY, "RegisterEvent"), &[Argument::Text(event)]);
    }
}
