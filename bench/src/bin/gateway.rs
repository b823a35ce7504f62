//! The cost of a gateway beside a plain relay, all in one process: `gateway [calls] [lists]` prints a table.
//!
//! The gateway has ten servers with a hundred tools each behind it, each with a prefix, and rules for its principals. The plain relay has
//! one of the servers and no rules. Calls are made by one client, one after the other; the client and the server behind are in every row,
//! so that what is in front is the difference to the row without it.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::time::Duration;

use bench::served;
use pintle::{
    Client, Connection, Server,
    relay::Relay,
    server::{Caller, Rules},
    transport::memory,
    types::RawObject,
};
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;

type Error = Box<dyn std::error::Error>;

const BACKENDS: usize = 10;
const TOOLS: usize = 100;
const PRINCIPALS: usize = 100;
/// Every row is measured so often, in turns; the least counts.
const ROUNDS: usize = 5;
/// The goal of a call through the gateway beside one through the plain relay, and of a list for many principals beside one for one.
const GOAL: f64 = 1.3;

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: usize| arguments.next().map_or(Ok(default), |word| word.parse());
    let (calls, lists) = (number(5000)?, number(200)?);
    tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(measure(calls, lists))
}

/// A relay to a server of its own.
async fn relay() -> Result<Relay, Error> {
    let behind = served::with_tools(TOOLS);
    let connector = move || {
        let transport = behind.in_process().map_err(std::io::Error::other);
        async { transport }
    };
    Ok(Relay::connect(Client::new("gateway", "1.0.0"), connector).await?)
}

/// Rules as a team has them: the last one decides about most calls.
fn rules() -> Result<Rules, Error> {
    let set = json!({"rules": [
        {"rate": {"calls": 1_000_000, "seconds": 1}},
        {"name": "no admins", "tools": ["*_admin_*"], "decision": "hide"},
        {"name": "no secrets", "arguments": {"text": "*password*"}, "decision": "deny", "reason": "no secrets"},
        {"name": "team", "principals": ["p*"], "backends": ["b*"], "decision": "allow"}
    ]});
    Ok(Rules::new(serde_json::from_value(set)?)?)
}

async fn gateway() -> Result<Server, Error> {
    let mut gateway = Server::new("gateway", "1.0.0");
    for backend in 0..BACKENDS {
        gateway = gateway.mount(format!("b{backend}"), relay().await?);
    }
    Ok(gateway.gate(rules()?))
}

/// A client that the server knows by this name.
async fn connect(server: &Server, principal: &str) -> Result<Connection, Error> {
    let (ours, wire) = memory();
    drop(server.serve_to(ours, Caller::new().principal(principal))?);
    Ok(Client::new("bench", "1.0.0").connect(wire).await?)
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

async fn measure(calls: usize, lists: usize) -> Result<(), Error> {
    let direct = connect(&served::with_tools(TOOLS), "p0").await?;
    let plain = connect(&Server::new("plain", "1.0.0").provider(relay().await?), "p0").await?;
    let gateway = gateway().await?;
    let mut clients = Vec::new();
    for number in 0..PRINCIPALS {
        clients.push(connect(&gateway, &format!("p{number}")).await?);
    }
    let [first, ..] = clients.as_slice() else { return Ok(()) };
    let tool = format!("b{}_echo", BACKENDS - 1);
    // Each principal has its own connections behind.
    list(&clients, clients.len(), BACKENDS * TOOLS).await?;
    let mut least = [f64::INFINITY; 5];
    for round in 0..=ROUNDS {
        let measured = [
            call(&direct, "echo", calls).await?,
            call(&plain, "echo", calls).await?,
            call(first, &tool, calls).await?,
            list(std::slice::from_ref(first), lists, BACKENDS * TOOLS).await?,
            list(&clients, lists.max(clients.len()), BACKENDS * TOOLS).await?,
        ];
        // The first one warms up.
        if round > 0 {
            least.iter_mut().zip(measured).for_each(|(least, measured)| *least = least.min(measured));
        }
    }
    let [direct, plain, gateway, one, many] = least;
    let (plain, gateway) = (plain - direct, gateway - direct);
    println!("| in front of the server | CPU µs per request | × | goal |\n|---|---:|---:|---:|");
    println!("| a call: plain relay | {plain:.0} | 1 | |");
    println!(
        "| a call: gateway, {BACKENDS} servers, rules | {gateway:.0} | {:.2} | ≤ {GOAL} |",
        gateway / plain
    );
    let tools = BACKENDS * TOOLS;
    println!("| list of {tools} tools, 1 principal, with the servers | {one:.0} | 1 | |");
    println!(
        "| list of {tools} tools, {PRINCIPALS} principals, with the servers | {many:.0} | {:.2} | ≤ {GOAL} |",
        many / one
    );
    Ok(())
}
