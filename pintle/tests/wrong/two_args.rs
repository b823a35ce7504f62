//! The arguments, twice.

use pintle::server::Args;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Point {
    x: i64,
}

#[pintle::tool]
async fn add(a: Args<Point>, b: Args<Point>) -> i64 {
    a.0.x + b.0.x
}

#[pintle::tool]
async fn scale(point: Args<Point>, by: i64) -> i64 {
    point.0.x * by
}

fn main() {}
