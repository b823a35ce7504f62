//! A server that answers as a recording has it.

mod http;
mod matching;
mod player;
mod script;
mod stdio;

use std::{path::PathBuf, sync::Arc};

use clap::Args;

use crate::listen::ListenArgs;
use crate::{
    args::{HELP, examples},
    failure::Failure,
    output::Output,
    recording,
};
use player::{Delivery, Player};
use script::Script;

/// Serve what `trace` or `tap` recorded
#[derive(Args, Debug)]
#[command(
    before_help = examples(&[
        ("pintle replay git.jsonl", "on standard input and output"),
        ("pintle ls -- pintle replay git.jsonl", "as the server of any client"),
        ("pintle replay git.jsonl --http 127.0.0.1:8000", "at http://127.0.0.1:8000/mcp"),
    ]),
    help_template = HELP,
)]
pub(crate) struct ReplayArgs {
    /// The recording
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Serve HTTP at this address, until Ctrl-C, and print the URL
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "127.0.0.1:8000")]
    http: Option<String>,
    /// Refuse a request that is made more often than it was recorded; otherwise its last answer is repeated
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    allowed: ListenArgs,
}

pub(in crate::verbs) async fn run(args: ReplayArgs, output: &Output) -> Result<(), Failure> {
    let ReplayArgs { file, http, strict, allowed } = args;
    if let Some(option) = allowed.given().filter(|_| http.is_none()) {
        let message = format!("`{option}` is an option of `--http`");
        return Err(Failure::usage(message, "pintle replay --help"));
    }
    let lines = recording::read(&file)?;
    let dropped: u64 = lines.iter().filter_map(|line| line.dropped).sum();
    if dropped > 0 {
        output.note(format_args!("{dropped} messages are missing in the recording"));
    }
    let script = Arc::new(Script::new(&lines));
    drop(lines);
    output.detail(match script.requests.len() {
        1 => "1 request is recorded".to_owned(),
        count => format!("{count} requests are recorded"),
    });
    match http {
        Some(address) => http::run(script, strict, &address, &allowed, output).await,
        None => stdio::run(Player::new(script, strict), output).await,
    }
}
