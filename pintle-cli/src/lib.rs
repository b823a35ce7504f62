//! The `pintle` command, as a library for its own tests.

mod args;
mod arguments;
mod auth;
mod cli;
mod completion;
mod connection;
mod content;
pub mod demo;
mod failure;
mod forms;
mod json;
mod listen;
mod output;
mod recording;
mod repl;
mod signals;
mod storage;
mod suspended;
mod targets;
pub mod tour;
mod verbs;

use std::{ffi::OsString, process::ExitCode};

use clap::{CommandFactory as _, Parser as _};

use cli::Cli;
use failure::{Exit, Failure};
use output::{Output, OutputSettings};
use signals::interrupted;
use verbs::Verb;

/// The first word of a command line that a shell runs to complete another one.
const COMPLETE: &str = "__complete";

/// Runs a command with the given arguments, without the name of the program.
pub fn run(arguments: impl IntoIterator<Item = impl Into<OsString>>) -> ExitCode {
    let typed: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
    if let Some((COMPLETE, words)) =
        typed.split_first().map(|(first, words)| (first.to_str().unwrap_or_default(), words))
    {
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let output = Output::new(OutputSettings::default());
        let found = completion::candidates(&Cli::command(), &words);
        let printed = output.text(|text| {
            for word in &found {
                text.line(word);
            }
        });
        return finish(&output, printed);
    }
    let name = OsString::from("pintle");
    let words = args::mark_flags(&Cli::command(), &typed);
    match Cli::try_parse_from(std::iter::once(&name).chain(&words)) {
        Ok(Cli { verb, global }) => {
            let output = Output::new(global.into_settings(&typed));
            let verb = verb.unwrap_or_default();
            finish(&output, execute(verb, &output))
        }
        Err(error) => {
            // Its own options could not be read: only this one matters here.
            let json = typed.iter().take_while(|word| *word != "--").any(|word| word == "--json");
            let output = Output::new(OutputSettings { json, ..OutputSettings::default() });
            let done = match error.use_stderr() {
                // Help, or the version.
                false => output.text(|text| {
                    text.block(&error);
                }),
                true => Err(args::usage_failure(&error, verb_of(&typed).as_deref())),
            };
            finish(&output, done)
        }
    }
}

/// Runs a verb until it ends, or the user presses Ctrl-C, or the process is asked to end. That drops it: calls are cancelled, and
/// programs ended.
fn execute(verb: Verb, output: &Output) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::internal(&error))?;
    runtime.block_on(async {
        let done = match verb.handles_signals() {
            true => run_verb(verb, output).await,
            false => tokio::select! {
                // An interrupted verb has no result.
                biased;
                () = interrupted() => Err(Failure::silent(Exit::Interrupted)),
                done = run_verb(verb, output) => done,
            },
        };
        output.flush_recording().await;
        done
    })
}

async fn run_verb(verb: Verb, output: &Output) -> Result<(), Failure> {
    match verb {
        Verb::Man(args) => verbs::man::run(&args, Cli::command(), output),
        Verb::Repl(args) => repl::run(args, output).await,
        verb => verbs::run(verb, output).await,
    }
}

fn finish(output: &Output, done: Result<(), Failure>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output.failure(&failure);
            failure.exit_code()
        }
    }
}

/// Returns the verb of a command line that could not be read.
fn verb_of(typed: &[OsString]) -> Option<String> {
    let command = Cli::command();
    let words = typed.iter().take_while(|word| *word != "--").filter_map(|word| word.to_str());
    let mut known = words.filter(|word| command.find_subcommand(word).is_some());
    known.next().map(str::to_owned)
}
