//! URIs and parameters that do not fit.

use pintle::server::{Args, Vars};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Note {
    id: u32,
}

#[pintle::resource("notes://{id}")]
async fn misspelt(number: u32) -> String {
    number.to_string()
}

#[pintle::resource("notes://all")]
async fn fixed(id: u32) -> String {
    id.to_string()
}

#[pintle::resource("notes://{author}/{id}")]
async fn forgotten(id: u32) -> String {
    id.to_string()
}

#[pintle::resource("notes://{id")]
async fn open(id: u32) -> String {
    id.to_string()
}

#[pintle::resource("notes/{id}")]
async fn relative(id: u32) -> String {
    id.to_string()
}

#[pintle::resource("notes://{id}/{id}")]
async fn repeated(id: u32) -> String {
    id.to_string()
}

#[pintle::resource]
async fn nowhere() -> &'static str {
    ""
}

#[pintle::resource(uri = "notes://all")]
async fn named() -> &'static str {
    ""
}

#[pintle::resource("notes://{id}")]
async fn arguments(note: Args<Note>) -> String {
    note.0.id.to_string()
}

#[pintle::resource("notes://{id}")]
async fn twice(a: Vars<Note>, b: Vars<Note>) -> String {
    (a.0.id + b.0.id).to_string()
}

#[pintle::resource("notes://{id}")]
async fn both(a: Vars<Note>, id: u32) -> String {
    (a.0.id + id).to_string()
}

#[pintle::resource("notes://all", mime = "text/plain")]
async fn option() -> &'static str {
    ""
}

struct Notes;

#[pintle::handlers]
impl Notes {
    #[resource]
    async fn all(&self) -> &'static str {
        ""
    }

    #[tool]
    #[prompt]
    async fn either(&self) -> &'static str {
        ""
    }
}

fn main() {}
