//! Tokens and keys that somebody has tampered with.

#![no_main]

#[path = "../../pintle-oauth/tests/support/mod.rs"]
#[allow(dead_code, reason = "each target plays one of them")]
mod support;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|course: &[u8]| support::oauth_tokens::play(course));
