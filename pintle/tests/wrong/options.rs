//! Options that do not exist.

#[pintle::tool(readonly)]
async fn one() {}

#[pintle::tool(read_only = true)]
async fn two() {}

#[pintle::tool]
async fn three(#[arg(min = 1)] number: i64) {}

#[pintle::tool]
async fn four((a, b): (i64, i64)) {}

#[pintle::tool(idempotant, asks(Five))]
async fn five() {}

#[pintle::prompt(colour = "red")]
async fn six() {}

#[pintle::tool]
struct Five;

fn main() {}
