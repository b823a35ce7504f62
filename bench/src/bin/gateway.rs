//! The cost of a gateway beside a plain relay, all in one process: `gateway [calls] [lists]` prints a table.
//!
//! The gateway has ten servers with a hundred tools each behind it, each with a prefix, and rules for its principals. The plain relay has
//! one of the servers and no rules. Calls are made by one client, one after the other; the client and the server behind are in every row,
//! so that what is in front is the difference to the row without it.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::time::Duration;

use bench::gateway::{self as measured, BACKENDS, Error, TOOLS};
use pintle::{Connection, types::RawObject};
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;

const PRINCIPALS: usize = 100;
/// Every row is measured so often, in turns; the median counts, as does that of the ratios within a round.
const ROUNDS: usize = 21;
/// The goal of a call through the gateway beside one through the plain relay, and of a list for many principals beside one for one.
const GOAL: f64 = 1.3;

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: usize| arguments.next().map_or(Ok(default), |word| word.parse());
    let (calls, lists) = (number(5000)?, number(100)?);
    tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(measure(calls, lists))
}

/// The CPU time of this process.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// Returns the microseconds of CPU that a call costs.
async fn call(connection: &Connection, tool: &str, calls: usize) -> Result<f64, Error> {
    let before = cpu();
    for _ in 0..calls {
        let text = connection.call_tool(tool, json!({"text": "hello"})).await?.text();
        assert_eq!(text, "hello");
    }
    Ok((cpu() - before).as_secs_f64() * 1e6 / calls as f64)
}

/// Returns the microseconds of CPU that a list costs, if these clients request them in turns.
async fn list(connections: &[Connection], lists: usize, tools: usize) -> Result<f64, Error> {
    let before = cpu();
    for connection in connections.iter().cycle().take(lists) {
        let page = connection.call_raw("tools/list", RawObject::empty()).await?;
        assert_eq!(page.as_str().matches("\"inputSchema\"").count(), tools);
    }
    Ok((cpu() - before).as_secs_f64() * 1e6 / lists as f64)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

async fn measure(calls: usize, lists: usize) -> Result<(), Error> {
    let direct = measured::connect(&measured::direct(), "p0").await?;
    let plain = measured::connect(&measured::plain().await?, "p0").await?;
    let gateway = measured::gateway().await?;
    let mut clients = Vec::new();
    for number in 0..PRINCIPALS {
        clients.push(measured::connect(&gateway, &format!("p{number}")).await?);
    }
    let [first, ..] = clients.as_slice() else { return Ok(()) };
    let tool = measured::last_tool();
    // Each principal has its own connections behind.
    list(&clients, clients.len(), BACKENDS * TOOLS).await?;
    let mut rounds = Vec::new();
    for round in 0..=ROUNDS {
        let mut row = [f64::NAN; 5];
        for at in 0..row.len() {
            // Every other round in the other order: what comes first is not always the same.
            let at = if round % 2 == 0 { at } else { row.len() - 1 - at };
            let cost = match at {
                0 => call(&direct, "echo", calls).await?,
                1 => call(&plain, "echo", calls).await?,
                2 => call(first, &tool, calls).await?,
                3 => list(std::slice::from_ref(first), lists, BACKENDS * TOOLS).await?,
                _ => list(&clients, lists.max(clients.len()), BACKENDS * TOOLS).await?,
            };
            row.iter_mut().skip(at).take(1).for_each(|cell| *cell = cost);
        }
        // The first one warms up.
        if round > 0 {
            let [direct, plain, gateway, one, many] = row;
            rounds.push([plain - direct, gateway - direct, one, many]);
        }
    }
    let of = |value: fn(&[f64; 4]) -> f64| median(rounds.iter().map(value).collect());
    let (plain, gateway) = (of(|[plain, ..]| *plain), of(|[_, gateway, ..]| *gateway));
    let (one, many) = (of(|[_, _, one, _]| *one), of(|[.., many]| *many));
    let calls = of(|[plain, gateway, ..]| gateway / plain);
    let lists = of(|[_, _, one, many]| many / one);
    println!("| in front of the server | CPU µs per request | × | goal |\n|---|---:|---:|---:|");
    println!("| a call: plain relay | {plain:.0} | 1 | |");
    println!("| a call: gateway, {BACKENDS} servers, rules | {gateway:.0} | {calls:.2} | ≤ {GOAL} |");
    let tools = BACKENDS * TOOLS;
    println!("| list of {tools} tools, 1 principal, with the servers | {one:.0} | 1 | |");
    println!(
        "| list of {tools} tools, {PRINCIPALS} principals, with the servers | {many:.0} | {lists:.2} | ≤ {GOAL} |"
    );
    Ok(())
}
