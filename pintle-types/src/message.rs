use std::{borrow::Cow, fmt, io::Write as _};

use crate::{Malformed, RawObject, RequestId, RpcError, envelope, raw::one_line};

/// A JSON-RPC 2.0 message.
///
/// Parsing reads the envelope only. `params` and `result` stay text until the code that knows their type decodes them.
///
/// ```
/// use pintle_types::Message;
///
/// let bytes = br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"add"}}"#;
/// let Ok(Message::Request(request)) = Message::parse(bytes) else { panic!("a request") };
/// assert_eq!(request.method, "tools/call");
/// assert_eq!(request.params.unwrap().get("name"), Some("\"add\""));
/// ```
#[expect(clippy::exhaustive_enums, reason = "JSON-RPC has these three")]
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// A call that is answered with a response.
    Request(Request),
    /// A call that is not answered.
    Notification(Notification),
    /// The answer to a request.
    Response(Response),
}

/// A JSON-RPC request.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The id, which the response repeats.
    pub id: RequestId,
    /// The method to run.
    pub method: Cow<'static, str>,
    /// The parameters, not decoded. `null` is read as absent.
    pub params: Option<RawObject>,
}

/// A JSON-RPC notification.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub struct Notification {
    /// The method, which names the event.
    pub method: Cow<'static, str>,
    /// The parameters, not decoded. `null` is read as absent.
    pub params: Option<RawObject>,
}

/// A JSON-RPC response.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    /// The id of the request. Absent if the sender could not read it.
    pub id: Option<RequestId>,
    /// The result, not decoded, or the error.
    pub result: Result<RawObject, RpcError>,
}

impl Request {
    /// Creates a request.
    pub fn new(id: RequestId, method: impl Into<Cow<'static, str>>, params: Option<RawObject>) -> Self {
        Self { id, method: method.into(), params }
    }
}

impl Notification {
    /// Creates a notification.
    pub fn new(method: impl Into<Cow<'static, str>>, params: Option<RawObject>) -> Self {
        Self { method: method.into(), params }
    }
}

impl Response {
    /// Creates a response.
    pub fn new(id: Option<RequestId>, result: Result<RawObject, RpcError>) -> Self {
        Self { id, result }
    }
}

impl Message {
    /// Reads one message from its bytes.
    ///
    /// Nesting costs no stack, and nothing is copied but the params or the result, once. One byte order mark in front is
    /// skipped.
    ///
    /// # Errors
    ///
    /// The bytes are not a JSON-RPC message. The error has the reply to send, if one is due.
    pub fn parse(bytes: &[u8]) -> Result<Self, Box<Malformed>> {
        // Once for the whole message: each string in it is then known to be UTF-8.
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::parse_str(text),
            Err(_) => Err(Box::new(Malformed::not_utf8())),
        }
    }

    /// Reads one message from its text.
    ///
    /// # Errors
    ///
    /// The text is not a JSON-RPC message. The error has the reply to send, if one is due.
    pub fn parse_str(text: &str) -> Result<Self, Box<Malformed>> {
        envelope::read(text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text))
    }

    /// Appends the message as JSON on one line, without a line break at the end.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(br#"{"jsonrpc":"2.0""#);
        match self {
            Self::Request(Request { id, method, params }) => {
                out.extend_from_slice(br#","id":"#);
                json(out, id);
                out.extend_from_slice(br#","method":"#);
                json(out, method);
                object(out, br#","params":"#, params.as_ref());
            }
            Self::Notification(Notification { method, params }) => {
                out.extend_from_slice(br#","method":"#);
                json(out, method);
                object(out, br#","params":"#, params.as_ref());
            }
            Self::Response(Response { id, result }) => {
                if let Some(id) = id {
                    out.extend_from_slice(br#","id":"#);
                    json(out, id);
                }
                match result {
                    Ok(result) => object(out, br#","result":"#, Some(result)),
                    Err(error) => {
                        out.extend_from_slice(br#","error":"#);
                        // Its `data` is raw and may have line breaks between its tokens.
                        let printed = serde_json::to_string(error).unwrap_or_default();
                        out.extend_from_slice(one_line(&printed).as_bytes());
                    }
                }
            }
        }
        out.push(b'}');
    }

    /// Prints the message as JSON on one line, without a line break at the end.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.room());
        self.write(&mut out);
        out
    }

    /// Returns an estimate of the printed length. It is generous, because growing a buffer copies it.
    fn room(&self) -> usize {
        let (method, payload) = match self {
            Self::Request(Request { method, params, .. })
            | Self::Notification(Notification { method, params }) => (method.len(), params.as_ref()),
            Self::Response(Response { result, .. }) => (0, result.as_ref().ok()),
        };
        method + payload.map_or(128, |payload| payload.as_str().len()) + 96
    }
}

/// The byte order mark, which some systems put in front of a text.
pub(crate) const BYTE_ORDER_MARK: char = '\u{feff}';

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.to_vec()))
    }
}

fn object(out: &mut Vec<u8>, name: &[u8], value: Option<&RawObject>) {
    if let Some(value) = value {
        out.extend_from_slice(name);
        out.extend_from_slice(value.as_str().as_bytes());
    }
}

fn json(out: &mut Vec<u8>, value: &(impl serde::Serialize + ?Sized)) {
    // Cannot fail for ids, strings and errors; half a value would still be refused by the reader.
    let _ = serde_json::to_writer(&mut *out, value).and_then(|()| out.flush().map_err(serde_json::Error::io));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MalformedKind as Kind;

    fn refused(text: &str) -> (Option<RequestId>, Kind, i32, String) {
        let Malformed { id, kind, error, .. } = *Message::parse(text.as_bytes()).unwrap_err();
        (id, kind, error.code.0, error.message.into_owned())
    }

    #[test]
    fn what_is_absent_may_be_null() {
        for (text, read) in [
            (
                r#"{"jsonrpc":"2.0","id":1,"result":{},"error":null}"#,
                r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            ),
            (
                r#"{"jsonrpc":"2.0","error":null,"result":{"a":1},"id":"x"}"#,
                r#"{"jsonrpc":"2.0","id":"x","result":{"a":1}}"#,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":1,"message":"m"}}"#,
                r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}"#,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":null,"result":null,"error":null}"#,
                r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
            ),
        ] {
            assert_eq!(Message::parse(text.as_bytes()).unwrap().to_string(), read);
        }
        for text in [
            r#"{"jsonrpc":"2.0","id":1,"result":null}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":null,"result":null}"#,
        ] {
            let malformed = Message::parse(text.as_bytes()).unwrap_err();
            assert_eq!(malformed.kind, Kind::Answer);
            assert_eq!(malformed.fault, "`result` is null");
        }
    }

    #[test]
    fn what_is_wrong_is_reported_without_advice_for_the_sender() {
        let malformed = Message::parse(br#"{"jsonrpc":"1.0","id":1,"result":{}}"#).unwrap_err();
        assert_eq!(malformed.fault, "`jsonrpc` is not \"2.0\"");
        assert!(malformed.error.message.ends_with(": send `\"jsonrpc\":\"2.0\"` in every message"));
        let malformed = Message::parse(br#"{"jsonrpc":"2.0","id":1,"result":7}"#).unwrap_err();
        assert_eq!(malformed.fault, "`result` is invalid: invalid type: integer `7`, expected an object");
    }

    #[test]
    fn a_message_prints_as_it_was_read() {
        for text in [
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":"1","method":"x/y","params":{"a":[1,{"b":null}]}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#"{"jsonrpc":"2.0","id":-3,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":"ü","error":{"code":-32601,"message":"no","data":{"x":1e999}}}"#,
            r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"what"}}"#,
        ] {
            assert_eq!(Message::parse(text.as_bytes()).unwrap().to_string(), text);
        }
    }

    #[test]
    fn the_envelope_is_read_in_any_order_and_forgives_what_it_may() {
        let text = r#" {"params":null,"trace":{"x":[]},"method":"ping","id":null,"jsonrpc":"2.0"}"#;
        assert_eq!(refused(text).2, -32600);
        let text = r#"{"params":null,"trace":{"x":[]},"method":"ping","id":4,"jsonrpc":"2.0"}"#;
        assert_eq!(
            Message::parse(text.as_bytes()).unwrap().to_string(),
            r#"{"jsonrpc":"2.0","id":4,"method":"ping"}"#
        );
        let text = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}"#;
        let Ok(Message::Response(response)) = Message::parse(text.as_bytes()) else { panic!("a response") };
        assert_eq!(response.id, None);
    }

    /// Some peers keep every number as a float, and print the integer that they were sent as one.
    #[test]
    fn an_answer_may_have_its_id_printed_as_a_float_and_a_request_may_not() {
        for (printed, id) in [("1.0", 1), ("12.00", 12), ("1.0E7", 10_000_000), ("-3.0", -3), ("0.0", 0)] {
            for member in [r#""result":{}"#, r#""error":{"code":1,"message":"no"}"#] {
                let text = format!(r#"{{"jsonrpc":"2.0","id":{printed},{member}}}"#);
                let Ok(Message::Response(response)) = Message::parse_str(&text) else { panic!("{text}") };
                assert_eq!(response.id, Some(RequestId::Number(id)));
            }
            // Its answer would not have the id as it was printed.
            let message = refused(&format!(r#"{{"jsonrpc":"2.0","id":{printed},"method":"ping"}}"#)).3;
            assert!(message.starts_with("`id` is invalid: invalid type: floating point"), "{message}");
        }
        for printed in ["1.5", "1e300", "true"] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":{printed},"result":{{}}}}"#);
            assert_eq!(refused(&text).0, None, "{text}");
        }
    }

    #[test]
    fn no_line_break_reaches_the_wire() {
        let text = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":[1,\n2]}}";
        let printed = Message::parse(text.as_bytes()).unwrap().to_string();
        assert_eq!(printed, r#"{"jsonrpc":"2.0","id":1,"result":{"a":[1, 2]}}"#);
    }

    #[test]
    fn bad_messages_say_why_and_keep_their_id() {
        let message = |text: &str| {
            let (id, kind, code, message) = refused(text);
            format!("{} {kind:?} {code} {message}", id.map_or("-".into(), |id| id.to_string()))
        };
        for (text, expected) in [
            (r#"{"jsonrpc":"2.0","id":1,"method""#, "- Unclear -32700 not JSON: EOF"),
            ("", "- Unclear -32700 not JSON: EOF"),
            ("7", "- Unclear -32600 not a JSON object"),
            (r#"{"id":1,"method":"ping"}"#, "1 Call -32600 `jsonrpc` is not"),
            (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, "1 Call -32600 `jsonrpc` is not"),
            (r#"{"jsonrpc":2.0,"id":1,"method":"ping"}"#, "1 Call -32600 `jsonrpc` is invalid: invalid type"),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, "- Call -32600 `id` is invalid: invalid type"),
            (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, "- Call -32600 `id` is invalid"),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, "- Call -32600 `id` is null"),
            (r#"{"jsonrpc":"2.0","id":"a","method":5}"#, "\"a\" Call -32600 `method` is invalid"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"x","params":[1]}"#, "1 Call -32600 `params` is invalid"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"x","params":"s"}"#, "1 Call -32600 `params` is invalid"),
            (r#"{"jsonrpc":"2.0","method":"x","params":[1]}"#, "- Notification -32600 `params` is invalid"),
            (r#"{"jsonrpc":"2.0","method":"x","params":{"a":1,"a":2}}"#, "- Notification -32600 `params`"),
            (r#"{"jsonrpc":"2.0","method":1,"params":"s"}"#, "- Call -32600 `method` is invalid"),
            (r#"{"jsonrpc":1,"method":"x","params":[1]}"#, "- Call -32600 `jsonrpc` is invalid"),
            (
                r#"{"jsonrpc":null,"id":1,"method":"x"}"#,
                "1 Call -32600 `jsonrpc` is invalid: invalid type: null",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":null}"#,
                "1 Call -32600 `method` is invalid: invalid type: null",
            ),
            (r#"{"jsonrpc":"2.0","id":1,"result":null}"#, "1 Answer -32600 `result` is null"),
            (r#"{"jsonrpc":"2.0","id":1,"result":5}"#, "1 Answer -32600 `result` is invalid"),
            (r#"{"jsonrpc":"2.0","id":1,"error":{"code":1.5}}"#, "1 Answer -32600 `error` is invalid"),
            (r#"{"jsonrpc":"2.0","id":1}"#, "1 Unclear -32600 neither"),
            (
                r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}"#,
                "1 Answer -32600 both",
            ),
            (r#"{"jsonrpc":"2.0","id":1,"method":"x","result":{}}"#, "1 Call -32600 `method` beside"),
            (
                r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}"#,
                "- Unclear -32600 the member `id` occurs twice",
            ),
            (r#"{"jsonrpc":"2.0","id":1,"method":"x"} x"#, "- Unclear -32700 not JSON: trailing characters"),
        ] {
            assert!(message(text).starts_with(expected), "{text}\n  {}", message(text));
        }
        let bytes = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}";
        assert_eq!(Message::parse(bytes).unwrap_err().error.message, "the message is not UTF-8");
    }

    #[test]
    fn depth_costs_no_stack() {
        let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{{"deep":{deep}}}}}"#);
        let Ok(Message::Request(request)) = Message::parse(text.as_bytes()) else { panic!("a request") };
        let params = request.params.unwrap();
        assert_eq!(params.get("deep").map(str::len), Some(400_000));
        let error = params.decode_member::<serde_json::Value>("deep").unwrap_err().to_string();
        assert!(error.starts_with("recursion limit exceeded"), "{error}");
    }
}
