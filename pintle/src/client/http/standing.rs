//! The stream of a session that belongs to no request.

use std::{pin::pin, sync::Arc, time::Duration};

use tokio::time::timeout;

use super::{
    line::{Event, Line},
    stream::Reader,
};

/// How long calls wait for the stream, which most servers open at once or not at all.
const PATIENCE: Duration = Duration::from_secs(1);

/// Listens for as long as the session lasts. A server that does not have such a stream is fine, and one that loses it
/// is asked again: never is it a reason to end the session.
pub(super) async fn run(line: Arc<Line>) {
    let mut reader = Reader::new(line.clone());
    let mut failures = 0;
    let mut first = true;
    loop {
        let opened = if first {
            let mut opening = pin!(reader.open());
            let opened = timeout(PATIENCE, &mut opening).await;
            line.tell(Event::Listening).await;
            match opened {
                Ok(opened) => opened,
                Err(_) => opening.await,
            }
        } else {
            reader.resume(failures).await
        };
        first = false;
        match opened {
            Ok(body) => {
                let rest = reader.read(body, &mut Vec::new()).await;
                tracing::debug!(%rest, "the stream of the session ended");
                failures = if reader.had_news() { 0 } else { failures.saturating_add(1) };
            }
            Err(Some(failed)) => {
                tracing::debug!(%failed, "the server has no stream for what belongs to no request");
                return;
            }
            Err(None) => failures = failures.saturating_add(1),
        }
    }
}
