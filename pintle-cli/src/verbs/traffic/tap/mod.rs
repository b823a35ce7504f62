//! A man in the middle, between a host and its server.

mod lines;
mod program;
mod proxy;
#[cfg(unix)]
mod signals;

use std::ffi::OsString;

use clap::Args;

use crate::listen::ListenArgs;
use crate::{
    args::{HELP, examples},
    failure::Failure,
    output::Output,
    recording::{RecordArgs, Recorder},
};

/// Show every message between a real host and its server
#[derive(Args, Debug)]
#[command(
    before_help = examples(&[
        ("pintle tap -o git.jsonl -- uvx mcp-server-git", "the command to configure in a host, instead of the program"),
        ("pintle tap https://example.com/mcp --listen 127.0.0.1:8001", "at http://127.0.0.1:8001/mcp, for any client"),
        ("pintle replay git.jsonl", "serve what was recorded"),
    ]),
    help_template = HELP,
    override_usage = "pintle tap -- PROGRAM [ARGS]...\n       pintle tap URL --listen ADDRESS",
)]
pub(crate) struct TapArgs {
    #[arg(value_name = "URL", hide = true)]
    url: Option<String>,
    /// The address to listen at, for a server at a URL; port 0 is a free one
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    #[command(flatten)]
    allowed: ListenArgs,
    #[command(flatten)]
    record: RecordArgs,
    #[arg(last = true, value_name = "PROGRAM", hide = true)]
    command: Vec<OsString>,
}

impl TapArgs {
    /// Returns whether a program is run, which signals are passed on to.
    pub(in crate::verbs) fn has_program(&self) -> bool {
        !self.command.is_empty()
    }
}

pub(in crate::verbs) async fn run(args: TapArgs, output: &Output) -> Result<(), Failure> {
    let TapArgs { url, listen, allowed, record, command } = args;
    match (url, command.split_first()) {
        (None, Some((program, args))) => {
            let listens = listen.is_some().then_some("--listen");
            if let Some(option) = listens.or_else(|| allowed.given()) {
                let message = format!("`{option}` is an option of a server at a URL: leave it out");
                return Err(Failure::usage(message, "pintle tap --help"));
            }
            program::run(program, args, &Recorder::start(&record, output)?, output).await
        }
        (Some(url), None) => proxy::run(&url, listen, &allowed, &record, output).await,
        (Some(_), Some(_)) => {
            let message = "a URL and a program: write one of them";
            Err(Failure::usage(message, "pintle tap --help"))
        }
        (None, None) => {
            let message = "which server? write `--` and a program, or a URL";
            Err(Failure::usage(message, "pintle tap -- pintle demo"))
        }
    }
}
