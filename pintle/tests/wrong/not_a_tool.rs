//! A function without the attribute, among others.

/// Adds.
#[pintle::tool]
async fn add(a: i64, b: i64) -> i64 {
    a + b
}

async fn subtract(a: i64, b: i64) -> i64 {
    a - b
}

fn main() {
    pintle::tools![add, subtract];
    pintle::routes![add, self::subtract];
}
