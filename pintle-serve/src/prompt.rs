use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use pintle::{
    server::{PromptArguments, PromptRoute},
    types::{
        JsonObject,
        schema::{Prompt, PromptArgument},
    },
};
use pintle_yaml::FrontMatter;
#[cfg(feature = "schemars")]
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    ArgumentEntry, EntryFault,
    argument::{Argument, checked},
    disk::read_own_file,
    text::Text,
};

/// The most bytes of a file with a prompt.
const MAX_BYTES: u64 = 256 << 10;

/// A prompt of a file: a text with places for its arguments.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[cfg_attr(feature = "schemars", derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct PromptEntry {
    /// A name for people.
    pub title: Option<String>,
    /// A text for models and people: what the prompt is for.
    pub description: Option<String>,
    /// The arguments, by their names: `"string"`, `"string?"` for one that can be left out, `"string = VALUE"`, or a JSON Schema with a
    /// `description` and an `enum`.
    pub arguments: BTreeMap<String, ArgumentEntry>,
    /// The text, with `{name}` where an argument goes, and `{{` and `}}` for braces.
    pub text: Option<String>,
    /// A file with the text. If it begins with YAML between lines `---`, that has the title, the description and the arguments.
    pub file: Option<PathBuf>,
}

impl PromptEntry {
    /// Reads the file of the entry, if it has one, which then has a text in place of it. Paths are relative to the folder. It blocks.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or its front matter is wrong. The error says what to write.
    pub fn load(self, folder: &Path) -> Result<Self, String> {
        let Some(file) = self.file else { return Ok(self) };
        if self.text.is_some() {
            return Err("it has `text` and `file`: remove one of them".to_owned());
        }
        let path = folder.join(&file);
        let shown = path.display();
        let unreadable = |reason: String| format!("`{shown}` cannot be read: {reason}");
        let text = read_own_file(&path, MAX_BYTES).map_err(|error| unreadable(error.to_string()))?;
        let mut entry = Self { file: None, ..self };
        if text.trim_start_matches('\u{feff}').lines().next().is_none_or(|line| line.trim_end() != "---") {
            entry.text = Some(text);
            return Ok(entry);
        }
        let front = FrontMatter::parse(&text).map_err(|reason| format!("`{shown}`: {reason}"))?;
        let read: Self = serde_json::from_value(Value::Object(front.members))
            .map_err(|error| format!("`{shown}`: the front matter is wrong: {error}"))?;
        if read.text.is_some() || read.file.is_some() {
            return Err(format!(
                "`{shown}`: the text of the prompt follows the front matter: remove `text` and `file`"
            ));
        }
        entry.title = entry.title.or(read.title);
        entry.description = entry.description.or(read.description);
        if entry.arguments.is_empty() {
            entry.arguments = read.arguments;
        }
        entry.text = Some(front.body.to_owned());
        Ok(entry)
    }

    fn route(&self, name: &str) -> Result<PromptRoute, String> {
        let arguments = checked(&self.arguments)?;
        let is_other = |argument: &Argument| argument.schema.get("type").is_some_and(|kind| kind != "string");
        if let Some((name, _)) = arguments.iter().find(|(_, argument)| is_other(argument)) {
            return Err(format!("argument `{name}`: arguments of prompts are texts: write `string`"));
        }
        let text = self.text.as_deref().ok_or("it has no text: add `text = \"…\"` or `file = \"PATH\"`")?;
        let text = Text::read(text, &arguments, false)?;
        if let Some(unused) = arguments.keys().find(|name| !text.names().any(|used| used == *name)) {
            return Err(format!("argument `{unused}` has no place: write `{{{unused}}}` in the text"));
        }
        let mut prompt = Prompt::new(name);
        prompt.title.clone_from(&self.title);
        prompt.description.clone_from(&self.description);
        let values: Vec<_> =
            arguments.iter().filter_map(|(name, argument)| Some((name.clone(), values(argument)?))).collect();
        prompt.arguments = (!arguments.is_empty()).then(|| arguments.iter().map(definition).collect());
        let (text, defaults) = (Arc::new(text), Arc::new(defaults(&arguments)));
        let route = PromptRoute::of(prompt, move |given: PromptArguments| {
            let (text, mut filled) = (text.clone(), (*defaults).clone());
            filled.extend(given.into_iter().map(|(name, value)| (name, Value::String(value))));
            async move { text.print(&filled) }
        });
        Ok(values.into_iter().fold(route, |route, (name, values)| route.argument_values(name, values)))
    }
}

/// Checks the prompts of a file, and returns their routes, for [`Server::prompt`](pintle::Server::prompt) or
/// [`Server::replace_prompts`](pintle::Server::replace_prompts). Each has been [loaded](PromptEntry::load).
///
/// # Errors
///
/// An entry is wrong. The error says what to write.
pub fn prompt_routes(entries: &BTreeMap<String, PromptEntry>) -> Result<Vec<PromptRoute>, EntryFault> {
    let route =
        |(name, entry): (&String, &PromptEntry)| entry.route(name).map_err(EntryFault::of("prompt", name));
    entries.iter().map(route).collect()
}

fn definition((name, argument): (&String, &Argument)) -> PromptArgument {
    let mut definition = PromptArgument::new(name);
    let text = |member: &str| argument.schema.get(member).and_then(Value::as_str).map(str::to_owned);
    (definition.title, definition.description) = (text("title"), text("description"));
    definition.required = argument.is_required.then_some(true);
    definition
}

fn defaults(arguments: &BTreeMap<String, Argument>) -> JsonObject {
    let default = |(name, argument): (&String, &Argument)| {
        Some((name.clone(), argument.schema.get("default")?.clone()))
    };
    arguments.iter().filter_map(default).collect()
}

/// Returns the values that an argument is restricted to.
fn values(argument: &Argument) -> Option<Vec<String>> {
    let values = argument.schema.get("enum")?.as_array()?;
    Some(values.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}
