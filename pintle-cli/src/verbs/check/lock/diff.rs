use clap::Args;
use serde_json::{Value, json};

use super::{
    LockFile, LockFileArgs,
    changes::{self, Change},
    fetch,
};
use crate::{
    args::{ConnectArgs, HELP, TargetArgs, examples, near},
    failure::{Exit, Failure},
    output::{Output, counted},
    targets::Endpoint,
};

/// Compare what a server offers with the file that `lock` wrote, or with another server
#[derive(Args, Debug)]
#[command(
    before_help = examples(&[
        ("pintle diff https://example.com/mcp", "exit code 6 if something has changed"),
        ("pintle diff --as git -- uvx mcp-server-git", ""),
        ("pintle diff https://example.com/mcp https://next.example.com/mcp", "two servers"),
        ("pintle diff git -- uvx mcp-server-git@latest", "a server and a program"),
    ]),
    help_template = HELP,
    override_usage = "pintle diff TARGET [OTHER]",
)]
pub(crate) struct DiffArgs {
    #[command(flatten)]
    file: LockFileArgs,
    #[command(flatten)]
    pub(in crate::verbs) target: TargetArgs,
}

pub(in crate::verbs) async fn run(args: DiffArgs, output: &Output) -> Result<(), Failure> {
    let DiffArgs { file: LockFileArgs { path, name }, target } = args;
    let is_program = !target.connect.command.is_empty() && target.connect.open.is_none();
    let (era, revision, timeout) = (target.connect.era, target.connect.revision, target.connect.timeout);
    let (endpoint, mut words) = Endpoint::take("diff", target)?;
    if let [_, second, ..] = words.as_slice() {
        let message = format!("unexpected argument `{second}`: `diff` takes one target or two");
        return Err(Failure::usage(message, endpoint.line("diff", &[])));
    }
    if let Some(other) = words.pop() {
        // Headers, tokens and variables are for the first one only.
        let connect = ConnectArgs { era, revision, timeout, ..ConnectArgs::default() };
        let (other, _) = Endpoint::take("diff", TargetArgs { words: vec![other], connect })?;
        // A program is at the end of the line, and is the second one.
        let (before, after) = if is_program { (&other, &endpoint) } else { (&endpoint, &other) };
        return servers(before, after, output).await;
    }
    let file = LockFile::read(&path)?;
    let name = name.unwrap_or_else(|| endpoint.label());
    let Some(before) = file.catalogue(&name) else {
        let meant = near(&name, file.servers.keys().map(String::as_str));
        let meant = meant.map(|meant| format!("; did you mean `--as {meant}`?")).unwrap_or_default();
        let message = format!("`{}` has no server `{name}`{meant}", path.display());
        return Err(Failure::usage(message, endpoint.line("lock", &[])));
    };
    let after = fetch(&endpoint, output).await?;
    match print(&json!({ "name": name }), &changes::compare(before, &after), output)? {
        0 => Ok(()),
        count => {
            let message = format!(
                "what `{name}` offers has changed since it was locked: {}",
                counted(count, "change", "changes")
            );
            Err(Failure::new(Exit::Findings, message, endpoint.line("lock", &[])))
        }
    }
}

/// Compares two servers.
async fn servers(before: &Endpoint, after: &Endpoint, output: &Output) -> Result<(), Failure> {
    let (one, other) = (fetch(before, output).await?, fetch(after, output).await?);
    let (from, to) = (before.label(), after.label());
    match print(&json!({ "from": from, "to": to }), &changes::compare(&one, &other), output)? {
        0 => Ok(()),
        count => {
            let message = format!(
                "`{from}` and `{to}` do not offer the same: {}",
                counted(count, "difference", "differences")
            );
            Err(Failure::new(Exit::Findings, message, after.line("ls", &["--schema"])))
        }
    }
}

/// Prints changes, in JSON with the names of what was compared. Returns their number.
fn print(names: &Value, changes: &[Change], output: &Output) -> Result<usize, Failure> {
    let mut json = names.clone();
    json["changes"] = changes.iter().map(Change::to_json).collect();
    output.result(&json, |text| {
        changes.iter().for_each(|change| change.to_text(text));
    })?;
    Ok(changes.len())
}
