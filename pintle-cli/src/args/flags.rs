use std::ffi::{OsStr, OsString};

use clap::Command;

/// The mark before an option that the command does not know: it may be an argument of the tool. A shell cannot pass it.
const MARK: &str = "\u{1}";

/// Marks the options after `call` that the command does not know, so that they reach the verb as words.
pub(crate) fn mark_flags(command: &Command, typed: &[OsString]) -> Vec<OsString> {
    let mut words = Vec::with_capacity(typed.len());
    let mut verb: Option<&Command> = None;
    let mut rest = typed.iter();
    while let Some(word) = rest.next() {
        let Some(text) = word.to_str() else {
            words.push(word.clone());
            continue;
        };
        if text == "--" {
            words.push(word.clone());
            words.extend(rest.by_ref().cloned());
            break;
        }
        if verb.is_none() && !text.starts_with('-') {
            verb = command.find_subcommand(text);
            words.push(word.clone());
            // Only tools have arguments that are not known here.
            if text != "call" {
                break;
            }
            continue;
        }
        match takes_value(command, verb, text) {
            Some(takes_value) => {
                words.push(word.clone());
                words.extend(takes_value.then(|| rest.next().cloned()).flatten());
            }
            None if verb.is_some() && text.starts_with("--") => {
                words.push(OsString::from(format!("{MARK}{text}")));
            }
            None => words.push(word.clone()),
        }
    }
    words.extend(rest.cloned());
    words
}

/// Returns the option without its dashes, if a word is one that the command does not know.
pub(crate) fn flag_of(word: &str) -> Option<&str> {
    word.strip_prefix(MARK).and_then(|option| option.strip_prefix("--"))
}

/// Returns whether the next word is the value of an option; `None` if the word is not an option that is known.
fn takes_value(command: &Command, verb: Option<&Command>, word: &str) -> Option<bool> {
    let name = word.strip_prefix("--");
    let has_value = word.contains('=');
    let arguments = command.get_arguments().chain(verb.into_iter().flat_map(Command::get_arguments));
    for argument in arguments {
        let long = name.map(|name| name.split('=').next().unwrap_or_default());
        let is_long = long.is_some() && argument.get_long() == long;
        let is_short = name.is_none()
            && argument
                .get_short()
                .is_some_and(|short| word.strip_prefix('-').is_some_and(|rest| rest.starts_with(short)));
        if is_long || is_short {
            let is_alone = is_long && !has_value || is_short && OsStr::new(word).len() == 2;
            return Some(argument.get_action().takes_values() && is_alone);
        }
    }
    matches!(word, "--help" | "--version" | "-h" | "-V").then_some(false)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn marked(line: &str) -> String {
        let typed: Vec<_> = line.split(' ').map(OsString::from).collect();
        let words = mark_flags(&crate::cli::Cli::command(), &typed);
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy().replace(MARK, "!")).collect();
        words.join(" ")
    }

    #[test]
    fn options_that_are_not_known_are_for_the_tool() {
        for (typed, words) in [
            ("call demo tide --port bergen --hour=4", "call demo tide !--port bergen !--hour=4"),
            ("--json call demo tide --port x --json -v", "--json call demo tide !--port x --json -v"),
            ("call demo x --header --port --era session", "call demo x --header --port --era session"),
            ("call demo x -H --port --answer --x --y", "call demo x -H --port --answer --x !--y"),
            ("call x --z -- server --port 8000", "call x !--z -- server --port 8000"),
            ("ls demo --bogus", "ls demo --bogus"),
            ("--pick call ls --bogus", "--pick call ls --bogus"),
        ] {
            assert_eq!(marked(typed), words);
        }
    }
}
