//! What a server offers besides its own routes.

#[cfg(feature = "server")]
mod calls;
#[cfg(feature = "server")]
mod lists;
mod result_limit;
mod transform;

#[cfg(feature = "server")]
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

#[cfg(feature = "server")]
use pintle::{
    server::{
        CacheHint, Cx, ListKind, Lookup, Outcome, PageRequest, ProvidedEntry, Provider, ProviderChanges,
        ProviderInfo, ProviderPage, ReportPart, RequestError, Scope, Target, Watch,
    },
    types::{
        RawObject,
        schema::{PromptsCapability, ResourcesCapability, ServerCapabilities, Tool, ToolsCapability},
    },
};
#[cfg(feature = "server")]
use serde_json::{Value, json};

/// A provider of wire values, with `size` of them on a page.
#[cfg(feature = "server")]
#[derive(Default)]
struct Shelf {
    name: &'static str,
    tools: Vec<Value>,
    prompts: Vec<Value>,
    resources: Vec<Value>,
    templates: Vec<Value>,
    size: usize,
    hint: CacheHint,
    rights: Vec<&'static str>,
    pages: AtomicUsize,
    calls: Mutex<Vec<String>>,
    changes: Mutex<Option<ProviderChanges>>,
}

#[cfg(feature = "server")]
impl Shelf {
    fn of_tools(name: &'static str, tools: &[&str]) -> Self {
        let tools = tools
            .iter()
            .map(|name| json!({"name": name, "inputSchema": {"type": "object"}, "x-kept": [1.50]}));
        Self { name, tools: tools.collect(), size: usize::MAX, ..Self::default() }
    }

    fn entries(&self, list: ListKind) -> &[Value] {
        match list {
            ListKind::Tools => &self.tools,
            ListKind::Prompts => &self.prompts,
            ListKind::Resources => &self.resources,
            _ => &self.templates,
        }
    }

    fn pages(&self) -> usize {
        self.pages.swap(0, Ordering::SeqCst)
    }

    fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.calls.lock().unwrap())
    }
}

#[cfg(feature = "server")]
impl Provider for Shelf {
    fn info(&self, _: Option<&Scope<'_>>) -> ProviderInfo {
        let mut capabilities = ServerCapabilities::default();
        let mut tools = ToolsCapability::default();
        tools.list_changed = Some(true);
        capabilities.tools = (!self.tools.is_empty()).then_some(tools);
        capabilities.prompts = (!self.prompts.is_empty()).then(PromptsCapability::default);
        let mut resources = ResourcesCapability::default();
        resources.subscribe = Some(true);
        let has_resources = !self.resources.is_empty() || !self.templates.is_empty();
        capabilities.resources = has_resources.then_some(resources);
        capabilities.completions = (!self.prompts.is_empty()).then(Default::default);
        let mut info = ProviderInfo::new(self.name, capabilities);
        info.hints.iter_mut().for_each(|hint| hint.clone_from(&self.hint));
        info
    }

    async fn list(&self, _: Cx, list: ListKind, page: PageRequest) -> Result<ProviderPage, RequestError> {
        tokio::task::yield_now().await;
        self.pages.fetch_add(1, Ordering::SeqCst);
        let first: usize = page.cursor.as_deref().unwrap_or("0").parse()?;
        let all = self.entries(list);
        let found = ProviderPage::of(all.iter().skip(first).take(self.size))?;
        let next = first.saturating_add(self.size);
        Ok(if next < all.len() { found.next(next.to_string()) } else { found })
    }

    fn find(&self, _: &Scope<'_>, target: &Target<'_>) -> Lookup {
        let named =
            |list, key: &str| self.entries(list).iter().find(|entry| entry[key] == *target.name()).cloned();
        let unlisted = |_| ProvidedEntry::unlisted();
        let entry = match target {
            Target::Tool(_) => named(ListKind::Tools, "name")
                .and_then(|tool| serde_json::from_value::<Tool>(tool).ok().map(Into::into)),
            Target::Prompt(_) => named(ListKind::Prompts, "name").map(unlisted),
            Target::Resource(_) => named(ListKind::Resources, "uri").map(unlisted),
            _ => named(ListKind::Templates, "uriTemplate").map(unlisted),
        };
        entry.map(|entry: ProvidedEntry| entry.requires(self.rights.clone())).into()
    }

    async fn handle(&self, cx: Cx) -> Outcome {
        let target = cx.target().unwrap().name().to_owned();
        self.calls.lock().unwrap().push(format!("{} {target}", cx.method()));
        let result = match cx.method() {
            "tools/call" => {
                let text = format!("{} {target} {}", self.name, cx.params().get("arguments").unwrap_or("-"));
                // Members that nobody here knows pass through.
                json!({"content": [{"type": "text", "text": text}], "x-number": 1.50, "isError": false})
            }
            "prompts/get" => {
                json!({"messages": [{"role": "user", "content": {"type": "text", "text": target}}]})
            }
            "resources/read" => json!({"contents": [{"uri": target, "text": self.name}]}),
            _ => json!({"completion": {"values": [format!("{target}!")]}}),
        };
        Outcome::Complete(RawObject::from_serialize(&result).unwrap().into())
    }

    fn report(&self, part: ReportPart) -> Vec<String> {
        let ReportPart::Names(list) = part else { return Vec::new() };
        let key = match list {
            ListKind::Tools | ListKind::Prompts => "name",
            ListKind::Resources => "uri",
            _ => "uriTemplate",
        };
        self.entries(list).iter().map(|entry| entry[key].as_str().unwrap().to_owned()).collect()
    }

    fn watch(&self) -> &dyn Watch {
        self
    }
}

#[cfg(feature = "server")]
impl Watch for Shelf {
    fn attach(&self, changes: ProviderChanges) {
        *self.changes.lock().unwrap() = Some(changes);
    }
}

/// A shelf with one of each kind.
#[cfg(feature = "server")]
fn library() -> Arc<Shelf> {
    Arc::new(Shelf {
        prompts: vec![json!({"name": "summary", "arguments": [{"name": "of"}], "x-kept": true})],
        resources: vec![json!({"uri": "book://1", "name": "One", "x-kept": true})],
        templates: vec![json!({"uriTemplate": "book://{id}", "name": "Book", "x-kept": true})],
        ..Shelf::of_tools("library", &["lend"])
    })
}
