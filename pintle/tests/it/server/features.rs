//! What a server offers, as a client of every revision sees it: in the words that its revision has, and no others.

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use pintle::{
    Server,
    server::{
        Args, CacheHint, Cx, Json, ListKind, RequestError, ToolError, prompt, resource, template, tool,
    },
    types::schema::{
        Annotations, CacheScope, ContentBlock, CreateMessageParams, Icon, ReadResourceResult,
        ResourceContents,
    },
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::support::{
    eras::{ALL, Client, R1, R2, R3, R4, R5, each},
    line_client::{Raw, modern},
};

fn since(revision: &str, first: &str, value: Value) -> Value {
    if revision < first { Value::Null } else { value }
}

#[tokio::test]
async fn titles_icons_and_annotations_are_for_those_who_know_them() {
    let icon = || Icon::new("https://example.com/i.png");
    let mut shown = Annotations::new();
    shown.priority = Some(0.5);
    let server = Server::new("s", "0")
        .tool(tool("t", || async { "" }).title("Tool").icon(icon()).read_only())
        .prompt(prompt("p", || async { String::new() }).title("Prompt").icon(icon()))
        .resource(
            resource("r://1", "r", || async { "" }).title("Resource").icon(icon()).annotations(shown.clone()),
        )
        .template(
            template("t://{x}", "t", || async { "" }).title("Template").icon(icon()).annotations(shown),
        );
    each(&server, &ALL, json!({}), async |client: &mut Client| {
        for (method, list, title) in [
            ("tools/list", "tools", "Tool"),
            ("prompts/list", "prompts", "Prompt"),
            ("resources/list", "resources", "Resource"),
            ("resources/templates/list", "resourceTemplates", "Template"),
        ] {
            let entry = client.call(method, json!({})).await["result"][list][0].clone();
            assert_eq!(
                entry["title"],
                since(client.revision, R3, title.into()),
                "{entry} {}",
                client.revision
            );
            let src = since(client.revision, R4, "https://example.com/i.png".into());
            assert_eq!(entry["icons"][0]["src"], src, "{entry} {}", client.revision);
            match list {
                "tools" => {
                    let hint = since(client.revision, R2, true.into());
                    assert_eq!(entry["annotations"]["readOnlyHint"], hint, "{entry}");
                }
                "prompts" => {}
                _ => assert_eq!(entry["annotations"]["priority"], 0.5, "{entry}"),
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_server_says_who_it_is_and_how_to_use_it() {
    let server = Server::new("s", "7")
        .title("Server")
        .website("https://example.com")
        .instructions("Ask first.")
        .experimental("acme", json!({"a": 1}))
        .tool(tool("t", || async { "" }));
    for revision in ALL {
        let mut raw = Raw::new(&server);
        let result = if revision == R5 {
            raw.request("server/discover", modern(json!({}), json!({}))).await;
            raw.recv().await["result"].clone()
        } else {
            let params = json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "c", "version": "0"}});
            raw.request("initialize", params).await;
            raw.recv().await["result"].clone()
        };
        assert_eq!(result["instructions"], "Ask first.", "{result}");
        assert_eq!(result["capabilities"]["tools"]["listChanged"], true);
        assert_eq!(result["capabilities"]["experimental"], json!({"acme": {"a": 1}}), "{result}");
        assert!(result["capabilities"].get("logging").is_none(), "nobody offered it: {result}");
        let info = match revision {
            R5 => &result["_meta"]["io.modelcontextprotocol/serverInfo"],
            _ => &result["serverInfo"],
        };
        assert_eq!((&info["name"], &info["version"]), (&json!("s"), &json!("7")), "{result}");
        assert_eq!(info["title"], since(revision, R3, "Server".into()));
        assert_eq!(info["websiteUrl"], since(revision, R4, "https://example.com".into()));
    }
}

#[tokio::test]
async fn every_list_and_every_resource_says_how_long_it_may_be_kept() {
    let kept = |seconds: u64| CacheHint::new(seconds * 1000, CacheScope::Public);
    let own = || async {
        let mut result = ReadResourceResult::new(vec![ResourceContents::text("r://own", "own")]);
        result.ttl_ms = Some(7000);
        result
    };
    let server = Server::new("s", "0")
        .cache_lists(kept(1))
        .cache_list(ListKind::Tools, kept(2))
        .cache_list(ListKind::Templates, kept(3))
        .tool(tool("t", || async { "" }))
        .prompt(prompt("p", || async { String::new() }))
        .resource(resource("r://kept", "kept", || async { "kept" }).cache(kept(4)))
        .resource(resource("r://not", "not", || async { "not kept" }))
        .resource(
            resource("r://gone", "gone", || async { Err::<String, _>(RequestError::not_found()) })
                .cache(kept(4)),
        )
        .resource(resource("r://own", "own", own))
        .template(template("t://{x}", "t", || async { "" }).cache(kept(5)));
    each(&server, &ALL, json!({}), async |client: &mut Client| {
        for (method, params, ttl, scope) in [
            ("tools/list", json!({}), 2000, "public"),
            ("prompts/list", json!({}), 1000, "public"),
            ("resources/list", json!({}), 1000, "public"),
            ("resources/templates/list", json!({}), 3000, "public"),
            ("resources/read", json!({"uri": "r://kept"}), 4000, "public"),
            ("resources/read", json!({"uri": "r://not"}), 0, "private"),
            ("resources/read", json!({"uri": "r://own"}), 7000, "private"),
            ("resources/read", json!({"uri": "t://1"}), 5000, "public"),
        ] {
            let result = client.call(method, params).await["result"].clone();
            let notified = (&result["ttlMs"], &result["cacheScope"]);
            let expected = (since(client.revision, R5, ttl.into()), since(client.revision, R5, scope.into()));
            assert_eq!(notified, (&expected.0, &expected.1), "{method} {result}");
        }
        let gone = client.call("resources/read", json!({"uri": "r://gone"})).await;
        assert!(gone["error"].is_object() && !gone.to_string().contains("ttlMs"), "{gone}");
    })
    .await;
}

#[tokio::test]
async fn arguments_of_a_prompt_are_checked() {
    let greet = |arguments: pintle::server::PromptArguments| async move {
        format!("{} {}", arguments["who"], arguments.get("how").map_or("-", String::as_str))
    };
    let server =
        Server::new("s", "0").prompt(prompt("greet", greet).argument("who", "Whom.").optional("how", "How."));
    each(&server, &ALL, json!({}), async |client: &mut Client| {
        let got = client.call("prompts/get", json!({"name": "greet", "arguments": {"who": "Ann"}})).await;
        assert_eq!(got["result"]["messages"][0]["content"]["text"], "Ann -", "{got}");
        for (params, detail) in [
            (json!({"name": "greet"}), "the prompt `greet` needs `who`"),
            (json!({"name": "greet", "arguments": {"how": "loud"}}), "the prompt `greet` needs `who`"),
            (json!({"name": "nobody"}), "no such prompt: `nobody`"),
        ] {
            let refused = client.call("prompts/get", params).await;
            assert_eq!(refused["error"]["code"], -32602, "{refused}");
            assert_eq!(refused["error"]["message"], detail);
        }
    })
    .await;
}

#[tokio::test]
async fn variables_of_a_template_have_types_and_lead_nowhere_else() {
    #[derive(Deserialize)]
    struct Lines {
        file: String,
        from: Option<u32>,
    }
    let lines = |vars: pintle::uri::Vars| async move {
        let Lines { file, from } = vars.decode()?;
        Ok::<_, RequestError>(format!("{file} {}", from.unwrap_or(1)))
    };
    let server = Server::new("s", "0")
        .template(template("src://{+file}{?from}", "lines", lines).mime_type("text/x-rust"))
        .resource(resource("bin://1", "bytes", || async { vec![0_u8, 255] }).mime_type("image/png"));
    each(&server, &ALL, json!({}), async |client: &mut Client| {
        let mut read = async |uri: &str| client.call("resources/read", json!({"uri": uri})).await;
        assert_eq!(read("src://a/b.rs?from=7").await["result"]["contents"][0]["text"], "a/b.rs 7");
        assert_eq!(read("src://a").await["result"]["contents"][0]["mimeType"], "text/x-rust");
        assert_eq!(read("src://a%20b").await["result"]["contents"][0]["text"], "a b 1");
        let bytes = read("bin://1").await["result"]["contents"][0].clone();
        assert_eq!((&bytes["blob"], &bytes["mimeType"]), (&json!("AP8="), &json!("image/png")));
        let untyped = read("src://a?from=x").await;
        assert!(untyped["error"]["message"].as_str().unwrap().contains("`from`"), "{untyped}");
        for out in ["src://../a", "src://a/%2e%2e/b", "src://..%2fa", "src:///etc/passwd"] {
            let refused = read(out).await;
            assert!(refused.get("error").is_some(), "{out}: {refused}");
        }
    })
    .await;
}

#[tokio::test]
async fn structured_results_and_every_kind_of_content() {
    #[derive(JsonSchema, Serialize)]
    struct Sum {
        sum: i64,
    }
    #[derive(Deserialize, JsonSchema)]
    #[serde(tag = "kind", rename_all = "lowercase")]
    enum Shape {
        Square { side: i64 },
        Line { length: i64 },
    }
    #[derive(Deserialize, JsonSchema)]
    struct Shapes {
        shape: Shape,
    }
    let area = |Args(Shapes { shape })| async move {
        Json(Sum {
            sum: match shape {
                Shape::Square { side } => side * side,
                Shape::Line { length } => length,
            },
        })
    };
    let blocks: Vec<ContentBlock> = serde_json::from_value(json!([
        {"type": "text", "text": "a"},
        {"type": "image", "data": "AA==", "mimeType": "image/png"},
        {"type": "audio", "data": "AA==", "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "r://1", "text": "r"}},
        {"type": "resource_link", "uri": "r://1", "name": "r"},
    ]))
    .unwrap();
    let server = Server::new("s", "0").tool(tool("area", area)).tool(tool("all", move || {
        let blocks = blocks.clone();
        async move { blocks }
    }));
    each(&server, &ALL, json!({}), async |client: &mut Client| {
        let listed = client.call("tools/list", json!({})).await["result"]["tools"][0].clone();
        assert_eq!(listed.get("outputSchema").is_some(), client.revision >= R3, "{listed}");
        let arguments = json!({"shape": {"kind": "square", "side": 3}});
        let result =
            client.call("tools/call", json!({"name": "area", "arguments": arguments})).await["result"]
                .clone();
        assert_eq!(result["content"][0]["text"], r#"{"sum":9}"#);
        assert_eq!(result["structuredContent"], since(client.revision, R3, json!({"sum": 9})), "{result}");
        let wrong = client
            .call("tools/call", json!({"name": "area", "arguments": {"shape": {"kind": "cube"}}}))
            .await;
        match client.revision {
            R1 | R2 | R3 => assert_eq!(wrong["error"]["code"], -32602, "{wrong}"),
            _ => assert_eq!(wrong["result"]["isError"], true, "{wrong}"),
        }

        let result = client.call("tools/call", json!({"name": "all"})).await["result"].clone();
        let kinds: Vec<_> =
            result["content"].as_array().unwrap().iter().map(|block| block["type"].clone()).collect();
        let (audio, link) = match client.revision {
            R1 => ("text", "text"),
            R2 => ("audio", "text"),
            _ => ("audio", "resource_link"),
        };
        assert_eq!(kinds, ["text", "image", audio, "resource", link], "{result}");
    })
    .await;
}

#[tokio::test]
async fn a_cancelled_call_is_dropped_and_never_answered() {
    struct Dropped(Arc<Notify>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.notify_one();
        }
    }
    let (begun, dropped) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let stuck = {
        let (begun, dropped) = (begun.clone(), dropped.clone());
        move || {
            let (begun, dropped) = (begun.clone(), Dropped(dropped.clone()));
            async move {
                begun.notify_one();
                pending::<()>().await;
                drop(dropped);
                ""
            }
        }
    };
    let server = Server::new("s", "0").tool(tool("stuck", stuck)).tool(tool("quick", || async { "quick" }));
    each(&server, &ALL, json!({}), async |client: &mut Client| {
        let id = client.send("tools/call", json!({"name": "stuck"})).await;
        begun.notified().await;
        client.notify("notifications/cancelled", json!({"requestId": id})).await;
        dropped.notified().await;
        // `until` inside would not accept an answer to anything else.
        assert_eq!(client.tool("quick").await, "quick");
    })
    .await;
}

fn written(prompt: &str) -> CreateMessageParams {
    let message = json!({"role": "user", "content": {"type": "text", "text": prompt}});
    serde_json::from_value(json!({"messages": [message], "maxTokens": 10})).unwrap()
}

#[tokio::test]
async fn two_questions_and_an_act_between_them_where_every_revision_can_answer() {
    let acts = Arc::new(AtomicUsize::new(0));
    let counted = acts.clone();
    let work = move |cx: Cx| {
        let acts = counted.clone();
        async move {
            let first = cx.sample("first", written("one")).await?.model;
            let known = cx.once_value::<usize>("act")?;
            let number = cx.once("act", async { acts.fetch_add(1, Ordering::SeqCst) + 1 }).await?;
            let is_kept = known.is_none_or(|known| known == number)
                && cx.once_value::<usize>("act")? == Some(number)
                && cx.once_value::<String>("act").is_err();
            let second = cx.sample("second", written("two")).await?.model;
            let roots = cx.roots().await?.len();
            Ok::<_, ToolError>(format!("{first} {is_kept} {second} {roots}"))
        }
    };
    let server = Server::new("s", "0").tool(tool("work", work));
    each(&server, &ALL, json!({"sampling": {}, "roots": {}}), async |client: &mut Client| {
        client.answer = Box::new(|method, params| match method {
            "roots/list" => json!({"roots": []}),
            _ => {
                let asked = params["messages"][0]["content"].clone();
                let text = asked.get("text").unwrap_or(&asked[0]["text"]);
                json!({"role": "assistant", "model": text, "content": {"type": "text", "text": ""}})
            }
        });
        let before = acts.load(Ordering::SeqCst);
        assert_eq!(client.tool("work").await, "one true two 0");
        assert_eq!(client.questions, 3);
        assert_eq!(acts.load(Ordering::SeqCst), before + 1, "{}", client.revision);
    })
    .await;
}

#[tokio::test]
async fn a_model_is_offered_tools_where_it_can_use_them() {
    let ask = |cx: Cx| async move {
        if !cx.can_sample_with_tools() {
            return Ok(format!("{} {}", cx.can_sample(), cx.can_list_roots()));
        }
        let mut request = written("weather?");
        let tools = json!([{"name": "look", "inputSchema": {"type": "object"}}]);
        request.tools = Some(serde_json::from_value(tools).unwrap());
        let result = cx.sample("weather", request).await?;
        let used = result.content.as_slice().iter().find_map(|block| match block {
            ContentBlock::ToolUse(used) => Some(used.name.clone()),
            _ => None,
        });
        Ok::<_, ToolError>(used.unwrap_or_default())
    };
    let server = Server::new("s", "0").tool(tool("ask", ask));
    each(&server, &[R4, R5], json!({"sampling": {"tools": {}}}), async |client: &mut Client| {
        client.answer = Box::new(|_, params| {
            assert_eq!(params["tools"][0]["name"], "look");
            json!({"role": "assistant", "model": "m", "stopReason": "toolUse",
                "content": [{"type": "tool_use", "id": "1", "name": "look", "input": {}}]})
        });
        assert_eq!(client.tool("ask").await, "look");
    })
    .await;
    each(&server, &ALL, json!({"sampling": {}}), async |client: &mut Client| {
        assert_eq!(client.tool("ask").await, "true false");
    })
    .await;
    each(&server, &ALL, json!({"roots": {}}), async |client: &mut Client| {
        assert_eq!(client.tool("ask").await, "false true");
    })
    .await;
}

#[tokio::test]
async fn questions_asked_together_and_the_explicit_form() {
    let joined = |cx: Cx| async move {
        let (model, roots) = tokio::join!(cx.sample("model", written("one")), cx.roots());
        Ok::<_, ToolError>(format!("{} {}", model?.model, roots?.len()))
    };
    let explicit = |cx: Cx| async move {
        use pintle::server::Question;
        let questions = [
            ("model".to_owned(), Question::Sample(Box::new(written("one")))),
            ("roots".to_owned(), Question::Roots),
        ];
        let answers = cx.ask_all(questions).await?;
        Ok::<_, ToolError>(answers.into_keys().collect::<Vec<_>>().join(" "))
    };
    let server = Server::new("s", "0").tool(tool("joined", joined)).tool(tool("explicit", explicit));
    each(&server, &ALL, json!({"sampling": {}, "roots": {}}), async |client: &mut Client| {
        client.answer = Box::new(|method, _| match method {
            "roots/list" => json!({"roots": [{"uri": "file:///a"}]}),
            _ => json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": ""}}),
        });
        assert_eq!(client.tool("joined").await, "m 1");
        assert_eq!(client.tool("explicit").await, "model roots");
        assert_eq!(client.questions, 4);
    })
    .await;
}

#[tokio::test]
async fn who_is_calling_is_known_in_every_revision() {
    let who = |cx: Cx| async move {
        let info = cx.peer().info.as_ref();
        format!("{} {}", cx.peer().revision.as_str(), info.map_or("?", |info| &info.name))
    };
    let server = Server::new("s", "0").tool(tool("who", who));
    each(&server, &ALL, json!({}), async |client: &mut Client| {
        let me = json!({"io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "0"}});
        let answer = client.call("tools/call", json!({"name": "who", "_meta": me})).await;
        let expected = format!("{} raw", client.revision);
        assert_eq!(answer["result"]["content"][0]["text"], expected, "{answer}");
    })
    .await;
}

#[tokio::test]
async fn an_unsubscribed_client_receives_nothing_more() {
    let server = Server::new("s", "0")
        .resource(resource("r://1", "one", || async { "1" }))
        .resource(resource("r://2", "two", || async { "2" }));
    each(&server, &ALL, json!({}), async |client: &mut Client| {
        client.listen(&["r://2"]).await;
        let listen = if client.revision == R5 {
            let only = json!({"notifications": {"resourceSubscriptions": ["r://1"]}});
            let id = client.send("subscriptions/listen", only).await;
            assert_eq!(client.receive().await["method"], "notifications/subscriptions/acknowledged");
            id
        } else {
            client.call("resources/subscribe", json!({"uri": "r://1"})).await;
            0
        };
        server.resource_updated("r://1");
        assert_eq!(client.receive().await["params"]["uri"], "r://1");
        if client.revision == R5 {
            client.notify("notifications/cancelled", json!({"requestId": listen})).await;
        } else {
            let done = client.call("resources/unsubscribe", json!({"uri": "r://1"})).await;
            assert!(done["result"].is_object(), "{done}");
        }
        // Whatever was said before has been read when this is answered.
        client.call("resources/list", json!({})).await;
        client.received();
        server.resource_updated("r://1");
        server.resource_updated("r://2");
        assert_eq!(client.receive().await["params"]["uri"], "r://2", "{}", client.revision);
    })
    .await;
}
