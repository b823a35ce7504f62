//! The catalogue and the settings of a server at one time.

use std::{collections::HashMap, sync::OnceLock};

use pintle_proto::{
    http::Served,
    server::{CacheHint, Service},
};
use pintle_types::{
    JsonObject,
    method::tasks_extension,
    schema::{
        CacheScope, PromptsCapability, ResourcesCapability, ServerCapabilities, TaskSupport, Tool,
        ToolsCapability,
    },
};

use super::{
    catalogue::{Catalogue, custom::CustomMethod},
    gate::registry::Gates,
    handler::state_map::StateMap,
    hooks::Hooks,
    provider::registry::Providers,
    settings::ServerSettings,
};
use crate::{
    Error, Result,
    server::{ListHints, ListKind, Next},
};

/// A snapshot of a server. A change creates another one; a call keeps the one it started with.
#[derive(Clone)]
pub(crate) struct Snapshot {
    pub(crate) service: Service,
    /// The revisions that are served over HTTP.
    pub(crate) served: Served,
    pub(crate) catalogue: Catalogue,
    /// The providers, for what the catalogue does not have.
    pub(crate) providers: Providers,
    pub(crate) settings: ServerSettings,
    pub(crate) gates: Gates,
    pub(crate) hooks: Hooks,
    pub(crate) own: StateMap,
    pub(crate) custom: HashMap<String, CustomMethod>,
    /// The way of every request and notification: the layers, and innermost the handler.
    pub(crate) stack: Next,
    /// Whether there are layers, which see also what nobody handles.
    pub(crate) is_layered: bool,
    /// Errors of registrations, reported by `check` and `serve`.
    pub(crate) faults: Vec<String>,
    /// The result of the check, once it ran. A changed state has none.
    pub(crate) verdict: OnceLock<Option<Box<str>>>,
}

impl Snapshot {
    /// Puts a layer around every request and every notification, outside of those that are there.
    pub(crate) fn add_layer(&mut self, wrap: impl FnOnce(Next) -> Next) {
        self.stack = wrap(self.stack.clone());
        self.is_layered = true;
    }

    /// Returns whether the server, or one that is mounted in it, has gates.
    pub(crate) fn is_gated(&self) -> bool {
        !self.gates.is_empty() || self.providers.is_gated()
    }

    /// Returns whether an entry may be hidden from a caller, by a gate or for want of rights: then results and questions are filtered.
    #[inline]
    pub(crate) fn hides(&self) -> bool {
        self.is_gated() || self.catalogue.requires.hides
    }

    /// Returns all faults of the registrations, one a line. They are determined once, because a server that is chosen per
    /// request is checked with each.
    #[cfg(feature = "http-server")]
    pub(crate) fn fault(&self) -> Option<&str> {
        self.verdict.get_or_init(|| self.current_fault()).as_deref()
    }

    /// Returns all faults of the registrations and of the providers, as they are now.
    pub(crate) fn current_fault(&self) -> Option<Box<str>> {
        let mut faults = self.faults.clone();
        if self.service.info().name.trim().is_empty() {
            faults.push("the name of the server is empty: give it one".to_owned());
        }
        faults.extend(self.catalogue.missing(&self.own));
        faults.extend(self.offered().faults());
        faults.extend(self.unmet_needs());
        faults.extend(self.tools_without_tasks());
        let checks = self.settings.extensions.checks.iter();
        faults.extend(checks.filter_map(|check| check(&self.settings.keys)));
        faults.extend(self.failed_checks());
        (!faults.is_empty()).then(|| faults.join("\n").into())
    }

    /// Returns the states that no handler takes, unless handlers may be added while the server runs, or one was refused.
    pub(crate) fn untaken_states(&self) -> Vec<String> {
        let may_change = self.settings.capabilities.may_change || !self.catalogue.principal_tools.is_empty();
        match may_change || !self.faults.is_empty() {
            true => Vec::new(),
            false => self.catalogue.untaken(&self.own),
        }
    }

    /// Returns what the checks of extensions find.
    fn failed_checks(&self) -> Vec<String> {
        let checks = &self.settings.extensions.catalogue_checks;
        if checks.is_empty() {
            return Vec::new();
        }
        let tools: Vec<_> = self.catalogue.tools.iter().map(|route| route.definition().clone()).collect();
        let resources: Vec<_> =
            self.catalogue.resources.iter().map(|route| route.definition().clone()).collect();
        checks.iter().flat_map(|check| check(&tools, &resources)).collect()
    }

    /// Returns the tools that have to be called as tasks, if the server has no tasks: they would be called as any other.
    fn tools_without_tasks(&self) -> Vec<String> {
        let extensions = self.service.capabilities().extensions.as_ref();
        if extensions.is_some_and(|extensions| extensions.contains_key(tasks_extension::NAME)) {
            return Vec::new();
        }
        let required = self.catalogue.tools.iter().map(|route| &route.tool).filter(|tool| {
            let support = tool.execution.as_ref().and_then(|execution| execution.task_support.as_ref());
            support == Some(&TaskSupport::Required)
        });
        required
            .map(|Tool { name, .. }| {
                format!("the tool `{name}` is called as a task, and the server has no tasks: add `.with(Tasks::new())`")
            })
            .collect()
    }

    /// Returns what extensions need and the server does not have.
    fn unmet_needs(&self) -> Vec<String> {
        let needs = &self.settings.extensions.needs;
        if needs.is_empty() {
            return Vec::new();
        }
        let can = serde_json::to_value(self.service.capabilities()).unwrap_or_default();
        let has = |need: &str| match need.contains('/') {
            true => can["extensions"].get(need).is_some(),
            false => can.get(need).is_some(),
        };
        let unmet = needs.iter().filter(|(_, need)| !has(need));
        unmet
            .map(|(name, need)| {
                format!("the extension `{name}` needs `{need}`, which the server does not have; add it")
            })
            .collect()
    }

    /// Returns how long a list may be cached, with those of the providers: all pages alike. A list that depends on the caller is
    /// private.
    pub(crate) fn list_hint(&self, list: ListKind) -> CacheHint {
        self.list_hints(&[list]).get(list).clone()
    }

    /// Returns how long these lists may be cached. The facts of each provider are read once.
    pub(crate) fn list_hints(&self, lists: &[ListKind]) -> ListHints {
        let mut hints = ListHints::default();
        for list in lists.iter().copied() {
            let hint = hints.get_mut(list);
            hint.clone_from(self.settings.lists.hint(list));
            if self.list_depends(list) {
                hint.scope = CacheScope::Private;
            }
        }
        self.providers.restrict(lists, &mut hints);
        hints
    }

    /// Returns whether a list depends on the caller.
    pub(crate) fn list_depends(&self, list: ListKind) -> bool {
        self.is_gated()
            || self.catalogue.requires.hides
            || (list == ListKind::Tools && !self.catalogue.principal_tools.is_empty())
    }

    /// Returns an error with all faults. Those of providers, which change by themselves, are as they are now.
    pub(crate) fn check(&self) -> Result<()> {
        self.current_fault().map_or(Ok(()), |fault| Err(Error::misuse(fault)))
    }

    /// Updates the declared capabilities and the served revisions.
    pub(crate) fn declare(&mut self) {
        self.service.set_capabilities(self.capabilities());
        // Layers see what no handler answers, too.
        self.service.set_unknown_methods(self.is_layered);
        self.service.set_any_method(self.providers.has_methods());
        let instructions = self.providers.instructions(self.settings.instructions.as_deref());
        self.service.set_instructions(instructions);
        self.served = Served::new(self.service.revisions().iter().copied());
    }

    /// Updates the declared capabilities after a change of the catalogue, if they differ.
    pub(crate) fn declare_catalogue(&mut self) {
        let can = self.capabilities();
        if can != *self.service.capabilities() {
            self.service.set_capabilities(can);
        }
    }

    fn capabilities(&self) -> ServerCapabilities {
        self.capabilities_with(&self.providers)
    }

    /// Returns the capabilities of the server with those of these providers.
    pub(crate) fn capabilities_with(&self, providers: &Providers) -> ServerCapabilities {
        let (catalogue, declared) = (&self.catalogue, &self.settings.capabilities);
        let mut can = ServerCapabilities::default();
        if declared.may_change || !catalogue.tools.is_empty() || !catalogue.principal_tools.is_empty() {
            let mut tools = ToolsCapability::default();
            tools.list_changed = Some(true);
            can.tools = Some(tools);
        }
        if declared.may_change || !catalogue.prompts.is_empty() {
            let mut prompts = PromptsCapability::default();
            prompts.list_changed = Some(true);
            can.prompts = Some(prompts);
        }
        let no_resources =
            catalogue.resources.is_empty() && catalogue.templates.is_empty() && catalogue.sources.is_empty();
        if declared.may_change || !no_resources {
            let mut resources = ResourcesCapability::default();
            resources.list_changed = Some(true);
            resources.subscribe = Some(true);
            can.resources = Some(resources);
        }
        if catalogue.completes() || (declared.tool_completion && can.tools.is_some()) {
            can.completions = Some(JsonObject::new());
        }
        if declared.logging {
            can.logging = Some(JsonObject::new());
        }
        if !declared.extensions.is_empty() {
            can.extensions = Some(declared.extensions.clone());
        }
        if !declared.experimental.is_empty() {
            can.experimental = Some(declared.experimental.clone());
        }
        providers.declare(&mut can);
        self.settings.extensions.capability_edits.iter().for_each(|edit| edit(&mut can));
        can
    }
}
