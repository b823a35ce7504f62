//! Serialization of a call's outcome in the revision of its client: the one place where results are lowered.

use std::sync::Arc;

use pintle_types::{RawObject, RpcError};

use super::{Body, CacheHint, Call, Outcome, Service, outcome::replied, print, relayed, session, stateless};
use crate::{
    Part, Revision,
    revision::{BadArguments, ReshapeError},
    shown::{cut, shown},
};

/// Writes the result object, or returns the error to respond with instead.
pub(super) fn finish(
    call: &Call,
    service: &Service,
    outcome: Outcome,
    now: u64,
    out: &mut Vec<u8>,
) -> Result<(), RpcError> {
    let revision = call.peer().revision;
    match outcome {
        Outcome::Complete(body) => {
            if revision.is_stateless() {
                stateless::check_type(call, service, &body)?;
            }
            complete(call, service, body, &CacheHint::default(), out)
        }
        Outcome::Cacheable(body, hint) => complete(call, service, body, &hint, out),
        Outcome::InputRequired if revision.is_stateless() => {
            if revision.is_canonical() {
                return stateless::input_required(call, service, now, out);
            }
            let mut printed = Vec::new();
            stateless::input_required(call, service, now, &mut printed)?;
            let result = lowered(revision, Part::Result(call.method()), read_back(printed)?)?;
            print::object(out, result.into());
            Ok(())
        }
        Outcome::InputRequired => Err(session::unanswered_questions()),
        Outcome::Relayed(round) if revision.is_stateless() => {
            let result = relayed::relayed(call, service, round, now)?;
            complete(call, service, result.into(), &CacheHint::default(), out)
        }
        Outcome::Relayed(_) => Err(session::unanswered_questions()),
        Outcome::BadArguments(text) => match revision.dialect().bad_arguments {
            BadArguments::Error => Err(RpcError::invalid_params(text)),
            BadArguments::Result => {
                complete(call, service, bad_arguments(&text).into(), &CacheHint::default(), out)
            }
        },
        Outcome::NotFound { uri } => Err(not_found(&uri)),
        Outcome::Failed(error) => Err(error),
        Outcome::Replied(reply) => replied(&reply, out),
    }
}

/// Returns how many bytes the era of the call writes into the result of a tool.
pub(super) fn room(call: &Call, service: &Service) -> usize {
    if call.peer().revision.is_stateless() { stateless::room(service) } else { 0 }
}

/// Writes a result. For the newest revision it is not parsed.
fn complete(
    call: &Call,
    service: &Service,
    body: Body,
    hint: &CacheHint,
    out: &mut Vec<u8>,
) -> Result<(), RpcError> {
    let revision = call.peer().revision;
    if revision.is_canonical() {
        stateless::complete(call, service, body, hint, out);
        return Ok(());
    }
    let part = Part::Result(call.method());
    let stateless = revision.is_stateless();
    // The complete result of the newest revision is lowered, including the members that its era adds.
    let whole = |body: Body| -> Result<RawObject, RpcError> {
        let mut printed = Vec::new();
        stateless::complete(call, service, body, hint, &mut printed);
        read_back(printed)
    };
    match body {
        Body::Shared(canonical) => {
            let hint = if stateless { hint } else { &CacheHint::default() };
            let cache = service.lowered_cache();
            let result = match cache.find(revision, call.method(), hint, &canonical) {
                Some(known) => known,
                None => {
                    let whole = if stateless {
                        Arc::new(whole(canonical.clone().into())?)
                    } else {
                        canonical.clone()
                    };
                    let lowers = revision.lowers(part, whole.as_str());
                    let result =
                        if lowers { Arc::new(lowered(revision, part, (*whole).clone())?) } else { whole };
                    cache.add(revision, call.method(), hint, &canonical, &result);
                    result
                }
            };
            print::object(out, result.into());
        }
        body if stateless => print::object(out, lowered(revision, part, whole(body)?)?.into()),
        Body::Own(body) => print::object(out, lowered(revision, part, body)?.into()),
        // The shape is the same in every revision.
        body @ Body::Text(_) => print::object(out, body),
    }
    Ok(())
}

/// Returns a canonical result in the shapes of a revision. A result that is nested too deep is returned unchanged.
pub(super) fn lowered(revision: Revision, part: Part<'_>, result: RawObject) -> Result<RawObject, RpcError> {
    if !revision.lowers(part, result.as_str()) {
        return Ok(result);
    }
    match revision.lowered(part, result.clone()) {
        Ok(lowered) => Ok(lowered),
        Err(ReshapeError::Unreadable(_)) => Ok(result),
        Err(ReshapeError::Unsayable(unsayable)) => Err(RpcError::internal(unsayable.to_string())),
    }
}

/// Parses an object that was just serialized.
fn read_back(printed: Vec<u8>) -> Result<RawObject, RpcError> {
    let text = String::from_utf8(printed).ok().and_then(|text| text.parse().ok());
    text.ok_or_else(|| RpcError::internal("the result is not a JSON object: return one from the handler"))
}

/// Returns the result that reports invalid arguments to the model.
fn bad_arguments(text: &str) -> RawObject {
    let result = serde_json::json!({ "content": [{ "type": "text", "text": text }], "isError": true });
    RawObject::from_serialize(&result).expect("a JSON object serializes")
}

fn not_found(uri: &str) -> RpcError {
    // The URI comes from the peer: the message has a short form of it, the data a longer one.
    let (shown, longer) = (shown(uri), cut(uri, URI_LIMIT));
    RpcError::invalid_params(format!("no such resource: `{shown}`"))
        .with_data(&serde_json::json!({ "uri": longer }))
}

/// The maximum length of a URI in the error data, in characters.
const URI_LIMIT: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_revision_has_the_same_shape_for_a_text() {
        let text = pintle_types::schema::CallToolResult::raw_text("hello");
        for revision in Revision::all() {
            assert!(!revision.lowers(Part::Result("tools/call"), text.as_str()), "{revision}");
        }
    }

    #[test]
    fn a_printed_result_is_read_back() {
        assert_eq!(read_back(b"{\"a\":1}".to_vec()).unwrap().as_str(), r#"{"a":1}"#);
        for bad in [&b"[]"[..], b"{", b"\xff"] {
            let error = read_back(bad.to_vec()).unwrap_err();
            assert!(error.message.contains("not a JSON object"), "{}", error.message);
        }
    }

    #[test]
    fn a_shared_result_is_lowered_once() {
        let mut capabilities = pintle_types::schema::ServerCapabilities::default();
        capabilities.tools = Some(Default::default());
        let service = Service::new(pintle_types::schema::Implementation::new("s", "0"), capabilities);
        let mut engine = super::super::Engine::new();
        let mut receive = |text: &str| {
            let frame = pintle_types::Frame::parse(text.as_bytes(), 1).unwrap();
            engine.receive(&service, frame, &super::super::Arrival::at(0))
        };
        receive(
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26",
            "capabilities":{},"clientInfo":{"name":"c","version":"0"}}}"#,
        );
        let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
        let super::super::Inbound::Call(call) = receive(list) else { panic!("a call") };
        let tools = r#"{"tools":[{"name":"t","title":"T","inputSchema":{"type":"object"}}]}"#;
        let canonical = Arc::new(tools.parse::<RawObject>().unwrap());
        let hint = CacheHint::default();
        call.finish(&service, Outcome::Cacheable(canonical.clone().into(), hint.clone()), 0);
        let revision = call.peer().revision;
        let lowered = service.lowered_cache().find(revision, "tools/list", &hint, &canonical);
        assert_ne!(lowered.unwrap().as_str(), tools, "the title is elsewhere in that revision");
    }
}
