use std::ffi::OsString;

use clap::{
    Command,
    error::{ContextKind, ContextValue, ErrorKind},
};

use super::{near, quoted};
use crate::failure::Failure;

/// The verbs that forget or change something: they are not what to type next.
const CHANGING: [&str; 7] = ["add", "approve", "lock", "login", "logout", "rm", "resume"];

/// Turns an error of the command line into a failure: one line, and what to type instead. `typed` is the line without `pintle`.
pub(crate) fn usage_failure(
    error: &clap::Error,
    verb: Option<&str>,
    command: &Command,
    typed: &[OsString],
) -> Failure {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::Strings(texts)) => texts.first().cloned(),
        _ => None,
    };
    let help = match verb {
        Some(verb) => format!("pintle {verb} --help"),
        None => "pintle --help".to_owned(),
    };
    // Without what stands for its value: `--timeout <TIME>`.
    let argument = context(ContextKind::InvalidArg).unwrap_or_default();
    let argument = argument.split(' ').next().unwrap_or_default();
    let value = context(ContextKind::InvalidValue).unwrap_or_default();
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let wrong = context(ContextKind::InvalidSubcommand).unwrap_or_default();
            let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set()).map(Command::get_name);
            match near(&wrong, verbs) {
                Some(meant) => {
                    let message = format!("no such command: `{wrong}`; did you mean `{meant}`?");
                    Failure::usage(message, corrected(typed, &wrong, meant))
                }
                None => Failure::usage(format!("no such command: `{wrong}`"), help),
            }
        }
        ErrorKind::UnknownArgument => match context(ContextKind::SuggestedArg) {
            Some(meant) => {
                Failure::usage(format!("no such option: `{argument}`; did you mean `{meant}`?"), help)
            }
            None => Failure::usage(format!("no such option: `{argument}`"), help),
        },
        ErrorKind::InvalidValue if value.is_empty() => {
            Failure::usage(format!("`{argument}` needs a value"), help)
        }
        ErrorKind::InvalidValue => match error.get(ContextKind::ValidValue) {
            Some(ContextValue::Strings(valid)) => {
                Failure::usage(format!("`{argument}` cannot be `{value}`: write {}", valid.join(", ")), help)
            }
            _ => Failure::usage(format!("`{argument}` cannot be `{value}`"), help),
        },
        ErrorKind::ValueValidation => {
            let reason = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
            let reason = match reason.split_once(" is not in ").and_then(|(_, range)| range.split_once(".."))
            {
                Some((from, "")) => format!("write a number from {from} on"),
                Some((from, to)) => format!("write a number from {from} to {}", to.trim_start_matches('=')),
                None => reason,
            };
            Failure::usage(format!("`{argument}` cannot be `{value}`: {reason}"), help)
        }
        ErrorKind::MissingRequiredArgument => {
            let name = argument.trim_matches(['<', '>']);
            let whose = verb.map(|verb| format!("`{verb}` needs ")).unwrap_or_default();
            let name = if name.starts_with('-') {
                format!("`{name}`")
            } else {
                format!("a {}", name.to_lowercase())
            };
            Failure::usage(if whose.is_empty() { format!("{name} is missing") } else { whose + &name }, help)
        }
        ErrorKind::ArgumentConflict => {
            let other = context(ContextKind::PriorArg).unwrap_or_default();
            let other = other.split(' ').next().unwrap_or_default();
            let message = match other {
                "" => format!("`{argument}` does not go with the others: leave it out"),
                other => format!("`{argument}` and `{other}` exclude each other: leave out one of them"),
            };
            Failure::usage(message, help)
        }
        _ => {
            // Its first line says what is wrong.
            let text = error.to_string();
            let line = text.lines().next().unwrap_or_default();
            Failure::usage(line.strip_prefix("error: ").unwrap_or(line), help)
        }
    }
}

/// Returns the line with the verb that was meant. Headers may be secrets, and what changes something is looked at first.
fn corrected(typed: &[OsString], wrong: &str, meant: &str) -> String {
    let words: Vec<_> = typed.iter().map(|word| word.to_string_lossy()).collect();
    let is_secret = words.iter().any(|word| word.starts_with("--header") || word.starts_with("-H"));
    match () {
        () if CHANGING.contains(&meant) => format!("pintle {meant} --help"),
        () if is_secret => format!("pintle {meant}"),
        () => {
            let at = words.iter().position(|word| *word == wrong);
            let words = words.iter().enumerate().map(|(index, word)| match Some(index) == at {
                true => format!(" {meant}"),
                false => format!(" {}", quoted(word)),
            });
            format!("pintle{}", words.collect::<String>())
        }
    }
}
