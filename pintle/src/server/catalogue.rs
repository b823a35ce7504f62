use std::sync::{Arc, OnceLock};

use pintle_types::RawObject;

use super::{
    prompt::PromptRoute, resource::ResourceRoute, shelf::Shelf, template::TemplateRoute, tool::ToolRoute,
};

/// All that a server has to offer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Catalogue {
    pub(crate) tools: Shelf<ToolRoute>,
    pub(crate) prompts: Shelf<PromptRoute>,
    pub(crate) resources: Shelf<ResourceRoute>,
    pub(crate) templates: Shelf<TemplateRoute>,
    /// The lists as they are printed for those who see everything, on one page.
    pub(crate) printed: Printed,
}

/// Lists that were printed once. A changed catalogue has none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Printed {
    pub(crate) tools: OnceLock<Arc<RawObject>>,
    pub(crate) prompts: OnceLock<Arc<RawObject>>,
    pub(crate) resources: OnceLock<Arc<RawObject>>,
    pub(crate) templates: OnceLock<Arc<RawObject>>,
}

impl Catalogue {
    /// Whether anything can be completed.
    pub(crate) fn completes(&self) -> bool {
        self.prompts.iter().any(|route| !route.completers.is_empty())
            || self.templates.iter().any(|route| !route.completers.is_empty())
    }

    /// The template that fits this URI best.
    pub(crate) fn template(&self, uri: &str) -> Option<&Arc<TemplateRoute>> {
        let fitting = self.templates.iter().filter_map(|route| {
            let template = route.template.as_ref()?;
            template.matches(uri).map(|_| (template.rank(), route))
        });
        fitting.min_by_key(|(rank, _)| *rank).map(|(_, route)| route)
    }
}
