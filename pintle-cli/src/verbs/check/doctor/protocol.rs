use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use pintle::{Connection, types::method};

use super::report::Report;
use crate::{
    args::EraArg,
    connection::VerbConnection,
    failure::{Exit, Failure},
    output::Output,
    output::counted,
    targets::Endpoint,
};

/// The lines that a server printed to standard output and that are no messages: their number, and the first.
#[derive(Default)]
struct Noise {
    count: usize,
    first: String,
}

/// Connects in both eras, and lists what the server offers.
pub(super) async fn check(endpoint: &Endpoint, is_program: bool, output: &Output, report: &mut Report<'_>) {
    let noise = Arc::new(Mutex::new(Noise::default()));
    let stateless = connect(&endpoint.with_era(EraArg::Stateless), &noise, output).await;
    let session = connect(&endpoint.with_era(EraArg::Session), &noise, output).await;
    let works = stateless.is_ok() || session.is_ok();
    match &stateless {
        Ok((connection, took)) => report.ok("discover", opened(connection, *took)),
        Err(failure) if !works => report.failure("discover", failure),
        Err(failure) if failure.exit == Exit::Server => {
            report.ok("discover", "the server speaks older revisions only, and answers a request that it does not know with an error");
        }
        Err(failure) => {
            let what = match (failure.exit, is_program) {
                (Exit::Timeout, _) => {
                    "does not answer a request that it does not know: newer clients wait before they use the older revision"
                }
                (_, true) => {
                    "ends when it gets a request that it does not know before `initialize`: newer clients start it twice"
                }
                (_, false) => "cannot be asked for its revisions",
            };
            report.warning("discover", format!("the server {what}"), "update the SDK of the server");
        }
    }
    match &session {
        Ok((connection, took)) => report.ok(method::INITIALIZE, opened(connection, *took)),
        Err(failure) if !works || is_overloaded(failure) => report.failure(method::INITIALIZE, failure),
        Err(failure) => {
            let message =
                format!("the server has no sessions, which older clients need: {}", failure.message);
            report.warning(method::INITIALIZE, message, endpoint.line_with("info", "--era session"));
        }
    }
    if is_program {
        let noise = noise.lock().unwrap_or_else(PoisonError::into_inner);
        match noise.count {
            0 => report.ok("stdout", "the server prints messages only"),
            count => report.warning(
                "stdout",
                format!("the server prints {} to standard output, the first is `{}`: some clients end the connection", counted(count, "line that is not a message", "lines that are not messages"), noise.first),
                "print logs to standard error",
            ),
        }
    }
    let Some((connection, _)) = stateless.ok().or(session.ok()) else { return };
    lists(&connection, endpoint, report).await;
    connection.close().await;
}

/// Returns whether the server has what was asked for, and no room now.
fn is_overloaded(failure: &Failure) -> bool {
    matches!(failure.status, Some(429 | 503))
}

async fn connect(
    endpoint: &Endpoint,
    noise: &Arc<Mutex<Noise>>,
    output: &Output,
) -> Result<(VerbConnection, Duration), Failure> {
    let noise = noise.clone();
    let client = endpoint.client(output).on_noise(move |line| {
        let mut noise = noise.lock().unwrap_or_else(PoisonError::into_inner);
        if noise.count == 0 {
            noise.first = line.params.chars().take(60).collect();
        }
        noise.count += 1;
    });
    let started = Instant::now();
    let connection = endpoint.connect(&client, output).await?;
    Ok((connection, started.elapsed()))
}

fn opened(connection: &Connection, took: Duration) -> String {
    let name = connection.server_info().map(|info| format!("{} {}, ", info.name, info.version));
    format!("{}{}, in {took:.1?}", name.unwrap_or_default(), connection.revision().as_str())
}

async fn lists(connection: &Connection, endpoint: &Endpoint, report: &mut Report<'_>) {
    let declared = connection.capabilities();
    let mut done = Vec::new();
    let mut count = |what: &'static str, listed: pintle::Result<usize>, report: &mut Report<'_>| match listed
    {
        Ok(count) => done.push(counted(count, what.trim_end_matches('s'), what)),
        Err(error) => report.failure("lists", &endpoint.explain(&error)),
    };
    if declared.tools.is_some() {
        count("tools", connection.tools().await.map(|list| list.len()), report);
    }
    if declared.prompts.is_some() {
        count("prompts", connection.prompts().await.map(|list| list.len()), report);
    }
    if declared.resources.is_some() {
        count("resources", connection.resources().await.map(|list| list.len()), report);
    }
    match done.is_empty() {
        true => report.skipped("lists", "the server offers no lists"),
        false => report.ok("lists", done.join(", ")),
    }
}
