use std::{sync::Arc, time::Duration};

use clap::Args;
use pintle_host::config::Scope;
use serde_json::{Value, json};
use tokio::{sync::Semaphore, task::JoinSet};
use unicode_width::UnicodeWidthStr;

use crate::{
    args::{ConnectArgs, HELP, duration, examples},
    failure::{Exit, Failure},
    output::{Output, Text, Tone, counted},
    targets::{Endpoint, Inventory, ListedServer, directories, inventory},
};

/// The number of servers that are checked at a time.
const PARALLEL: usize = 8;
/// How long a check may take.
const TIMEOUT: Duration = Duration::from_secs(15);

/// List the servers that are configured on this machine
#[derive(Args, Debug)]
#[command(
    before_help = examples(&[
        ("pintle servers", "of Claude Code, Cursor, VS Code, … and of the project in this directory"),
        ("pintle servers --check", "start each, and count its tools"),
        ("pintle servers --json", ""),
    ]),
    help_template = HELP,
)]
pub(crate) struct ServersArgs {
    /// Connect to each server, and show its revision and the number of its tools
    #[arg(long)]
    check: bool,
    /// How long the check of a server may take
    #[arg(long, value_name = "TIME", value_parser = duration)]
    timeout: Option<Duration>,
}

/// The result of a check.
#[derive(Clone, Debug)]
enum Checked {
    /// A server that was not checked, for this reason.
    Skipped(String),
    Works {
        revision: &'static str,
        has_session: bool,
        tools: usize,
    },
    Failed(Failure),
}

pub(crate) async fn run(args: ServersArgs, output: &Output) -> Result<(), Failure> {
    let ServersArgs { check, timeout } = args;
    let Inventory { servers, unread } = inventory(&directories());
    let checked = match check {
        true => check_all(&servers, timeout.unwrap_or(TIMEOUT), output).await,
        false => Vec::new(),
    };
    let rows = servers.iter().enumerate().map(|(at, server)| to_json(server, checked.get(at)));
    let json = json!({ "servers": rows.collect::<Vec<_>>(), "errors": unread });
    output.result(&json, |text| to_text(&servers, &checked, text))?;
    for error in &unread {
        output.note(error);
    }
    if servers.is_empty() {
        output.note("no host on this machine has a server configured; add one with `pintle add`");
    }
    let mut failed = servers.iter().zip(&checked).filter_map(|(server, checked)| match checked {
        Checked::Failed(failure) => Some((server, failure)),
        _ => None,
    });
    match failed.next() {
        Some((server, _)) => {
            let message = format!(
                "{} of {} cannot be used",
                failed.count() + 1,
                counted(servers.len(), "server", "servers")
            );
            let endpoint = Endpoint::of_configured(server.server.clone(), ConnectArgs::default());
            Err(Failure::new(Exit::Findings, message, endpoint.line("doctor", &[])))
        }
        None => Ok(()),
    }
}

/// Checks the servers, some at a time. The results are in their order.
async fn check_all(servers: &[ListedServer], timeout: Duration, output: &Output) -> Vec<Checked> {
    let turns = Arc::new(Semaphore::new(PARALLEL));
    let mut tasks = JoinSet::new();
    let mut checked = vec![Checked::Skipped("not checked".to_owned()); servers.len()];
    for (at, server) in servers.iter().enumerate() {
        if let Some(reason) = reason_to_skip(server) {
            checked[at] = Checked::Skipped(reason);
            continue;
        }
        let (turns, server, output) = (turns.clone(), server.clone(), output.clone());
        tasks.spawn(async move {
            let _turn = turns.acquire_owned().await;
            (at, check_one(server, timeout, &output).await)
        });
    }
    let mut left = tasks.len();
    while let Some(done) = tasks.join_next().await {
        left -= 1;
        if output.shows_progress() {
            let progress = if left > 0 {
                format!("checking {} …", counted(left, "server", "servers"))
            } else {
                String::new()
            };
            output.progress(&Text::from(progress));
        }
        if let Ok((at, result)) = done {
            checked[at] = result;
        }
    }
    checked
}

/// Returns why a server is not checked.
fn reason_to_skip(listed: &ListedServer) -> Option<String> {
    let entry = &listed.server.entry;
    let here = std::env::current_dir().unwrap_or_default();
    let elsewhere = entry.project.as_deref().filter(|project| here != std::path::Path::new(project));
    match &listed.server.untrusted {
        _ if !entry.enabled => Some("disabled".to_owned()),
        _ if elsewhere.is_some() => Some("of another project".to_owned()),
        Some(file) if !file.is_approved() => Some("not approved".to_owned()),
        _ => None,
    }
}

async fn check_one(listed: ListedServer, timeout: Duration, output: &Output) -> Checked {
    let options = ConnectArgs { timeout: Some(timeout), ..ConnectArgs::default() };
    let endpoint = Endpoint::of_configured(listed.server, options);
    let work = async {
        let connection = endpoint.connect(&endpoint.client(output), output).await?;
        let tools = match connection.capabilities().tools {
            Some(_) => connection.tools().await.map_err(|error| endpoint.explain(&error))?,
            None => Vec::new(),
        };
        let (revision, facts) = (connection.revision(), connection.facts());
        connection.close().await;
        let tools = tools.iter().filter(|tool| endpoint.allows_tool(&tool.name)).count();
        Ok(Checked::Works { revision: revision.as_str(), has_session: facts.keeps_session, tools })
    };
    match tokio::time::timeout(timeout, work).await {
        Ok(Ok(checked)) => checked,
        Ok(Err(failure)) => Checked::Failed(failure),
        Err(_) => {
            let message = format!("no answer within {timeout:?}");
            Checked::Failed(Failure::new(Exit::Timeout, message, "pintle servers --check --timeout 60s"))
        }
    }
}

fn to_json(listed: &ListedServer, checked: Option<&Checked>) -> Value {
    let entry = &listed.server.entry;
    let mut row = json!({
        "name": entry.name,
        "host": listed.host.id(),
        "scope": match listed.scope { Scope::Project => "project", _ => "user" },
        "file": entry.source.file.to_string_lossy(),
        "line": entry.source.line,
        "transport": listed.server.transport(),
        "target": listed.server.summary(),
        "enabled": entry.enabled,
    });
    if let Some(project) = &entry.project {
        row["project"] = project.as_str().into();
    }
    if let Some(file) = &listed.server.untrusted {
        row["approved"] = file.is_approved().into();
    }
    match checked {
        None => {}
        Some(Checked::Skipped(reason)) => row["check"] = json!({ "status": "skipped", "reason": reason }),
        Some(Checked::Works { revision, has_session, tools }) => {
            let era = if *has_session { "session" } else { "stateless" };
            row["check"] = json!({ "status": "ok", "revision": revision, "era": era, "tools": tools });
        }
        Some(Checked::Failed(failure)) => {
            let Failure { exit, message, next, .. } = failure;
            row["check"] =
                json!({ "status": "failed", "kind": exit.name(), "message": message, "next": next });
        }
    }
    row
}

fn to_text(servers: &[ListedServer], checked: &[Checked], text: &mut Text) {
    let width = |name: &str| UnicodeWidthStr::width(name);
    let column =
        servers.iter().map(|server| width(&server.server.entry.name)).max().unwrap_or_default().min(30);
    let mut file = None;
    for (at, listed) in servers.iter().enumerate() {
        let entry = &listed.server.entry;
        if file != Some(&entry.source.file) {
            if file.is_some() {
                text.end();
            }
            file = Some(&entry.source.file);
            text.tone(Tone::Title, listed.host).add("  ");
            text.tone(Tone::Faint, entry.source.file.display());
            if listed.server.untrusted.as_ref().is_some_and(|file| !file.is_approved()) {
                text.tone(Tone::Code, "  not approved");
            }
            text.end();
        }
        let pad = column.saturating_sub(width(&entry.name));
        text.add("  ").tone(Tone::Method, &entry.name).add(" ".repeat(pad + 2));
        text.tone(Tone::Faint, format_args!("{:6}", listed.server.transport())).add(listed.server.summary());
        if !entry.enabled {
            text.tone(Tone::Code, "  disabled");
        }
        if let Some(project) = &entry.project {
            text.tone(Tone::Faint, "  in ").tone(Tone::Faint, project);
        }
        text.end();
        let indent = " ".repeat(column + 4);
        match checked.get(at) {
            None | Some(Checked::Skipped(_)) => {}
            Some(Checked::Works { revision, has_session, tools }) => {
                let era = if *has_session { "with a session" } else { "without a session" };
                let tools = counted(*tools, "tool", "tools");
                text.add(&indent).tone(Tone::Out, "✓ ").line(format_args!("{tools}, {revision} {era}"));
            }
            Some(Checked::Failed(failure)) => {
                text.add(&indent).tone(Tone::Error, "✗ ").line(&failure.message);
            }
        }
    }
}
