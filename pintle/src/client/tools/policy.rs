use std::{fmt, future::Future, sync::Arc};

use pintle_types::{RawObject, schema::Tool};

use crate::{
    Error, Result, ToolTraits,
    client::asking::{BoxFuture, caught},
};

/// The decision of a client's policy on a call.
///
/// ```
/// use pintle::client::{Client, Policy};
///
/// let client = Client::new("demo", "1.0.0").policy(|call| match call.hints() {
///     hints if hints.read_only => Policy::Allow,
///     hints if hints.open_world => Policy::deny("nothing leaves this machine"),
///     _ => {
///         let question = format!("run {}?", call.name);
///         Policy::ask(async move { ask_the_user(&question).await })
///     }
/// });
/// # async fn ask_the_user(_: &str) -> bool { true }
/// ```
#[non_exhaustive]
pub enum Policy {
    /// The call is sent.
    Allow,
    /// The call fails with this reason.
    Deny(String),
    /// The call is sent if the future returns `true`.
    Ask(BoxFuture<bool>),
}

impl Policy {
    /// Denies the call for a reason, which the caller sees.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self::Deny(reason.into())
    }

    /// Decides later, for example by asking the user.
    pub fn ask(decision: impl Future<Output = bool> + Send + 'static) -> Self {
        Self::Ask(Box::pin(decision))
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allow => "Allow",
            Self::Deny(_) => "Deny",
            Self::Ask(_) => "Ask",
        })
    }
}

/// A call that a policy decides on.
#[non_exhaustive]
#[derive(Debug)]
pub struct Proposal<'a> {
    /// The name of the connection, if it was opened with [`Client::connect_as`](crate::Client::connect_as).
    pub connection: Option<&'a str>,
    /// The name of the tool.
    pub name: &'a str,
    /// The params of the request.
    pub params: &'a RawObject,
    /// The current definition of the tool; `None` if the server does not list it, or could not be asked. Only as trustworthy as
    /// the server.
    pub tool: Option<&'a Tool>,
}

impl Proposal<'_> {
    /// Returns the hints of the tool. Omitted hints default to the most dangerous value.
    pub fn hints(&self) -> Hints {
        self.tool.map(Hints::of).unwrap_or_default()
    }

    /// Returns the custom traits of the tool, such as that it is expensive. Empty if the tool is unknown.
    pub fn traits(&self) -> ToolTraits {
        self.tool.map(ToolTraits::of).unwrap_or_default()
    }
}

/// The hints of a tool about its effects.
///
/// ```
/// use pintle::client::Hints;
///
/// let unknown = Hints::default();
/// assert!(unknown.destructive && unknown.open_world && !unknown.read_only && !unknown.idempotent);
/// ```
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Hints {
    /// The tool does not modify its environment.
    pub read_only: bool,
    /// The tool may perform destructive updates.
    pub destructive: bool,
    /// Repeated calls with the same arguments have no further effect.
    pub idempotent: bool,
    /// The tool interacts with external entities, such as the web.
    pub open_world: bool,
}

impl Default for Hints {
    fn default() -> Self {
        Self { read_only: false, destructive: true, idempotent: false, open_world: true }
    }
}

impl Hints {
    /// Returns the hints of a tool, with the specification's defaults.
    pub fn of(tool: &Tool) -> Self {
        let Some(annotations) = &tool.annotations else { return Self::default() };
        let read_only = annotations.read_only_hint.unwrap_or(false);
        Self {
            read_only,
            // Both mean something only for a tool that changes things.
            destructive: !read_only && annotations.destructive_hint.unwrap_or(true),
            idempotent: read_only || annotations.idempotent_hint.unwrap_or(false),
            open_world: annotations.open_world_hint.unwrap_or(true),
        }
    }
}

/// Decides on every tool call of a client.
pub(in crate::client) type PolicyHook = Arc<dyn Fn(&Proposal<'_>) -> Policy + Send + Sync>;

/// How a call was allowed.
#[derive(Clone, Copy, Debug)]
pub(in crate::client) enum Decided {
    AtOnce,
    /// Allowed by an asynchronous decision, which took time.
    Later,
}

/// Runs the policy, and its asynchronous decision.
pub(in crate::client) async fn decide(hook: &PolicyHook, proposal: &Proposal<'_>) -> Result<Decided> {
    let allowed = match hook(proposal) {
        Policy::Allow => return Ok(Decided::AtOnce),
        Policy::Deny(reason) => return Err(Error::Refused(reason)),
        Policy::Ask(decision) => caught(decision).await.unwrap_or(false),
    };
    if allowed {
        Ok(Decided::Later)
    } else {
        Err(Error::Refused(format!("calling `{}` was not confirmed", proposal.name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hints(annotations: &str) -> Hints {
        let tool = format!(r#"{{"name":"t","inputSchema":{{}},"annotations":{annotations}}}"#);
        Hints::of(&serde_json::from_str(&tool).unwrap())
    }

    #[test]
    fn what_is_omitted_is_assumed_to_be_the_worst() {
        assert_eq!(hints("{}"), Hints::default());
        let read_only = hints(r#"{"readOnlyHint":true,"destructiveHint":true}"#);
        assert!(
            read_only.read_only && !read_only.destructive && read_only.idempotent && read_only.open_world
        );
        assert!(!hints(r#"{"destructiveHint":false}"#).destructive);
        assert!(!hints(r#"{"openWorldHint":false}"#).open_world);
    }
}
