//! What an application's signals mean for what is known of its objects.

use crate::ask::Ask;
use crate::codes::state;
use crate::node::{LONGEST_NAME, beginning};
use crate::wire::{Malformed, Message, Value};

/// The meaning of a signal.
#[derive(Debug, PartialEq)]
pub(crate) enum News<'a> {
    /// A bit of the object's state.
    State(u64, bool),
    /// The object's new name.
    Name(&'a str),
    /// The object's new description.
    Description(&'a str),
    /// These answers no longer hold.
    Stale(&'static [Ask]),
    /// The object has gone.
    Gone(&'a str),
    /// A window came or went, or the whole application changed.
    Windows,
    /// Nothing that matters here.
    Nothing,
}

/// Reads an event (`org.a11y.atspi.Event.*`): a detail, two numbers and a value.
///
/// # Errors
/// When it is none.
pub(crate) fn read<'a>(message: &Message<'a>) -> Result<News<'a>, Malformed> {
    if message.interface == "org.a11y.atspi.Cache" {
        return cache(message);
    }
    if message.interface == "org.a11y.atspi.Event.Window" {
        return Ok(match message.member {
            "Create" | "Destroy" | "Close" => News::Windows,
            _ => News::Nothing,
        });
    }
    if message.interface != "org.a11y.atspi.Event.Object" {
        return Ok(News::Nothing);
    }
    let mut body = message.body();
    let detail = body.str()?;
    let (first, _second) = (body.i32()?, body.i32()?);
    Ok(match message.member {
        "StateChanged" => match state::NAMES.iter().position(|name| *name == detail) {
            Some(_) if detail == "defunct" && first != 0 => News::Gone(message.path),
            Some(bit) => News::State(1 << bit, first != 0),
            None => News::Stale(&[Ask::State]),
        },
        "ChildrenChanged" | "ModelChanged" | "RowInserted" | "RowDeleted" => News::Stale(&[Ask::Children]),
        "PropertyChange" => match (detail, body.variant()?) {
            ("accessible-name", Value::Text(text)) => News::Name(beginning(text, LONGEST_NAME)),
            ("accessible-description", Value::Text(text)) => News::Description(beginning(text, LONGEST_NAME)),
            ("accessible-name", _) => News::Stale(&[Ask::Name]),
            ("accessible-description", _) => News::Stale(&[Ask::Description]),
            ("accessible-role", _) => News::Stale(&[Ask::Role, Ask::Interfaces]),
            ("accessible-value", _) => News::Stale(&[Ask::Value]),
            _ => News::Nothing,
        },
        "TextChanged" => News::Stale(&[Ask::Text]),
        "BoundsChanged" => News::Stale(&[Ask::Extents]),
        "VisibleDataChanged" => News::Stale(&[Ask::Children, Ask::Extents, Ask::Text]),
        _ => News::Nothing,
    })
}

fn cache<'a>(message: &Message<'a>) -> Result<News<'a>, Malformed> {
    let mut body = message.body();
    Ok(match message.member {
        "RemoveAccessible" => News::Gone(body.object()?.1),
        // Its parent sends an event too, and is asked for its children then.
        _ => News::Nothing,
    })
}
