use std::ffi::OsString;

use clap::{ArgAction, Args};

use super::quoted;
use crate::output::{OutputSettings, Pick};

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
    fn the_line_to_type_has_no_secrets() {
        let typed =
            ["ls", "x y", "--header", "A: s3cret", "-HB: s3cret", "--pick", ".a", "--header=C: s3cret"];
        let line = without_pick(&typed.map(OsString::from));
        assert_eq!(line, "pintle ls 'x y' --header … --header … --json --header …");
    }
}
