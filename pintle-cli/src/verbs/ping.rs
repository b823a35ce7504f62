use std::time::{Duration, Instant};

use clap::Args;
use pintle::types::method;
use serde_json::json;

use crate::{
    args::{HELP, TargetArgs, examples},
    failure::Failure,
    output::Output,
    targets::Endpoint,
};

/// The name of the verb, which is that of the method.
const VERB: &str = method::PING;

/// Check that a server answers
#[derive(Args, Debug)]
#[command(
    before_help = examples(&[
        ("pintle ping demo", ""),
        ("pintle ping https://example.com/mcp --count 10", ""),
    ]),
    help_template = HELP,
    override_usage = "pintle ping TARGET",
)]
pub(crate) struct PingArgs {
    /// The number of pings
    #[arg(long, short, value_name = "N", default_value_t = 1)]
    count: u32,
    #[command(flatten)]
    pub(super) target: TargetArgs,
}

pub(super) async fn run(args: PingArgs, output: &Output) -> Result<(), Failure> {
    let PingArgs { count, target } = args;
    let (endpoint, words) = Endpoint::take(VERB, target)?;
    super::no_more(&words, &endpoint, VERB)?;
    let connection = endpoint.connect(&endpoint.client(output), output).await?;
    for _ in 0..count {
        let started = Instant::now();
        connection.ping().await.map_err(|error| endpoint.explain(&error))?;
        let elapsed = started.elapsed();
        output.event(&json!({ "milliseconds": milliseconds(elapsed) }), |text| {
            text.line(format_args!("answered in {elapsed:.1?}"));
        })?;
    }
    connection.close().await;
    Ok(())
}

fn milliseconds(elapsed: Duration) -> f64 {
    (elapsed.as_secs_f64() * 1e6).round() / 1e3
}
