//! A gateway beside a plain relay, all in one process: the client, what is in front, and the servers behind.

use pintle::{
    Client, Connection, Server,
    server::{Caller, Rules},
    transport::memory,
};
use pintle_relay::Relay;
use serde_json::json;

use crate::{protocol::Case, served};

/// The number of servers behind the gateway.
pub const BACKENDS: usize = 10;
/// The number of tools that each of them has.
pub const TOOLS: usize = 100;

/// All of them. The first one is what the client and the server behind cost.
pub const CASES: &[Case] = &[
    Case { name: "in process, direct", run: |n| calls(n, Front::Nothing) },
    Case { name: "in process, relay", run: |n| calls(n, Front::Relay) },
    Case { name: "in process, gateway with 10 servers and rules", run: |n| calls(n, Front::Gateway) },
];

/// The error of a measurement.
pub type Error = Box<dyn std::error::Error>;

/// The part in front of the server that has the tool.
#[derive(Clone, Copy, Debug)]
enum Front {
    Nothing,
    Relay,
    Gateway,
}

/// One call after the other. How many were answered.
fn calls(times: usize, front: Front) -> usize {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_time().build() else { return 0 };
    runtime.block_on(async {
        let server = match front {
            Front::Nothing => Ok(direct()),
            Front::Relay => plain().await,
            Front::Gateway => gateway().await,
        };
        let tool = if matches!(front, Front::Gateway) { last_tool() } else { "echo".to_owned() };
        let Ok(server) = server else { return 0 };
        let Ok(client) = connect(&server, "p0").await else { return 0 };
        let mut answered = 0;
        for _ in 0..times {
            answered += usize::from(client.call_tool(&tool, json!({"text": "hello"})).await.is_ok());
        }
        assert_eq!(answered, times, "every call is answered");
        answered
    })
}

/// The server behind.
pub fn direct() -> Server {
    served::with_tools(TOOLS)
}

/// A server that relays to one of its own, and has no rules.
///
/// # Errors
///
/// The relay cannot connect.
pub async fn plain() -> Result<Server, Error> {
    Ok(Server::new("plain", "1.0.0").provider(relay().await?))
}

/// A server with a relay to each of the servers behind, each with a prefix, and rules.
///
/// # Errors
///
/// A relay cannot connect.
pub async fn gateway() -> Result<Server, Error> {
    let mut gateway = Server::new("gateway", "1.0.0");
    for backend in 0..BACKENDS {
        gateway = gateway.mount(format!("b{backend}"), relay().await?);
    }
    Ok(gateway.gate(rules()?))
}

/// The name that `echo` of the last server has at the gateway.
pub fn last_tool() -> String {
    format!("b{}_echo", BACKENDS - 1)
}

/// A client that the server knows by this name.
///
/// # Errors
///
/// It cannot connect.
pub async fn connect(server: &Server, principal: &str) -> Result<Connection, Error> {
    let (ours, wire) = memory();
    drop(server.serve_to(ours, Caller::new().principal(principal))?);
    Ok(Client::new("bench", "1.0.0").connect(wire).await?)
}

/// A relay to a server of its own.
async fn relay() -> Result<Relay, Error> {
    let behind = direct();
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
