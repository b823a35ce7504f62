//! A protected server in memory, and what is said to it by hand.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::{Arc, Mutex},
};

use http::{HeaderMap, Request, Response, StatusCode};
use http_body::Body as _;
use pintle::{
    Server,
    server::{
        Cx, Field, Form, HttpHead, ToolError,
        http::{Body, Http},
        prompt, resource, tool,
    },
};
use pintle_oauth::server::{Checked, Principal, Protected, ProtectedService, Rejection, Token};
use serde_json::{Value, json};
use tower_layer::Layer;
use tower_service::Service;

pub(crate) const RESOURCE: &str = "https://mcp.test/mcp";
pub(crate) const ISSUER: &str = "https://as.test";
pub(crate) const METADATA: &str = "https://mcp.test/.well-known/oauth-protected-resource/mcp";

/// What handlers were called, and what they saw of the head.
pub(crate) type Called = Arc<Mutex<Vec<String>>>;

#[derive(Clone)]
pub(crate) struct Vault {
    pub(crate) service: ProtectedService<Http>,
    pub(crate) http: Http,
    pub(crate) called: Called,
}

/// An answer, read whole.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        let text = self.text.rsplit("data: ").next().unwrap();
        serde_json::from_str(text).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    pub(crate) fn challenge(&self) -> &str {
        self.headers.get("www-authenticate").map_or("", |value| value.to_str().unwrap())
    }
}

/// Tokens are `subject-client-scopes.with.dots`; `~` in a scope is `:`.
pub(crate) fn tokens() -> Checked {
    Checked::new(ISSUER, |token: Token| async move {
        let parts: Vec<_> = token.reveal().split('-').collect();
        match parts.as_slice() {
            ["down"] => Err(Rejection::unavailable("the table is on fire")),
            ["busy"] => Err(Rejection::Overloaded),
            [subject, client, scopes] => {
                let scopes =
                    scopes.split('.').filter(|scope| !scope.is_empty()).map(|scope| scope.replace('~', ":"));
                let principal = Principal::new(ISSUER, *subject).client(*client).granted(scopes);
                let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
                Ok(if *subject == "brief" { principal.until(now + 600) } else { principal })
            }
            _ => Err(Rejection::invalid("no such token")),
        }
    })
}

pub(crate) fn protected() -> Protected {
    Protected::new(RESOURCE, tokens())
        .unwrap()
        .scopes(["vault:enter"])
        .implies("vault:all", ["gold:take", "gold:see"])
}

pub(crate) fn server(called: &Called) -> Server {
    let note = |name: &'static str| {
        let called = called.clone();
        move |who: Principal, head: HttpHead| {
            let mut names: Vec<_> = head.headers.keys().map(|name| name.as_str().to_owned()).collect();
            names.sort();
            called.lock().unwrap().push(format!("{name} {names:?}"));
            let whose = format!("{} of {}", who.subject(), who.client_id().unwrap_or("-"));
            async move { whose }
        }
    };
    let ask = |cx: Cx| async move {
        let form = Form::new().field("sure", Field::boolean());
        let answer = cx.elicit_form("sure", "Sure?", &form).await?;
        Ok::<_, ToolError>(format!("{answer:?}"))
    };
    Server::new("vault", "1")
        .tool(tool("look", note("look")))
        .tool(tool("take", note("take")).requires(["gold:take", "gold:see"]))
        .tool(tool("secret", note("secret")).requires(["gold:secret"]).hidden())
        .tool(tool("ask", ask))
        .prompt(
            prompt("plan", || async { "Plan it." })
                .complete("x", || async { vec!["gold"] })
                .requires(["gold:plan"]),
        )
        .resource(resource("gold://bar", "bar", || async { "heavy" }).requires(["gold:see"]))
}

impl Vault {
    pub(crate) fn new() -> Self {
        Self::of(&protected(), |http| http)
    }

    pub(crate) fn of(protected: &Protected, with: impl FnOnce(Http) -> Http) -> Self {
        let called = Called::default();
        let http = with(server(&called).http().unwrap().guard(pintle::proto::http::Guard::any_host()));
        Self { service: protected.layer(http.clone()), http, called }
    }

    pub(crate) async fn send(&self, request: Request<String>) -> Answer {
        let response = self.service.clone().call(request).await.unwrap();
        read(response).await
    }

    /// A request of the stateless era.
    pub(crate) async fn call(&self, token: &str, method: &str, params: Value) -> Answer {
        self.send(stateless(method, params).header("authorization", format!("Bearer {token}")).done()).await
    }

    /// Opens a session of this revision.
    pub(crate) async fn open(&self, token: &str, revision: &str) -> Session {
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
        let answer = self.send(posted(token, &hello).done()).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let id = answer.headers["mcp-session-id"].to_str().unwrap().to_owned();
        Session { vault: self.clone(), id, revision: revision.to_owned() }
    }
}

pub(crate) struct Session {
    pub(crate) vault: Vault,
    pub(crate) id: String,
    pub(crate) revision: String,
}

impl Session {
    pub(crate) async fn send(&self, token: &str, body: Value) -> Answer {
        let request = posted(token, &body)
            .header("mcp-session-id", &self.id)
            .header("mcp-protocol-version", &self.revision);
        self.vault.send(request.done()).await
    }

    pub(crate) async fn call(&self, token: &str, tool: &str) -> Answer {
        self.send(token, called(1, tool)).await
    }
}

pub(crate) fn called(id: u32, tool: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool}})
}

/// A request in the making.
pub(crate) struct Asked(http::request::Builder, String);

impl Asked {
    pub(crate) fn header(self, name: &str, value: impl AsRef<str>) -> Self {
        Self(self.0.header(name, value.as_ref()), self.1)
    }

    pub(crate) fn done(self) -> Request<String> {
        self.0.body(self.1).unwrap()
    }
}

pub(crate) fn stateless(method: &str, mut params: Value) -> Asked {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    });
    let name = params.get("name").or(params.get("uri")).and_then(Value::as_str).map(str::to_owned);
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let asked =
        plain(body.to_string()).header("mcp-protocol-version", "2026-07-28").header("mcp-method", method);
    match name {
        Some(name) => asked.header("mcp-name", name),
        None => asked,
    }
}

fn posted(token: &str, body: &Value) -> Asked {
    plain(body.to_string()).header("authorization", format!("Bearer {token}"))
}

pub(crate) fn plain(body: String) -> Asked {
    let head = Request::post("/mcp")
        .header("host", "mcp.test")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    Asked(head, body)
}

pub(crate) async fn read(response: Response<Body>) -> Answer {
    let (parts, mut body) = response.into_parts();
    let mut text = Vec::new();
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        text.extend_from_slice(&frame.unwrap().into_data().unwrap());
    }
    Answer { status: parts.status, headers: parts.headers, text: String::from_utf8(text).unwrap() }
}
