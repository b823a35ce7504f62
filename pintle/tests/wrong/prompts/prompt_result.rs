//! A result that is no message.

#[pintle::prompt]
async fn count() -> usize {
    3
}

#[pintle::prompt]
async fn perhaps() -> Result<String, Box<dyn std::error::Error>> {
    Err("no".into())
}

fn main() {}
