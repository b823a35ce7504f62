use std::{fmt, future::Future, sync::Arc};

use pintle_types::{RawObject, schema::Tool};

use crate::{
    Error, Result, ToolTraits,
    client::asking::{BoxFuture, caught},
};

/// Whether a tool may be called.
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
    /// It may.
    Allow,
    /// It may not. The reason is what the caller gets.
    Deny(String),
    /// It may if this says so.
    CallRequest(BoxFuture<bool>),
}

impl Policy {
    /// It may not.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self::Deny(reason.into())
    }

    /// It may if the future says so, such as after asking the user.
    pub fn ask(decision: impl Future<Output = bool> + Send + 'static) -> Self {
        Self::CallRequest(Box::pin(decision))
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allow => "Allow",
            Self::Deny(_) => "Deny",
            Self::CallRequest(_) => "CallRequest",
        })
    }
}

/// A call that a policy decides on, before it is sent.
#[non_exhaustive]
#[derive(Debug)]
pub struct Proposal<'a> {
    /// The tool.
    pub name: &'a str,
    /// All of the params, as they would be sent.
    pub params: &'a RawObject,
    /// What the server says of the tool; `None` if it lists no such tool, or could not be asked. Only as trustworthy as
    /// the server.
    pub tool: Option<&'a Tool>,
}

impl Proposal<'_> {
    /// What calling the tool may do. What the server does not say is assumed to be the worst.
    pub fn hints(&self) -> Hints {
        self.tool.map(Hints::of).unwrap_or_default()
    }

    /// What else the server says of the tool, such as that it is expensive. Nothing, if it was not listed.
    pub fn traits(&self) -> ToolTraits {
        self.tool.map(ToolTraits::of).unwrap_or_default()
    }
}

/// What calling a tool may do.
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
    /// It changes nothing.
    pub read_only: bool,
    /// It may destroy something.
    pub destructive: bool,
    /// Calling it twice is as calling it once.
    pub idempotent: bool,
    /// It talks to an open world, such as the web.
    pub open_world: bool,
}

impl Default for Hints {
    fn default() -> Self {
        Self { read_only: false, destructive: true, idempotent: false, open_world: true }
    }
}

impl Hints {
    /// What a tool's annotations say, with the specification's defaults for what they leave out.
    pub fn of(tool: &Tool) -> Self {
        let Some(said) = &tool.annotations else { return Self::default() };
        let read_only = said.read_only_hint.unwrap_or(false);
        Self {
            read_only,
            // Both mean something only for a tool that changes things.
            destructive: !read_only && said.destructive_hint.unwrap_or(true),
            idempotent: read_only || said.idempotent_hint.unwrap_or(false),
            open_world: said.open_world_hint.unwrap_or(true),
        }
    }
}

/// Decides on every tool call of a client.
pub(in crate::client) type PolicyHook = Arc<dyn Fn(&Proposal<'_>) -> Policy + Send + Sync>;

/// How a call was let pass.
#[derive(Clone, Copy, Debug)]
pub(in crate::client) enum Decided {
    AtOnce,
    /// Somebody was asked, which takes time.
    Later,
}

/// Asks the policy, and whomever the policy asks.
pub(in crate::client) async fn decide(hook: &PolicyHook, proposal: &Proposal<'_>) -> Result<Decided> {
    let allowed = match hook(proposal) {
        Policy::Allow => return Ok(Decided::AtOnce),
        Policy::Deny(reason) => return Err(Error::Refused(reason)),
        Policy::CallRequest(decision) => caught(decision).await.unwrap_or(false),
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
    fn what_is_not_said_is_assumed_to_be_the_worst() {
        assert_eq!(hints("{}"), Hints::default());
        let read_only = hints(r#"{"readOnlyHint":true,"destructiveHint":true}"#);
        assert!(
            read_only.read_only && !read_only.destructive && read_only.idempotent && read_only.open_world
        );
        assert!(!hints(r#"{"destructiveHint":false}"#).destructive);
        assert!(!hints(r#"{"openWorldHint":false}"#).open_world);
    }
}
