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

fn main() {
    pintle::tools![roll, greet, repeat, pour];
}
