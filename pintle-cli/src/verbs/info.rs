use std::time::Instant;

use clap::Args;
use pintle::Connection;
use serde_json::{Value, json};

use crate::{
    args::{HELP, TargetArgs, examples},
    failure::Failure,
    output::{Output, Text, Tone},
    targets::Endpoint,
};

/// Show the name, revision, capabilities and instructions of a server
#[derive(Args, Debug)]
#[command(
    before_help = examples(&[
        ("pintle info demo", ""),
        ("pintle info https://example.com/mcp --token-env TOKEN", ""),
        ("pintle info --era session -- uvx mcp-server-git", "with a handshake, as older clients do"),
    ]),
    help_template = HELP,
    override_usage = "pintle info TARGET",
)]
pub(crate) struct InfoArgs {
    #[command(flatten)]
    pub(super) target: TargetArgs,
}

pub(super) async fn run(args: InfoArgs, output: &Output) -> Result<(), Failure> {
    let InfoArgs { target } = args;
    let (endpoint, words) = Endpoint::take("info", target)?;
    super::no_more(&words, &endpoint, "info")?;
    let started = Instant::now();
    let connection = endpoint.connect(&endpoint.client(output), output).await?;
    let opened = started.elapsed();
    let started = Instant::now();
    connection.ping().await.map_err(|error| endpoint.explain(&error))?;
    let pinged = started.elapsed();
    output.result(&to_json(&connection), |text| {
        to_text(&connection, text);
        text.tone(Tone::Faint, "latency       ")
            .line(format_args!("{opened:.1?} to open, {pinged:.1?} for an answer"));
    })?;
    connection.close().await;
    Ok(())
}

fn to_json(connection: &Connection) -> Value {
    let mut info = json!({
        "protocolVersion": connection.revision().as_str(),
        "capabilities": connection.capabilities(),
        "serverInfo": connection.server_info().as_deref(),
    });
    if let Some(instructions) = connection.instructions() {
        info["instructions"] = instructions.into();
    }
    info
}

fn to_text(connection: &Connection, text: &mut Text) {
    if let Some(info) = connection.server_info() {
        text.tone(Tone::Title, &info.name).add(" ").add(&info.version).end();
        if let Some(title) = &info.title {
            text.line(title);
        }
        text.end();
    }
    let revision = connection.revision();
    let era = if connection.facts().keeps_session { "with a session" } else { "without a session" };
    text.tone(Tone::Faint, "revision      ").line(format_args!("{}, {era}", revision.as_str()));
    let capabilities = serde_json::to_value(connection.capabilities()).unwrap_or_default();
    let names: Vec<_> = capabilities.as_object().into_iter().flatten().map(capability).collect();
    let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    text.tone(Tone::Faint, "capabilities  ").line(names);
    if let Some(instructions) = connection.instructions() {
        let mut lines = instructions.lines();
        text.tone(Tone::Faint, "instructions  ").line(lines.next().unwrap_or_default());
        lines.for_each(|line| {
            text.add("              ").line(line);
        });
    }
}

/// Formats a capability with its settings: `resources (listChanged, subscribe)`.
fn capability((name, settings): (&String, &Value)) -> String {
    let settings = settings.as_object().into_iter().flatten();
    let on: Vec<_> = settings.filter(|(_, value)| **value != false).map(|(name, _)| name.as_str()).collect();
    if on.is_empty() { name.clone() } else { format!("{name} ({})", on.join(", ")) }
}
