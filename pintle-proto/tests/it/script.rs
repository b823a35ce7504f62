//! Reads and plays a transcript: a conversation as text.
//!
//! ```text
//! == a title                           begins a transcript
//! # a remark
//! revisions: 2024-11-05 2025-03-26     plays it once for each; `{revision}` is replaced
//! service: no-prompts rounds=2         the demo service with tweaks
//! stream: only                         it means something on a stream only, not for requests that come apart
//! open {"sampling":{}}                 a handshake by a client of these capabilities
//! can {"sampling":{}}                  what `M` lines declare from here on
//! C 1 tools/call {"name":"echo"}       the client's message: request, notification, result, error or raw JSON
//! M 1 tools/list                       the same with the `_meta` that every stateless request carries
//! S 1 {"content":[]}                   the server's next message, by the pattern language of `pattern.rs`
//! R 1 {"content":[]}                   the same for a stateless result, with what each of them carries
//! S 1 ! -32602 "no such tool…"         an error; with more JSON behind it, its data
//! --                                   nothing more has come
//! bytes "\xff"                         raw bytes from the client
//! as bob | now +10s | change tools | release 1 | end 1 | ping | tell method {} | in flight 0
//! ```
//!
//! An indented line continues the one above. When a transcript ends, nothing may be left unread.

use std::collections::{BTreeSet, HashMap};

use pintle_proto::{Revision, server::Change};
use pintle_types::RequestId;
use serde_json::{Map, Value, json};

use crate::{
    pattern::{self, Names},
    stream::{Stream, service},
};

pub(crate) struct Script {
    pub(crate) title: String,
    place: String,
    revisions: Vec<String>,
    service: String,
    stream_only: bool,
    steps: Vec<(usize, String)>,
}

/// The transcripts of one file.
pub(crate) fn scripts(file: &str, text: &str) -> Vec<Script> {
    let mut scripts: Vec<Script> = Vec::new();
    for (number, line) in text.lines().enumerate().map(|(at, line)| (at + 1, line)) {
        let detail = line.trim();
        if detail.is_empty() || detail.starts_with('#') {
            continue;
        }
        if let Some(title) = detail.strip_prefix("== ") {
            let (title, place) = (title.to_owned(), file.to_owned());
            scripts.push(Script {
                title,
                place,
                revisions: vec![],
                service: String::new(),
                stream_only: false,
                steps: vec![],
            });
            continue;
        }
        let script = scripts.last_mut().unwrap_or_else(|| panic!("{file}:{number}: no `==` line above"));
        if let Some(names) = detail.strip_prefix("revisions:") {
            script.revisions = names.split_whitespace().map(str::to_owned).collect();
        } else if detail == "stream: only" {
            script.stream_only = true;
        } else if let Some(tweaks) = detail.strip_prefix("service:") {
            tweaks.clone_into(&mut script.service);
        } else if line.starts_with(' ') {
            let (_, step) = script.steps.last_mut().expect("a line to continue");
            step.push(' ');
            step.push_str(detail);
        } else {
            script.steps.push((number, detail.to_owned()));
        }
    }
    scripts
}

impl Script {
    /// Plays it in each of its revisions; says where it went wrong, and adds to what has been seen.
    pub(crate) fn play(&self, seen: &mut Seen) -> Vec<String> {
        if self.revisions.is_empty() {
            return self.play_in("", false, seen).err().into_iter().collect();
        }
        self.revisions.iter().filter_map(|revision| self.play_in(revision, false, seen).err()).collect()
    }

    /// Plays it as if each request came apart from the others, as over HTTP. `None` if it could not.
    pub(crate) fn play_apart(&self) -> Option<Result<(), String>> {
        const APART: &[&str] = &["M", "S", "R", "--", "can", "as", "now", "change"];
        let verb = |step: &str| step.split(' ').next().is_some_and(|verb| APART.contains(&verb));
        let all = self.steps.iter().all(|(_, step)| verb(step));
        (all && !self.stream_only && self.revisions.is_empty())
            .then(|| self.play_in("", true, &mut Seen::new()))
    }

    fn play_in(&self, revision: &str, apart: bool, seen: &mut Seen) -> Result<(), String> {
        let mut player = Player {
            stream: Stream::new(service(&self.service)),
            capabilities: json!({}),
            names: Names::new(),
            session: Revision::LATEST.to_string(),
            waiting: HashMap::new(),
            seen,
        };
        player.stream.apart = apart;
        let mut last = 0;
        for (line, step) in &self.steps {
            last = *line;
            player
                .step(&step.replace("{revision}", revision))
                .map_err(|detail| self.wrong(last, revision, &detail))?;
        }
        player.nothing().map_err(|detail| self.wrong(last, revision, &detail))
    }

    fn wrong(&self, line: usize, revision: &str, detail: &str) -> String {
        format!("{}:{line} ({}) {revision}\n    {detail}", self.place, self.title)
    }
}

/// What has passed in a revision: `2025-06-18 C ping ok` (a request and how it was answered), `… C ping`, `… S ping`
/// (who said it), `… ! -32602` (an error of the server's).
pub(crate) type Seen = BTreeSet<String>;

struct Player<'a> {
    stream: Stream,
    capabilities: Value,
    names: Names,
    /// The revision of the session; the newest before there is one.
    session: String,
    /// The revision and the method of the requests of an id that wait for an answer, in the order they were made.
    waiting: HashMap<String, Vec<(String, String)>>,
    seen: &'a mut Seen,
}

impl Player<'_> {
    fn step(&mut self, step: &str) -> Result<(), String> {
        let (verb, rest) = step.split_once(' ').unwrap_or((step, ""));
        match verb {
            "C" => self.client(rest, false),
            "M" => self.client(rest, true),
            "S" => return self.server(&message(rest)),
            "R" => return self.server(&signed(message(rest))),
            "--" => return self.nothing(),
            "open" => return self.open(rest),
            "can" => self.capabilities = parse(rest),
            "bytes" => {
                let bytes = raw(rest);
                if let Ok(value) = serde_json::from_slice(&bytes) {
                    self.note(&value);
                }
                self.stream.read(&bytes);
            }
            "as" => self.stream.principal = (rest != "nobody").then(|| rest.to_owned()),
            "now" => {
                let seconds = rest.strip_prefix('+').and_then(|rest| rest.strip_suffix('s')).expect("+10s");
                self.stream.now += seconds.parse::<u64>().expect("seconds") * 1000;
            }
            "change" => self.stream.change(&match rest.split_once(' ') {
                Some((_, uri)) => Change::Resource(uri.into()),
                None if rest == "tools" => Change::Tools,
                None if rest == "prompts" => Change::Prompts,
                None => Change::Resources,
            }),
            "release" => self.stream.release(&id(rest)),
            "end" => self.stream.unlisten(&id(rest)),
            "ping" => self.stream.ping(),
            "tell" => {
                let (method, params) = rest.split_once(' ').expect("a method and params");
                self.stream.tell(method, params);
            }
            "in" => {
                let count = format!("flight {}", self.stream.in_flight());
                return if count == rest { Ok(()) } else { Err(format!("expected in {rest}, is {count}")) };
            }
            _ => panic!("no such verb: `{verb}`"),
        }
        Ok(())
    }

    /// The client says something. Raw JSON goes out to the letter, unless it has names or `_meta` to fill in.
    fn client(&mut self, detail: &str, stateless: bool) {
        let literal = detail.starts_with(['{', '[']) && !detail.contains("\"$") && !stateless;
        if literal {
            if let Ok(value) = serde_json::from_str(detail) {
                self.note(&value);
            }
            return self.stream.read(detail.as_bytes());
        }
        let mut value = message(detail);
        pattern::fill(&mut value, &self.names);
        if stateless {
            let latest = Revision::LATEST.as_str();
            let params = value.as_object_mut().unwrap().entry("params").or_insert_with(|| json!({}));
            let meta = params.as_object_mut().unwrap().entry("_meta").or_insert_with(|| json!({}));
            let meta = meta.as_object_mut().unwrap();
            meta.entry("io.modelcontextprotocol/protocolVersion").or_insert_with(|| latest.into());
            let can = || self.capabilities.clone();
            meta.entry("io.modelcontextprotocol/clientCapabilities").or_insert_with(can);
        }
        self.note(&value);
        self.stream.read(value.to_string().as_bytes());
    }

    fn note(&mut self, value: &Value) {
        for one in value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice) {
            let alone = !one["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"].is_null();
            let revision = if alone { Revision::LATEST.to_string() } else { self.session.clone() };
            let method = one["method"].as_str().unwrap_or_default().to_owned();
            if one.get("id").is_none() {
                self.seen.insert(format!("{revision} C {method}"));
            } else if one.get("method").is_some() {
                self.waiting.entry(one["id"].to_string()).or_default().push((revision, method));
            }
        }
    }

    fn server(&mut self, expected: &Value) -> Result<(), String> {
        let came = self.next()?.ok_or_else(|| format!("expected {expected}, nothing came"))?;
        match pattern::mismatch(expected, &came, &mut self.names) {
            None => Ok(()),
            Some(detail) => Err(format!("{detail}\n    in {came}")),
        }
    }

    fn nothing(&mut self) -> Result<(), String> {
        self.next()?.map_or(Ok(()), |came| Err(format!("nothing was expected, came {came}")))
    }

    fn open(&mut self, rest: &str) -> Result<(), String> {
        let (revision, capabilities) = rest.split_once(' ').unwrap_or((rest, "{}"));
        let params = json!({ "protocolVersion": revision, "capabilities": parse(capabilities),
            "clientInfo": { "name": "client", "version": "0" } });
        self.client(&format!("\"open\" initialize {params}"), false);
        self.server(&json!({ "jsonrpc": "2.0", "id": "open", "result":
            { "protocolVersion": revision, "…": "…" } }))?;
        self.client("notifications/initialized", false);
        self.nothing()
    }

    /// The next message that the server wrote, having held it against the rules that all of them obey.
    fn next(&mut self) -> Result<Option<Value>, String> {
        if self.stream.written.is_empty() {
            return Ok(None);
        }
        let bytes = self.stream.written.remove(0);
        let text = String::from_utf8(bytes).map_err(|error| error.to_string())?;
        if text.contains(['\n', '\r']) {
            return Err(format!("a line break in {text:?}"));
        }
        let value: Value = serde_json::from_str(&text).map_err(|error| format!("{error} in {text}"))?;
        for one in value.as_array().map_or(std::slice::from_ref(&value), Vec::as_slice) {
            self.lawful(one)?;
        }
        Ok(Some(value))
    }

    /// Nothing modern in an old reply, and the least that a modern one has.
    fn lawful(&mut self, message: &Value) -> Result<(), String> {
        let waiting = self.waiting.entry(message["id"].to_string()).or_default();
        let latest = Revision::LATEST.as_str();
        let session = (self.session.clone(), String::new());
        if let Some(code) = message["error"]["code"].as_i64() {
            // Of two requests of one id the later is refused.
            let (revision, method) = waiting.pop().unwrap_or(session);
            self.seen.insert(format!("{revision} C {method} {code}"));
            self.seen.insert(format!("{revision} ! {code}"));
            return Ok(());
        }
        let Some(result) = message.get("result") else {
            let tag = &message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
            let revision = if tag.is_null() { &*session.0 } else { latest };
            self.seen.insert(format!("{revision} S {}", message["method"].as_str().unwrap_or_default()));
            return Ok(());
        };
        let (mut revision, method) = if waiting.is_empty() { session } else { waiting.remove(0) };
        if let Some(opened) = result["protocolVersion"].as_str() {
            opened.clone_into(&mut revision);
            opened.clone_into(&mut self.session);
        }
        let asked = result["inputRequests"].as_object().into_iter().flat_map(|asked| asked.values());
        self.seen.extend(
            asked.map(|asked| format!("{latest} S {}", asked["method"].as_str().unwrap_or_default())),
        );
        self.seen.insert(format!("{revision} C {method} ok"));
        let info = &result["_meta"]["io.modelcontextprotocol/serverInfo"];
        let modern = ["resultType", "ttlMs", "cacheScope"].iter().find(|name| result.get(**name).is_some());
        // A ping before the handshake is of no revision yet.
        let stateless = revision == latest && method != "ping";
        match modern {
            Some(name) if !stateless => Err(format!("`{name}` in the result of a session: {message}")),
            None if !stateless && !info.is_null() => {
                Err(format!("`serverInfo` in a session's `_meta`: {message}"))
            }
            None if stateless => Err(format!("no `resultType`: {message}")),
            _ => Ok(()),
        }
    }
}

/// A message in short: an id, if it has one; then a method and params, or a result, or `!` and an error.
fn message(detail: &str) -> Value {
    if detail.starts_with(['{', '[']) {
        return parse(detail);
    }
    let mut message = Map::new();
    message.insert("jsonrpc".into(), "2.0".into());
    let (first, rest) = detail.split_once(' ').unwrap_or((detail, ""));
    let rest = match first {
        "-" => rest,
        "*" => {
            message.insert("id".into(), "*".into());
            rest
        }
        name if name.starts_with('$') => {
            message.insert("id".into(), name.into());
            rest
        }
        id => match serde_json::from_str::<Value>(id) {
            Ok(id) => {
                message.insert("id".into(), id);
                rest
            }
            Err(_) => detail,
        },
    };
    if let Some(error) = rest.strip_prefix("! ") {
        let mut parts = serde_json::Deserializer::from_str(error).into_iter::<Value>();
        let mut part =
            || parts.next().map(|part| part.unwrap_or_else(|detail| panic!("{detail} in {error}")));
        let mut error = json!({ "code": part().expect("a code"), "message": part().unwrap_or("*".into()) });
        if let Some(data) = part() {
            error["data"] = data;
        }
        message.insert("error".into(), error);
    } else if rest.starts_with('{') {
        message.insert("result".into(), parse(rest));
    } else {
        let (method, params) = rest.split_once(' ').unwrap_or((rest, ""));
        message.insert("method".into(), method.into());
        if !params.is_empty() {
            message.insert("params".into(), parse(params));
        }
    }
    Value::Object(message)
}

/// Adds what every complete stateless result has.
fn signed(mut message: Value) -> Value {
    let result = message["result"].as_object_mut().expect("a result");
    result.entry("resultType").or_insert_with(|| "complete".into());
    result.entry("_meta").or_insert_with(
        || json!({ "io.modelcontextprotocol/serverInfo": { "name": "demo", "version": "1" } }),
    );
    message
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"))
}

fn id(text: &str) -> RequestId {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"))
}

/// Bytes in quotes, with `\xNN`, `\n`, `\r` and `\\`.
pub(crate) fn raw(text: &str) -> Vec<u8> {
    let text = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).expect("bytes in quotes");
    let mut out = Vec::new();
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'\\' => match bytes.next() {
                Some(b'n') => b'\n',
                Some(b'r') => b'\r',
                Some(b'x') => {
                    let digits: String = bytes.by_ref().take(2).map(char::from).collect();
                    u8::from_str_radix(&digits, 16).expect("two digits")
                }
                other => other.expect("an escape"),
            },
            byte => byte,
        });
    }
    out
}
