use std::{
    mem::take,
    ops::Deref,
    panic::Location,
    sync::{Arc, Mutex, PoisonError},
    thread::panicking,
    time::Duration,
};

use pintle::{
    Connection,
    client::{Change, Changes, Event},
    types::schema::LoggingMessageParams,
};
use serde::Serialize;
use tokio::{sync::Notify, task::JoinHandle};

use crate::{Called, CatalogueSnapshot, script::ScriptRun};

/// How long to wait for an expected change. Instant where time is paused.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A connection of a [`TestClient`](crate::TestClient): a [`Connection`] that records notifications and input requests.
///
/// ```
/// use pintle::{Server, client::Change, server::tool};
/// use pintle_testing::TestClient;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let server = Server::new("demo", "1.0.0").tool(tool("one", || async { 1 }));
/// let client = TestClient::new().connect(&server).await;
///
/// assert_eq!(client.tool("one", ()).await.text(), "1");
/// server.add_tool(tool("two", || async { 2 })).unwrap();
/// assert_eq!(client.next_change().await, Change::Tools);
/// // What a connection can, it can too.
/// assert_eq!(client.tools().await.unwrap().len(), 2);
/// assert!(client.call_tool("three", ()).await.is_err());
///
/// client.finish().await;
/// # }
/// ```
#[derive(Debug)]
pub struct TestConnection {
    connection: Connection,
    run: Arc<ScriptRun>,
    arrived: Arc<Notify>,
    /// Collects changes. `None` if the server reports none.
    listening: Option<JoinHandle<()>>,
}

impl TestConnection {
    pub(crate) async fn new(connection: Connection, run: Arc<ScriptRun>) -> Self {
        let arrived = Arc::new(Notify::new());
        let changes = connection.changes().await.ok();
        let listening = changes.map(|changes| tokio::spawn(listen(changes, run.clone(), arrived.clone())));
        Self { connection, run, arrived, listening }
    }

    /// Calls a tool, and records notifications and input requests. [`Connection`] has the other requests.
    ///
    /// # Panics
    ///
    /// The server refuses the call, or sends an unexpected input request. To test a refusal, use
    /// [`call_tool`](Connection::call_tool).
    #[track_caller]
    pub fn tool(&self, name: &str, arguments: impl Serialize) -> impl Future<Output = Called> {
        let at = Location::caller();
        let progress = Arc::new(Mutex::new(Vec::new()));
        let steps = progress.clone();
        let call = self.connection.call(name).args(arguments).on_progress(move |step| {
            steps.lock().unwrap_or_else(PoisonError::into_inner).push(step);
        });
        async move {
            {
                let mut inside = self.run.lock();
                (inside.logs, inside.questions) = Default::default();
            }
            let result = call.await;
            self.check(at);
            let result = match result {
                Ok(result) => result,
                Err(error) => {
                    panic!("{at}: `{name}` was not answered in {}: {error}", self.revision().as_str())
                }
            };
            let progress = take(&mut *progress.lock().unwrap_or_else(PoisonError::into_inner));
            let mut inside = self.run.lock();
            Called { result, progress, logs: take(&mut inside.logs), questions: take(&mut inside.questions) }
        }
    }

    /// Takes the log messages since the last call of this method or of [`tool`](Self::tool).
    pub fn logs(&self) -> Vec<LoggingMessageParams> {
        take(&mut self.run.lock().logs)
    }

    /// Takes the input requests since the last call of this method or of [`tool`](Self::tool).
    pub fn questions(&self) -> Vec<String> {
        take(&mut self.run.lock().questions)
    }

    /// Waits for the next change. Changes of lists are always received; a resource has to be
    /// [subscribed](Connection::subscribe) to.
    ///
    /// # Panics
    ///
    /// No change is received in time.
    #[track_caller]
    pub fn next_change(&self) -> impl Future<Output = Change> {
        let at = Location::caller();
        let coming = async {
            loop {
                if let Some(change) = self.run.lock().changes.pop_front() {
                    return change;
                }
                self.arrived.notified().await;
            }
        };
        async move {
            match tokio::time::timeout(TIMEOUT, coming).await {
                Ok(change) => change,
                Err(_) => panic!("{at}: the server reported no change in {}", self.revision().as_str()),
            }
        }
    }

    /// Lists what the server offers to this client, as text.
    ///
    /// # Panics
    ///
    /// A list could not be fetched.
    pub async fn catalogue(&self) -> CatalogueSnapshot {
        CatalogueSnapshot::seen_by(&self.connection).await
    }

    /// Closes the connection, and checks that every scripted answer was used.
    ///
    /// # Panics
    ///
    /// An answer was not used, or an input request had no answer.
    #[track_caller]
    pub fn finish(self) -> impl Future<Output = ()> {
        self.finish_at(Location::caller())
    }

    pub(crate) async fn finish_at(self, at: &Location<'_>) {
        self.check(at);
        self.connection.close().await;
        if let Some(unused) = self.run.unused() {
            self.run.lock().faults.push(unused);
            self.check(at);
        }
    }

    /// Panics if the conversation differs from the script, with the place in the test.
    fn check(&self, at: &Location<'_>) {
        let faults = take(&mut self.run.lock().faults);
        if !faults.is_empty() {
            panic!("{at}: in {}: {}", self.revision().as_str(), faults.join("; "));
        }
    }
}

impl Deref for TestConnection {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl Drop for TestConnection {
    #[expect(clippy::print_stderr, reason = "a test that fails says in which revision, beside its own words")]
    fn drop(&mut self) {
        self.listening.iter().for_each(JoinHandle::abort);
        if panicking() {
            eprintln!("the test failed in {}", self.revision().as_str());
            self.run.lock().faults.iter().for_each(|fault| eprintln!("note: {fault}"));
        }
    }
}

async fn listen(mut changes: Changes, run: Arc<ScriptRun>, arrived: Arc<Notify>) {
    while let Some(event) = changes.next().await {
        if let Event::Changed(change) = event {
            run.lock().changes.push_back(change);
            arrived.notify_one();
        }
    }
}
