//! tower-mcp's server of the comparison: `tower-server stdio`, or `tower-server http`, which says its address in one line.

use axum::serve::ListenerExt;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::net::TcpListener;
use tower_mcp::{
    BidirectionalStdioTransport, BoxError, CallToolResult, McpRouter, RequestContext, ToolBuilder,
    extract::{Context, RawArgs},
    protocol::{
        ElicitFieldValue, ElicitFormParams, ElicitFormSchema, ElicitMode, ElicitRequestParams, ElicitResult,
        InputRequest, InputRequiredResult, InputResponse, RequestOutcome,
    },
    resource::ResourceBuilder,
    transport::http::HttpTransport,
};

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
struct Nothing {}

fn router() -> McpRouter {
    let echo = ToolBuilder::new("echo")
        .description("Echo the text back")
        .handler(|Echo { text }: Echo| async move { Ok(CallToolResult::text(text)) });
    let add = ToolBuilder::new("add")
        .description("Add two numbers")
        .handler(|Add { a, b }: Add| async move { Ok(CallToolResult::text((a + b).to_string())) });
    let progress = ToolBuilder::new("progress").description("Tell of ten steps").extractor_handler(
        (),
        |cx: Context, RawArgs(_): RawArgs| async move {
            for step in 1..=10 {
                cx.report_progress(f64::from(step), Some(10.0), None).await;
            }
            Ok(CallToolResult::text("done"))
        },
    );
    let confirm = ToolBuilder::new("confirm")
        .description("Ask whether to go on")
        .mrtr_handler(|cx: RequestContext, _: Nothing| async move { confirm(cx).await });
    let router = McpRouter::new()
        .server_info("bench", "1.0.0")
        .tool(echo.build())
        .tool(add.build())
        .tool(progress.build())
        .tool(confirm.build())
        .resource(ResourceBuilder::new("bench://note").name("note").text("A note."));
    (0..100).fold(router, |router, n| {
        let trivial = ToolBuilder::new(format!("tool_{n:03}"))
            .description(format!("Trivial tool number {n}"))
            .handler(|Trivial { value }: Trivial| async move { Ok(CallToolResult::text(value)) });
        router.tool(trivial.build())
    })
}

/// The two eras have two ways to ask, and which one it is to be is up to the tool.
async fn confirm(cx: RequestContext) -> tower_mcp::Result<RequestOutcome<CallToolResult>> {
    let form = ElicitFormParams {
        mode: Some(ElicitMode::Form),
        message: "Go on?".to_owned(),
        requested_schema: ElicitFormSchema::new().boolean_field("ok", None, true),
        meta: None,
    };
    if cx.can_elicit() {
        return Ok(text_of(&cx.elicit_form(form).await?));
    }
    if let Some(InputResponse::Elicit(answer)) = cx.input_responses().and_then(|answers| answers.get("sure"))
    {
        return Ok(text_of(answer));
    }
    let question = InputRequest::Elicit(ElicitRequestParams::Form(form));
    let questions = [("sure".to_owned(), question)].into();
    Ok(RequestOutcome::input_required(InputRequiredResult::with_requests(questions)))
}

fn text_of(answer: &ElicitResult) -> RequestOutcome<CallToolResult> {
    let ok = answer.content.as_ref().and_then(|content| content.get("ok"));
    let detail = if matches!(ok, Some(ElicitFieldValue::Boolean(true))) { "yes" } else { "no" };
    RequestOutcome::Complete(CallToolResult::text(detail))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    match std::env::args().nth(1).as_deref() {
        Some("stdio") => BidirectionalStdioTransport::new(router()).run().await?,
        Some("http") => {
            // Sampling is what it calls asking the client anything.
            let transport = HttpTransport::new(router()).with_sampling().max_sessions(1_000_000);
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            println!("{}", listener.local_addr()?);
            let listener = listener.tap_io(|socket| {
                let _ = socket.set_nodelay(true);
            });
            axum::serve(listener, transport.into_router_at("/mcp")).await?;
        }
        _ => return Err("say `http` or `stdio`".into()),
    }
    Ok(())
}
