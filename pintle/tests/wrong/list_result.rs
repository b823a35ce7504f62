//! A list that is neither content nor `Json`.

#[pintle::tool]
async fn names() -> Vec<String> {
    Vec::new()
}

fn main() {}
