use pintle::server::{Cx, Installation, ProtocolExtension};

use super::{App, EXTENSION, MIME_TYPE, MIME_TYPES, check};

/// The apps of a server, for [`Server::with`](pintle::Server::with).
///
/// [`Server::check`](pintle::Server::check) and `serve` report what hosts would ignore, of these apps and of all other tools and resources:
/// a policy at a tool, a `ui://` resource of another media type, a tool that names no such resource, a `visibility` that is not one.
///
/// ```
/// use pintle::{Server, server::tool};
/// use pintle_skills::apps::{App, Apps};
///
/// let clock = App::new("ui://clock/face", "clock", "<p>noon</p>")
///     .connect_to("time.example.com")
///     .tool(tool("show_clock", || async { "noon" }));
/// let server = Server::new("clock", "1.0.0").with(Apps::new().app(clock));
/// let error = server.check().unwrap_err().to_string();
/// assert!(error.contains("write an origin with its scheme"), "{error}");
/// ```
#[derive(Clone, Debug)]
pub struct Apps {
    apps: Vec<App>,
    flat: bool,
}

impl Default for Apps {
    fn default() -> Self {
        Self::new()
    }
}

impl Apps {
    /// Creates an extension without apps. It also checks those that are made of other resources and tools.
    pub fn new() -> Self {
        Self { apps: Vec::new(), flat: true }
    }

    /// Adds an app with its tools.
    #[must_use]
    pub fn app(mut self, app: App) -> Self {
        self.apps.push(app);
        self
    }

    /// Sets whether tools also have the member `ui/resourceUri` in `_meta`, for older hosts, which know no other. They do by default.
    #[must_use]
    pub fn compat(mut self, compat: bool) -> Self {
        self.flat = compat;
        self
    }
}

impl ProtocolExtension for Apps {
    fn name(&self) -> &str {
        EXTENSION
    }

    fn install(self, mut apps: Installation) -> Installation {
        let mut faults = Vec::new();
        for app in self.apps {
            faults.extend(app.faults.iter().cloned());
            let (resource, tools) = app.routes(self.flat);
            apps = tools.into_iter().fold(apps.route(resource), |apps, tool| apps.route(tool));
        }
        apps.check_catalogue(move |tools, resources| {
            faults.iter().cloned().chain(check::faults(tools, resources)).collect()
        })
    }
}

/// Returns whether the client of a call renders apps. If not, a tool should answer with text. Lists of tools should not depend on it.
pub fn client_renders(cx: &Cx) -> bool {
    let types = cx.extension(EXTENSION).and_then(|settings| settings.get(MIME_TYPES)?.as_array());
    types.is_some_and(|types| types.iter().any(|known| known.as_str() == Some(MIME_TYPE)))
}
