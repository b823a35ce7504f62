use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::failure::Failure;

/// Turns an error of the command line into a failure: one line, and what to type instead.
pub(crate) fn usage_failure(error: &clap::Error, verb: Option<&str>) -> Failure {
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
            let typed = context(ContextKind::InvalidSubcommand).unwrap_or_default();
            match context(ContextKind::SuggestedSubcommand) {
                Some(meant) => Failure::usage(
                    format!("no such command: `{typed}`; did you mean `{meant}`?"),
                    format!("pintle {meant}"),
                ),
                None => Failure::usage(format!("no such command: `{typed}`"), help),
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
            Failure::usage(format!("`{argument}` cannot be `{value}`: {reason}"), help)
        }
        ErrorKind::MissingRequiredArgument => Failure::usage(format!("{argument} is missing"), help),
        _ => {
            // Its first line says what is wrong.
            let text = error.to_string();
            let line = text.lines().next().unwrap_or_default();
            Failure::usage(line.strip_prefix("error: ").unwrap_or(line), help)
        }
    }
}
