//! Defaults that are not of their parameter's type.

#[pintle::tool]
async fn roll(#[arg(default = "six")] sides: u32) -> u32 {
    sides
}

#[pintle::tool]
async fn greet(#[arg(default = 3)] name: String) -> String {
    name
}

fn main() {
    pintle::tools![roll, greet];
}
