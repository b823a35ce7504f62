//! Plays that bytes describe: the property tests and the fuzz targets share them.

#[path = "../../../pintle-proto/tests/support/conversation/course.rs"]
mod course;
pub(crate) mod event_stream;
mod exchange;
pub(crate) mod sealed_state;
pub(crate) mod session_sequence;

use std::{future::Future, time::Duration};

/// Runs a play in paused time. One that waits for something that never comes fails after a day of that time.
fn run(play: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime =
        runtime.enable_time().start_paused(true).build().expect("a runtime needs no more than memory");
    runtime.block_on(async {
        tokio::time::timeout(Duration::from_secs(24 * 3600), play).await.expect("the play never ends");
    });
}
