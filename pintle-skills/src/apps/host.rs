//! The host's side: what it declares, and what it reads of tools.

use pintle::{
    client::{ClientExtension, ClientInstallation},
    types::{JsonObject, schema::Tool},
};
use serde_json::{Value, json};

use super::{EXTENSION, FLAT_META, META, MIME_TYPE, MIME_TYPES, RESOURCE_URI, VISIBILITY};

/// Declares that the host renders apps, for [`Client::with`](pintle::Client::with).
///
/// How to render one safely is a matter of the host: in a frame of another origin, with the policy of the app as a header.
///
/// ```
/// use pintle::Client;
/// use pintle_skills::apps::RenderApps;
///
/// let client = Client::new("host", "1.0.0").with(RenderApps);
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "there is nothing to set")]
pub struct RenderApps;

impl ClientExtension for RenderApps {
    fn name(&self) -> &str {
        EXTENSION
    }

    fn settings(&self) -> JsonObject {
        JsonObject::from_iter([(MIME_TYPES.to_owned(), json!([MIME_TYPE]))])
    }

    fn install(self, apps: ClientInstallation) -> ClientInstallation {
        apps
    }
}

/// Returns the URI of the app that a tool is shown with.
pub fn app_uri(tool: &Tool) -> Option<&str> {
    let meta = tool.meta.as_ref()?;
    let uri = meta.get(META).and_then(|fields| fields.get(RESOURCE_URI)).or_else(|| meta.get(FLAT_META));
    uri.and_then(Value::as_str).filter(|uri| uri.starts_with("ui://"))
}

/// Returns whether a tool is for the model. Those that are for apps only must not be offered to it.
pub fn is_for_model(tool: &Tool) -> bool {
    let visibility = tool.meta.as_ref().and_then(|meta| meta.get(META)?.get(VISIBILITY));
    let names_model = |names: &Vec<Value>| names.iter().any(|name| name.as_str() == Some("model"));
    visibility.is_none_or(|names| names.as_array().is_some_and(names_model))
}
