//! Requests with their own handlers, callbacks and metadata; connections with a name.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use pintle::{
    Error,
    client::{Answer, Event, Policy},
    types::{
        Meta, RawObject,
        schema::{CompletionReference, ContentBlock, CreateMessageResult, LoggingLevel, PromptReference},
    },
};
use pintle_testing::Peer;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::scripted_server::{BOTH, SESSION, STATELESS, client, open, settle, text};

const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

fn form(message: &str) -> Value {
    let schema = json!({"type": "object", "properties": {"by": {"type": "string"}}});
    json!({"mode": "form", "message": message, "requestedSchema": schema})
}

fn by(name: &str) -> Answer {
    Answer::accept(json!({"by": name}))
}

fn meta(value: Value) -> Meta {
    serde_json::from_value(value).unwrap()
}

/// A list that a callback fills.
type Seen = Arc<Mutex<Vec<String>>>;

fn seen(list: &Seen) -> Vec<String> {
    std::mem::take(&mut *list.lock().unwrap())
}

/// Asks a question of the session era, and returns who answered.
async fn ask(peer: &mut Peer, id: u32) -> Value {
    peer.asks(id, "elicitation/create", form("who?")).await;
    let answer = peer.next().await.unwrap();
    assert_eq!(answer["id"], id, "{answer}");
    answer["result"]["content"]["by"].clone()
}

#[tokio::test(start_paused = true)]
async fn calls_that_ask_at_once_are_distinguished_where_the_protocol_does() {
    let client = client().on_elicit(|_| async { by("client") });
    for revision in BOTH {
        let (server, mut peer) = open(&client, revision, json!({})).await;
        let first = server.call("a").on_elicit(|_| async { by("first") }).send();
        let second = server.call("b").on_elicit(|_| async { by("second") }).send();
        let script = async {
            let calls = [peer.receives("tools/call").await, peer.receives("tools/call").await];
            if revision == SESSION {
                // Over a pipe nothing says which call this is for.
                assert_eq!(ask(&mut peer, 7).await, "client");
            } else {
                for call in &calls {
                    let question = json!({"method": "elicitation/create", "params": form("who?")});
                    let result = json!({"resultType": "input_required", "inputRequests": {"k": question}});
                    peer.answers(call, result).await;
                }
                for _ in 0..2 {
                    let retry = peer.receives("tools/call").await;
                    let expected = if retry["params"]["name"] == "a" { "first" } else { "second" };
                    assert_eq!(retry["params"]["inputResponses"]["k"]["content"]["by"], expected);
                    peer.answers(&retry, text("done")).await;
                }
                return;
            }
            for call in &calls {
                peer.answers(call, text("done")).await;
            }
        };
        let (first, second, ()) = tokio::join!(first, second, script);
        first.unwrap();
        second.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn the_only_request_in_flight_is_the_one_that_asks() {
    let client = client().on_elicit(|_| async { by("client") });
    let (server, mut peer) = open(&client, SESSION, json!({})).await;
    let (called, listed, ()) = tokio::join!(
        server
            .call("a")
            .on_elicit(|question| async move { by(&format!("call: {}", question.message)) })
            .send(),
        async { server.tools().await },
        async {
            let call = peer.receives("tools/call").await;
            // Lists do not ask.
            let list = peer.receives("tools/list").await;
            assert_eq!(ask(&mut peer, 1).await, "call: who?");
            peer.answers(&list, json!({"tools": []})).await;
            peer.answers(&call, text("done")).await;
        }
    );
    called.unwrap();
    listed.unwrap();
    // A read without a handler is a request that may ask: nothing is certain.
    let (called, read, ()) = tokio::join!(
        server.call("a").on_elicit(|_| async { by("call") }).send(),
        async { server.read_resource("x:y").await },
        async {
            let call = peer.receives("tools/call").await;
            let read = peer.receives("resources/read").await;
            assert_eq!(ask(&mut peer, 2).await, "client");
            peer.answers(&read, json!({"contents": []})).await;
            assert_eq!(ask(&mut peer, 3).await, "call");
            peer.answers(&call, text("done")).await;
        }
    );
    called.unwrap();
    read.unwrap();
    // No request at all.
    assert_eq!(ask(&mut peer, 4).await, "client");
}

#[tokio::test(start_paused = true)]
async fn a_question_of_a_cancelled_call_is_not_answered_by_the_next_one() {
    let client = client().on_elicit(|_| async { by("client") });
    let (server, mut peer) = open(&client, SESSION, json!({})).await;
    let cancelled = server.call("a").timeout(Duration::from_secs(1)).send().await;
    assert!(matches!(cancelled, Err(Error::Timeout(_))));
    peer.receives("tools/call").await;
    peer.receives("notifications/cancelled").await;
    let next = || server.call("b").on_elicit(|_| async { by("next") }).send();
    let (called, ()) = tokio::join!(next(), async {
        let call = peer.receives("tools/call").await;
        assert_eq!(ask(&mut peer, 1).await, "client");
        peer.answers(&call, text("done")).await;
    });
    called.unwrap();
    // The answer shows that the server has read the cancellation.
    let (called, ()) = tokio::join!(next(), async {
        let call = peer.receives("tools/call").await;
        assert_eq!(ask(&mut peer, 2).await, "next");
        peer.answers(&call, text("done")).await;
    });
    called.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_takes_its_handler_with_it() {
    struct Dropped(Arc<Mutex<bool>>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            *self.0.lock().unwrap() = true;
        }
    }
    let client = client().on_elicit(|_| async { by("client") });
    let (server, mut peer) = open(&client, SESSION, json!({})).await;
    let dropped = Arc::new(Mutex::new(false));
    let guard = dropped.clone();
    let call = server.call("a").on_elicit(move |_| {
        let guard = Dropped(guard.clone());
        async move {
            std::future::pending::<()>().await;
            drop(guard);
            Answer::Decline
        }
    });
    let mut call = Box::pin(call.send());
    tokio::select! {
        _ = &mut call => panic!("it has no answer"),
        () = async {
            peer.receives("tools/call").await;
            peer.asks(1, "elicitation/create", form("who?")).await;
            settle().await;
        } => {}
    }
    assert!(!*dropped.lock().unwrap());
    drop(call);
    settle().await;
    assert!(*dropped.lock().unwrap());
    peer.receives("notifications/cancelled").await;
    let answer = peer.next().await.unwrap();
    assert_eq!(answer["error"]["message"], "the call that this was asked for was given up");
}

#[tokio::test(start_paused = true)]
async fn a_handler_of_a_request_declares_its_capability_where_requests_do() {
    let (server, mut peer) = open(&client(), STATELESS, json!({})).await;
    let sample = |_| async { CreateMessageResult::new("model", ContentBlock::text("yes")) };
    let (prompt, ()) = tokio::join!(async { server.get_prompt("p", ()).on_sample(sample).await }, async {
        let get = peer.receives("prompts/get").await;
        assert_eq!(get["params"]["_meta"][CAPABILITIES], json!({"sampling": {}}));
        let question =
            json!({"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}});
        peer.answers(&get, json!({"resultType": "input_required", "inputRequests": {"k": question}})).await;
        let retry = peer.receives("prompts/get").await;
        assert_eq!(retry["params"]["inputResponses"]["k"]["model"], "model");
        peer.answers(&retry, json!({"resultType": "complete", "messages": []})).await;
    });
    prompt.unwrap();
    // Other requests do not.
    let (_, ()) = tokio::join!(server.call_tool("t", ()), async {
        let call = peer.receives("tools/call").await;
        assert_eq!(call["params"]["_meta"][CAPABILITIES], json!({}));
        peer.answers(&call, text("done")).await;
    });
    // A session has declared what it has declared.
    let (server, mut peer) = open(&client(), SESSION, json!({})).await;
    let (_, ()) = tokio::join!(server.call("t").on_sample(sample).send(), async {
        let call = peer.receives("tools/call").await;
        peer.asks(1, "sampling/createMessage", json!({"messages": [], "maxTokens": 1})).await;
        assert!(peer.next().await.unwrap()["error"].is_object());
        peer.answers(&call, text("done")).await;
    });
}

#[tokio::test(start_paused = true)]
async fn log_messages_go_to_their_request_if_it_is_the_only_one() {
    for revision in BOTH {
        let (all, own) = (Seen::default(), Seen::default());
        let client = client().on_log({
            let all = all.clone();
            move |report| all.lock().unwrap().push(report.data.to_string())
        });
        let (server, mut peer) = open(&client, revision, json!({"logging": {}})).await;
        let logged = |name: &str| {
            let own = own.clone();
            server.call(name).on_log(move |message| own.lock().unwrap().push(message.data.to_string()))
        };
        let log = |n: u32| json!({"level": "info", "data": n});
        let (called, ()) = tokio::join!(logged("a").send(), async {
            let call = peer.receives("tools/call").await;
            if revision == STATELESS {
                assert_eq!(call["params"]["_meta"][LOG_LEVEL], "info");
            }
            peer.notifies("notifications/message", log(1)).await;
            peer.notifies("notifications/message", log(2)).await;
            peer.answers(&call, text("done")).await;
        });
        called.unwrap();
        assert_eq!((seen(&own), seen(&all)), (vec!["1".to_owned(), "2".to_owned()], vec![]), "{revision}");
        let (a, b, ()) =
            tokio::join!(logged("a").send(), logged("b").log_level(LoggingLevel::Error).send(), async {
                let calls = [peer.receives("tools/call").await, peer.receives("tools/call").await];
                if revision == STATELESS {
                    assert_eq!(calls[1]["params"]["_meta"][LOG_LEVEL], "error");
                }
                peer.notifies("notifications/message", log(3)).await;
                for call in &calls {
                    peer.answers(call, text("done")).await;
                }
            });
        a.unwrap();
        b.unwrap();
        assert_eq!((seen(&own), seen(&all)), (vec![], vec!["3".to_owned()]), "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_verb_has_a_timeout_progress_and_metadata() {
    let client = client().meta(meta(json!({"a": 1, "b": 1})));
    for revision in BOTH {
        let (server, mut peer) = open(&client, revision, json!({"tools": {}})).await;
        let steps = Seen::default();
        let step = || {
            let steps = steps.clone();
            move |step: pintle::types::schema::ProgressParams| {
                steps.lock().unwrap().push(step.progress.to_string())
            }
        };
        let own = || meta(json!({"b": 2}));
        let reference = CompletionReference::Prompt(PromptReference::new("p"));
        let verbs = async {
            server.read_resource("x:y").on_progress(step()).meta(own()).await?;
            server.get_prompt("p", ()).on_progress(step()).meta(own()).await?;
            server.complete(reference, "n", "v", []).on_progress(step()).meta(own()).await?;
            server.tools().on_progress(step()).meta(own()).await?;
            server.tools_page(None).on_progress(step()).meta(own()).await?;
            server.tools_stream().on_progress(step()).meta(own()).next().await?;
            server.call_raw("x/y", RawObject::empty()).on_progress(step()).meta(own()).await?;
            server.call("t").on_progress(step()).meta(own()).send().await?;
            Ok::<_, Error>(())
        };
        let script = async {
            for (method, result) in [
                ("resources/read", json!({"contents": []})),
                ("prompts/get", json!({"messages": []})),
                ("completion/complete", json!({"completion": {"values": []}})),
                ("tools/list", json!({"tools": []})),
                ("tools/list", json!({"tools": []})),
                ("tools/list", json!({"tools": []})),
                ("x/y", json!({})),
                ("tools/call", text("done")),
            ] {
                let request = peer.receives(method).await;
                let meta = &request["params"]["_meta"];
                assert_eq!((&meta["a"], &meta["b"]), (&json!(1), &json!(2)), "{method}: {request}");
                let progress = json!({"progressToken": meta["progressToken"], "progress": 1});
                peer.notifies("notifications/progress", progress).await;
                let mut result = result;
                result["resultType"] = "complete".into();
                peer.answers(&request, result).await;
            }
        };
        let (done, ()) = tokio::join!(verbs, script);
        done.unwrap();
        assert_eq!(seen(&steps).len(), 8, "{revision}");

        let slow = server.read_resource("x:y").timeout(Duration::from_secs(3)).await;
        assert!(matches!(slow, Err(Error::Timeout(after)) if after == Duration::from_secs(3)), "{slow:?}");
        let request = peer.receives("resources/read").await;
        assert_eq!(
            (&request["params"]["_meta"]["a"], &request["params"]["_meta"]["b"]),
            (&json!(1), &json!(1))
        );
        peer.receives("notifications/cancelled").await;

        let other = server.with_meta(meta(json!({"c": 1})));
        let (done, ()) = tokio::join!(other.call_tool("t", ()), async {
            let call = peer.receives("tools/call").await;
            assert_eq!(call["params"]["_meta"]["c"], 1);
            assert_eq!(call["params"]["_meta"].get("a"), None);
            peer.answers(&call, text("done")).await;
        });
        done.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn params_and_results_of_any_method_are_typed() {
    #[derive(Serialize)]
    struct Add {
        a: u8,
    }
    #[derive(Debug, Deserialize)]
    struct Sum {
        sum: u8,
    }
    for revision in BOTH {
        let (server, mut peer) = open(&client(), revision, json!({})).await;
        let (sum, ()) =
            tokio::join!(async { server.request::<_, Sum>("x/add", Add { a: 1 }).await }, async {
                let add = peer.receives("x/add").await;
                assert_eq!(add["params"]["a"], 1);
                peer.answers(&add, json!({"resultType": "complete", "sum": 3})).await;
            });
        assert_eq!(sum.unwrap().sum, 3);
        let (sum, ()) =
            tokio::join!(async { server.request::<_, Sum>("x/add", Add { a: 1 }).await }, async {
                let add = peer.receives("x/add").await;
                peer.answers(&add, json!({"resultType": "complete", "sum": "three"})).await;
            });
        let error = sum.unwrap_err().to_string();
        assert!(error.contains("the result of `x/add`"), "{error}");
        let error = server.request::<_, Sum>("x/add", 7).await.unwrap_err();
        assert!(matches!(error, Error::Misuse(_)), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn handlers_callbacks_and_the_policy_see_the_name_of_the_connection() {
    for revision in BOTH {
        let names = Seen::default();
        let note = |what: &'static str| {
            let names = names.clone();
            move |name: Option<&str>| names.lock().unwrap().push(format!("{what} {}", name.unwrap_or("-")))
        };
        let (form_note, log_note, change_note, noise_note, progress_note, policy_note) =
            (note("form"), note("log"), note("change"), note("noise"), note("progress"), note("policy"));
        let client = client()
            .on_elicit(move |question| {
                form_note(question.connection.as_deref());
                async { Answer::Decline }
            })
            .log_level(LoggingLevel::Debug)
            .on_log(move |report| log_note(report.connection.as_deref()))
            .on_change(move |report| change_note(report.connection.as_deref()))
            .on_noise(move |report| noise_note(report.connection.as_deref()))
            .on_progress(move |report| progress_note(report.connection.as_deref()))
            .policy(move |proposal| {
                policy_note(proposal.connection);
                Policy::Allow
            });
        let (mut peer, transport) = Peer::new();
        let script =
            crate::support::scripted_server::accept(&mut peer, revision, json!({"logging": {}, "tools": {}}));
        let (server, ()) = tokio::join!(client.connect_as("weather", transport), script);
        let server = server.unwrap();
        assert_eq!(server.name(), Some("weather"));
        let mut changes = server.changes().await.unwrap();
        let (called, ()) = tokio::join!(server.call_tool("t", ()), async {
            if revision == SESSION {
                peer.receives("logging/setLevel").await;
            }
            let list = peer.receives("tools/list").await;
            let tools =
                json!({"resultType": "complete", "tools": [], "ttlMs": 60000, "cacheScope": "private"});
            peer.answers(&list, tools).await;
            let call = peer.receives("tools/call").await;
            peer.prints("noise").await;
            peer.notifies("notifications/message", json!({"level": "info", "data": 1})).await;
            let token = &call["params"]["_meta"]["progressToken"];
            peer.notifies("notifications/progress", json!({"progressToken": token, "progress": 1})).await;
            if revision == SESSION {
                peer.asks(1, "elicitation/create", form("who?")).await;
                peer.next().await.unwrap();
                peer.answers(&call, text("done")).await;
                return;
            }
            let question = json!({"method": "elicitation/create", "params": form("who?")});
            peer.answers(&call, json!({"resultType": "input_required", "inputRequests": {"k": question}}))
                .await;
            let retry = peer.receives("tools/call").await;
            peer.answers(&retry, text("done")).await;
        });
        called.unwrap();
        if revision == SESSION {
            peer.notifies("notifications/tools/list_changed", json!({})).await;
            assert!(matches!(changes.next().await, Some(Event::Changed(_))));
        }
        settle().await;
        let mut names = seen(&names);
        names.sort();
        names.dedup();
        let mut expected =
            vec!["form weather", "log weather", "noise weather", "policy weather", "progress weather"];
        if revision == SESSION {
            expected.insert(0, "change weather");
        }
        assert_eq!(names, expected, "{revision}");
    }
}
