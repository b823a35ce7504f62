//! A text in YAML.

#![no_main]

#[path = "../../pintle-yaml/tests/support/yaml.rs"]
mod yaml;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| yaml::play(text));
