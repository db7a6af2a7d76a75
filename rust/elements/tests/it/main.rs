//! The messages, and what is made of an application's answers, by applications that a test plays.

mod application;
mod body;
mod covered;
mod reading;
mod sheet;
mod untold;
mod wire;
