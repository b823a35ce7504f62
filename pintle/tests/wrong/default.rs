//! Defaults that are not of their parameter's type.

#[pintle::tool]
async fn roll(#[arg(default = "six")] sides: u32) -> u32 {
    sides
}

#[pintle::tool]
async fn greet(#[arg(default = 3)] name: String) -> String {
    name
}

#[pintle::tool]
async fn repeat(#[arg(default = 3)] times: Option<u32>) -> String {
    format!("{times:?}")
}

#[pintle::tool]
async fn pour(#[arg(default = 1)] litres: f64) -> f64 {
    litres
}

const MANY: u64 = 7;

#[pintle::tool]
async fn count(#[arg(default = MANY)] limit: u32) -> u32 {
    limit
}

fn usual() -> &'static str {
    "usual"
}

#[pintle::tool]
async fn title(#[arg(default = usual())] name: String) -> String {
    name
}

#[pintle::tool]
async fn list(#[arg(default = Vec::<u8>::new())] numbers: Vec<u32>) -> String {
    format!("{numbers:?}")
}

fn main() {
    pintle::tools![roll, greet, repeat, pour, count, title, list];
}
