use std::borrow::Cow;

use pintle_proto::http::name_in;
use pintle_types::{
    RawObject,
    method::{self, Target as TargetKind},
    schema::{CompleteParams, CompletionReference, SubscriptionsListenParams},
};
use pintle_uri::{Uri, UriLimits};

/// An entry of the catalogue that a request names. It need not exist.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Target<'a> {
    /// A tool, by its name.
    Tool(Cow<'a, str>),
    /// A prompt, by its name.
    Prompt(Cow<'a, str>),
    /// A resource, by its URI, with unreserved characters decoded and the scheme in lower case: see [`Uri::sent`].
    Resource(Cow<'a, str>),
    /// A resource template, or a resource, whose variables are completed, by its URI template.
    Template(Cow<'a, str>),
    /// A task, by its id.
    Task(Cow<'a, str>),
    /// A method that the protocol does not define, by its name. No request names it in its parameters.
    Method(Cow<'a, str>),
}

impl Target<'_> {
    /// Returns the target without a borrowed name.
    #[cfg(feature = "server")]
    pub(crate) fn into_owned(self) -> Target<'static> {
        let own = |name: Cow<'_, str>| Cow::Owned(name.into_owned());
        match self {
            Self::Tool(name) => Target::Tool(own(name)),
            Self::Prompt(name) => Target::Prompt(own(name)),
            Self::Resource(name) => Target::Resource(own(name)),
            Self::Template(name) => Target::Template(own(name)),
            Self::Task(name) => Target::Task(own(name)),
            Self::Method(name) => Target::Method(own(name)),
        }
    }

    /// Returns the name, URI, URI template or id.
    pub fn name(&self) -> &str {
        match self {
            Self::Tool(name)
            | Self::Prompt(name)
            | Self::Resource(name)
            | Self::Template(name)
            | Self::Task(name)
            | Self::Method(name) => name,
        }
    }
}

/// Returns the kind of what requests of a method name.
fn kind(method: &str) -> Option<TargetKind> {
    match method {
        // It requires no rights, so its row has no target.
        method::RESOURCES_UNSUBSCRIBE => Some(TargetKind::Resource),
        method => method::find(method).and_then(|row| row.target),
    }
}

/// Returns the entry that a request names, if it names exactly one.
pub(crate) fn target<'a>(method: &str, params: &'a RawObject) -> Option<Target<'a>> {
    let kind = kind(method)?;
    let target = match kind {
        TargetKind::Tool => Target::Tool,
        TargetKind::Prompt => Target::Prompt,
        TargetKind::Resource => Target::Resource,
        TargetKind::Task => Target::Task,
        TargetKind::Watched | TargetKind::Completed => {
            let mut targets = targets(method, params);
            return if targets.len() == 1 { targets.pop() } else { None };
        }
    };
    let name = name_in(params, kind.member()?)?;
    Some(target(if kind == TargetKind::Resource { spelled(name) } else { name }))
}

/// Returns a URI with unreserved characters decoded and the scheme in lower case: see [`Uri::sent`]. One that is too long is refused
/// later.
pub(crate) fn spelled(uri: Cow<'_, str>) -> Cow<'_, str> {
    let scheme = uri.find(':').unwrap_or(0);
    let may_differ = uri.contains('%') || uri[..scheme].bytes().any(|byte| byte.is_ascii_uppercase());
    if !may_differ || uri.len() > UriLimits::READ.bytes {
        return uri;
    }
    match Uri::of(&uri) {
        read if *read.sent() == *uri => uri,
        read => read.sent().to_owned().into(),
    }
}

/// Returns the entries that a request names. If its params cannot be read, it names none.
pub(crate) fn targets<'a>(method: &str, params: &'a RawObject) -> Vec<Target<'a>> {
    match kind(method) {
        None => Vec::new(),
        Some(TargetKind::Tool | TargetKind::Prompt | TargetKind::Resource | TargetKind::Task) => {
            target(method, params).into_iter().collect()
        }
        Some(TargetKind::Watched) => {
            let Ok(wanted) = params.decode::<SubscriptionsListenParams>() else {
                return Vec::new();
            };
            let uris = wanted.notifications.resource_subscriptions.into_iter().flatten();
            uris.map(|uri| Target::Resource(spelled(uri.into()))).collect()
        }
        Some(TargetKind::Completed) => {
            let Ok(CompleteParams { reference, .. }) = params.decode() else { return Vec::new() };
            vec![match reference {
                CompletionReference::Prompt(prompt) => Target::Prompt(prompt.name.into()),
                CompletionReference::Resource(resource) => Target::Template(resource.uri.into()),
                CompletionReference::Unknown(other) => {
                    let name = other.get("name").and_then(serde_json::Value::as_str);
                    Target::Tool(name.unwrap_or_default().to_owned().into())
                }
                _ => return Vec::new(),
            }]
        }
    }
}
