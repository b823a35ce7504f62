//! A result that is neither text nor content nor `Json`.

struct Point;

#[pintle::tool]
async fn origin() -> Point {
    Point
}

#[pintle::tool]
async fn perhaps() -> Result<String, String> {
    Err("no".to_owned())
}

fn main() {}
