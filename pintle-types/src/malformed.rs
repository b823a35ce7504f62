use std::borrow::Cow;

use serde::de::{self, IgnoredAny};

use crate::{RawObject, RequestId, Response, RpcError, plain_error};

use MalformedKind as Kind;

/// Bytes that are not a message, with what is known about them.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub struct Malformed {
    /// The id, if it could be read.
    pub id: Option<RequestId>,
    /// The apparent intention of the sender.
    pub kind: MalformedKind,
    /// The fault.
    pub fault: Cow<'static, str>,
    /// The error for the sender: what is wrong, and what to send instead.
    pub error: RpcError,
}

/// The apparent intention of the sender of malformed bytes.
#[expect(clippy::exhaustive_enums, reason = "decides whether a reply is due")]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum MalformedKind {
    /// A call: there is a `method`.
    Call,
    /// A call with a `method` and no `id` that has another fault. The sender expects no reply.
    Notification,
    /// A response: there is a `result` or an `error`. The sender expects no reply.
    Answer,
    /// None of these, or not readable.
    Unclear,
}

impl Malformed {
    pub(crate) fn unclear(error: RpcError) -> Self {
        Self { id: None, kind: MalformedKind::Unclear, fault: error.message.clone(), error }
    }

    pub(crate) fn not_utf8() -> Self {
        Self::unclear(RpcError::parse_error("the message is not UTF-8"))
    }

    /// Returns the reply that is due. There is none to an answer or a notification.
    pub fn reply(&self) -> Option<Response> {
        let owed = matches!(self.kind, Kind::Call | Kind::Unclear);
        owed.then(|| Response::new(self.id.clone(), Err(self.error.clone())))
    }
}

/// Finds out why `text` is not a message. Called only after reading it has failed, so that it need not be fast.
#[cold]
pub(crate) fn diagnose(text: &str) -> Box<Malformed> {
    let refuse =
        |id, kind, error: RpcError| Box::new(Malformed { id, kind, fault: error.message.clone(), error });
    if let Err(error) = serde_json::from_str::<IgnoredAny>(text) {
        return refuse(None, Kind::Unclear, RpcError::parse_error(format!("not JSON: {error}")));
    }
    let members: RawObject = match text.parse() {
        Ok(members) => members,
        Err(_) if !text.trim_start().starts_with('{') => {
            let message =
                "not a JSON object: a message is an object with `jsonrpc` and `method`, `result` or `error`";
            let malformed = refuse(None, Kind::Unclear, RpcError::invalid_request(message));
            return Box::new(Malformed { fault: "not a JSON object".into(), ..*malformed });
        }
        Err(error) => return refuse(None, Kind::Unclear, RpcError::invalid_request(plain_error(&error))),
    };
    let text = |name| members.decode_member::<String>(name).ok().flatten();
    // Only a notification but for its params: JSON-RPC wants a reply to what is not a request at all.
    let is_whole = text("method").is_some() && text("jsonrpc").as_deref() == Some("2.0");
    let kind = match (members.get("method"), members.get("result"), members.get("error")) {
        (Some(_), None, None) if is_whole && members.get("id").is_none() => Kind::Notification,
        (Some(_), _, _) => Kind::Call,
        (None, None, None) => Kind::Unclear,
        _ => Kind::Answer,
    };
    let id = members.decode_member("id").ok().flatten();
    let wrong = |name: &str, error: serde_json::Error| {
        RpcError::invalid_request(format!("`{name}` is invalid: {}", plain_error(&error)))
    };
    fn unfit<T: de::DeserializeOwned>(members: &RawObject, name: &str) -> Option<serde_json::Error> {
        serde_json::from_str::<T>(members.get(name)?).err()
    }
    let checks: [(&str, Option<serde_json::Error>); 6] = [
        ("jsonrpc", unfit::<String>(&members, "jsonrpc")),
        ("id", unfit::<Option<RequestId>>(&members, "id")),
        ("method", unfit::<String>(&members, "method")),
        ("params", unfit::<Option<RawObject>>(&members, "params")),
        ("result", unfit::<Option<RawObject>>(&members, "result")),
        ("error", unfit::<Option<RpcError>>(&members, "error")),
    ];
    let error = checks.into_iter().find_map(|(name, error)| Some(wrong(name, error?)));
    refuse(id, kind, error.unwrap_or_else(|| RpcError::invalid_request("not a JSON-RPC message")))
}
