use std::borrow::Cow;

use serde::de::{self, IgnoredAny};

use crate::{RawObject, RequestId, Response, RpcError, plain_error};

/// Bytes that are no message, and what can be told of them.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub struct Malformed {
    /// The id, if it could be read.
    pub id: Option<RequestId>,
    /// What it seems to have been meant as.
    pub kind: Kind,
    /// What is wrong with it.
    pub fault: Cow<'static, str>,
    /// What to say of it to whoever sent it: also what to send instead.
    pub error: RpcError,
}

/// What malformed bytes seem to have been meant as.
#[expect(clippy::exhaustive_enums, reason = "what decides whether an answer is owed")]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// It has a `method`.
    Call,
    /// It has a `method` and no `id`, and something else is wrong: whoever sent it waits for nothing.
    Notification,
    /// It has a `result` or an `error`: whoever sent it waits for nothing.
    Answer,
    /// It cannot be told.
    Unclear,
}

impl Malformed {
    /// The reply that is owed: none if it was meant as an answer or a notification.
    pub fn reply(&self) -> Option<Response> {
        let owed = matches!(self.kind, Kind::Call | Kind::Unclear);
        owed.then(|| Response::new(self.id.clone(), Err(self.error.clone())))
    }
}

/// Says why `text` is no message. Called only when reading it failed, so it may take its time.
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
            let said =
                "not a JSON object: a message is an object with `jsonrpc` and `method`, `result` or `error`";
            let malformed = refuse(None, Kind::Unclear, RpcError::invalid_request(said));
            return Box::new(Malformed { fault: "not a JSON object".into(), ..*malformed });
        }
        Err(error) => return refuse(None, Kind::Unclear, RpcError::invalid_request(plain_error(&error))),
    };
    let text = |name| members.decode_member::<String>(name).ok().flatten();
    // Only what is a notification but for its params: JSON-RPC owes an answer to what is no request at all.
    let is_whole = text("method").is_some() && text("jsonrpc").as_deref() == Some("2.0");
    let kind = match (members.get("method"), members.get("result"), members.get("error")) {
        (Some(_), None, None) if is_whole && members.get("id").is_none() => Kind::Notification,
        (Some(_), _, _) => Kind::Call,
        (None, None, None) => Kind::Unclear,
        _ => Kind::Answer,
    };
    let id = members.decode_member("id").ok().flatten();
    let wrong = |name: &str, error: serde_json::Error| {
        RpcError::invalid_request(format!("`{name}` does not fit: {}", plain_error(&error)))
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
