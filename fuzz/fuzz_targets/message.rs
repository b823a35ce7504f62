//! Bytes as a message, a batch or an object: a parsed value prints equivalently.

#![no_main]

#[path = "../../pintle-types/tests/it/laws/mod.rs"]
mod laws;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    laws::frame(bytes);
    if let Ok(text) = std::str::from_utf8(bytes) {
        laws::object(text);
    }
});
