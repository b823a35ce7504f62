//! A URI template and a URI.

#![no_main]

#[path = "../../pintle/tests/support/mod.rs"]
#[allow(dead_code, reason = "each target plays one of them")]
mod support;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &str| support::uri_template::play(input));
