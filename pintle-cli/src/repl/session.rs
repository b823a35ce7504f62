use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use pintle::{
    Connection,
    client::{Change, Event},
    types::schema::{LoggingLevel, Tool},
};
use tokio::{task::JoinHandle, time::timeout};

use super::{candidates, editor::Completions, help, line::Line, lists::CachedLists, words::LineWords};
use crate::{
    args::{EraArg, QuestionArgs, TargetArgs},
    connection::{QuestionSlot, SharedConnection},
    failure::Failure,
    forms::Questions,
    output::{Output, Text, Tone},
    targets::Endpoint,
    verbs::{self, Verb, describe_event, log_line},
};

/// How long the server has to complete a word.
const COMPLETION_TIMEOUT: Duration = Duration::from_secs(3);
/// The number of resources whose updates are shown.
const MAX_SUBSCRIPTIONS: usize = 100;

/// The connection that lines share, and what is known of its server.
pub(super) struct Session {
    endpoint: Endpoint,
    target: TargetArgs,
    questions: Questions,
    slot: QuestionSlot,
    open: Option<OpenSession>,
    lists: CachedLists,
    subscribed: Vec<String>,
    output: Output,
    notices: Arc<NoticeState>,
}

struct OpenSession {
    connection: Connection,
    /// Prints what the server notifies of.
    notices: JoinHandle<()>,
}

#[derive(Default)]
struct NoticeState {
    /// Whether a list has changed since it was fetched.
    has_changed: AtomicBool,
    /// Whether a verb prints the notifications itself.
    is_watched: AtomicBool,
}

impl Session {
    pub(super) async fn new(
        endpoint: Endpoint,
        target: TargetArgs,
        questions: QuestionArgs,
        output: &Output,
    ) -> Result<Self, Failure> {
        let questions = Questions::new(questions, &[], output).await?;
        let (slot, lists, output) = (QuestionSlot::default(), CachedLists::default(), output.clone());
        let (open, subscribed, notices) = (None, Vec::new(), Arc::default());
        Ok(Self { endpoint, target, questions, slot, open, lists, subscribed, output, notices })
    }

    /// Returns a name for the target.
    pub(super) fn label(&self) -> String {
        self.endpoint.label()
    }

    /// Connects, in place of the connection that is open.
    pub(super) async fn open(&mut self) -> Result<(), Failure> {
        let (endpoint, _) = Endpoint::take("repl", self.target.clone())?;
        let mut client = endpoint.client(&self.output);
        if self.output.verbosity() == 0 {
            let output = self.output.clone();
            client = client.log_level(LoggingLevel::Info).on_log(move |log| {
                output.note(notice(log_line(&log)));
            });
        }
        let client = self.questions.attach_shared(client, &self.slot);
        let connection = Connection::clone(&*endpoint.connect(&client, &self.output).await?);
        self.close().await;
        for uri in &self.subscribed {
            if let Err(error) = connection.subscribe(uri).await {
                self.output.failure(&endpoint.explain(&error));
            }
        }
        let task = show_notices(connection.clone(), self.notices.clone(), self.output.clone());
        self.open = Some(OpenSession { connection, notices: tokio::spawn(task) });
        self.endpoint = endpoint;
        Ok(())
    }

    pub(super) async fn close(&mut self) {
        self.lists = CachedLists::default();
        if let Some(OpenSession { connection, notices }) = self.open.take() {
            notices.abort();
            connection.close().await;
        }
    }

    /// Returns the line above the first prompt.
    pub(super) fn greeting(&self) -> Text {
        let mut text = Text::new();
        if let Some(open) = &self.open {
            let server = open.connection.server_info();
            let server = server.map(|info| format!("{} {}", info.name, info.version));
            text.add(server.as_deref().unwrap_or("connected")).add(", ").append(era(&open.connection));
        }
        text.add("; `help` lists the verbs, Ctrl-D leaves");
        text
    }

    /// Runs a line. A failure has the output that it is printed to.
    pub(super) async fn run(&mut self, line: Line) -> Result<(), (Failure, Output)> {
        let output = self.output.clone();
        let done = match line {
            Line::Nothing | Line::Exit => Ok(()),
            Line::Help => output.text(help),
            Line::Print(text) => output.text(|out| {
                out.block(text);
            }),
            Line::Era(None) => self.print_era(),
            Line::Era(Some(era)) => self.switch(era).await,
            Line::Subscribe(uri) => self.subscribe(uri).await,
            Line::Unsubscribe(uri) => self.unsubscribe(&uri).await,
            Line::Verb(line) => {
                let (verb, settings) = *line;
                let output = output.with_settings(settings);
                return self.run_verb(verb, &output).await.map_err(|failure| (failure, output));
            }
        };
        done.map_err(|failure| (failure, output))
    }

    async fn run_verb(&mut self, mut verb: Verb, output: &Output) -> Result<(), Failure> {
        let connection = self.connection().await?;
        let is_list = matches!(verb, Verb::Ls(_));
        let is_watched = matches!(verb, Verb::Watch(_));
        let target = verb.target_mut().ok_or_else(|| Failure::internal(&"a verb without a target"))?;
        if let Some(option) = target.connect.given() {
            let message = format!("`{option}` is for a new connection, and this one is open: leave it out");
            let next = if option == "--era" { "era session" } else { "help" };
            return Err(Failure::usage(message, next));
        }
        if target.words.iter().any(|word| word == "-" || word.ends_with("@-")) {
            let message = "standard input has the lines of `repl`: write a file instead of `-`";
            return Err(Failure::usage(message, "help call"));
        }
        target.words.splice(0..0, self.target.words.iter().cloned());
        target.connect = self.target.connect.clone();
        target.connect.open = Some(SharedConnection { connection, questions: self.slot.clone() });
        if is_list {
            self.lists = CachedLists::default();
        }
        let _watched = is_watched.then(|| Watched::new(&self.notices));
        verbs::run(verb, output).await
    }

    /// Returns the connection. One that was closed is opened again.
    async fn connection(&mut self) -> Result<Connection, Failure> {
        if let Some(open) = &self.open
            && !open.notices.is_finished()
        {
            return Ok(open.connection.clone());
        }
        self.open().await?;
        self.output.note("connected again");
        let open = self.open.as_ref().map(|open| open.connection.clone());
        open.ok_or_else(|| Failure::internal(&"no connection"))
    }

    fn print_era(&self) -> Result<(), Failure> {
        let era =
            self.open.as_ref().map_or_else(|| Text::from("not connected"), |open| era(&open.connection));
        self.output.text(|text| {
            text.append(era).end();
        })
    }

    /// Connects again in another era.
    async fn switch(&mut self, era: EraArg) -> Result<(), Failure> {
        let before = std::mem::replace(&mut self.target.connect.era, era);
        if let Err(failure) = self.open().await {
            // The connection in the other era stays open.
            self.target.connect.era = before;
            return Err(failure);
        }
        self.print_era()
    }

    async fn subscribe(&mut self, uri: String) -> Result<(), Failure> {
        if self.subscribed.len() >= MAX_SUBSCRIPTIONS {
            let message = format!("updates of {MAX_SUBSCRIPTIONS} resources are already shown");
            return Err(Failure::usage(message, format!("unsubscribe {}", self.subscribed[0])));
        }
        let connection = self.connection().await?;
        connection.subscribe(&uri).await.map_err(|error| self.endpoint.explain(&error))?;
        if !self.subscribed.contains(&uri) {
            self.subscribed.push(uri);
        }
        Ok(())
    }

    async fn unsubscribe(&mut self, uri: &str) -> Result<(), Failure> {
        self.subscribed.retain(|known| known != uri);
        let connection = self.connection().await?;
        connection.unsubscribe(uri).await.map_err(|error| self.endpoint.explain(&error))
    }

    /// Returns the words that complete the one before a position of a line.
    pub(super) async fn complete(&mut self, line: &str, position: usize) -> Completions {
        if self.notices.has_changed.swap(false, Ordering::Relaxed) {
            self.lists = CachedLists::default();
        }
        let connection = self.open.as_ref().map(|open| &open.connection);
        let found = candidates::complete(line, position, &mut self.lists, connection, &self.endpoint);
        timeout(COMPLETION_TIMEOUT, found).await.unwrap_or_default()
    }

    /// Returns the tool that a line calls with arguments, if it is known in time.
    pub(super) async fn called_tool(&mut self, line: &str) -> Option<Tool> {
        let words = LineWords::split(line).words;
        let words: Vec<_> = words.iter().map(|word| word.text.as_str()).collect();
        let ["call", rest @ ..] = words.as_slice() else { return None };
        if rest.len() < 2 {
            return None;
        }
        let connection = &self.open.as_ref()?.connection;
        let tools = timeout(COMPLETION_TIMEOUT, self.lists.tools(connection)).await.ok()?;
        tools.iter().find(|tool| rest.contains(&tool.name.as_str())).cloned()
    }
}

/// The time during which a verb prints notifications itself.
struct Watched(Arc<NoticeState>);

impl Watched {
    fn new(state: &Arc<NoticeState>) -> Self {
        state.is_watched.store(true, Ordering::Relaxed);
        Self(state.clone())
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.0.is_watched.store(false, Ordering::Relaxed);
    }
}

/// Prints the notifications of a server until its connection is closed.
async fn show_notices(connection: Connection, state: Arc<NoticeState>, output: Output) {
    match connection.changes().await {
        Ok(mut changes) => {
            while let Some(event) = changes.next().await {
                if !matches!(event, Event::Changed(Change::Resource(_))) {
                    state.has_changed.store(true, Ordering::Relaxed);
                }
                if !state.is_watched.load(Ordering::Relaxed) {
                    output.note(notice(Text::from(describe_event(&event).1)));
                }
            }
        }
        // A server without notifications has none to show.
        Err(error) => output.detail(format_args!("there are no notifications: {error}")),
    }
    let ended = connection.wait().await;
    output.note(notice(Text::from(format_args!(
        "the connection is closed: {ended}; the next verb opens it again"
    ))));
}

fn notice(text: Text) -> Text {
    let mut line = Text::new();
    line.tone(Tone::Faint, "* ").append(text);
    line
}

/// Formats the era of a connection: `2025-11-25, with a session`.
fn era(connection: &Connection) -> Text {
    let revision = connection.revision();
    let era = if connection.facts().keeps_session { "with a session" } else { "without a session" };
    Text::from(format_args!("{}, {era}", revision.as_str()))
}
