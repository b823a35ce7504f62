use clap::{Arg, Command};

use super::catalogue::{CachedTool, is_plain, load};
use crate::{
    suspended::SuspendedStore,
    targets::{directories, inventory},
};

/// How many words are offered.
const MAX_CANDIDATES: usize = 500;

/// Returns the words that complete the last one. `words` are those after the name of the program.
pub(crate) fn candidates(command: &Command, words: &[String]) -> Vec<String> {
    let Some((current, before)) = words.split_last() else { return Vec::new() };
    // A program and its arguments are files.
    if before.iter().any(|word| word == "--") {
        return Vec::new();
    }
    let mut verb: Option<&Command> = None;
    let mut positionals: Vec<&str> = Vec::new();
    let mut value_of: Option<&Arg> = None;
    for word in before {
        if value_of.take().is_some() {
            continue;
        }
        match word.strip_prefix('-') {
            Some(_) => {
                value_of = option(command, verb, word)
                    .filter(|argument| argument.get_action().takes_values() && !word.contains('='));
            }
            None if verb.is_none() => verb = command.find_subcommand(word),
            None => positionals.push(word),
        }
    }
    let mut found = match (value_of, verb) {
        (Some(argument), _) => values(argument),
        (None, verb) if current.starts_with('-') => options(command, verb, &positionals),
        (None, None) => verbs(command),
        (None, Some(verb)) => words_of(verb, &positionals, current),
    };
    found.retain(|word| word.starts_with(current.as_str()));
    found.sort();
    found.dedup();
    found.truncate(MAX_CANDIDATES);
    found
}

fn verbs(command: &Command) -> Vec<String> {
    let shown = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    shown.map(|verb| verb.get_name().to_owned()).collect()
}

fn option<'a>(command: &'a Command, verb: Option<&'a Command>, word: &str) -> Option<&'a Arg> {
    let long = word.strip_prefix("--").map(|name| name.split('=').next().unwrap_or_default());
    let short = word.strip_prefix('-').filter(|rest| rest.chars().count() == 1);
    let mut all = command.get_arguments().chain(verb.into_iter().flat_map(Command::get_arguments));
    all.find(|argument| match (long, short) {
        (Some(long), _) => argument.get_long() == Some(long),
        (None, Some(short)) => argument.get_short().is_some_and(|own| short.starts_with(own)),
        _ => false,
    })
}

fn values(argument: &Arg) -> Vec<String> {
    argument
        .get_possible_values()
        .iter()
        .filter(|value| !value.is_hide_set())
        .map(|value| value.get_name().to_owned())
        .collect()
}

/// Returns the options of the command and of a verb, and those of a tool.
fn options(command: &Command, verb: Option<&Command>, positionals: &[&str]) -> Vec<String> {
    let all = command.get_arguments().chain(verb.into_iter().flat_map(Command::get_arguments));
    let all = all.filter(|argument| !argument.is_hide_set());
    let mut found: Vec<_> = all.filter_map(Arg::get_long).map(|long| format!("--{long}")).collect();
    found.push("--help".to_owned());
    if let (Some(verb), [target, tool, ..]) = (verb, positionals)
        && verb.get_name() == "call"
        && let Some(tool) = tool_of(target, tool)
    {
        found.extend(tool.parameters.iter().map(|(name, _)| format!("--{}", name.replace('_', "-"))));
    }
    found
}

/// Returns what may be the next word of a verb: a target, a name, an argument.
fn words_of(verb: &Command, positionals: &[&str], current: &str) -> Vec<String> {
    let has_target = verb.get_arguments().any(|argument| {
        argument.get_value_names().is_some_and(|names| names.iter().any(|name| name == "TARGET"))
    });
    match (verb.get_name(), positionals) {
        ("resume", []) => SuspendedStore::of_user().map(|store| store.tokens()).unwrap_or_default(),
        ("resume", _) => Vec::new(),
        (_, []) if has_target => targets(),
        (_, []) => verb.get_positionals().flat_map(values).collect(),
        ("ls", [_, ..]) => ["tools", "prompts", "resources", "templates"].map(str::to_owned).into(),
        ("call" | "bench", [target]) => {
            let tools = load(target).map(|known| known.tools).unwrap_or_default();
            tools.into_iter().map(|tool| tool.name).filter(|name| is_plain(name)).collect()
        }
        ("call" | "bench", [target, tool, given @ ..]) => match tool_of(target, tool) {
            Some(tool) => arguments(&tool, given, current),
            None => Vec::new(),
        },
        ("prompt" | "complete", [target]) => plain(load(target).map(|known| known.prompts)),
        ("read" | "watch", [target, ..]) => plain(load(target).map(|known| known.resources)),
        _ => Vec::new(),
    }
}

fn plain(names: Option<Vec<String>>) -> Vec<String> {
    names.unwrap_or_default().into_iter().filter(|name| is_plain(name)).collect()
}

fn targets() -> Vec<String> {
    let configured = inventory(&directories()).servers.into_iter().map(|listed| listed.server.entry.name);
    configured.filter(|name| is_plain(name)).chain(["demo".to_owned()]).collect()
}

fn tool_of(target: &str, name: &str) -> Option<CachedTool> {
    load(target)?.tools.into_iter().find(|tool| tool.name == name)
}

/// Returns `name=` for each argument that was not given, or `name=value` for the values of one.
fn arguments(tool: &CachedTool, given: &[&str], current: &str) -> Vec<String> {
    let plain = tool.parameters.iter().filter(|(name, _)| is_plain(name));
    match current.split_once('=') {
        Some((typed, _)) => plain
            .filter(|(name, _)| name == typed)
            .flat_map(|(name, values)| {
                values.iter().filter(|value| is_plain(value)).map(move |value| format!("{name}={value}"))
            })
            .collect(),
        None => plain
            .map(|(name, _)| format!("{name}="))
            .filter(|name| !given.iter().any(|word| word.starts_with(name.as_str())))
            .collect(),
    }
}
