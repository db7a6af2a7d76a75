//! An X server that answers as it likes: whatever it says, a driver comes to an end, and its screen can be looked at meanwhile.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| capture::fuzzing::session(bytes));
