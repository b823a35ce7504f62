//! Requests of an HTTP session, in any order.

#![no_main]

#[path = "../../pintle/tests/support/mod.rs"]
#[allow(dead_code, reason = "each target plays one of them")]
mod support;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|course: &[u8]| support::session_sequence::play(course));
