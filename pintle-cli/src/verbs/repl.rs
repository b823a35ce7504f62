use std::path::PathBuf;

use clap::Args;

use crate::args::{HELP, TargetArgs, examples};

/// Type verbs line by line, on one connection
#[derive(Args, Debug)]
#[command(
    before_help = examples(&[
        ("pintle repl demo", "a prompt: `ls`, `call tide port=bergen hour=4`, `help`; Tab completes"),
        ("pintle repl -- uvx mcp-server-git", "a program that is started once"),
        ("pintle repl demo < lines.txt", "the lines of a file; the exit code is that of the last line that failed"),
    ]),
    help_template = HELP,
    override_usage = "pintle repl TARGET",
)]
pub(crate) struct ReplArgs {
    /// Neither read nor write the file of earlier lines
    #[arg(long)]
    pub(crate) no_history: bool,
    /// A command for requests to a model: the request as JSON on its standard input, a text or a message as JSON on its output
    #[arg(long, value_name = "COMMAND")]
    pub(crate) sample_with: Option<String>,
    /// A directory that the server may work in
    #[arg(long = "root", value_name = "DIR")]
    pub(crate) roots: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}
