use clap::{Args, Command};

use super::GlobalArgs;

/// The layout of a help page: examples first.
pub(crate) const HELP: &str = "{about}\n\n{before-help}{usage-heading} {usage}\n\n{all-args}";

/// Formats examples for the top of a help page: what to type, and what it does.
pub(crate) fn examples(rows: &[(&str, &str)]) -> String {
    let width = rows.iter().map(|(typed, _)| typed.chars().count()).max().unwrap_or_default();
    let rows = rows.iter().map(|(typed, does)| match does.is_empty() {
        true => format!("  {typed}\n"),
        false => format!("  {typed:width$}   {does}\n"),
    });
    format!("Examples:\n{}", rows.collect::<String>().trim_end())
}

/// Returns the help page of a verb that handles `--help` itself.
pub(crate) fn help_of<T: Args>() -> String {
    let verb = T::augment_args(Command::new("pintle"));
    let about = verb.get_about().cloned().unwrap_or_default();
    // What is flattened into a command replaces its description.
    GlobalArgs::augment_args(verb).about(about).render_help().to_string()
}
