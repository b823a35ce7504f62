//! What every server of the matrix offers.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt,
    model::*,
    service::{RequestContext, SubscriptionContext, SubscriptionSink},
    transport::{
        StreamableHttpServerConfig, StreamableHttpService, stdio as streams,
        streamable_http_server::session::local::LocalSessionManager,
    },
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::made;

const NOTES: usize = 7;
const PAGE: usize = 3;
/// Nobody waits for longer, whatever goes wrong.
const WAIT: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(20);
const LAG: Duration = Duration::from_millis(200);

/// Shared by all sessions and all requests.
#[derive(Clone, Default)]
struct Peer(Arc<Shared>);

#[derive(Default)]
struct Shared {
    started: AtomicUsize,
    cancelled: AtomicUsize,
    grown: AtomicBool,
    sinks: Mutex<Vec<SubscriptionSink>>,
}

pub(crate) async fn stdio() {
    let running = Peer::default().serve(streams()).await.expect("a client opens it");
    running.waiting().await.expect("it ends in order");
}

pub(crate) async fn http() {
    let peer = Peer::default();
    let service = StreamableHttpService::new(
        move || Ok(peer.clone()),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default(),
    );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    println!("http://{}/mcp", listener.local_addr().expect("an address"));
    axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await.expect("it serves");
}

#[derive(Deserialize)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(Deserialize)]
struct Steps {
    n: u32,
}

#[derive(Deserialize)]
struct Ask {
    question: String,
}

#[derive(Deserialize)]
struct Sample {
    topic: String,
}

fn arguments<T: DeserializeOwned>(request: &CallToolRequestParams) -> Result<T, ErrorData> {
    let arguments = Value::Object(request.arguments.clone().unwrap_or_default());
    serde_json::from_value(arguments).map_err(|error| ErrorData::invalid_params(error.to_string(), None))
}

fn text(text: impl Into<String>) -> CallToolResponse {
    made::<CallToolResult>(json!({"content": [{"type": "text", "text": text.into()}]})).into()
}

fn wrong(error: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

fn is_stateless(context: &RequestContext<RoleServer>) -> bool {
    context.meta.protocol_version().is_some()
}

/// The answer to a question, or the question to answer the call with. rmcp leaves it to us that the eras differ.
async fn asked(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
    question: Value,
) -> Result<Result<Value, CallToolResponse>, ErrorData> {
    if is_stateless(context) {
        let answer = request.input_responses.as_ref().and_then(|answers| answers.get("question"));
        let required = json!({"resultType": "input_required", "inputRequests": {"question": question}});
        return Ok(answer.cloned().ok_or_else(|| made::<InputRequiredResult>(required).into()));
    }
    let result = context.peer.send_request(made(question)).await.map_err(wrong)?;
    Ok(Ok(serde_json::to_value(result).map_err(wrong)?))
}

impl Peer {
    fn tools(&self) -> Vec<Tool> {
        let integers = |names: &[&str]| {
            let fields: serde_json::Map<_, _> =
                names.iter().map(|name| ((*name).to_owned(), json!({"type": "integer"}))).collect();
            json!({"type": "object", "properties": fields, "required": names})
        };
        let string = |name: &str| json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]});
        let nothing = || json!({"type": "object"});
        let mut tools = vec![
            json!({"name": "add", "inputSchema": integers(&["a", "b"]), "outputSchema": integers(&["sum"])}),
            json!({"name": "steps", "inputSchema": integers(&["n"])}),
            json!({"name": "ask", "inputSchema": string("question")}),
            json!({"name": "sample", "inputSchema": string("topic")}),
        ];
        let plain = ["wait", "waits", "touch", "grow", "extra"];
        let plain = if self.0.grown.load(SeqCst) { &plain[..] } else { &plain[..4] };
        tools.extend(plain.iter().map(|name| json!({"name": name, "inputSchema": nothing()})));
        tools.into_iter().map(made).collect()
    }

    /// Those who listen. rmcp tells a client that it is heard before it tells us that there is one, so give it a moment.
    async fn sinks(&self, context: &RequestContext<RoleServer>) -> Vec<SubscriptionSink> {
        if is_stateless(context) {
            tokio::time::sleep(LAG).await;
        }
        self.0.sinks.lock().expect("nobody panics").clone()
    }
}

impl ServerHandler for Peer {
    fn get_info(&self) -> ServerConfig {
        made(json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {
                "tools": {"listChanged": true},
                "resources": {"subscribe": true, "listChanged": true},
                "prompts": {},
                "completions": {}
            },
            "serverInfo": {"name": "rmcp-interop", "version": "1.0.0"}
        }))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools().into_iter().find(|tool| tool.name == name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let shared = &self.0;
        Ok(match &*request.name {
            "add" => {
                let Add { a, b } = arguments(&request)?;
                CallToolResult::structured(json!({"sum": a + b})).into()
            }
            "steps" => {
                let Steps { n } = arguments(&request)?;
                let token = context.meta.get_progress_token();
                for step in 1..=n {
                    let Some(token) = &token else { break };
                    let params = json!({"progressToken": token, "progress": step, "total": n});
                    context.peer.notify_progress(made(params)).await.map_err(wrong)?;
                    tokio::time::sleep(PAUSE).await;
                }
                text("done")
            }
            "ask" => {
                let Ask { question } = arguments(&request)?;
                let form = json!({"type": "object", "properties": {"copies": {"type": "integer"}}, "required": ["copies"]});
                let params = json!({"mode": "form", "message": question, "requestedSchema": form});
                match asked(&request, &context, json!({"method": "elicitation/create", "params": params}))
                    .await?
                {
                    Ok(answer) if answer["action"] == "accept" => {
                        text(format!("accepted {}", answer["content"]["copies"]))
                    }
                    Ok(_) => text("declined"),
                    Err(question) => question,
                }
            }
            "sample" => {
                let Sample { topic } = arguments(&request)?;
                let messages = json!([{"role": "user", "content": {"type": "text", "text": topic}}]);
                let params = json!({"messages": messages, "maxTokens": 20});
                match asked(&request, &context, json!({"method": "sampling/createMessage", "params": params}))
                    .await?
                {
                    Ok(answer) => text(format!(
                        "model said {}",
                        answer["content"]["text"].as_str().unwrap_or("nothing")
                    )),
                    Err(question) => question,
                }
            }
            "wait" => {
                shared.started.fetch_add(1, SeqCst);
                tokio::select! {
                    () = context.ct.cancelled() => {
                        shared.cancelled.fetch_add(1, SeqCst);
                        text("cancelled")
                    }
                    () = tokio::time::sleep(WAIT) => text("nobody cancelled"),
                }
            }
            "waits" => text(format!("{} {}", shared.started.load(SeqCst), shared.cancelled.load(SeqCst))),
            "touch" => {
                if !is_stateless(&context) {
                    context
                        .peer
                        .notify_resource_updated(made(json!({"uri": "note://1"})))
                        .await
                        .map_err(wrong)?;
                }
                for sink in self.sinks(&context).await {
                    // It may not have asked for that, or be gone.
                    let _ = sink.notify_resource_updated("note://1").await;
                }
                text("touched")
            }
            "grow" => {
                shared.grown.fetch_xor(true, SeqCst);
                if !is_stateless(&context) {
                    context.peer.notify_tool_list_changed().await.map_err(wrong)?;
                }
                for sink in self.sinks(&context).await {
                    let _ = sink.notify_tool_list_changed().await;
                }
                text("changed")
            }
            _ => return Err(ErrorData::invalid_params("no such tool", None)),
        })
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        let start: usize = cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
        let next = start + PAGE;
        let page = (start..next.min(NOTES))
            .map(|n| made(json!({"uri": format!("note://{n}"), "name": format!("note {n}")})));
        let mut result = ListResourcesResult::with_all_items(page.collect());
        result.next_cursor = (next < NOTES).then(|| next.to_string());
        Ok(result)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let note = request.uri.trim_start_matches("note://");
        let contents = json!([{"uri": request.uri, "text": format!("This is note {note}.")}]);
        Ok(made::<ReadResourceResult>(json!({"contents": contents})).into())
    }

    async fn subscribe(
        &self,
        _: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let sink = context.sink().clone();
        self.0.sinks.lock().expect("nobody panics").push(sink.clone());
        context.cancelled().await;
        self.0.sinks.lock().expect("nobody panics").retain(|other| other.id() != sink.id());
        Ok(())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let greet = json!({"name": "greet", "arguments": [{"name": "name", "required": true}]});
        Ok(ListPromptsResult::with_all_items(vec![made(greet)]))
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let typed = &request.argument.value;
        let names: Vec<_> =
            ["ada", "alan", "grace"].into_iter().filter(|name| name.starts_with(typed.as_str())).collect();
        Ok(made(json!({"completion": {"values": names}})))
    }
}
