//! A result that is neither text nor bytes nor `Json`.

struct Note;

#[pintle::resource("notes://first")]
async fn first() -> Note {
    Note
}

#[pintle::resource("notes://{id}")]
async fn by_id(id: u32) -> Result<String, Box<dyn std::error::Error>> {
    Err(format!("no {id}").into())
}

fn main() {}
