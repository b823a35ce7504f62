//! What every client of the matrix asks for, a cell each. Prints a line of JSON for each.
#![expect(deprecated, reason = "sampling and subscriptions are what is to be seen")]

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use rmcp::{
    ClientHandler, ErrorData, RoleClient,
    model::*,
    service::{
        ClientLifecycleMode, ClientServiceExt, NotificationContext, PeerRequestOptions, RequestContext,
        RunningService, Subscription,
    },
    transport::{StreamableHttpClientTransport, TokioChildProcess},
};
use serde_json::{Value, json};
use tokio::{sync::mpsc, time::timeout};

use crate::made;

const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(20);

type Server = RunningService<RoleClient, Handler>;
type CellResult<T = String> = Result<T, Box<dyn std::error::Error>>;

/// Answers what servers ask, and keeps what they tell.
#[derive(Clone)]
struct Handler {
    notified: mpsc::UnboundedSender<String>,
    progress: Arc<Mutex<Vec<(f64, Option<f64>)>>>,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        made(json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"elicitation": {"form": {}}, "sampling": {}},
            "clientInfo": {"name": "rmcp-interop", "version": "1.0.0"}
        }))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let request = serde_json::to_value(request).expect("it came as JSON");
        Ok(made(match request["message"].as_str() {
            Some("no") => json!({"action": "decline"}),
            _ => json!({"action": "accept", "content": {"copies": 2}}),
        }))
    }

    async fn create_message(
        &self,
        _: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        Ok(made(json!({"role": "assistant", "model": "none", "content": {"type": "text", "text": "pong"}})))
    }

    async fn on_progress(&self, step: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.progress.lock().expect("nobody panics").push((step.progress, step.total));
    }

    async fn on_resource_updated(
        &self,
        update: ResourceUpdatedNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let _ = self.notified.send(format!("updated {}", update.uri));
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        let _ = self.notified.send("tools changed".to_owned());
    }
}

pub(crate) async fn ask(era: &str, place: &[&str]) {
    let (notified, mut notifications) = mpsc::unbounded_channel();
    let handler = Handler { notified, progress: Arc::default() };
    let server = match timeout(PATIENCE, open(era, place, handler.clone())).await {
        Ok(Ok(server)) => server,
        Ok(Err(error)) => return println!("{}", json!({"cell": "open", "error": error.to_string()})),
        Err(error) => return println!("{}", json!({"cell": "open", "error": error.to_string()})),
    };
    let revision = server.peer_info().map(|info| info.protocol_version.to_string()).unwrap_or_default();
    println!("{}", json!({"cell": "open", "ok": revision}));
    let is_stateless = revision == "2026-07-28";

    macro_rules! cell {
        ($name:literal, $asked:expr) => {
            let line = match timeout(PATIENCE, $asked).await {
                Ok(Ok(message)) => json!({"cell": $name, "ok": message}),
                Ok(Err(error)) => json!({"cell": $name, "error": error.to_string()}),
                Err(_) => json!({"cell": $name, "error": format!("nothing within {PATIENCE:?}")}),
            };
            println!("{line}");
        };
    }
    cell!("list", list(&server));
    cell!("call", add(&server));
    cell!("bad-arguments", bad_arguments(&server));
    cell!("progress", progress(&server, &handler));
    cell!("answer", text_of(&server, "ask", json!({"question": "yes"}), "accepted 2"));
    cell!("decline", text_of(&server, "ask", json!({"question": "no"}), "declined"));
    cell!("sample", text_of(&server, "sample", json!({"topic": "hi"}), "model said pong"));
    cell!("cancel", cancel(&server));
    cell!("read", read(&server));
    cell!("update", update(&server, is_stateless, &mut notifications));
    cell!("change", change(&server, is_stateless, &mut notifications));
    cell!("complete", complete(&server));
    cell!("pages", pages(&server));
    // Whatever hangs now is not worth waiting for.
    let _ = timeout(Duration::from_secs(2), server.cancel()).await;
}

async fn open(era: &str, place: &[&str], handler: Handler) -> CellResult<Server> {
    let newest = || vec![made(json!("2026-07-28"))];
    let lifecycle = match era {
        "session" => ClientLifecycleMode::Initialize,
        "stateless" => ClientLifecycleMode::Discover { preferred_versions: newest() },
        _ => ClientLifecycleMode::Auto {
            preferred_versions: newest(),
            legacy_version: Some(made(json!("2025-11-25"))),
        },
    };
    if place[0].starts_with("http") {
        let transport = StreamableHttpClientTransport::from_uri(place[0]);
        return Ok(handler.serve_with_lifecycle(transport, lifecycle).await?);
    }
    let mut command = tokio::process::Command::new(place[0]);
    command.args(&place[1..]);
    Ok(handler.serve_with_lifecycle(TokioChildProcess::new(command)?, lifecycle).await?)
}

fn request(name: &'static str, arguments: Value) -> CallToolRequestParams {
    CallToolRequestParams::new(name).with_arguments(arguments.as_object().cloned().unwrap_or_default())
}

async fn call(server: &Server, name: &'static str, arguments: Value) -> CellResult<Value> {
    Ok(serde_json::to_value(server.call_tool(request(name, arguments)).await?)?)
}

async fn text_of(server: &Server, name: &'static str, arguments: Value, wanted: &str) -> CellResult {
    equal(&call(server, name, arguments).await?["content"][0]["text"], &json!(wanted))
}

fn equal(found: &Value, wanted: &Value) -> CellResult {
    if found == wanted { Ok(found.to_string()) } else { Err(format!("{found} instead of {wanted}").into()) }
}

async fn list(server: &Server) -> CellResult {
    let tools = server.list_all_tools().await?;
    let has = |name: &&str| tools.iter().any(|tool| tool.name == *name);
    let found: Vec<_> = ["add", "steps", "ask", "sample"].into_iter().filter(has).collect();
    equal(&json!(found), &json!(["add", "steps", "ask", "sample"]))
}

async fn add(server: &Server) -> CellResult {
    equal(&call(server, "add", json!({"a": 2, "b": 3})).await?["structuredContent"], &json!({"sum": 5}))
}

/// Either way of saying no is right; a result is not.
async fn bad_arguments(server: &Server) -> CellResult {
    match server.call_tool(request("add", json!({"a": "two", "b": 3}))).await {
        Ok(result) => equal(&json!(result.is_error), &json!(true)),
        Err(rmcp::ServiceError::McpError(error)) => equal(&json!(error.code), &json!(-32602)),
        Err(error) => Err(error.into()),
    }
}

async fn progress(server: &Server, handler: &Handler) -> CellResult {
    call(server, "steps", json!({"n": 3})).await?;
    let seen = handler.progress.lock().expect("nobody panics").clone();
    equal(&json!(seen), &json!([[1.0, 3.0], [2.0, 3.0], [3.0, 3.0]]))
}

async fn waits(server: &Server) -> CellResult<(usize, usize)> {
    let result = call(server, "waits", json!({})).await?;
    let text = result["content"][0]["text"].as_str().ok_or("no text")?;
    let (started, cancelled) = text.split_once(' ').ok_or("no two numbers")?;
    Ok((started.parse()?, cancelled.parse()?))
}

async fn cancel(server: &Server) -> CellResult {
    let (started, cancelled) = waits(server).await?;
    let wait = ClientRequest::CallToolRequest(CallToolRequest::new(request("wait", json!({}))));
    let waiting = server.peer().send_cancellable_request(wait, PeerRequestOptions::no_options()).await?;
    while waits(server).await?.0 == started {
        tokio::time::sleep(LOOK).await;
    }
    waiting.cancel(None).await?;
    while waits(server).await?.1 == cancelled {
        tokio::time::sleep(LOOK).await;
    }
    Ok("cancelled".to_owned())
}

async fn read(server: &Server) -> CellResult {
    let result = server.read_resource(made(json!({"uri": "note://1"}))).await?;
    equal(&serde_json::to_value(result)?["contents"][0]["text"], &json!("This is note 1."))
}

async fn listen(server: &Server, filter: Value) -> CellResult<Subscription> {
    Ok(server.peer().listen(made(filter)).await?)
}

async fn receive(notifications: &mut mpsc::UnboundedReceiver<String>, wanted: &str) -> CellResult<()> {
    while notifications.recv().await.ok_or("it ended")? != wanted {}
    Ok(())
}

async fn update(
    server: &Server,
    is_stateless: bool,
    notifications: &mut mpsc::UnboundedReceiver<String>,
) -> CellResult {
    if is_stateless {
        let mut subscription = listen(server, json!({"resourceSubscriptions": ["note://1"]})).await?;
        call(server, "touch", json!({})).await?;
        let notified = serde_json::to_value(subscription.next().await?)?;
        subscription.cancel().await?;
        return equal(&notified["params"]["uri"], &json!("note://1"));
    }
    server.peer().subscribe(made(json!({"uri": "note://1"}))).await?;
    call(server, "touch", json!({})).await?;
    receive(notifications, "updated note://1").await?;
    server.peer().unsubscribe(made(json!({"uri": "note://1"}))).await?;
    Ok("told".to_owned())
}

async fn change(
    server: &Server,
    is_stateless: bool,
    notifications: &mut mpsc::UnboundedReceiver<String>,
) -> CellResult {
    let has_extra = async || -> CellResult<bool> {
        Ok(server.list_all_tools().await?.iter().any(|tool| tool.name == "extra"))
    };
    let before = has_extra().await?;
    if is_stateless {
        let mut subscription = listen(server, json!({"toolsListChanged": true})).await?;
        call(server, "grow", json!({})).await?;
        let notified = serde_json::to_value(subscription.next().await?)?;
        subscription.cancel().await?;
        equal(&notified["method"], &json!("notifications/tools/list_changed"))?;
    } else {
        call(server, "grow", json!({})).await?;
        receive(notifications, "tools changed").await?;
    }
    equal(&json!(has_extra().await?), &json!(!before))
}

async fn complete(server: &Server) -> CellResult {
    let found = server.peer().complete_prompt_argument("greet", "name", "a", None).await?;
    equal(&json!(found.values), &json!(["ada", "alan"]))
}

async fn pages(server: &Server) -> CellResult {
    let mut pages = Vec::new();
    let mut cursor = None;
    loop {
        let asked: Option<PaginatedRequestParams> =
            cursor.map(|cursor: String| made(json!({"cursor": cursor})));
        let page = server.peer().list_resources(asked).await?;
        pages.push(page.resources.len());
        cursor = page.next_cursor;
        if cursor.is_none() {
            return equal(&json!(pages), &json!([3, 3, 1]));
        }
    }
}
