//! The programs that are built, ours and the same with rmcp.

use crate::program::Program;

/// A program of ours.
pub(super) struct Job {
    /// In the table.
    pub(super) name: &'static str,
    pub(super) program: Program,
    /// The name of the program in [`THEIRS`] that does the same.
    pub(super) beside: &'static str,
    /// The most that a clean build may cost, as a multiple of that one.
    pub(super) limit: f64,
}

pub(super) const JOBS: &[Job] = &[
    Job {
        name: "server on stdio, with macros",
        program: Program {
            name: "stdio",
            needs: "pintle = { path = \"{root}/pintle\", default-features = false, features = [\"macros\", \"stdio\"] }\n\
                    tokio = { version = \"1\", features = [\"macros\", \"rt\"] }\n",
            main: STDIO,
        },
        beside: "rmcp-stdio",
        limit: 1.3,
    },
    // With the default features. rmcp has no validation.
    Job {
        name: "the same, with validation",
        program: Program {
            name: "validation",
            needs: "pintle = { path = \"{root}/pintle\" }\n\
                    tokio = { version = \"1\", features = [\"macros\", \"rt\"] }\n",
            main: STDIO,
        },
        beside: "rmcp-stdio",
        limit: 1.8,
    },
    Job {
        name: "server over HTTP, with macros",
        program: Program {
            name: "http",
            needs: "pintle = { path = \"{root}/pintle\", default-features = false, features = [\"http-server\", \"macros\"] }\n\
                    tokio = { version = \"1\", features = [\"macros\", \"rt\"] }\n",
            main: HTTP,
        },
        beside: "rmcp-http",
        limit: 1.3,
    },
    Job {
        name: "client of a child process",
        program: Program {
            name: "client",
            needs: "pintle = { path = \"{root}/pintle\", default-features = false, features = [\"child\", \"client\"] }\n\
                    serde_json = \"1\"\n\
                    tokio = { version = \"1\", features = [\"macros\", \"rt\"] }\n",
            main: CLIENT,
        },
        beside: "rmcp-client",
        limit: 1.3,
    },
];

pub(super) const THEIRS: &[Program] = &[
    Program {
        name: "rmcp-stdio",
        needs: "rmcp = { version = \"=3.8.0\", default-features = false, features = [\"macros\", \"server\", \"transport-io\"] }\n\
                schemars = \"1\"\n\
                serde = { version = \"1\", features = [\"derive\"] }\n\
                tokio = { version = \"1\", features = [\"io-std\", \"macros\", \"rt\"] }\n",
        main: RMCP_STDIO,
    },
    Program {
        name: "rmcp-http",
        needs: "axum = { version = \"0.8\", default-features = false, features = [\"http1\", \"tokio\"] }\n\
                rmcp = { version = \"=3.8.0\", default-features = false, features = [\"macros\", \"server\", \"transport-streamable-http-server\"] }\n\
                schemars = \"1\"\n\
                serde = { version = \"1\", features = [\"derive\"] }\n\
                tokio = { version = \"1\", features = [\"macros\", \"net\", \"rt\"] }\n",
        main: RMCP_HTTP,
    },
    Program {
        name: "rmcp-client",
        needs: "rmcp = { version = \"=3.8.0\", default-features = false, features = [\"client\", \"transport-child-process\"] }\n\
                serde_json = \"1\"\n\
                tokio = { version = \"1\", features = [\"macros\", \"rt\"] }\n",
        main: RMCP_CLIENT,
    },
];

const STDIO: &str = r#"/// Add two integers.
#[pintle::tool]
async fn add(a: i64, b: i64) -> i64 { a + b }

#[tokio::main(flavor = "current_thread")]
async fn main() -> pintle::Result<()> {
    pintle::Server::new("adder", "1.0.0").tools(pintle::tools![add]).serve_stdio().await
}
"#;

const HTTP: &str = r#"/// Add two integers.
#[pintle::tool]
async fn add(a: i64, b: i64) -> i64 { a + b }

#[tokio::main(flavor = "current_thread")]
async fn main() -> pintle::Result<()> {
    pintle::Server::new("adder", "1.0.0").tools(pintle::tools![add]).serve_http("127.0.0.1:8000").await?.wait().await;
    Ok(())
}
"#;

const CLIENT: &str = r#"use pintle::{Client, transport::Child};
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> pintle::Result<()> {
    let server = Client::new("demo", "1.0.0").connect(Child::spawn("adder", ["--stdio"])?).await?;
    println!("{}", server.call_tool("add", json!({ "a": 1, "b": 2 })).await?.text());
    Ok(())
}
"#;

const RMCP_STDIO: &str = r#"use rmcp::{ServerHandler, ServiceExt, handler::server::wrapper::Parameters, schemars, tool, tool_handler, tool_router};

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Add { a: i64, b: i64 }

#[derive(Clone)]
struct Adder;

#[tool_router]
impl Adder {
    #[tool(description = "Add two integers.")]
    async fn add(&self, Parameters(Add { a, b }): Parameters<Add>) -> String { (a + b).to_string() }
}

#[tool_handler]
impl ServerHandler for Adder {}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    Adder.serve((tokio::io::stdin(), tokio::io::stdout())).await?.waiting().await?;
    Ok(())
}
"#;

const RMCP_HTTP: &str = r#"use rmcp::transport::{
    StreamableHttpServerConfig, StreamableHttpService, streamable_http_server::session::local::LocalSessionManager,
};
use rmcp::{ServerHandler, handler::server::wrapper::Parameters, schemars, tool, tool_handler, tool_router};

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Add { a: i64, b: i64 }

#[derive(Clone)]
struct Adder;

#[tool_router]
impl Adder {
    #[tool(description = "Add two integers.")]
    async fn add(&self, Parameters(Add { a, b }): Parameters<Add>) -> String { (a + b).to_string() }
}

#[tool_handler]
impl ServerHandler for Adder {}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sessions = std::sync::Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(|| Ok(Adder), sessions, StreamableHttpServerConfig::default());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:8000").await?;
    axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await?;
    Ok(())
}
"#;

const RMCP_CLIENT: &str = r#"use rmcp::{ServiceExt, model::CallToolRequestParams, transport::TokioChildProcess};
use serde_json::{Map, Value};
use tokio::process::Command;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut command = Command::new("adder");
    command.arg("--stdio");
    let server = ().serve(TokioChildProcess::new(command)?).await?;
    let arguments = Map::from_iter([("a".to_owned(), Value::from(1)), ("b".to_owned(), Value::from(2))]);
    println!("{:?}", server.call_tool(CallToolRequestParams::new("add").with_arguments(arguments)).await?.content);
    Ok(())
}
"#;
