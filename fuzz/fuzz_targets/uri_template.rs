//! A URI template and a URI.

#![no_main]

#[path = "../../pintle-uri/tests/support/uri_template.rs"]
mod uri_template;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &str| uri_template::play(input));
