//! Changes of what a provider offers.

mod cut;
pub(crate) mod edit;
pub(crate) mod pattern;
pub(crate) mod result_limit;
mod selection;

use std::{borrow::Cow, collections::HashMap, sync::Arc};

use pintle_proto::{
    Peer,
    server::{CacheHint, Outcome},
};
use pintle_types::{
    Notification, RawObject, RawValue, RpcError, method,
    schema::{CacheScope, Resource},
};
use serde_json::value::to_raw_value;

use self::{edit::EntryEdit, pattern::NamePattern, result_limit::ResultLimit, selection::Selection};
use super::mount::completed_list;
use crate::{
    server::{
        ConnectionEvent, Cx, Entry, ListKind, PageRequest, RequestError, Scope, SessionHandle, Target,
        core::provider::{
            Provider,
            changes::ProviderChanges,
            definition::Definition,
            entry::ProvidedEntry,
            info::{ProviderInfo, ReportPart},
            lookup::Lookup,
            page::{ProviderPage, key},
            subscription::ProviderSubscription,
            watch::{Watch, WatchFuture},
        },
    },
    uri::{Uri, UriFault},
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
    selection: Selection,
    result_limit: Option<ResultLimit>,
    faults: Vec<String>,
}

impl<P: Provider> Transform<P> {
    /// Creates a transform that changes nothing.
    pub fn new(provider: P) -> Self {
        Self {
            provider,
            edits: HashMap::new(),
            inner_names: HashMap::new(),
            selection: Selection::default(),
            result_limit: None,
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
        self.selection.hide(list, pattern.into());
        self
    }

    /// Removes all entries of a list that match none of these patterns.
    #[must_use]
    pub fn only<T: Into<NamePattern>>(
        mut self,
        list: ListKind,
        patterns: impl IntoIterator<Item = T>,
    ) -> Self {
        self.selection.only(list, patterns.into_iter().map(Into::into));
        self
    }

    /// Removes resource templates without a literal scheme, such as `{+uri}`, and the resources that they match: beside other providers,
    /// such a template would answer for URIs of theirs.
    #[must_use]
    pub fn literal_schemes(mut self) -> Self {
        self.selection.needs_schemes = true;
        self
    }

    /// Limits the results of all tools. One whose content exceeds the limit is cut, between two characters of a text, and ends with a link
    /// to the whole, which the caller may read for some minutes.
    ///
    /// Structured content is not cut: a result that is has none, and tools are listed without their output schemas.
    ///
    /// ```
    /// use pintle::{Server, server::{ResultLimit, Transform, tool}};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> pintle::Result<()> {
    /// let logs = Server::new("logs", "1.0.0").tool(tool("tail", || async { "line\n".repeat(10_000) }));
    /// let logs = Transform::new(logs).max_result(ResultLimit::new(1000));
    /// let desk = Server::new("desk", "1.0.0").provider(logs);
    /// # #[cfg(feature = "client")] {
    /// use pintle::types::schema::ContentBlock;
    ///
    /// let client = pintle::Client::new("demo", "1.0.0").connect(desk.in_process()?).await?;
    /// let cut = client.call_tool("tail", ()).await?;
    /// let Some(ContentBlock::ResourceLink(whole)) = cut.content.last() else { panic!("there is a link") };
    /// let whole = client.read_resource(&whole.uri).await?;
    /// assert_eq!(whole.contents[0].as_text().map(str::len), Some(50_000));
    /// # }
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn max_result(self, limit: ResultLimit) -> Self {
        Self { result_limit: Some(limit), ..self }
    }

    /// Returns the contents of a result that was cut, if a target is one that this caller may read.
    fn kept(&self, scope: &Scope<'_>, target: &Target<'_>) -> Option<Arc<str>> {
        match (target, &self.result_limit) {
            (Target::Resource(uri), Some(limit)) => limit.get(scope, uri),
            _ => None,
        }
    }

    /// Returns whether the provider has nothing of a list, which is offered for the results that were cut.
    fn offers_only_results(&self, list: Option<ListKind>) -> bool {
        let is_added = matches!(list, Some(ListKind::Resources | ListKind::Templates));
        is_added && self.result_limit.is_some() && self.provider.info(None).capabilities.resources.is_none()
    }

    fn edit(mut self, list: ListKind, name: String, edit: EntryEdit) -> Self {
        if let Some(outer) = &edit.name {
            if !matches!(list, ListKind::Tools | ListKind::Prompts) {
                self.faults.push(format!("`{name}` is a URI and cannot be renamed: leave the new name out"));
            } else if let Some(other) = self.inner_names.insert((list, outer.clone()), name.clone()) {
                self.faults.push(format!("`{other}` and `{name}` would both be `{outer}`; rename one"));
            }
        }
        if !edit.arguments.fixed.is_empty() && list != ListKind::Tools {
            self.faults.push(format!("`{name}` is not a tool, so it has no arguments that can be fixed"));
        }
        if let Some((_, name)) = self.edits.insert(edit_key(list, &name), edit).map(|_| ((), name)) {
            self.faults.push(format!("`{name}` is changed twice; combine the two edits"));
        }
        self
    }

    fn is_removed(&self, list: ListKind, inner: &str) -> bool {
        if list != ListKind::Resources || !self.judges(list) {
            return self.removes(list, inner, None);
        }
        // A resource is removed if a server that decodes too often would read a removed one.
        let uri = Uri::of(inner);
        self.removes(list, inner, Some(&uri))
            || uri.second_reading().is_some_and(|second| {
                second.fault() >= Some(UriFault::Control)
                    || self.removes(list, second.as_str(), Some(&second))
            })
    }

    fn removes(&self, list: ListKind, inner: &str, uri: Option<&Uri>) -> bool {
        let edit = self.edits.get(&edit_key(list, inner));
        edit.is_some_and(|edit| edit.hidden) || self.selection.removes(list, inner, uri)
    }

    /// Returns whether entries of a list are removed or changed.
    fn judges(&self, list: ListKind) -> bool {
        self.selection.decides(list) || self.edits.keys().any(|(kind, _)| *kind == list)
    }

    /// Returns the name that clients have for an entry; `None` if there is none for them.
    fn outer_name<'a>(&'a self, list: ListKind, inner: &'a str) -> Option<&'a str> {
        if self.is_removed(list, inner) {
            return None;
        }
        let renamed = self.edits.get(&edit_key(list, inner)).and_then(|edit| edit.name.as_deref());
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
        if let Target::Method(name) = target {
            return Some(Target::Method(name.clone().into_owned().into()));
        }
        let name: Cow<'static, str> =
            self.inner_name(ListKind::of(target)?, target.name())?.to_owned().into();
        Some(match target {
            Target::Tool(_) => Target::Tool(name),
            Target::Prompt(_) => Target::Prompt(name),
            Target::Resource(_) => Target::Resource(name),
            Target::Template(_) => Target::Template(name),
            Target::Task(_) | Target::Method(_) => return None,
        })
    }

    /// Returns an entry of the provider as clients see it; `None` if it is removed.
    fn outer_entry(&self, target: &Target<'_>, entry: ProvidedEntry) -> Option<ProvidedEntry> {
        let is_edited = |found: Entry<'_>| {
            let list = ListKind::of_entry(found);
            list.is_some_and(|list| self.edits.contains_key(&edit_key(list, found.name())))
        };
        let edited = match !self.edits.is_empty() && entry.judged(is_edited) == Some(true) {
            true => self.edited(entry),
            false => entry,
        };
        // The URI of a template's resource is not its name: what is removed is the template.
        match target {
            Target::Template(uri) if edited.judged(|found| found.name() != &**uri) == Some(true) => {
                (!self.is_removed(ListKind::Resources, uri)).then_some(edited)
            }
            Target::Resource(uri) => {
                let template = edited.judged(|found| match found {
                    Entry::Template(template) => Some(template.uri_template.clone()),
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

    /// Returns an entry with its changes, and with those of the arguments of its calls.
    fn edited(&self, entry: ProvidedEntry) -> ProvidedEntry {
        let mut arguments = None;
        let mut edited = entry.edited(|definition| {
            let (list, inner) = definition.key();
            let Some(edit) = self.edits.get(&edit_key(list, inner)) else { return definition };
            arguments = matches!(list, ListKind::Tools | ListKind::Prompts).then_some(&edit.arguments);
            edit_definition(edit, definition)
        });
        if let Some(arguments) = arguments {
            edited.edit_arguments(arguments);
        }
        edited
    }

    /// Returns a call as the provider gets it.
    fn inner_call(&self, cx: Cx) -> Cx {
        cx.rewritten(|method, params| self.inner_params(method, params).ok().flatten())
    }

    /// Rewrites the params of a request for the provider; `None` if they stay as they are.
    fn inner_params(&self, method: &str, params: &RawObject) -> Result<Option<RawObject>, String> {
        if self.edits.is_empty() {
            return Ok(None);
        }
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
        let mut changed = None;
        if inner != outer {
            changed = Some(params.with("name", &to_raw_value(inner).map_err(invalid)?));
        }
        if let Some(edit) = self.edits.get(&(list, inner.to_owned()))
            && let Some(arguments) = edit.sent_arguments(params.get("arguments"))?
        {
            changed = Some(changed.as_ref().unwrap_or(params).with("arguments", &arguments));
        }
        Ok(changed)
    }

    fn inner_reference(&self, params: &RawObject) -> Option<RawObject> {
        let reference: RawObject = params.decode_member("ref").ok()??;
        let (list, member) = completed_list(&reference)?;
        let name: String = reference.decode_member(member).ok()??;
        let reference = reference.with(member, &to_raw_value(self.inner_name(list, &name)?).ok()?);
        Some(params.with("ref", &to_raw_value(&reference).ok()?))
    }
}

fn edit_definition(edit: &EntryEdit, definition: Definition) -> Definition {
    let (list, _) = definition.key();
    let edited = definition.encode().and_then(|entry| edit.apply(list, &entry));
    edited.ok().and_then(|entry| Definition::decode(list, &entry)).unwrap_or(definition)
}

/// Returns what an edit is found by: the name of an entry, or the URI of a resource in whatever spelling.
fn edit_key(list: ListKind, name: &str) -> (ListKind, String) {
    match list {
        ListKind::Resources => (list, Uri::of(name).key().into_owned()),
        _ => (list, name.to_owned()),
    }
}

/// The member of a tool that describes its structured content.
const OUTPUT_SCHEMA: &str = "outputSchema";

/// Returns the outcome of a read of a result that was cut.
fn read(contents: &str) -> Outcome {
    let contents = serde_json::from_str::<&RawValue>(contents);
    let result = contents.and_then(|contents| RawObject::builder(64).member("contents", contents)?.finish());
    match result {
        Ok(result) => Outcome::Cacheable(result.into(), CacheHint::new(0, CacheScope::Private)),
        Err(error) => Outcome::Failed(RpcError::internal(error.to_string())),
    }
}

/// Returns the outcome of a request for an entry that does not exist.
fn unknown(target: &Target<'_>) -> Outcome {
    let name = target.name();
    match target {
        Target::Resource(_) => Outcome::NotFound { uri: name.to_owned() },
        _ => {
            let kind = if matches!(target, Target::Tool(_)) { "tool" } else { "prompt" };
            let shown: String = name.chars().take(128).collect();
            Outcome::Failed(RpcError::invalid_params(format!("no such {kind}: `{shown}`")))
        }
    }
}

/// Removes the name that a server suggests in place of an unknown one: it may be one that was removed.
fn without_suggestion(mut error: RpcError) -> RpcError {
    if let Some((message, _)) = error.message.split_once("; did you mean `") {
        error.message = message.to_owned().into();
    }
    error
}

impl<P: Provider> Provider for Transform<P> {
    fn info(&self, caller: Option<&Scope<'_>>) -> ProviderInfo {
        let mut info = self.provider.info(caller);
        if self.result_limit.is_some() {
            info.capabilities.resources.get_or_insert_default();
        }
        info.judges_uris |= self.judges(ListKind::Resources) || self.judges(ListKind::Templates);
        info.is_whole_server = false;
        info
    }

    async fn list(&self, cx: Cx, list: ListKind, page: PageRequest) -> Result<ProviderPage, RequestError> {
        if self.offers_only_results(Some(list)) {
            return Ok(ProviderPage::default());
        }
        let mut page = self.provider.list(cx, list, page).await?;
        let mut entries = Vec::with_capacity(page.entries.len());
        for entry in page.entries {
            let Some(inner) = key(list, &entry) else { continue };
            if self.outer_name(list, &inner).is_none() {
                continue;
            }
            let edited = match self.edits.get(&edit_key(list, &inner)) {
                None => entry,
                Some(edit) => edit.apply(list, &entry)?,
            };
            entries.push(match &self.result_limit {
                Some(_) if edited.get(OUTPUT_SCHEMA).is_some() => edited.without(&[OUTPUT_SCHEMA]),
                _ => edited,
            });
        }
        page.entries = entries;
        Ok(page)
    }

    fn find(&self, scope: &Scope<'_>, target: &Target<'_>) -> Lookup {
        if self.kept(scope, target).is_some() {
            return ProvidedEntry::from(Resource::new(target.name(), "the whole result")).owned().into();
        }
        if self.offers_only_results(ListKind::of(target)) {
            return Lookup::None;
        }
        let Some(inner) = self.inner_target(target) else { return Lookup::None };
        self.provider.find(scope, &inner).and_then(|entry| self.outer_entry(target, entry))
    }

    async fn handle(&self, cx: Cx) -> Outcome {
        if let Err(reason) = self.inner_params(cx.method(), cx.params()) {
            return Outcome::Failed(RpcError::invalid_params(reason));
        }
        if let Some(contents) = cx.target().and_then(|target| self.kept(&cx.scope(), &target)) {
            return read(&contents);
        }
        let mut is_listed = true;
        if let Some(target) = cx.target().filter(|target| ListKind::of(target).is_some()) {
            let inner = self.inner_target(&target);
            let known = inner.as_ref().and_then(|inner| self.provider.find(&cx.scope(), inner).known());
            is_listed = known.is_some();
            // A provider may answer for names that it does not list, and so may get one that was removed.
            if inner.is_none() || known.is_some_and(|entry| self.outer_entry(&target, entry).is_none()) {
                return unknown(&target);
            }
        }
        let cx = self.inner_call(cx);
        let sent = cx.clone();
        match self.provider.handle(cx).await {
            Outcome::Failed(error) if !is_listed => Outcome::Failed(without_suggestion(error)),
            Outcome::Complete(body) => Outcome::Complete(match &self.result_limit {
                // The result of a task of a mounted server was cut when it was stored.
                Some(limit) if !sent.has_passed_mounts() => match sent.method() {
                    method::TOOLS_CALL | method::TASKS_RESULT => cut::limited(limit, &sent, body),
                    method::TASKS_GET => cut::limited_task(limit, &sent, body),
                    _ => body,
                },
                _ => body,
            }),
            outcome => outcome,
        }
    }

    fn report(&self, part: ReportPart) -> Vec<String> {
        let report = self.provider.report(part);
        match part {
            ReportPart::Names(list) => {
                report.iter().filter_map(|name| self.outer_name(list, name)).map(str::to_owned).collect()
            }
            ReportPart::Faults => self.faults.iter().cloned().chain(report).collect(),
            ReportPart::Warnings => report,
        }
    }

    fn watch(&self) -> &dyn Watch {
        self
    }
}

impl<P: Provider> Watch for Transform<P> {
    fn attach(&self, changes: ProviderChanges) {
        self.provider.watch().attach(changes);
    }

    fn watched(&self, uri: &str) {
        if !self.is_removed(ListKind::Resources, uri) {
            self.provider.watch().watched(uri);
        }
    }

    fn unwatched(&self, uri: &str) {
        if !self.is_removed(ListKind::Resources, uri) {
            self.provider.watch().unwatched(uri);
        }
    }

    fn subscribe(
        &self,
        cx: Cx,
        mut uris: Vec<String>,
    ) -> WatchFuture<'_, Result<ProviderSubscription, RequestError>> {
        uris.retain(|uri| !self.is_removed(ListKind::Resources, uri));
        self.provider.watch().subscribe(cx, uris)
    }

    fn unsubscribe(&self, cx: Cx, uri: String) -> WatchFuture<'_, ()> {
        self.provider.watch().unsubscribe(cx, uri)
    }

    fn connection_event(&self, event: ConnectionEvent<'_>) -> Result<(), RpcError> {
        self.provider.watch().connection_event(event)
    }

    fn notified(
        &self,
        notification: Notification,
        peer: Option<Arc<Peer>>,
        session: Option<SessionHandle>,
    ) -> WatchFuture<'_, ()> {
        self.provider.watch().notified(notification, peer, session)
    }
}
