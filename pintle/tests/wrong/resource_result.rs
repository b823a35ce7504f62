//! A result that is neither text nor bytes nor `Json`.

struct Note;

#[pintle::resource("notes://first")]
async fn first() -> Note {
    Note
}

#[pintle::resource("notes://{id}")]
async fn by_id(id: u32) -> Result<String, String> {
    Err(format!("no {id}"))
}

fn main() {}
