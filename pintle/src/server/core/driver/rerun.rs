//! Calls that run again in another process.

use std::{
    future::ready,
    sync::Arc,
    time::{Duration, SystemTime},
};

use http::Extensions;
use pintle_proto::{
    inputs::{CallRecord, RecordedRights},
    server::{Call, Outcome},
};
use pintle_types::{RawObject, RpcError};

use super::{context::RequestContext, detached::DetachedEvents, run::HandlerRun, sink::CallSink};
use crate::server::{Authenticated, Cx, DetachRequest, DetachedCall, Server, unix_millis};

impl DetachedCall {
    /// Runs a recorded call again, from the top. `answers` are those that came after it was recorded, by the key that the handler gave
    /// the question.
    ///
    /// Whether the caller may use the tool is decided again, with the rights that the call had, as long as they last.
    ///
    /// # Errors
    ///
    /// The server cannot run the call: the record is that of another server or of an unknown format, or the rights have expired.
    pub fn rerun(server: &Server, record: &CallRecord, answers: Option<RawObject>) -> Result<Self, RpcError> {
        let snapshot = server.snapshot();
        let mut extensions = Extensions::new();
        if let Some(rights) = &record.rights {
            extensions.insert(restored_rights(record, rights)?);
        }
        let call = Call::restore(&snapshot.service, record, answers)?;
        let context = Arc::new(RequestContext::new(extensions));
        // Nobody waits for a response, so nothing is sent there.
        let nowhere = CallSink::Detached(Arc::new(DetachedEvents::new(None)));
        let cx = Cx::new(call, server.clone(), snapshot.clone(), context, nowhere);
        cx.request_detach(DetachRequest::always(|_| {
            Box::pin(ready(Outcome::Failed(RpcError::internal("the call was taken over before"))))
        }));
        let Some((_, events)) = cx.adoption(false) else {
            return Err(RpcError::internal("the call cannot be detached"));
        };
        let handler = snapshot.stack.start(cx.clone());
        let run = Box::pin(HandlerRun::detached(handler, cx.clone()));
        Ok(Self::new(run, &cx, events))
    }
}

/// Returns the caller of a recorded call.
fn restored_rights(record: &CallRecord, rights: &RecordedRights) -> Result<Authenticated, RpcError> {
    if rights.local {
        return Ok(Authenticated::local());
    }
    if rights.until.is_some_and(|until| until <= unix_millis()) && !rights.names.is_empty() {
        return Err(RpcError::internal(
            "the rights of the caller expired before the call could be resumed: call again",
        ));
    }
    let names = rights.names.clone();
    let caller = Authenticated::new(record.principal.clone().unwrap_or_default())
        .rights(move |right| names.iter().any(|name| name == right));
    let until =
        rights.until.and_then(|until| SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(until)));
    Ok(until.into_iter().fold(caller, Authenticated::until))
}
