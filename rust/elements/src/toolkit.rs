//! The toolkits that differ in what they tell.

/// What an application is made with, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Toolkit {
    Chromium,
    /// GTK 3, and `LibreOffice` with it.
    Gtk3,
    Gtk4,
    Gecko,
    Qt,
    Other,
}

impl Toolkit {
    /// Whether what it tells of places may be what they were some time ago: the process that draws tells another one, that is asked.
    pub(crate) fn is_late(self) -> bool {
        self == Self::Chromium
    }

    /// Whether it sends events of places, and of the names and roles of all that it shows.
    pub(crate) fn tells_changes(self) -> bool {
        self != Self::Qt
    }

    /// By what it calls itself.
    pub(crate) fn named(name: &str) -> Self {
        match name {
            "Chromium" => Self::Chromium,
            "gtk" => Self::Gtk3,
            "GTK" => Self::Gtk4,
            "Gecko" => Self::Gecko,
            "Qt" => Self::Qt,
            _ => Self::Other,
        }
    }
}
