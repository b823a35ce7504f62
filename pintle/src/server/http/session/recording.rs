//! Calls of resumable tools, which are recorded in the event log so that another process can go on with them.

use std::sync::{Arc, atomic::Ordering};

use bytes::Bytes;
use pintle_proto::server::Call;
use pintle_types::{RawObject, RequestId};
use serde::Serialize;
use serde_json::value::to_raw_value;

use super::{
    Session,
    channel::Channel,
    log::{Appended, MissedEvents, Replay},
    nodes::{
        NodeId,
        message::{RecordedCall, StreamOpening, decode, encode},
    },
};

/// The message of the client that made a call.
#[derive(Serialize)]
struct RequestMessage<'a> {
    jsonrpc: &'a str,
    id: &'a RequestId,
    method: &'a str,
    params: &'a RawObject,
}

impl RecordedCall {
    fn of(call: &Call) -> Option<Self> {
        let (id, method, params) = (call.id(), call.method(), call.params());
        let request = to_raw_value(&RequestMessage { jsonrpc: "2.0", id, method, params }).ok()?;
        Some(Self { request, state: call.recorded_state() })
    }
}

/// Returns the description of the stream of a call that another process can go on with.
pub(super) fn opening_of(node: NodeId, call: &Call) -> Bytes {
    let opening = StreamOpening {
        node: node.to_string(),
        requests: vec![call.id().clone()],
        call: RecordedCall::of(call),
    };
    encode(&opening)
}

impl Session {
    /// Has a call recorded with its stream, until it ends.
    pub(super) fn record(&self, call: &Call, channel: &Arc<Channel>) {
        if let Some(ticket) = call.ticket() {
            channel.is_recorded.store(true, Ordering::Relaxed);
            self.lock().busy().recorded.insert(ticket, channel.clone());
        }
    }

    /// Returns the stream that a call is recorded with.
    pub(super) fn recording(&self, call: &Call) -> Option<Arc<Channel>> {
        self.lock().busy.as_ref()?.recorded.get(&call.ticket()?).cloned()
    }
}

impl Channel {
    /// Returns whether another process has gone on with its call. Then this one does not.
    pub(super) async fn has_moved(&self) -> bool {
        if !self.is_recorded.load(Ordering::Relaxed) {
            return false;
        }
        let settings = self.shared.settings();
        let replay = settings.log.after(&self.session.id.to_string(), self.newest()).await;
        let Ok(Replay::Events(MissedEvents { opening, .. })) = replay else { return false };
        let owner = decode::<StreamOpening>(&opening).and_then(|opening| opening.owner());
        let has_moved = owner.is_some() && owner != settings.nodes.as_ref().map(|nodes| nodes.id());
        if has_moved {
            self.fence();
        }
        has_moved
    }

    /// Records the answers and actions of its call.
    pub(super) async fn save(&self, call: &Call) -> Result<(), String> {
        let settings = self.shared.settings();
        let Some(nodes) = &settings.nodes else { return Ok(()) };
        let _writes = self.writes.lock().await;
        if self.is_lost() {
            // Nobody goes on with what is not in the log.
            return match self.forget_if_lost().await {
                true => Ok(()),
                false => Err("the event log cannot be reached now".to_owned()),
            };
        }
        if self.is_fenced() {
            return Err(TAKEN.to_owned());
        }
        let opening = opening_of(nodes.id(), call);
        match settings.log.describe(&self.session.id.to_string(), self.newest(), opening).await {
            Ok(Appended::Done | Appended::Gone) => Ok(()),
            Ok(Appended::Taken) => {
                self.fence();
                Err(TAKEN.to_owned())
            }
            Err(error) => Err(error.to_string()),
        }
    }
}

const TAKEN: &str = "another process has gone on with the call";
