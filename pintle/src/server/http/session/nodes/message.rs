//! The messages that processes send each other.

use std::fmt;

use bytes::Bytes;
use pintle_types::{RawValue, RequestId};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::NodeId;

/// A message of one process to another about a session. Kinds that a process does not know are ignored, so that processes of two
/// releases can run side by side.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(in crate::server::http) struct NodeMessage {
    pub(in crate::server::http) session: String,
    /// The sender.
    pub(in crate::server::http) node: String,
    #[serde(flatten)]
    pub(in crate::server::http) body: MessageBody,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub(in crate::server::http) enum MessageBody {
    /// An answer or a cancellation of the client.
    Deliver { message: String },
    /// The session has ended.
    End,
    /// The record of the session was changed.
    Record,
    /// The sender reads a stream of the receiver.
    Follow { stream: u64 },
    /// A stream that the receiver reads has more events, or has ended.
    /// `running` is whether the sender runs its calls.
    Advance { stream: u64, running: bool },
    /// The sender has an open GET stream. `stream` is the number of one that it has taken over. The process with the largest `order`
    /// sends the messages of the session.
    Listen {
        stream: Option<u64>,
        #[serde(default)]
        order: u64,
    },
    /// The sender has no GET stream any more, since the one with this order.
    Unlisten {
        #[serde(default)]
        order: u64,
    },
    /// The sender has restored the session.
    Joined,
    /// A message for the GET stream of the receiver.
    Push { line: String },
    #[serde(other)]
    Unknown,
}

/// The description of the stream of a POST in the event log.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(in crate::server::http) struct StreamOpening {
    /// The process that runs the calls.
    #[serde(default)]
    pub(in crate::server::http) node: String,
    /// The ids of the calls.
    #[serde(default)]
    pub(in crate::server::http) requests: Vec<RequestId>,
    /// The only call, if another process can go on with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::server::http) call: Option<RecordedCall>,
}

/// A call that another process can go on with, if the one that runs it is gone.
#[derive(Clone, Deserialize, Serialize)]
pub(in crate::server::http) struct RecordedCall {
    /// The message of the client.
    pub(in crate::server::http) request: Box<RawValue>,
    /// The answers and actions so far.
    pub(in crate::server::http) state: Box<RawValue>,
}

/// The arguments and the answers are not printed.
impl fmt::Debug for RecordedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RecordedCall")
    }
}

impl StreamOpening {
    pub(in crate::server::http) fn owner(&self) -> Option<NodeId> {
        self.node.parse().ok()
    }
}

/// The changes that a process publishes.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub(in crate::server::http) struct PublishedChanges {
    /// The name of the server.
    pub(in crate::server::http) server: String,
    pub(in crate::server::http) tools: bool,
    pub(in crate::server::http) prompts: bool,
    pub(in crate::server::http) resources: bool,
    /// The resources that were updated.
    pub(in crate::server::http) updated: Vec<String>,
    /// Whether all resources may have been updated.
    pub(in crate::server::http) all: bool,
}

impl PublishedChanges {
    pub(in crate::server::http) fn is_empty(&self) -> bool {
        !self.tools && !self.prompts && !self.resources && !self.all && self.updated.is_empty()
    }
}

pub(in crate::server::http) fn encode(value: &impl Serialize) -> Bytes {
    // Serializing these types does not fail.
    serde_json::to_vec(value).unwrap_or_default().into()
}

pub(in crate::server::http) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    serde_json::from_slice(bytes).ok()
}
