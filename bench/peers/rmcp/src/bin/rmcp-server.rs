//! rmcp's server of the comparison: `rmcp-server stdio`, or `rmcp-server http`, which says its address in one line.

use std::sync::Arc;

use axum::serve::ListenerExt;
use rmcp::{
    ErrorData, Peer, RoleServer, ServerHandler, ServiceExt,
    handler::server::{
        router::tool::{ToolRoute, ToolRouter},
        tool::{InputResponses, schema_for_type},
        wrapper::Parameters,
    },
    model::*,
    schemars::JsonSchema,
    service::RequestContext,
    tool, tool_handler, tool_router,
    transport::{
        StreamableHttpServerConfig, StreamableHttpService, io::stdio_pipes,
        streamable_http_server::session::local::LocalSessionManager,
    },
};
use serde::Deserialize;
use tokio::net::TcpListener;

/// Shared by all sessions and requests. A bare `#[tool_handler]` would make all tools anew for each call.
#[derive(Clone)]
struct Bench {
    router: Arc<ToolRouter<Self>>,
}

#[derive(Deserialize, JsonSchema)]
struct Echo {
    /// text to echo
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Add {
    /// first number
    a: f64,
    /// second number
    b: f64,
}

#[derive(Deserialize, JsonSchema)]
struct Trivial {
    /// a value
    value: String,
}

#[derive(Deserialize, JsonSchema)]
struct Sure {
    ok: bool,
}

rmcp::elicit_safe!(Sure);

#[tool_router]
impl Bench {
    fn new() -> Self {
        let trivial = |Parameters(Trivial { value }): Parameters<Trivial>| async move { value };
        let router = (0..100).fold(Self::tool_router(), |router, n| {
            let about = format!("Trivial tool number {n}");
            let tool = Tool::new(format!("tool_{n:03}"), about, schema_for_type::<Trivial>());
            router.with_route(ToolRoute::new(tool, trivial))
        });
        Self { router: Arc::new(router) }
    }

    #[tool(description = "Echo the text back")]
    async fn echo(&self, Parameters(Echo { text }): Parameters<Echo>) -> String {
        text
    }

    #[tool(description = "Add two numbers")]
    async fn add(&self, Parameters(Add { a, b }): Parameters<Add>) -> String {
        (a + b).to_string()
    }

    #[tool(description = "Tell of ten steps")]
    async fn progress(&self, meta: RequestMetaObject, client: Peer<RoleServer>) -> Result<String, ErrorData> {
        if let Some(token) = meta.get_progress_token() {
            for step in 1..=10 {
                let step = ProgressNotificationParam::new(token.clone(), f64::from(step)).with_total(10.0);
                client.notify_progress(step).await.map_err(wrong)?;
            }
        }
        Ok("done".to_owned())
    }

    /// The two eras have two ways to ask, and which one it is to be is up to the tool.
    #[tool(description = "Ask whether to go on")]
    async fn confirm(
        &self,
        cx: RequestContext<RoleServer>,
        InputResponses(answers): InputResponses,
    ) -> Result<CallToolResponse, ErrorData> {
        let text_of =
            |ok| CallToolResult::success(vec![ContentBlock::text(if ok { "yes" } else { "no" })]).into();
        if cx.meta.protocol_version().is_none() {
            let answer = cx.peer.elicit::<Sure>("Go on?").await.map_err(wrong)?;
            return Ok(text_of(answer.is_some_and(|answer| answer.ok)));
        }
        if let Some(answer) = answers.and_then(|mut answers| answers.remove("sure")) {
            return Ok(text_of(answer["content"]["ok"] == true));
        }
        let requested_schema = ElicitationSchema::from_type::<Sure>().map_err(wrong)?;
        let form = ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: "Go on?".to_owned(),
            requested_schema,
        };
        let question = InputRequest::Elicitation(ElicitRequest::new(form));
        Ok(InputRequiredResult::from_input_requests([("sure".to_owned(), question)].into()).into())
    }
}

#[tool_handler(router = self.router)]
impl ServerHandler for Bench {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().build();
        ServerConfig::new(capabilities).with_server_info(Implementation::new("bench", "1.0.0"))
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(vec![Resource::new("bench://note", "note")]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        Ok(ReadResourceResult::new(vec![ResourceContents::text("A note.", request.uri)]).into())
    }
}

fn wrong(error: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let bench = Bench::new();
    match std::env::args().nth(1).as_deref() {
        Some("stdio") => {
            bench.serve(stdio_pipes()).await?.waiting().await?;
        }
        Some("http") => {
            let service = StreamableHttpService::new(
                move || Ok(bench.clone()),
                Arc::new(LocalSessionManager::default()),
                // Heeded where there is no session; with one, every answer is an event stream.
                StreamableHttpServerConfig::default().with_json_response(true),
            );
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            println!("{}", listener.local_addr()?);
            let listener = listener.tap_io(|socket| {
                let _ = socket.set_nodelay(true);
            });
            axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await?;
        }
        _ => return Err("say `http` or `stdio`".into()),
    }
    Ok(())
}
