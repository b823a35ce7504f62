//! Calls and lists: answers, progress, timeouts, cancellation, and servers that misbehave.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::{Arc, Mutex},
    task::Poll,
    time::Duration,
};

use pintle::{
    Ended, Error, Timeouts,
    types::{
        Meta,
        schema::{CompletionReference, LoggingLevel, PromptReference},
    },
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::scripted_server::{BATCHES, BOTH, SESSION, STATELESS, client, open, settle, text};

#[tokio::test(start_paused = true)]
async fn a_tool_is_called_with_anything_that_prints_as_an_object() {
    #[derive(serde::Serialize)]
    struct Add {
        a: i64,
        b: i64,
    }

    for revision in BOTH {
        let (server, mut peer) = open(&client(), revision, json!({})).await;
        let script = async {
            let call = peer.receives("tools/call").await;
            assert_eq!(call["params"]["arguments"], json!({"a": 1, "b": i64::MAX}));
            peer.answers(&call, text("ok")).await;
            let call = peer.receives("tools/call").await;
            assert_eq!(call["params"].get("arguments"), None);
            peer.answers(&call, text("ok")).await;
        };
        let calls = async {
            server.call_tool("add", Add { a: 1, b: i64::MAX }).await.unwrap();
            server.call_tool("none", ()).await.unwrap();
            let error = server.call_tool("list", [1]).await.unwrap_err().to_string();
            assert!(error.starts_with("the arguments of `list`: no JSON object"), "{error}");
        };
        tokio::join!(calls, script);
    }
}

#[tokio::test(start_paused = true)]
async fn results_are_read_as_what_is_wanted() {
    #[derive(Debug, Deserialize, PartialEq)]
    struct Sum {
        sum: i64,
    }

    let (server, mut peer) = open(&client(), STATELESS, json!({})).await;
    let answers = [
        json!({"content": [], "structuredContent": {"sum": 3}}),
        text(r#"{"sum": 4}"#),
        json!({"content": [{"type": "text", "text": "too large"}], "isError": true}),
        text("four"),
    ];
    let script = async {
        for answer in answers {
            let call = peer.receives("tools/call").await;
            peer.answers(&call, answer).await;
        }
    };
    let calls = async {
        let call = || server.call_tool_as::<Sum>("add", json!({}));
        assert_eq!(call().await.unwrap(), Sum { sum: 3 });
        assert_eq!(call().await.unwrap(), Sum { sum: 4 });
        assert!(matches!(call().await.unwrap_err(), Error::Tool(detail) if detail == "too large"));
        assert!(matches!(call().await.unwrap_err(), Error::Decode(_)));
    };
    tokio::join!(calls, script);
}

#[tokio::test(start_paused = true)]
async fn a_result_that_breaks_its_tools_promise_is_refused() {
    for revision in BOTH {
        let (server, mut peer) = open(&client(), revision, json!({"tools": {}})).await;
        let script = async {
            let list = peer.receives("tools/list").await;
            let schema = json!({"type": "object", "required": ["sum"]});
            let tool = json!({"name": "add", "inputSchema": {"type": "object"}, "outputSchema": schema});
            peer.answers(&list, json!({"resultType": "complete", "tools": [tool]})).await;
            for content in [json!({"sum": 1}), json!({"total": 1})] {
                let call = peer.receives("tools/call").await;
                peer.answers(&call, json!({"content": [], "structuredContent": content})).await;
            }
            let call = peer.receives("tools/call").await;
            peer.answers(&call, json!({"content": [], "isError": true})).await;
        };
        let calls = async {
            assert_eq!(server.tools().await.unwrap()[0].name, "add");
            assert!(server.call_tool("add", json!({})).await.is_ok());
            let error = server.call_tool("add", json!({})).await.unwrap_err().to_string();
            #[cfg(feature = "validation")]
            assert_eq!(error, "the response is invalid: the result of tool `add`: `/sum` is missing");
            assert!(error.contains("the result of tool `add`:") && error.contains("sum`"), "{error}");
            assert!(server.call_tool("add", json!({})).await.is_ok());
        };
        tokio::join!(calls, script);
    }
}

#[tokio::test(start_paused = true)]
async fn lists_are_gathered_from_their_pages() {
    for revision in BOTH {
        let (server, mut peer) = open(&client(), revision, json!({})).await;
        let tool = |name: &str| json!({"name": name, "inputSchema": {}});
        let script = async {
            for _ in 0..2 {
                let list = peer.receives("tools/list").await;
                assert_eq!(list["params"].get("cursor"), None);
                peer.answers(&list, json!({"tools": [tool("a"), tool("b")], "nextCursor": ""})).await;
                let list = peer.receives("tools/list").await;
                assert_eq!(list["params"]["cursor"], "");
                peer.answers(&list, json!({"tools": [], "nextCursor": "2"})).await;
                let list = peer.receives("tools/list").await;
                peer.answers(&list, json!({"tools": [tool("c")]})).await;
            }
        };
        let lists = async {
            let names: Vec<_> = server.tools().await.unwrap().into_iter().map(|tool| tool.name).collect();
            assert_eq!(names, ["a", "b", "c"]);
            let mut stream = server.tools_stream();
            let mut names = Vec::new();
            while let Some(tool) = stream.next().await.unwrap() {
                names.push(tool.name);
            }
            assert_eq!(names, ["a", "b", "c"]);
        };
        tokio::join!(lists, script);
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_goes_in_circles_is_noticed() {
    let (server, mut peer) = open(&client(), SESSION, json!({})).await;
    let script = async {
        for _ in 0..2 {
            let list = peer.receives("prompts/list").await;
            peer.answers(&list, json!({"prompts": [{"name": "p"}], "nextCursor": "x"})).await;
        }
    };
    let (error, ()) = tokio::join!(server.prompts(), script);
    assert!(error.unwrap_err().to_string().contains("`prompts/list` never ends"));
}

#[tokio::test(start_paused = true)]
async fn a_cursor_that_is_no_longer_valid_starts_the_list_again() {
    let (server, mut peer) = open(&client(), SESSION, json!({})).await;
    let script = async {
        let list = peer.receives("resources/list").await;
        peer.answers(&list, json!({"resources": [{"uri": "a:1", "name": "old"}], "nextCursor": "x"})).await;
        let list = peer.receives("resources/list").await;
        peer.refuses(&list, -32602, "no such cursor").await;
        let list = peer.receives("resources/list").await;
        peer.answers(&list, json!({"resources": [{"uri": "a:2", "name": "new"}]})).await;
    };
    let (resources, ()) = tokio::join!(server.resources(), script);
    let names: Vec<_> = resources.unwrap().into_iter().map(|resource| resource.name).collect();
    assert_eq!(names, ["new"]);
}

#[tokio::test(start_paused = true)]
async fn progress_comes_in_order_and_before_the_result() {
    for revision in BOTH {
        let (server, mut peer) = open(&client(), revision, json!({})).await;
        let seen = Arc::new(Mutex::new(Vec::new()));
        let script = async {
            let call = peer.receives("tools/call").await;
            let token = &call["params"]["_meta"]["progressToken"];
            for step in 0..50 {
                let params =
                    json!({"progressToken": token, "progress": step, "message": format!("step {step}")});
                peer.notifies("notifications/progress", params).await;
            }
            peer.answers(&call, text("done")).await;
            // After the end it is nobody's.
            peer.notifies("notifications/progress", json!({"progressToken": token, "progress": 99})).await;
        };
        let call = async {
            let seen = seen.clone();
            let call =
                server.call("t").on_progress(move |progress| seen.lock().unwrap().push(progress.progress));
            call.send().await.unwrap();
        };
        tokio::join!(call, script);
        let expected: Vec<f64> = (0..50).map(f64::from).collect();
        assert_eq!(*seen.lock().unwrap(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn progress_that_nobody_looks_at_is_bounded() {
    let (server, mut peer) = open(&client(), SESSION, json!({})).await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let call = server.call("t").on_progress({
        let seen = seen.clone();
        move |progress| seen.lock().unwrap().push(progress.progress)
    });
    let mut call = Box::pin(call.send());
    assert!(tokio::time::timeout(Duration::from_millis(1), &mut call).await.is_err());
    let asked = peer.receives("tools/call").await;
    for step in 0..1000 {
        peer.notifies("notifications/progress", json!({"progressToken": asked["id"], "progress": step}))
            .await;
    }
    peer.answers(&asked, text("done")).await;
    settle().await;
    call.await.unwrap();
    let seen = seen.lock().unwrap();
    assert_eq!((seen.len(), seen.last()), (64, Some(&999.0)));
}

#[tokio::test(start_paused = true)]
async fn log_messages_come_in_order_and_before_the_result() {
    for revision in BOTH {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let client = client().log_level(LoggingLevel::Info).on_log({
            let seen = seen.clone();
            move |message| seen.lock().unwrap().push(message.params.data)
        });
        let (server, mut peer) = open(&client, revision, json!({"logging": {}})).await;
        let script = async {
            if revision == SESSION {
                let set = peer.receives("logging/setLevel").await;
                assert_eq!(set["params"]["level"], "info");
                peer.answers(&set, json!({})).await;
            }
            let call = peer.receives("tools/call").await;
            if revision == STATELESS {
                assert_eq!(call["params"]["_meta"]["io.modelcontextprotocol/logLevel"], "info");
            }
            for n in 0..100 {
                peer.notifies("notifications/message", json!({"level": "info", "data": n})).await;
            }
            peer.answers(&call, text("done")).await;
        };
        let call = async {
            server.call_tool("t", json!({})).await.unwrap();
            let expected: Vec<Value> = (0..100).map(Value::from).collect();
            assert_eq!(*seen.lock().unwrap(), expected);
        };
        tokio::join!(call, script);
    }
}

#[tokio::test(start_paused = true)]
async fn the_log_level_can_be_changed_in_either_era() {
    for revision in BOTH {
        let (server, mut peer) = open(&client(), revision, json!({"logging": {}})).await;
        let script = async {
            if revision == SESSION {
                let set = peer.receives("logging/setLevel").await;
                assert_eq!(set["params"], json!({"level": "error"}));
                peer.answers(&set, json!({})).await;
            }
            let call = peer.receives("tools/call").await;
            let level = call["params"]["_meta"].get("io.modelcontextprotocol/logLevel");
            assert_eq!(level, (revision == STATELESS).then_some(&json!("error")));
            peer.answers(&call, text("done")).await;
        };
        let calls = async {
            server.set_log_level(LoggingLevel::Error).await.unwrap();
            server.call_tool("t", json!({})).await.unwrap();
        };
        tokio::join!(calls, script);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_is_cancelled() {
    for revision in BOTH {
        let (server, mut peer) = open(&client(), revision, json!({})).await;
        {
            let mut call = Box::pin(server.call_tool("slow", json!({})));
            assert!(tokio::time::timeout(Duration::from_millis(1), &mut call).await.is_err());
        }
        let call = peer.receives("tools/call").await;
        let cancelled = peer.receives("notifications/cancelled").await;
        assert_eq!(cancelled["params"], json!({"requestId": call["id"], "reason": "no longer wanted"}));
        // Too late.
        peer.answers(&call, text("late")).await;
        let script = async {
            let call = peer.receives("tools/call").await;
            peer.answers(&call, text("next")).await;
        };
        let (result, ()) = tokio::join!(server.call_tool("quick", json!({})), script);
        assert_eq!(result.unwrap().content[0].as_text(), Some("next"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_before_it_is_sent_is_not_sent() {
    let (server, mut peer) = open(&client(), SESSION, json!({})).await;
    // More than there is room for before the server reads.
    let large = || Box::pin(server.call_tool("large", json!({"text": "x".repeat(1 << 20)})));
    let mut large = [large(), large()];
    for call in &mut large {
        polled_once(call.as_mut()).await;
    }
    settle().await;
    // One poll puts it into the queue, behind them.
    polled_once(Box::pin(server.call_tool("dropped", json!({}))).as_mut()).await;
    let script = async {
        for name in ["large", "large", "kept"] {
            let call = peer.receives("tools/call").await;
            assert_eq!(call["params"]["name"], name);
            peer.answers(&call, text("a")).await;
        }
    };
    let (kept, ()) = tokio::join!(server.call_tool("kept", json!({})), script);
    assert!(kept.is_ok());
    for call in large {
        assert!(call.await.is_ok());
    }
}

#[tokio::test]
async fn a_call_is_sent_by_its_caller() {
    let (server, mut peer) = open(&client(), SESSION, json!({})).await;
    // One poll sends it; the driver has had no turn yet.
    polled_once(Box::pin(server.call_tool("dropped", json!({}))).as_mut()).await;
    let call = peer.receives("tools/call").await;
    let cancelled = peer.receives("notifications/cancelled").await;
    assert_eq!(cancelled["params"], json!({"requestId": call["id"], "reason": "no longer wanted"}));
}

#[tokio::test]
async fn a_call_that_is_given_up_is_cancelled_before_the_next_is_sent() {
    let (server, mut peer) = open(&client(), SESSION, json!({})).await;
    polled_once(Box::pin(server.call_tool("dropped", json!({}))).as_mut()).await;
    let script = async {
        let dropped = peer.receives("tools/call").await;
        assert_eq!(peer.receives("notifications/cancelled").await["params"]["requestId"], dropped["id"]);
        let kept = peer.receives("tools/call").await;
        assert_eq!(kept["params"]["name"], "kept");
        peer.answers(&kept, text("a")).await;
    };
    let (kept, ()) = tokio::join!(server.call_tool("kept", json!({})), script);
    assert!(kept.is_ok());
}

async fn polled_once(mut call: Pin<&mut impl Future>) {
    poll_fn(|cx| {
        assert!(call.as_mut().poll(cx).is_pending());
        Poll::Ready(())
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_costs_a_timeout_and_no_more() {
    for revision in BOTH {
        let (server, mut peer) = open(&client(), revision, json!({})).await;
        let started = Instant::now();
        let error = server.call_tool("never", json!({})).await.unwrap_err();
        assert!(matches!(error, Error::Timeout(_)), "{error}");
        assert_eq!(started.elapsed().as_secs(), 30);
        let call = peer.receives("tools/call").await;
        let cancelled = peer.receives("notifications/cancelled").await;
        assert_eq!(cancelled["params"], json!({"requestId": call["id"], "reason": "timed out"}));
        let script = async {
            peer.answers(&call, text("late")).await;
            peer.answers(&call, text("twice")).await;
            peer.answers(&json!({"id": "stranger"}), text("to nothing")).await;
            let call = peer.receives("tools/call").await;
            peer.answers(&call, text("next")).await;
            peer.answers(&call, text("and again")).await;
        };
        let (result, ()) = tokio::join!(server.call_tool("quick", json!({})), script);
        assert_eq!(result.unwrap().content[0].as_text(), Some("next"));
    }
}

#[tokio::test(start_paused = true)]
async fn progress_extends_the_time_where_that_is_asked_for() {
    let mut timeouts = Timeouts::default();
    timeouts.call = Duration::from_secs(10);
    timeouts.call_max = Duration::from_secs(25);
    let client = client().timeouts(timeouts);
    for extended in [false, true] {
        let (server, mut peer) = open(&client, SESSION, json!({})).await;
        let script = async {
            let call = peer.receives("tools/call").await;
            for step in 0..5 {
                tokio::time::sleep(Duration::from_secs(7)).await;
                peer.notifies(
                    "notifications/progress",
                    json!({"progressToken": call["id"], "progress": step}),
                )
                .await;
            }
        };
        let started = Instant::now();
        let call = server.call("t").on_progress(|_| {});
        let call = if extended { call.extended_by_progress() } else { call };
        let (error, ()) = tokio::join!(
            async {
                let error = call.send().await;
                (error, started.elapsed().as_secs())
            },
            script
        );
        assert!(matches!(error.0, Err(Error::Timeout(_))));
        assert_eq!(error.1, if extended { 25 } else { 10 });
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_dies_in_the_middle_ends_all_calls() {
    for revision in BOTH {
        let (server, mut peer) = open(&client(), revision, json!({})).await;
        let script = async {
            peer.receives("tools/call").await;
            peer.receives("tools/call").await;
            drop(peer);
        };
        let (one, other, ()) =
            tokio::join!(server.call_tool("a", json!({})), server.call_tool("b", json!({})), script);
        for result in [one, other, server.call_tool("c", json!({})).await] {
            let error = result.unwrap_err();
            assert_eq!(error.to_string(), "the connection is closed: the peer disconnected");
        }
        assert_eq!(server.wait().await, Ended::ByPeer { known: None });
    }
}

#[tokio::test(start_paused = true)]
async fn closing_cancels_calls_and_reports_it() {
    let (server, mut peer) = open(&client(), SESSION, json!({})).await;
    let script = async {
        let call = peer.receives("tools/call").await;
        server.close().await;
        let cancelled = peer.receives("notifications/cancelled").await;
        assert_eq!(cancelled["params"]["requestId"], call["id"]);
        assert_eq!(peer.next().await, None);
    };
    let (result, ()) = tokio::join!(server.call_tool("a", json!({})), script);
    assert!(matches!(result.unwrap_err(), Error::Closed(Ended::Stopped)));
    assert_eq!(server.wait().await, Ended::Stopped);
    // Twice is as once.
    server.close().await;
}

#[tokio::test(start_paused = true)]
async fn the_last_handle_closes_the_connection() {
    let (server, mut peer) = open(&client(), STATELESS, json!({})).await;
    let other = server.clone();
    drop(server);
    settle().await;
    assert_eq!(peer.receives_now().await, None);
    drop(other);
    assert_eq!(peer.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn what_is_unknown_survives_a_raw_call() {
    for revision in BOTH {
        let (server, mut peer) = open(&client(), revision, json!({})).await;
        let script = async {
            let call = peer.receives("acme/novel").await;
            assert_eq!(call["params"]["x"], json!([1, {"y": null}]));
            peer.answers(&call, json!({"resultType": "complete", "novel": {"z": 1e2}})).await;
        };
        let params = r#"{"x":[1,{"y":null}]}"#.parse().unwrap();
        let (result, ()) = tokio::join!(server.call_raw("acme/novel", params), script);
        assert!(result.unwrap().get("novel").is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn metadata_goes_along() {
    for revision in BOTH {
        let (server, mut peer) = open(&client(), revision, json!({})).await;
        let mut meta = Meta::new();
        meta.insert("com.example/tenant", "blue");
        let script = async {
            let call = peer.receives("tools/call").await;
            assert_eq!(call["params"]["_meta"]["com.example/tenant"], "blue");
            peer.answers(&call, text("ok")).await;
        };
        let (result, ()) = tokio::join!(server.call("t").meta(meta).send(), script);
        assert!(result.is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_one_message_where_there_is_such_a_thing() {
    let (server, mut peer) = open(&client(), BATCHES, json!({})).await;
    let script = async {
        let batch = peer.next().await.unwrap();
        let ids: Vec<&Value> = batch.as_array().unwrap().iter().map(|request| &request["id"]).collect();
        assert_eq!(batch[0]["params"], json!({"name": "a", "arguments": {}}));
        let answers = json!([
            {"jsonrpc": "2.0", "id": ids[1], "error": {"code": -32601, "message": "no"}},
            {"jsonrpc": "2.0", "id": ids[0], "result": {"content": []}},
        ]);
        peer.prints(answers.to_string()).await;
    };
    let batch = server.batch().call_tool("a", json!({})).request("prompts/list", "{}".parse().unwrap());
    let (results, ()) = tokio::join!(batch.send(), script);
    assert!(results[0].is_ok());
    assert!(matches!(&results[1], Err(Error::Rpc(error)) if error.code.0 == -32601));

    for revision in BOTH {
        let (server, mut peer) = open(&client(), revision, json!({})).await;
        let script = async {
            let one = peer.receives("tools/call").await;
            let other = peer.receives("tools/call").await;
            for call in [other, one] {
                let name = call["params"]["name"].as_str().unwrap().to_owned();
                peer.answers(&call, text(&name)).await;
            }
        };
        let batch = server.batch().call_tool("a", json!({})).call_tool("b", ()).call_tool("c", 5);
        let (results, ()) = tokio::join!(batch.send(), script);
        assert!(results[0].as_ref().unwrap().as_str().contains(r#""text":"a""#));
        assert!(results[1].as_ref().unwrap().as_str().contains(r#""text":"b""#));
        assert!(matches!(results[2], Err(Error::Misuse(_))));
    }
}

#[tokio::test(start_paused = true)]
async fn what_might_come_next_is_proposed() {
    for revision in BOTH {
        let (server, mut peer) = open(&client(), revision, json!({"completions": {}})).await;
        let script = async {
            let asked = peer.receives("completion/complete").await;
            assert_eq!(asked["params"]["ref"], json!({"type": "ref/prompt", "name": "greet"}));
            assert_eq!(asked["params"]["argument"], json!({"name": "city", "value": "B"}));
            assert_eq!(asked["params"]["context"], json!({"arguments": {"country": "Norway"}}));
            peer.answers(&asked, json!({"completion": {"values": ["Bergen", "Bodø"]}})).await;
        };
        let prompt = CompletionReference::Prompt(PromptReference::new("greet"));
        let context = [("country".to_owned(), "Norway".to_owned())];
        let (proposed, ()) = tokio::join!(server.complete(prompt, "city", "B", context), script);
        assert_eq!(proposed.unwrap().values, ["Bergen", "Bodø"]);
    }
}

#[tokio::test(start_paused = true)]
async fn what_an_extension_adds_passes_through() {
    let client =
        client().extension("io.modelcontextprotocol/tasks", serde_json::Map::new()).result_types(["task"]);
    let (server, mut peer) = open(&client, STATELESS, json!({})).await;
    let script = async {
        assert_eq!(peer.receives("acme/hint").await["params"]["x"], 1);
        let call = peer.receives("tools/call").await;
        peer.answers(&call, json!({"resultType": "task", "taskId": "7"})).await;
        // Of an extension that was not offered it would be a fault.
        let call = peer.receives("tools/call").await;
        peer.answers(&call, json!({"resultType": "novel"})).await;
    };
    let calls = async {
        server.notify("acme/hint", Some(r#"{"x":1}"#.parse().unwrap())).await.unwrap();
        let call = || server.call_raw("tools/call", r#"{"name":"t"}"#.parse().unwrap());
        assert_eq!(call().await.unwrap().get("taskId"), Some("\"7\""));
        assert!(matches!(call().await.unwrap_err(), Error::Protocol(_)));
    };
    tokio::join!(calls, script);
}
