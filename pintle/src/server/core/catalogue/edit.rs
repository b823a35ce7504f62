//! Changing the catalogue while the server runs. Several changes are merged into one notification.

use std::{collections::HashSet, slice};

use pintle_proto::server::Change;

use super::{edits::CatalogueEdits, options::CatalogueRoute};
use crate::{
    Error, Result,
    server::{
        PromptRoute, ResourceRoute, Server, TemplateRoute, ToolRoute, access::required::RequirementSummary,
        core::handler::extract::HandlerKind, ordered_map::OrderedMap,
    },
};

/// A running server can be changed through any of its clones.
impl Server {
    /// Makes several changes of the catalogue at once: clients see all of them or none.
    ///
    /// # Errors
    ///
    /// A route is invalid, or one that is added is already registered. Then nothing is changed.
    pub fn apply(&self, mut edits: CatalogueEdits) -> Result<()> {
        edits.prepare()?;
        for change in self.change_catalogue(|catalogue| edits.apply(catalogue))? {
            self.changes().publish(&change);
        }
        Ok(())
    }

    /// Adds a tool while the server runs, and notifies clients.
    ///
    /// # Errors
    ///
    /// The name is already registered, or the route is invalid. Nothing is overwritten.
    ///
    /// ```
    /// use pintle::server::{Server, tool};
    ///
    /// let server = Server::new("growing", "1.0.0").may_change();
    /// server.add_tool(tool("one", || async { 1 }))?;
    /// let error = server.add_tool(tool("one", || async { 1 })).unwrap_err();
    /// assert_eq!(error.to_string(), "a tool named `one` is already registered; choose another name");
    /// assert!(server.remove_tool("one"));
    /// # Ok::<(), pintle::Error>(())
    /// ```
    pub fn add_tool(&self, route: ToolRoute) -> Result<()> {
        self.put(route)
    }

    /// Adds several tools while the server runs: all of them, or none on an error.
    ///
    /// # Errors
    ///
    /// One of the names is already registered or occurs twice, or a route is invalid. Nothing is overwritten.
    pub fn extend_tools(&self, routes: impl IntoIterator<Item = ToolRoute>) -> Result<()> {
        self.extend(routes)
    }

    /// Replaces all tools. Clients never see a part of the change.
    ///
    /// # Errors
    ///
    /// Two of the routes have the same name, or a route is invalid. Then nothing is replaced.
    pub fn replace_tools(&self, routes: impl IntoIterator<Item = ToolRoute>) -> Result<()> {
        self.replace(routes)
    }

    /// Removes a tool. Returns `false` if the name is not registered. Running calls finish.
    pub fn remove_tool(&self, name: &str) -> bool {
        self.remove::<ToolRoute>(name)
    }

    /// Adds a prompt while the server runs, and notifies clients.
    ///
    /// # Errors
    ///
    /// The name is already registered, or the route is invalid. Nothing is overwritten.
    pub fn add_prompt(&self, route: PromptRoute) -> Result<()> {
        self.put(route)
    }

    /// Adds several prompts while the server runs: all of them, or none on an error.
    ///
    /// # Errors
    ///
    /// One of the names is already registered or occurs twice, or a route is invalid. Nothing is overwritten.
    pub fn extend_prompts(&self, routes: impl IntoIterator<Item = PromptRoute>) -> Result<()> {
        self.extend(routes)
    }

    /// Replaces all prompts. Clients never see a part of the change.
    ///
    /// # Errors
    ///
    /// Two of the routes have the same name, or a route is invalid. Then nothing is replaced.
    pub fn replace_prompts(&self, routes: impl IntoIterator<Item = PromptRoute>) -> Result<()> {
        self.replace(routes)
    }

    /// Removes a prompt. Returns `false` if the name is not registered. Running calls finish.
    pub fn remove_prompt(&self, name: &str) -> bool {
        self.remove::<PromptRoute>(name)
    }

    /// Adds a resource while the server runs, and notifies clients.
    ///
    /// # Errors
    ///
    /// The URI is already registered, or the route is invalid. Nothing is overwritten.
    pub fn add_resource(&self, route: ResourceRoute) -> Result<()> {
        self.put(route)
    }

    /// Adds several resources while the server runs: all of them, or none on an error.
    ///
    /// # Errors
    ///
    /// One of the URIs is already registered or occurs twice, or a route is invalid. Nothing is overwritten.
    pub fn extend_resources(&self, routes: impl IntoIterator<Item = ResourceRoute>) -> Result<()> {
        self.extend(routes)
    }

    /// Replaces all resources. Clients never see a part of the change.
    ///
    /// # Errors
    ///
    /// Two of the routes have the same URI, or a route is invalid. Then nothing is replaced.
    pub fn replace_resources(&self, routes: impl IntoIterator<Item = ResourceRoute>) -> Result<()> {
        self.replace(routes)
    }

    /// Removes a resource. Returns `false` if the URI is not registered. Running calls finish.
    pub fn remove_resource(&self, uri: &str) -> bool {
        self.remove::<ResourceRoute>(uri)
    }

    /// Adds a resource template while the server runs, and notifies clients.
    ///
    /// # Errors
    ///
    /// The URI template is already registered, or the route is invalid. Nothing is overwritten.
    pub fn add_template(&self, route: TemplateRoute) -> Result<()> {
        self.put(route)
    }

    /// Adds several resource templates while the server runs: all of them, or none on an error.
    ///
    /// # Errors
    ///
    /// One of the URI templates is already registered or occurs twice, or a route is invalid. Nothing is overwritten.
    pub fn extend_templates(&self, routes: impl IntoIterator<Item = TemplateRoute>) -> Result<()> {
        self.extend(routes)
    }

    /// Replaces all resource templates. Clients never see a part of the change.
    ///
    /// # Errors
    ///
    /// Two of the routes have the same URI template, or a route is invalid. Then nothing is replaced.
    pub fn replace_templates(&self, routes: impl IntoIterator<Item = TemplateRoute>) -> Result<()> {
        self.replace(routes)
    }

    /// Removes a resource template. Returns `false` if the URI template is not registered. Running calls finish.
    pub fn remove_template(&self, uri_template: &str) -> bool {
        self.remove::<TemplateRoute>(uri_template)
    }

    /// Notifies subscribers that a resource was updated.
    pub fn resource_updated(&self, uri: impl Into<Box<str>>) {
        self.changes().publish(&Change::Resource(uri.into()));
    }

    /// Notifies clients that the list of tools has changed, for changes that the server cannot see: what a
    /// [filter](Self::filter) lets callers see.
    pub fn tools_changed(&self) {
        self.changes().publish(&Change::Tools);
    }

    /// Notifies clients that the list of prompts has changed, for changes that the server cannot see: what a
    /// [filter](Self::filter) lets callers see.
    pub fn prompts_changed(&self) {
        self.changes().publish(&Change::Prompts);
    }

    /// Notifies clients that the list of resources has changed, for [sources](crate::server::ResourceSource).
    pub fn resources_changed(&self) {
        self.changes().publish(&Change::Resources);
    }

    /// Adds one route.
    fn put<R: CatalogueRoute>(&self, mut route: R) -> Result<()> {
        route.prepare();
        without_fault(&route)?;
        self.edit(Self::required(slice::from_ref(&route)), |known| {
            let key = route.key().to_owned();
            known.add(key, route).map_err(|route| taken(&route))
        })
    }

    fn extend<R: CatalogueRoute>(&self, routes: impl IntoIterator<Item = R>) -> Result<()> {
        let routes = checked(routes)?;
        self.edit(Self::required(&routes), |known| {
            let duplicates = routes.iter().filter(|route: &&R| known.get(route.key()).is_some());
            all_of(&duplicates.map(|route| taken(route).to_string()).collect::<Vec<_>>())?;
            append(known, routes);
            Ok(())
        })
    }

    fn replace<R: CatalogueRoute>(&self, routes: impl IntoIterator<Item = R>) -> Result<()> {
        let routes = checked(routes)?;
        self.edit(Self::required(&routes), |known| {
            known.clear();
            append(known, routes);
            Ok(())
        })
    }

    fn remove<R: CatalogueRoute>(&self, key: &str) -> bool {
        self.edit(RequirementSummary::default(), |known: &mut OrderedMap<R>| {
            known.remove(key).then_some(()).ok_or(())
        })
        .is_ok()
    }

    fn required<R: CatalogueRoute>(routes: &[R]) -> RequirementSummary {
        let mut requires = RequirementSummary::default();
        routes.iter().for_each(|route| requires.add(&route.options().required));
        requires
    }

    /// Changes the routes of one kind and announces it. A `change` that fails must leave them as they were.
    fn edit<R: CatalogueRoute, E>(
        &self,
        requires: RequirementSummary,
        change: impl FnOnce(&mut OrderedMap<R>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.change_catalogue(|catalogue| {
            change(R::routes(catalogue))?;
            catalogue.requires.join(requires);
            (catalogue.printed, catalogue.uris) = Default::default();
            Ok(())
        })?;
        self.changes().publish(&R::CHANGE);
        Ok(())
    }
}

/// Prepares all routes. Fails if one has a fault, or if two have the same key.
fn checked<R: CatalogueRoute>(routes: impl IntoIterator<Item = R>) -> Result<Vec<R>> {
    let mut routes: Vec<R> = routes.into_iter().collect();
    routes.iter_mut().for_each(R::prepare);
    let (mut seen, mut faults) = (HashSet::new(), Vec::new());
    for route in &routes {
        faults.extend(route.options().faults.iter().cloned());
        if !seen.insert(route.key()) {
            faults.push(taken(route).to_string());
        }
    }
    all_of(&faults)?;
    Ok(routes)
}

pub(super) fn without_fault<R: CatalogueRoute>(route: &R) -> Result<()> {
    all_of(&route.options().faults)
}

/// Returns an error with all faults, one a line, if there are any.
fn all_of(faults: &[String]) -> Result<()> {
    if faults.is_empty() { Ok(()) } else { Err(Error::misuse(faults.join("\n"))) }
}

/// Appends routes whose keys are known to be free.
fn append<R: CatalogueRoute>(known: &mut OrderedMap<R>, routes: Vec<R>) {
    for route in routes {
        let key = route.key().to_owned();
        let _ = known.add(key, route);
    }
}

/// Returns the error of a route whose key is registered already.
pub(super) fn taken<R: CatalogueRoute>(route: &R) -> Error {
    let key = route.key();
    Error::misuse(match R::KIND {
        HandlerKind::Tool => format!("a tool named `{key}` is already registered; choose another name"),
        HandlerKind::Prompt => format!("a prompt named `{key}` is already registered; choose another name"),
        HandlerKind::Resource => {
            format!("a resource with the URI `{key}` is already registered; choose another URI")
        }
        HandlerKind::Template | HandlerKind::Completer => {
            format!("a resource template `{key}` is already registered; choose another URI template")
        }
    })
}
