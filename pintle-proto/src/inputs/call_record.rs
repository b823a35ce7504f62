//! The record of a call, to run it again in another process.

use std::{collections::BTreeMap, fmt};

use pintle_types::{
    RawObject, RawValue, RequestId, RpcError,
    schema::{ClientCapabilities, Implementation},
};
use serde::{Deserialize, Serialize};

use super::{
    Inputs, InputsInner, read_answer,
    state::{Answered, CallState},
};
use crate::Revision;

/// The record of a call, from which another process can run it again: from the top, over the answers and the values of actions that
/// it has so far. From [`Call::record`](crate::server::Call::record), for [`Call::restore`](crate::server::Call::restore).
///
/// It has the arguments of the call and the answers of its user: a store has to seal it.
#[non_exhaustive]
#[derive(Clone, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CallRecord {
    /// The format of the record. Readers accept the current one and the one before.
    format: u32,
    /// The name of the service that the call was made to.
    pub service: String,
    /// The method.
    pub method: String,
    /// The params, in canonical shapes, with `_meta`.
    pub params: RawObject,
    /// The id of the request.
    pub id: RequestId,
    /// The name of the client's revision.
    pub revision: String,
    /// The client's name and version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<Implementation>,
    /// The client's capabilities.
    #[serde(default)]
    pub capabilities: ClientCapabilities,
    /// The authenticated principal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// The rights that the call was made with. `None` if the caller was not authenticated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rights: Option<RecordedRights>,
    /// The answers, the values of actions and the number of rounds, as in a `requestState`.
    state: RecordedState,
}

/// The rights of a recorded call.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedRights {
    /// Whether the caller is the local user, who has every right.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub local: bool,
    /// The rights that the call needed and had.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// The expiry of the rights, in milliseconds of the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
}

/// The serialized state of a call.
#[derive(Clone, Deserialize, Serialize)]
#[serde(transparent)]
struct RecordedState(Box<RawValue>);

impl PartialEq for RecordedState {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}

/// The current format of records, and the oldest that is read. Increase the current one with every change that an older reader would
/// misread; the oldest is the one before.
const FORMAT: u32 = 1;
const OLDEST: u32 = 1;

impl CallRecord {
    pub(crate) fn new(
        (service, method): (&str, &str),
        params: RawObject,
        id: RequestId,
        revision: Revision,
        inputs: &Inputs,
    ) -> Self {
        Self {
            format: FORMAT,
            service: service.to_owned(),
            method: method.to_owned(),
            params,
            id,
            revision: revision.as_str().to_owned(),
            client: None,
            capabilities: ClientCapabilities::default(),
            principal: None,
            rights: None,
            state: RecordedState(inputs.recorded()),
        }
    }

    /// Returns an error if this process cannot run the call: the record has an unknown format, or is that of another service.
    pub(crate) fn check(&self, service: &str) -> Result<(), RpcError> {
        if !(OLDEST..=FORMAT).contains(&self.format) {
            return Err(RpcError::internal(format!(
                "the record of the call has format {}, and this server reads {OLDEST} to {FORMAT}: call again",
                self.format
            )));
        }
        if self.service != service {
            return Err(RpcError::internal(format!(
                "the record of the call is that of the server `{}`: call again",
                self.service
            )));
        }
        Ok(())
    }

    /// Returns the inputs of the call that is run again. `answers` are those that its state does not have.
    pub(crate) fn inputs(&self, answers: Option<RawObject>, revision: Revision) -> Result<Inputs, RpcError> {
        let mut state = CallState::read(self.state.0.get().as_bytes())?;
        let offered = |key: &str| answers.as_ref().and_then(|answers| answers.get(key));
        let mut open = BTreeMap::new();
        for (key, mark) in std::mem::take(&mut state.open) {
            let answer = offered(&key).and_then(|text| read_answer(&key, mark.kind, revision, text).ok());
            match answer {
                Some((_, value)) => drop(state.answers.insert(key, mark.answered(value))),
                // An answer that cannot be read is the error of the question that it belongs to.
                None => drop(open.insert(key, mark)),
            }
        }
        state.open = open;
        let inner = InputsInner { state, offered: answers, ..InputsInner::default() };
        Ok(Inputs::restored(!revision.is_stateless(), inner))
    }
}

/// The params and the answers are not printed.
impl fmt::Debug for CallRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallRecord")
            .field("service", &self.service)
            .field("method", &self.method)
            .field("revision", &self.revision)
            .finish_non_exhaustive()
    }
}

impl Inputs {
    /// Restores the answers and actions of an earlier run of the call. Returns `false` if they cannot be read.
    pub(crate) fn restore(&self, recorded: &str) -> bool {
        let Ok(state) = CallState::read(recorded.as_bytes()) else { return false };
        self.lock().get_or_insert_default().state = state;
        true
    }

    /// Serializes the state of the call as it is now: its answers, its open questions and its actions, of which those in progress have
    /// an unknown result for everybody else.
    pub(crate) fn recorded(&self) -> Box<RawValue> {
        let inner = self.lock();
        let state = inner.as_ref().map_or_else(CallState::default, |inner| {
            let CallState { call_key, round, open, answers, once, begun, note, .. } = &inner.state;
            let asked = inner.asked.iter().map(|(key, (mark, _))| (key.clone(), *mark));
            CallState {
                call_key: call_key.clone(),
                round: *round,
                open: open.iter().map(|(key, mark)| (key.clone(), *mark)).chain(asked).collect(),
                answers: answers
                    .iter()
                    .map(|(key, answered)| (key.clone(), Answered::clone(answered)))
                    .collect(),
                once: once.clone(),
                begun: begun.iter().chain(&inner.acting).cloned().collect(),
                note: note.clone(),
                ..CallState::default()
            }
        });
        serde_json::value::to_raw_value(&state).expect("a state of texts, numbers and JSON serializes")
    }

    /// Returns whether the answer to a question is part of the state.
    pub(crate) fn is_answered(&self, key: &str) -> bool {
        self.lock().as_ref().is_some_and(|inner| inner.state.answers.contains_key(key))
    }
}

#[cfg(test)]
mod tests {
    use pintle_types::{
        Message,
        schema::{ServerCapabilities, ToolsCapability},
    };
    use serde_json::value::to_raw_value;

    use super::{CallState, Inputs};
    use crate::{
        inputs::{Answer, Ask, CallRecord, Once, Question},
        server::{Arrival, Call, Inbound, Service},
    };
    use pintle_types::schema::Implementation;

    fn service(name: &str) -> Service {
        let mut capabilities = ServerCapabilities::default();
        capabilities.tools = Some(ToolsCapability::default());
        Service::new(Implementation::new(name, "0"), capabilities)
    }

    fn call(service: &Service) -> Call {
        let text = r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"t","arguments":{"x":1},"_meta":{
            "io.modelcontextprotocol/protocolVersion":"2026-07-28",
            "io.modelcontextprotocol/clientCapabilities":{"roots":{}}}}}"#;
        let Ok(Message::Request(request)) = Message::parse(text.as_bytes()) else { panic!("a request") };
        let Ok(Inbound::Call(call)) = service.admit(request, &Arrival::at(0)) else { panic!("admitted") };
        call.detach();
        call
    }

    fn again(record: &CallRecord) -> CallRecord {
        serde_json::from_str(&serde_json::to_string(record).unwrap()).unwrap()
    }

    /// A record as the first version writes it, and a member of a later one.
    const FIRST: &str = r#"{"format":1,"service":"s","method":"tools/call","params":{"name":"t","arguments":{"x":1}},"id":"a",
        "revision":"2026-07-28","capabilities":{"roots":{}},"principal":"ann","rights":{"names":["write"],"until":5},
        "state":{"f":1,"c":"k","r":1,"o":{"done":7},"b":["started"]},"later":[1]}"#;

    #[test]
    fn a_record_of_the_first_format_is_read() {
        let service = service("s");
        let record: CallRecord = serde_json::from_str(FIRST).unwrap();
        assert_eq!(
            (record.principal.as_deref(), &record.rights.as_ref().unwrap().until),
            (Some("ann"), &Some(5))
        );
        let again = Call::restore(&service, &record, None).unwrap();
        assert!(matches!(again.begin_once("done"), Once::Done(value) if value.get() == "7"));
        assert!(matches!(again.begin_once("started"), Once::Unknown));
        let newer: CallRecord = serde_json::from_str(&FIRST.replacen('1', "2", 1)).unwrap();
        let refused = Call::restore(&service, &newer, None).unwrap_err();
        assert!(refused.message.contains("has format 2, and this server reads 1 to 1"), "{refused}");
    }

    #[test]
    fn a_restored_call_has_its_answers_and_its_actions() {
        let service = service("s");
        let first = call(&service);
        let key = first.call_key(|| "k".to_owned());
        assert!(matches!(first.begin_once("done"), Once::Act));
        first.remember("done", to_raw_value(&7).unwrap());
        assert!(matches!(first.begin_once("started"), Once::Act));
        assert!(matches!(first.ask(&service, "roots", &Question::Roots), Ok(Ask::Send(_))));

        let record = again(&first.record(&service));
        // Without an answer the question is asked again; with one it is not.
        let asking = Call::restore(&service, &record, None).unwrap();
        asking.detach();
        assert!(matches!(asking.ask(&service, "roots", &Question::Roots), Ok(Ask::Send(_))));
        let answers = r#"{"roots":{"roots":[{"uri":"file:///a"}]}}"#.parse().unwrap();
        let second = Call::restore(&service, &record, Some(answers)).unwrap();
        second.detach();
        assert!(second.returned() && second.is_answered("roots"));
        let asked = second.ask(&service, "roots", &Question::Roots);
        let Ok(Ask::Answered(Answer::Roots(roots))) = asked else { panic!("{asked:?}") };
        assert_eq!(roots.roots[0].uri, "file:///a");
        assert!(matches!(second.begin_once("done"), Once::Done(value) if value.get() == "7"));
        assert!(matches!(second.begin_once("started"), Once::Unknown));
        assert_eq!(second.call_key(|| "other".to_owned()), key);
        assert_eq!(second.params().get("arguments"), Some(r#"{"x":1}"#));
        // A record of a restored call is as good as that of the first.
        let third = Call::restore(&service, &again(&second.record(&service)), None).unwrap();
        assert!(third.is_answered("roots"));
    }

    #[test]
    fn an_action_that_did_not_begin_is_not_recorded() {
        let service = service("s");
        let first = call(&service);
        assert!(matches!(first.begin_once("act"), Once::Act));
        first.undo_once("act");
        let second = Call::restore(&service, &first.record(&service), None).unwrap();
        assert!(matches!(second.begin_once("act"), Once::Act));
    }

    #[test]
    fn records_of_others_are_refused() {
        let (ours, theirs) = (service("s"), service("t"));
        let record = call(&ours).record(&ours);
        let refused = |service: &Service, record: &CallRecord| {
            Call::restore(service, record, None).unwrap_err().message.into_owned()
        };
        assert_eq!(refused(&theirs, &record), "the record of the call is that of the server `s`: call again");
        for format in [super::OLDEST - 1, super::FORMAT + 1] {
            let other = CallRecord { format, ..record.clone() };
            assert!(
                refused(&ours, &other).starts_with(&format!("the record of the call has format {format}"))
            );
        }
        let unspoken = CallRecord { revision: "1999-01-01".into(), ..record };
        assert!(refused(&ours, &unspoken).contains("1999-01-01"));
    }

    #[test]
    fn a_record_has_the_round_and_the_note() {
        let inputs = Inputs::alone(None);
        let state = CallState { round: 3, note: Some("page 7".to_owned()), ..CallState::default() };
        inputs.lock().get_or_insert_default().state = state;
        let read = CallState::read(inputs.recorded().get().as_bytes()).unwrap();
        assert_eq!((read.round, read.note.as_deref()), (3, Some("page 7")));
    }
}
