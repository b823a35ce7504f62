use std::{
    fmt,
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll},
};

/// The future that the methods of stores and logs return: a value that is ready, or a boxed future.
///
/// ```
/// use pintle::server::store::Stored;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
/// assert_eq!(Stored::now(1).await?, 1);
/// assert_eq!(Stored::later(async { Ok(2) }).await?, 2);
/// # Ok(()) }
/// ```
pub struct Stored<'a, T>(StoredState<'a, T>);

enum StoredState<'a, T> {
    Now(Option<T>),
    Later(Pin<Box<dyn Future<Output = io::Result<T>> + Send + 'a>>),
}

impl<'a, T> Stored<'a, T> {
    /// Creates a future that is ready. It does not allocate.
    pub fn now(value: T) -> Self {
        Self(StoredState::Now(Some(value)))
    }

    /// Boxes a future.
    pub fn later(answer: impl Future<Output = io::Result<T>> + Send + 'a) -> Self {
        Self(StoredState::Later(Box::pin(answer)))
    }
}

/// The value is moved out and never pinned.
impl<T> Unpin for Stored<'_, T> {}

impl<T> Future for Stored<'_, T> {
    type Output = io::Result<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        match &mut self.0 {
            // Polled after completion.
            StoredState::Now(value) => value.take().map_or(Poll::Pending, |value| Poll::Ready(Ok(value))),
            StoredState::Later(answer) => answer.as_mut().poll(cx),
        }
    }
}

impl<T> fmt::Debug for Stored<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            StoredState::Now(_) => "Stored::now",
            StoredState::Later(_) => "Stored::later",
        })
    }
}
