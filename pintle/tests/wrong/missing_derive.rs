//! An argument of a type that nobody can read.

struct Point {
    x: i64,
}

#[pintle::tool]
async fn show(point: Point) -> i64 {
    point.x
}

fn main() {
    pintle::tools![show];
}
