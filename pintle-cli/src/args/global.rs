use std::{ffi::OsString, time::Duration};

use clap::{ArgAction, Args};

use super::{duration, quoted};
use crate::{
    failure::{Exit, Failure},
    output::{OutputSettings, Pick},
};

/// Options of output, which every verb has.
#[derive(Args, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct GlobalArgs {
    /// Print JSON as the protocol has it: one object, or one line for each event
    #[arg(long, global = true)]
    json: bool,
    /// Print only a part of the JSON: `.tools[0].name`, `.tools[].name`
    #[arg(long, global = true, value_name = "PATH")]
    pick: Option<Pick>,
    /// Print texts of servers to a terminal without making control characters visible
    #[arg(long, global = true)]
    raw: bool,
    /// Print results and errors only
    #[arg(long = "quiet", short = 'q', global = true)]
    only_results: bool,
    /// Print how the server is reached, its log messages and its standard error; twice: debug messages too
    #[arg(long, short, global = true, action = ArgAction::Count)]
    verbose: u8,
    /// Print long results to a terminal directly, and not through `$PAGER` or `less`
    #[arg(long, global = true)]
    no_pager: bool,
}

impl GlobalArgs {
    /// Returns the settings. `typed` is the whole command line.
    pub(crate) fn into_settings(self, typed: &[OsString]) -> OutputSettings {
        let Self { json, pick, raw, only_results, verbose, no_pager } = self;
        OutputSettings { json, raw, pick, without_pick: without_pick(typed), only_results, verbose, no_pager }
    }
}

/// Returns the failure; if there was no answer in time, what to type next is the same line with more time.
pub(crate) fn with_more_time(mut failure: Failure, typed: &[OsString]) -> Failure {
    let words: Vec<_> = typed.iter().map(|word| word.to_string_lossy()).collect();
    let has_secret = words.iter().any(|word| word.starts_with("--header") || word.starts_with("-H"));
    if failure.exit != Exit::Timeout || has_secret {
        return failure;
    }
    let mut line = String::from("pintle");
    let mut given = None;
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match word.strip_prefix("--timeout") {
            _ if word == "--" => {
                line.push_str(&more(given));
                given = Some(Duration::MAX);
                line.push_str(" --");
            }
            Some("") if given.is_none() => given = rest.next().and_then(|time| duration(time).ok()),
            Some(time) if given.is_none() => {
                given = time.strip_prefix('=').and_then(|time| duration(time).ok())
            }
            _ => line.extend([" ", &quoted(word)]),
        }
    }
    if given != Some(Duration::MAX) {
        line.push_str(&more(given));
    }
    failure.next = line;
    failure
}

/// Returns an option with more time than was given, or than is usual.
fn more(given: Option<Duration>) -> String {
    let least = Duration::from_secs(60);
    let time = given.map_or(least, |given| given.saturating_mul(10).clamp(least, Duration::from_secs(3600)));
    format!(" --timeout {}s", time.as_secs())
}

/// Returns a command line with `--json` instead of `--pick`, and without the values of headers.
fn without_pick(typed: &[OsString]) -> String {
    let mut line = String::from("pintle");
    let mut words = typed.iter().map(|word| word.to_string_lossy());
    while let Some(word) = words.next() {
        match &*word {
            "--pick" => {
                words.next();
                line.push_str(" --json");
            }
            "--header" | "-H" => {
                words.next();
                line.push_str(" --header …");
            }
            word if word.starts_with("--pick=") => line.push_str(" --json"),
            word if word.starts_with("--header=") || word.starts_with("-H") => line.push_str(" --header …"),
            word => line.extend([" ", &quoted(word)]),
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_an_answer_is_typed_again_with_more_time() {
        for (typed, next) in [
            ("call demo x --timeout 2s", "pintle call demo x --timeout 60s"),
            ("ls --timeout=20s demo", "pintle ls demo --timeout 200s"),
            ("ls -- sh --timeout 1s", "pintle ls --timeout 60s -- sh --timeout 1s"),
            ("ls -H a:b demo", "as before"),
        ] {
            let typed: Vec<_> = typed.split(' ').map(OsString::from).collect();
            let failure = Failure::new(Exit::Timeout, "no answer", "as before");
            assert_eq!(with_more_time(failure, &typed).next, next);
        }
    }

    #[test]
    fn the_line_to_type_has_no_secrets() {
        let typed =
            ["ls", "x y", "--header", "A: s3cret", "-HB: s3cret", "--pick", ".a", "--header=C: s3cret"];
        let line = without_pick(&typed.map(OsString::from));
        assert_eq!(line, "pintle ls 'x y' --header … --header … --json --header …");
    }
}
