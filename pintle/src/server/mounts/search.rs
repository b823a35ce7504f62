//! Search in place of a long list of tools.

use std::sync::Arc;

use pintle_proto::server::Outcome;
use pintle_types::{
    RawObject, RpcError, method,
    schema::{CallToolResult, Tool},
};
use serde::Deserialize;
use serde_json::{Value, json, value::to_raw_value};

use crate::server::{
    Cx, ListKind, PageRequest, RequestError, Scope, Target,
    core::{
        catalogue::lists,
        driver::run::HandlerFuture,
        provider::{
            Provider,
            definition::Definition,
            definitions::DefinitionCache,
            entry::ProvidedEntry,
            info::{ProviderInfo, ReportPart},
            lookup::Lookup,
            page::ProviderPage,
            watch::Watch,
        },
    },
};

/// The name of the tool that searches.
const SEARCH: &str = "search_tools";
/// The name of the tool that calls another one.
const CALL: &str = "call_tool";
/// The limit of tools that are searched, and of the pages that are read for that.
const MAX_TOOLS: usize = 5_000;
const MAX_PAGES: usize = 200;
/// The number of tools that a search returns, and its limit.
const FOUND: usize = 8;
const MAX_FOUND: usize = 50;

/// A provider that offers two tools in place of the many of another one: `search_tools` finds tools by words, and `call_tool` calls one.
/// Prompts and resources are offered as they are.
///
/// Gates of the server judge the tool that is found or called, and its arguments, besides `call_tool` itself. What they hide is not
/// found.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> pintle::Result<()> {
/// use pintle::{Server, server::{ToolSearch, tool}};
/// use serde_json::json;
///
/// let many = Server::new("many", "1.0.0")
///     .tool(tool("push", || async { "pushed" }).description("Publishes a branch."))
///     .tool(tool("pull", || async { "pulled" }).description("Gets the changes of others."));
/// let server = Server::new("desk", "1.0.0").provider(ToolSearch::new(many));
/// # #[cfg(feature = "client")] {
/// let client = pintle::Client::new("demo", "1.0.0").connect(server.in_process()?).await?;
/// let found = client.call_tool("search_tools", json!({"query": "publish"})).await?;
/// assert!(found.text().contains("push") && !found.text().contains("pull"));
/// assert_eq!(client.call_tool("call_tool", json!({"name": "push"})).await?.text(), "pushed");
/// # }
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct ToolSearch<P> {
    provider: Arc<P>,
    definitions: DefinitionCache,
}

/// The arguments of `search_tools`.
#[derive(Deserialize)]
struct Query {
    query: String,
    limit: Option<usize>,
}

impl<P: Provider> ToolSearch<P> {
    /// Creates a search over the tools of a provider.
    pub fn new(provider: P) -> Self {
        Self { provider: Arc::new(provider), definitions: DefinitionCache::default() }
    }

    async fn search(&self, cx: &Cx) -> Result<Outcome, RequestError> {
        let invalid = |error: serde_json::Error| {
            RequestError::protocol(RpcError::invalid_params(format!(
                "`{SEARCH}` needs `query`, a text: {}",
                pintle_types::plain_error(&error)
            )))
        };
        let Query { query, limit } = serde_json::from_str(cx.sent_arguments()).map_err(invalid)?;
        let words = words(&query);
        let mut found: Vec<(usize, Arc<Definition>)> = Vec::new();
        let mut page = PageRequest { cursor: None, limit: usize::MAX };
        let backend = self.provider.info(None).name;
        let mut seen = 0;
        for _ in 0..MAX_PAGES {
            let listing = cx.clone().with_params(RawObject::empty());
            let tools = self.provider.list(listing, ListKind::Tools, page.clone()).await?;
            seen += tools.entries.len();
            for entry in &tools.entries {
                let Some(definition) = self.definitions.decode(ListKind::Tools, entry) else { continue };
                if !lists::is_shown(cx, definition.entry(), Some(&backend)) {
                    continue;
                }
                if let Definition::Tool(tool) = &*definition
                    && let Some(score) = score(&words, tool)
                {
                    found.push((score, definition));
                }
            }
            page.cursor = tools.cursor.filter(|_| seen < MAX_TOOLS);
            if page.cursor.is_none() {
                break;
            }
        }
        // The sort is stable: tools that match equally well are in the order of the list.
        found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        let tools: Vec<Value> = found
            .iter()
            .take(limit.unwrap_or(FOUND).min(MAX_FOUND))
            .filter_map(|(_, definition)| match &**definition {
                Definition::Tool(tool) => Some(
                    json!({"name": tool.name, "description": tool.description, "inputSchema": *tool.input_schema}),
                ),
                _ => None,
            })
            .collect();
        let text = serde_json::to_string(&json!({ "tools": tools, "matches": found.len() }))?;
        Ok(Outcome::Complete(CallToolResult::raw_text(&text).into()))
    }

    /// Calls a tool as if the client had done so itself.
    async fn call(&self, cx: &Cx) -> Outcome {
        let refuse = |reason: String| Outcome::Failed(RpcError::invalid_params(reason));
        let usage = || refuse(format!("`{CALL}` needs `name`, and `arguments` if the tool has any"));
        let Ok(sent) = serde_json::from_str::<RawObject>(cx.sent_arguments()) else { return usage() };
        let Ok(Some(name)) = sent.decode_member::<String>("name") else { return usage() };
        let arguments = sent.decode_member::<Box<pintle_types::RawValue>>("arguments").ok().flatten();
        let inner = cx.clone().rewritten(|_, params| {
            let params = params.with("name", &to_raw_value(&name).ok()?);
            Some(match &arguments {
                Some(arguments) => params.with("arguments", arguments),
                None => params.without(&["arguments"]),
            })
        });
        let unknown = || unknown(&name);
        let target = Target::Tool(name.as_str().into());
        let mut found = self.provider.find(&inner.scope(), &target);
        if matches!(found, Lookup::Stale(_)) {
            let read = self.provider.list(inner.clone(), ListKind::Tools, PageRequest::refresh()).await;
            found = match (self.provider.find(&inner.scope(), &target), read) {
                (Lookup::None | Lookup::Stale(None), Err(error)) => Lookup::Failed(error),
                (found, _) => found,
            };
        }
        let backend = self.provider.info(None).name;
        // What failed is not known, so gates hide it.
        let shows_unknown = || {
            let gates = &inner.snapshot().gates;
            gates.shows_read(&inner.scope(), Some(&backend), || None::<Definition>)
        };
        let entry = match found {
            Lookup::Failed(error) if shows_unknown() => return error.outcome(cx.method(), None),
            found => match found.known() {
                Some(entry) => entry,
                None => return unknown(),
            },
        };
        let mut admitted = entry.admit(&inner, Some(&backend), &target);
        if admitted.is_ok()
            && let Err(refused) = entry.count_repeated(&inner, &backend, &target).await
        {
            admitted = Err(refused);
        }
        match admitted {
            Ok(grant) => {
                let (provider, is_asked) = (self.provider.clone(), grant.asks());
                let run = move |cx: Cx| -> HandlerFuture {
                    Box::pin(async move {
                        let find = |target: &Target<'_>| provider.find(&cx.scope(), target);
                        match entry.as_judged(&cx, is_asked, find) {
                            Ok(cx) => provider.handle(cx).await,
                            Err(refused) => refused,
                        }
                    })
                };
                grant.run(&inner, run).await
            }
            Err(refused) => refused.or_unknown(unknown),
        }
    }
}

/// Returns the outcome of a call of a tool that does not exist.
fn unknown(name: &str) -> Outcome {
    let shown: String = name.chars().take(128).collect();
    let message = format!("no such tool: `{shown}`; find one with `{SEARCH}`");
    Outcome::Failed(RpcError::invalid_params(message))
}

/// Returns the words of a text, in lower case.
fn words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).take(32).collect()
}

/// Returns how well a tool matches; `None` if it does not. Every tool matches no words.
fn score(query: &[String], tool: &Tool) -> Option<usize> {
    let parts = [(&tool.name, 4), (tool.title.as_ref().unwrap_or(&tool.name), 2)];
    let description = tool.description.as_deref().unwrap_or_default();
    let description: String = description.chars().take(2000).collect();
    let mut score = usize::from(query.is_empty());
    for (text, weight) in parts.into_iter().chain([(&description, 1)]) {
        let (lower, own) = (text.to_lowercase(), words(text));
        for word in query {
            score += match own.contains(word) {
                true => weight * 2,
                false if lower.contains(word.as_str()) => weight,
                false => 0,
            };
        }
    }
    (score > 0).then_some(score)
}

/// The two tools.
fn tools() -> [Tool; 2] {
    let tool = |name: &str, description: &str, schema: Value| {
        let schema = schema.as_object().cloned().unwrap_or_default();
        let mut tool = Tool::new(name, schema);
        tool.description = Some(description.to_owned());
        tool
    };
    let text = |description: &str| json!({"type": "string", "description": description});
    [
        tool(
            SEARCH,
            "Finds tools by words in their names and descriptions. Returns names, descriptions and input schemas.",
            json!({"type": "object", "required": ["query"], "properties": {
                "query": text("words that describe what the tool does"),
                "limit": {"type": "integer", "minimum": 1, "maximum": MAX_FOUND},
            }}),
        ),
        tool(
            CALL,
            "Calls a tool that was found with `search_tools`.",
            json!({"type": "object", "required": ["name"], "properties": {
                "name": text("the name of the tool"),
                "arguments": {"type": "object", "description": "its arguments, by its input schema"},
            }}),
        ),
    ]
}

fn own(target: &Target<'_>) -> Option<ProvidedEntry> {
    let entry: ProvidedEntry = tools().into_iter().find(|tool| tool.name == target.name())?.into();
    // The tool that is called is counted.
    Some(if target.name() == CALL { entry.uncounted() } else { entry })
}

impl<P: Provider> Provider for ToolSearch<P> {
    fn info(&self, caller: Option<&Scope<'_>>) -> ProviderInfo {
        ProviderInfo { is_whole_server: false, ..self.provider.info(caller) }
    }

    async fn list(&self, cx: Cx, list: ListKind, page: PageRequest) -> Result<ProviderPage, RequestError> {
        match list {
            ListKind::Tools => ProviderPage::of(tools()),
            _ => self.provider.list(cx, list, page).await,
        }
    }

    fn find(&self, scope: &Scope<'_>, target: &Target<'_>) -> Lookup {
        match target {
            Target::Tool(_) => own(target).into(),
            _ => self.provider.find(scope, target),
        }
    }

    async fn handle(&self, cx: Cx) -> Outcome {
        if cx.method() != method::TOOLS_CALL {
            return self.provider.handle(cx).await;
        }
        match cx.target() {
            Some(Target::Tool(name)) if name == CALL => self.call(&cx).await,
            Some(Target::Tool(name)) if name == SEARCH => match self.search(&cx).await {
                Ok(outcome) => outcome,
                Err(error) => error.outcome(cx.method(), None),
            },
            target => unknown(target.as_ref().map_or("", |target| target.name())),
        }
    }

    fn report(&self, part: ReportPart) -> Vec<String> {
        match part {
            ReportPart::Names(ListKind::Tools) => tools().into_iter().map(|tool| tool.name).collect(),
            part => self.provider.report(part),
        }
    }

    fn watch(&self) -> &dyn Watch {
        self.provider.watch()
    }
}
