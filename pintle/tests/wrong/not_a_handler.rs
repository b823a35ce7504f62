//! A function with plain parameters, registered by hand.

async fn add(a: i64, b: i64) -> i64 {
    a + b
}

fn main() {
    let _ = pintle::server::tool("add", add);
}
