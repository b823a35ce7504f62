//! The server that is measured: `echo`, `add`, a hundred trivial tools, and a resource. Its peers have the same.

use pintle::{
    Server,
    server::{Args, resource, tool},
};

/// That server.
pub fn server() -> Server {
    let server = Server::new("bench", "1.0.0").tools(pintle::tools![echo, add]).resource(resource(
        "bench://note",
        "note",
        || async { "A note." },
    ));
    (0..100).fold(server, |server, n| {
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

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Trivial {
    /// a value
    value: String,
}
