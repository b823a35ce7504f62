//! The reader of the JSON-RPC envelope.
//!
//! It is the only one, and reads in one pass, whatever the order of the members; the scan (`raw/scan.rs`) leaves their values to serde_json.
//! Strings among the `arguments` of a long request are decoded in the same pass (`raw/decoded.rs`), and the text of a long body becomes that
//! of the params. Only if reading fails does `malformed.rs` read the text again, for the error message.

use std::{borrow::Cow, marker::PhantomData};

use serde::de::IgnoredAny;

use crate::{
    Malformed, MalformedKind as Kind, Message, Notification, RawObject, Request, RequestId, Response,
    RpcError,
    malformed::diagnose,
    method,
    raw::{Scan, ScannedObject},
};

/// Reads a message in one pass. If that fails, [`diagnose`] finds the reason.
pub(crate) fn read(text: &str) -> Result<Message, Box<Malformed>> {
    match scan(text, id).or_else(|| scan_repeated(text)) {
        Some(envelope) => envelope.into_message(|object| object.copy(text)),
        None => Err(diagnose(text)),
    }
}

/// Reads a message in one pass. Its text becomes that of the params or the result, without a copy.
pub(crate) fn read_owned(text: String) -> Result<Message, Box<Malformed>> {
    match scan(&text, id).or_else(|| scan_repeated(&text)) {
        Some(envelope) => envelope.into_message(|object| object.cut(text)),
        None => Err(diagnose(&text)),
    }
}

/// The members of a message. The inner `Option` of a member that may be null is `None` for `null`.
#[derive(Default)]
struct Envelope {
    version: Option<bool>,
    id: Option<Option<RequestId>>,
    method: Option<Cow<'static, str>>,
    params: Option<Option<ScannedObject>>,
    result: Option<Option<ScannedObject>>,
    error: Option<Option<RpcError>>,
}

impl Envelope {
    /// Returns the message. `text` returns the text of its params or its result.
    fn into_message(self, text: impl FnOnce(ScannedObject) -> RawObject) -> Result<Message, Box<Malformed>> {
        let Self { version, id, method, params, result, error } = self;
        let kind = match (&method, &result, &error) {
            (None, None, None) => Kind::Unclear,
            (Some(_), _, _) => Kind::Call,
            _ => Kind::Answer,
        };
        let refuse = |id: Option<Option<RequestId>>, fault: &'static str, advice: &'static str| {
            let error = RpcError::invalid_request(format!("{fault}: {advice}"));
            Err(Box::new(Malformed { id: id.flatten(), kind, fault: fault.into(), error }))
        };
        if version != Some(true) {
            return refuse(id, "`jsonrpc` is not \"2.0\"", "send `\"jsonrpc\":\"2.0\"` in every message");
        }
        let null = match (&result, &error) {
            (Some(None), _) => Some("`result` is null"),
            (_, Some(None)) => Some("`error` is null, and there is no `result`"),
            _ => None,
        };
        // Some peers print an absent member as `null`.
        let (result, error) = (result.flatten(), error.flatten());
        match (method, id, result, error) {
            (Some(method), Some(Some(id)), None, None) => {
                Ok(Message::Request(Request { id, method, params: params.flatten().map(text) }))
            }
            (Some(_), id @ Some(None), None, None) => {
                refuse(id, "`id` is null", "a request has a string or an integer, a notification has no `id`")
            }
            (Some(method), None, None, None) => {
                Ok(Message::Notification(Notification { method, params: params.flatten().map(text) }))
            }
            (None, id, Some(result), None) => {
                Ok(Message::Response(Response { id: id.flatten(), result: Ok(text(result)) }))
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

/// Returns the name of a method, without an allocation if it is in the method table.
fn interned(name: Cow<'_, str>) -> Cow<'static, str> {
    match method::find(&name) {
        Some(known) => Cow::Borrowed(known.name),
        None => Cow::Owned(name.into_owned()),
    }
}

/// A member of the envelope.
enum Field {
    Version,
    Id,
    Method,
    Params,
    Result,
    Error,
    Other,
}

/// Reads an answer whose id is a whole number with a fraction: so some peers print the integer that they were sent. A request with such an
/// id is not read, because its answer would not have the id as it was printed.
#[cold]
fn scan_repeated(text: &str) -> Option<Envelope> {
    let id = |scan: &mut Scan<'_>| {
        let id: f64 = scan.value(PhantomData)?;
        // A whole one is printed without a fraction.
        id.to_string().parse().ok().map(|id| Some(RequestId::Number(id)))
    };
    scan(text, id).filter(|envelope| envelope.method.is_none())
}

/// Reads the whole text as one message, and its id with a function. A member that occurs twice is refused.
fn scan(text: &str, id: impl Fn(&mut Scan<'_>) -> Option<Option<RequestId>>) -> Option<Envelope> {
    fn set<T>(slot: &mut Option<T>, value: T) -> Option<()> {
        slot.replace(value).is_none().then_some(())
    }
    let mut envelope = Envelope::default();
    let mut scan = Scan::new(text);
    scan.members(|scan| {
        let field = field(scan)?;
        scan.token(b':')?;
        match field {
            Field::Version => set(&mut envelope.version, scan.string()? == "2.0"),
            Field::Id => set(&mut envelope.id, id(scan)?),
            Field::Method => set(&mut envelope.method, interned(scan.string()?)),
            Field::Params => set(&mut envelope.params, object(scan, Some("arguments"))?),
            Field::Result => set(&mut envelope.result, object(scan, None)?),
            Field::Error => set(&mut envelope.error, scan.value(PhantomData)?),
            Field::Other => scan.value(PhantomData::<IgnoredAny>).map(drop),
        }
    })?;
    scan.next().is_none().then_some(envelope)
}

/// Reads the name of a member. A name without escapes is compared where it is.
fn field(scan: &mut Scan<'_>) -> Option<Field> {
    let (field, length) = match scan.rest()?.as_bytes() {
        rest if rest.starts_with(b"\"jsonrpc\"") => (Field::Version, 9),
        rest if rest.starts_with(b"\"id\"") => (Field::Id, 4),
        rest if rest.starts_with(b"\"method\"") => (Field::Method, 8),
        rest if rest.starts_with(b"\"params\"") => (Field::Params, 8),
        rest if rest.starts_with(b"\"result\"") => (Field::Result, 8),
        rest if rest.starts_with(b"\"error\"") => (Field::Error, 7),
        _ => {
            return Some(match &*scan.string()? {
                "jsonrpc" => Field::Version,
                "id" => Field::Id,
                "method" => Field::Method,
                "params" => Field::Params,
                "result" => Field::Result,
                "error" => Field::Error,
                _ => Field::Other,
            });
        }
    };
    scan.skip(length);
    Some(field)
}

/// Reads an id. Up to 18 digits are a number; serde_json reads any other.
fn id(scan: &mut Scan<'_>) -> Option<Option<RequestId>> {
    let rest = scan.rest()?.as_bytes();
    let (mut number, mut length) = (0, 0);
    while let Some(digit @ b'0'..=b'9') = rest.get(length)
        && length < 18
    {
        number = number * 10 + i64::from(digit - b'0');
        length += 1;
    }
    let ends = matches!(rest.get(length), Some(b',' | b'}'));
    if !ends || length == 0 || rest.starts_with(b"0") {
        return scan.value(PhantomData);
    }
    scan.skip(length);
    Some(Some(RequestId::Number(number)))
}

/// Reads an object or `null`.
fn object(scan: &mut Scan<'_>, decoded: Option<&'static str>) -> Option<Option<ScannedObject>> {
    match scan.next()? {
        b'n' => scan.value(PhantomData::<()>).map(|()| None),
        _ => scan.object(decoded).map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_the_same_in_any_order_of_its_members() {
        for (usually, otherwise) in [
            (r#"{"jsonrpc":"2.0","id":7,"result":{}}"#, r#"{"id":7,"result":{},"jsonrpc":"2.0"}"#),
            (
                r#"{"jsonrpc":"2.0","id":7,"result":{"a":[1,{}],"b":"}"}}"#,
                r#"{"jsonrpc":"2.0", "id":7,"result":{"a":[1,{}],"b":"}"}}"#,
            ),
            (
                r#"{"jsonrpc":"2.0","id":9223372036854775807,"result":{}}"#,
                r#"{"result":{},"jsonrpc":"2.0","id":9223372036854775807}"#,
            ),
            (r#"{"jsonrpc":"2.0","id":0,"result":{}}"#, r#"{"jsonrpc":"2.0","result":{},"id":0}"#),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"b":","}}}"#,
                r#"{"id":1,"jsonrpc":"2.0","method":"tools/call","params":{"name":"a","arguments":{"b":","}}}"#,
            ),
            (
                r#"{"method":"tools/call","params":{"name":"}","id":2},"jsonrpc":"2.0","id":12}"#,
                r#"{"params":{"name":"}","id":2},"method":"tools/call","jsonrpc":"2.0","id":12}"#,
            ),
            (
                r#"{"method":"x/\u0079é","params":{ },"jsonrpc":"2.0","id":1}"#,
                r#"{"method":"x/yé","jsonrpc":"2.0","params":{},"id":1}"#,
            ),
        ] {
            assert!(Message::parse(usually.as_bytes()).is_ok(), "{usually}");
            assert_eq!(Message::parse(usually.as_bytes()), read_owned(usually.to_owned()), "{usually}");
            assert_eq!(Message::parse(usually.as_bytes()), Message::parse(otherwise.as_bytes()), "{usually}");
        }
    }

    #[test]
    fn malformed_messages_are_refused() {
        for text in [
            r#"{"jsonrpc":"2.0","id":1,"result":{},"id":2}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":[]}"#,
            r#"{"jsonrpc":"2.0","id":01,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":00,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":9223372036854775808,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{},"method":"b"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"a","params":[]}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"a\x","params":{}}"#,
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\n\",\"params\":{}}",
            r#"{"jsonrpc":"2.0","id":1,"method":a","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":1"","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":""#,
            r#"{"method":"a","params":{},"method":"b","jsonrpc":"2.0","id":1}"#,
            r#"{"method":"a","params":{},"jsonrpc":"2.0","jsonrpc":"2.0","id":1}"#,
            r#"{"method":"a","params":{},"jsonrpc":"2.0","id":01}"#,
            r#"{"method":"a","params":{},"jsonrpc":"2.0","id":}"#,
            r#"{"method":"a","params":{}},"jsonrpc":"2.0","id":1}"#,
            r#"{"method":"a","params":{"a":,"jsonrpc":"2.0","id":1}"#,
            r#"{"method":"a","jsonrpc":"2.0","id":1,}"#,
            r#"{,"method":"a","jsonrpc":"2.0","id":1}"#,
            r#"{"method":"a" "jsonrpc":"2.0","id":1}"#,
            r#"{"method":"a","jsonrpc":"2.0","id":-0}"#,
            r#"{"method":"a","jsonrpc":"2.0","id":1e0}"#,
            "{\"method\":\"a\",\"jsonrpc\":\"2.0\",\"id\":1}\u{c}",
            "{\"method\":\"a\",\"jsonrpc\":\"2.0\",\u{c}\"id\":1}",
            "{\"met\u{1}hod\":\"a\",\"jsonrpc\":\"2.0\",\"id\":1}",
            "{}",
            "{ }",
        ] {
            assert!(Message::parse(text.as_bytes()).is_err(), "{text}");
            assert_eq!(Message::parse(text.as_bytes()), read_owned(text.to_owned()), "{text}");
        }
    }

    #[test]
    fn an_empty_object_lacks_its_version() {
        assert_eq!(Message::parse(b"{ }").unwrap_err().fault, "`jsonrpc` is not \"2.0\"");
    }

    #[test]
    fn a_name_may_be_escaped_anywhere() {
        let plain = r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1,"name":"b","c":[2]}}"#;
        for escaped in [
            r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1,"n\u0061me":"b","c":[2]}}"#,
            r#"{"jsonrpc":"2.0","\u0069d":1,"method":"\u0078","params":{"\u0061":1,"name":"b","c":[2]}}"#,
            r#"{"jsonrpc":"2\u002e0","id":1,"method":"x","p\u0061rams":{"a":1,"name":"b","\u0063":[2]}}"#,
        ] {
            let read = Message::parse(escaped.as_bytes());
            assert_eq!(read, Message::parse(plain.as_bytes()), "{escaped}");
            let Ok(Message::Request(request)) = read else { panic!("{escaped}") };
            assert_eq!(request.params.unwrap().get("name"), Some("\"b\""));
        }
        let twice = br#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"name":1,"n\u0061me":2}}"#;
        let fault = Message::parse(twice).unwrap_err().fault;
        assert_eq!(fault, "`params` is invalid: the member `name` occurs twice: send it once");
        let twice = br#"{"jsonrpc":"2.0","id":1,"\u0069d":1,"method":"x"}"#;
        assert_eq!(Message::parse(twice).unwrap_err().fault, "the member `id` occurs twice: send it once");
    }

    #[test]
    fn params_are_cut_out_of_the_message() {
        let text = " { \"jsonrpc\" : \"2.0\",\"params\" :\n{ \"name\":\"x\" , \"arguments\" : {\"a\": 1} , \"_meta\":{ } } ,\"id\":7,\"method\":\"tools/call\"} ";
        let Ok(Message::Request(request)) = Message::parse(text.as_bytes()) else { panic!("a request") };
        assert_eq!(read_owned(text.to_owned()).as_ref(), Ok(&Message::Request(request.clone())));
        let params = request.params.unwrap();
        assert_eq!(params.as_str(), r#"{ "name":"x" , "arguments" : {"a": 1} , "_meta":{ } }"#);
        assert_eq!(params.get("arguments"), Some(r#"{"a": 1}"#));
        assert_eq!(params.without(&[]).as_str(), r#"{"name":"x","arguments":{"a": 1},"_meta":{ }}"#);
    }

    #[test]
    fn what_follows_an_object_that_was_read_before_is_read() {
        let meta = format!(r#"{{"client":{{"name":"{}","version":"1"}}}}"#, "x".repeat(100));
        let message = |meta: &str| {
            let params = format!(r#"{{"name":"a","_meta":{meta},"arguments":{{"b":1}}}}"#);
            Message::parse(format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{params}}}"#).as_bytes())
        };
        let first = message(&meta);
        let Ok(Message::Request(request)) = &first else { panic!("{first:?}") };
        let params = request.params.as_ref().unwrap();
        assert_eq!((params.get("_meta"), params.get("arguments")), (Some(&*meta), Some(r#"{"b":1}"#)));
        assert_eq!(message(&meta), first);
        let shorter = &meta[..meta.len() - 1];
        for malformed in [shorter, &format!("{meta}}}"), &format!("{meta} x"), &format!("{meta}{meta}")] {
            assert!(message(malformed).is_err(), "{malformed}");
        }
        for other in [format!(r#"{shorter},"more":1}}"#), format!("{meta} "), meta.replace("1", "2")] {
            let Ok(Message::Request(request)) = message(&other) else { panic!("{other}") };
            assert_eq!(request.params.unwrap().get("_meta"), Some(other.trim_end()));
        }
    }
}
