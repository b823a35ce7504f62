use std::panic::Location;

use pintle::{
    Result, Server,
    client::{Answer, Client, IntoRoots},
    forward::question_keys,
    proto::Revision,
    transport::Transport,
    types::{
        JsonObject,
        schema::{ContentBlock, CreateMessageResult, LoggingLevel},
    },
};

use crate::{
    connection::TestConnection,
    script::{Line, ScriptRun},
};

/// A client with scripted answers, for tests of a server in the same process.
///
/// It supports forms, URLs and sampling. An input request without a scripted answer fails the test, and so does an unused answer.
/// [`incapable`](Self::incapable) is a client without these capabilities.
///
/// ```
/// use pintle::{Server, client::Answer, server::{Cx, ToolError, tool}};
/// use pintle_testing::TestClient;
/// use serde_json::json;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Guests {
///     count: u8,
/// }
///
/// async fn book(cx: Cx) -> Result<String, ToolError> {
///     cx.progress(1.0, 2.0).await;
///     let guests = cx.elicit::<Guests>("guests", "A table for how many?").await?.accepted();
///     Ok(guests.map_or("Never mind.".to_owned(), |guests| format!("A table for {}.", guests.count)))
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let server = Server::new("demo", "1.0.0").tool(tool("book", book));
///
/// let accepts = TestClient::new().form("how many", Answer::accept(json!({"count": 4})));
/// accepts.both_eras(&server, async |client| {
///     let call = client.tool("book", ()).await;
///     assert_eq!(call.text(), "A table for 4.");
///     assert_eq!(call.questions, ["A table for how many?"]);
///     assert_eq!(call.progress[0].progress, 1.0);
/// }).await;
///
/// let declines = TestClient::new().form("how many", Answer::Decline);
/// declines.both_eras(&server, async |client| {
///     assert_eq!(client.tool("book", ()).await.text(), "Never mind.");
/// }).await;
/// # }
/// ```
#[must_use = "a client does nothing until it is connected"]
#[derive(Clone, Debug)]
pub struct TestClient {
    client: Client,
    lines: Vec<Line>,
    plays: bool,
    over: Over,
}

/// The transport to a server in this process.
#[derive(Clone, Copy, Debug)]
enum Over {
    Memory,
    #[cfg(feature = "http")]
    Http,
}

impl Default for TestClient {
    fn default() -> Self {
        Self::new()
    }
}

impl TestClient {
    /// Creates a client with all capabilities and no answers.
    pub fn new() -> Self {
        Self { plays: true, ..Self::incapable() }
    }

    /// Creates a client without capabilities. Scripted answers add them again.
    pub fn incapable() -> Self {
        Self::of(Client::new("test", env!("CARGO_PKG_VERSION")))
    }

    /// Wraps a client. Its own handlers answer unless answers are scripted. Its revisions and `on_log` are replaced.
    pub fn of(client: Client) -> Self {
        Self { client, lines: Vec::new(), plays: false, over: Over::Memory }
    }

    /// Scripts the answer to one form whose message contains this text. Each answer is used once.
    ///
    /// [`answer`](Self::answer) identifies a form by its key.
    pub fn form(self, message: impl Into<String>, answer: Answer) -> Self {
        self.line(Line::form(message, answer))
    }

    /// Scripts the answer to one URL that contains this text: [`Answer::Accept`] of `null` opens it.
    pub fn page(self, url: impl Into<String>, answer: Answer) -> Self {
        self.line(Line::page(url, answer))
    }

    /// Scripts the model's reply to one request whose messages contain this text.
    pub fn sample(self, text: impl Into<String>, reply: impl Into<String>) -> Self {
        self.sample_with(text, CreateMessageResult::new("test-model", ContentBlock::text(reply)))
    }

    /// Scripts the model's result for one request whose messages contain this text.
    pub fn sample_with(self, text: impl Into<String>, result: CreateMessageResult) -> Self {
        self.line(Line::sample(text, result))
    }

    /// Scripts the answer to one form or URL with this key, whatever its text. Each answer is used once.
    ///
    /// Servers of this SDK send keys in both eras; those of others only without a session.
    ///
    /// ```
    /// use pintle::{Server, client::Answer, server::{Cx, ToolError, tool}};
    /// use pintle_testing::TestClient;
    /// use serde_json::json;
    ///
    /// async fn wipe(cx: Cx) -> Result<&'static str, ToolError> {
    ///     let sure = cx.elicit::<()>("sure", "Wipe the disk?").await?.accepted().is_some();
    ///     Ok(if sure { "Wiped." } else { "Left alone." })
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let server = Server::new("demo", "1.0.0").tool(tool("wipe", wipe));
    /// TestClient::new().answer("sure", Answer::Decline).both_eras(&server, async |client| {
    ///     assert_eq!(client.tool("wipe", ()).await.text(), "Left alone.");
    /// }).await;
    /// # }
    /// ```
    pub fn answer(self, key: impl Into<String>, answer: Answer) -> Self {
        self.line(Line::answer(key, answer))
    }

    /// Scripts the model's reply to one request with this key. As [`answer`](Self::answer).
    pub fn model_answer(self, key: impl Into<String>, reply: impl Into<String>) -> Self {
        let result = CreateMessageResult::new("test-model", ContentBlock::text(reply));
        self.line(Line::model_answer(key, result))
    }

    /// Connects to servers over HTTP, in this process and without a socket. Without this it is memory.
    ///
    /// For options of the endpoint, and for layers around it, see [`connect_to`](Self::connect_to).
    #[cfg(feature = "http")]
    pub fn over_http(mut self) -> Self {
        self.over = Over::Http;
        self
    }

    /// Sets the client's roots. Without them it does not declare the capability.
    pub fn roots(mut self, roots: impl IntoRoots) -> Self {
        self.client = self.client.roots(roots);
        self
    }

    fn line(mut self, line: Line) -> Self {
        self.lines.push(line);
        self.plays = true;
        self
    }

    /// Connects in the newest revision of the server. End the test with [`finish`](TestConnection::finish).
    ///
    /// # Panics
    ///
    /// The server is invalid, or refuses the connection.
    pub async fn connect(&self, server: &Server) -> TestConnection {
        self.connect_in(server, &server.spoken_revisions()).await
    }

    /// Connects over any transport, in the newest revision of the server: to a child process, to a URL, with authorization.
    ///
    /// ```
    /// # #[cfg(feature = "http")] {
    /// use pintle::{Server, client::http::Http, server::tool};
    /// use pintle_testing::TestClient;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> pintle::Result<()> {
    /// let server = Server::new("demo", "1.0.0").tool(tool("hello", || async { "hello" }));
    /// let endpoint = server.http()?.json_only();
    ///
    /// let http = Http::new("http://localhost/mcp")?.client(endpoint).bearer("s3cret")?;
    /// let client = TestClient::new().connect_to(http).await;
    /// assert_eq!(client.tool("hello", ()).await.text(), "hello");
    /// client.finish().await;
    /// # Ok(()) }
    /// # main().unwrap();
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// The server refuses the connection.
    pub async fn connect_to(&self, transport: impl Transport) -> TestConnection {
        self.open(transport, &Revision::all().collect::<Vec<_>>()).await
    }

    /// Runs a test in the newest revision of both eras, over the transports that a function opens.
    ///
    /// # Panics
    ///
    /// The test panics, the server refuses the connection or supports one era only, or the input requests differ from the script.
    #[track_caller]
    pub fn both_eras_over<T: Transport>(
        &self,
        transport: impl AsyncFn() -> T,
        test: impl AsyncFn(&TestConnection),
    ) -> impl Future<Output = ()> {
        let at = Location::caller();
        async move {
            for stateless in [false, true] {
                let of_era: Vec<_> =
                    Revision::all().filter(|revision| revision.facts().keeps_session != stateless).collect();
                let client = self.open(transport().await, &of_era).await;
                test(&client).await;
                client.finish_at(at).await;
            }
        }
    }

    /// Runs a test in the newest revision of both eras: with the same server, or with a new one for each, from a function.
    ///
    /// ```
    /// use std::sync::{Arc, atomic::{AtomicU32, Ordering}};
    /// use pintle::{Server, server::{State, tool}};
    /// use pintle_testing::TestClient;
    ///
    /// async fn count(State(calls): State<Arc<AtomicU32>>) -> u32 {
    ///     calls.fetch_add(1, Ordering::Relaxed)
    /// }
    ///
    /// fn server() -> Server {
    ///     Server::new("demo", "1.0.0").with_state(Arc::new(AtomicU32::new(0))).tool(tool("count", count))
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// TestClient::new().both_eras(server, async |client| {
    ///     assert_eq!(client.tool("count", ()).await.text(), "0");
    /// }).await;
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// The test panics, the server refuses the connection or supports one era only, or the input requests differ from the script.
    #[track_caller]
    pub fn both_eras(
        &self,
        server: impl MakeServer,
        test: impl AsyncFn(&TestConnection),
    ) -> impl Future<Output = ()> {
        let at = Location::caller();
        async move {
            for stateless in [false, true] {
                let server = server.make_server();
                let spoken = server.spoken_revisions();
                let newest = Revision::all().find(|revision| {
                    revision.facts().keeps_session != stateless && spoken.contains(revision)
                });
                let Some(revision) = newest else {
                    let era = if stateless { "without a session" } else { "with a session" };
                    panic!("{at}: the server speaks no revision {era}: use `every_revision`");
                };
                self.run_in(&server, revision, &test, at).await;
            }
        }
    }

    /// Runs a test in every revision of the server: with the same server, or with a new one for each, from a function.
    ///
    /// The oldest two have no forms, and only the newest two have URLs: to test input requests, use
    /// [`both_eras`](Self::both_eras).
    ///
    /// # Panics
    ///
    /// The test panics, the server refuses the connection, or the input requests differ from the script.
    #[track_caller]
    pub fn every_revision(
        &self,
        server: impl MakeServer,
        test: impl AsyncFn(&TestConnection),
    ) -> impl Future<Output = ()> {
        let at = Location::caller();
        async move {
            for revision in server.make_server().spoken_revisions() {
                self.run_in(&server.make_server(), revision, &test, at).await;
            }
        }
    }

    async fn run_in(
        &self,
        server: &Server,
        revision: Revision,
        test: &impl AsyncFn(&TestConnection),
        at: &Location<'_>,
    ) {
        let client = self.connect_in(server, &[revision]).await;
        test(&client).await;
        client.finish_at(at).await;
    }

    async fn connect_in(&self, server: &Server, revisions: &[Revision]) -> TestConnection {
        let transport: Result<Box<dyn Transport>> = match self.over {
            Over::Memory => server.in_process().map(|transport| Box::new(transport) as _),
            #[cfg(feature = "http")]
            Over::Http => over_http(server).map(|transport| Box::new(transport) as _),
        };
        let transport = transport.unwrap_or_else(|error| panic!("the server cannot be served: {error}"));
        self.open(transport, revisions).await
    }

    async fn open(&self, transport: impl Transport, revisions: &[Revision]) -> TestConnection {
        let run = ScriptRun::new(self.lines.clone());
        let client = if self.plays { run.play(self.client.clone()) } else { self.client.clone() };
        let logs = run.clone();
        let client = client
            .on_log(move |message| logs.lock().logs.push(message.params))
            .log_level(LoggingLevel::Debug)
            .extension(question_keys::EXTENSION, JsonObject::new())
            .revisions(revisions.iter().copied());
        let connection = client.connect(transport).await;
        let connection = connection.unwrap_or_else(|error| {
            let tried: Vec<_> = revisions.iter().map(|revision| revision.as_str()).collect();
            panic!("the server does not open a connection ({}): {error}", tried.join(", "))
        });
        TestConnection::new(connection, run).await
    }
}

/// The server of a test: one, or a function that makes one for each connection, so that they share no state.
pub trait MakeServer {
    /// Returns the server of the next connection.
    fn make_server(&self) -> Server;
}

impl MakeServer for &Server {
    fn make_server(&self) -> Server {
        (*self).clone()
    }
}

impl<F: Fn() -> Server> MakeServer for F {
    fn make_server(&self) -> Server {
        self()
    }
}

/// The endpoint of a server as the HTTP client of a transport.
#[cfg(feature = "http")]
fn over_http(server: &Server) -> Result<pintle::client::http::Http> {
    Ok(pintle::client::http::Http::new("http://localhost/mcp")?.client(server.http()?))
}
