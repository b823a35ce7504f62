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

use std::{fmt, sync::Arc};

use pintle_types::schema::Resource;

use self::{
    options::CatalogueRoute, overlay::PrincipalTools, prompt::PromptRoute, resource::ResourceRoute,
    source::AnySource, template::TemplateRoute, tool::ToolRoute,
};
use crate::{
    server::{
        Entry,
        access::required::{Required, RequirementSummary},
        handler::state_map::StateMap,
        ordered_map::OrderedMap,
        printed_list::PrintedLists,
    },
    uri::Vars,
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
}

/// The sources of resources.
#[derive(Clone, Default)]
pub(crate) struct Sources(Vec<Arc<dyn AnySource>>);

impl Sources {
    pub(crate) fn push(&mut self, source: Arc<dyn AnySource>) {
        self.0.push(source);
    }

    pub(crate) fn get(&self, number: usize) -> Option<&Arc<dyn AnySource>> {
        self.0.get(number)
    }

    /// Returns the first source that recognizes this URI, and what it knows of the resource.
    pub(crate) fn describe(&self, uri: &str) -> Option<(&Arc<dyn AnySource>, Resource)> {
        self.0.iter().find_map(|source| Some((source, source.describe(uri)?)))
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

    /// Returns what `sees` returns for the entry that a URI leads to; `None` if there is none.
    pub(crate) fn judged(&self, uri: &str, sees: &impl Fn(&Required, Entry<'_>) -> bool) -> Option<bool> {
        Some(if let Some(route) = self.resources.get(uri) {
            sees(&route.options.required, route.entry())
        } else if let Some((_, resource)) = self.sources.describe(uri) {
            sees(&Required::NOTHING, Entry::Resource(&resource))
        } else if let Some((route, _)) = self.template(uri) {
            sees(&route.options.required, route.entry())
        } else {
            return None;
        })
    }

    /// Returns the template that matches this URI best, and the values of its variables.
    pub(crate) fn template(&self, uri: &str) -> Option<(&Arc<TemplateRoute>, Vars)> {
        let fitting = self.templates.iter().filter_map(|route| {
            let template = route.template.as_ref()?;
            template.matches(uri).map(|vars| (template.rank(), route, vars))
        });
        fitting.min_by_key(|(rank, ..)| *rank).map(|(_, route, vars)| (route, vars))
    }

    /// Returns an error for each state that a handler takes and the server does not have.
    pub(crate) fn missing(&self, own: &StateMap) -> Vec<String> {
        fn of<R: CatalogueRoute>(routes: &OrderedMap<R>, own: &StateMap, missing: &mut Vec<String>) {
            for route in routes.iter() {
                let needs = route.options().needs.iter().filter(|need| !own.has(need.id));
                missing.extend(needs.map(|need| {
                    let (kind, key, state) = (R::KIND.word(), route.key(), need.name);
                    format!(
                        "the {kind} `{key}` wants `State<{state}>`: give the server one with `with_state`"
                    )
                }));
            }
        }
        let mut missing = Vec::new();
        of(&self.tools, own, &mut missing);
        of(&self.prompts, own, &mut missing);
        of(&self.resources, own, &mut missing);
        of(&self.templates, own, &mut missing);
        missing
    }
}
