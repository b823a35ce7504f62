//! A result that is no message.

#[pintle::prompt]
async fn count() -> usize {
    3
}

#[pintle::prompt]
async fn perhaps() -> Result<String, String> {
    Err("no".to_owned())
}

fn main() {}
