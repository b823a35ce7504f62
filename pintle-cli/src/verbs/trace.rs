use std::ffi::OsString;

use clap::{Args, CommandFactory as _, Parser};

use crate::{
    args::{GlobalArgs, HELP, examples, mark_flags, usage_failure},
    failure::Failure,
    output::Output,
    recording::{RecordArgs, Recorder},
};

use super::Verb;

/// Run another verb, and show every message of it
#[derive(Args, Debug)]
#[command(
    before_help = examples(&[
        ("pintle trace demo -- call tide port=bergen hour=4", "the messages of a call, on standard error"),
        ("pintle trace demo --json -- ls tools", "as lines of JSON"),
        ("pintle trace demo -o ls.jsonl -- ls", "into a file, for `pintle replay ls.jsonl`"),
        ("pintle trace -- ls -- uvx mcp-server-git", "a tool of a program, which comes last"),
    ]),
    help_template = HELP,
    override_usage = "pintle trace [TARGET] -- VERB [WORD]...",
)]
pub(crate) struct TraceArgs {
    #[arg(value_name = "TARGET", hide = true)]
    target: Option<OsString>,
    #[command(flatten)]
    record: RecordArgs,
    /// The verb and its words
    #[arg(last = true, value_name = "VERB", hide = true)]
    line: Vec<OsString>,
}

/// A traced command line.
#[derive(Debug, Parser)]
#[command(name = "pintle")]
struct TracedLine {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    global: GlobalArgs,
}

pub(super) async fn run(args: TraceArgs, output: &Output) -> Result<(), Failure> {
    let TraceArgs { target, record, line } = args;
    let Some((verb, words)) = line.split_first() else {
        let target = target.map_or("demo".into(), |target| target.to_string_lossy().into_owned());
        return Err(Failure::usage(
            "which verb? write it after `--`",
            format!("pintle trace {target} -- ls"),
        ));
    };
    let typed: Vec<OsString> = std::iter::once(verb).chain(&target).chain(words).cloned().collect();
    let command = TracedLine::command();
    let name = OsString::from("pintle");
    let words = mark_flags(&command, &typed);
    let traced = match TracedLine::try_parse_from(std::iter::once(&name).chain(&words)) {
        Ok(traced) => traced,
        // Help of the verb.
        Err(error) if !error.use_stderr() => {
            return output.text(|text| {
                text.block(&error);
            });
        }
        Err(error) => {
            let verb = verb.to_str().filter(|verb| command.find_subcommand(verb).is_some());
            return Err(usage_failure(&error, verb, &command, &typed));
        }
    };
    if !traced.verb.is_client() {
        let message = format!("`{}` sends no messages that can be traced", verb.to_string_lossy());
        return Err(Failure::usage(message, "pintle trace demo -- call tide port=bergen hour=4"));
    }
    let recorder = Recorder::start(&record, output)?;
    let inner = Output::new(traced.global.into_settings(&typed)).with_message_log(recorder.log());
    let done = super::run(traced.verb, &inner).await;
    // A failure is below the messages.
    recorder.flush().await;
    // Its own options have the form of the failure.
    done.inspect_err(|failure| inner.failure(failure)).map_err(|failure| Failure::silent(failure.exit))
}
