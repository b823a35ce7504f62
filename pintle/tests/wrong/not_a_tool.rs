//! A function without the attribute.

async fn add(a: i64, b: i64) -> i64 {
    a + b
}

fn main() {
    pintle::tools![add];
}
