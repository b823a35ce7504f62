//! A result that is neither text nor content nor `Json`.

struct Point;

#[pintle::tool]
async fn origin() -> Point {
    Point
}

#[pintle::tool]
async fn perhaps() -> Result<String, Box<dyn std::error::Error>> {
    Err("no".into())
}

fn main() {}
