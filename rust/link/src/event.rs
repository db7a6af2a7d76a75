//! The events a desktop understands, as the Python side sends them.

/// One input event; translation of actions into these happens above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Pointer to this pixel.
    Move(u16, u16),
    /// Button 1–9 pressed or released.
    Button(u8, bool),
    /// Keysym pressed or released.
    Key(u32, bool),
    /// Nothing for this many milliseconds.
    Pause(u32),
}
