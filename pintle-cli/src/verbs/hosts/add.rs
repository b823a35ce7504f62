use clap::Args;
use pintle_host::config::{ConfigEdit, Host};

use super::edit;
use crate::{
    args::{HELP, TargetArgs, examples, quoted},
    failure::Failure,
    output::Output,
    targets::Endpoint,
};

/// Add a server to the configuration of hosts
#[derive(Args, Debug)]
#[command(
    before_help = examples(&[
        ("pintle add docs https://example.com/mcp --to claude-code,cursor", ""),
        ("pintle add git --to vscode --env TOKEN -- uvx mcp-server-git", "with a variable of the host's environment"),
        ("pintle add git --to codex --dry-run -- uvx mcp-server-git", "show the change only"),
        ("pintle add docs example.com --to cursor --project", "in the project of this directory"),
    ]),
    help_template = HELP,
    override_usage = "pintle add NAME TARGET --to HOST,…",
)]
pub(crate) struct AddArgs {
    /// The hosts: claude-code, claude-desktop, cline, codex, copilot-cli, cursor, gemini-cli, kiro, opencode, roo-code, vscode, windsurf, zed, …
    #[arg(long, value_name = "HOST,…", value_delimiter = ',', required = true, value_parser = edit::host)]
    to: Vec<Host>,
    /// Change the file of the project in this directory, not the user's
    #[arg(long)]
    project: bool,
    /// Replace a server with this name
    #[arg(long)]
    replace: bool,
    /// Show what would change
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    target: TargetArgs,
}

pub(crate) fn run(args: AddArgs, output: &Output) -> Result<(), Failure> {
    let AddArgs { to, project, replace, dry_run, mut target } = args;
    if target.words.is_empty() {
        return Err(Failure::usage("no name is given", "pintle add --help"));
    }
    let name = target.words.remove(0);
    if name.is_empty() || name.chars().any(char::is_control) {
        return Err(Failure::usage("a name has letters, and no control characters", "pintle add --help"));
    }
    let (endpoint, words) = Endpoint::take("add", target)?;
    if let Some(word) = words.first() {
        let message =
            format!("unexpected argument `{word}`: write the name, and the target or `--` and a program");
        return Err(Failure::usage(message, "pintle add --help"));
    }
    if name == "demo" {
        output.note(
            "`pintle` takes `demo` for the demo server: choose another name if you want to use this one here",
        );
    }
    let server = endpoint.new_server(&name)?;
    if let Some(url) = endpoint.plain_url().filter(|_| to.contains(&Host::ClaudeDesktop)) {
        let message = "the file of Claude Desktop names programs only: add a bridge to the URL";
        let next =
            format!("pintle add {} --to claude-desktop -- pintle bridge {}", quoted(&name), quoted(&url));
        return Err(Failure::usage(message, next));
    }
    let files = edit::files(&to, project)?;
    let edits: Vec<_> = files
        .into_iter()
        .map(|location| {
            let edit = match replace {
                true => ConfigEdit::set(&location, server.clone()),
                false => ConfigEdit::add(&location, server.clone()),
            };
            (location, edit)
        })
        .collect();
    edit::apply(&edits, dry_run, output)
}
