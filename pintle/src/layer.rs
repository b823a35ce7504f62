//! Layers around the messages of both roles.
//!
//! [`Next`] is the rest of the stack. It returns a `Handling`: an outcome, or a boxed future. Without layers it is the innermost step. Spans
//! are inside of the layers of the application.

use std::{
    fmt,
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use tower_layer::{Layer, layer_fn};
use tower_service::Service;

/// A boxed future of a message.
pub(crate) type BoxHandling<O> = Pin<Box<dyn Future<Output = O> + Send>>;

/// A message on its way. Its outcome may be there at once.
pub(crate) enum Handling<O> {
    /// The outcome, until it is taken.
    Ready(Option<O>),
    /// A future of the outcome.
    Running(BoxHandling<O>),
}

impl<O> Handling<O> {
    pub(crate) fn ready(outcome: O) -> Self {
        Self::Ready(Some(outcome))
    }

    pub(crate) fn new(running: impl Future<Output = O> + Send + 'static) -> Self {
        Self::Running(Box::pin(running))
    }

    pub(crate) fn boxed(self) -> BoxHandling<O>
    where
        O: Unpin + Send + 'static,
    {
        match self {
            Self::Running(running) => running,
            ready @ Self::Ready(_) => Box::pin(ready),
        }
    }
}

impl<O> From<BoxHandling<O>> for Handling<O> {
    fn from(running: BoxHandling<O>) -> Self {
        Self::Running(running)
    }
}

impl<O: Unpin> Future for Handling<O> {
    type Output = O;

    fn poll(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<O> {
        match self.get_mut() {
            Self::Ready(outcome) => outcome.take().map_or(Poll::Pending, Poll::Ready),
            Self::Running(running) => running.as_mut().poll(task),
        }
    }
}

/// The rest of the stack of a message, after a layer: a `tower` service from the context of a message to its outcome.
pub struct Next<C, O>(Arc<dyn Fn(C) -> Handling<O> + Send + Sync>);

impl<C: Send + 'static, O: Unpin + Send + 'static> Next<C, O> {
    pub(crate) fn new(go: impl Fn(C) -> Handling<O> + Send + Sync + 'static) -> Self {
        Self(Arc::new(go))
    }

    pub(crate) fn go(&self, cx: C) -> Handling<O> {
        (self.0)(cx)
    }

    /// Starts with the first poll, so that a panic of a layer is one of the future.
    pub(crate) fn start(&self, cx: C) -> BoxHandling<O> {
        let next = self.clone();
        Box::pin(async move { next.go(cx).await })
    }

    /// Passes the message on to the next layer, or after the last one to where it takes effect.
    pub async fn run(self, cx: C) -> O {
        self.go(cx).await
    }

    /// Puts a layer around it. `outcome` makes an outcome of what the service of the layer returns.
    pub(crate) fn wrapped<L, S>(self, layer: &L, outcome: fn(Result<S::Response, S::Error>) -> O) -> Self
    where
        L: Layer<Self, Service = S>,
        S: Service<C, Future: Send> + Clone + Send + Sync + 'static,
        S::Response: 'static,
        S::Error: Send + 'static,
    {
        let service = layer.layer(self);
        Self::new(move |cx| {
            let mut service = service.clone();
            Handling::new(async move {
                match poll_fn(|task| service.poll_ready(task)).await {
                    Ok(()) => outcome(service.call(cx).await),
                    Err(error) => outcome(Err(error)),
                }
            })
        })
    }
}

/// Returns a layer of an async function, which gets each message and the rest of the stack.
pub(crate) fn around<C, O, F, Fut>(function: F) -> impl Layer<Next<C, O>, Service = Next<C, O>>
where
    C: Send + 'static,
    O: Unpin + Send + 'static,
    F: Fn(C, Next<C, O>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = O> + Send + 'static,
{
    let function = Arc::new(function);
    layer_fn(move |next: Next<C, O>| {
        let function = function.clone();
        Next::new(move |cx| Handling::new(function(cx, next.clone())))
    })
}

impl<C, R, E> Service<C> for Next<C, Result<R, E>>
where
    C: Send + 'static,
    R: Unpin + Send + 'static,
    E: Unpin + Send + 'static,
{
    type Response = R;
    type Error = E;
    type Future = Pin<Box<dyn Future<Output = Result<R, E>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), E>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, cx: C) -> Self::Future {
        self.go(cx).boxed()
    }
}

impl<C, O> Clone for Next<C, O> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<C, O> fmt::Debug for Next<C, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Next")
    }
}
