//! Prompts that take what they cannot have.

use pintle::server::{Args, Vars};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Text {
    text: String,
}

#[pintle::prompt]
async fn list(items: Vec<String>) -> String {
    items.join(" ")
}

#[pintle::prompt]
async fn pair(both: Option<(String, String)>) -> String {
    format!("{both:?}")
}

#[pintle::prompt]
async fn borrowed(text: &str) -> String {
    text.to_owned()
}

#[pintle::prompt]
async fn twice(a: Args<Text>, b: Args<Text>) -> String {
    a.0.text + &b.0.text
}

#[pintle::prompt]
async fn both(a: Args<Text>, b: String) -> String {
    a.0.text + &b
}

#[pintle::prompt]
async fn variables(a: Vars<Text>) -> String {
    a.0.text
}

#[pintle::prompt(read_only)]
async fn option() -> &'static str {
    ""
}

#[pintle::prompt]
struct Six;

fn main() {}
