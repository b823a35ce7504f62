//! The server that is measured: `echo`, `add`, `progress`, `confirm`, a hundred trivial tools, and a resource. Its peers
//! have the same.

use pintle::{
    Server,
    server::{Args, Cx, ToolError, resource, tool},
};

use tokio::net::TcpListener;

use crate::wire::{QUESTION, REPORTS};

/// The limit of sessions: as many as are opened by any measurement, and then some.
const SESSIONS: usize = 200_000;

/// Serves over HTTP on a port of its own, which it says in one line.
///
/// # Errors
///
/// It cannot listen.
#[expect(clippy::print_stdout, reason = "a program that is started by another")]
pub async fn serve_http(server: Server) -> std::io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let http = server.http().map_err(std::io::Error::other)?;
    let http = http.max_sessions(SESSIONS).max_sessions_per_address(SESSIONS);
    let serving = http.at("/mcp").serve(listener).map_err(std::io::Error::other)?;
    println!("{address}");
    serving.wait().await;
    Ok(())
}

/// That server.
pub fn server() -> Server {
    let server = Server::new("bench", "1.0.0")
        .tools(pintle::tools![echo, add, progress])
        .tool(tool("confirm", confirm).description("Ask whether to go on").asks::<Confirmed>())
        .resource(resource("bench://note", "note", || async { "A note." }));
    trivial(server, 100)
}

/// One with so many tools: `echo`, and trivial ones.
pub fn with_tools(tools: usize) -> Server {
    trivial(Server::new("bench", "1.0.0").tools(pintle::tools![echo]), tools.saturating_sub(1))
}

fn trivial(server: Server, tools: usize) -> Server {
    (0..tools).fold(server, |server, n| {
        let trivial = |Args(Trivial { value }): Args<Trivial>| async move { value };
        server.tool(tool(format!("tool_{n:03}"), trivial).description(format!("Trivial tool number {n}")))
    })
}

/// Echo the text back
#[pintle::tool]
async fn echo(
    /// text to echo
    text: String,
) -> String {
    text
}

/// Add two numbers
#[pintle::tool]
async fn add(
    /// first number
    a: f64,
    /// second number
    b: f64,
) -> f64 {
    a + b
}

/// Report ten times
#[pintle::tool]
async fn progress(cx: Cx) -> &'static str {
    for done in 1..=REPORTS {
        cx.progress(done as f64, None).await;
    }
    "done"
}

async fn confirm(cx: Cx) -> Result<&'static str, ToolError> {
    let confirmed = cx.elicit::<Confirmed>("ok", QUESTION).await?.accepted();
    Ok(if confirmed.is_some_and(|confirmed| confirmed.ok) { "yes" } else { "no" })
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Confirmed {
    ok: bool,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Trivial {
    /// a value
    value: String,
}
