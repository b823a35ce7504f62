use clap::{Arg, Command, CommandFactory as _};
use pintle::{
    Connection,
    types::schema::{CompletionReference, PromptReference, ResourceReference},
    uri::Template,
};

use super::{
    editor::{CompletedWord, Completions},
    line::{OWN_WORDS, VERBS, VerbLine},
    lists::CachedLists,
    words::{LineWord, LineWords, line_quoted},
};
use crate::{arguments::parameters, output::hides, targets::Endpoint};

/// The number of words that are offered.
const MAX_CANDIDATES: usize = 200;

/// The heading of the options that lines do not have: the connection is open.
const CONNECTION: &str = "Connection";

/// A candidate before it is quoted.
enum Offer {
    /// A whole word.
    Word(String),
    /// The start of `name=value`.
    Name(String),
    /// `name=value`, of which the value is shown.
    Value { name: String, value: String },
}

/// Returns the words that complete the one before a position of a line: verbs, names, arguments, and values that the server
/// completes.
pub(super) async fn complete(
    line: &str,
    position: usize,
    lists: &mut CachedLists,
    connection: Option<&Connection>,
    endpoint: &Endpoint,
) -> Completions {
    let LineWords { mut words, is_in_word, .. } = LineWords::split(line.get(..position).unwrap_or_default());
    let last = if is_in_word { words.pop() } else { None };
    let current = last.unwrap_or(LineWord { text: String::new(), start: position });
    let before: Vec<_> = words.iter().map(|word| word.text.as_str()).collect();
    let mut source = Source { lists, connection, endpoint };
    let offers = source.offers(&before, &current.text).await;
    let mut words: Vec<_> = offers.iter().filter_map(|offer| offer.to_word(&current.text)).collect();
    words.sort_by(|one, other| one.shown.cmp(&other.shown));
    words.dedup();
    words.truncate(MAX_CANDIDATES);
    Completions { start: current.start, words }
}

impl Offer {
    /// Returns the candidate if it begins with what was typed. Names of a server are not trusted: the editor prints them as they are.
    fn to_word(&self, typed: &str) -> Option<CompletedWord> {
        let (shown, inserted) = match self {
            Self::Word(word) => (word.clone(), word.clone()),
            Self::Name(name) => (format!("{name}="), format!("{name}=")),
            Self::Value { name, value } => (value.clone(), format!("{name}={value}")),
        };
        if !inserted.starts_with(typed) || hides(&inserted) {
            return None;
        }
        let quoted = line_quoted(&inserted);
        let inserted = match self {
            // More is typed, inside the quotes if there are any.
            Self::Name(_) => quoted.strip_suffix('\'').map_or(quoted.clone(), str::to_owned),
            _ => quoted + " ",
        };
        Some(CompletedWord { shown, inserted })
    }
}

/// Where candidates come from.
struct Source<'a> {
    lists: &'a mut CachedLists,
    connection: Option<&'a Connection>,
    endpoint: &'a Endpoint,
}

impl Source<'_> {
    async fn offers(&mut self, before: &[&str], current: &str) -> Vec<Offer> {
        let command = VerbLine::command();
        let Some((first, rest)) = before.split_first() else { return words(verbs()) };
        let verb = command.find_subcommand(first).filter(|_| VERBS.contains(first));
        if let Some(option) = before.last().and_then(|word| option(&command, verb, word))
            && option.get_action().takes_values()
        {
            let values = option.get_possible_values();
            return values.iter().map(|value| Offer::Word(value.get_name().to_owned())).collect();
        }
        let positionals = positionals(&command, verb, rest);
        if current.starts_with('-') {
            return self.options(&command, verb, &positionals).await;
        }
        match (*first, positionals.as_slice()) {
            ("help", []) => words(VERBS.map(str::to_owned)),
            ("era", []) => words(["auto", "session", "stateless"].map(str::to_owned)),
            ("ls", _) => words(["tools", "prompts", "resources", "templates"].map(str::to_owned)),
            ("subscribe" | "unsubscribe", []) | ("watch", _) => words(self.resources(false).await),
            ("read", []) => words(self.resources(true).await),
            ("prompt", []) => words(self.prompts().await),
            ("complete", []) => {
                let mut all = self.prompts().await;
                all.extend(self.templates().await);
                words(all)
            }
            ("call", []) => words(self.tools().await),
            ("call", [tool, given @ ..]) => self.tool_arguments(tool, given, current).await,
            ("prompt" | "read" | "complete", [of, given @ ..]) => self.completed(of, given, current).await,
            _ => Vec::new(),
        }
    }

    async fn options(
        &mut self,
        command: &Command,
        verb: Option<&Command>,
        positionals: &[&str],
    ) -> Vec<Offer> {
        let all = command.get_arguments().chain(verb.into_iter().flat_map(Command::get_arguments));
        let all = all.filter(|option| !option.is_hide_set() && option.get_help_heading() != Some(CONNECTION));
        let mut names: Vec<_> = all.filter_map(Arg::get_long).map(|name| format!("--{name}")).collect();
        names.push("--help".to_owned());
        if let (Some("call"), [tool, ..], Some(connection)) =
            (verb.map(Command::get_name), positionals, self.connection)
            && let Some(tool) = self.lists.tools(connection).await.iter().find(|known| known.name == *tool)
        {
            let own = parameters(&tool.input_schema);
            names.extend(own.iter().map(|parameter| format!("--{}", parameter.name.replace('_', "-"))));
        }
        words(names)
    }

    async fn tools(&mut self) -> Vec<String> {
        let Some(connection) = self.connection else { return Vec::new() };
        let tools = self.lists.tools(connection).await.iter();
        tools.map(|tool| tool.name.clone()).filter(|name| self.endpoint.allows_tool(name)).collect()
    }

    async fn prompts(&mut self) -> Vec<String> {
        let Some(connection) = self.connection else { return Vec::new() };
        self.lists.prompts(connection).await.iter().map(|prompt| prompt.name.clone()).collect()
    }

    async fn templates(&mut self) -> Vec<String> {
        let Some(connection) = self.connection else { return Vec::new() };
        let templates = self.lists.templates(connection).await.iter();
        templates.map(|template| template.uri_template.clone()).collect()
    }

    async fn resources(&mut self, with_templates: bool) -> Vec<String> {
        let Some(connection) = self.connection else { return Vec::new() };
        let resources = self.lists.resources(connection).await.iter();
        let mut all: Vec<_> = resources.map(|resource| resource.uri.clone()).collect();
        if with_templates {
            all.extend(self.templates().await);
        }
        all
    }

    /// The arguments of a tool that were not given, or the values of one.
    async fn tool_arguments(&mut self, name: &str, given: &[&str], current: &str) -> Vec<Offer> {
        let Some(connection) = self.connection else { return Vec::new() };
        let tools = self.lists.tools(connection).await;
        let Some(tool) = tools.iter().find(|tool| tool.name == name) else { return Vec::new() };
        let parameters = parameters(&tool.input_schema);
        match current.split_once('=') {
            Some((typed, _)) => {
                let parameter = parameters.iter().filter(|parameter| parameter.name == typed);
                let values = parameter.flat_map(|parameter| parameter.values());
                values.map(|value| Offer::Value { name: typed.to_owned(), value }).collect()
            }
            None => names(parameters.iter().map(|parameter| parameter.name), given),
        }
    }

    /// The arguments of a prompt or the variables of a template, or the values of one, which the server completes.
    async fn completed(&mut self, of: &str, given: &[&str], current: &str) -> Vec<Offer> {
        let Some(connection) = self.connection else { return Vec::new() };
        let is_template = of.contains("://") || of.contains('{');
        let Some((name, start)) = current.split_once('=') else {
            if is_template {
                let Ok(template) = of.parse::<Template>() else { return Vec::new() };
                return names(template.names(), given);
            }
            let prompts = self.lists.prompts(connection).await;
            let prompt = prompts.iter().find(|prompt| prompt.name == of);
            let arguments = prompt.and_then(|prompt| prompt.arguments.as_deref()).unwrap_or_default();
            return names(arguments.iter().map(|argument| argument.name.as_str()), given);
        };
        let reference = match is_template {
            true => CompletionReference::Resource(ResourceReference::new(of)),
            false => CompletionReference::Prompt(PromptReference::new(of)),
        };
        let context = given.iter().filter_map(|word| word.split_once('='));
        let context = context.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let values = match connection.complete(reference, name, start, context).await {
            Ok(completion) => completion.values,
            Err(_) => Vec::new(),
        };
        values.into_iter().map(|value| Offer::Value { name: name.to_owned(), value }).collect()
    }
}

fn verbs() -> Vec<String> {
    VERBS.into_iter().chain(OWN_WORDS.map(|(word, _)| word)).map(str::to_owned).collect()
}

fn words(words: impl IntoIterator<Item = String>) -> Vec<Offer> {
    words.into_iter().map(Offer::Word).collect()
}

/// Returns the names that were not given yet.
fn names<'a>(names: impl Iterator<Item = &'a str>, given: &[&str]) -> Vec<Offer> {
    let is_given = |name: &str| given.iter().any(|word| word.split('=').next() == Some(name));
    names.filter(|name| !is_given(name)).map(|name| Offer::Name(name.to_owned())).collect()
}

/// Returns the words after a verb that are not options or their values.
fn positionals<'a>(command: &Command, verb: Option<&Command>, words: &[&'a str]) -> Vec<&'a str> {
    let mut found = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match option(command, verb, word) {
            Some(option) if option.get_action().takes_values() && !word.contains('=') => drop(words.next()),
            _ if word.starts_with('-') => {}
            _ => found.push(*word),
        }
    }
    found
}

/// Returns the option that a word is, without a value.
fn option<'a>(command: &'a Command, verb: Option<&'a Command>, word: &str) -> Option<&'a Arg> {
    let mut all = command.get_arguments().chain(verb.into_iter().flat_map(Command::get_arguments));
    match (word.strip_prefix("--"), word.strip_prefix('-')) {
        (Some(long), _) => all.find(|option| option.get_long() == Some(long)),
        (None, Some(short)) if short.chars().count() == 1 => {
            all.find(|option| option.get_short().is_some_and(|own| short.starts_with(own)))
        }
        _ => None,
    }
}
