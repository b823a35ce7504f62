//! Traffic that is shown, recorded, replayed and measured.

mod bench;
mod replay;
mod tap;
mod tap_http;
mod trace;

use std::path::PathBuf;

use crate::support::state_directory;

/// A path for a file of a test, which does not exist.
pub(crate) fn fresh_file(name: &str) -> PathBuf {
    std::fs::create_dir_all(state_directory()).unwrap();
    let path = state_directory().join(name);
    // Left by a test that failed.
    let _ = std::fs::remove_file(&path);
    path
}

/// The messages of a recording, by their methods: `→ tools/call`, `← result`.
pub(crate) fn methods(path: &std::path::Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let messages = lines.filter(|line| line["message"].is_object());
    messages
        .map(|line| {
            let message = &line["message"];
            let arrow = if line["direction"] == "out" { "→" } else { "←" };
            let what = match message["method"].as_str() {
                Some(method) => method,
                None if message["error"].is_object() => "error",
                None => "result",
            };
            format!("{arrow} {what}")
        })
        .collect()
}
