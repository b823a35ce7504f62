use std::{borrow::Cow, fmt, future::IntoFuture, pin::Pin};

use pintle_types::{
    RawObject,
    schema::{CompleteResult, Completion},
};
use serde::de::DeserializeOwned;

use super::{
    Connection,
    call::decode,
    lists::{Items, List},
    options::{RequestOptions, request_options},
    unresolved::Unresolved,
};
use crate::{Error, Result, Suggestion};

/// Builder of a request, from the methods of [`Connection`]. `.await` sends it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> pintle::Result<()> {
/// # #[cfg(feature = "server")] {
/// use pintle::{Client, Server, server::prompt, types::Meta};
/// use std::time::Duration;
///
/// let server = Server::new("demo", "1.0.0").prompt(prompt("greeting", || async { "Say hello." }));
/// let connection = Client::new("demo", "1.0.0").connect(server.in_process()?).await?;
///
/// // With the settings of the client:
/// let greeting = connection.get_prompt("greeting", ()).await?;
/// // With its own:
/// let mut meta = Meta::new();
/// meta.insert("example.com/user", "ada");
/// let again = connection.get_prompt("greeting", ()).timeout(Duration::from_secs(5)).meta(meta).await?;
/// assert_eq!(greeting.messages, again.messages);
/// # }
/// # Ok(()) }
/// ```
#[must_use = "a request does nothing until it is awaited"]
pub struct RequestBuilder<'a, R> {
    connection: &'a Connection,
    method: Cow<'static, str>,
    params: Result<RawObject>,
    pub(super) options: RequestOptions,
    run: Run<'a, R>,
}

/// Sends a request, and reads its result.
type Run<'a, R> = fn(&'a Connection, CompleteRequest) -> RequestFuture<'a, R>;

type RequestFuture<'a, R> = Pin<Box<dyn Future<Output = Result<R>> + Send + 'a>>;

/// A request that is complete.
struct CompleteRequest {
    method: Cow<'static, str>,
    params: Result<RawObject>,
    options: RequestOptions,
}

impl<'a, R> RequestBuilder<'a, R> {
    fn new(
        connection: &'a Connection,
        method: Cow<'static, str>,
        params: Result<RawObject>,
        run: Run<'a, R>,
    ) -> Self {
        Self { connection, method, params, options: RequestOptions::of(connection), run }
    }

    request_options!();
}

impl<'a, R: DeserializeOwned> RequestBuilder<'a, R> {
    /// A request whose result is decoded.
    pub(in crate::client) fn typed(
        connection: &'a Connection,
        method: Cow<'static, str>,
        params: Result<RawObject>,
    ) -> Self {
        Self::new(connection, method, params, |connection, prepared| {
            Box::pin(async move {
                let CompleteRequest { method, params, options } = prepared;
                let result = connection.send(method.clone(), params?, options).await?;
                decode(&method, &result)
            })
        })
    }
}

impl<'a> RequestBuilder<'a, RawObject> {
    /// A request whose result is left as it is.
    pub(in crate::client) fn raw(
        connection: &'a Connection,
        method: Cow<'static, str>,
        params: RawObject,
    ) -> Self {
        Self::new(connection, method, Ok(params), |connection, prepared| {
            Box::pin(async move {
                let CompleteRequest { method, params, options } = prepared;
                connection.send(method, params?, options).await
            })
        })
    }
}

impl<'a, R> RequestBuilder<'a, R> {
    /// A request whose result has more requests follow, with the handlers of this one.
    pub(in crate::client) fn unresolved(
        connection: &'a Connection,
        method: Cow<'static, str>,
        params: Result<RawObject>,
    ) -> Self
    where
        R: TryFrom<Unresolved, Error = Error>,
    {
        Self::new(connection, method, params, |connection, prepared| {
            Box::pin(async move {
                let CompleteRequest { method, params, options } = prepared;
                let result = connection.send(method.clone(), params?, options.clone()).await?;
                R::try_from(Unresolved::new(connection, &method, result, &options))
            })
        })
    }

    /// A completion, whose result is a part of the protocol's.
    pub(in crate::client) fn completion(
        connection: &'a Connection,
        method: &'static str,
        params: Result<RawObject>,
    ) -> Self
    where
        R: From<Completed>,
    {
        Self::new(connection, method.into(), params, |connection, prepared| {
            Box::pin(async move {
                let CompleteRequest { method, params, options } = prepared;
                let result = connection.send(method.clone(), params?, options).await?;
                decode(&method, &result).map(|result| Completed(result).into())
            })
        })
    }
}

/// The result of a completion.
pub(in crate::client) struct Completed(CompleteResult);

impl From<Completed> for Completion {
    fn from(Completed(result): Completed) -> Self {
        result.completion
    }
}

impl From<Completed> for Vec<Suggestion> {
    fn from(Completed(result): Completed) -> Self {
        Suggestion::of(&result)
    }
}

impl<'a, T: Send> RequestBuilder<'a, Vec<T>> {
    /// All pages of a list. The options apply to each page.
    pub(in crate::client) fn all<L: List<Item = T>>(connection: &'a Connection) -> Self {
        Self::new(connection, L::NAME.into(), Ok(RawObject::empty()), |connection, prepared| {
            Box::pin(Items::<L>::new(connection.clone(), prepared.options).all())
        })
    }
}

impl<'a, P> RequestBuilder<'a, P> {
    /// One page of a list.
    pub(in crate::client) fn page<L: List<Result = P>>(
        connection: &'a Connection,
        params: Result<RawObject>,
    ) -> Self {
        Self::new(connection, L::NAME.into(), params, |connection, prepared| {
            Box::pin(async move {
                let CompleteRequest { params, options, .. } = prepared;
                Ok(connection.page::<L>(params?, options).await?.0)
            })
        })
    }
}

impl<'a, R> IntoFuture for RequestBuilder<'a, R> {
    type Output = Result<R>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<R>> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        let Self { connection, method, params, options, run } = self;
        run(connection, CompleteRequest { method, params, options })
    }
}

impl<R> fmt::Debug for RequestBuilder<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestBuilder").field("method", &self.method).finish_non_exhaustive()
    }
}
