//! Functions in place of their routes.

use pintle::Server;

/// Adds.
#[pintle::tool]
async fn add(a: i64, b: i64) -> i64 {
    a + b
}

async fn greeting() -> String {
    String::new()
}

fn main() {
    let _ = Server::new("s", "0").tool(add);
    let _ = Server::new("s", "0").prompt(greeting);
}
