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
    args::{ConnectArgs, HELP, TargetArgs, examples},
    failure::Failure,
    output::Output,
    recording::{RecordArgs, Recorder},
    targets::{Endpoint, Launch},
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
    override_usage = "pintle tap TARGET [--listen ADDRESS]\n       pintle tap -- PROGRAM [ARGS]...",
)]
pub(crate) struct TapArgs {
    #[arg(value_name = "TARGET", hide = true)]
    target: Option<String>,
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

pub(in crate::verbs) async fn run(args: TapArgs, output: &Output) -> Result<(), Failure> {
    let TapArgs { target, listen, allowed, record, command } = args;
    if target.is_some() && !command.is_empty() {
        let message = "a target and a program: write one of them";
        return Err(Failure::usage(message, "pintle tap --help"));
    }
    let connect = ConnectArgs { command, ..ConnectArgs::default() };
    let (endpoint, _) = Endpoint::take("tap", TargetArgs { words: target.into_iter().collect(), connect })?;
    match endpoint.launch(output).await? {
        Launch::Program(program) => {
            let listens = listen.is_some().then_some("--listen");
            if let Some(option) = listens.or_else(|| allowed.given()) {
                let message = format!("`{option}` is an option of a server at a URL: leave it out");
                return Err(Failure::usage(message, "pintle tap --help"));
            }
            program::run(&program, &Recorder::start(&record, output)?, output).await
        }
        Launch::Url(remote) => proxy::run(&remote, listen, &allowed, &record, output).await,
    }
}
