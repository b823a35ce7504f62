//! Calls that another server handles, to which this one relays them.

use std::collections::BTreeMap;

use pintle_types::{
    RawObject, RawValue, RpcError, method,
    schema::{InputRequest, LoggingLevel},
};
use serde_json::value::to_raw_value;

use super::{
    Call, Service, print,
    stateless::{lower_question, sealed_state},
};
use crate::{
    Part,
    inputs::{AskError, RelayedState},
};

/// The end of a round of a call that another server handles, for a client of the stateless era.
///
/// The state of the other server is sealed into that of this one, and [`Call::relayed_state`] returns it in the next round.
#[non_exhaustive]
#[derive(Debug)]
pub struct RelayedRound {
    /// The `input_required` result, in canonical shapes. Its `requestState` is replaced.
    pub result: RawObject,
    /// The state of the other server. Without one, the client gets none.
    pub state: Option<Box<RawValue>>,
    /// Whether this server claims the state in the next round ([`Call::state_use`]). Otherwise the other server does.
    pub claimed: bool,
}

impl RelayedRound {
    /// Creates the end of a round whose state the other server claims.
    pub fn new(result: RawObject, state: Option<Box<RawValue>>) -> Self {
        Self { result, state, claimed: false }
    }
}

impl Call {
    /// Returns a progress notification of another server for the client, with the token of the client. Other members are
    /// unchanged.
    ///
    /// Returns `None` as [`progress`](Self::progress) does.
    pub fn relayed_progress(&self, params: &RawObject) -> Option<Vec<u8>> {
        let token = self.inner().progress.as_ref().filter(|_| !self.inner().inputs.is_over())?;
        let progress = params.decode_member::<f64>("progress").ok().flatten()?;
        if !self.advance(progress) {
            return None;
        }
        let params = params.with("progressToken", &to_raw_value(token).ok()?);
        Some(print::notification(self.inner().peer.revision, method::NOTIFICATIONS_PROGRESS, &params))
    }

    /// Returns the notification for a log message of another server, if the client requested messages of its level. In a session that
    /// has requested none, the other server decides what it sends.
    pub fn relayed_log(&self, params: &RawObject) -> Option<Vec<u8>> {
        let level = params.decode_member::<LoggingLevel>("level").ok().flatten()?;
        let peer = &self.inner().peer;
        let is_wanted = peer.log_level.map_or(!peer.revision.is_stateless(), |wanted| level >= wanted);
        (is_wanted && !self.inner().inputs.is_over())
            .then(|| print::notification(peer.revision, method::NOTIFICATIONS_MESSAGE, params))
    }

    /// Returns the answer to a question of another server in canonical shapes, otherwise as it was received.
    pub fn raised_answer(&self, method: &str, answer: RawObject) -> Result<RawObject, AskError> {
        self.inner()
            .peer
            .revision
            .raised(Part::Result(method), answer)
            .map_err(|error| AskError::BadAnswer { key: method.to_owned(), reason: error.to_string() })
    }

    /// Returns the state of the server that the call was relayed to, from the round before: see [`RelayedRound`].
    pub fn relayed_state(&self) -> Option<Box<RawValue>> {
        self.inner().inputs.relayed()
    }
}

/// Returns the result of a round that another server has ended, with the state of that server sealed into ours.
pub(super) fn relayed(
    call: &Call,
    service: &Service,
    round: RelayedRound,
    now: u64,
) -> Result<RawObject, RpcError> {
    let RelayedRound { result, state, claimed } = round;
    let mut result = result.without(&["requestState"]);
    let internal = |error: serde_json::Error| RpcError::internal(error.to_string());
    let revision = call.peer().revision;
    if !revision.is_canonical() {
        let questions: Option<BTreeMap<String, InputRequest>> =
            result.decode_member("inputRequests").map_err(internal)?;
        if let Some(mut questions) = questions {
            for (key, question) in &mut questions {
                lower_question(revision, question).map_err(|error| {
                    RpcError::internal(format!("the question `{key}` cannot be asked: {error}"))
                })?;
            }
            result = result.with("inputRequests", &to_raw_value(&questions).map_err(internal)?);
        }
    }
    if let Some(value) = state {
        call.inner().inputs.set_relayed(RelayedState { value, claimed });
        let state = sealed_state(call, service, now)?;
        result = result.with("requestState", &to_raw_value(&state).map_err(internal)?);
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pintle_types::{
        Message,
        schema::{Implementation, ServerCapabilities, ToolsCapability},
    };
    use serde_json::Value;

    use super::*;
    use crate::{
        inputs::tests::Clear,
        server::{Arrival, Inbound, Outcome},
    };

    fn service() -> Service {
        let mut capabilities = ServerCapabilities::default();
        capabilities.tools = Some(ToolsCapability::default());
        Service::new(Implementation::new("s", "0"), capabilities).seal(Arc::new(Clear(1)))
    }

    fn admit(service: &Service, state: &Value) -> Call {
        let mut params = serde_json::json!({"name": "t", "_meta": {"progressToken": "ours",
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}}});
        if !state.is_null() {
            params["requestState"] = state.clone();
            params["inputResponses"] = serde_json::json!({"a": 7});
        }
        let text = serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let Ok(Message::Request(request)) = Message::parse(text.to_string().as_bytes()) else {
            panic!("{text}")
        };
        match service.admit(request, &Arrival::at(0)) {
            Ok(Inbound::Call(call)) => call,
            other => panic!("{other:?}"),
        }
    }

    fn finish(service: &Service, call: &Call, round: RelayedRound) -> Value {
        let reply = call.finish(service, Outcome::Relayed(round), 0).reply(call.id());
        assert!(!reply.is_error, "{}", reply.body);
        serde_json::from_str(&reply.body).unwrap()
    }

    #[test]
    fn the_state_of_the_other_server_comes_back_and_only_one_of_both_claims_it() {
        let service = service();
        let result = r#"{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}},
            "acme/x":[1.50],"requestState":"theirs"}"#;
        for claimed in [false, true] {
            let call = admit(&service, &Value::Null);
            assert!(call.relayed_state().is_none());
            let state = RawValue::from_string(r#""theirs""#.to_owned()).unwrap();
            let mut round = RelayedRound::new(result.parse().unwrap(), Some(state));
            round.claimed = claimed;
            let result = finish(&service, &call, round);
            assert_eq!(result["inputRequests"], serde_json::json!({"a": {"method": "roots/list"}}));
            assert_eq!(result["acme/x"], serde_json::json!([1.5]));
            assert_ne!(result["requestState"], "theirs");
            // The answers are for the other server, and not read.
            let next = admit(&service, &result["requestState"]);
            assert_eq!(next.relayed_state().unwrap().get(), r#""theirs""#);
            assert_eq!(next.state_use().is_some(), claimed);
            let state = RawValue::from_string(r#""second""#.to_owned()).unwrap();
            let again = finish(&service, &next, RelayedRound::new(RawObject::empty(), Some(state)));
            let last = admit(&service, &again["requestState"]);
            assert_eq!(last.relayed_state().unwrap().get(), r#""second""#);
        }
    }

    #[test]
    fn a_round_without_a_state_has_none() {
        let service = service();
        let round = RelayedRound::new(r#"{"resultType":"input_required"}"#.parse().unwrap(), None);
        let result = finish(&service, &admit(&service, &Value::Null), round);
        assert_eq!(result.get("requestState"), None);
        assert_eq!(result["resultType"], "input_required");
    }

    #[test]
    fn progress_of_the_other_server_has_our_token_and_increases() {
        let call = admit(&service(), &Value::Null);
        let progress = |text: &str| {
            let line = call.relayed_progress(&text.parse().unwrap())?;
            Some(serde_json::from_slice::<Value>(&line).unwrap()["params"].clone())
        };
        let first = progress(r#"{"progressToken":7,"progress":2,"acme/x":1}"#);
        assert_eq!(first, Some(serde_json::json!({"progressToken": "ours", "progress": 2, "acme/x": 1})));
        assert_eq!(progress(r#"{"progressToken":7,"progress":2}"#), None);
        assert_eq!(progress(r#"{"progressToken":7}"#), None);
    }
}
