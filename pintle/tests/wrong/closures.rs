//! Closures that cannot be called more than once.

use pintle::server::tool;

fn main() {
    let name = String::new();
    let _ = tool("given", move || async { name });
    let name = String::new();
    let _ = tool("moved", move || async move { drop(name) });
}
