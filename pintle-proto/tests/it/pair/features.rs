//! One script for every revision, and what each revision has instead of what it lacks.

use pintle_proto::{
    client::{Extras, SendError},
    server::Change,
};
use pintle_types::RequestId;
use serde_json::{Value, json};

use super::{ALL, R2, R3, R4, R5, SESSIONS, client::Failure, engines::Pair, shop::TOOLS};

/// Something that a client can do with a server in some of the revisions.
struct Feature {
    name: &'static str,
    has: &'static [&'static str],
    works: fn(&mut Pair),
    /// What happens in the others.
    refused: fn(&mut Pair),
}

/// For what every revision has.
const NEVER: fn(&mut Pair) = |_| unreachable!("every revision has it");

#[rustfmt::skip]
const FEATURES: &[Feature] = &[
    Feature { name: "a list",                         has: ALL,           works: lists,            refused: NEVER },
    Feature { name: "a call",                         has: ALL,           works: calls,            refused: NEVER },
    Feature { name: "bad arguments for the model",    has: &[R5, R4],     works: bad_arguments,    refused: bad_params },
    Feature { name: "an unknown tool",                has: ALL,           works: unknown_tool,     refused: NEVER },
    Feature { name: "an unknown method",              has: ALL,           works: unknown_method,   refused: NEVER },
    Feature { name: "a form",                         has: &[R5, R4, R3], works: form,             refused: no_form },
    Feature { name: "two forms and an act between",   has: &[R5, R4, R3], works: two_forms,        refused: no_act },
    Feature { name: "a form that is declined",        has: &[R5, R4, R3], works: declined,         refused: no_form },
    Feature { name: "a form and a sample at once",    has: &[R5, R4, R3], works: form_and_sample,  refused: no_form },
    Feature { name: "a page to open",                 has: &[R5, R4],     works: page,             refused: no_page },
    Feature { name: "sampling",                       has: ALL,           works: sampling,         refused: NEVER },
    Feature { name: "sampling with tools",            has: &[R5, R4],     works: sampling_tools,   refused: no_sampling_tools },
    Feature { name: "two samples and an act between", has: ALL,           works: two_samples,      refused: NEVER },
    Feature { name: "two questions at once",          has: ALL,           works: two_at_once,      refused: NEVER },
    Feature { name: "roots",                          has: ALL,           works: roots,            refused: NEVER },
    Feature { name: "a prompt that asks",             has: ALL,           works: prompt_asks,      refused: NEVER },
    Feature { name: "a resource that asks",           has: ALL,           works: resource_asks,    refused: NEVER },
    Feature { name: "progress",                       has: ALL,           works: progress,         refused: NEVER },
    Feature { name: "progress with words",            has: &[R5, R4, R3, R2], works: progress_words, refused: progress_mute },
    Feature { name: "a log level per request",        has: &[R5],         works: log_of_request,   refused: no_log },
    Feature { name: "a log level for all",            has: SESSIONS,      works: log_of_session,   refused: no_set_level },
    Feature { name: "cancellation",                   has: ALL,           works: cancellation,     refused: NEVER },
    Feature { name: "cancellation while asking",      has: &[R4, R3],     works: withdrawal,       refused: |_| {} },
    Feature { name: "a standing subscription",        has: SESSIONS,      works: subscribe,        refused: no_subscribe },
    Feature { name: "a listening request",            has: &[R5],         works: listen,           refused: no_listen },
    Feature { name: "pages",                          has: ALL,           works: pages,            refused: NEVER },
    Feature { name: "a resource that is not there",   has: ALL,           works: not_found,        refused: NEVER },
    Feature { name: "completion",                     has: ALL,           works: completion,       refused: NEVER },
    Feature { name: "a ping to the server",           has: SESSIONS,      works: ping,             refused: no_ping },
    Feature { name: "a ping to the client",           has: SESSIONS,      works: ping_back,        refused: no_ping_back },
    Feature { name: "news of roots",                  has: SESSIONS,      works: roots_changed,    refused: no_roots_changed },
    Feature { name: "batches",                        has: &[R2],         works: batch,            refused: no_batch },
];

/// Runs all of them, one after the other on one connection.
pub(crate) fn run_all(pair: &mut Pair) {
    let revision = pair.client().revision();
    for feature in FEATURES {
        let has = feature.has.contains(&super::like(revision));
        pair.client().received();
        pair.server.received();
        pair.wire.push(format!(
            "# {}: {} {}",
            revision,
            feature.name,
            if has { "works" } else { "is refused" }
        ));
        if has {
            (feature.works)(pair)
        } else {
            (feature.refused)(pair)
        }
        assert_eq!(pair.server.engine.in_flight(), 0, "{} is still in flight", feature.name);
    }
    assert_eq!(pair.server.running(), 0);
    assert!(pair.client().engine.lose().requests.is_empty());
    check_words(pair, super::like(revision));
}

/// Neither side uses words of the other era, nor asks where only the other may.
fn check_words(pair: &Pair, revision: &str) {
    const STATELESS: [&str; 5] =
        ["resultType", "inputRequests", "inputResponses", "io.modelcontextprotocol/", "ttlMs"];
    let opened = pair.wire.iter().position(|line| line.starts_with('#')).unwrap();
    for line in pair.wire[opened..].iter().filter(|line| !line.starts_with('#')) {
        let value: Value = serde_json::from_str(&line[2..]).unwrap();
        if revision == R5 {
            let asks = !value["method"].is_null() && !value["id"].is_null();
            assert!(line.starts_with('>') || !asks, "the server asks: {line}");
            assert!(
                line.starts_with('<') || !value["method"].is_null() || value.is_array(),
                "the client answers: {line}"
            );
        } else {
            for word in STATELESS {
                assert!(!line.contains(word), "`{word}` in a session: {line}");
            }
        }
    }
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

fn code(end: Result<impl std::fmt::Debug, Failure>) -> i32 {
    end.unwrap_err().code()
}

/// What asking says of a client that cannot answer.
fn missing_capability(pair: &mut Pair) -> i32 {
    if super::like(pair.client().revision()) == R5 { -32021 } else { -32600 }
}

fn unavailable(end: Result<impl std::fmt::Debug, Failure>) {
    let end = end.unwrap_err();
    assert!(matches!(end, Failure::Unsent(SendError::Unavailable { .. })), "{end:?}");
}

/// The line of the wire that answers the last request.
fn last_answer(pair: &Pair) -> Value {
    let line = pair.wire.iter().rfind(|line| line.starts_with('<')).unwrap();
    serde_json::from_str(&line[2..]).unwrap()
}

fn lists(pair: &mut Pair) {
    let result = pair.call("tools/list", json!({})).unwrap();
    let names: Vec<_> = result["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, TOOLS);
}

fn calls(pair: &mut Pair) {
    assert_eq!(pair.tool("echo", json!({"text": "hé\n\"llo\""})).unwrap(), "hé\n\"llo\"");
}

fn bad_arguments(pair: &mut Pair) {
    let result = pair.call("tools/call", json!({"name": "echo", "arguments": {"text": 5}})).unwrap();
    assert_eq!(result["isError"], true);
    assert_eq!(text(&result), "`/text`: expected a string");
}

fn bad_params(pair: &mut Pair) {
    let Err(Failure::Error(error)) =
        pair.call("tools/call", json!({"name": "echo", "arguments": {"text": 5}}))
    else {
        panic!("an error")
    };
    assert_eq!((error.code.0, &*error.message), (-32602, "`/text`: expected a string"));
}

fn unknown_tool(pair: &mut Pair) {
    assert_eq!(code(pair.tool("nothing", json!({}))), -32602);
}

fn unknown_method(pair: &mut Pair) {
    assert_eq!(code(pair.call("acme/nothing", json!({}))), -32601);
}

fn form(pair: &mut Pair) {
    assert_eq!(pair.tool("greet", json!({})).unwrap(), "Hello, Ann");
    assert_eq!(pair.client().received(), ["asked Your name?", "answer"]);
}

fn no_form(pair: &mut Pair) {
    let code = missing_capability(pair);
    let Err(Failure::Error(error)) = pair.tool("greet", json!({})) else { panic!("an error") };
    assert_eq!(error.code.0, code);
    assert_eq!(
        error.message,
        "the client did not declare `{\"elicitation\":{}}`, which the call needs: use a client that does"
    );
    assert_eq!(pair.client().received(), ["answer"], "nobody was asked");
}

fn two_forms(pair: &mut Pair) {
    let before = pair.server.shop.charges.get();
    let message = pair.tool("book", json!({})).unwrap();
    assert_eq!(message, format!("12A, soup, charge {}", before + 1));
    assert_eq!(pair.server.shop.charges.get(), before + 1, "once");
    assert_eq!(pair.client().received(), ["asked Which seat?", "asked Which meal?", "answer"]);
    check_rounds(pair, 2);
}

fn no_act(pair: &mut Pair) {
    let before = pair.server.shop.charges.get();
    let expected = missing_capability(pair);
    assert_eq!(code(pair.tool("book", json!({}))), expected);
    assert_eq!(pair.server.shop.charges.get(), before);
}

/// A session needs no rounds.
fn check_rounds(pair: &mut Pair, stateless: u32) {
    let expected = if super::like(pair.client().revision()) == R5 { stateless } else { 0 };
    let last = pair.client().last();
    assert_eq!(pair.client().rounds(last), expected);
}

fn declined(pair: &mut Pair) {
    assert_eq!(pair.tool("greet", json!({"ask": "Your age?"})).unwrap(), "Decline");
    assert_eq!(pair.tool("greet", json!({"ask": "Your shoe size?"})).unwrap(), "Cancel");
}

fn form_and_sample(pair: &mut Pair) {
    assert_eq!(pair.tool("both", json!({})).unwrap(), "12A Go? Yes.");
    check_rounds(pair, 1);
}

fn page(pair: &mut Pair) {
    assert_eq!(pair.tool("pay", json!({})).unwrap(), "Accept");
    assert_eq!(pair.client().received(), ["asked Pay here", "answer"]);
}

fn no_page(pair: &mut Pair) {
    let expected = missing_capability(pair);
    assert_eq!(code(pair.tool("pay", json!({}))), expected);
}

fn sampling(pair: &mut Pair) {
    assert_eq!(pair.tool("think", json!({})).unwrap(), "Hm? Yes.");
}

fn sampling_tools(pair: &mut Pair) {
    assert_eq!(pair.tool("arm", json!({})).unwrap(), "m");
}

fn no_sampling_tools(pair: &mut Pair) {
    let expected = missing_capability(pair);
    assert_eq!(code(pair.tool("arm", json!({}))), expected);
    assert_eq!(pair.client().received(), ["answer"], "nobody was asked");
}

fn two_samples(pair: &mut Pair) {
    let before = pair.server.shop.charges.get();
    let message = pair.tool("draft", json!({})).unwrap();
    assert_eq!(message, format!("A poem? Yes.? Yes. charge {}", before + 1));
    assert_eq!(pair.server.shop.charges.get(), before + 1, "once");
    check_rounds(pair, 2);
}

fn two_at_once(pair: &mut Pair) {
    assert_eq!(pair.tool("plan", json!({})).unwrap(), "Go? Yes. file:///home/ann");
    check_rounds(pair, 1);
}

fn roots(pair: &mut Pair) {
    assert_eq!(pair.tool("where", json!({})).unwrap(), "file:///home/ann");
}

fn prompt_asks(pair: &mut Pair) {
    let result = pair.call("prompts/get", json!({"name": "letter"})).unwrap();
    assert_eq!(result["messages"][0]["content"]["text"], "Be polite? Yes.");
}

fn resource_asks(pair: &mut Pair) {
    let result = pair.call("resources/read", json!({"uri": "note://ask"})).unwrap();
    assert_eq!(result["contents"][0]["text"], "Is it one? Yes.");
}

fn count(pair: &mut Pair) -> Vec<String> {
    let mut extras = Extras::default();
    extras.progress = true;
    pair.call_with("tools/call", json!({"name": "count"}), &extras).unwrap();
    pair.client().received()
}

fn progress(pair: &mut Pair) {
    let numbers: Vec<_> =
        count(pair).iter().map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(numbers, ["progress 0.5", "progress 1.0", "answer"]);
    pair.call("tools/call", json!({"name": "count"})).unwrap();
    assert_eq!(pair.client().received(), ["answer"], "nobody asked for it");
}

fn progress_words(pair: &mut Pair) {
    assert_eq!(count(pair), ["progress 0.5 \"half\"", "progress 1.0 \"all\"", "answer"]);
}

fn progress_mute(pair: &mut Pair) {
    assert_eq!(count(pair), ["progress 0.5 -", "progress 1.0 -", "answer"]);
}

fn chat(pair: &mut Pair, level: Option<&str>) -> Vec<String> {
    let mut extras = Extras::default();
    extras.log_level = level;
    pair.call_with("tools/call", json!({"name": "chat"}), &extras).unwrap();
    pair.client().received()
}

fn log_of_request(pair: &mut Pair) {
    assert_eq!(chat(pair, Some("warning")), ["log \"a warning\"", "log \"an error\"", "answer"]);
    assert_eq!(chat(pair, Some("debug")).len(), 4);
    assert_eq!(chat(pair, None), ["answer"], "what one request wants says nothing of the next");
    let mut extras = Extras::default();
    extras.log_level = Some("loud");
    assert_eq!(code(pair.call_with("tools/call", json!({"name": "chat"}), &extras)), -32602);
}

fn no_log(pair: &mut Pair) {
    assert_eq!(chat(pair, Some("debug")), ["answer"]);
}

fn log_of_session(pair: &mut Pair) {
    assert_eq!(code(pair.call("logging/setLevel", json!({"level": "loud"}))), -32602);
    pair.call("logging/setLevel", json!({"level": "error"})).unwrap();
    pair.client().received();
    assert_eq!(chat(pair, None), ["log \"an error\"", "answer"]);
}

fn no_set_level(pair: &mut Pair) {
    unavailable(pair.call("logging/setLevel", json!({"level": "error"})));
}

fn cancellation(pair: &mut Pair) {
    let mut extras = Extras::default();
    extras.progress = true;
    extras.log_level = Some("debug");
    for stubborn in [false, true] {
        pair.server.stubborn = stubborn;
        let call = pair.client().start("tools/call", json!({"name": "wait"}), &extras).unwrap();
        pair.drive();
        assert_eq!(pair.server.running(), 1);
        pair.client().cancel(call);
        pair.drive();
        assert_eq!(
            (pair.server.running(), pair.server.received()),
            (usize::from(stubborn), vec!["cancelled".into()])
        );
        // Whatever it still does, nobody hears of it.
        let lines = pair.wire.len();
        pair.server.shop.release.set(true);
        pair.drive();
        pair.server.shop.release.set(false);
        assert_eq!((pair.wire.len(), pair.server.running()), (lines, 0));
        assert!(pair.client().received().is_empty());
        assert!(pair.client().ended(call).is_none());
    }
    pair.server.stubborn = false;
}

fn withdrawal(pair: &mut Pair) {
    pair.client().thinks_ms = 1_000;
    let params = json!({"name": "wait", "arguments": {"ask": true}});
    let call = pair.client().start("tools/call", params, &Extras::default()).unwrap();
    pair.drive();
    pair.client().cancel(call);
    pair.drive();
    assert_eq!(pair.client().received(), ["asked Your name?", "withdrawn"]);
    // What the user says after that is told nobody.
    let lines = pair.wire.len();
    pair.advance(2_000);
    assert_eq!(pair.wire.len(), lines);
    pair.client().thinks_ms = 0;
}

fn change_all(pair: &mut Pair) -> Vec<String> {
    for change in [
        Change::Tools,
        Change::Prompts,
        Change::Resources,
        Change::Resource("note://1".into()),
        Change::Resource("note://2".into()),
    ] {
        pair.server.changed(&change);
    }
    pair.drive();
    pair.client().received()
}

fn subscribe(pair: &mut Pair) {
    const LISTS: [&str; 3] = ["changed Tools", "changed Prompts", "changed Resources"];
    assert_eq!(change_all(pair), LISTS);
    pair.call("resources/subscribe", json!({"uri": "note://1"})).unwrap();
    pair.client().received();
    assert_eq!(change_all(pair), [&LISTS[..], &["updated note://1"]].concat());
    pair.call("resources/unsubscribe", json!({"uri": "note://1"})).unwrap();
    pair.client().received();
    assert_eq!(change_all(pair), LISTS);
}

fn no_subscribe(pair: &mut Pair) {
    assert!(change_all(pair).is_empty(), "nobody listens");
    unavailable(pair.call("resources/subscribe", json!({"uri": "note://1"})));
    unavailable(pair.call("resources/unsubscribe", json!({"uri": "note://1"})));
}

fn listen(pair: &mut Pair) {
    let wanted = json!({"notifications": {"toolsListChanged": true, "resourceSubscriptions": ["note://1"]}});
    let listening = pair.client().start("subscriptions/listen", wanted.clone(), &Extras::default()).unwrap();
    pair.drive();
    assert_eq!(
        pair.client().received(),
        [r#"granted {"toolsListChanged":true,"resourceSubscriptions":["note://1"]}"#]
    );
    assert_eq!(change_all(pair), ["changed Tools", "updated note://1"]);
    assert_eq!(change_all(pair), ["changed Tools", "updated note://1"], "and again");
    pair.client().cancel(listening);
    pair.drive();
    assert!(change_all(pair).is_empty());
    assert_eq!(pair.server.engine.in_flight(), 0);
    // The server's end of it.
    pair.client().start("subscriptions/listen", wanted, &Extras::default()).unwrap();
    pair.drive();
    let now = pair.now;
    assert_eq!(pair.server.unlisten(now), 1);
    pair.drive();
    let received = pair.client().received();
    assert_eq!(received[1], "ended");
    assert!(received[2..].iter().all(|line| line.starts_with("ignored")), "it ends once: {received:?}");
}

fn no_listen(pair: &mut Pair) {
    unavailable(pair.call("subscriptions/listen", json!({"notifications": {}})));
}

fn pages(pair: &mut Pair) {
    let (mut uris, mut params) = (Vec::new(), json!({}));
    loop {
        let page = pair.call("resources/list", params).unwrap();
        uris.extend(page["resources"].as_array().unwrap().iter().map(|one| one["uri"].clone()));
        match page.get("nextCursor") {
            Some(cursor) => params = json!({"cursor": cursor}),
            None => break,
        }
    }
    assert_eq!(uris, ["note://1", "note://2", "note://3"]);
    assert_eq!(code(pair.call("resources/list", json!({"cursor": "none"}))), -32602);
}

fn not_found(pair: &mut Pair) {
    let Err(Failure::Error(error)) = pair.call("resources/read", json!({"uri": "note://9"})) else {
        panic!("an error")
    };
    assert_eq!(error.code.0, -32602, "the same for every caller");
    assert_eq!(error.data_as::<Value>(), Some(json!({"uri": "note://9"})));
    let wire = if super::like(pair.client().revision()) == R5 { -32602 } else { -32002 };
    assert_eq!(last_answer(pair)["error"]["code"], wire);
}

fn completion(pair: &mut Pair) {
    let params = json!({"ref": {"type": "ref/prompt", "name": "letter"}, "argument": {"name": "colour", "value": "bl"}});
    let result = pair.call("completion/complete", params).unwrap();
    assert_eq!(result["completion"]["values"], json!(["blue", "black"]));
}

fn ping(pair: &mut Pair) {
    assert_eq!(pair.call("ping", json!({})).unwrap(), json!({}));
}

fn no_ping(pair: &mut Pair) {
    unavailable(pair.call("ping", json!({})));
}

fn ping_back(pair: &mut Pair) {
    assert!(pair.server.ping());
    pair.drive();
    assert_eq!(pair.server.received(), ["pong"]);
}

fn no_ping_back(pair: &mut Pair) {
    assert!(!pair.server.ping());
}

fn roots_changed(pair: &mut Pair) {
    pair.client().notify("notifications/roots/list_changed").unwrap();
    pair.drive();
    assert_eq!(pair.server.received(), ["notifications/roots/list_changed"]);
}

fn no_roots_changed(pair: &mut Pair) {
    let error = pair.client().notify("notifications/roots/list_changed").unwrap_err();
    assert!(matches!(error, SendError::Unavailable { .. }));
}

fn start_two(pair: &mut Pair) -> [usize; 2] {
    let client = pair.client();
    let calls = ["echo", "count"].map(|name| {
        let params = json!({"name": name, "arguments": {"text": "a"}});
        client.start("tools/call", params, &Extras::default()).unwrap()
    });
    client.bundle();
    pair.drive();
    calls
}

fn batch(pair: &mut Pair) {
    for call in start_two(pair) {
        assert!(pair.client().ended(call).unwrap().is_ok());
    }
    assert!(last_answer(pair).is_array());
    assert_eq!(pair.wire.iter().filter(|line| line.starts_with("< [")).count(), 1);
}

fn no_batch(pair: &mut Pair) {
    let calls = start_two(pair);
    assert_eq!(last_answer(pair)["error"]["code"], -32600);
    assert!(pair.client().received()[0].starts_with("violation an error without an `id`"));
    for call in calls {
        assert!(pair.client().ended(call).is_none());
        assert!(matches!(pair.client().id(call), RequestId::Number(_)));
    }
    assert_eq!(pair.client().abandon_all(), 2);
}
