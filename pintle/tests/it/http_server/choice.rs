//! Who may what when nothing is known of the caller, and when one endpoint has several servers.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::Frame;
use pintle::{
    Server,
    server::{Authenticated, Caller, Cx, Entry, Principal, http::Http, prompt, resource, tool},
    transport::{listen_tcp, tcp},
};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tower_service::Service as _;

use crate::support::{
    eras::{ALL, Client as EraClient, R4, R5},
    http_client::{Answer, Wire},
    line_client::Raw,
};

fn safe() -> pintle::server::ToolRoute {
    tool("open", || async { "open" }).requires(["safe"])
}

/// Tenant `a` has a restricted tool, tenant `b` has none.
fn tenants() -> Http {
    let a = Server::new("a", "1").tool(safe());
    let b = Server::new("b", "1").tool(tool("greet", || async { "Hello!" }));
    let http = a.http().unwrap();
    http.choose(move |head| if head.headers.contains_key("x-b") { b.clone() } else { a.clone() })
}

fn call(name: &str) -> Value {
    json!({"name": name, "arguments": {}})
}

#[tokio::test]
async fn a_session_is_judged_by_its_own_server_whichever_the_request_chooses() {
    let wire = Wire::new(&tenants()).open(R4, json!({})).await;
    assert_eq!(wire.call(1, "tools/call", call("open")).await.status, 403);
    let other = wire.with("x-b", "1").call(2, "tools/call", call("open")).await;
    assert_eq!(other.status, 403);
}

/// A body that comes when it is let.
struct Late(Option<oneshot::Receiver<String>>);

impl http_body::Body for Late {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(coming) = &mut self.0 else { return Poll::Ready(None) };
        let text = std::task::ready!(Pin::new(coming).poll(cx)).unwrap();
        self.0 = None;
        Poll::Ready(Some(Ok(Frame::data(text.into()))))
    }
}

#[tokio::test]
async fn what_is_required_since_the_head_was_read_is_required() {
    let server = Server::new("growing", "1").may_change();
    let http = server.http().unwrap();
    let session = Wire::new(&http).open(R4, json!({})).await;
    let modern = crate::support::line_client::modern(call("open"), json!({}));
    for (wire, params) in [
        (session, call("open")),
        (
            Wire::new(&http)
                .with("mcp-protocol-version", R5)
                .with("mcp-method", "tools/call")
                .with("mcp-name", "open"),
            modern,
        ),
    ] {
        server.remove_tool("open");
        let (send, coming) = oneshot::channel();
        let request = wire.request("POST", "/mcp", "").map(|_| Late(Some(coming)));
        let mut answering = tokio::spawn(http.clone().call(request));
        // The head is read, and the body is waited for.
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        assert!(futures_pending(&mut answering).await);
        server.add_tool(safe()).unwrap();
        let text = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        send.send(text.to_string()).unwrap();
        let mut answer = Answer::new(answering.await.unwrap().unwrap());
        let reply = answer.json().await;
        assert_eq!(reply.get("result"), None, "{reply}");
    }
}

async fn futures_pending<F: Future + Unpin>(future: &mut F) -> bool {
    std::future::poll_fn(|cx| Poll::Ready(Pin::new(&mut *future).poll(cx).is_pending())).await
}

#[tokio::test]
async fn a_subscription_gets_nothing_of_what_became_restricted() {
    let server = Server::new("growing", "1")
        .may_change()
        .resource(resource("gold://bar", "bar", || async { "heavy" }));
    let http = server.http().unwrap();
    let wire = Wire::new(&http);
    let params =
        json!({"notifications": {"resourceSubscriptions": ["gold://bar"], "toolsListChanged": true}});
    let mut listening = wire.modern(1, "subscriptions/listen", params, json!({})).await;
    listening.message().await.unwrap();
    server.remove_resource("gold://bar");
    server.add_resource(resource("gold://bar", "bar", || async { "heavy" }).requires(["gold"])).unwrap();
    server.resource_updated("gold://bar");
    server.add_tool(tool("greet", || async { "Hello!" })).unwrap();
    let notified = listening.message().await.unwrap();
    assert_eq!(notified["method"], "notifications/tools/list_changed");
}

#[tokio::test]
async fn whoever_connects_by_tcp_is_nobody() {
    let server = Server::new("bank", "1").tool(safe()).tool(tool("who", |cx: Cx| async move { who(&cx) }));
    let mut listener = listen_tcp("127.0.0.1:0").await.unwrap();
    let client = tcp(listener.address().unwrap()).await.unwrap();
    drop(server.serve(listener.accept().await.unwrap()).unwrap());
    let client = pintle::Client::new("c", "1").connect(client).await.unwrap();
    let error = client.call_tool("open", ()).await.unwrap_err().to_string();
    assert!(
        error.contains("`open` needs more than the caller may, and the caller is not authenticated"),
        "{error}"
    );
    assert_eq!(client.call_tool("who", ()).await.unwrap().text(), "anonymous");
}

fn who(cx: &Cx) -> String {
    match cx.identity() {
        Principal::Local => "local".to_owned(),
        Principal::Anonymous => "anonymous".to_owned(),
        Principal::Named(name) => name.to_owned(),
    }
}

#[tokio::test]
async fn a_caller_is_nobody_unless_it_is_said_to_be_somebody() {
    let server = Server::new("bank", "1").tool(safe()).tool(tool("who", |cx: Cx| async move { who(&cx) }));
    for (caller, name, opens) in [
        (Caller::new(), "anonymous", false),
        (Caller::new().principal("ann"), "ann", false),
        (Caller::new().with(Authenticated::new("ann")), "ann", true),
        (Caller::new().with(Authenticated::new("ann").rights(|_| false)), "ann", false),
        (Caller::local(), "local", true),
    ] {
        let mut client = EraClient::over(Raw::known(&server, caller), R5, json!({})).await;
        let reply = client.call("tools/call", call("who")).await;
        assert_eq!(reply["result"]["content"][0]["text"], name);
        let opened = client.call("tools/call", call("open")).await;
        assert_eq!(opened.get("result").is_some(), opens, "{opened}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn whoever_opens_a_unix_socket_is_the_user() {
    use pintle::transport::{listen_unix, unix};
    let path = std::env::temp_dir().join(format!("pintle-tenants-{}.sock", std::process::id()));
    let mut listener = listen_unix(&path).unwrap();
    let client = unix(&path).await.unwrap();
    drop(Server::new("bank", "1").tool(safe()).serve(listener.accept().await.unwrap()).unwrap());
    let client = pintle::Client::new("c", "1").connect(client).await.unwrap();
    assert_eq!(client.call_tool("open", ()).await.unwrap().text(), "open");
}

/// Everything in it requires something, and what begins with `x` is shown to nobody.
fn filtered() -> Server {
    let values = |_: pintle::server::Partial| async { vec!["gold"] };
    let route = |name: &str| {
        prompt(name, |_: pintle::server::PromptArguments| async { "hi" })
            .argument("kind", "Which.")
            .complete("kind", values)
            .requires(["safe"])
    };
    Server::new("bank", "1")
        .tool(tool("xopen", || async { "open" }).requires(["safe"]))
        .prompt(route("xgreet"))
        .prompt(route("greet"))
        .resource(resource("gold://x", "xbar", || async { "heavy" }).requires(["safe"]))
        .filter(|_, entry| match entry {
            Entry::Tool(tool) => !tool.name.starts_with('x'),
            Entry::Prompt(prompt) => !prompt.name.starts_with('x'),
            Entry::Resource(resource) => !resource.name.starts_with('x'),
            Entry::Template(_) | Entry::Method(_) => true,
        })
}

#[tokio::test]
async fn what_a_filter_hides_is_not_there_even_if_it_requires_something() {
    let http = filtered().http().unwrap();
    let session = Wire::new(&http).open(R4, json!({})).await;
    let complete = |name: &str| json!({"ref": {"type": "ref/prompt", "name": name}, "argument": {"name": "kind", "value": ""}});
    let asked = [
        ("tools/call", call("xopen"), "no such tool: `xopen`"),
        (
            "prompts/get",
            json!({"name": "xgreet", "arguments": {}}),
            "no such prompt: `xgreet`; did you mean `greet`?",
        ),
        ("resources/read", json!({"uri": "gold://x"}), "no such resource: `gold://x`"),
        ("completion/complete", complete("xgreet"), "`ref` names nothing that this server has"),
    ];
    for (method, params, expected) in asked {
        let mut old = session.call(1, method, params.clone()).await;
        let mut new = Wire::new(&http).modern(1, method, params, json!({})).await;
        for answer in [&mut old, &mut new] {
            assert_ne!(answer.status, 403, "{method}");
            let reply = answer.json().await["error"]["message"].as_str().unwrap().to_owned();
            assert!(reply.ends_with(expected), "{method}: {reply}");
        }
    }
    assert_eq!(session.call(2, "completion/complete", complete("greet")).await.status, 403);
    // As for a resource that never was.
    for uri in ["gold://x", "gold://never"] {
        let answer = session.call(3, "resources/subscribe", json!({ "uri": uri })).await;
        assert_eq!(answer.status, 200, "{uri}");
        let params = json!({"notifications": {"resourceSubscriptions": [uri]}});
        let answer = Wire::new(&http).modern(4, "subscriptions/listen", params, json!({})).await;
        assert_eq!(answer.status, 200, "{uri}");
    }
}

#[tokio::test]
async fn completing_what_one_may_not_have_is_refused_on_every_connection() {
    for revision in ALL {
        let ann = Caller::new().with(Authenticated::new("ann").rights(|_| false));
        let mut client = EraClient::over(Raw::known(&filtered(), ann), revision, json!({})).await;
        let params = json!({"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "kind", "value": ""}});
        let reply = client.call("completion/complete", params).await;
        assert_eq!(reply["error"]["message"], "`greet` needs more than the caller may", "{revision}");
    }
}

#[tokio::test]
async fn a_chosen_server_with_which_something_is_wrong_is_not_served() {
    let good = Server::new("good", "1").tool(tool("greet", || async { "Hello!" }));
    let bad = Server::new("bad", "1").tool(tool("greet", |_: pintle::server::State<u8>| async { "Hello!" }));
    assert!(bad.check().is_err());
    let (fixed, chosen) = (bad.clone(), bad.clone());
    let http = good.http().unwrap().choose(move |_| chosen.clone());
    let wire = Wire::new(&http);
    let mut answer = wire.modern(1, "tools/call", call("greet"), json!({})).await;
    assert_eq!(answer.status, 500);
    assert_eq!(answer.json().await["error"]["message"], "the server is misconfigured; see its log");
    let _fixed = fixed.with_state(7_u8);
    assert_eq!(wire.modern(1, "tools/call", call("greet"), json!({})).await.status, 200);
    let http = good.http().unwrap().choose_async(move |_| {
        let server = Server::new("bad", "1").tool(tool("a b", || async { "Hello!" }));
        async move { Ok(server) }
    });
    assert_eq!(Wire::new(&http).modern(1, "tools/list", json!({}), json!({})).await.status, 500);
}

#[tokio::test]
async fn a_choice_may_be_waited_for_and_may_refuse() {
    let server = Server::new("a", "1").tool(tool("greet", || async { "Hello!" }));
    let http = server.http().unwrap().choose_async(move |head| {
        let (known, server) = (head.headers.contains_key("x-tenant"), server.clone());
        async move {
            tokio::task::yield_now().await;
            if known {
                return Ok(server);
            }
            let error = pintle::types::RpcError::invalid_request("no such tenant: name one in `X-Tenant`");
            Err(pintle::proto::http::Refusal::new(http::StatusCode::NOT_FOUND, error))
        }
    });
    let wire = Wire::new(&http);
    let mut refused = wire.modern(1, "tools/call", call("greet"), json!({})).await;
    assert_eq!(refused.status, 404);
    let reply = refused.json().await;
    assert_eq!(reply["error"]["message"], "no such tenant: name one in `X-Tenant`");
    let wire = wire.with("x-tenant", "a");
    assert_eq!(wire.modern(1, "tools/call", call("greet"), json!({})).await.status, 200);
    let session = wire.open(R4, json!({})).await;
    assert_eq!(session.call(1, "tools/call", call("greet")).await.status, 200);
    assert_eq!(session.without("x-tenant").call(1, "tools/call", call("greet")).await.status, 404);
    let (head, body) = wire.request("OPTIONS", "/mcp", "").into_parts();
    assert_eq!(http.answer(head, body.into()).await.status(), 204);
}
