use std::{borrow::Cow, fmt, io::Write as _};

use serde::de::{self, DeserializeSeed, IgnoredAny, MapAccess};

use crate::{
    Malformed, MalformedKind as Kind, RawObject, RequestId, RpcError,
    malformed::diagnose,
    method,
    raw::{Name, Roomy, Within, has_breaks, long_request},
    usual::usual,
};

/// One JSON-RPC 2.0 message.
///
/// Parsing reads the envelope only. `params` and `result` stay text until somebody who knows their type decodes them.
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
    /// Wants an answer.
    Request(Request),
    /// Wants none.
    Notification(Notification),
    /// The answer to a request of the other side.
    Response(Response),
}

/// A message that wants an answer.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// What the answer will be marked with.
    pub id: RequestId,
    /// What is wanted.
    pub method: Cow<'static, str>,
    /// The parameters, not decoded. `null` counts as absent.
    pub params: Option<RawObject>,
}

/// A message that wants no answer.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub struct Notification {
    /// What happened.
    pub method: Cow<'static, str>,
    /// The parameters, not decoded. `null` counts as absent.
    pub params: Option<RawObject>,
}

/// The answer to a request.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    /// Which request it answers. Absent if the sender could not read the request's id.
    pub id: Option<RequestId>,
    /// What came of it, not decoded.
    pub result: Result<RawObject, RpcError>,
}

impl Request {
    /// A request, ready to be printed.
    pub fn new(id: RequestId, method: impl Into<Cow<'static, str>>, params: Option<RawObject>) -> Self {
        Self { id, method: method.into(), params }
    }
}

impl Notification {
    /// A notification, ready to be printed.
    pub fn new(method: impl Into<Cow<'static, str>>, params: Option<RawObject>) -> Self {
        Self { method: method.into(), params }
    }
}

impl Response {
    /// An answer, ready to be printed.
    pub fn new(id: Option<RequestId>, result: Result<RawObject, RpcError>) -> Self {
        Self { id, result }
    }
}

impl Message {
    /// Reads one message from its bytes.
    ///
    /// Nesting costs no stack, and nothing is copied but the params or the result, once.
    pub fn parse(bytes: &[u8]) -> Result<Self, Box<Malformed>> {
        // Once for the whole message: each string in it is then known to be UTF-8.
        let Ok(text) = std::str::from_utf8(bytes) else {
            let error = RpcError::parse_error("the message is not UTF-8");
            let fault = error.message.clone();
            return Err(Box::new(Malformed { id: None, kind: Kind::Unclear, fault, error }));
        };
        Self::parse_str(text)
    }

    /// Reads one message from its text, which it may keep: then nothing of it is copied. Of a request the texts among the
    /// arguments are decoded on the way, for [`RawObject::take_member`]; [`parse`](Self::parse) does that with long ones.
    ///
    /// ```
    /// use pintle_types::Message;
    ///
    /// let text = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"say","arguments":{"text":"a\nb"}}}"#;
    /// let Ok(Message::Request(request)) = Message::parse_text(text.to_owned()) else { panic!("a request") };
    /// #[derive(serde::Deserialize)]
    /// struct Say {
    ///     text: String,
    /// }
    /// let said: Option<Say> = request.params.unwrap().take_member("arguments");
    /// assert_eq!(said.unwrap().text, "a\nb");
    /// ```
    pub fn parse_text(text: String) -> Result<Self, Box<Malformed>> {
        match long_request(Cow::Owned(text)) {
            Ok(request) => Ok(Self::Request(request)),
            Err(text) => Self::parse_short(&text),
        }
    }

    pub(crate) fn parse_str(text: &str) -> Result<Self, Box<Malformed>> {
        if text.len() >= LONG
            && let Ok(request) = long_request(Cow::Borrowed(text))
        {
            return Ok(Self::Request(request));
        }
        Self::parse_short(text)
    }

    fn parse_short(text: &str) -> Result<Self, Box<Malformed>> {
        if let Some(message) = usual(text) {
            return Ok(message);
        }
        let mut envelope = Envelope::of(text);
        if envelope.read().is_ok() {
            return envelope.into_message();
        }
        let mut envelope = Envelope { copied: true, ..Envelope::of(text) };
        match envelope.read() {
            Ok(()) => envelope.into_message(),
            Err(_) => match text.strip_prefix('\u{feff}') {
                // A byte order mark, which some systems put before a text.
                Some(rest) if !rest.starts_with('\u{feff}') => Self::parse_short(rest),
                _ => Err(diagnose(text)),
            },
        }
    }

    /// Appends the message as JSON on one line, without the line's end.
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
                        let mut printed = Vec::new();
                        json(&mut printed, error);
                        one_line(out, &printed);
                    }
                }
            }
        }
        out.push(b'}');
    }

    /// The message as JSON on one line, without the line's end.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.room());
        self.write(&mut out);
        out
    }

    /// About how many bytes it takes when it is printed; more than most need, because growing would copy it.
    fn room(&self) -> usize {
        let (method, payload) = match self {
            Self::Request(Request { method, params, .. })
            | Self::Notification(Notification { method, params }) => (method.len(), params.as_ref()),
            Self::Response(Response { result, .. }) => (0, result.as_ref().ok()),
        };
        method + payload.map_or(128, |payload| payload.as_str().len()) + 96
    }
}

/// From this many bytes on a request is read as a long one: for short ones that is dearer.
const LONG: usize = 8 << 10;

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.to_vec()))
    }
}

fn object(out: &mut Vec<u8>, name: &[u8], value: Option<&RawObject>) {
    let Some(value) = value else { return };
    out.extend_from_slice(name);
    if value.is_one_line() {
        out.extend_from_slice(value.as_str().as_bytes());
    } else {
        one_line(out, value.as_str().as_bytes());
    }
}

/// Appends JSON that may have come from a peer with line breaks between its tokens: on a line-delimited stream they
/// would end the message. Inside a string JSON allows none, so a space in their place changes nothing.
fn one_line(out: &mut Vec<u8>, json: &[u8]) {
    if has_breaks(json) {
        out.extend(json.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }));
    } else {
        out.extend_from_slice(json);
    }
}

fn json(out: &mut Vec<u8>, value: &(impl serde::Serialize + ?Sized)) {
    // Cannot fail for ids, strings and errors; half a value would still be refused by the reader.
    let _ = serde_json::to_writer(&mut *out, value).and_then(|()| out.flush().map_err(serde_json::Error::io));
}

#[derive(Default)]
struct Envelope<'a> {
    text: &'a str,
    /// Whether objects are copied member by member, as they have to be if a name in one has an escape.
    copied: bool,
    version: Option<Cow<'a, str>>,
    id: Option<Option<RequestId>>,
    method: Option<Cow<'a, str>>,
    params: Option<Option<RawObject>>,
    result: Option<Option<RawObject>>,
    error: Option<Option<RpcError>>,
}

impl<'a> Envelope<'a> {
    fn of(text: &'a str) -> Self {
        Self { text, ..Self::default() }
    }

    /// Fills it in place: it is large.
    fn read(&mut self) -> Result<(), serde_json::Error> {
        let mut deserializer = serde_json::Deserializer::from_str(self.text);
        de::Deserializer::deserialize_map(&mut deserializer, self)?;
        deserializer.end()
    }

    fn into_message(self) -> Result<Message, Box<Malformed>> {
        let Self { version, id, method, params, result, error, .. } = self;
        let kind = match (&method, &result, &error) {
            (None, None, None) => Kind::Unclear,
            (Some(_), _, _) => Kind::Call,
            _ => Kind::Answer,
        };
        let refuse = |id: Option<Option<RequestId>>, fault: &'static str, advice: &'static str| {
            let error = RpcError::invalid_request(format!("{fault}: {advice}"));
            Err(Box::new(Malformed { id: id.flatten(), kind, fault: fault.into(), error }))
        };
        if version.as_deref() != Some("2.0") {
            return refuse(id, "`jsonrpc` is not \"2.0\"", "send `\"jsonrpc\":\"2.0\"` in every message");
        }
        let null = match (&result, &error) {
            (Some(None), _) => Some("`result` is null"),
            (_, Some(None)) => Some("`error` is null, and there is no `result`"),
            _ => None,
        };
        // Some print what is absent as `null`.
        let (result, error) = (result.flatten(), error.flatten());
        match (method, id, result, error) {
            (Some(method), Some(Some(id)), None, None) => {
                Ok(Message::Request(Request { id, method: intern(method), params: params.flatten() }))
            }
            (Some(_), id @ Some(None), None, None) => {
                refuse(id, "`id` is null", "a request has a string or an integer, a notification has no `id`")
            }
            (Some(method), None, None, None) => {
                Ok(Message::Notification(Notification { method: intern(method), params: params.flatten() }))
            }
            (None, id, Some(result), None) => {
                Ok(Message::Response(Response { id: id.flatten(), result: Ok(result) }))
            }
            (None, id, None, Some(error)) => {
                Ok(Message::Response(Response { id: id.flatten(), result: Err(error) }))
            }
            (None, id, None, None) => match null {
                Some(fault) => refuse(id, fault, "a response has one of the two, an object"),
                None => refuse(id, "neither `method` nor `result` nor `error`", "a message has one of them"),
            },
            (None, id, Some(_), Some(_)) => {
                refuse(id, "both `result` and `error`", "a response has one of them")
            }
            (Some(_), id, _, _) => refuse(id, "`method` beside `result` or `error`", "a message is either"),
        }
    }
}

/// Names that every peer uses, so that reading them allocates nothing.
pub(crate) fn intern(method: Cow<'_, str>) -> Cow<'static, str> {
    match method::find(&method) {
        Some(known) => Cow::Borrowed(known.name),
        None => Cow::Owned(method.into_owned()),
    }
}

impl<'de> de::Visitor<'de> for &mut Envelope<'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON-RPC message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        fn fill<T, E: de::Error>(slot: &mut Option<T>, value: T) -> Result<(), E> {
            // The text of this error is never seen: `diagnose` finds the words.
            slot.replace(value).map_or(Ok(()), |_| Err(E::custom("twice")))
        }
        let object = Object { text: self.text, copied: self.copied };
        while let Some(name) = map.next_key_seed(Name)? {
            match &*name {
                "jsonrpc" => fill(&mut self.version, map.next_value_seed(Name)?)?,
                "id" => fill(&mut self.id, map.next_value()?)?,
                "method" => fill(&mut self.method, map.next_value_seed(Name)?)?,
                "params" => fill(&mut self.params, map.next_value_seed(Nullable(object))?)?,
                "result" => fill(&mut self.result, map.next_value_seed(Nullable(object))?)?,
                "error" => fill(&mut self.error, map.next_value()?)?,
                _ => map.next_value::<IgnoredAny>().map(drop)?,
            }
        }
        Ok(())
    }
}

/// An object in a text.
#[derive(Clone, Copy)]
struct Object<'a> {
    text: &'a str,
    copied: bool,
}

impl<'de> DeserializeSeed<'de> for Object<'de> {
    type Value = RawObject;

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<RawObject, D::Error> {
        match self.copied {
            false => Within { text: self.text }.deserialize(deserializer),
            // It is most of the message: room for all of it is room enough, and not much too much.
            true => Roomy { bytes: self.text.len() }.deserialize(deserializer),
        }
    }
}

/// An object, or `null`.
struct Nullable<'a>(Object<'a>);

impl<'de> DeserializeSeed<'de> for Nullable<'de> {
    type Value = Option<RawObject>;

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_option(self)
    }
}

impl<'de> de::Visitor<'de> for Nullable<'de> {
    type Value = Option<RawObject>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or null")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_none<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_some<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        self.0.deserialize(deserializer).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn what_is_wrong_is_told_without_advice_for_the_sender() {
        let malformed = Message::parse(br#"{"jsonrpc":"1.0","id":1,"result":{}}"#).unwrap_err();
        assert_eq!(malformed.fault, "`jsonrpc` is not \"2.0\"");
        assert!(malformed.error.message.ends_with(": send `\"jsonrpc\":\"2.0\"` in every message"));
        let malformed = Message::parse(br#"{"jsonrpc":"2.0","id":1,"result":7}"#).unwrap_err();
        assert_eq!(malformed.fault, "`result` does not fit: invalid type: integer `7`, expected an object");
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

    #[test]
    fn no_line_break_reaches_the_wire() {
        let text = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":[1,\n2]}}";
        let printed = Message::parse(text.as_bytes()).unwrap().to_string();
        assert_eq!(printed, r#"{"jsonrpc":"2.0","id":1,"result":{"a":[1, 2]}}"#);
    }

    #[test]
    fn bad_messages_say_why_and_keep_their_id() {
        let said = |text: &str| {
            let (id, kind, code, said) = refused(text);
            format!("{} {kind:?} {code} {said}", id.map_or("-".into(), |id| id.to_string()))
        };
        for (text, expected) in [
            (r#"{"jsonrpc":"2.0","id":1,"method""#, "- Unclear -32700 not JSON: EOF"),
            ("", "- Unclear -32700 not JSON: EOF"),
            ("7", "- Unclear -32600 not a JSON object"),
            (r#"{"id":1,"method":"ping"}"#, "1 Call -32600 `jsonrpc` is not"),
            (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, "1 Call -32600 `jsonrpc` is not"),
            (
                r#"{"jsonrpc":2.0,"id":1,"method":"ping"}"#,
                "1 Call -32600 `jsonrpc` does not fit: invalid type",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
                "- Call -32600 `id` does not fit: invalid type",
            ),
            (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, "- Call -32600 `id` does not fit"),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, "- Call -32600 `id` is null"),
            (r#"{"jsonrpc":"2.0","id":"a","method":5}"#, "\"a\" Call -32600 `method` does not fit"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"x","params":[1]}"#, "1 Call -32600 `params` does not fit"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"x","params":"s"}"#, "1 Call -32600 `params` does not fit"),
            (r#"{"jsonrpc":"2.0","method":"x","params":[1]}"#, "- Notification -32600 `params` does not fit"),
            (r#"{"jsonrpc":"2.0","method":"x","params":{"a":1,"a":2}}"#, "- Notification -32600 `params`"),
            (r#"{"jsonrpc":"2.0","method":1,"params":"s"}"#, "- Call -32600 `method` does not fit"),
            (r#"{"jsonrpc":1,"method":"x","params":[1]}"#, "- Call -32600 `jsonrpc` does not fit"),
            (
                r#"{"jsonrpc":null,"id":1,"method":"x"}"#,
                "1 Call -32600 `jsonrpc` does not fit: invalid type: null",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":null}"#,
                "1 Call -32600 `method` does not fit: invalid type: null",
            ),
            (r#"{"jsonrpc":"2.0","id":1,"result":null}"#, "1 Answer -32600 `result` is null"),
            (r#"{"jsonrpc":"2.0","id":1,"result":5}"#, "1 Answer -32600 `result` does not fit"),
            (r#"{"jsonrpc":"2.0","id":1,"error":{"code":1.5}}"#, "1 Answer -32600 `error` does not fit"),
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
            assert!(said(text).starts_with(expected), "{text}\n  {}", said(text));
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
