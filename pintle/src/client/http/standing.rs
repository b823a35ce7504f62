//! The stream of a session that belongs to no request.

use std::sync::Arc;

use super::{
    line::{Event, Line},
    stream::Reader,
};

/// Listens for as long as the session lasts. A server that does not have such a stream is fine, and one that loses it
/// is asked again: never is it a reason to end the session.
pub(super) async fn run(line: Arc<Line>) {
    let mut reader = Reader::new(line.clone());
    let mut failures = 0;
    let mut first = true;
    loop {
        let opened = if first { reader.open().await } else { reader.resume(failures).await };
        if std::mem::take(&mut first) {
            line.tell(Event::Standing).await;
        }
        match opened {
            Ok(body) => {
                let rest = reader.read(body, &mut Vec::new()).await;
                tracing::debug!(%rest, "the stream of the session ended");
                failures = if reader.had_news() { 0 } else { failures.saturating_add(1) };
            }
            // The server may have forgotten the last event and still have a stream; of a lost session it has none.
            Err(Some(failed)) if reader.has_begun() && failed.status != Some(404) => {
                tracing::debug!(%failed, "the stream of the session cannot be taken up: it is opened anew");
                reader = Reader::new(line.clone());
                failures = failures.saturating_add(1);
            }
            Err(Some(failed)) => {
                tracing::debug!(%failed, "the server has no stream for what belongs to no request");
                return;
            }
            Err(None) => failures = failures.saturating_add(1),
        }
    }
}
