use pintle_types::RawObject;
use tower_layer::Layer;

use super::cx::Cx;
use crate::{Error, Result, error::BoxError, layer};

/// The rest of the way of a message of a client, for a layer to go on with: to the next layer and in the end to the server, or to the
/// handler of what was received. The error of a handler is an [`Error::Rpc`].
pub type Next = layer::Next<Cx, Result<RawObject>>;

/// Returns the innermost part of the layers, where a message takes effect.
pub(in crate::client) fn innermost() -> Next {
    Next::new(|cx: Cx| cx.perform().into())
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
pub fn around<F, Fut>(function: F) -> impl Layer<Next, Service = Next>
where
    F: Fn(Cx, Next) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<RawObject>> + Send + 'static,
{
    layer::around(function)
}

/// Returns the result of a layer. An [`Error`] that went through foreign layers is unchanged.
pub(in crate::client) fn result<E: Into<BoxError>>(ended: Result<RawObject, E>) -> Result<RawObject> {
    ended.map_err(|error| match error.into().downcast::<Error>() {
        Ok(error) => *error,
        Err(other) => Error::Refused(other.to_string()),
    })
}
