//! The crate from outside: bytes in, screen and events out.

mod cuts;
mod decoders;
mod encoders;
mod handshake;
mod malformed;
mod messages;
mod recorded;
mod seeds;
mod wire;
