//! HTTP heads, schemas and arguments of any kind.

#![no_main]

use arbitrary::{Arbitrary, Result, Unstructured};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use libfuzzer_sys::fuzz_target;
use pintle_proto::http::{
    Accepts, PostBody, Endpoint, Guard, Head, HeaderParams, NameSource, EndpointRequest, Post, Probed, RequestHead,
    check_session_version, decode_value, headers, encode_value, is_session_id, name_in, name_member, open,
    redirect, resolve_endpoint, route, same_origin, session_status, stateless_status,
};
use pintle_types::{ErrorCode, RawObject};
use serde_json::{Map, Value, value::RawValue};

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    method: u8,
    headers: Vec<(u8, &'a [u8])>,
    uri: &'a str,
    served: u8,
    body: u8,
    version: u8,
    called: &'a str,
    name: Option<&'a str>,
    schema: Json,
    arguments: Json,
    reply: (u16, i32),
    params: &'a str,
}

const STATELESS: &[&str] = &["new", "newer"];
const SESSION: &[&str] = &["old", "older"];

fuzz_target!(|input: Input<'_>| {
    let headers = headers(&input);
    let method = [Method::POST, Method::GET, Method::DELETE, Method::OPTIONS, Method::PUT]
        [usize::from(input.method % 5)]
    .clone();
    let uri: Uri = input.uri.parse().unwrap_or_default();
    let head = Head::new(&method, &uri, &headers);
    judged(&head, &input);
    dressed(&input);
    encoded(input.params);
    mirrored(&input, &headers);
    addressed(&uri, &input);
    probed(&input, &headers);
});

fn headers(input: &Input<'_>) -> HeaderMap {
    const NAMES: &[&str] = &[
        "host",
        "origin",
        "accept",
        "content-type",
        "content-length",
        "mcp-method",
        "mcp-name",
        "mcp-protocol-version",
        "mcp-session-id",
        "last-event-id",
        "mcp-param-a",
        "mcp-param-b",
        "www-authenticate",
        "x-other",
    ];
    const VALUES: &[&str] = &[
        "localhost:1",
        "127.0.0.1",
        "http://localhost",
        "application/json",
        "text/event-stream;q=0",
        "*/*, application/*",
        "new",
        "old",
        "other",
        "tools/call",
        "=?base64?YQ==?=",
        "=?base64?",
        "7",
        "",
        "null",
    ];
    let mut headers = HeaderMap::new();
    for (name, value) in &input.headers {
        let name = HeaderName::from_static(NAMES[usize::from(*name) % NAMES.len()]);
        let value = match value {
            [one] => VALUES[usize::from(*one) % VALUES.len()].as_bytes(),
            value => value,
        };
        if let Ok(value) = HeaderValue::from_bytes(value) {
            headers.append(name, value);
        }
    }
    headers
}

fn endpoint(served: u8, names: &'static [NameSource<'static>]) -> Endpoint<'static> {
    let on = |bit: u8| served & bit != 0;
    let mut endpoint = Endpoint::new(if on(1) { STATELESS } else { &[] }, if on(2) { SESSION } else { &[] });
    endpoint.sessionless = on(4) && on(2);
    endpoint.sessions = on(8) && on(2);
    endpoint.assumed = (on(16) && on(2)).then_some("older");
    endpoint.batching = if on(32) { &["older"] } else { &[] };
    endpoint.names = names;
    endpoint.body_limit = if on(64) { 100 } else { usize::MAX };
    endpoint
}

/// Checks that any head is accepted or refused with a reason.
fn judged(head: &Head<'_>, input: &Input<'_>) {
    const NAMES: &[NameSource<'_>] = &[NameSource::new("tasks/get", "taskId")];
    let endpoint = endpoint(input.served, NAMES);
    for guard in
        [Guard::loopback(), Guard::hosts([input.uri]).origins([input.called]), Guard::any_host().any_origin()]
    {
        match open(head, &guard, &endpoint) {
            Ok(EndpointRequest::Post(accepts)) => assert_eq!(accepts, Accepts::read(head)),
            Ok(EndpointRequest::Listen { session } | EndpointRequest::Resume { session, .. } | EndpointRequest::End { session }) => {
                assert!(is_session_id(session) && endpoint.sessions);
            }
            Ok(_) => {}
            Err(refusal) => {
                assert!(refusal.status.is_client_error());
                assert!(serde_json::from_str::<Value>(&refusal.body(Some(&"id".into()))).is_ok());
            }
        }
    }
    let version = [None, Some("new"), Some("old"), Some("other")][usize::from(input.version % 4)];
    let body = match input.body % 5 {
        0 => PostBody::Notification,
        1 => PostBody::Response,
        2 => PostBody::Batch,
        more => PostBody::Request(RequestHead::new(input.called, version, more == 3, input.name)),
    };
    match route(head, &body, &endpoint) {
        Ok(Post::Stateless { version }) => assert!(endpoint.stateless.contains(&version)),
        Ok(Post::Sessionless { version }) => {
            assert!(endpoint.sessionless && endpoint.session.contains(&version))
        }
        Ok(Post::Session { id }) => assert!(endpoint.sessions && is_session_id(id)),
        Ok(Post::Initialize) => assert!(endpoint.sessions || endpoint.sessionless),
        Ok(_) => {}
        Err(refusal) => {
            assert!(refusal.status.is_client_error());
            assert!(refusal.error.message.len() < 2048, "a peer's text is not repeated at length");
        }
    }
    let _ = check_session_version(head, &["old"]);
    let _ = (head.last_event_id(), head.session(), head.version());
}

/// Checks that the server accepts what the client sends.
fn dressed(input: &Input<'_>) {
    const NAMES: &[NameSource<'_>] = &[NameSource::new("tasks/get", "taskId")];
    let endpoint = endpoint(1, NAMES);
    let method = match input.body % 4 {
        0 => "tools/call",
        1 => "resources/read",
        2 => "tasks/get",
        _ => input.called,
    };
    let name = input.name.filter(|_| name_member(method, NAMES).is_some());
    let uri = Uri::from_static("/mcp");
    if let Ok(headers) = headers::stateless_post("new", method, name) {
        let head = Head::new(&Method::POST, &uri, &headers);
        assert!(open(&head, &Guard::loopback(), &endpoint).is_ok());
        let body = PostBody::Request(RequestHead::new(method, Some("new"), true, name));
        assert_eq!(route(&head, &body, &endpoint), Ok(Post::Stateless { version: "new" }));
    } else {
        assert_eq!(method, input.called, "only an odd method cannot be sent");
    }
    let endpoint = self::endpoint(2 | 8, NAMES);
    if let Ok(headers) = headers::session_get("old", Some(input.called), input.name) {
        let head = Head::new(&Method::GET, &uri, &headers);
        let opened = open(&head, &Guard::loopback(), &endpoint);
        if is_session_id(input.called) {
            let last_event_id = input.name.filter(|id| !id.is_empty());
            assert_eq!(
                opened,
                Ok(match last_event_id {
                    Some(last_event_id) => EndpointRequest::Resume { session: input.called, last_event_id },
                    None => EndpointRequest::Listen { session: input.called },
                })
            );
        }
    }
    if let (Ok(headers), true) = (headers::session_post("old", Some(input.called)), is_session_id(input.called))
    {
        let head = Head::new(&Method::POST, &uri, &headers);
        assert_eq!(route(&head, &PostBody::Batch, &endpoint), Ok(Post::Session { id: input.called }));
        assert_eq!(check_session_version(&head, &["old"]), Ok(()));
    }
}

fn encoded(text: &str) {
    let sent = encode_value(text);
    assert!(HeaderValue::from_str(&sent).is_ok());
    assert_eq!(sent.trim_matches([' ', '\t']), sent, "nothing on the way may trim it");
    assert_eq!(decode_value(&sent).as_deref(), Ok(text));
    let _ = decode_value(text);
}

/// Checks that a client's mirrored arguments pass the server's check, as text and as a tree.
fn mirrored(input: &Input<'_>, sent: &HeaderMap) {
    let (schema, raw) = (&input.schema.0, &input.arguments.0);
    let raw = serde_json::value::to_raw_value(raw).expect("a tree prints");
    // As the server parses it: serde_json may print a number that it reads back as a neighbouring one.
    let arguments: &Value = &serde_json::from_str(raw.get()).expect("it was a tree");
    let params = HeaderParams::from_schema(schema);
    let raw_schema = serde_json::value::to_raw_value(schema).expect("a tree prints");
    match (HeaderParams::from_raw_schema(&raw_schema), &params) {
        (Ok(raw), Ok(params)) => assert!(raw.iter().eq(params.iter())),
        (Err(raw), Err(bad)) => assert_eq!(raw, *bad),
        (raw, params) => panic!("{raw:?} from the text, {params:?} from the tree"),
    }
    let Ok(params) = params else { return };
    let (mut headers, mut again) = (HeaderMap::new(), HeaderMap::new());
    let outcome = params.mirror(Some(&raw), &mut headers);
    assert_eq!(params.mirror_value(arguments, &mut again), outcome);
    assert_eq!(headers, again);
    if outcome.is_ok() {
        assert_eq!(params.check(&headers, Some(&raw)), Ok(()));
        assert_eq!(params.check_value(&headers, arguments), Ok(()));
    }
    assert_eq!(params.check(sent, Some(&raw)), params.check_value(sent, arguments));
    if let Ok(raw) = serde_json::from_str::<&RawValue>(input.params) {
        let _ = (params.check(sent, Some(raw)), params.mirror(Some(raw), &mut headers));
        let _ = HeaderParams::from_raw_schema(raw);
    }
    if let Ok(params) = input.params.parse::<RawObject>() {
        let name = params.decode_member::<String>("name").ok().flatten();
        assert_eq!(name_in(&params, "name").as_deref(), name.as_deref());
    }
}

fn addressed(base: &Uri, input: &Input<'_>) {
    let status = StatusCode::from_u16(input.reply.0).unwrap_or_default();
    let absolute = Uri::from_static("https://a.example:8080/b/c?d");
    for base in [base, &absolute] {
        for uri in
            [resolve_endpoint(base, input.called), redirect(status, base, input.params)].into_iter().flatten()
        {
            assert!(same_origin(base, &uri), "{base} {uri}");
        }
    }
}

fn probed(input: &Input<'_>, headers: &HeaderMap) {
    let (status, code) = input.reply;
    let code = ErrorCode(code);
    let _ = (stateless_status(code), session_status(code));
    let Ok(status) = StatusCode::from_u16(status) else { return };
    match Probed::of(status, headers) {
        Probed::Answered => assert!(status.is_success()),
        Probed::Rejected | Probed::Challenged => assert!(status.is_client_error()),
        Probed::Nothing => assert!(!status.is_success()),
    }
}

/// JSON that resembles a schema or a value.
#[derive(Debug)]
struct Json(Value);

impl<'a> Arbitrary<'a> for Json {
    fn arbitrary(source: &mut Unstructured<'a>) -> Result<Self> {
        json(source, 6).map(Self)
    }
}

fn json(source: &mut Unstructured<'_>, depth: usize) -> Result<Value> {
    const NAMES: &[&str] =
        &["properties", "x-mcp-header", "type", "a", "b", "A", "items", "$defs", "anyOf", "default", "c/~"];
    const TEXTS: &[&str] =
        &["string", "integer", "boolean", "number", "object", "a", "A", "b", "", "é", " a", "a b"];
    Ok(match source.int_in_range(0..=if depth == 0 { 6 } else { 10 })? {
        0 => Value::Null,
        1 => Value::Bool(source.arbitrary()?),
        2 => Value::from(source.arbitrary::<i64>()?),
        3 => Value::from(source.arbitrary::<f64>()?),
        4 => Value::from(source.arbitrary::<u64>()?),
        5 => Value::from(*source.choose(TEXTS)?),
        6 => Value::from(source.arbitrary::<&str>()?),
        7 => {
            let count = source.int_in_range(0..=3)?;
            (0..count).map(|_| json(source, depth - 1)).collect::<Result<Vec<_>>>()?.into()
        }
        8 => {
            // A property that may be mirrored.
            let kind = *source.choose(TEXTS)?;
            let label = *source.choose(&["a", "b", "A", "x"])?;
            serde_json::json!({ "type": kind, "x-mcp-header": label })
        }
        _ => {
            let mut members = Map::new();
            for _ in 0..source.int_in_range(0..=4)? {
                let name = match source.int_in_range(0..=11)? {
                    11 => source.arbitrary::<&str>()?,
                    _ => source.choose(NAMES)?,
                };
                members.insert(name.to_owned(), json(source, depth - 1)?);
            }
            members.into()
        }
    })
}
