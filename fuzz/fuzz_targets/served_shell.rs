//! A value of a command that is printed for shells.

#![no_main]

#[path = "../../pintle-serve/tests/support/served_tool.rs"]
#[expect(dead_code, reason = "the other checks have a target of their own")]
mod served_tool;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|value: &str| served_tool::play_shells(value));
