//! A value of a tool of a file.

#![no_main]

#[path = "../../pintle-serve/tests/support/served_tool.rs"]
mod served_tool;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|value: &str| served_tool::play(value));
