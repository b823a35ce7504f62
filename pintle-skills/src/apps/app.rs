use std::borrow::Cow;

use pintle::{
    server::{CacheHint, ResourceRoute, ToolRoute, resource},
    types::{
        Meta,
        schema::{ReadResourceResult, ResourceContents},
    },
};
use serde_json::{Map, Value, json};

use super::{FLAT_META, META, MIME_TYPE, RESOURCE_URI, VISIBILITY, check::origin_fault};

/// A user interface: HTML at a `ui://` URI, what it may load, and the tools that it is shown for.
///
/// The frame of an app may load nothing but what is declared here; by default, nothing from the network. Hosts read the policy at the
/// list entry of the resource and at its contents: it is written to both.
///
/// ```
/// use pintle::server::tool;
/// use pintle_skills::apps::{App, AppPermission};
///
/// let map = App::new("ui://maps/view", "map", "<!doctype html><p>a map</p>")
///     .title("Map")
///     .load_from("https://tiles.example.com")
///     .permission(AppPermission::Geolocation)
///     .tool(tool("show_map", || async { "The map is shown." }).description("Shows a map."))
///     // For the buttons of the app, and not for the model:
///     .app_tool(tool("zoom", || async { "closer" }));
/// ```
#[derive(Clone, Debug)]
pub struct App {
    uri: String,
    name: String,
    title: Option<String>,
    description: Option<String>,
    html: Cow<'static, str>,
    policy: Map<String, Value>,
    permissions: Map<String, Value>,
    domain: Option<String>,
    prefers_border: Option<bool>,
    cache: Option<CacheHint>,
    tools: Vec<(ToolRoute, Value)>,
    pub(super) faults: Vec<String>,
}

/// A permission of the browser that an app asks for. The user may refuse it.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AppPermission {
    /// The camera.
    Camera,
    /// The microphone.
    Microphone,
    /// The location.
    Geolocation,
    /// Writing to the clipboard.
    ClipboardWrite,
}

impl AppPermission {
    pub(super) const ALL: [Self; 4] =
        [Self::Camera, Self::Microphone, Self::Geolocation, Self::ClipboardWrite];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Camera => "camera",
            Self::Microphone => "microphone",
            Self::Geolocation => "geolocation",
            Self::ClipboardWrite => "clipboardWrite",
        }
    }
}

impl App {
    /// Creates an app. Its URI begins with `ui://`.
    pub fn new(uri: impl Into<String>, name: impl Into<String>, html: impl Into<Cow<'static, str>>) -> Self {
        // Written even if nothing is allowed: reviews of hosts look for it.
        let policy = ["connectDomains", "resourceDomains"].map(|list| (list.to_owned(), json!([])));
        Self {
            uri: uri.into(),
            name: name.into(),
            title: None,
            description: None,
            html: html.into(),
            policy: policy.into_iter().collect(),
            permissions: Map::new(),
            domain: None,
            prefers_border: None,
            cache: None,
            tools: Vec::new(),
            faults: Vec::new(),
        }
    }

    /// Sets the title.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets the description.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Allows requests of scripts to an origin, such as `https://api.example.com` or `wss://*.example.com`.
    #[must_use]
    pub fn connect_to(self, origin: impl Into<String>) -> Self {
        self.allow("connectDomains", origin.into())
    }

    /// Allows scripts, styles, images, fonts and media of an origin.
    #[must_use]
    pub fn load_from(self, origin: impl Into<String>) -> Self {
        self.allow("resourceDomains", origin.into())
    }

    /// Allows frames of an origin inside of the app.
    #[must_use]
    pub fn frame(self, origin: impl Into<String>) -> Self {
        self.allow("frameDomains", origin.into())
    }

    /// Allows an origin as the base of relative URLs.
    #[must_use]
    pub fn base_uri(self, origin: impl Into<String>) -> Self {
        self.allow("baseUriDomains", origin.into())
    }

    fn allow(mut self, list: &str, origin: String) -> Self {
        if let Some(fault) = origin_fault(&origin) {
            self.faults.push(format!("the app `{}` allows `{origin}`: {fault}", self.uri));
        }
        let origins = self.policy.entry(list).or_insert_with(|| json!([]));
        if let Some(origins) = origins.as_array_mut() {
            origins.push(origin.into());
        }
        self
    }

    /// Asks for a permission of the browser.
    #[must_use]
    pub fn permission(mut self, permission: AppPermission) -> Self {
        self.permissions.insert(permission.as_str().to_owned(), json!({}));
        self
    }

    /// Sets the domain that the host serves the app from. Its form is the host's own: read the host's documentation. A wrong one shows
    /// nothing.
    #[must_use]
    pub fn domain(mut self, domain: impl Into<String>) -> Self {
        self.domain = Some(domain.into());
        self
    }

    /// Sets whether the host should draw a border. Hosts decide by default.
    #[must_use]
    pub fn border(mut self, border: bool) -> Self {
        self.prefers_border = Some(border);
        self
    }

    /// Sets how long hosts may keep the HTML.
    #[must_use]
    pub fn cache(mut self, hint: CacheHint) -> Self {
        self.cache = Some(hint);
        self
    }

    /// Adds a tool whose results the app shows. The model and the app may call it. Its result should make sense as text too.
    #[must_use]
    pub fn tool(mut self, tool: ToolRoute) -> Self {
        let meta = json!({ RESOURCE_URI: self.uri });
        self.tools.push((tool, meta));
        self
    }

    /// Adds a tool that only the app may call, for example for its buttons. Hosts hide it from the model; it is a tool like any other to
    /// a client that calls it.
    #[must_use]
    pub fn app_tool(mut self, tool: ToolRoute) -> Self {
        self.tools.push((tool, json!({ VISIBILITY: ["app"] })));
        self
    }

    /// Returns the resource and the tools. `flat` adds the member that older hosts read.
    pub(super) fn routes(self, flat: bool) -> (ResourceRoute, Vec<ToolRoute>) {
        let mut fields = Map::new();
        fields.insert("csp".to_owned(), Value::Object(self.policy));
        if !self.permissions.is_empty() {
            fields.insert("permissions".to_owned(), Value::Object(self.permissions));
        }
        fields.extend(self.domain.map(|domain| ("domain".to_owned(), domain.into())));
        fields.extend(self.prefers_border.map(|border| ("prefersBorder".to_owned(), border.into())));
        let mut meta = Meta::new();
        meta.insert(META, Value::Object(fields));

        let mut contents = ResourceContents::text(self.uri.clone(), self.html);
        contents.mime_type = Some(MIME_TYPE.to_owned());
        contents.meta = Some(meta.clone());
        let result = ReadResourceResult::new(vec![contents]);
        let read = move || {
            let result = result.clone();
            async move { result }
        };
        let mut route = resource(self.uri.clone(), self.name, read).mime_type(MIME_TYPE).meta(meta);
        if let Some(title) = self.title {
            route = route.title(title);
        }
        if let Some(description) = self.description {
            route = route.description(description);
        }
        if let Some(hint) = self.cache {
            route = route.cache(hint);
        }
        let tools = self.tools.into_iter().map(|(tool, fields)| {
            let mut meta = tool.definition().meta.clone().unwrap_or_default();
            if let (true, Some(uri)) = (flat, fields.get(RESOURCE_URI)) {
                meta.insert(FLAT_META, uri.clone());
            }
            meta.insert(META, fields);
            tool.meta(meta)
        });
        (route, tools.collect())
    }
}
