use pintle_proto::Revision;
use pintle_types::schema::{ContentBlock, CreateMessageResult, LoggingLevel};

use super::{
    connection::TestConnection,
    script::{Line, Run},
};
use crate::{
    Server,
    client::{Answer, Client, IntoRoots},
};

/// A client for tests of a server in the same process. Its answers are written beforehand.
///
/// It can fill in forms, open pages and ask a model. A question without an answer fails the test, and so does an answer
/// that nobody asked for; a test of a client that cannot do any of this starts from [`incapable`](Self::incapable).
///
/// ```
/// use pintle::{Server, client::Answer, server::{Cx, ToolError, tool}, testing::TestClient};
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
}

impl Default for TestClient {
    fn default() -> Self {
        Self::new()
    }
}

impl TestClient {
    /// A client that can be asked anything, and has no answers yet.
    pub fn new() -> Self {
        Self { plays: true, ..Self::incapable() }
    }

    /// A client that can do nothing for servers. What is scripted after this makes it capable again.
    pub fn incapable() -> Self {
        Self::of(Client::new("test", env!("CARGO_PKG_VERSION")))
    }

    /// A client that you have set up yourself. Its own handlers answer, unless something is scripted; which revisions it
    /// speaks and where log messages go is for the test to say.
    pub fn of(client: Client) -> Self {
        Self { client, lines: Vec::new(), plays: false }
    }

    /// The answer to one form whose message contains this text. Asked twice, it has to be scripted twice.
    ///
    /// Messages name questions here, and not keys, because a session has no word for keys.
    pub fn form(self, message: impl Into<String>, answer: Answer) -> Self {
        self.line(Line::form(message, answer))
    }

    /// The answer to one page whose URL contains this text: [`Answer::Accept`] of `null` opens it.
    pub fn page(self, url: impl Into<String>, answer: Answer) -> Self {
        self.line(Line::page(url, answer))
    }

    /// What the model says once, to messages that contain this text.
    pub fn sample(self, text: impl Into<String>, says: impl Into<String>) -> Self {
        self.sample_with(text, CreateMessageResult::new("test-model", ContentBlock::text(says)))
    }

    /// The same, with a whole result.
    pub fn sample_with(self, text: impl Into<String>, result: CreateMessageResult) -> Self {
        self.line(Line::sample(text, result))
    }

    /// The places that the server may work in. Without this the client does not list any.
    pub fn roots(mut self, roots: impl IntoRoots) -> Self {
        self.client = self.client.roots(roots);
        self
    }

    fn line(mut self, line: Line) -> Self {
        self.lines.push(line);
        self.plays = true;
        self
    }

    /// Connects in the newest revision that the server speaks. Say [`finish`](TestConnection::finish) at the end.
    ///
    /// # Panics
    ///
    /// The server cannot be served, or does not open the connection.
    pub async fn connect(&self, server: &Server) -> TestConnection {
        self.connect_in(server, server.snapshot().service.revisions()).await
    }

    /// Runs a test twice: in the newest revision with a session, and in the newest without.
    ///
    /// # Panics
    ///
    /// The test does, the server does not open a connection or speaks one era only, or the questions were others than
    /// those that were scripted.
    pub async fn both_eras(&self, server: &Server, test: impl AsyncFn(&TestConnection)) {
        let snapshot = server.snapshot();
        let spoken = snapshot.service.revisions();
        for stateless in [false, true] {
            let newest = Revision::all()
                .find(|revision| revision.is_stateless() == stateless && spoken.contains(revision));
            let Some(revision) = newest else {
                let era = if stateless { "without a session" } else { "with a session" };
                panic!("the server speaks no revision {era}: use `every_revision`");
            };
            self.run_in(server, revision, &test).await;
        }
    }

    /// Runs a test in every revision that the server speaks.
    ///
    /// The oldest two have no forms and all but the newest two no pages: a test of a server that asks wants
    /// [`both_eras`](Self::both_eras).
    ///
    /// # Panics
    ///
    /// The test does, the server does not open a connection, or the questions were others than those that were
    /// scripted.
    pub async fn every_revision(&self, server: &Server, test: impl AsyncFn(&TestConnection)) {
        for revision in server.snapshot().service.revisions() {
            self.run_in(server, *revision, &test).await;
        }
    }

    async fn run_in(&self, server: &Server, revision: Revision, test: &impl AsyncFn(&TestConnection)) {
        let client = self.connect_in(server, &[revision]).await;
        test(&client).await;
        client.finish().await;
    }

    async fn connect_in(&self, server: &Server, revisions: &[Revision]) -> TestConnection {
        let run = Run::new(self.lines.clone());
        let client = if self.plays { run.play(self.client.clone()) } else { self.client.clone() };
        let logs = run.clone();
        let client = client
            .on_log(move |message| logs.lock().logs.push(message))
            .log_level(LoggingLevel::Debug)
            .revisions(revisions.iter().copied());
        let transport =
            server.in_process().unwrap_or_else(|error| panic!("the server cannot be served: {error}"));
        let connection = client.connect(transport).await;
        let connection = connection.unwrap_or_else(|error| {
            let tried: Vec<_> = revisions.iter().map(|revision| revision.as_str()).collect();
            panic!("the server does not open a connection ({}): {error}", tried.join(", "))
        });
        TestConnection::new(connection, run).await
    }
}
