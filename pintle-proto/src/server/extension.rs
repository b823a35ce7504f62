use std::{fmt, sync::Arc};

use pintle_types::{
    ErrorCode, JsonObject, RpcError,
    schema::{ClientCapabilities, MissingCapabilityData},
};
use serde_json::Value;

use super::Service;
use crate::{Peer, Revision, http::NameSource};

/// An extension of the protocol. It does not exist for a client that did not declare it.
///
/// ```
/// use pintle_proto::server::{Extension, Service};
/// use pintle_types::schema::{Implementation, ServerCapabilities};
///
/// let mut clock = Extension::new("com.example/clock");
/// clock.methods.push("clock/now".into());
/// clock.listens.push("clockTicks".into());
/// let service = Service::new(Implementation::new("clock", "1.0.0"), ServerCapabilities::default()).extend(clock);
/// ```
#[non_exhaustive]
#[derive(Clone, Debug, Default)]
pub struct Extension {
    /// The identifier: a prefix, a slash and a name.
    pub name: String,
    /// The requests that it adds.
    pub methods: Vec<String>,
    /// The values of `resultType` that it defines.
    pub result_types: Vec<String>,
    /// The members of a subscription's filter that it defines.
    pub listens: Vec<String>,
    /// Decides what of a filter's member is granted. Without it, everything is.
    pub grant: Option<Arc<dyn Grant>>,
    /// The methods whose requests mirror a member of their params in the `Mcp-Name` header, with that member.
    pub names: Vec<(String, String)>,
    /// Whether the extension is available to clients that do not declare it.
    pub open: bool,
    /// Whether the extension is not available in sessions.
    pub stateless_only: bool,
    /// The revisions that the extension is available in. Empty means all.
    pub revisions: Vec<Revision>,
}

/// Decides what a subscription to an extension's notifications is granted.
pub trait Grant: Send + Sync {
    /// Returns what is granted of `wanted`, the value of `member` of the filter; `None` for nothing.
    fn grant(&self, member: &str, wanted: &Value, principal: Option<&str>) -> Option<Value>;
}

impl fmt::Debug for dyn Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Grant")
    }
}

impl Extension {
    /// Creates an extension with a name only.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Returns whether this client declared the extension, or need not, in a revision that can have it.
    pub fn is_declared(&self, peer: &Peer) -> bool {
        let declared = peer.capabilities.extensions.as_ref();
        let is_known = self.open || declared.is_some_and(|known| known.contains_key(&self.name));
        is_known && self.is_for(peer.revision)
    }

    fn is_for(&self, revision: Revision) -> bool {
        (revision.is_stateless() || !self.stateless_only)
            && (self.revisions.is_empty() || self.revisions.contains(&revision))
    }

    /// Returns the error for a client that did not declare the extension `name`. It names what is missing.
    pub fn undeclared(name: &str) -> RpcError {
        let mut required = ClientCapabilities::default();
        let settings = Value::Object(JsonObject::new());
        required.extensions.get_or_insert_default().insert(name.to_owned(), settings);
        let reason = format!("the extension `{name}` is not declared: name it in the client's capabilities");
        RpcError::new(ErrorCode::MISSING_CLIENT_CAPABILITY, reason)
            .with_data(&MissingCapabilityData::new(required))
    }
}

impl Service {
    /// Adds an extension. Its settings are part of the capabilities.
    #[must_use]
    pub fn extend(mut self, extension: Extension) -> Self {
        self.extensions = self.extensions.iter().cloned().chain([extension]).collect();
        self
    }

    /// Returns the extensions.
    pub fn extensions(&self) -> &[Extension] {
        &self.extensions
    }

    /// Returns the sources of `Mcp-Name` for the extensions' requests.
    pub fn name_sources(&self) -> Vec<NameSource<'_>> {
        // Most servers have none, and this is called for each request over HTTP.
        let passed: &[NameSource<'_>] = if self.passes_tasks() { &NameSource::TASKS } else { &[] };
        if self.extensions.is_empty() {
            return passed.to_vec();
        }
        let names = self.extensions.iter().flat_map(|extension| &extension.names);
        names.map(|(method, member)| NameSource::new(method, member)).chain(passed.iter().copied()).collect()
    }

    /// Returns whether a method belongs to an extension, or an error if this client did not declare it.
    pub(super) fn extended(&self, method: &str, peer: &Peer) -> Result<bool, RpcError> {
        let owner =
            self.extensions.iter().find(|extension| extension.methods.iter().any(|own| own == method));
        match owner {
            None => Ok(false),
            Some(extension) if extension.is_declared(peer) => Ok(true),
            Some(extension) if peer.revision.is_stateless() && extension.is_for(peer.revision) => {
                Err(Extension::undeclared(&extension.name))
            }
            Some(_) => Err(RpcError::method_not_found(method)),
        }
    }

    /// Returns the error for a client that cannot use a method of an extension, because it did not declare the extension or is of a
    /// revision that cannot have it. A method of no extension is allowed.
    pub fn check_extension(&self, method: &str, peer: &Peer) -> Result<(), RpcError> {
        self.extended(method, peer).map(drop)
    }

    /// Returns what is granted of the members of a filter that no revision defines.
    pub(super) fn granted(
        &self,
        wanted: JsonObject,
        peer: &Peer,
        principal: Option<&str>,
    ) -> Result<JsonObject, RpcError> {
        let mut granted = JsonObject::new();
        let limit = self.bounds().watched;
        for (member, value) in wanted {
            let Some(extension) = self.extensions.iter().find(|known| known.listens.contains(&member)) else {
                continue;
            };
            if !extension.is_declared(peer) {
                return Err(Extension::undeclared(&extension.name));
            }
            if value.as_array().is_some_and(|several| several.len() > limit) {
                return Err(RpcError::invalid_params(format!(
                    "`{member}` has more than {limit} entries: open several subscriptions"
                )));
            }
            let value = match &extension.grant {
                Some(grant) => grant.grant(&member, &value, principal),
                None => Some(value),
            };
            granted.extend(value.map(|value| (member, value)));
        }
        Ok(granted)
    }

    /// Refuses a result type of an extension that this client did not declare.
    pub(super) fn check_result_type(&self, kind: &str, peer: &Peer) -> Result<(), RpcError> {
        let owner =
            self.extensions.iter().find(|extension| extension.result_types.iter().any(|own| own == kind));
        match owner {
            Some(extension) if !extension.is_declared(peer) => Err(Extension::undeclared(&extension.name)),
            _ => Ok(()),
        }
    }

    /// Returns whether an extension is declared in a revision.
    pub(super) fn is_declared_in(&self, name: &str, revision: Revision) -> bool {
        !self.extensions.iter().any(|extension| extension.name == name && !extension.is_for(revision))
    }
}

#[cfg(test)]
mod tests {
    use pintle_types::schema::{Implementation, ServerCapabilities};

    use super::*;
    use crate::http::name_member;

    #[test]
    fn requests_of_an_extension_may_be_named_in_the_head() {
        let mut clock = Extension::new("com.example/clock");
        clock.names.push(("clock/wind".into(), "clockId".into()));
        let service =
            Service::new(Implementation::new("s", "0"), ServerCapabilities::default()).extend(clock);
        assert_eq!(name_member("clock/wind", &service.name_sources()), Some("clockId"));
        assert_eq!(name_member("clock/stop", &service.name_sources()), None);
    }
}
