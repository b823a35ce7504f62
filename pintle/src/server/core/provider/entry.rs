use std::sync::{Arc, OnceLock};

use pintle_proto::server::Outcome;
use pintle_types::{
    JsonObject, RpcError, method,
    schema::{Prompt, Resource, ResourceTemplate, Tool},
};

use pintle_uri::{Template, TemplateRank};

use super::{definition::Definition, lookup::Lookup, passed_gates::PassedGates, prefix::Prefix};
use crate::{
    server::{
        Access, Cx, Entry, PromptRoute, ResourceRoute, ServerKey, Target, TemplateRoute, ToolRoute,
        access::required::Required,
        core::{
            catalogue::options::CatalogueRoute,
            cx::found_in::FoundIn,
            gate::admission::{
                AccessGrant, AccessRefusal, Used, admit, count_again, is_repeated, permit, report,
            },
            snapshot::Snapshot,
        },
        judged::arguments::ArgumentEdits,
    },
    uri::Uri,
};

/// An entry of a [`Provider`](crate::server::Provider), as far as it is known. A tool, prompt, resource or template converts into
/// one.
#[derive(Clone, Debug)]
pub struct ProvidedEntry {
    source: DefinitionSource,
    /// The definition as the server behind lists it, if clients see another one.
    listed: Option<DefinitionSource>,
    /// The changes of arguments on the way to the server behind, the innermost first.
    edits: Vec<Arc<ArgumentEdits>>,
    /// The prefixes that its names are written with, the innermost first.
    prefixes: Vec<Prefix>,
    pub(crate) required: Required,
    /// The reason why the caller may not be notified of changes of the resource.
    pub(crate) unwatched: Option<Box<RpcError>>,
    /// Whether a call of it leads on to another entry, which is counted in place of this one.
    uncounted: bool,
    /// Whether it belongs to the caller, so that gates do not decide about it.
    pub(crate) owned: bool,
    /// Whether the caller may not see it. It keeps its place among the others.
    hidden: bool,
    /// The gates of the mounted server that it was found behind.
    passed: Option<Arc<PassedGates>>,
    /// The states of the providers that it was found in.
    found_in: Option<Arc<FoundIn>>,
}

/// How exactly an entry is the one of a target, the most exact first.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum EntryRank {
    /// By its name or URI, or it is hidden and nothing else is known of it.
    Exact,
    /// By a template, of which the most literal comes first.
    Template(TemplateRank),
    /// The provider may answer for it.
    Unlisted,
}

impl Target<'_> {
    /// Returns the URI that gates judge an entry by, if it is not the one in the definition of the entry.
    pub(crate) fn judged_uri(&self, found: Entry<'_>) -> Option<&str> {
        match self {
            Self::Resource(uri) => Some(uri),
            // A template is named by its text, or by a URI.
            Self::Template(uri) if found.name() != &**uri => Some(uri),
            _ => None,
        }
    }
}

/// Where the definition of an entry comes from.
#[derive(Clone, Debug)]
enum DefinitionSource {
    /// The definition is not known.
    Unknown,
    Value(Arc<SharedDefinition>),
    Tool(Arc<ToolRoute>),
    Prompt(Arc<PromptRoute>),
    Resource(Arc<ResourceRoute>),
    Template(Arc<TemplateRoute>),
    /// A method, which is in no list.
    Method(Box<str>),
}

impl ProvidedEntry {
    /// Creates an entry whose definition is not known. A server with [gates](crate::server::Server::gate) hides it.
    pub fn unlisted() -> Self {
        Self::new(DefinitionSource::Unknown)
    }

    /// Creates an entry that the caller may not see: it is treated as one that does not exist, and no other provider is asked
    /// for it.
    pub fn hidden() -> Self {
        Self::unlisted().hide()
    }

    /// Creates the entry of a method that requires rights.
    pub(crate) fn method(name: &str, required: Required) -> Self {
        Self::new(DefinitionSource::Method(name.into())).requiring(required)
    }

    /// Sets the rights that a caller needs.
    pub(crate) fn requiring(self, required: Required) -> Self {
        Self { required, ..self }
    }

    /// Adds rights that a caller needs. Without them the call is refused; over HTTP with a response that names them.
    #[must_use]
    pub fn requires<T: Into<String>>(mut self, rights: impl IntoIterator<Item = T>) -> Self {
        self.required.add(rights);
        self
    }

    /// Shows another definition of it to clients. Rights and changes of arguments stay, and so does the schema that arguments are judged by.
    #[must_use]
    pub fn shown_as(mut self, shown: impl Into<Self>) -> Self {
        let shown = shown.into();
        self.keep_listed();
        (self.source, self.prefixes) = (shown.source, shown.prefixes);
        self
    }

    /// Keeps the definition as the server behind lists it.
    fn keep_listed(&mut self) {
        self.listed.get_or_insert_with(|| self.source.clone());
    }

    fn new(source: DefinitionSource) -> Self {
        Self {
            source,
            listed: None,
            edits: Vec::new(),
            prefixes: Vec::new(),
            required: Required::default(),
            unwatched: None,
            uncounted: false,
            owned: false,
            hidden: false,
            passed: None,
            found_in: None,
        }
    }

    /// Writes the name, URI or URI template with this prefix.
    pub(crate) fn prefixed(mut self, prefix: &Prefix) -> Self {
        if matches!(self.source, DefinitionSource::Method(_)) {
            return self;
        }
        self.keep_listed();
        match &mut self.source {
            DefinitionSource::Value(shared) if self.prefixes.is_empty() => match Arc::get_mut(shared) {
                Some(own) => own.add_prefix(prefix),
                None => *shared = shared.prefixed(prefix),
            },
            _ => self.prefixes.push(prefix.clone()),
        }
        self
    }

    /// Sets the gates of the mounted server that it was found behind.
    pub(crate) fn behind(mut self, gates: PassedGates) -> Self {
        self.passed = Some(Arc::new(gates));
        self
    }

    /// Has the gates of mounted servers report a request for the entry that does not come to them.
    pub(crate) fn report_behind(&self, cx: &Cx) {
        if let Some(gates) = &self.passed {
            gates.report(cx);
        }
    }

    pub(crate) fn is_hidden(&self) -> bool {
        self.hidden
    }

    /// Hides it from the caller.
    pub(crate) fn hide(mut self) -> Self {
        self.hidden = true;
        self
    }

    /// Returns what `judge` returns for the definition; `None` for an entry without one, or that is hidden.
    pub(crate) fn judged<T>(&self, judge: impl FnOnce(Entry<'_>) -> T) -> Option<T> {
        if self.hidden { None } else { self.read(judge) }
    }

    /// Returns what `judge` returns for the definition, whoever may see it.
    fn read<T>(&self, judge: impl FnOnce(Entry<'_>) -> T) -> Option<T> {
        if !self.prefixes.is_empty() {
            return self.definition().map(|mut definition| {
                self.prefixes.iter().for_each(|prefix| definition.prefix(prefix));
                judge(definition.entry())
            });
        }
        Some(match &self.source {
            DefinitionSource::Unknown => return None,
            DefinitionSource::Value(shared) => judge(shared.definition.entry()),
            DefinitionSource::Tool(route) => judge(Entry::Tool(&route.tool)),
            DefinitionSource::Prompt(route) => judge(Entry::Prompt(&route.prompt)),
            DefinitionSource::Resource(route) => judge(Entry::Resource(&route.resource)),
            DefinitionSource::Template(route) => judge(Entry::Template(&route.resource_template)),
            DefinitionSource::Method(name) => judge(Entry::Method(name)),
        })
    }

    /// Returns the spelling in which the resource of a URI is listed, if the entry is that.
    pub(crate) fn listed_as(&self, uri: &Uri) -> Option<String> {
        let listed = |found: Entry<'_>| match found {
            Entry::Resource(resource) if Uri::of(&resource.uri).as_str() == uri.as_str() => {
                Some(resource.uri.clone())
            }
            _ => None,
        };
        self.judged(listed).flatten()
    }

    /// Returns how exactly the entry is the one of a target. Of several providers, the one with the lowest rank answers.
    pub(crate) fn rank(&self, target: &Target<'_>) -> EntryRank {
        if matches!(self.source, DefinitionSource::Unknown) {
            return if self.hidden { EntryRank::Exact } else { EntryRank::Unlisted };
        }
        let template = |found: Entry<'_>| match (target, found) {
            (Target::Template(named), Entry::Template(template)) if template.uri_template == **named => None,
            (Target::Resource(_) | Target::Template(_), Entry::Template(template)) => {
                Some(Template::parse(&template.uri_template).map(|template| template.rank()).ok())
            }
            _ => None,
        };
        match self.read(template).flatten() {
            Some(Some(rank)) => EntryRank::Template(rank),
            Some(None) => EntryRank::Unlisted,
            None => EntryRank::Exact,
        }
    }

    /// Decides whether a request may use the entry, which the provider `backend` has, and counts it.
    pub(crate) fn admit(
        &self,
        cx: &Cx,
        backend: Option<&str>,
        target: &Target<'_>,
    ) -> Result<AccessGrant, AccessRefusal> {
        if self.is_hidden() {
            self.report(cx, backend, target);
            return Err(AccessRefusal::Hidden);
        }
        let granted = || {
            let permitted = permit(cx, &self.required, target.name());
            permitted.map(|()| AccessGrant::default()).map_err(AccessRefusal::Denied)
        };
        if self.owned {
            return granted();
        }
        match self.used(cx, backend, target, |access, used| admit(cx, access, used)) {
            Some(admitted) => admitted,
            None if cx.snapshot().gates.shows_read(&cx.scope(), backend, || None::<Definition>) => granted(),
            None => Err(AccessRefusal::Hidden),
        }
    }

    /// Counts an admitted call again whose state, which the server behind claims, was seen before.
    pub(crate) async fn count_repeated(
        &self,
        cx: &Cx,
        backend: &str,
        target: &Target<'_>,
    ) -> Result<(), AccessRefusal> {
        if self.owned || !is_repeated(cx).await {
            return Ok(());
        }
        let again = self.used(cx, Some(backend), target, |access, used| count_again(cx, access, used));
        again.unwrap_or(Ok(()))
    }

    /// Returns a call of the entry as its provider handles it: in the state in which the entry was found, and judged. If the user was asked
    /// meanwhile, `find` finds it again.
    ///
    /// # Errors
    ///
    /// The entry has changed since it was judged.
    pub(crate) fn as_judged(
        &self,
        cx: &Cx,
        is_asked: bool,
        find: impl FnOnce(&Target<'_>) -> Lookup,
    ) -> Result<Cx, Outcome> {
        let changed = |when: &str| {
            let target = cx.target();
            let shown: String = target.iter().flat_map(|target| target.name().chars()).take(128).collect();
            let message = format!("`{shown}` has changed {when}: call it again");
            Outcome::Failed(RpcError::invalid_request(message))
        };
        let found = match cx.target().filter(|_| is_asked) {
            None => self.found_in.clone(),
            Some(target) => {
                let now = find(&target).known().filter(|now| now.is_same(self));
                now.ok_or_else(|| changed("while the user was asked"))?.found_in
            }
        };
        match found {
            None => Ok(cx.clone()),
            Some(found) => cx.clone().within(found).ok_or_else(|| changed("meanwhile")),
        }
    }

    /// Returns whether calls of both lead to the same entry with the same changes of their arguments, and gates see no difference.
    fn is_same(&self, other: &Self) -> bool {
        let leads_to = |entry: &Self| entry.listed.as_ref().unwrap_or(&entry.source).definition();
        let shown = |entry: &Self| entry.read(|shown| shown.name().to_owned());
        self.edits == other.edits && leads_to(self) == leads_to(other) && shown(self) == shown(other)
    }

    /// Keeps the state of the provider in which the entry was found. [`Cx::found_in`] returns it when the provider handles a call of the
    /// entry: a provider whose state is replaced by another one as a whole uses it then, so that what was judged is what runs.
    #[must_use]
    pub fn found_in<T: Send + Sync + 'static>(mut self, state: Arc<T>) -> Self {
        self.found_in = Some(FoundIn::provider(state, self.found_in.take()));
        self
    }

    /// Keeps the snapshot of a mounted server in which the entry was found.
    pub(crate) fn found_in_server(mut self, key: ServerKey, snapshot: Arc<Snapshot>) -> Self {
        self.found_in = Some(FoundIn::server(key, snapshot, self.found_in.take()));
        self
    }

    /// Has the gates report a request for the entry that was refused before they were asked about it. Of one that is hidden, the name is
    /// known.
    pub(crate) fn report(&self, cx: &Cx, backend: Option<&str>, target: &Target<'_>) {
        self.report_behind(cx);
        let named = || Some(Self::new(SharedDefinition::source(Definition::of_name(target)?)));
        let named = if self.is_hidden() { named() } else { None };
        named.as_ref().unwrap_or(self).used(cx, backend, target, |access, used| report(cx, access, used));
    }

    /// Runs a function with the use that a request makes of the entry.
    fn used<T>(
        &self,
        cx: &Cx,
        backend: Option<&str>,
        target: &Target<'_>,
        judge: impl FnOnce(Access, &Used<'_>) -> T,
    ) -> Option<T> {
        let access = match cx.method() {
            method::RESOURCES_READ => Access::Read,
            method::RESOURCES_SUBSCRIBE | method::SUBSCRIPTIONS_LISTEN => Access::Subscribe,
            method::COMPLETION_COMPLETE => Access::Complete,
            _ => Access::Call,
        };
        self.judged(|found| {
            let used = Used {
                backend,
                uri: target.judged_uri(found),
                arguments: (access == Access::Call).then(|| cx.sent_arguments()),
                schema: self.listed.as_ref().unwrap_or(&self.source).input_schema(),
                edits: &self.edits,
                upstream: self
                    .listed
                    .as_ref()
                    .and_then(|listed| listed.name())
                    .filter(|name| *name != found.name()),
                uncounted: self.uncounted,
                ..Used::own(&self.required, found)
            };
            judge(access, &used)
        })
    }

    /// Adds changes of the arguments of calls, outside of those that it has.
    pub(crate) fn edit_arguments(&mut self, edits: &Arc<ArgumentEdits>) {
        if !edits.is_empty() {
            self.edits.push(edits.clone());
        }
    }

    /// Changes the definition, as clients see it.
    pub(crate) fn edited(mut self, edit: impl FnOnce(Definition) -> Definition) -> Self {
        if let Some(mut definition) = self.definition().filter(|_| !self.hidden) {
            self.keep_listed();
            self.prefixes.drain(..).for_each(|prefix| definition.prefix(&prefix));
            self.source = SharedDefinition::source(edit(definition));
        }
        self
    }

    /// Sets why the caller may not be notified of changes of the resource.
    pub(crate) fn unwatched(mut self, reason: RpcError) -> Self {
        self.unwatched = Some(Box::new(reason));
        self
    }

    /// Sets that it belongs to the caller, so that gates do not decide about it.
    pub(crate) fn owned(mut self) -> Self {
        self.owned = true;
        self
    }

    /// Sets that a call of it leads on to another entry, which is counted in place of this one.
    pub(crate) fn uncounted(mut self) -> Self {
        self.uncounted = true;
        self
    }

    /// Returns the definition of a tool, whoever may see it.
    pub(crate) fn tool(&self) -> Option<Tool> {
        self.read(|entry| match entry {
            Entry::Tool(tool) => Some(tool.clone()),
            _ => None,
        })?
    }

    /// Returns the input schema of a tool.
    pub(crate) fn input_schema(&self) -> Option<&JsonObject> {
        self.source.input_schema()
    }

    fn definition(&self) -> Option<Definition> {
        self.source.definition()
    }
}

impl DefinitionSource {
    fn definition(&self) -> Option<Definition> {
        Some(match self {
            Self::Unknown | Self::Method(_) => return None,
            Self::Value(shared) => shared.definition.clone(),
            Self::Tool(route) => Definition::Tool(route.tool.clone()),
            Self::Prompt(route) => Definition::Prompt(route.prompt.clone()),
            Self::Resource(route) => Definition::Resource(route.resource.clone()),
            Self::Template(route) => Definition::Template(route.resource_template.clone()),
        })
    }

    fn input_schema(&self) -> Option<&JsonObject> {
        match self {
            Self::Value(shared) => match &shared.definition {
                Definition::Tool(tool) => Some(&tool.input_schema),
                _ => None,
            },
            Self::Tool(route) => Some(&route.tool.input_schema),
            _ => None,
        }
    }

    /// Returns the name, URI or URI template.
    fn name(&self) -> Option<&str> {
        Some(match self {
            Self::Unknown => return None,
            Self::Value(shared) => shared.definition.key().1,
            Self::Tool(route) => &route.tool.name,
            Self::Prompt(route) => &route.prompt.name,
            Self::Resource(route) => &route.resource.uri,
            Self::Template(route) => &route.resource_template.uri_template,
            Self::Method(name) => name,
        })
    }
}

/// A definition that entries share, with the one that it became with a prefix: a provider that keeps its entries is mostly mounted once,
/// and gates judge its entries by their whole names, for each call.
#[derive(Debug)]
struct SharedDefinition {
    definition: Definition,
    /// The definition with the prefix that was wanted first.
    prefixed: OnceLock<(Prefix, Arc<Self>)>,
}

impl SharedDefinition {
    fn new(definition: Definition) -> Arc<Self> {
        Arc::new(Self { definition, prefixed: OnceLock::new() })
    }

    fn source(definition: Definition) -> DefinitionSource {
        DefinitionSource::Value(Self::new(definition))
    }

    /// Writes the name with a prefix.
    fn add_prefix(&mut self, prefix: &Prefix) {
        self.definition.prefix(prefix);
        self.prefixed = OnceLock::new();
    }

    /// Returns the definition with a prefix.
    fn prefixed(&self, prefix: &Prefix) -> Arc<Self> {
        let prefixed = || {
            let mut definition = self.definition.clone();
            definition.prefix(prefix);
            Self::new(definition)
        };
        let (first, known) = self.prefixed.get_or_init(|| (prefix.clone(), prefixed()));
        if first == prefix { known.clone() } else { prefixed() }
    }
}

macro_rules! from_definitions {
    ($($definition:ident: $kind:ident),*) => {$(
        impl From<$definition> for ProvidedEntry {
            fn from(definition: $definition) -> Self {
                Self::new(SharedDefinition::source(Definition::$kind(definition)))
            }
        }
    )*};
}

from_definitions!(Tool: Tool, Prompt: Prompt, Resource: Resource, ResourceTemplate: Template);

/// A route that can be an entry of a provider.
pub(crate) trait ProvidedRoute: CatalogueRoute {
    fn provided(self: &Arc<Self>) -> ProvidedEntry;
}

macro_rules! provided_routes {
    ($($route:ident: $kind:ident),*) => {$(
        impl ProvidedRoute for $route {
            fn provided(self: &Arc<Self>) -> ProvidedEntry {
                let required = self.options.required.clone();
                ProvidedEntry { required, ..ProvidedEntry::new(DefinitionSource::$kind(self.clone())) }
            }
        }
    )*};
}

provided_routes!(ToolRoute: Tool, PromptRoute: Prompt, ResourceRoute: Resource, TemplateRoute: Template);

#[cfg(test)]
mod tests {
    use super::*;

    fn name(entry: &ProvidedEntry) -> String {
        entry.judged(|found| found.name().to_owned()).unwrap()
    }

    fn shared(entry: &ProvidedEntry) -> &Arc<SharedDefinition> {
        match &entry.source {
            DefinitionSource::Value(shared) => shared,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_entry_that_is_kept_is_written_with_its_prefix_once() {
        let kept = ProvidedEntry::from(Tool::new("push", JsonObject::new()));
        let git = Prefix::new("git");
        let (first, second) = (kept.clone().prefixed(&git), kept.clone().prefixed(&git));
        assert_eq!((name(&first), name(&kept)), ("git_push".to_owned(), "push".to_owned()));
        assert!(Arc::ptr_eq(shared(&first), shared(&second)), "no call copies the definition");
        // Of another mount it is another one.
        let old = kept.clone().prefixed(&Prefix::new("old"));
        assert_eq!(
            (name(&old), name(&kept.clone().prefixed(&git))),
            ("old_push".to_owned(), "git_push".to_owned())
        );
        // A mount within a mount.
        let desk = Prefix::new("desk");
        assert_eq!(name(&first.prefixed(&desk)), "desk_git_push");
        assert_eq!(name(&second.prefixed(&desk).prefixed(&desk)), "desk_desk_git_push");
        // One that nobody keeps is changed in place.
        assert_eq!(name(&kept.prefixed(&git).prefixed(&desk)), "desk_git_push");
    }
}
