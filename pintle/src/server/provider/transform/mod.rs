//! Changes of what a provider offers.

pub(crate) mod edit;
pub(crate) mod pattern;

use std::{borrow::Cow, collections::HashMap, future::Future, sync::Arc};

use pintle_proto::{
    Peer,
    server::{CacheHint, Outcome},
};
use pintle_types::{Notification, RawObject, RpcError, method, schema::ServerCapabilities};
use serde_json::value::to_raw_value;

use self::{edit::EntryEdit, pattern::NamePattern};
use super::{
    Provider, ServerKey,
    changes::ProviderChanges,
    entry::{Definition, ProvidedEntry},
    page::{ProviderPage, key},
};
use crate::{
    Error,
    server::{ConnectionEvent, Cx, ListKind, PageRequest, RequestError, Scope, SessionHandle, Target},
};

/// A provider that changes what another one offers: names, descriptions, arguments, and what there is at all.
///
/// What it removes does not exist: it is in no list, and cannot be called, read or completed. Put it inside a
/// [`Mount`](crate::server::Mount) for names without the prefix.
///
/// ```
/// use pintle::{Server, server::{EntryEdit, ListKind, Transform, tool}};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> pintle::Result<()> {
/// let git = Server::new("git", "1.0.0")
///     .tool(tool("push", || async { "pushed" }))
///     .tool(tool("delete_branch", || async { "deleted" }))
///     .tool(tool("delete_tag", || async { "deleted" }));
/// let git = Transform::new(git)
///     .tool("push", EntryEdit::new().rename("publish").describe("Publish the current branch."))
///     .hide(ListKind::Tools, "delete_*");
/// let desk = Server::new("desk", "1.0.0").provider(git);
/// # #[cfg(feature = "client")] {
/// let client = pintle::Client::new("demo", "1.0.0").connect(desk.in_process()?).await?;
/// assert_eq!(client.call_tool("publish", ()).await?.text(), "pushed");
/// assert!(client.call_tool("push", ()).await.is_err());
/// assert!(client.call_tool("delete_tag", ()).await.is_err());
/// # }
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Transform<P> {
    provider: P,
    edits: HashMap<(ListKind, String), EntryEdit>,
    /// The names that the provider has for names that were changed.
    inner_names: HashMap<(ListKind, String), String>,
    hidden: Vec<(ListKind, NamePattern)>,
    only: Vec<(ListKind, Vec<NamePattern>)>,
    faults: Vec<String>,
}

impl<P: Provider> Transform<P> {
    /// Creates a transform that changes nothing.
    pub fn new(provider: P) -> Self {
        Self {
            provider,
            edits: HashMap::new(),
            inner_names: HashMap::new(),
            hidden: Vec::new(),
            only: Vec::new(),
            faults: Vec::new(),
        }
    }

    /// Changes a tool, by the name that the provider has for it.
    #[must_use]
    pub fn tool(self, name: impl Into<String>, edit: EntryEdit) -> Self {
        self.edit(ListKind::Tools, name.into(), edit)
    }

    /// Changes a prompt, by the name that the provider has for it.
    #[must_use]
    pub fn prompt(self, name: impl Into<String>, edit: EntryEdit) -> Self {
        self.edit(ListKind::Prompts, name.into(), edit)
    }

    /// Changes a resource. URIs cannot be renamed.
    #[must_use]
    pub fn resource(self, uri: impl Into<String>, edit: EntryEdit) -> Self {
        self.edit(ListKind::Resources, uri.into(), edit)
    }

    /// Changes a resource template. URI templates cannot be renamed.
    #[must_use]
    pub fn template(self, uri_template: impl Into<String>, edit: EntryEdit) -> Self {
        self.edit(ListKind::Templates, uri_template.into(), edit)
    }

    /// Removes all entries of a list whose name, URI or URI template, as the provider has it, matches a pattern. Resources of a template
    /// are read by their URI, so hide the pattern of those too.
    #[must_use]
    pub fn hide(mut self, list: ListKind, pattern: impl Into<NamePattern>) -> Self {
        self.hidden.push((list, pattern.into()));
        self
    }

    /// Removes all entries of a list that match none of these patterns.
    #[must_use]
    pub fn only<T: Into<NamePattern>>(
        mut self,
        list: ListKind,
        patterns: impl IntoIterator<Item = T>,
    ) -> Self {
        self.only.push((list, patterns.into_iter().map(Into::into).collect()));
        self
    }

    fn edit(mut self, list: ListKind, name: String, edit: EntryEdit) -> Self {
        if let Some(outer) = &edit.name {
            if !matches!(list, ListKind::Tools | ListKind::Prompts) {
                self.faults.push(format!("`{name}` is a URI and cannot be renamed: leave the new name out"));
            } else if let Some(other) = self.inner_names.insert((list, outer.clone()), name.clone()) {
                self.faults.push(format!("`{other}` and `{name}` would both be `{outer}`; rename one"));
            }
        }
        if !edit.fixed.is_empty() && list != ListKind::Tools {
            self.faults.push(format!("`{name}` is not a tool, so it has no arguments that can be fixed"));
        }
        if let Some((_, name)) = self.edits.insert((list, name.clone()), edit).map(|_| ((), name)) {
            self.faults.push(format!("`{name}` is changed twice; combine the two edits"));
        }
        self
    }

    fn is_removed(&self, list: ListKind, inner: &str) -> bool {
        let hides = |(kind, pattern): &(ListKind, NamePattern)| *kind == list && pattern.matches(inner);
        let omits = |(kind, patterns): &(ListKind, Vec<NamePattern>)| {
            *kind == list && !patterns.iter().any(|pattern| pattern.matches(inner))
        };
        let edit = self.edits.get(&(list, inner.to_owned()));
        edit.is_some_and(|edit| edit.hidden) || self.hidden.iter().any(hides) || self.only.iter().any(omits)
    }

    /// Returns the name that clients have for an entry; `None` if there is none for them.
    fn outer_name<'a>(&'a self, list: ListKind, inner: &'a str) -> Option<&'a str> {
        if self.is_removed(list, inner) {
            return None;
        }
        let renamed = self.edits.get(&(list, inner.to_owned())).and_then(|edit| edit.name.as_deref());
        let outer = renamed.unwrap_or(inner);
        // An entry whose name another one was given cannot be reached.
        let owner = self.inner_names.get(&(list, outer.to_owned()));
        owner.is_none_or(|owner| owner == inner).then_some(outer)
    }

    /// Returns the name that the provider has for an entry; `None` if clients may not use it.
    fn inner_name<'a>(&'a self, list: ListKind, outer: &'a str) -> Option<&'a str> {
        let inner = self.inner_names.get(&(list, outer.to_owned())).map_or(outer, String::as_str);
        (self.outer_name(list, inner)? == outer).then_some(inner)
    }

    fn inner_target(&self, target: &Target<'_>) -> Option<Target<'static>> {
        let name: Cow<'static, str> =
            self.inner_name(ListKind::of(target)?, target.name())?.to_owned().into();
        Some(match target {
            Target::Tool(_) => Target::Tool(name),
            Target::Prompt(_) => Target::Prompt(name),
            Target::Resource(_) => Target::Resource(name),
            Target::Template(_) => Target::Template(name),
            Target::Task(_) => return None,
        })
    }

    /// Returns an entry of the provider as clients see it; `None` if it is removed.
    fn outer_entry(&self, target: &Target<'_>, entry: ProvidedEntry) -> Option<ProvidedEntry> {
        let edited = entry.edited(|definition| self.edit_definition(definition));
        // The URI of a template's resource is not its name: what is removed is the template.
        match target {
            Target::Resource(uri) => {
                let template = edited.judged(|found| match found {
                    crate::server::Entry::Template(template) => Some(template.uri_template.clone()),
                    _ => None,
                });
                let template = template.flatten();
                let is_removed =
                    template.is_some_and(|template| self.is_removed(ListKind::Templates, &template));
                (!is_removed && !self.is_removed(ListKind::Resources, uri)).then_some(edited)
            }
            _ => Some(edited),
        }
    }

    fn edit_definition(&self, definition: Definition) -> Definition {
        let (list, inner) = definition.key();
        let Some(edit) = self.edits.get(&(list, inner.to_owned())) else { return definition };
        let edited = definition.encode().and_then(|entry| edit.apply(list, &entry));
        edited.ok().and_then(|entry| Definition::decode(list, &entry)).unwrap_or(definition)
    }

    /// Rewrites the params of a request for the provider.
    fn inner_params(&self, method: &str, params: &RawObject) -> Result<Option<RawObject>, String> {
        let list = match method {
            method::TOOLS_CALL => ListKind::Tools,
            method::PROMPTS_GET => ListKind::Prompts,
            method::COMPLETION_COMPLETE => return Ok(self.inner_reference(params)),
            _ => return Ok(None),
        };
        let invalid = |error: serde_json::Error| error.to_string();
        let Some(outer): Option<String> = params.decode_member("name").map_err(invalid)? else {
            return Ok(None);
        };
        let Some(inner) = self.inner_name(list, &outer) else { return Ok(None) };
        let mut params = params.with("name", &to_raw_value(inner).map_err(invalid)?);
        if let Some(edit) = self.edits.get(&(list, inner.to_owned()))
            && let Some(arguments) = edit.arguments(params.get("arguments"))?
        {
            params = params.with("arguments", &arguments);
        }
        Ok(Some(params))
    }

    fn inner_reference(&self, params: &RawObject) -> Option<RawObject> {
        let reference: RawObject = params.decode_member("ref").ok()??;
        let name: String = reference.decode_member("name").ok()??;
        let list =
            if reference.get("type") == Some("\"ref/tool\"") { ListKind::Tools } else { ListKind::Prompts };
        let reference = reference.with("name", &to_raw_value(self.inner_name(list, &name)?).ok()?);
        Some(params.with("ref", &to_raw_value(&reference).ok()?))
    }
}

impl<P: Provider> Provider for Transform<P> {
    fn name(&self) -> Cow<'_, str> {
        self.provider.name()
    }

    fn capabilities(&self) -> ServerCapabilities {
        self.provider.capabilities()
    }

    fn instructions(&self) -> Option<String> {
        self.provider.instructions()
    }

    fn cache_hint(&self, list: ListKind) -> CacheHint {
        self.provider.cache_hint(list)
    }

    async fn list(&self, cx: Cx, list: ListKind, page: PageRequest) -> Result<ProviderPage, RequestError> {
        let mut page = self.provider.list(cx, list, page).await?;
        let mut entries = Vec::with_capacity(page.entries.len());
        for entry in page.entries {
            let Some(inner) = key(list, &entry) else { continue };
            if self.outer_name(list, &inner).is_none() {
                continue;
            }
            entries.push(match self.edits.get(&(list, inner)) {
                None => entry,
                Some(edit) => edit.apply(list, &entry)?,
            });
        }
        page.entries = entries;
        Ok(page)
    }

    fn describe(&self, scope: &Scope<'_>, target: &Target<'_>) -> Option<ProvidedEntry> {
        self.outer_entry(target, self.provider.describe(scope, &self.inner_target(target)?)?)
    }

    async fn find(&self, cx: Cx, target: &Target<'_>) -> Result<Option<ProvidedEntry>, RequestError> {
        let Some(inner) = self.inner_target(target) else { return Ok(None) };
        let method = cx.method().to_owned();
        let cx = cx.rewritten(|params| self.inner_params(&method, params).ok().flatten());
        let found = self.provider.find(cx, &inner).await?;
        Ok(found.and_then(|entry| self.outer_entry(target, entry)))
    }

    async fn handle(&self, cx: Cx) -> Outcome {
        if let Err(reason) = self.inner_params(cx.method(), cx.params()) {
            return Outcome::Failed(RpcError::invalid_params(reason));
        }
        let method = cx.method().to_owned();
        self.provider.handle(cx.rewritten(|params| self.inner_params(&method, params).ok().flatten())).await
    }

    fn claims_state(&self) -> bool {
        self.provider.claims_state()
    }

    fn names(&self, list: ListKind) -> Vec<String> {
        let names = self.provider.names(list);
        names.iter().filter_map(|name| self.outer_name(list, name)).map(str::to_owned).collect()
    }

    fn check(&self) -> crate::Result<()> {
        match self.faults.is_empty() {
            true => self.provider.check(),
            false => Err(Error::misuse(self.faults.join("\n"))),
        }
    }

    fn attach(&self, changes: ProviderChanges) {
        self.provider.attach(changes);
    }

    fn watch(&self, uri: &str) {
        if !self.is_removed(ListKind::Resources, uri) {
            self.provider.watch(uri);
        }
    }

    fn unwatch(&self, uri: &str) {
        if !self.is_removed(ListKind::Resources, uri) {
            self.provider.unwatch(uri);
        }
    }

    fn connection_event(&self, event: ConnectionEvent<'_>) -> Result<(), RpcError> {
        self.provider.connection_event(event)
    }

    fn notified(
        &self,
        notification: Notification,
        peer: Option<Arc<Peer>>,
        session: Option<SessionHandle>,
    ) -> impl Future<Output = ()> + Send {
        self.provider.notified(notification, peer, session)
    }

    fn contains(&self, server: ServerKey) -> bool {
        self.provider.contains(server)
    }
}
