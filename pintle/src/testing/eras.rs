use crate::{Client, Connection, Result, Server};

/// Runs a test of a server in every revision that the server speaks: with a session, and without one.
///
/// The client that it is run with can do nothing for the server; [`both_eras_as`] takes one that can.
///
/// # Errors
///
/// The server cannot be served, or does not open a connection.
///
/// ```
/// use pintle::{Connection, Server, server::tool, testing::both_eras};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> pintle::Result<()> {
/// let server = Server::new("demo", "1.0.0").tool(tool("hello", || async { "hello" }));
/// both_eras(&server, async |connection: Connection| {
///     let result = connection.call_tool("hello", ()).await.unwrap();
///     assert_eq!(result.content[0].as_text(), Some("hello"), "in {}", connection.revision().as_str());
/// })
/// .await
/// # }
/// ```
pub async fn both_eras(server: &Server, test: impl AsyncFn(Connection)) -> Result<()> {
    both_eras_as(&Client::new("test", env!("CARGO_PKG_VERSION")), server, test).await
}

/// As [`both_eras`], with a client that answers questions or knows how to behave.
///
/// # Errors
///
/// The server cannot be served, or does not open a connection.
///
/// ```
/// use pintle::{Client, Connection, Server, server::{Cx, ToolError, tool}, testing::both_eras_as};
///
/// async fn first(cx: Cx) -> Result<String, ToolError> {
///     Ok(cx.roots().await?[0].uri.clone())
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> pintle::Result<()> {
/// let server = Server::new("demo", "1.0.0").tool(tool("first", first));
/// let client = Client::new("test", "0").roots(["file:///srv"]);
/// both_eras_as(&client, &server, async |connection: Connection| {
///     let result = connection.call_tool("first", ()).await.unwrap();
///     assert_eq!(result.content[0].as_text(), Some("file:///srv"));
/// })
/// .await
/// # }
/// ```
pub async fn both_eras_as(client: &Client, server: &Server, test: impl AsyncFn(Connection)) -> Result<()> {
    for revision in server.state().service.revisions() {
        let client = client.clone().revisions([*revision]);
        let connection = client.connect(server.in_process()?).await?;
        test(connection.clone()).await;
        connection.close().await;
    }
    Ok(())
}
