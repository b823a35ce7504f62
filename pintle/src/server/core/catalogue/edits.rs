use pintle_proto::server::Change;

use super::{
    Catalogue,
    edit::{taken, without_fault},
    options::CatalogueRoute,
};
use crate::{
    Result,
    server::{PromptRoute, ResourceRoute, Route, TemplateRoute, ToolRoute},
};

/// Several changes of the catalogue that take effect together, with [`Server::apply`](crate::Server::apply).
///
/// They are made in their order. Clients see all of them or none, and receive one notification for each list that has changed.
///
/// ```
/// use pintle::server::{CatalogueEdits, Server, tool};
///
/// let server = Server::new("doors", "1.0.0").tool(tool("knock", || async { "Who is there?" }));
/// let edits = CatalogueEdits::new()
///     .remove_tool("knock")
///     .add(tool("ring", || async { "Ding dong." }))
///     .put(tool("open", || async { "It is open." }));
/// server.apply(edits)?;
/// assert_eq!(server.tools_where(|_: &_| true).len(), 2);
///
/// // The second change is an error, so the first is not made either.
/// let edits = CatalogueEdits::new().remove_tool("open").add(tool("ring", || async { "Ding." }));
/// assert!(server.apply(edits).is_err());
/// assert_eq!(server.tools_where(|_: &_| true).len(), 2);
/// # Ok::<(), pintle::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct CatalogueEdits(Vec<Edit>);

#[derive(Clone, Debug)]
enum Edit {
    /// Adds a route whose name or URI is free.
    Add(Box<Route>),
    /// Adds a route, or replaces that of the same name or URI.
    Put(Box<Route>),
    RemoveTool(String),
    RemovePrompt(String),
    RemoveResource(String),
    RemoveTemplate(String),
}

impl CatalogueEdits {
    /// Creates a list without changes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a route. A name or URI that is registered at this point is an error.
    #[must_use]
    #[expect(clippy::should_implement_trait, reason = "the adders of `Server` have this name")]
    pub fn add(self, route: impl Into<Route>) -> Self {
        self.with(Edit::Add(Box::new(route.into())))
    }

    /// Adds a route, or replaces the route of the same kind with this name or URI, which keeps its position in the list.
    #[must_use]
    pub fn put(self, route: impl Into<Route>) -> Self {
        self.with(Edit::Put(Box::new(route.into())))
    }

    /// Removes a tool, if there is one of this name. Running calls finish.
    #[must_use]
    pub fn remove_tool(self, name: impl Into<String>) -> Self {
        self.with(Edit::RemoveTool(name.into()))
    }

    /// Removes a prompt, if there is one of this name. Running calls finish.
    #[must_use]
    pub fn remove_prompt(self, name: impl Into<String>) -> Self {
        self.with(Edit::RemovePrompt(name.into()))
    }

    /// Removes a resource, if there is one with this URI. Running calls finish.
    #[must_use]
    pub fn remove_resource(self, uri: impl Into<String>) -> Self {
        self.with(Edit::RemoveResource(uri.into()))
    }

    /// Removes a resource template, if it is registered. Running calls finish.
    #[must_use]
    pub fn remove_template(self, uri_template: impl Into<String>) -> Self {
        self.with(Edit::RemoveTemplate(uri_template.into()))
    }

    fn with(mut self, edit: Edit) -> Self {
        self.0.push(edit);
        self
    }
}

impl CatalogueEdits {
    /// Prepares the routes that are added.
    pub(super) fn prepare(&mut self) -> Result<()> {
        for edit in &mut self.0 {
            if let Edit::Add(route) | Edit::Put(route) = edit {
                match &mut **route {
                    Route::Tool(route) => prepare(route)?,
                    Route::Prompt(route) => prepare(route)?,
                    Route::Resource(route) => prepare(route)?,
                    Route::Template(route) => prepare(route)?,
                }
            }
        }
        Ok(())
    }

    /// Changes the catalogue, unless there is an error. Returns the lists that changed.
    pub(super) fn apply(self, catalogue: &mut Catalogue) -> Result<Vec<Change>> {
        // On an error the catalogue stays as it was.
        let (mut edited, mut changed) = (catalogue.clone(), Vec::new());
        for edit in self.0 {
            match edit {
                Edit::Add(route) => insert(&mut edited, *route, false, &mut changed)?,
                Edit::Put(route) => insert(&mut edited, *route, true, &mut changed)?,
                Edit::RemoveTool(name) => remove::<ToolRoute>(&mut edited, &name, &mut changed),
                Edit::RemovePrompt(name) => remove::<PromptRoute>(&mut edited, &name, &mut changed),
                Edit::RemoveResource(uri) => remove::<ResourceRoute>(&mut edited, &uri, &mut changed),
                Edit::RemoveTemplate(uri) => remove::<TemplateRoute>(&mut edited, &uri, &mut changed),
            }
        }
        (edited.printed, edited.uris) = Default::default();
        *catalogue = edited;
        Ok(changed)
    }
}

fn prepare<R: CatalogueRoute>(route: &mut R) -> Result<()> {
    route.prepare();
    without_fault(route)
}

fn insert(catalogue: &mut Catalogue, route: Route, replace: bool, changed: &mut Vec<Change>) -> Result<()> {
    match route {
        Route::Tool(route) => insert_one(catalogue, route, replace, changed),
        Route::Prompt(route) => insert_one(catalogue, route, replace, changed),
        Route::Resource(route) => insert_one(catalogue, route, replace, changed),
        Route::Template(route) => insert_one(catalogue, route, replace, changed),
    }
}

fn insert_one<R: CatalogueRoute>(
    catalogue: &mut Catalogue,
    route: R,
    replace: bool,
    changed: &mut Vec<Change>,
) -> Result<()> {
    catalogue.requires.add(&route.options().required);
    let key = route.key().to_owned();
    match replace {
        true => R::routes(catalogue).put(key, route),
        false => R::routes(catalogue).add(key, route).map_err(|route| taken(&route))?,
    }
    note::<R>(changed);
    Ok(())
}

fn remove<R: CatalogueRoute>(catalogue: &mut Catalogue, key: &str, changed: &mut Vec<Change>) {
    if R::routes(catalogue).remove(key) {
        note::<R>(changed);
    }
}

/// Notes that the list of this kind has changed, once.
fn note<R: CatalogueRoute>(changed: &mut Vec<Change>) {
    if !changed.contains(&R::CHANGE) {
        changed.push(R::CHANGE);
    }
}
