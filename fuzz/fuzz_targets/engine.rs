//! Conversations with either engine, steered by bytes.

#![no_main]

#[path = "../../pintle-proto/tests/support/asking.rs"]
mod asking;
#[path = "../../pintle-proto/tests/support/conversation/mod.rs"]
mod conversation;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|course: &[u8]| match course {
    [128..=255, rest @ ..] => asking::play(rest),
    course => conversation::play(course),
});
