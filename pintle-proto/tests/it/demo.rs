//! The application behind the engine: small, synchronous, and with something for every row of the protocol.
//!
//! A handler runs from the top each time; what was asked in an earlier run is answered at once.

use std::collections::BTreeMap;

use pintle_proto::{
    inputs::{Answer, Ask, Kind, Once, Question},
    server::{CacheHint, Call, Outcome, Service},
};
use pintle_types::{
    ErrorCode, RawObject, RpcError,
    schema::{CacheScope, ElicitAction, InputRequest, LoggingLevel},
};
use serde_json::{Value, json, value::to_raw_value};

/// How far a handler came.
pub(crate) enum Turn {
    /// To its end.
    Done(Outcome),
    /// To questions that wait for their answers.
    Waits,
    /// Nowhere: it goes on when somebody releases it.
    Slow,
}

/// What a handler has at hand.
pub(crate) struct Cx<'a> {
    pub(crate) service: &'a Service,
    pub(crate) call: &'a Call,
    /// Questions that the client answered with an error, by key.
    pub(crate) refused: &'a BTreeMap<String, RpcError>,
    /// How often the server has done what must be done once.
    pub(crate) acts: &'a mut u32,
    /// Notifications to send.
    pub(crate) notifications: Vec<Vec<u8>>,
    /// Questions to send.
    pub(crate) sent: Vec<(String, Kind, InputRequest)>,
}

/// Why a handler stopped short of a result.
enum Stop {
    Failed(RpcError),
    Outcome(Outcome),
    Parked,
    Waits,
    Slow,
}

impl From<RpcError> for Stop {
    fn from(error: RpcError) -> Self {
        Self::Failed(error)
    }
}

pub(crate) fn run(cx: &mut Cx<'_>) -> Turn {
    let stop = match serve(cx) {
        Ok(outcome) => return Turn::Done(outcome),
        Err(stop) => stop,
    };
    Turn::Done(match stop {
        Stop::Failed(error) => Outcome::Failed(error),
        Stop::Outcome(outcome) => outcome,
        Stop::Parked => Outcome::InputRequired,
        Stop::Waits => return Turn::Waits,
        Stop::Slow => return Turn::Slow,
    })
}

/// What a slow call says when it is released.
pub(crate) fn released() -> Outcome {
    complete(&text("at last"))
}

fn serve(cx: &mut Cx<'_>) -> Result<Outcome, Stop> {
    let params: Value = cx.call.params().decode().map_err(|error| {
        let detail = error.to_string();
        RpcError::invalid_params(detail.split(" at line").next().unwrap_or_default().to_owned())
    })?;
    match cx.call.method() {
        "tools/list" => list(&params, "tools", tools()),
        "tools/call" => call_tool(cx, &params),
        "prompts/list" => list(&params, "prompts", prompts()),
        "prompts/get" => get_prompt(cx, &params),
        "resources/list" => list(&params, "resources", resources()),
        "resources/templates/list" => list(
            &params,
            "resourceTemplates",
            vec![json!({ "uriTemplate": "note://{name}", "name": "note", "title": "A note" })],
        ),
        "resources/read" => read(cx, &params),
        "completion/complete" => complete_argument(&params),
        method => Err(RpcError::method_not_found(method).into()),
    }
}

fn call_tool(cx: &mut Cx<'_>, params: &Value) -> Result<Outcome, Stop> {
    let name = string(params, "name")?;
    let arguments = &params["arguments"];
    let result = match &*name {
        "echo" => text(arguments["text"].as_str().unwrap_or("nothing")),
        "mirror" => return Ok(mirrored(cx.call)),
        "add" => {
            let number = |name: &str| {
                arguments[name].as_i64().ok_or_else(|| {
                    let came = &arguments[name];
                    Stop::Outcome(Outcome::BadArguments(format!(
                        "`/{name}`: expected an integer, not {came}"
                    )))
                })
            };
            let sum = number("a")? + number("b")?;
            json!({ "content": [{ "type": "text", "text": json!({ "sum": sum }).to_string() }], "structuredContent": { "sum": sum } })
        }
        "fail" => json!({ "content": [{ "type": "text", "text": "the disk is full" }], "isError": true }),
        "broken" => return Err(RpcError::internal("the database is gone").into()),
        "own_code" => return Err(RpcError::new(ErrorCode(4711), "an error of the application's").into()),
        "consent" => {
            let data = json!({ "elicitations": [{ "mode": "url", "elicitationId": "e1", "url": "https://example.com", "message": "Agree" }] });
            return Err(RpcError::new(ErrorCode::URL_ELICITATION_REQUIRED, "agree first")
                .with_data(&data)
                .into());
        }
        "array" => json!({ "content": [], "structuredContent": [1, 2] }),
        "null" => json!({ "content": [], "structuredContent": null }),
        "rich" => rich(),
        "stamped" => json!({ "content": [], "_meta": { "example.com/x": 1 } }),
        "typed" => json!({ "content": [], "resultType": "example.com/other" }),
        "slow" => return Err(Stop::Slow),
        "progress" => {
            for (done, what) in [(1.0, "one"), (2.0, "two"), (2.0, "two again"), (3.0, "three")] {
                cx.notifications.extend(cx.call.progress(done, Some(3.0), Some(what)));
            }
            text("done")
        }
        "log" => {
            for level in [LoggingLevel::Debug, LoggingLevel::Info, LoggingLevel::Warning, LoggingLevel::Error]
            {
                cx.notifications.extend(cx.call.log(level, Some("demo"), &json!({ "n": 1 })));
            }
            text("logged")
        }
        _ => return ask_tool(cx, &name),
    };
    Ok(complete(&result))
}

/// Tools that ask the client something.
fn ask_tool(cx: &mut Cx<'_>, name: &str) -> Result<Outcome, Stop> {
    let result = match name {
        "ask" => text(&cx.elicit("name", "Who are you?")?),
        "ask_quoted" => text(&cx.elicit("a \"name\"", "Who are you?")?),
        "ask_twice" => {
            let name = cx.elicit("name", "Who are you?")?;
            // Once over all rounds, however often this line is passed.
            let ticket = match cx.call.begin_once("ticket") {
                Once::Done(ticket) => ticket.get().to_owned(),
                _ => {
                    *cx.acts += 1;
                    cx.call.remember("ticket", to_raw_value(&*cx.acts).unwrap());
                    cx.acts.to_string()
                }
            };
            let seat = cx.elicit("seat", "Which seat?")?;
            text(&format!("{name}, {seat}, ticket {ticket}"))
        }
        "ask_both" => {
            // Both questions are put before either answer is needed.
            let (name, roots) = (cx.elicit("name", "Who are you?"), cx.roots());
            match (name, roots) {
                (Err(Stop::Failed(error)), _) | (_, Err(Stop::Failed(error))) => return Err(error.into()),
                (name, roots) => text(&format!("{} in {}", name?, roots?)),
            }
        }
        "ask_for_ever" => {
            for round in 0.. {
                cx.elicit(&format!("q{round}"), "And now?")?;
            }
            text("never")
        }
        "ask_many" => {
            let asked: Vec<_> = (0..9).map(|n| cx.elicit(&format!("q{n}"), "What?")).collect();
            let (failed, other): (Vec<_>, Vec<_>) =
                asked.into_iter().partition(|asked| matches!(asked, Err(Stop::Failed(_))));
            let all: Vec<_> = failed.into_iter().chain(other).collect::<Result<_, _>>()?;
            text(&all.join(" "))
        }
        "ask_two_ways" => {
            cx.elicit("name", "Who are you?").or_else(|stop| match stop {
                Stop::Parked | Stop::Waits => Ok(String::new()),
                stop => Err(stop),
            })?;
            text(&cx.elicit("name", "What is your name?")?)
        }
        "choose" => {
            let items = json!({ "type": "array", "items": { "type": "string", "enum": ["a", "b"] } });
            let form = json!({ "mode": "form", "message": "Which?", "requestedSchema":
                { "type": "object", "properties": { "which": items } } });
            text(&cx.ask("which", &Question::Elicit(Box::new(read_json(form))))?)
        }
        "sample" => text(&cx.sample(json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": "Hi" } }], "maxTokens": 9 }))?),
        "sample_tools" => text(&cx.sample(json!({
            "messages": [{ "role": "user", "content": { "type": "text", "text": "Hi" } }],
            "maxTokens": 9,
            "tools": [{ "name": "t", "inputSchema": { "type": "object" } }]
        }))?),
        "roots" => text(&cx.roots()?),
        "url" => {
            let page = json!({ "mode": "url", "message": "Sign in", "url": "https://example.com/in" });
            text(&cx.ask("page", &Question::Elicit(Box::new(read_json(page))))?)
        }
        "later" => match cx.call.note() {
            Some(note) => text(&format!("later: {note}")),
            None => {
                cx.call.set_note(Some("noted".to_owned()));
                return Err(Stop::Parked);
            }
        },
        "hoard" => {
            cx.call.remember("much", to_raw_value(&"x".repeat(5000)).unwrap());
            text(&cx.elicit("name", "Who are you?")?)
        }
        "asks_nothing" => return Err(Stop::Parked),
        _ => return Err(RpcError::invalid_params(format!("no such tool: `{name}`")).into()),
    };
    Ok(complete(&result))
}

impl Cx<'_> {
    fn ask(&mut self, key: &str, question: &Question) -> Result<String, Stop> {
        if let Some(error) = self.refused.get(key) {
            return Ok(format!("refused: {error}"));
        }
        match self.call.ask(self.service, key, question) {
            Ok(Ask::Answered(answer)) => Ok(described(answer)),
            Ok(Ask::Send(request)) => {
                self.sent.push((key.to_owned(), question.kind(), request));
                Err(Stop::Waits)
            }
            Ok(Ask::Park) => Err(Stop::Parked),
            Err(error) => Err(RpcError::from(error).into()),
        }
    }

    fn elicit(&mut self, key: &str, message: &str) -> Result<String, Stop> {
        let form = json!({ "mode": "form", "message": message, "requestedSchema":
            { "type": "object", "properties": { "it": { "type": "string" } }, "required": ["it"] } });
        self.ask(key, &Question::Elicit(Box::new(read_json(form))))
    }

    fn sample(&mut self, params: Value) -> Result<String, Stop> {
        self.ask("sample", &Question::Sample(Box::new(read_json(params))))
    }

    fn roots(&mut self) -> Result<String, Stop> {
        self.ask("roots", &Question::Roots)
    }
}

fn described(answer: Answer) -> String {
    match answer {
        Answer::Elicit(result) => match result.action {
            ElicitAction::Accept => {
                result.content.unwrap_or_default().get("it").map_or("agreed".to_owned(), |it| {
                    it.as_str().map_or_else(|| it.to_string(), str::to_owned)
                })
            }
            ElicitAction::Decline => "declined".to_owned(),
            ElicitAction::Cancel => "went away".to_owned(),
        },
        Answer::Sample(result) => format!("{} said something", result.model),
        Answer::Roots(result) => result.roots.iter().map(|root| &*root.uri).collect::<Vec<_>>().join(" "),
        other => format!("{other:?}"),
    }
}

fn get_prompt(cx: &mut Cx<'_>, params: &Value) -> Result<Outcome, Stop> {
    let message =
        |text: &str| json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": text } }] });
    match &*string(params, "name")? {
        "greet" => {
            let Some(name) = params["arguments"]["name"].as_str() else {
                return Err(RpcError::invalid_params("the argument `name` is missing").into());
            };
            Ok(complete(&message(&format!("Greet {name}."))))
        }
        "ask" => Ok(complete(&message(&cx.elicit("name", "Who are you?")?))),
        "rich" => Ok(complete(&json!({ "messages": [
            { "role": "user", "content": { "type": "audio", "data": "AA==", "mimeType": "audio/wav" } },
            { "role": "user", "content": { "type": "resource_link", "uri": "note://a", "name": "a" } },
        ] }))),
        name => Err(RpcError::invalid_params(format!("no such prompt: `{name}`")).into()),
    }
}

fn read(cx: &mut Cx<'_>, params: &Value) -> Result<Outcome, Stop> {
    let uri = string(params, "uri")?;
    let contents = match &*uri {
        "note://a" => json!({ "uri": uri, "mimeType": "text/plain", "text": "A" }),
        "note://bytes" => json!({ "uri": uri, "mimeType": "image/png", "blob": "AAEC" }),
        "note://ask" => json!({ "uri": uri, "text": cx.elicit("name", "Who are you?")? }),
        "note://elsewhere" => {
            // What a gateway passes on is left as it is.
            return Ok(complete(&json!({ "resultType": "input_required", "requestState": "theirs" })));
        }
        _ => return Ok(Outcome::NotFound { uri }),
    };
    Ok(complete(&json!({ "contents": [contents] })))
}

fn complete_argument(params: &Value) -> Result<Outcome, Stop> {
    let values = match params["ref"]["type"].as_str() {
        Some("ref/prompt") if params["ref"]["name"] == "greet" => {
            match params["context"]["arguments"]["language"].as_str() {
                Some(language) => vec![format!("{} in {language}", params["argument"]["value"])],
                None => vec!["Ada".to_owned(), "Alan".to_owned()],
            }
        }
        Some("ref/resource") => vec!["a".to_owned()],
        _ => return Err(RpcError::invalid_params("no such reference").into()),
    };
    Ok(complete(&json!({ "completion": { "values": values, "hasMore": false } })))
}

/// Two pages; the cursor of the second is the empty string, which is a cursor like any other.
fn list(params: &Value, name: &str, mut items: Vec<Value>) -> Result<Outcome, Stop> {
    let rest = items.split_off(1);
    let result = match params.get("cursor").map(Value::as_str) {
        None if rest.is_empty() => json!({ name: items }),
        None => json!({ name: items, "nextCursor": "" }),
        Some(Some("")) => json!({ name: rest }),
        _ => return Err(RpcError::invalid_params("no such cursor: begin without one").into()),
    };
    let result = RawObject::from_serialize(&result).unwrap();
    Ok(Outcome::Cacheable(result.into(), CacheHint::new(60_000, CacheScope::Public)))
}

fn tools() -> Vec<Value> {
    vec![
        json!({
            "name": "add",
            "title": "Add",
            "description": "Adds two integers.",
            "icons": [{ "src": "https://example.com/add.png" }],
            "inputSchema": { "type": "object", "properties": { "a": { "type": "integer" }, "b": { "type": "integer" } } },
            "outputSchema": { "type": "object", "properties": { "sum": { "type": "integer" } } },
            "annotations": { "readOnlyHint": true },
        }),
        json!({ "name": "echo", "inputSchema": { "type": "object" } }),
    ]
}

fn prompts() -> Vec<Value> {
    vec![
        json!({ "name": "greet", "title": "Greet", "arguments": [{ "name": "name", "required": true }] }),
        json!({ "name": "ask" }),
    ]
}

fn resources() -> Vec<Value> {
    vec![
        json!({ "uri": "note://a", "name": "a", "title": "The first", "mimeType": "text/plain", "size": 1 }),
        json!({ "uri": "note://bytes", "name": "bytes", "mimeType": "image/png" }),
    ]
}

fn rich() -> Value {
    json!({ "content": [
        { "type": "text", "text": "t", "annotations": { "priority": 1.0, "lastModified": "2025-01-01T00:00:00Z" } },
        { "type": "image", "data": "AA==", "mimeType": "image/png" },
        { "type": "audio", "data": "AA==", "mimeType": "audio/wav" },
        { "type": "resource_link", "uri": "note://a", "name": "a" },
        { "type": "resource", "resource": { "uri": "note://a", "text": "A" } },
    ] })
}

/// The arguments as they came, white space and all: a result need not have been printed by us.
fn mirrored(call: &Call) -> Outcome {
    let arguments = call.params().get("arguments").unwrap_or("{}");
    let object: RawObject = format!(r#"{{"content":[],"structuredContent":{arguments}}}"#).parse().unwrap();
    Outcome::Complete(object.into())
}

fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

fn complete(result: &Value) -> Outcome {
    Outcome::Complete(RawObject::from_serialize(result).unwrap().into())
}

fn string(params: &Value, name: &str) -> Result<String, Stop> {
    let found = params[name].as_str().map(str::to_owned);
    found.ok_or_else(|| RpcError::invalid_params(format!("`{name}` is missing or not a string")).into())
}

fn read_json<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}
