//! A value of a tool of a file; and one of a line for a shell, or of a URL, that stands before it.

#![no_main]

#[path = "../../pintle-serve/tests/support/served_tool.rs"]
#[expect(dead_code, reason = "the check with shells has a target of its own")]
mod served_tool;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| match text.split_once('\0') {
    Some((text, value)) => served_tool::play_text(text, value),
    None => served_tool::play(text),
});
