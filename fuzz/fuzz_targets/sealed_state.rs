//! A client that tampers with a `requestState`.

#![no_main]

#[path = "../../pintle/tests/support/mod.rs"]
#[allow(dead_code, reason = "each target plays one of them")]
mod support;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|course: &[u8]| support::sealed_state::play(course));
