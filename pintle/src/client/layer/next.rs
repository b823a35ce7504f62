use std::{
    fmt,
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use pintle_types::RawObject;
use tower_layer::{Layer, layer_fn};
use tower_service::Service;

use super::cx::{Cx, LayerFuture};
use crate::{Error, Result, error::BoxError};

/// The rest of the way of a message, for a layer to go on with: a `tower` service from [`Cx`] to the result.
#[derive(Clone)]
pub struct Next(Arc<dyn Fn(Cx) -> LayerFuture + Send + Sync>);

impl Next {
    fn new(go: impl Fn(Cx) -> LayerFuture + Send + Sync + 'static) -> Self {
        Self(Arc::new(go))
    }

    /// Returns the innermost part of the layers, where a message takes effect.
    pub(in crate::client) fn innermost() -> Self {
        Self::new(Cx::perform)
    }

    pub(in crate::client) fn go(&self, cx: Cx) -> LayerFuture {
        (self.0)(cx)
    }

    /// Starts with the first poll, so that a panic of a layer is one of the future.
    pub(in crate::client) fn start(&self, cx: Cx) -> LayerFuture {
        let next = self.clone();
        Box::pin(async move { next.go(cx).await })
    }

    /// Goes on, to the next layer and in the end to the server, or to the handler of what was received.
    ///
    /// # Errors
    ///
    /// The errors of the request: see [`Error`]. The error of a handler is an [`Error::Rpc`].
    pub async fn run(self, cx: Cx) -> Result<RawObject> {
        self.go(cx).await
    }

    /// Puts a layer around it.
    pub(in crate::client) fn wrapped<L>(self, layer: &L) -> Self
    where
        L: Layer<Self>,
        L::Service: Service<Cx, Response = RawObject> + Clone + Send + Sync + 'static,
        <L::Service as Service<Cx>>::Error: Into<BoxError> + Send,
        <L::Service as Service<Cx>>::Future: Send + 'static,
    {
        let service = layer.layer(self);
        Self::new(move |cx| {
            let mut service = service.clone();
            Box::pin(async move {
                match poll_fn(|task| service.poll_ready(task)).await.map_err(failed) {
                    Ok(()) => service.call(cx).await.map_err(failed),
                    Err(error) => Err(error),
                }
            })
        })
    }
}

/// Makes a layer of an async function, which gets each message and the rest of its way: it may look at both, answer by itself, or
/// go on with [`Next::run`].
///
/// A call that is dropped is dropped in the middle of it, as anywhere.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> pintle::Result<()> {
/// # #[cfg(feature = "server")] {
/// use pintle::{Client, Error, Result, Server, client::{Cx, Next, around}, server::tool, types::RawObject};
///
/// async fn no_tools(cx: Cx, next: Next) -> Result<RawObject> {
///     match cx.method() {
///         "tools/call" => Err(Error::Refused("no calls today: ask tomorrow".into())),
///         _ => next.run(cx).await,
///     }
/// }
///
/// let server = Server::new("dice", "1.0.0").tool(tool("roll", || async { "4" }));
/// let client = Client::new("demo", "0.1.0").layer(&around(no_tools));
/// let dice = client.connect(server.in_process()?).await?;
/// assert_eq!(dice.tools().await?.len(), 1);
/// assert_eq!(dice.call_tool("roll", ()).await.unwrap_err().to_string(), "no calls today: ask tomorrow");
/// # }
/// # Ok(()) }
/// ```
pub fn around<F, Fut>(
    function: F,
) -> impl Layer<
    Next,
    Service: Service<Cx, Response = RawObject, Error = Error, Future: Send + 'static>
                 + Clone
                 + Send
                 + Sync
                 + 'static,
>
where
    F: Fn(Cx, Next) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<RawObject>> + Send + 'static,
{
    let function = Arc::new(function);
    layer_fn(move |next: Next| {
        let function = function.clone();
        Next::new(move |cx| Box::pin(function(cx, next.clone())))
    })
}

/// The error of a layer. An [`Error`] that went through foreign layers is unchanged.
fn failed(error: impl Into<BoxError>) -> Error {
    match error.into().downcast::<Error>() {
        Ok(error) => *error,
        Err(other) => Error::Refused(other.to_string()),
    }
}

impl Service<Cx> for Next {
    type Response = RawObject;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<RawObject>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, cx: Cx) -> Self::Future {
        self.go(cx)
    }
}

impl fmt::Debug for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Next")
    }
}
