use std::{
    convert::Infallible,
    fmt,
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use pintle_proto::server::{CacheHint, Outcome};
use pintle_types::RpcError;
use tower_layer::{Layer, layer_fn};
use tower_service::Service;

use super::run::{HandlerFuture, Start};
use crate::server::Cx;

/// The rest of the way of a call, for a layer to go on with: a `tower` service from [`Cx`] to [`Outcome`].
#[derive(Clone)]
pub struct Next(Arc<dyn Fn(Cx) -> Start + Send + Sync>);

impl Next {
    pub(crate) fn new(go: impl Fn(Cx) -> HandlerFuture + Send + Sync + 'static) -> Self {
        Self::starting(move |cx| Start::Run(go(cx)))
    }

    /// Creates one whose outcome may be there at once.
    pub(crate) fn starting(start: impl Fn(Cx) -> Start + Send + Sync + 'static) -> Self {
        Self(Arc::new(start))
    }

    pub(crate) fn start(&self, cx: Cx) -> Start {
        (self.0)(cx)
    }

    pub(crate) fn go(&self, cx: Cx) -> HandlerFuture {
        match self.start(cx) {
            Start::Run(handling) => handling,
            Start::Done(outcome) => Box::pin(std::future::ready(outcome)),
        }
    }

    /// Goes on, to the next layer and in the end to the handler.
    pub async fn run(self, cx: Cx) -> Outcome {
        self.go(cx).await
    }

    /// Lets what comes of it be kept for a while.
    pub(crate) fn kept(self, hint: CacheHint) -> Self {
        Self::new(move |cx| {
            let (handling, hint) = (self.go(cx), hint.clone());
            Box::pin(async move {
                match handling.await {
                    Outcome::Complete(body) => Outcome::Cacheable(body, hint),
                    other => other,
                }
            })
        })
    }

    /// Puts a layer around it.
    pub(crate) fn wrapped<L>(self, layer: &L) -> Self
    where
        L: Layer<Self>,
        L::Service: Service<Cx, Response = Outcome> + Clone + Send + Sync + 'static,
        <L::Service as Service<Cx>>::Error: fmt::Display + Send,
        <L::Service as Service<Cx>>::Future: Send + 'static,
    {
        let service = layer.layer(self);
        Self::new(move |cx| {
            let mut service = service.clone();
            Box::pin(async move {
                let ready = poll_fn(|task| service.poll_ready(task)).await.map_err(failed);
                match ready {
                    Ok(()) => service.call(cx).await.unwrap_or_else(failed),
                    Err(outcome) => outcome,
                }
            })
        })
    }
}

/// Makes a layer of an async function, which gets each call and the rest of its way: it may look at both, answer by
/// itself, or go on with [`Next::run`].
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
pub fn around<F, Fut>(
    function: F,
) -> impl Layer<
    Next,
    Service: Service<Cx, Response = Outcome, Error = Infallible, Future: Send + 'static>
                 + Clone
                 + Send
                 + Sync
                 + 'static,
>
where
    F: Fn(Cx, Next) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Outcome> + Send + 'static,
{
    let function = Arc::new(function);
    layer_fn(move |next: Next| {
        let function = function.clone();
        Next::new(move |cx| Box::pin(function(cx, next.clone())))
    })
}

/// A layer's own error fails the request: it has no other way to be told.
fn failed(error: impl fmt::Display) -> Outcome {
    Outcome::Failed(RpcError::internal(error.to_string()))
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

impl fmt::Debug for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Next")
    }
}
