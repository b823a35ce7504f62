//! The reader of the JSON-RPC envelope.

use std::{borrow::Cow, marker::PhantomData};

use serde::de::{DeserializeSeed, IgnoredAny};

use crate::{
    Malformed, MalformedKind as Kind, Message, Notification, RawObject, Request, RequestId, Response,
    RpcError,
    malformed::diagnose,
    method,
    raw::{Name, ObjectSeed},
};

/// Reads a message in one pass. If that fails, [`diagnose`] finds the reason.
pub(crate) fn read(text: &str) -> Result<Message, Box<Malformed>> {
    let mut envelope = Envelope::default();
    match (Scan { text, at: 0 }).read(&mut envelope) {
        Some(()) => envelope.into_message(),
        None => Err(diagnose(text)),
    }
}

/// The members of a message. The inner `Option` of a member that may be null is `None` for `null`.
#[derive(Default)]
struct Envelope<'a> {
    version: Option<Cow<'a, str>>,
    id: Option<Option<RequestId>>,
    method: Option<Cow<'a, str>>,
    params: Option<Option<RawObject>>,
    result: Option<Option<RawObject>>,
    error: Option<Option<RpcError>>,
}

impl Envelope<'_> {
    fn into_message(self) -> Result<Message, Box<Malformed>> {
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
        if version.as_deref() != Some("2.0") {
            return refuse(id, "`jsonrpc` is not \"2.0\"", "send `\"jsonrpc\":\"2.0\"` in every message");
        }
        let null = match (&result, &error) {
            (Some(None), _) => Some("`result` is null"),
            (_, Some(None)) => Some("`error` is null, and there is no `result`"),
            _ => None,
        };
        // Some peers print an absent member as `null`.
        let (result, error) = (result.flatten(), error.flatten());
        match (method.map(interned), id, result, error) {
            (Some(method), Some(Some(id)), None, None) => {
                Ok(Message::Request(Request { id, method, params: params.flatten() }))
            }
            (Some(_), id @ Some(None), None, None) => {
                refuse(id, "`id` is null", "a request has a string or an integer, a notification has no `id`")
            }
            (Some(method), None, None, None) => {
                Ok(Message::Notification(Notification { method, params: params.flatten() }))
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

/// A scan over the members of the envelope. serde_json reads their values.
///
/// Each method returns `None` if the text is not what it expects.
struct Scan<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scan<'a> {
    /// Reads the whole text as one message. A member that occurs twice is refused.
    fn read(mut self, envelope: &mut Envelope<'a>) -> Option<()> {
        fn set<T>(slot: &mut Option<T>, value: T) -> Option<()> {
            slot.replace(value).is_none().then_some(())
        }
        self.token(b'{')?;
        let mut more = self.next()? != b'}';
        while more {
            let field = self.field()?;
            self.token(b':')?;
            match field {
                Field::Version => set(&mut envelope.version, self.string()?)?,
                Field::Id => set(&mut envelope.id, self.id()?)?,
                Field::Method => set(&mut envelope.method, self.string()?)?,
                Field::Params => set(&mut envelope.params, self.object()?)?,
                Field::Result => set(&mut envelope.result, self.object()?)?,
                Field::Error => set(&mut envelope.error, self.value(PhantomData)?)?,
                Field::Other => drop(self.value(PhantomData::<IgnoredAny>)?),
            }
            more = self.next()? == b',';
            self.at += usize::from(more);
        }
        self.token(b'}')?;
        self.next().is_none().then_some(())
    }

    /// Reads the name of a member. A name without escapes is compared where it is.
    fn field(&mut self) -> Option<Field> {
        self.next()?;
        let rest = self.text.as_bytes().get(self.at..)?;
        let (field, length) = match rest {
            rest if rest.starts_with(b"\"jsonrpc\"") => (Field::Version, 9),
            rest if rest.starts_with(b"\"id\"") => (Field::Id, 4),
            rest if rest.starts_with(b"\"method\"") => (Field::Method, 8),
            rest if rest.starts_with(b"\"params\"") => (Field::Params, 8),
            rest if rest.starts_with(b"\"result\"") => (Field::Result, 8),
            rest if rest.starts_with(b"\"error\"") => (Field::Error, 7),
            _ => {
                return Some(match &*self.string()? {
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
        self.at += length;
        Some(field)
    }

    /// Returns the next byte that is not white space, without going past it.
    fn next(&mut self) -> Option<u8> {
        loop {
            match self.text.as_bytes().get(self.at)? {
                b' ' | b'\t' | b'\n' | b'\r' => self.at += 1,
                byte => return Some(*byte),
            }
        }
    }

    fn token(&mut self, token: u8) -> Option<()> {
        (self.next()? == token).then(|| self.at += 1)
    }

    /// Reads a string, borrowed if it has no escapes.
    fn string(&mut self) -> Option<Cow<'a, str>> {
        self.token(b'"')?;
        let start = self.at;
        loop {
            match self.text.as_bytes().get(self.at)? {
                b'"' => break,
                b'\\' | ..b' ' => {
                    self.at = start - 1;
                    return self.value(Name);
                }
                _ => self.at += 1,
            }
        }
        self.at += 1;
        self.text.get(start..self.at - 1).map(Cow::Borrowed)
    }

    /// Reads an id. Up to 18 digits are a number; serde_json reads any other.
    fn id(&mut self) -> Option<Option<RequestId>> {
        let first = self.next()?;
        let rest = self.text.get(self.at..)?;
        let length = rest.bytes().position(|byte| !byte.is_ascii_digit())?;
        let ends = matches!(rest.as_bytes().get(length), Some(b',' | b'}'));
        if !ends || !(1..=18).contains(&length) || first == b'0' {
            return self.value(PhantomData);
        }
        self.at += length;
        Some(Some(RequestId::Number(rest.get(..length)?.parse().ok()?)))
    }

    /// Reads an object or `null`.
    fn object(&mut self) -> Option<Option<RawObject>> {
        match self.next()? {
            b'n' => self.value(PhantomData::<()>).map(|()| None),
            _ => self.value(ObjectSeed::within(self.text)).map(Some),
        }
    }

    fn value<T: DeserializeSeed<'a>>(&mut self, seed: T) -> Option<T::Value> {
        let mut deserializer = serde_json::Deserializer::from_str(self.text.get(self.at..)?);
        let value = seed.deserialize(&mut deserializer).ok()?;
        self.at += deserializer.into_iter::<IgnoredAny>().byte_offset();
        Some(value)
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
        let params = request.params.unwrap();
        assert_eq!(params.as_str(), r#"{ "name":"x" , "arguments" : {"a": 1} , "_meta":{ } }"#);
        assert_eq!(params.get("arguments"), Some(r#"{"a": 1}"#));
        assert_eq!(params.without(&[]).as_str(), r#"{"name":"x","arguments":{"a": 1},"_meta":{ }}"#);
    }
}
