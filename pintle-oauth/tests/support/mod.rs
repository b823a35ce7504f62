//! Plays that bytes describe: the property tests and the fuzz targets share them.

#[path = "../../../pintle-proto/tests/support/conversation/course.rs"]
mod course;
pub(crate) mod oauth_documents;
pub(crate) mod oauth_tokens;

use std::{future::Future, time::Duration};

use course::Course;
use serde_json::{Value, json};

/// Runs a play in paused time. One that waits for something that never comes fails after a day of that time.
fn run(play: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime =
        runtime.enable_all().start_paused(true).build().expect("a runtime needs no more than memory");
    runtime.block_on(async {
        tokio::time::timeout(Duration::from_secs(24 * 3600), play).await.expect("the play never ends");
    });
}

/// A value that somebody who means harm would put into a document.
fn nasty(course: &mut Course<'_>) -> Value {
    match course.below(12) {
        0 => Value::Null,
        1 => json!(""),
        2 => json!("https://evil.test"),
        3 => json!("https://evil.test/token"),
        4 => json!("https://as.test@evil.test/token"),
        5 => json!(["http://127.0.0.1:9/x", "https://10.0.0.1/x", "https://[::1]/x"][course.below(3)]),
        6 => json!(["https://evil.test", "https://as.test"]),
        7 => json!(-1.5e300),
        8 => json!(u64::MAX),
        9 => json!({ "a": [null, { "b": "\u{0}\n\u{202e}" }] }),
        10 => json!("x".repeat(course.below(256) * 64)),
        _ => json!(String::from_utf8_lossy(course.bytes(16))),
    }
}
