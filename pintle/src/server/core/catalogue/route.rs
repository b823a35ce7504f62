use crate::server::{PromptRoute, ResourceRoute, Server, TemplateRoute, ToolRoute};

/// Anything that a server offers: a tool, a prompt, a resource or a family of resources.
///
/// [`routes!`](crate::routes) makes them of functions, `into_routes` of the methods of a type.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub enum Route {
    /// A tool.
    Tool(ToolRoute),
    /// A prompt.
    Prompt(PromptRoute),
    /// A resource.
    Resource(ResourceRoute),
    /// A family of resources.
    Template(TemplateRoute),
}

impl From<ToolRoute> for Route {
    fn from(route: ToolRoute) -> Self {
        Self::Tool(route)
    }
}

impl From<PromptRoute> for Route {
    fn from(route: PromptRoute) -> Self {
        Self::Prompt(route)
    }
}

impl From<ResourceRoute> for Route {
    fn from(route: ResourceRoute) -> Self {
        Self::Resource(route)
    }
}

impl From<TemplateRoute> for Route {
    fn from(route: TemplateRoute) -> Self {
        Self::Template(route)
    }
}

impl Route {
    /// Puts a prefix before the name of a tool or a prompt. Resources and templates are identified by their URI, and keep it.
    ///
    /// ```
    /// use pintle::{Server, server::{Route, tool}};
    ///
    /// let routes: Vec<Route> = vec![tool("open", || async { "open" }).description("Open the door.").into()];
    /// let server = Server::new("house", "1.0.0").routes(routes.into_iter().map(|route| route.prefix("door_")));
    /// assert_eq!(server.tools_where(|_: &_| true)[0].name, "door_open");
    /// ```
    #[must_use]
    pub fn prefix(self, prefix: &str) -> Self {
        match self {
            Self::Tool(route) => route.prefix(prefix).into(),
            Self::Prompt(route) => route.prefix(prefix).into(),
            other => other,
        }
    }
}

impl Server {
    /// Adds tools, prompts, resources and resource templates, in any mixture.
    ///
    /// A name or URI that is already registered is an error: [`check`](Self::check) reports it, and `serve` refuses to start. Nothing is
    /// overwritten.
    ///
    /// ```
    /// use pintle::server::{Route, prompt, resource, tool};
    ///
    /// fn greetings() -> Vec<Route> {
    ///     vec![
    ///         tool("wave", || async { "o/" }).into(),
    ///         prompt("greet", || async { "Greet me." }).into(),
    ///         resource("greeting://today", "today", || async { "Good day." }).into(),
    ///     ]
    /// }
    ///
    /// let server = pintle::Server::new("greeter", "1.0.0").routes(greetings());
    /// ```
    #[must_use]
    pub fn routes<R: Into<Route>>(self, routes: impl IntoIterator<Item = R>) -> Self {
        let (mut tools, mut prompts, mut resources, mut templates) = (vec![], vec![], vec![], vec![]);
        for route in routes {
            match route.into() {
                Route::Tool(route) => tools.push(route),
                Route::Prompt(route) => prompts.push(route),
                Route::Resource(route) => resources.push(route),
                Route::Template(route) => templates.push(route),
            }
        }
        self.tools(tools).prompts(prompts).resources(resources).templates(templates)
    }
}
