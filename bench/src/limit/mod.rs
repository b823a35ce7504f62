//! The minimum cost of a response: the message parsed with serde_json in one typed pass, and the bytes written that
//! a reply has. There is no registry, and of sessions only their ids.

mod body;
pub mod http;
mod question;
pub mod stdio;

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::wire::{Era, REPORTS};

/// The whole message: envelope, params and arguments together.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Text<'a>>,
    #[serde(borrow, default)]
    params: Params<'a>,
    /// Of a question of ours.
    result: Option<question::Reply>,
}

#[derive(Default, Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    arguments: Option<Arguments<'a>>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<Meta<'a>>,
    #[serde(rename = "inputResponses")]
    replies: Option<question::Replies>,
    #[serde(borrow, rename = "requestState")]
    state: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Arguments<'a> {
    #[serde(borrow)]
    text: Option<Text<'a>>,
    a: Option<f64>,
    b: Option<f64>,
}

#[derive(Deserialize)]
struct Meta<'a> {
    #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<Text<'a>>,
    #[serde(borrow, rename = "progressToken")]
    token: Option<&'a RawValue>,
}

/// Borrowed from the message unless it has escapes.
#[derive(Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// The headers of a request that describe its body.
#[derive(Debug, Default)]
pub(crate) struct RequestHeaders<'a> {
    method: Option<&'a str>,
    name: Option<&'a str>,
    version: Option<&'a str>,
}

pub(crate) enum Answer {
    Reply,
    /// Several messages, a line each.
    Lines,
    /// A question is written; the call goes on when its answer is here.
    Asked(u64),
    /// The answer to that question.
    Answered(u64, bool),
    /// A session begins.
    Opened,
    /// A notification: nothing to say.
    Nothing,
    /// Not acceptable.
    Bad,
}

/// All that it has to know.
#[derive(Debug)]
pub struct Limit {
    tools: String,
    questions: question::Questions,
}

const SERVER: &str = r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"bench","version":"1.0.0"}},"resultType":"complete","#;

impl Default for Limit {
    fn default() -> Self {
        let mut tools = vec![
            tool("echo", "Echo the text back", &[("text", "string", "text to echo")]),
            tool(
                "add",
                "Add two numbers",
                &[("a", "number", "first number"), ("b", "number", "second number")],
            ),
            tool("progress", "Report ten times", &[]),
            tool("confirm", "Ask whether to go on", &[]),
        ];
        let value = [("value", "string", "a value")];
        tools.extend(
            (0..100).map(|n| tool(&format!("tool_{n:03}"), &format!("Trivial tool number {n}"), &value)),
        );
        Self { tools: format!(r#""tools":[{}]"#, tools.join(",")), questions: question::Questions::default() }
    }
}

/// A tool as it is listed; its arguments have a name, a type and a description.
fn tool(name: &str, about: &str, arguments: &[(&str, &str, &str)]) -> String {
    let property = |(name, kind, about): &(&str, &str, &str)| {
        format!(r#""{name}":{{"type":"{kind}","description":"{about}"}}"#)
    };
    let properties: Vec<_> = arguments.iter().map(property).collect();
    let required: Vec<_> = arguments.iter().map(|(name, ..)| format!("\"{name}\"")).collect();
    format!(
        r#"{{"name":"{name}","description":"{about}","inputSchema":{{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{{{}}},"required":[{}]}}}}"#,
        properties.join(","),
        required.join(",")
    )
}

impl Limit {
    /// Appends the response to a message to `out`. `headers` are those of an HTTP request.
    pub(crate) fn answer(
        &self,
        message: &[u8],
        headers: Option<&RequestHeaders<'_>>,
        out: &mut Vec<u8>,
    ) -> Answer {
        let Ok(message) = serde_json::from_slice::<Message<'_>>(message) else { return Answer::Bad };
        let Some(id) = message.id.map(RawValue::get) else { return Answer::Nothing };
        let Some(method) = message.method.as_ref().map(|text| &*text.0) else {
            let reply = id.parse().ok().zip(message.result.as_ref());
            return reply.map_or(Answer::Bad, |(id, reply)| Answer::Answered(id, reply.is_yes()));
        };
        let params = &message.params;
        let meta = params.meta.as_ref();
        let version = meta.and_then(|meta| meta.version.as_ref()).map(|text| &*text.0);
        let name = params.name.as_ref().map(|text| &*text.0);
        if let Some(headers) = headers.filter(|_| version.is_some())
            && (headers.method != Some(method) || headers.name != name || headers.version != version)
        {
            return Answer::Bad;
        }
        let stateless = version.is_some();
        match (method, name, &params.arguments) {
            ("tools/call", Some("echo"), Some(Arguments { text: Some(text), .. })) => {
                called(out, id, stateless, &text.0);
            }
            ("tools/call", Some("add"), Some(Arguments { a: Some(a), b: Some(b), .. })) => {
                called(out, id, stateless, &(a + b).to_string());
            }
            ("tools/call", Some("progress"), _) => {
                if let Some(token) = meta.and_then(|meta| meta.token) {
                    report(out, token.get());
                }
                called(out, id, stateless, "done");
                return Answer::Lines;
            }
            ("tools/call", Some("confirm"), _) if stateless => {
                match (&params.replies, params.state.as_ref().map(|text| &*text.0)) {
                    (Some(replies), Some(question::STATE)) => {
                        called(out, id, true, question::word(replies.ok.is_yes()));
                    }
                    _ => question::park(out, id),
                }
            }
            ("tools/call", Some("confirm"), _) => return Answer::Asked(self.questions.ask(out)),
            ("tools/list", ..) => {
                begin(out, id, stateless);
                if stateless {
                    out.extend_from_slice(br#""ttlMs":0,"cacheScope":"public","#);
                }
                out.extend_from_slice(self.tools.as_bytes());
                out.extend_from_slice(b"}}");
            }
            ("server/discover", ..) => {
                begin(out, id, true);
                let revision = Era::Stateless.revision();
                let text = format!(
                    r#""ttlMs":0,"cacheScope":"public","supportedVersions":["{revision}"],"capabilities":{{"tools":{{}},"resources":{{}}}}}}}}"#
                );
                out.extend_from_slice(text.as_bytes());
            }
            ("initialize", ..) => {
                begin(out, id, false);
                let revision = Era::Session.revision();
                let text = format!(
                    r#""protocolVersion":"{revision}","capabilities":{{"tools":{{}},"resources":{{}}}},"serverInfo":{{"name":"bench","version":"1.0.0"}}}}}}"#
                );
                out.extend_from_slice(text.as_bytes());
                return Answer::Opened;
            }
            _ => {
                let no = format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"no such method"}}}}"#
                );
                out.extend_from_slice(no.as_bytes());
            }
        }
        Answer::Reply
    }
}

/// The result of a call, whole.
fn called(out: &mut Vec<u8>, id: &str, stateless: bool, text: &str) {
    begin(out, id, stateless);
    out.extend_from_slice(br#""content":[{"type":"text","text":"#);
    // A vector takes everything.
    let _ = serde_json::to_writer(&mut *out, text);
    out.extend_from_slice(b"}]}}");
}

/// The id of a call that was read before, as text.
fn call_id(message: &[u8]) -> String {
    let message = serde_json::from_slice::<Message<'_>>(message).ok();
    message.and_then(|message| message.id).map(RawValue::get).unwrap_or("null").to_owned()
}

/// Up to where the members of a result begin.
fn begin(out: &mut Vec<u8>, id: &str, stateless: bool) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.extend_from_slice(id.as_bytes());
    out.extend_from_slice(br#","result":{"#);
    if stateless {
        out.extend_from_slice(SERVER.as_bytes());
    }
}

/// All reports of a call, a line each.
fn report(out: &mut Vec<u8>, token: &str) {
    for done in 1..=REPORTS {
        out.extend_from_slice(
            br#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"#,
        );
        out.extend_from_slice(token.as_bytes());
        out.extend_from_slice(br#","progress":"#);
        out.extend_from_slice(done.to_string().as_bytes());
        out.extend_from_slice(b"}}\n");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::wire::{self, Ask, Asking};

    fn reply(limit: &Limit, message: &[u8]) -> (Answer, Vec<u8>) {
        let mut out = Vec::new();
        (limit.answer(message, None, &mut out), out)
    }

    #[test]
    fn every_request_gets_the_answer_that_is_looked_for() {
        for era in [Era::Session, Era::Stateless] {
            for ask in [Ask::Echo, Ask::Large(1000), Ask::List, Ask::Progress] {
                let mut asking = Asking::line(ask, era);
                let (_, out) = reply(&Limit::default(), asking.another());
                assert_eq!(asking.fault(&out), None, "{ask:?} {era:?}");
            }
        }
    }

    #[test]
    fn a_question_is_asked_and_its_answer_understood() {
        let limit = Limit::default();
        let mut asking = Asking::line(Ask::Confirm, Era::Session);
        let (Answer::Asked(question), out) = reply(&limit, asking.another()) else {
            panic!("it does not ask")
        };
        let asked: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!((&asked["id"], &asked["method"]), (&question.into(), &"elicitation/create".into()));
        let reply = reply(&limit, wire::accepted(&asked["id"]).as_bytes()).0;
        assert!(matches!(reply, Answer::Answered(id, true) if id == question));
    }

    #[test]
    fn a_question_without_a_session_ends_the_call_until_it_comes_again() {
        let limit = Limit::default();
        let mut asking = Asking::line(Ask::Confirm, Era::Stateless);
        let asked: Value = serde_json::from_slice(&reply(&limit, asking.another()).1).unwrap();
        assert_eq!(asked["result"]["resultType"], "input_required");
        let again = wire::again(7, &asked["result"]);
        let done: Value = serde_json::from_slice(&reply(&limit, again.as_bytes()).1).unwrap();
        assert_eq!((&done["id"], &done["result"]["content"][0]["text"]), (&7.into(), &"yes".into()));
    }
}
