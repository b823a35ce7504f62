use std::ffi::OsString;

use clap::{CommandFactory as _, Parser, ValueEnum as _};
use pintle::types::method;

use super::words::LineWords;
use crate::{
    args::{EraArg, GlobalArgs, mark_flags, near, usage_failure},
    failure::Failure,
    output::OutputSettings,
    verbs::Verb,
};

/// A line of `repl`: a verb as in a shell, without the name of the program and the target.
#[derive(Debug, Parser)]
#[command(name = "pintle", no_binary_name = true, disable_help_subcommand = true)]
pub(super) struct VerbLine {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    global: GlobalArgs,
}

/// The verbs of lines.
pub(super) const VERBS: [&str; 12] = [
    "call",
    "complete",
    "diff",
    "info",
    "lint",
    "lock",
    "ls",
    method::PING,
    "prompt",
    "raw",
    "read",
    "watch",
];

/// The words that only lines have, and what they do.
pub(super) const OWN_WORDS: [(&str, &str); 5] = [
    ("era", "Show the era, or connect again in another: `session`, `stateless`, `auto`"),
    ("subscribe", "Show updates of a resource"),
    ("unsubscribe", "Show no more updates of a resource"),
    ("help", "Show these words, or the help of a verb"),
    ("exit", "Leave; so does Ctrl-D"),
];

/// A line, read.
#[derive(Debug)]
pub(super) enum Line {
    Nothing,
    Exit,
    Help,
    Era(Option<EraArg>),
    Subscribe(String),
    Unsubscribe(String),
    Verb(Box<(Verb, OutputSettings)>),
    /// The help of a verb.
    Print(String),
}

impl Line {
    /// Reads a line. `base` has the options of output that each line has.
    pub(super) fn parse(line: &str, base: &OutputSettings) -> Result<Self, Failure> {
        let LineWords { words, open_quote, .. } = LineWords::split(line);
        if let Some(quote) = open_quote {
            return Err(Failure::usage(format!("the quote {quote} is not closed"), format!("{line}{quote}")));
        }
        let words: Vec<String> = words.into_iter().map(|word| word.text).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            [] => Ok(Self::Nothing),
            ["exit" | "quit"] => Ok(Self::Exit),
            ["help" | "?" | "--help" | "-h"] => Ok(Self::Help),
            ["help", verb] => Self::verb(&[verb, "--help"], base),
            ["era"] => Ok(Self::Era(None)),
            ["era", era] => match EraArg::from_str(era, true) {
                Ok(era) => Ok(Self::Era(Some(era))),
                Err(_) => {
                    let message = format!("`{era}` is not an era: write `session`, `stateless` or `auto`");
                    Err(Failure::usage(message, "era auto"))
                }
            },
            ["subscribe", uri] => Ok(Self::Subscribe((*uri).to_owned())),
            ["unsubscribe", uri] => Ok(Self::Unsubscribe((*uri).to_owned())),
            [own @ ("subscribe" | "unsubscribe"), ..] => {
                Err(Failure::usage(format!("`{own}` takes one URI"), "ls resources"))
            }
            [own @ ("era" | "exit" | "quit" | "help"), ..] => {
                Err(Failure::usage(format!("too many words after `{own}`"), "help"))
            }
            words => Self::verb(words, base),
        }
    }

    fn verb(words: &[&str], base: &OutputSettings) -> Result<Self, Failure> {
        let first = words.iter().find(|word| !word.starts_with('-')).copied().unwrap_or_default();
        // `pintle call` is a habit.
        let words = if first == "pintle" { &words[1..] } else { words };
        let first = words.iter().find(|word| !word.starts_with('-')).copied().unwrap_or_default();
        if !VERBS.contains(&first) {
            let own = OWN_WORDS.iter().map(|(word, _)| *word);
            let message = match near(first, VERBS.into_iter().chain(own)) {
                Some(meant) => format!("`{first}` is not a verb here; did you mean `{meant}`?"),
                None => format!("`{first}` is not a verb here"),
            };
            return Err(Failure::usage(message, "help"));
        }
        let typed: Vec<OsString> = words.iter().map(OsString::from).collect();
        let marked = mark_flags(&VerbLine::command(), &typed);
        match VerbLine::try_parse_from(marked) {
            Ok(VerbLine { verb, global }) => {
                let settings = global.into_settings(&typed).over(base);
                Ok(Self::Verb(Box::new((verb, settings))))
            }
            Err(error) if !error.use_stderr() => Ok(Self::Print(error.to_string())),
            Err(error) => Err(usage_failure(&error, Some(first), &VerbLine::command(), &typed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Line, Failure> {
        Line::parse(line, &OutputSettings::default())
    }

    #[test]
    fn the_verbs_of_lines_are_those_with_a_target() {
        for verb in VerbLine::command().get_subcommands() {
            let name = verb.get_name();
            // Words that every verb of a line takes.
            let has_target = VerbLine::try_parse_from([name, "x"])
                .is_ok_and(|mut parsed| parsed.verb.target_mut().is_some());
            assert_eq!(VERBS.contains(&name), has_target, "{name}");
        }
    }

    #[test]
    fn lines_are_verbs_and_words_of_their_own() {
        assert!(matches!(parsed(" # nothing"), Ok(Line::Nothing)));
        assert!(matches!(parsed("era"), Ok(Line::Era(None))));
        assert!(matches!(parsed("era session"), Ok(Line::Era(Some(EraArg::Session)))));
        assert!(matches!(parsed("quit"), Ok(Line::Exit)));
        assert!(matches!(parsed("subscribe 'a b'"), Ok(Line::Subscribe(uri)) if uri == "a b"));
        assert!(
            matches!(parsed("pintle call tide --port bergen --json"), Ok(Line::Verb(line)) if line.1.json)
        );
        assert!(matches!(parsed("help ls"), Ok(Line::Print(help)) if help.contains("--grep")));
        for (line, message) in [
            ("cal tide", "did you mean `call`?"),
            ("login x", "`login` is not a verb here"),
            ("repl demo", "`repl` is not a verb here"),
            ("era old", "`old` is not an era"),
            ("subscribe", "takes one URI"),
            ("call 'x", "is not closed"),
            ("ls --bogus", "no such option"),
            ("-v", "is not a verb here"),
        ] {
            let failure = parsed(line).unwrap_err();
            assert!(failure.message.contains(message) && !failure.next.is_empty(), "{failure:?}");
        }
    }
}
