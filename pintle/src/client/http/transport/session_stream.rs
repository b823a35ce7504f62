//! The GET stream of a session.

use std::sync::Arc;

use super::{
    session::{HttpSession, TransportEvent},
    stream::{EventReader, Rest},
};

/// Waits until the GET stream is wanted.
pub(in crate::client::http) async fn wait(line: Arc<HttpSession>) {
    line.wire.push_demand.wanted().await;
    line.tell(TransportEvent::SessionStreamWanted).await;
}

/// Reads the GET stream until the session ends. A server need not have one. A broken stream is opened again; a 404 means that the
/// session is lost.
pub(in crate::client::http) async fn run(line: Arc<HttpSession>) {
    let mut reader = EventReader::new(line.clone());
    let mut failures = 0;
    let mut first = true;
    let mut was_open = false;
    loop {
        // Boxed: the stream is open for hours, and this takes a moment.
        let opened = match first {
            true => Box::pin(reader.open()).await,
            false => Box::pin(reader.resume(failures)).await,
        };
        if std::mem::take(&mut first) {
            line.tell(TransportEvent::SessionStreamReady).await;
        }
        match opened {
            Ok(body) => {
                was_open = true;
                line.listens();
                let rest = reader.read(body, &mut Vec::new()).await;
                line.wire.push_state.close();
                tracing::debug!(%rest, "the stream of the session ended");
                failures = if reader.had_news() { 0 } else { failures.saturating_add(1) };
                // From the last event on it would be the same once more.
                if let Rest::Faulty(why, _) = rest {
                    tracing::warn!(%why, "something that belongs to no request was skipped");
                    reader = EventReader::new(line.clone());
                    failures = failures.max(1);
                }
            }
            // "When a client receives HTTP 404 in response to a request containing an `MCP-Session-Id`, it MUST start a
            // new session" (Transports, Session Management). Not so the first time: that a server has no such stream
            // should be a 405, and is a 404 where only POST has a route.
            // A 400 means the same, unless it is about the last event: see `exchange`.
            Err(Some(failed))
                if was_open
                    && line.has_session()
                    && (failed.status == Some(404)
                        || failed.status == Some(400) && !reader.has_begun() && line.may_be_lost()) =>
            {
                tracing::debug!(%failed, "the session is gone");
                return line.tell(TransportEvent::Lost).await;
            }
            // The server may have forgotten the last event and still have a stream.
            Err(Some(failed)) if reader.has_begun() && failed.status != Some(404) => {
                tracing::debug!(%failed, "the stream of the session cannot be taken up: it is opened anew");
                reader = EventReader::new(line.clone());
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
