use clap::Args;
use pintle::{
    client::{Change, Event},
    types::{
        method,
        schema::{LoggingLevel, LoggingMessageParams},
    },
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::{
    args::{HELP, TargetArgs, examples},
    failure::{Exit, Failure},
    output::{Output, Text, Tone, counted},
    targets::{Endpoint, log_text},
};

/// Log messages that wait to be printed. More are dropped.
const MAX_LOGS: usize = 256;

/// Print changes, updates and log messages of a server, until Ctrl-C
#[derive(Args, Debug)]
#[command(
    before_help = examples(&[
        ("pintle watch https://example.com/mcp", "changes of lists, and log messages"),
        ("pintle watch demo harbour://notice", "updates of a resource too"),
        ("pintle watch demo --json", "a line of JSON for each"),
    ]),
    help_template = HELP,
    override_usage = "pintle watch TARGET [URI]...",
)]
pub(crate) struct WatchArgs {
    /// End after this many events
    #[arg(long, short, value_name = "N")]
    count: Option<u64>,
    #[command(flatten)]
    pub(super) target: TargetArgs,
}

pub(super) async fn run(args: WatchArgs, output: &Output) -> Result<(), Failure> {
    let WatchArgs { count, target } = args;
    let silence_limit = target.connect.timeout;
    let (endpoint, words) = Endpoint::take("watch", target)?;
    let (sender, mut logs) = mpsc::channel(MAX_LOGS);
    let level = if output.verbosity() > 0 { LoggingLevel::Debug } else { LoggingLevel::Info };
    // A full queue drops the message: a server must not make this one grow.
    let client =
        endpoint.client(output).log_level(level).on_log(move |log| drop(sender.try_send(log.params)));
    let connection = endpoint.connect(&client, output).await?;
    let failed = |error| endpoint.explain(&error);
    let mut changes = connection.changes().await.map_err(failed)?;
    for uri in &words {
        connection.subscribe(uri).await.map_err(failed)?;
    }
    output.note("watching; Ctrl-C ends it");
    let mut left = count.unwrap_or(u64::MAX);
    while left > 0 {
        let silence = async {
            match silence_limit {
                Some(silence_limit) => tokio::time::sleep(silence_limit).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // Both are bounded: none can keep the other from being printed for long.
            event = changes.next() => match event {
                Some(event) => print_event(&event, output)?,
                None => {
                    let ended = connection.wait().await;
                    let next = endpoint.line("watch", &words.iter().map(String::as_str).collect::<Vec<_>>());
                    return Err(Failure::new(Exit::Unreachable, format!("the connection is closed: {ended}"), next));
                }
            },
            Some(log) = logs.recv() => print_log(&log, output)?,
            () = silence => {
                let message = format!("no event was received within {:?}", silence_limit.unwrap_or_default());
                let next = endpoint.line("watch", &words.iter().map(String::as_str).collect::<Vec<_>>());
                return Err(Failure::new(Exit::Timeout, message, next));
            }
        }
        left -= 1;
    }
    connection.close().await;
    Ok(())
}

/// Prints an event; in JSON it is the notification of the protocol.
fn print_event(event: &Event, output: &Output) -> Result<(), Failure> {
    let (json, line) = describe_event(event);
    output.event(&json, |text| {
        text.line(line);
    })
}

/// Returns an event as JSON and as a line.
pub(crate) fn describe_event(event: &Event) -> (Value, String) {
    let changed = |method, line: &str| (json!({ "method": method }), line.to_owned());
    match event {
        Event::Changed(Change::Tools) => changed(method::NOTIFICATIONS_TOOLS_LIST_CHANGED, "tools changed"),
        Event::Changed(Change::Prompts) => {
            changed(method::NOTIFICATIONS_PROMPTS_LIST_CHANGED, "prompts changed")
        }
        Event::Changed(Change::Resources) => {
            changed(method::NOTIFICATIONS_RESOURCES_LIST_CHANGED, "resources changed")
        }
        Event::Changed(Change::Resource(uri)) => (
            json!({"method": method::NOTIFICATIONS_RESOURCES_UPDATED, "params": {"uri": uri}}),
            format!("updated {uri}"),
        ),
        Event::Notification(notification) => {
            let params = notification.params.as_ref().map(|params| params.as_str());
            let value = params.and_then(|params| serde_json::from_str(params).ok()).unwrap_or(Value::Null);
            let json = json!({"method": notification.method, "params": value});
            (json, format!("{} {}", notification.method, params.unwrap_or_default()))
        }
        Event::Reopened => {
            (json!({"event": "reopened"}), "reconnected: anything may have changed".to_owned())
        }
        Event::Missed(count) => (
            json!({"event": "missed", "count": count}),
            format!(
                "{} dropped",
                counted(usize::try_from(*count).unwrap_or(usize::MAX), "event was", "events were")
            ),
        ),
        _ => (json!({"event": "unknown"}), "an event that this version does not know".to_owned()),
    }
}

fn print_log(log: &LoggingMessageParams, output: &Output) -> Result<(), Failure> {
    output.event(&json!({"method": method::NOTIFICATIONS_MESSAGE, "params": log}), |text| {
        text.append(log_line(log)).end();
    })
}

/// Formats a log message: `info harbour: …`.
pub(crate) fn log_line(log: &LoggingMessageParams) -> Text {
    let mut text = Text::new();
    let level = serde_json::to_value(log.level).unwrap_or_default();
    text.tone(Tone::Faint, level.as_str().unwrap_or_default()).add(" ");
    if let Some(logger) = &log.logger {
        text.tone(Tone::Faint, logger).add(": ");
    }
    text.add(log_text(&log.data));
    text
}
