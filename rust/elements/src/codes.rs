//! The numbers that AT-SPI has for states, roles and interfaces.

/// Bits of a state, as AT-SPI numbers them (`atspi-constants.h`).
pub(crate) mod state {
    pub(crate) const ACTIVE: u64 = 1 << 1;
    pub(crate) const DEFUNCT: u64 = 1 << 6;
    pub(crate) const EDITABLE: u64 = 1 << 7;
    pub(crate) const FOCUSED: u64 = 1 << 12;
    pub(crate) const SELECTED: u64 = 1 << 23;
    pub(crate) const SINGLE_LINE: u64 = 1 << 26;
    pub(crate) const SHOWING: u64 = 1 << 25;
    pub(crate) const VISIBLE: u64 = 1 << 30;
    pub(crate) const MANAGES_DESCENDANTS: u64 = 1 << 31;
    /// By what events call them.
    pub(crate) const NAMES: [&str; 44] = [
        "invalid",
        "active",
        "armed",
        "busy",
        "checked",
        "collapsed",
        "defunct",
        "editable",
        "enabled",
        "expandable",
        "expanded",
        "focusable",
        "focused",
        "has-tooltip",
        "horizontal",
        "iconified",
        "modal",
        "multi-line",
        "multiselectable",
        "opaque",
        "pressed",
        "resizable",
        "selectable",
        "selected",
        "sensitive",
        "showing",
        "single-line",
        "stale",
        "transient",
        "vertical",
        "visible",
        "manages-descendants",
        "indeterminate",
        "required",
        "truncated",
        "animated",
        "invalid-entry",
        "supports-autocompletion",
        "selectable-text",
        "is-default",
        "visited",
        "checkable",
        "has-popup",
        "read-only",
    ];
}

/// Bits of the interfaces that an object has.
pub(crate) mod interface {
    pub(crate) const COMPONENT: u8 = 1;
    pub(crate) const TEXT: u8 = 2;
    pub(crate) const EDITABLE: u8 = 4;
    pub(crate) const VALUE: u8 = 8;
    pub(crate) const ACTION: u8 = 16;
    pub(crate) const TABLE: u8 = 32;

    pub(crate) fn bit(name: &str) -> u8 {
        match name {
            "org.a11y.atspi.Component" => COMPONENT,
            "org.a11y.atspi.Text" => TEXT,
            "org.a11y.atspi.EditableText" => EDITABLE,
            "org.a11y.atspi.Value" => VALUE,
            "org.a11y.atspi.Action" => ACTION,
            "org.a11y.atspi.Table" => TABLE,
            _ => 0,
        }
    }
}

/// Numbers of roles (`atspi-constants.h`) that are treated in a way of their own.
pub(crate) mod role {
    pub(crate) const PASSWORD: u32 = 40;
    pub(crate) const SCROLL_PANE: u32 = 49;
    pub(crate) const TABLE_CELL: u32 = 56;
    pub(crate) const VIEWPORT: u32 = 68;
    pub(crate) const STATIC: u32 = 116;
    /// Objects that have nothing in them but what is written in them: icons, images, labels, separators and static texts.
    pub(crate) const LEAVES: [u32; 5] = [26, 27, 29, 50, 116];
    /// Objects that have a number: progress bars, scroll bars, sliders, spin buttons and meters.
    pub(crate) const RANGES: [u32; 5] = [42, 48, 51, 52, 103];
    pub(crate) const DOCUMENT_WEB: u32 = 95;
    /// Objects that are there to be used; browsers give an action to every paragraph.
    pub(crate) const ACTING: [u32; 22] =
        [7, 8, 11, 26, 32, 33, 35, 37, 41, 43, 44, 45, 51, 52, 56, 61, 62, 79, 88, 91, 129, 130];
    /// Menus in a bar or a menu, and their items, which may be menus too.
    pub(crate) const MENUS: [u32; 2] = [33, 35];
    /// Objects that hide what is in them while they are closed: combo boxes, menus, menu items and tabs.
    pub(crate) const CLOSING: [u32; 6] = [11, 33, 34, 35, 37, 41];
    /// Objects that are parts of a model in Qt, and no widgets: items of lists, menus and trees, cells, headers and tabs.
    pub(crate) const ITEMS: [u32; 11] = [8, 10, 32, 35, 37, 45, 47, 56, 57, 58, 91];
    /// Objects of which the text is more than their name: terminals, texts, entries, paragraphs, headings...
    pub(crate) const TEXTS: [u32; 9] = [29, 60, 61, 73, 77, 79, 82, 83, 94];
}
