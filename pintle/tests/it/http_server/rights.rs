//! What tools, prompts and resources require, and who has it: as a layer of the application says.

use std::sync::{Arc, Mutex};

use http::{HeaderValue, Request};
use pintle::{
    Client, Server,
    server::{
        Arguments, Authenticated, Caller, Cx, Decision, GateRequest, Installation, MethodRoute,
        MissingRights, PageRequest, Partial, ProtocolExtension, RequestError, ResourcePage, ResourceSource,
        Transform, http::Http, method, prompt, resource, source, template, tool,
    },
    types::schema::{ReadResourceResult, Resource, ResourceContents},
};
use serde_json::{Value, json};

use crate::support::{
    eras::{ALL, Client as EraClient, R1, R2, R4, R5},
    http_client::{Answer, Wire},
    line_client::Raw,
};

/// Opens the safe, if one may.
#[pintle::tool(requires("safe", "gold"))]
async fn open_safe(#[extract] cx: Cx) -> String {
    format!("open for {}", cx.principal().unwrap_or("anybody"))
}

#[pintle::tool(requires("safe"), hidden)]
async fn crack() -> &'static str {
    "cracked"
}

type Challenged = Arc<Mutex<Vec<(String, bool)>>>;

fn server() -> Server {
    Server::new("bank", "1")
        .tools(pintle::tools![open_safe, crack])
        .tool(tool("greet", || async { "Hello!" }))
        .resource(resource("gold://bar", "bar", || async { "heavy" }).requires(["gold"]))
}

/// A request by somebody with these rights.
fn by(
    mut request: Request<String>,
    rights: &'static [&'static str],
    notified: &Challenged,
) -> Request<String> {
    let notified = notified.clone();
    let ann = Authenticated::new("ann").rights(|right| rights.contains(&right)).challenge(
        move |lacking: &MissingRights<'_>| {
            notified.lock().unwrap().push((lacking.needed.join(" "), lacking.accumulates));
            Some(HeaderValue::from_static("Badge"))
        },
    );
    request.extensions_mut().insert(ann);
    request
}

fn call(id: u32, name: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name}})
}

fn modern(http: &Http, name: &str) -> Request<String> {
    let params = crate::support::line_client::modern(json!({"name": name}), json!({}));
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let wire = Wire::new(http).with("mcp-protocol-version", R5).with("mcp-method", "tools/call");
    wire.with("mcp-name", name).request("POST", "/mcp", body.to_string())
}

async fn text(mut answer: Answer) -> String {
    answer.json().await["result"]["content"][0]["text"].as_str().unwrap().to_owned()
}

/// A response that names the rights would say that there is such a tool.
#[tokio::test]
async fn what_a_gate_hides_is_unknown_and_not_forbidden() {
    let gate = |request: &GateRequest<'_>| match request.name() {
        "open_safe" => Decision::Hide,
        _ => Decision::Allow,
    };
    let (http, notified) = (server().gate(gate).http().unwrap(), Challenged::default());
    let wire = Wire::new(&http);
    let mut hidden = wire.send(by(modern(&http, "open_safe"), &[], &notified)).await;
    let mut absent = wire.send(by(modern(&http, "elsewhere"), &[], &notified)).await;
    assert_eq!(hidden.status, absent.status);
    let hidden = hidden.json().await.to_string().replace("open_safe", "elsewhere");
    assert_eq!(hidden, absent.json().await.to_string());
    assert_eq!(*notified.lock().unwrap(), []);
}

#[tokio::test]
async fn a_call_without_its_rights_is_forbidden_in_both_eras() {
    let (http, notified) = (server().http().unwrap(), Challenged::default());
    let wire = Wire::new(&http);
    let mut answer = wire.send(by(modern(&http, "open_safe"), &["safe"], &notified)).await;
    assert_eq!((answer.status.as_u16(), answer.header("www-authenticate")), (403, Some("Badge")));
    let reply = "`open_safe` needs more than the caller may: `gold`, `safe` is required";
    let error = json!({"code": -32600, "message": reply});
    assert_eq!(answer.json().await, json!({"jsonrpc": "2.0", "id": 1, "error": error}));
    let answer = wire.send(by(modern(&http, "open_safe"), &["safe", "gold"], &notified)).await;
    assert_eq!(text(answer).await, "open for ann");

    let open = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": R4,
        "capabilities": {}, "clientInfo": {"name": "raw", "version": "0"}}});
    let opened = wire.send(by(wire.request("POST", "/mcp", open.to_string()), &[], &notified)).await;
    let session = wire.with("mcp-session-id", opened.header("mcp-session-id").unwrap());
    let request = || session.request("POST", "/mcp", call(2, "open_safe").to_string());
    assert_eq!(session.send(by(request(), &["gold"], &notified)).await.status, 403);
    assert_eq!(text(session.send(by(request(), &["gold", "safe"], &notified)).await).await, "open for ann");
    assert_eq!(session.send(request()).await.status, 404, "nobody is not ann");
    assert_eq!(*notified.lock().unwrap(), [("gold safe".to_owned(), true), ("gold safe".to_owned(), false)]);
}

/// A request by somebody who has signed a body with this part.
fn signed(mut request: Request<String>, part: &'static str) -> Request<String> {
    let check = move |body: &[u8]| match String::from_utf8_lossy(body).contains(part) {
        true => Ok(()),
        false => Err(HeaderValue::from_static("Signature")),
    };
    request.extensions_mut().insert(Authenticated::new("ann").body(check));
    request
}

#[tokio::test]
async fn a_body_that_is_not_the_one_that_was_signed_is_refused_in_both_eras() {
    let http = server().http().unwrap().two_endpoints("/sse", "/messages");
    let wire = Wire::new(&http);
    let refuse = async |request: Request<String>| {
        let mut answer = wire.send(signed(request, "another")).await;
        assert_eq!((answer.status.as_u16(), answer.header("www-authenticate")), (401, Some("Signature")));
        let reply = answer.json().await;
        assert!(
            reply["error"]["message"].as_str().unwrap().contains("not the one that was signed"),
            "{reply}"
        );
    };
    refuse(modern(&http, "greet")).await;
    assert_eq!(text(wire.send(signed(modern(&http, "greet"), "greet")).await).await, "Hello!");

    let open = |revision: &str| {
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": revision,
            "capabilities": {}, "clientInfo": {"name": "raw", "version": "0"}}})
    };
    refuse(wire.request("POST", "/mcp", open(R4).to_string())).await;
    let opened = wire.send(signed(wire.request("POST", "/mcp", open(R4).to_string()), "raw")).await;
    let session = wire.with("mcp-session-id", opened.header("mcp-session-id").unwrap());
    let greet = || session.request("POST", "/mcp", call(2, "greet").to_string());
    refuse(greet()).await;
    assert_eq!(text(session.send(signed(greet(), "greet")).await).await, "Hello!");

    let mut stream = wire.send(signed(wire.request("GET", "/sse", ""), "")).await;
    let target = stream.event().await.unwrap().data;
    let post = |body: Value| wire.request("POST", &target, body.to_string());
    refuse(post(open(R1))).await;
    assert_eq!(wire.send(signed(post(open(R1)), "raw")).await.status, 202);
    assert_eq!(stream.message().await.unwrap()["id"], 0, "what was refused is not answered");
    refuse(post(call(3, "greet"))).await;
    assert_eq!(wire.send(signed(post(call(4, "greet")), "greet")).await.status, 202);
    assert_eq!(stream.message().await.unwrap()["id"], 4);
}

/// One resource.
struct Vault;

impl ResourceSource for Vault {
    async fn list(&self, _: Cx, _: PageRequest) -> Result<ResourcePage, RequestError> {
        Ok(self.describe("vault://coin").into_iter().collect())
    }

    fn describe(&self, uri: &str) -> Option<Resource> {
        (uri == "vault://coin").then(|| Resource::new(uri, "coin"))
    }

    async fn read(&self, _: Cx, uri: String) -> Result<ReadResourceResult, RequestError> {
        Ok(ReadResourceResult::new(vec![ResourceContents::text(uri, "round")]))
    }
}

/// An extension with a method.
struct Counting(MethodRoute);

impl ProtocolExtension for Counting {
    fn name(&self) -> &str {
        "com.example/counting"
    }

    fn install(self, counting: Installation) -> Installation {
        counting.for_all_clients().method(self.0)
    }
}

#[tokio::test]
async fn methods_and_sources_require_rights_as_tools_do() {
    let counts =
        || method("bank/count", |_: Cx, _: Value| async { Ok::<_, RequestError>(json!({"bars": 7})) });
    let requests = [
        ("bank/count", json!({}), None),
        ("resources/read", json!({"uri": "vault://coin"}), Some("vault://coin")),
    ];
    for is_hidden in [false, true] {
        let (mut count, mut vault) = (counts().requires(["gold"]), source(Vault).requires(["gold"]));
        if is_hidden {
            (count, vault) = (count.hidden(), vault.hidden());
        }
        let extended = Server::new("bank", "1").with(Counting(count.clone())).source(vault.clone());
        let server = Server::new("bank", "1").method(count).source(vault);
        let inner = Transform::new(Server::new("inner", "1").mount("b", server.clone()));
        let served = [
            server.clone(),
            Server::new("outer", "1").mount("b", server.clone()),
            Server::new("outer", "1").provider(inner),
            extended,
        ];
        let (https, notified) = (served.map(|server| server.http().unwrap()), Challenged::default());
        for ((method, params, name), http) in
            requests.iter().flat_map(|it| https.iter().map(move |http| (it, http)))
        {
            let ask = async |rights: &'static [&'static str]| {
                let params = crate::support::line_client::modern(params.clone(), json!({}));
                let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
                let mut wire = Wire::new(http).with("mcp-protocol-version", R5).with("mcp-method", *method);
                if let Some(name) = *name {
                    wire = wire.with("mcp-name", name);
                }
                let mut answer =
                    wire.send(by(wire.request("POST", "/mcp", body.to_string()), rights, &notified)).await;
                (answer.status.as_u16(), answer.json().await)
            };
            let (status, answer) = ask(&[]).await;
            assert_eq!(status == 403, !is_hidden, "{method} {answer}");
            assert!(answer["error"].is_object(), "{method} {answer}");
            assert_eq!(ask(&["gold"]).await.0, 200, "{method}");
            // The same without HTTP, also where it is mounted.
            for server in [server.clone(), Server::new("outer", "1").mount("b", server.clone())] {
                for (rights, is_met) in [(false, false), (true, true)] {
                    let caller = Caller::new().with(Authenticated::new("ann").rights(move |_| rights));
                    let mut notified = EraClient::over(Raw::known(&server, caller), R4, json!({})).await;
                    let answer = notified.call(method, params.clone()).await;
                    assert_eq!(answer["result"].is_object(), is_met, "{method} {answer}");
                    let listed = notified.call("resources/list", json!({})).await.to_string();
                    assert_eq!(listed.contains("coin"), is_met || !is_hidden, "{listed}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_batch_of_which_one_part_is_forbidden_does_not_begin() {
    let (http, notified) = (server().http().unwrap(), Challenged::default());
    let wire = Wire::new(&http).open(R2, json!({})).await;
    let batch = json!([call(1, "greet"), call(2, "open_safe"), {"jsonrpc": "2.0", "id": 3, "method": "resources/read",
        "params": {"uri": "gold://bar"}}]);
    let mut answer = wire.post(batch).await;
    assert_eq!(answer.status, 403);
    let reply = answer.json().await["error"]["message"].as_str().unwrap().to_owned();
    assert!(reply.ends_with("`gold`, `safe` is required, and the caller is not authenticated"), "{reply}");
    assert!(notified.lock().unwrap().is_empty());
    let fine = wire.post(json!([call(1, "greet")])).await;
    assert_eq!(fine.status, 200);
}

#[tokio::test]
async fn where_nobody_authenticates_nobody_has_rights_over_http() {
    let http = server().http().unwrap();
    let wire = Wire::new(&http);
    assert_eq!(wire.send(modern(&http, "open_safe")).await.status, 403);
    assert_eq!(text(wire.send(modern(&http, "greet")).await).await, "Hello!");
    let mut hidden = wire.send(modern(&http, "crack")).await;
    assert_eq!(hidden.json().await["error"]["message"], "no such tool: `crack`");
}

#[tokio::test]
async fn the_oldest_clients_are_answered_by_the_endpoint_for_messages() {
    let (http, notified) =
        (server().http().unwrap().two_endpoints("/sse", "/messages"), Challenged::default());
    let wire = Wire::new(&http);
    let mut stream = wire.send(by(wire.request("GET", "/sse", ""), &[], &notified)).await;
    let target = stream.event().await.unwrap().data;
    let post = |body: Value, rights: &'static [&'static str]| {
        wire.send(by(wire.request("POST", &target, body.to_string()), rights, &notified))
    };
    let open = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": R1,
        "capabilities": {}, "clientInfo": {"name": "raw", "version": "0"}}});
    assert_eq!(post(open, &[]).await.status, 202);
    stream.message().await.unwrap();
    assert_eq!(post(call(1, "open_safe"), &["gold"]).await.status, 403);
    assert_eq!(post(call(2, "open_safe"), &["gold", "safe"]).await.status, 202);
    assert_eq!(stream.message().await.unwrap()["id"], 2);
}

/// The client is not known before its handshake, and what gates hide from it neither: a response that names rights would tell.
#[tokio::test]
async fn before_the_handshake_rights_are_checked_where_no_gate_decides() {
    let hide = |request: &GateRequest<'_>| match request.name() {
        "open_safe" => Decision::Hide,
        _ => Decision::Allow,
    };
    for (server, status) in [(server(), 403), (server().gate(hide), 202)] {
        let http = server.http().unwrap().two_endpoints("/sse", "/messages");
        let (wire, notified) = (Wire::new(&http), Challenged::default());
        let mut stream = wire.send(by(wire.request("GET", "/sse", ""), &[], &notified)).await;
        let target = stream.event().await.unwrap().data;
        let early = wire.request("POST", &target, call(1, "open_safe").to_string());
        assert_eq!(wire.send(by(early, &[], &notified)).await.status, status);
    }
}

#[tokio::test]
async fn on_a_pipe_everything_is_the_users_own() {
    let pipe = Client::new("user", "1").connect(server().in_process().unwrap()).await.unwrap();
    assert_eq!(pipe.tools().await.unwrap().len(), 3);
    assert_eq!(pipe.call_tool("open_safe", ()).await.unwrap().text(), "open for anybody");
    assert_eq!(pipe.call_tool("crack", ()).await.unwrap().text(), "cracked");
}

#[tokio::test]
async fn who_is_known_on_another_connection_is_judged_by_the_handlers_door() {
    for revision in ALL {
        let ann = Caller::new().with(Authenticated::new("ann").rights(|right| right == "gold"));
        let mut client = EraClient::over(Raw::known(&server(), ann), revision, json!({})).await;
        let tools = client.call("tools/list", json!({})).await;
        let names: Vec<_> =
            tools["result"]["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
        assert_eq!(names, ["open_safe", "greet"], "{revision}");
        let reply = client.call("tools/call", json!({"name": "open_safe"})).await;
        assert_eq!(reply["error"]["message"], "`open_safe` needs more than the caller may", "{revision}");
        let read = client.call("resources/read", json!({"uri": "gold://bar"})).await;
        assert_eq!(read["result"]["contents"][0]["text"], "heavy", "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_stream_of_the_oldest_clients_ends_with_what_it_was_opened_by() {
    let (hold, done) = (Arc::new(tokio::sync::Notify::new()), Arc::new(tokio::sync::Notify::new()));
    let (waits, begun) = (hold.clone(), done.clone());
    let server = Server::new("bank", "1").tool(tool("wait", move || {
        let (waits, begun) = (waits.clone(), begun.clone());
        async move {
            begun.notify_one();
            waits.notified().await;
            "waited"
        }
    }));
    let http = server.http().unwrap().two_endpoints("/sse", "/messages");
    let wire = Wire::new(&http);
    for running in [false, true] {
        let until = std::time::SystemTime::now() + std::time::Duration::from_secs(60);
        let ann = Authenticated::new("ann").until(until);
        let with = |mut request: Request<String>| {
            request.extensions_mut().insert(ann.clone());
            request
        };
        let mut stream = wire.send(with(wire.request("GET", "/sse", ""))).await;
        let target = stream.event().await.unwrap().data;
        let post = |body: Value| wire.send(with(wire.request("POST", &target, body.to_string())));
        let open = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": R1,
            "capabilities": {}, "clientInfo": {"name": "raw", "version": "0"}}});
        assert_eq!(post(open).await.status, 202);
        stream.message().await.unwrap();
        if running {
            assert_eq!(post(call(1, "wait")).await.status, 202);
            done.notified().await;
            let reading = tokio::spawn(async move { (stream.message().await, stream.message().await) });
            tokio::time::sleep(std::time::Duration::from_secs(90)).await;
            // No other call begins, and this one comes to its end.
            assert_eq!(post(call(2, "wait")).await.status, 404);
            hold.notify_one();
            let (answer, end) = reading.await.unwrap();
            assert_eq!(answer.unwrap()["result"]["content"][0]["text"], "waited");
            assert_eq!(end, None);
        } else {
            assert_eq!(stream.message().await, None);
            drop(stream);
        }
        assert_eq!(post(call(3, "wait")).await.status, 404);
        assert_eq!(http.sessions(), 0);
    }
}

#[tokio::test]
async fn a_method_that_names_nothing_required_passes_and_judges_for_itself() {
    let judged = |cx: Cx, _: Value| async move {
        match cx.principal() {
            Some(name) => Ok(json!({"for": name})),
            None => Err(pintle::types::RpcError::invalid_request("not for everybody")),
        }
    };
    let (http, notified) =
        (server().method(method("bank/count", judged)).http().unwrap(), Challenged::default());
    let wire = Wire::new(&http).with("mcp-protocol-version", R5).with("mcp-method", "bank/count");
    // It has the name of what is protected among its params, which means nothing in a method that the table does not have.
    let params = crate::support::line_client::modern(json!({"name": "open_safe"}), json!({}));
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "bank/count", "params": params});
    let request = || wire.request("POST", "/mcp", body.to_string());
    let mut answer = wire.send(by(request(), &[], &notified)).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json().await["result"]["for"], "ann");
    let mut refused = wire.send(request()).await;
    assert_eq!(refused.json().await["error"]["message"], "not for everybody");
    assert!(notified.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_completion_requires_the_rights_of_what_it_completes() {
    let values = |_: Partial| async { vec!["secret"] };
    let server = Server::new("bank", "1")
        .tool_completion()
        .prompt(
            prompt("vault", || async { "" })
                .argument("key", "The key.")
                .complete("key", values)
                .requires(["gold"]),
        )
        .template(
            template("vault://{key}", "vault", || async { "" }).complete("key", values).requires(["gold"]),
        )
        .tool(
            tool("vault", |_: Arguments| async { "" })
                .input_schema(json!({"type": "object", "properties": {"key": {"type": "string"}}}))
                .complete("key", values)
                .requires(["gold"]),
        );
    let (http, notified) = (server.http().unwrap(), Challenged::default());
    let wire = Wire::new(&http);
    let open = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": R4,
        "capabilities": {}, "clientInfo": {"name": "raw", "version": "0"}}});
    let opened = wire.send(by(wire.request("POST", "/mcp", open.to_string()), &[], &notified)).await;
    let session = wire.with("mcp-session-id", opened.header("mcp-session-id").unwrap());
    let stateless = wire.with("mcp-protocol-version", R5).with("mcp-method", "completion/complete");
    for reference in [
        json!({"type": "ref/prompt", "name": "vault"}),
        json!({"type": "ref/resource", "uri": "vault://{key}"}),
        json!({"type": "ref/resource", "uri": "vault://front"}),
        json!({"type": "ref/tool", "name": "vault"}),
    ] {
        let params = json!({"ref": reference, "argument": {"name": "key", "value": ""}});
        let stamped = crate::support::line_client::modern(params.clone(), json!({}));
        for (wire, params) in [(&session, params), (&stateless, stamped)] {
            let body = json!({"jsonrpc": "2.0", "id": 1, "method": "completion/complete", "params": params});
            let request = || wire.request("POST", "/mcp", body.to_string());
            let mut refused = wire.send(by(request(), &["safe"], &notified)).await;
            assert_eq!(refused.status, 403, "{reference}");
            assert!(!refused.json().await.to_string().contains("secret"));
            let mut allowed = wire.send(by(request(), &["gold"], &notified)).await;
            let values = allowed.json().await["result"]["completion"]["values"].clone();
            assert_eq!(values, json!(["secret"]), "{reference}");
        }
    }
}
