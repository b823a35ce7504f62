//! What an answer costs at the least: the message parsed with serde_json in one typed pass, and the bytes written that
//! a reply has. There is no registry, and of sessions only their ids.

pub mod http;
pub mod stdio;

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::wire::Era;

/// The whole message: envelope, params and arguments together.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Text<'a>,
    #[serde(borrow, default)]
    params: Params<'a>,
}

#[derive(Default, Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    arguments: Option<Arguments<'a>>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<Meta<'a>>,
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
}

/// Borrowed from the message unless it has escapes.
#[derive(Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// What the head of a request says of its body.
#[derive(Debug, Default)]
pub(crate) struct Said<'a> {
    method: Option<&'a str>,
    name: Option<&'a str>,
    version: Option<&'a str>,
}

pub(crate) enum Answer {
    Reply,
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
        ];
        let value = [("value", "string", "a value")];
        tools.extend(
            (0..100).map(|n| tool(&format!("tool_{n:03}"), &format!("Trivial tool number {n}"), &value)),
        );
        Self { tools: format!(r#""tools":[{}]"#, tools.join(",")) }
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
    /// Writes the answer to a message behind what is in `out`. `said` is what HTTP has besides.
    pub(crate) fn answer(&self, message: &[u8], said: Option<&Said<'_>>, out: &mut Vec<u8>) -> Answer {
        let Ok(message) = serde_json::from_slice::<Message<'_>>(message) else { return Answer::Bad };
        let Some(id) = message.id else { return Answer::Nothing };
        let params = &message.params;
        let version = params.meta.as_ref().and_then(|meta| meta.version.as_ref()).map(|text| &*text.0);
        let name = params.name.as_ref().map(|text| &*text.0);
        if let Some(said) = said.filter(|_| version.is_some())
            && (said.method != Some(&*message.method.0) || said.name != name || said.version != version)
        {
            return Answer::Bad;
        }
        out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        out.extend_from_slice(id.get().as_bytes());
        out.extend_from_slice(br#","result":{"#);
        if version.is_some() {
            out.extend_from_slice(SERVER.as_bytes());
        }
        match (&*message.method.0, name, &params.arguments) {
            ("tools/call", Some("echo"), Some(Arguments { text: Some(text), .. })) => content(out, &text.0),
            ("tools/call", Some("add"), Some(Arguments { a: Some(a), b: Some(b), .. })) => {
                content(out, &(a + b).to_string());
            }
            ("tools/list", ..) => {
                if version.is_some() {
                    out.extend_from_slice(br#""ttlMs":0,"cacheScope":"public","#);
                }
                out.extend_from_slice(self.tools.as_bytes());
            }
            ("server/discover", ..) => {
                let said = format!(
                    r#""supportedVersions":["{}"],"capabilities":{{"tools":{{}},"resources":{{}}}},"ttlMs":0,"cacheScope":"public""#,
                    Era::Stateless.revision()
                );
                out.extend_from_slice(said.as_bytes());
            }
            ("initialize", ..) => {
                let revision = Era::Session.revision();
                let said = format!(
                    r#""protocolVersion":"{revision}","capabilities":{{"tools":{{}},"resources":{{}}}},"serverInfo":{{"name":"bench","version":"1.0.0"}}}}}}"#
                );
                out.extend_from_slice(said.as_bytes());
                return Answer::Opened;
            }
            _ => return Answer::Bad,
        }
        out.extend_from_slice(b"}}");
        Answer::Reply
    }
}

fn content(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(br#""content":[{"type":"text","text":"#);
    // A vector takes everything.
    let _ = serde_json::to_writer(&mut *out, text);
    out.extend_from_slice(b"}]");
}
