//! How a display is opened.

use crate::grab::Method;

/// How to open a [`crate::Display`].
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Only look: take no lease, refuse input.
    pub view_only: bool,
    /// Use this capture method or fail.
    pub method: Option<Method>,
    /// The server is for our programs only: its keymap may be changed permanently.
    pub own: bool,
    /// What the lease says about us, for the next driver's error message.
    pub driver: String,
}
