pub(crate) mod complete;
pub(crate) mod completion;
pub(crate) mod custom;
pub(crate) mod declared;
pub(crate) mod directory;
pub(crate) mod edit;
pub(crate) mod edits;
pub(crate) mod extension;
pub(crate) mod lint;
pub(crate) mod lists;
pub(crate) mod options;
pub(crate) mod overlay;
pub(crate) mod prompt;
pub(crate) mod resource;
pub(crate) mod route;
pub(crate) mod source;
pub(crate) mod template;
pub(crate) mod texts;
pub(crate) mod tool;

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, OnceLock},
};

use pintle_types::schema::Resource;

use self::{
    options::CatalogueRoute, overlay::PrincipalTools, prompt::PromptRoute, resource::ResourceRoute,
    source::SourceRoute, template::TemplateRoute, tool::ToolRoute,
};
use super::handler::{
    extract::{HandlerKind, Need},
    state_map::StateMap,
};
use crate::{
    server::{access::required::RequirementSummary, ordered_map::OrderedMap, printed_list::PrintedLists},
    uri::{TemplateIndex, Uri, Vars},
};

/// The tools, prompts, resources and templates of a server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Catalogue {
    pub(crate) tools: OrderedMap<ToolRoute>,
    pub(crate) prompts: OrderedMap<PromptRoute>,
    pub(crate) resources: OrderedMap<ResourceRoute>,
    pub(crate) templates: OrderedMap<TemplateRoute>,
    pub(crate) sources: Sources,
    /// Empty for most servers.
    pub(crate) principal_tools: PrincipalTools,
    pub(crate) requires: RequirementSummary,
    /// The lists as they are serialized for callers who see everything, on one page.
    pub(crate) printed: PrintedLists,
    pub(crate) uris: UriIndex,
}

/// The resources and templates of a catalogue by their canonical URIs, made when it is first needed. A changed catalogue has none.
#[derive(Clone, Debug, Default)]
pub(crate) struct UriIndex(OnceLock<Arc<CanonicalUris>>);

#[derive(Debug)]
struct CanonicalUris {
    /// The listed spellings of resources whose canonical one is another.
    resources: HashMap<Box<str>, Box<str>>,
    templates: TemplateIndex<Arc<TemplateRoute>>,
}

/// The sources of resources.
#[derive(Clone, Default)]
pub(crate) struct Sources(Vec<SourceRoute>);

impl Sources {
    pub(crate) fn push(&mut self, source: SourceRoute) {
        self.0.push(source);
    }

    pub(crate) fn get(&self, number: usize) -> Option<&SourceRoute> {
        self.0.get(number)
    }

    /// Returns the first source that recognizes this URI, and what it knows of the resource.
    pub(crate) fn describe(&self, uri: &str) -> Option<(&SourceRoute, Resource)> {
        self.0.iter().find_map(|route| Some((route, route.source.describe(uri)?)))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} sources", self.0.len())
    }
}

impl Catalogue {
    /// Returns whether anything can be completed.
    pub(crate) fn completes(&self) -> bool {
        self.prompts.iter().any(|route| !route.completers.is_empty())
            || self.templates.iter().any(|route| !route.completers.is_empty())
    }

    fn canonical_uris(&self) -> &CanonicalUris {
        self.uris.0.get_or_init(|| {
            let mut resources = HashMap::new();
            for listed in self.resources.iter().map(|route| &*route.resource.uri) {
                let uri = Uri::of(listed);
                if uri.as_str() != listed {
                    resources.entry(uri.as_str().into()).or_insert_with(|| listed.into());
                }
            }
            let templates =
                self.templates.iter().filter_map(|route| Some((route.template.clone()?, route.clone())));
            Arc::new(CanonicalUris { resources, templates: TemplateIndex::new(templates) })
        })
    }

    /// Returns the resource of a URI, whatever spelling it is listed in; one that was listed byte for byte like this first.
    pub(crate) fn resource(&self, uri: &Uri) -> Option<&Arc<ResourceRoute>> {
        if let Some(route) = self.resources.get(uri.sent()).or_else(|| self.resources.get(uri.as_str())) {
            return Some(route);
        }
        let listed = &self.canonical_uris().resources;
        listed.get(uri.as_str()).and_then(|listed| self.resources.get(listed))
    }

    /// Returns the template that matches this URI best, and the values of its variables.
    pub(crate) fn template(&self, uri: &Uri) -> Option<(&Arc<TemplateRoute>, Vars)> {
        if self.templates.is_empty() {
            return None;
        }
        self.canonical_uris().templates.get(uri).map(|found| (found.value, found.vars))
    }

    /// Returns an error for each state that a handler takes and the server does not have.
    pub(crate) fn missing(&self, own: &StateMap) -> Vec<String> {
        let others: Vec<_> = own.types().iter().map(|(_, name)| format!("`{name}`")).collect();
        let others = match &others[..] {
            [] => String::new(),
            others => format!("; it has {}", others.join(", ")),
        };
        let mut missing = Vec::new();
        self.each_need(|kind, key, need| {
            if !own.has(need.id) {
                let (kind, state) = (kind.word(), need.name);
                missing.push(format!(
                    "the {kind} `{key}` wants `State<{state}>`: give the server one with `with_state`{others}"
                ));
            }
        });
        missing
    }

    /// Returns an error for each state that the server has and no handler takes.
    pub(crate) fn untaken(&self, own: &StateMap) -> Vec<String> {
        let mut untaken = own.types().to_vec();
        self.each_need(|_, _, need| untaken.retain(|(id, _)| *id != need.id));
        let untaken = untaken.iter();
        untaken
            .map(|(_, name)| {
                format!("no handler takes the state `{name}`: take `State<{name}>`, or remove `with_state`")
            })
            .collect()
    }

    /// Passes each state that a handler takes, with the kind and the key of its route.
    fn each_need(&self, mut pass: impl FnMut(HandlerKind, &str, &Need)) {
        fn of<R: CatalogueRoute>(routes: &OrderedMap<R>, pass: &mut impl FnMut(HandlerKind, &str, &Need)) {
            for route in routes.iter() {
                route.options().needs.iter().for_each(|need| pass(R::KIND, route.key(), need));
            }
        }
        of(&self.tools, &mut pass);
        of(&self.prompts, &mut pass);
        of(&self.resources, &mut pass);
        of(&self.templates, &mut pass);
    }
}
