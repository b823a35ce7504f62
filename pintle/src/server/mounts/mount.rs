use std::{future::ready, sync::Arc};

use pintle_proto::{Peer, http::name_in, server::Outcome};
use pintle_types::{Notification, RawObject, RpcError, method, schema::CacheScope};
use serde_json::{Value, value::to_raw_value};

use crate::server::{
    ConnectionEvent, Cx, ListKind, PageRequest, RequestError, Scope, Server, SessionHandle, Target,
    access::required::Required,
    core::{
        gate::admission::permit,
        provider::{
            Provider,
            changes::ProviderChanges,
            entry::ProvidedEntry,
            info::{ProviderInfo, ReportPart},
            lookup::Lookup,
            page::{ProviderPage, key},
            prefix::Prefix,
            subscription::ProviderSubscription,
            tasks::watched_tasks,
            watch::{Watch, WatchFuture},
        },
    },
};

/// A provider whose names have a [`Prefix`], and which may require rights. [`Server::mount`](crate::server::Server::mount) makes one.
///
/// ```
/// use pintle::{Server, server::{Mount, tool}};
///
/// let git = Server::new("git", "1.0.0").tool(tool("push", || async { "pushed" }));
/// let server = Server::new("desk", "1.0.0").provider(Mount::new("git", git).requires(["git:write"]));
/// # server.check().unwrap();
/// ```
#[derive(Debug)]
pub struct Mount<P> {
    prefix: Prefix,
    provider: P,
    required: Required,
}

impl Server {
    /// Mounts another server, or any [`Provider`], in this one: everything that it offers is offered here too, its tools and
    /// prompts with a [prefix](Prefix).
    ///
    /// It is not a copy. Handlers run in the mounted server, with its state, layers, filters, required rights and timeouts, inside
    /// the layers of this one. What is added to it and removed from it later is added and removed here, and clients are notified.
    /// Its instructions are appended under a heading with the namespace.
    ///
    /// A name that two of them have is an error, as for [`provider`](Self::provider). So is a server that would contain itself.
    ///
    /// ```
    /// use pintle::{Server, server::tool};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> pintle::Result<()> {
    /// let git = Server::new("git", "1.0.0").tool(tool("status", || async { "clean" }));
    /// let desk = Server::new("desk", "1.0.0").mount("git", git.clone());
    /// # #[cfg(feature = "client")] {
    /// let client = pintle::Client::new("demo", "1.0.0").connect(desk.in_process()?).await?;
    /// assert_eq!(client.call_tool("git_status", ()).await?.text(), "clean");
    /// git.add_tool(tool("push", || async { "pushed" }))?;
    /// assert_eq!(client.call_tool("git_push", ()).await?.text(), "pushed");
    /// # }
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn mount(self, prefix: impl Into<Prefix>, provider: impl Provider) -> Self {
        self.provider(Mount::new(prefix, provider))
    }
}

impl<P: Provider> Mount<P> {
    /// Creates a mount of a provider with a prefix; a text is the namespace of one.
    pub fn new(prefix: impl Into<Prefix>, provider: P) -> Self {
        Self { prefix: prefix.into(), provider, required: Required::default() }
    }

    /// Adds rights that a caller needs to use anything of it, besides those that its entries require.
    #[must_use]
    pub fn requires<T: Into<String>>(mut self, rights: impl IntoIterator<Item = T>) -> Self {
        self.required.add(rights);
        self
    }

    /// Hides everything of it from callers who lack a right that it [requires](Self::requires).
    #[must_use]
    pub fn hidden(mut self) -> Self {
        self.required.hide();
        self
    }

    /// Returns the name that the provider has for a target.
    fn inner<'a>(&self, target: &'a Target<'_>) -> Option<Target<'a>> {
        // Methods have no prefix.
        if let Target::Method(name) = target {
            return Some(Target::Method(name.as_ref().into()));
        }
        let name = self.prefix.strip(ListKind::of(target)?, target.name())?;
        Some(match target {
            Target::Tool(_) => Target::Tool(name),
            Target::Prompt(_) => Target::Prompt(name),
            Target::Resource(_) => Target::Resource(name),
            Target::Template(_) => Target::Template(name),
            Target::Task(_) | Target::Method(_) => return None,
        })
    }

    /// Returns an entry of the provider as one of the mount.
    fn outer(&self, scope: &Scope<'_>, mut entry: ProvidedEntry) -> ProvidedEntry {
        entry.required.add(self.required.rights());
        let entry = entry.prefixed(&self.prefix);
        if self.required.shows(scope.extensions) { entry } else { entry.hide() }
    }

    /// Returns a call with the name that the provider has.
    fn inner_call(&self, cx: Cx) -> Cx {
        cx.rewritten(|method, params| self.inner_params(method, params))
    }

    /// Rewrites the name in the params of a request.
    fn inner_params(&self, method: &str, params: &RawObject) -> Option<RawObject> {
        let (list, member) = match method {
            method::TOOLS_CALL => (ListKind::Tools, "name"),
            method::PROMPTS_GET => (ListKind::Prompts, "name"),
            method::RESOURCES_READ => (ListKind::Resources, "uri"),
            method::COMPLETION_COMPLETE => return self.inner_reference(params),
            _ => return None,
        };
        let outer = name_in(params, member)?;
        let inner = self.prefix.strip(list, &outer)?;
        if inner == outer {
            return None;
        }
        Some(params.with(member, &to_raw_value(&inner).ok()?))
    }

    fn inner_reference(&self, params: &RawObject) -> Option<RawObject> {
        let reference: RawObject = params.decode_member("ref").ok()??;
        // What it names is told by its type, whatever other members it has.
        let (list, member) = completed_list(&reference)?;
        let name: String = reference.decode_member(member).ok()??;
        let name = self.prefix.strip(list, &name)?;
        let reference = reference.with(member, &to_raw_value(&name).ok()?);
        Some(params.with("ref", &to_raw_value(&reference).ok()?))
    }

    /// Writes the URIs of resources in a result with the namespace.
    fn outer_outcome(&self, outcome: Outcome) -> Outcome {
        if !self.prefix.changes_uris() {
            return outcome;
        }
        match outcome {
            Outcome::Complete(body) => match self.outer_result(&body) {
                Some(result) => Outcome::Complete(result.into()),
                None => Outcome::Complete(body),
            },
            Outcome::Cacheable(body, hint) => match self.outer_result(&body) {
                Some(result) => Outcome::Cacheable(result.into(), hint),
                None => Outcome::Cacheable(body, hint),
            },
            Outcome::NotFound { uri } => {
                Outcome::NotFound { uri: self.prefix.add(ListKind::Resources, &uri) }
            }
            other => other,
        }
    }

    fn outer_result(&self, result: &RawObject) -> Option<RawObject> {
        if !result.as_str().contains("uri") {
            return None;
        }
        let mut rewritten = None;
        // The result of a call that became a task is a member of the task.
        for member in ["contents", "content", "messages", "result"] {
            let Ok(Some(mut value)) = result.decode_member::<Value>(member) else { continue };
            match (member, value.get_mut("content")) {
                ("result", None) => continue,
                ("result", Some(content)) => self.prefix.add_to_content(content),
                _ => self.prefix.add_to_content(&mut value),
            }
            let value = to_raw_value(&value).ok()?;
            rewritten = Some(rewritten.as_ref().unwrap_or(result).with(member, &value));
        }
        rewritten
    }
}

/// Returns the list that a reference of a completion names an entry of, and the member with the name.
pub(super) fn completed_list(reference: &RawObject) -> Option<(ListKind, &'static str)> {
    Some(match reference.decode_member::<String>("type").ok()??.as_str() {
        "ref/resource" => (ListKind::Templates, "uri"),
        "ref/tool" => (ListKind::Tools, "name"),
        _ => (ListKind::Prompts, "name"),
    })
}

impl<P: Provider> Provider for Mount<P> {
    fn info(&self, caller: Option<&Scope<'_>>) -> ProviderInfo {
        let mut info = self.provider.info(caller);
        if !self.prefix.namespace().is_empty() {
            info.name = self.prefix.namespace().to_owned();
        }
        if caller.is_some_and(|caller| !self.required.shows(caller.extensions)) {
            info.declare_nothing();
        }
        if self.required.hides() {
            info.is_gated = true;
            info.hints.iter_mut().for_each(|hint| hint.scope = CacheScope::Private);
        }
        info.judges_uris |= self.prefix.changes_uris();
        info.may_require |= !self.required.is_nothing();
        info.is_whole_server = false;
        info
    }

    async fn list(&self, cx: Cx, list: ListKind, page: PageRequest) -> Result<ProviderPage, RequestError> {
        if !self.required.shows(cx.left()) {
            return Ok(ProviderPage::default());
        }
        let mut page = self.provider.list(cx, list, page).await?;
        for entry in &mut page.entries {
            if let Some(name) = key(list, entry) {
                *entry = entry.with(list.key(), &to_raw_value(&self.prefix.add(list, &name))?);
            }
            if list == ListKind::Tools && self.prefix.changes_uris() {
                self.prefix.add_to_app(entry)?;
            }
        }
        Ok(page)
    }

    fn find(&self, scope: &Scope<'_>, target: &Target<'_>) -> Lookup {
        let Some(target) = self.inner(target) else { return Lookup::None };
        let unlisted = || {
            let may_answer = self.prefix.marks(&target) && self.provider.info(None).has_unlisted;
            may_answer.then(ProvidedEntry::unlisted)
        };
        let found = match self.provider.find(scope, &target) {
            Lookup::None => unlisted().into(),
            Lookup::Stale(None) => Lookup::Stale(unlisted()),
            // The failure of a hidden provider must not show that it exists.
            Lookup::Failed(_) if !self.required.shows(scope.extensions) => Lookup::None,
            found => found,
        };
        found.and_then(|entry| Some(self.outer(scope, entry)))
    }

    async fn handle(&self, cx: Cx) -> Outcome {
        // The rights for an entry were checked when it was found.
        if ListKind::of_method(cx.method()).is_none()
            && cx.target().is_none_or(|target| matches!(target, Target::Task(_)))
        {
            if !self.required.shows(cx.left()) {
                return Outcome::Failed(RpcError::method_not_found(cx.method()));
            }
            if let Err(refused) = permit(&cx, &self.required, cx.method()) {
                return refused;
            }
        }
        let cx = self.inner_call(cx);
        let outcome = self.provider.handle(cx.clone()).await;
        if cx.has_passed_mounts() { outcome } else { self.outer_outcome(outcome) }
    }

    fn report(&self, part: ReportPart) -> Vec<String> {
        let mut report = self.provider.report(part);
        match part {
            ReportPart::Names(list) => {
                report.iter_mut().for_each(|name| *name = self.prefix.add(list, name));
            }
            ReportPart::Faults => report.extend(self.prefix.fault()),
            ReportPart::Warnings => {
                let name = self.info(None).name;
                report.iter_mut().for_each(|warning| *warning = format!("`{name}`: {warning}"));
            }
        }
        report
    }

    fn watch(&self) -> &dyn Watch {
        self
    }
}

impl<P: Provider> Watch for Mount<P> {
    fn attach(&self, changes: ProviderChanges) {
        self.provider.watch().attach(changes.within(&self.prefix));
    }

    fn watched(&self, uri: &str) {
        if let Some(uri) = self.prefix.strip(ListKind::Resources, uri) {
            self.provider.watch().watched(&uri);
        }
    }

    fn unwatched(&self, uri: &str) {
        if let Some(uri) = self.prefix.strip(ListKind::Resources, uri) {
            self.provider.watch().unwatched(&uri);
        }
    }

    fn subscribe(
        &self,
        cx: Cx,
        uris: Vec<String>,
    ) -> WatchFuture<'_, Result<ProviderSubscription, RequestError>> {
        let strip = |uri: &String| self.prefix.strip(ListKind::Resources, uri).map(|uri| uri.to_string());
        let inner: Vec<_> = uris.iter().filter_map(strip).collect();
        // Whoever has lost the rights has no tasks here either.
        let cx = if self.required.is_met(cx.left()) { cx } else { watched_tasks::of_provider(cx, &[]) };
        Box::pin(async move {
            let subscribed = self.provider.watch().subscribe(cx, inner).await?;
            Ok(subscribed.renamed(|uri| self.prefix.add(ListKind::Resources, uri)))
        })
    }

    fn unsubscribe(&self, cx: Cx, uri: String) -> WatchFuture<'_, ()> {
        match self.prefix.strip(ListKind::Resources, &uri) {
            Some(inner) => self.provider.watch().unsubscribe(cx, inner.into_owned()),
            None => Box::pin(ready(())),
        }
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
