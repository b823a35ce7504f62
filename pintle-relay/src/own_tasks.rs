//! The tasks that a relay has itself: calls of clients of one era whose server behind is of the other.
//!
//! The relay detaches the future of the relayed call, as a tool with `cx.detach()` does, and `ProvidedTasks` runs it. The future goes on as it
//! would for a client without tasks: it polls the task behind (`pairing/polled_task.rs`), or waits for its result (`tasks/session.rs`), asks
//! its questions, and cancels it when it is dropped. A client of the extension gets its task once the server behind has created one, a client of
//! a session at once. The relay answers `tasks/*` for these ids before it forwards anything; the server in front gives them addresses as it
//! does with those of any provider.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use pintle::{
    forward::Downstream,
    proto::TaskKind,
    server::{Cx, ListKind, Outcome},
    types::{
        JsonObject, RawObject,
        method::{self, tasks_extension},
        schema::{ServerCapabilities, TaskSupport},
    },
};
use pintle_tasks::{ProvidedTasks, Tasks, requested_ttl};
use serde_json::{json, value::to_raw_value};

use super::{relay::Relay, upstream::link::RelayLink};

/// The tasks of a relay, from when there is the first.
#[derive(Debug, Default)]
pub(super) struct OwnTasks(OnceLock<Arc<ProvidedTasks>>);

impl OwnTasks {
    fn get(&self) -> Option<&Arc<ProvidedTasks>> {
        self.0.get()
    }
}

/// The task that the client of a session requests a call to be.
pub(super) struct RequestedTask {
    pub(super) ttl: Option<Duration>,
}

impl RequestedTask {
    /// Returns that of a call; `None` if it is to be no task, or the server behind has no tasks of the extension.
    pub(super) fn of(cx: &Cx, behind: &RelayLink) -> Option<Self> {
        if !behind.has_task_extension() || cx.method() != method::TOOLS_CALL {
            return None;
        }
        Some(Self { ttl: requested_ttl(cx)? })
    }
}

impl Relay {
    /// Sets the tasks that a client of one era gets if the server behind is of the other: their store, their lifetime and their limits.
    /// Without this they are kept in memory as those of [`Tasks::new`] are. If the server that the relay is a part of has
    /// [`Tasks`] itself, those are used.
    ///
    /// The first ones count. With a store that outlives the process, the server needs keys that do so too:
    /// [`Server::state_keys`](pintle::Server::state_keys).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> pintle::Result<()> {
    /// use std::time::Duration;
    /// use pintle::{Client, Server};
    /// use pintle_relay::Relay;
    /// use pintle_tasks::Tasks;
    ///
    /// let dice = Server::new("dice", "1.0.0").with(Tasks::new());
    /// let behind = Client::new("front", "1.0.0").connect(dice.in_process()?).await?;
    /// let relay = Relay::new(behind).tasks(Tasks::new().max_ttl(Duration::from_secs(600)));
    /// # let _ = relay;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn tasks(self, tasks: Tasks) -> Self {
        self.inner.tasks.0.get_or_init(|| self.provided(tasks));
        self
    }

    fn own_tasks(&self) -> &Arc<ProvidedTasks> {
        self.inner.tasks.0.get_or_init(|| self.provided(Tasks::new()))
    }

    fn provided(&self, tasks: Tasks) -> Arc<ProvidedTasks> {
        let attached = Arc::downgrade(self.inner.upstream.attached());
        Arc::new(ProvidedTasks::new(tasks, move |notice| {
            if let Some(attached) = attached.upgrade() {
                attached.tell_of_own_task(&notice);
            }
        }))
    }

    /// Has a call go on as a task of the server, or of the relay, that is kept for `ttl` if it is one of the relay. Returns whether it does.
    pub(super) async fn detach(&self, cx: &Cx, ttl: Option<Duration>) -> bool {
        if cx.is_detached() {
            return true;
        }
        if !self.options.answers_for_tasks {
            return false;
        }
        if cx.detach().await {
            return true;
        }
        let tasks = self.own_tasks().clone();
        Downstream::of(cx).detach(move |call| async move { tasks.adopt(call, ttl).await }).await
    }

    /// Answers a request for a task, or for the list of tasks.
    pub(super) async fn handle_task_request(&self, cx: Cx) -> Outcome {
        // Its tasks are those of the outermost server.
        let outermost = Downstream::of(&cx).outermost();
        let own = match self.inner.tasks.get() {
            _ if self.has_foreign_tasks(&cx) => Some(self.own_tasks()),
            Some(own) if own.has(&outermost).await => Some(own),
            _ => None,
        };
        match own.cloned() {
            Some(own) => {
                // What its call returned has passed the mounts.
                Downstream::of(&cx).set_outermost_result();
                own.handle(outermost).await
            }
            None => self.forward(cx).await,
        }
    }

    /// Returns the tasks of the relay itself that a subscription names and its client may watch.
    pub(super) fn granted_own_tasks(&self, cx: &Cx) -> Vec<String> {
        self.inner.tasks.get().map(|own| own.granted(cx)).unwrap_or_default()
    }

    /// Whether a client has tasks of one kind, and the server behind of the other.
    fn has_foreign_tasks(&self, cx: &Cx) -> bool {
        let behind = self.inner.upstream.primary();
        match cx.facts().tasks {
            TaskKind::Protocol => {
                behind.has_task_extension()
                    && !self.inner.upstream.is_paired(&cx.scope(), self.options.links.sharing)
            }
            TaskKind::Extension => behind.has_session_tasks(),
            TaskKind::None => false,
        }
    }

    /// Returns whether the client of a call follows tasks of the extension, and the server behind has tasks of a session.
    pub(super) fn follows_tasks(&self, cx: &Cx, behind: &RelayLink) -> bool {
        behind.has_session_tasks()
            && self.options.answers_for_tasks
            && cx.method() == method::TOOLS_CALL
            && cx.extension(tasks_extension::NAME).is_some()
    }

    /// Returns whether the server behind lists the tool of a call as one that may run as a task.
    pub(super) async fn supports_tasks(&self, cx: &Cx) -> bool {
        let Ok(Some(name)) = cx.params().decode_member::<String>("name") else { return false };
        let known = || {
            let of_client = self.inner.upstream.last_catalogue(&cx.scope(), self.options.links.sharing);
            let of_client = of_client.and_then(|catalogue| catalogue.task_support(&name));
            of_client.or_else(|| self.inner.known.task_support(&name))
        };
        let mut support = known();
        if support.is_none() {
            // Nobody has asked for the list yet. If it cannot be read, the call fails with the reason.
            let _ = self.refresh(cx, ListKind::Tools).await;
            support = known();
        }
        matches!(support.flatten(), Some(TaskSupport::Optional | TaskSupport::Required))
    }

    /// Declares the tasks of the other era, if the server behind has some.
    pub(super) fn declare_tasks(&self, capabilities: &mut ServerCapabilities) {
        let behind = self.inner.upstream.primary();
        if behind.has_session_tasks() {
            let extensions = capabilities.extensions.get_or_insert_default();
            extensions.entry(tasks_extension::NAME).or_insert_with(|| JsonObject::new().into());
        }
        match self.inner.upstream.session_tasks(self.options.links.sharing) {
            Some(of_sessions) => capabilities.tasks = of_sessions,
            None if behind.has_task_extension() => capabilities.tasks = Some(Tasks::session_capability()),
            None => {}
        }
    }

    /// Lists tools as ones that may run as tasks, for a client of a session whose calls may become tasks of the relay.
    pub(super) fn offer_tasks(&self, cx: &Cx, list: ListKind, entries: &mut [RawObject]) {
        if list == ListKind::Tools
            && cx.facts().tasks == TaskKind::Protocol
            && self.has_foreign_tasks(cx)
            && let Ok(execution) = to_raw_value(&json!({ "taskSupport": TaskSupport::Optional }))
        {
            entries.iter_mut().for_each(|tool| *tool = tool.with("execution", &execution));
        }
    }
}
