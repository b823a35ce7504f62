//! The layers of a server.

use std::{
    convert::Infallible,
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use pintle_proto::server::{CacheHint, Outcome};
use pintle_types::RpcError;
use tower_layer::Layer;
use tower_service::Service;

use crate::{
    layer::{self, Handling},
    server::Cx,
};

/// The rest of the stack of a call, after a layer: a `tower` service from [`Cx`] to [`Outcome`].
pub type Next = layer::Next<Cx, Outcome>;

/// Lets what comes of a call be kept for a while.
pub(crate) fn kept(next: Next, hint: CacheHint) -> Next {
    Next::new(move |cx| {
        let (handling, hint) = (next.go(cx), hint.clone());
        Handling::new(async move {
            match handling.await {
                Outcome::Complete(body) => Outcome::Cacheable(body, hint),
                other => other,
            }
        })
    })
}

/// Returns the outcome of a layer. Its own error fails the request.
pub(crate) fn outcome<E: fmt::Display>(ended: Result<Outcome, E>) -> Outcome {
    ended.unwrap_or_else(|error| Outcome::Failed(RpcError::internal(error.to_string())))
}

/// Returns a layer of an async function, which gets each call and the rest of the stack: it may inspect the call, answer it
/// itself, or pass it on with [`Next::run`].
///
/// A call that is cancelled is dropped in the middle of it, as anywhere.
///
/// ```
/// use pintle::{Server, server::{Cx, Next, Outcome, around, tool}, types::RpcError};
///
/// async fn known_only(cx: Cx, next: Next) -> Outcome {
///     // A handshake, a ping and the lists name no target.
///     if cx.target().is_some() && cx.principal().is_none() {
///         return Outcome::Failed(RpcError::invalid_request("log in first"));
///     }
///     next.run(cx).await
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> pintle::Result<()> {
/// let server = Server::new("vault", "1.0.0").tool(tool("open", || async { "open" })).layer(&around(known_only));
/// # #[cfg(feature = "client")] {
/// let vault = pintle::Client::new("demo", "0.1.0").connect(server.in_process()?).await?;
/// let error = vault.call_tool("open", ()).await.unwrap_err();
/// assert!(error.to_string().contains("log in first"));
/// # }
/// # Ok(()) }
/// ```
pub fn around<F, Fut>(function: F) -> impl Layer<Next, Service = Next>
where
    F: Fn(Cx, Next) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Outcome> + Send + 'static,
{
    layer::around(function)
}

impl Service<Cx> for Next {
    type Response = Outcome;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Outcome, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, cx: Cx) -> Self::Future {
        let handling = self.go(cx);
        Box::pin(async move { Ok(handling.await) })
    }
}
