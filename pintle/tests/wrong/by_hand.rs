//! The same without attributes.

use pintle::server::{Args, prompt, resource, tool};

struct Point;

async fn origin() -> Point {
    Point
}

async fn moved(_: Args<Point>) {}

fn main() {
    let _ = tool("origin", origin);
    let _ = prompt("origin", origin);
    let _ = resource("x://origin", "origin", origin);
    let _ = tool("moved", moved);
}
