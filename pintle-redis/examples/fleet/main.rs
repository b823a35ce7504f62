//! One process of a fleet: a server whose sessions, streams and call states are in Redis, so that each request of a client may reach
//! another process. `run.sh` beside this file starts a Redis, three processes, and haproxy in front of them.
//!
//! ```sh
//! pintle-redis/examples/fleet/run.sh        # http://127.0.0.1:8000/mcp
//! pintle call http://127.0.0.1:8000/mcp order item=tea
//! ```
#![allow(clippy::print_stdout, reason = "it is what the program is for")]

use std::{env, time::Duration};

use pintle::{
    Server,
    server::{Cx, StateKeys, ToolError},
};
use pintle_redis::{Redis, RedisOptions};
use tokio::net::TcpListener;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Amount {
    /// How many
    count: u8,
}

/// Order something. The answer to the question may reach another process than the call.
#[pintle::tool]
async fn order(cx: Cx, item: String) -> Result<String, ToolError> {
    let amount = cx.elicit::<Amount>("amount", &format!("How many of `{item}`?")).await?;
    Ok(match amount.accepted() {
        Some(Amount { count }) => format!("{count} of `{item}` ordered by process {}", std::process::id()),
        None => "nothing ordered".to_owned(),
    })
}

/// Brew a cup, with progress. A client that loses its connection resumes the stream at any process.
#[pintle::tool]
async fn brew(cx: Cx) -> String {
    for step in 0..5 {
        cx.progress(f64::from(step), 5.0).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    format!("brewed by process {}", std::process::id())
}

/// Reads the secret that all processes share: 64 hexadecimal digits.
fn secret() -> Result<[u8; 32], Box<dyn std::error::Error>> {
    let text = env::var("FLEET_SECRET").map_err(|_| "set FLEET_SECRET to 64 hexadecimal digits")?;
    let mut secret = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return Err("FLEET_SECRET has to have 64 hexadecimal digits".into());
    }
    for (place, byte) in secret.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * place..2 * place + 2], 16)?;
    }
    Ok(secret)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let keys = StateKeys::from(secret()?);
    let address = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8001".to_owned());
    let url = env::var("REDIS_URL").unwrap_or_else(|_| "redis://127.0.0.1:6379/".to_owned());

    let redis = Redis::connect_with(&url, RedisOptions::default().prefix("shop").seal(keys.clone())).await?;
    let server = Server::new("shop", "1.0.0").state_keys(keys).tools(pintle::tools![order, brew]);
    // haproxy says who the client is.
    let http = server.http()?.at("/mcp").trusted_proxies(["127.0.0.1"])?.shared(redis);

    let serving = http.serve(TcpListener::bind(address).await?)?;
    println!("http://{}/mcp", serving.address());
    // As systemd and Kubernetes do: running calls have ten seconds, sessions continue at the other processes.
    tokio::select! {
        _ = serving.wait() => {}
        pressed = tokio::signal::ctrl_c() => {
            pressed?;
            serving.shutdown(Duration::from_secs(10)).await;
        }
    }
    Ok(())
}
