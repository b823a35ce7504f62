use clap::{Args, ValueEnum};
use pintle::{
    Connection, Error,
    types::{
        ErrorCode, method,
        schema::{Prompt, Resource, ResourceTemplate, Tool},
    },
};
use serde_json::{Map, Value};

use crate::{
    args::{HELP, TargetArgs, examples, near},
    arguments::{prompt_signature, signature},
    completion::{cache_names, cache_tools},
    failure::Failure,
    output::{Output, Text, Tone, cut},
    targets::Endpoint,
};

/// List what a server offers
#[derive(Args, Debug)]
#[command(
    before_help = examples(&[
        ("pintle ls demo", "everything"),
        ("pintle ls demo tools --grep tide", "tools whose name or description contains `tide`"),
        ("pintle ls demo tools --schema", "with the schemas of their arguments and results"),
        ("pintle ls demo --pick .tools[].name", "only the names, one a line"),
    ]),
    help_template = HELP,
    override_usage = "pintle ls TARGET [tools|prompts|resources|templates]...",
)]
pub(crate) struct LsArgs {
    /// Only entries whose name, title or description contains this
    #[arg(long, value_name = "TEXT")]
    grep: Option<String>,
    /// Print the schemas of tools
    #[arg(long)]
    schema: bool,
    #[command(flatten)]
    pub(super) target: TargetArgs,
}

/// A kind of entries.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Kind {
    #[value(aliases = ["tool", method::TOOLS_LIST])]
    Tools,
    #[value(aliases = ["prompt", method::PROMPTS_LIST])]
    Prompts,
    #[value(aliases = ["resource", method::RESOURCES_LIST])]
    Resources,
    #[value(aliases = ["template", method::RESOURCES_TEMPLATES_LIST])]
    Templates,
}

/// The lists of a server; `None` was not asked for, or is not offered.
#[derive(Default)]
struct Listing {
    tools: Option<Vec<Tool>>,
    prompts: Option<Vec<Prompt>>,
    resources: Option<Vec<Resource>>,
    templates: Option<Vec<ResourceTemplate>>,
}

pub(super) async fn run(args: LsArgs, output: &Output) -> Result<(), Failure> {
    let LsArgs { grep, schema, target } = args;
    let (endpoint, words) = Endpoint::take("ls", target)?;
    let kinds = kinds(&words, &endpoint)?;
    let connection = endpoint.connect(&endpoint.client(output), output).await?;
    let listed = Listing::fetch(&connection, &kinds).await;
    let mut listing = listed.map_err(|error| endpoint.explain(&error))?;
    if let Some(tools) = &listing.tools {
        cache_tools(endpoint.plain_word(), tools);
    }
    cache_names(endpoint.plain_word(), listing.prompts.as_deref(), listing.resources.as_deref());
    if let Some(tools) = &mut listing.tools {
        tools.retain(|tool| endpoint.allows_tool(&tool.name));
    }
    if let Some(grep) = grep {
        listing.grep(&grep.to_lowercase());
    }
    output.result(&listing.to_json()?, |text| listing.to_text(schema, output.width(), text))?;
    if listing.is_empty() {
        output.note("nothing");
    }
    connection.close().await;
    Ok(())
}

fn kinds(words: &[String], endpoint: &Endpoint) -> Result<Vec<Kind>, Failure> {
    let read = |word: &String| {
        Kind::from_str(word, true).map_err(|_| {
            let names = ["tools", "prompts", "resources", "templates"];
            let meant = near(word, names.into_iter()).unwrap_or("tools");
            let message =
                format!("`{word}` is not a list: write `tools`, `prompts`, `resources` or `templates`");
            Failure::usage(message, endpoint.line("ls", &[meant]))
        })
    };
    words.iter().map(read).collect()
}

impl Listing {
    fn is_empty(&self) -> bool {
        let Self { tools, prompts, resources, templates } = self;
        let counts = [
            tools.as_ref().map(Vec::len),
            prompts.as_ref().map(Vec::len),
            resources.as_ref().map(Vec::len),
            templates.as_ref().map(Vec::len),
        ];
        counts.into_iter().flatten().sum::<usize>() == 0
    }

    /// Fetches the lists: those that were asked for, or all that the server declares and has.
    async fn fetch(connection: &Connection, kinds: &[Kind]) -> pintle::Result<Self> {
        let declared = connection.capabilities();
        let wants = |kind, is_declared| kinds.contains(&kind) || kinds.is_empty() && is_declared;
        let all = kinds.is_empty();
        let mut listing = Self::default();
        if wants(Kind::Tools, declared.tools.is_some()) {
            listing.tools = offered(connection.tools().await, all)?;
        }
        if wants(Kind::Prompts, declared.prompts.is_some()) {
            listing.prompts = offered(connection.prompts().await, all)?;
        }
        if wants(Kind::Resources, declared.resources.is_some()) {
            listing.resources = offered(connection.resources().await, all)?;
        }
        if wants(Kind::Templates, declared.resources.is_some()) {
            listing.templates = offered(connection.resource_templates().await, all)?;
        }
        Ok(listing)
    }

    /// Keeps the entries that contain a text, in lower case.
    fn grep(&mut self, wanted: &str) {
        let found =
            |texts: &[Option<&str>]| texts.iter().flatten().any(|text| text.to_lowercase().contains(wanted));
        if let Some(tools) = &mut self.tools {
            tools.retain(|tool| {
                found(&[Some(&tool.name), tool.title.as_deref(), tool.description.as_deref()])
            });
        }
        if let Some(prompts) = &mut self.prompts {
            prompts.retain(|prompt| {
                found(&[Some(&prompt.name), prompt.title.as_deref(), prompt.description.as_deref()])
            });
        }
        if let Some(resources) = &mut self.resources {
            resources.retain(|resource| {
                let Resource { uri, name, title, description, .. } = resource;
                found(&[Some(uri), Some(name), title.as_deref(), description.as_deref()])
            });
        }
        if let Some(templates) = &mut self.templates {
            templates.retain(|template| {
                let ResourceTemplate { uri_template, name, title, description, .. } = template;
                found(&[Some(uri_template), Some(name), title.as_deref(), description.as_deref()])
            });
        }
    }

    /// The lists by their names in the protocol.
    fn to_json(&self) -> Result<Value, Failure> {
        let mut lists = Map::new();
        let mut add = |name: &str, list: Result<Value, serde_json::Error>| match list {
            Ok(Value::Null) => Ok(()),
            Ok(list) => {
                lists.insert(name.to_owned(), list);
                Ok(())
            }
            Err(error) => Err(Failure::internal(&error)),
        };
        add("tools", serde_json::to_value(&self.tools))?;
        add("prompts", serde_json::to_value(&self.prompts))?;
        add("resources", serde_json::to_value(&self.resources))?;
        add("resourceTemplates", serde_json::to_value(&self.templates))?;
        Ok(Value::Object(lists))
    }

    fn to_text(&self, schema: bool, width: usize, text: &mut Text) {
        let mut list = List { text, width, begun: false };
        for tool in list.begin("Tools", self.tools.as_deref()) {
            list.text.add("  ").tone(Tone::Method, signature(tool)).tone(Tone::Faint, badges(tool)).end();
            list.description(tool.description.as_deref().or(tool.title.as_deref()));
            if schema {
                list.schema("arguments", Some(&*tool.input_schema));
                list.schema("result", tool.output_schema.as_deref());
            }
        }
        for prompt in list.begin("Prompts", self.prompts.as_deref()) {
            list.text.add("  ").tone(Tone::Method, prompt_signature(prompt)).end();
            list.description(prompt.description.as_deref().or(prompt.title.as_deref()));
        }
        for resource in list.begin("Resources", self.resources.as_deref()) {
            let Resource { uri, name, description, mime_type, .. } = resource;
            list.resource(uri, name, mime_type.as_deref(), description.as_deref());
        }
        for template in list.begin("Templates", self.templates.as_deref()) {
            let ResourceTemplate { uri_template, name, description, mime_type, .. } = template;
            list.resource(uri_template, name, mime_type.as_deref(), description.as_deref());
        }
    }
}

/// Returns a list; of all lists, one that the server declares and does not know is left out. Many have resources and no templates.
fn offered<T>(list: pintle::Result<Vec<T>>, of_all: bool) -> pintle::Result<Option<Vec<T>>> {
    match list {
        Err(Error::Rpc(error)) if of_all && error.code == ErrorCode::METHOD_NOT_FOUND => Ok(None),
        list => list.map(Some),
    }
}

/// The lists being printed.
struct List<'a> {
    text: &'a mut Text,
    width: usize,
    begun: bool,
}

impl List<'_> {
    /// Prints the title of a list that has entries, and returns them.
    fn begin<'a, T>(&mut self, title: &str, entries: Option<&'a [T]>) -> &'a [T] {
        let entries = entries.unwrap_or_default();
        if !entries.is_empty() {
            if self.begun {
                self.text.end();
            }
            self.begun = true;
            self.text.tone(Tone::Title, title).tone(Tone::Faint, format_args!(" ({})", entries.len())).end();
        }
        entries
    }

    fn resource(&mut self, uri: &str, name: &str, mime_type: Option<&str>, description: Option<&str>) {
        self.text.add("  ").tone(Tone::Method, uri);
        if !uri.ends_with(name) {
            self.text.add("  ").add(name);
        }
        if let Some(mime_type) = mime_type {
            self.text.tone(Tone::Faint, format_args!("  {mime_type}"));
        }
        self.text.end();
        self.description(description);
    }

    /// Prints the first line of a description, shortened to the width.
    fn description(&mut self, description: Option<&str>) {
        let Some(line) = description.and_then(|text| text.trim().lines().next()) else { return };
        let room = self.width.saturating_sub(6);
        self.text.add("      ");
        match cut(line, room) {
            Some(_) => self.text.add(cut(line, room.saturating_sub(1)).unwrap_or(line)).line("…"),
            None => self.text.line(line),
        };
    }

    fn schema(&mut self, what: &str, schema: Option<&pintle::types::JsonObject>) {
        let Some(schema) = schema else { return };
        let printed = serde_json::to_string_pretty(schema).unwrap_or_default();
        self.text.add("      ").tone(Tone::Faint, what).add(" ");
        for (number, line) in printed.lines().enumerate() {
            let indent = if number == 0 { "" } else { "      " };
            self.text.add(indent).line(line);
        }
    }
}

/// The hints of a tool, as its server declares them.
fn badges(tool: &Tool) -> String {
    let Some(hints) = &tool.annotations else { return String::new() };
    let badges = [
        ("read-only", hints.read_only_hint),
        ("destructive", hints.destructive_hint),
        ("idempotent", hints.idempotent_hint),
        ("open world", hints.open_world_hint),
    ];
    let on: Vec<_> = badges.iter().filter(|(_, hint)| *hint == Some(true)).map(|(name, _)| *name).collect();
    if on.is_empty() { String::new() } else { format!("  [{}]", on.join(", ")) }
}
