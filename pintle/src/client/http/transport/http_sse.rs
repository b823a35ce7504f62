//! The HTTP+SSE transport of the oldest revision: a GET stream that names the endpoint for messages.

use std::sync::Arc;

use pintle_proto::{
    http::{Probed, headers, resolve_endpoint},
    sse::Decoder,
};

use super::{
    exchange::ContentKind,
    session::{HttpSession, TransportEvent},
};
use crate::{
    client::http::{connect::Address, fetch::cause},
    transport::Failed,
};

/// Reads the stream until it ends, and with it the session.
pub(in crate::client::http) async fn run(line: Arc<HttpSession>) {
    let mut named = false;
    let ended = listen(&line, &mut named).await;
    line.wire.push_state.close();
    let why = match ended {
        Ok(why) => why,
        Err(failed) if !named => {
            return line.tell(TransportEvent::Endpoint(Err(Box::new(failed)))).await;
        }
        Err(failed) => failed.to_string(),
    };
    line.tell(TransportEvent::Ended(why)).await;
}

async fn listen(line: &HttpSession, named: &mut bool) -> Result<String, Failed> {
    let bad = |bad: headers::BadHeader| Failed::new(bad.to_string());
    let ask = line.listen(None).map_err(bad)?;
    let (head, mut body) = line.wire.fetch(&ask).await?.into_parts();
    if !head.status.is_success() {
        return Err(line.wire.refusal(&ask, &head, body).await);
    }
    let address = &ask.address;
    let garbled = |message: String| {
        let mut failed = Failed::new(message);
        failed.status = Some(head.status.as_u16());
        failed.probed = Probed::Answered;
        failed
    };
    if !matches!(ContentKind::of(&head.headers), ContentKind::Events) {
        return Err(garbled(format!(
            "`{address}` takes no requests, and has no stream of events either: check that the URL is that of an MCP \
             endpoint"
        )));
    }
    let limit = line.wire.answer;
    let mut decoder = Decoder::new(limit.sse());
    loop {
        let piece = match body.next().await {
            Some(Ok(piece)) => piece,
            Some(Err(error)) if !*named => {
                let message = format!("its stream broke off before it named an endpoint: {}", cause(&*error));
                return Err(Failed::new(format!("`{address}`: {message}")));
            }
            Some(Err(error)) => return Ok(format!("its stream broke off: {}", cause(&*error))),
            None if !*named => return Err(garbled(format!("`{address}` named no endpoint for messages"))),
            None => return Ok("its stream ended".into()),
        };
        let mut piece: &[u8] = &piece;
        while let Some(event) = decoder
            .next(&mut piece)
            .map_err(|fault| garbled(format!("the stream of `{address}`: {}", limit.explain(&fault))))?
        {
            match event.name.as_deref() {
                Some("endpoint") if !*named => {
                    let endpoint = resolve_endpoint(&ask.address.uri, &event.data)
                        .map_err(|bad| garbled(format!("the endpoint that `{address}` names: {bad}")))?;
                    line.move_to(Address::of(endpoint));
                    *named = true;
                    line.listens();
                    line.tell(TransportEvent::Endpoint(Ok(()))).await;
                }
                None | Some("message") if !event.data.is_empty() => {
                    line.pass(event.data.into(), None).await;
                }
                _ => {}
            }
        }
    }
}
