use clap::Args;
use serde_json::json;

use super::{LockFile, LockFileArgs, changes, fetch};
use crate::{
    args::{HELP, TargetArgs, examples, near},
    failure::{Exit, Failure},
    output::Output,
    targets::Endpoint,
};

/// Compare what a server offers with the file that `lock` wrote
#[derive(Args, Debug)]
#[command(
    before_help = examples(&[
        ("pintle diff https://example.com/mcp", "exit code 6 if something has changed"),
        ("pintle diff --as git -- uvx mcp-server-git", ""),
    ]),
    help_template = HELP,
    override_usage = "pintle diff TARGET",
)]
pub(crate) struct DiffArgs {
    #[command(flatten)]
    file: LockFileArgs,
    #[command(flatten)]
    target: TargetArgs,
}

pub(in crate::verbs) async fn run(args: DiffArgs, output: &Output) -> Result<(), Failure> {
    let DiffArgs { file: LockFileArgs { path, name }, target } = args;
    let (endpoint, words) = Endpoint::take("diff", target)?;
    endpoint.no_more(&words, "diff")?;
    let file = LockFile::read(&path)?;
    let name = name.unwrap_or_else(|| endpoint.label());
    let Some(before) = file.catalogue(&name) else {
        let meant = near(&name, file.servers.keys().map(String::as_str));
        let meant = meant.map(|meant| format!("; did you mean `--as {meant}`?")).unwrap_or_default();
        let message = format!("`{}` has no server `{name}`{meant}", path.display());
        return Err(Failure::usage(message, endpoint.line("lock", &[])));
    };
    let after = fetch(&endpoint, output).await?;
    let changes = changes::compare(before, &after);
    let rows: Vec<_> = changes.iter().map(changes::Change::to_json).collect();
    output.result(&json!({ "name": name, "changes": rows }), |text| {
        changes.iter().for_each(|change| change.to_text(text));
    })?;
    match changes.len() {
        0 => Ok(()),
        count => {
            let message = format!("what `{name}` offers has changed since it was locked: {count} changes");
            Err(Failure::new(Exit::Findings, message, endpoint.line("lock", &[])))
        }
    }
}
