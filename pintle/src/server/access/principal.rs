use http::Extensions;

use crate::server::Authenticated;

/// On whose behalf a request comes.
///
/// What is not known to be local or authenticated is anonymous: no path treats "nothing known" as allowed.
///
/// ```
/// use pintle::{Server, server::{Cx, Next, Outcome, Principal, around, tool}, types::RpcError};
///
/// // The user of this machine, and whoever was authenticated.
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
#[expect(clippy::exhaustive_enums, reason = "whoever decides must judge each")]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Principal<'a> {
    /// The user who runs this process, at the other end of a pipe, of a Unix socket that only they can open, or within the
    /// process. Has every right.
    Local,
    /// Somebody on the network whom nobody has authenticated. Has no rights.
    Anonymous,
    /// Somebody who was authenticated, by the name that binds sessions, states and subscriptions. Has the rights that its
    /// [`Authenticated`] says.
    Named(&'a str),
}

impl<'a> Principal<'a> {
    pub(crate) fn of(name: Option<&'a str>, extensions: &'a Extensions) -> Self {
        match (name, extensions.get::<Authenticated>()) {
            (Some(name), _) => Self::Named(name),
            (None, None) => Self::Anonymous,
            (None, Some(known)) => known.principal().map_or(Self::Local, Self::Named),
        }
    }
}
