use std::borrow::Cow;

use pintle_proto::http::name_in;
use pintle_types::{
    method::{self, Target as TargetKind},
    schema::{CompleteParams, CompletionReference, SubscriptionsListenParams},
};

use super::Cx;

/// An entry of the catalogue that a request names. It need not exist.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Target<'a> {
    /// A tool, by its name.
    Tool(Cow<'a, str>),
    /// A prompt, by its name.
    Prompt(Cow<'a, str>),
    /// A resource, by its URI.
    Resource(Cow<'a, str>),
    /// A resource template, or a resource, whose variables are completed, by its URI template.
    Template(Cow<'a, str>),
    /// A task, by its id.
    Task(Cow<'a, str>),
}

impl Target<'_> {
    /// Returns the name, URI, URI template or id.
    pub fn name(&self) -> &str {
        match self {
            Self::Tool(name)
            | Self::Prompt(name)
            | Self::Resource(name)
            | Self::Template(name)
            | Self::Task(name) => name,
        }
    }
}

impl Cx {
    /// Returns the entry that the request names, if it names exactly one: that of a call, a read or a completion. A
    /// subscription may name several; [`targets`](Self::targets) returns all.
    ///
    /// ```
    /// use pintle::{server::{Cx, Next, Outcome, Target}, types::RpcError};
    ///
    /// async fn no_deletions(cx: Cx, next: Next) -> Outcome {
    ///     match cx.target() {
    ///         Some(Target::Tool(name)) if name.starts_with("delete_") => {
    ///             Outcome::Failed(RpcError::invalid_request("nothing is deleted today: ask tomorrow"))
    ///         }
    ///         _ => next.run(cx).await,
    ///     }
    /// }
    /// ```
    pub fn target(&self) -> Option<Target<'_>> {
        let mut targets = self.targets();
        if targets.len() == 1 { targets.pop() } else { None }
    }

    /// Returns the entries that the request names: those of a call, a read, a completion or a subscription. A request whose
    /// parameters cannot be read names none, and is refused by its handler.
    pub fn targets(&self) -> Vec<Target<'_>> {
        let kind = match self.method() {
            // It requires no rights, so its row has no target.
            method::RESOURCES_UNSUBSCRIBE => Some(TargetKind::Resource),
            method => method::find(method).and_then(|row| row.target),
        };
        let Some(kind) = kind else { return Vec::new() };
        let named = || kind.member().and_then(|member| name_in(self.params(), member));
        match kind {
            TargetKind::Tool => named().map(Target::Tool).into_iter().collect(),
            TargetKind::Prompt => named().map(Target::Prompt).into_iter().collect(),
            TargetKind::Resource => named().map(Target::Resource).into_iter().collect(),
            TargetKind::Task => named().map(Target::Task).into_iter().collect(),
            TargetKind::Watched => {
                let Ok(wanted) = self.params().decode::<SubscriptionsListenParams>() else {
                    return Vec::new();
                };
                let uris = wanted.notifications.resource_subscriptions.into_iter().flatten();
                uris.map(|uri| Target::Resource(uri.into())).collect()
            }
            TargetKind::Completed => {
                let Ok(CompleteParams { reference, .. }) = self.params().decode() else { return Vec::new() };
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

    /// Returns whether this is a notification, which has no response: what a layer returns for it is not sent.
    pub fn is_notification(&self) -> bool {
        self.call().is_notification()
    }
}
