use http::Extensions;

use crate::server::Authenticated;

/// The identity on whose behalf a request is made.
///
/// A caller that is neither known to be local nor authenticated is anonymous: the absence of information never grants
/// access.
///
/// ```
/// use pintle::{Server, server::{Cx, Next, Outcome, Principal, around, tool}, types::RpcError};
///
/// // Only the local user and authenticated callers.
/// async fn known_only(cx: Cx, next: Next) -> Outcome {
///     match cx.identity() {
///         Principal::Local | Principal::Named(_) => next.run(cx).await,
///         Principal::Anonymous => Outcome::Failed(RpcError::invalid_request("log in first")),
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> pintle::Result<()> {
/// let server = Server::new("vault", "1.0.0").tool(tool("open", || async { "open" })).layer(&around(known_only));
/// # #[cfg(feature = "client")] {
/// let vault = pintle::Client::new("demo", "0.1.0").connect(server.in_process()?).await?;
/// assert_eq!(vault.call_tool("open", ()).await?.text(), "open");
/// # }
/// # Ok(()) }
/// ```
#[expect(clippy::exhaustive_enums, reason = "an access decision must handle each")]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Principal<'a> {
    /// The user who runs this process, connected by a pipe, a Unix socket that only they can open, or within the process. Has
    /// every right.
    Local,
    /// A caller on the network that was not authenticated. Has no rights.
    Anonymous,
    /// An authenticated caller, by the name to which sessions, states and subscriptions are bound. Has the rights of its
    /// [`Authenticated`].
    Named(&'a str),
}

impl<'a> Principal<'a> {
    pub(crate) fn of(name: Option<&'a str>, extensions: &'a Extensions) -> Self {
        match (name, extensions.get::<Authenticated>()) {
            (Some(name), _) => Self::Named(name),
            (None, None) => Self::Anonymous,
            (None, Some(caller)) => caller.principal().map_or(Self::Local, Self::Named),
        }
    }
}
