//! Several servers as one.

mod changes;
mod listing;
mod member;
mod naming;
mod redial;

use std::{
    collections::BTreeMap,
    fmt,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use pintle::{
    Client, Connection, Error, Result,
    client::Call,
    types::schema::{CallToolResult, GetPromptResult, ReadResourceResult},
};
use serde::Serialize;
use tokio::task::JoinSet;

use crate::config::{ConfigFile, ServerEntry, ToolFilter, Variables};
use changes::EventHub;
use member::{Dial, Member};
use naming::NameTable;

pub use changes::{GroupChanges, GroupEvent};
pub use listing::{Listed, Listing};
pub use member::MemberState;
pub use naming::Naming;
pub use redial::Redial;

/// The maximum number of members.
const MAX_MEMBERS: usize = 256;

/// Several servers as one. A clone is another handle to the same group.
///
/// Tools and prompts have names that every model API accepts, made from the name of the server and their own: see [`Naming`]. A
/// server that cannot be reached does not affect the others; it is connected to again with growing delays ([`Redial`]).
///
/// ```
/// use pintle::{Client, Server, server::tool};
/// use pintle_host::Group;
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> pintle::Result<()> {
/// let client = Client::new("demo", "0.1.0");
/// let git = Server::new("git", "1.0.0").tool(tool("status", || async { "clean" }));
/// let files = Server::new("files", "1.0.0").tool(tool("status", || async { "full" }));
///
/// let group = Group::new();
/// group.add("git", client.connect(git.in_process()?).await?)?;
/// group.add("files", client.connect(files.in_process()?).await?)?;
/// for tool in group.tools().await.iter() {
///     println!("{}", tool.name); // `files__status`, `git__status`
/// }
/// let status = group.call_tool("git__status", json!({})).await?;
/// assert_eq!(status.text(), "clean");
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Group {
    inner: Arc<GroupInner>,
}

struct GroupInner {
    members: Mutex<BTreeMap<String, Arc<Member>>>,
    tools: Mutex<NameTable>,
    prompts: Mutex<NameTable>,
    hub: Arc<EventHub>,
    naming: Naming,
    redial: Redial,
}

/// The server that a name of a group leads to, from [`Group::route`].
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct Route {
    /// The name of the server in the group.
    pub member: String,
    /// The connection to it.
    pub connection: Connection,
    /// The server's own name for the tool.
    pub tool: String,
}

impl Route {
    /// A call of the tool, to be put together and sent.
    pub fn call(&self) -> Call<'_> {
        self.connection.call(self.tool.clone())
    }
}

impl Default for Group {
    fn default() -> Self {
        Self::new()
    }
}

impl Group {
    /// A group without members.
    pub fn new() -> Self {
        Self::with(Naming::default(), Redial::default())
    }

    /// A group with other names, or with other delays before a lost connection is opened again.
    pub fn with(naming: Naming, redial: Redial) -> Self {
        let inner = GroupInner {
            members: Mutex::default(),
            tools: Mutex::default(),
            prompts: Mutex::default(),
            hub: Arc::new(EventHub::new()),
            naming,
            redial,
        };
        Self { inner: Arc::new(inner) }
    }

    /// Connects to all servers of a configuration file that are enabled, with the variables of this process's environment.
    ///
    /// A server that cannot be connected to is a member all the same: [`members`](Self::members) has the reason.
    ///
    /// ```no_run
    /// # async fn example() -> pintle::Result<()> {
    /// use pintle::Client;
    /// use pintle_host::{Group, config::ConfigFile};
    ///
    /// let group = Group::open(&Client::new("my-host", "1.0.0"), &ConfigFile::read(".mcp.json")?).await?;
    /// for tool in group.tools().await.iter() {
    ///     println!("{}", tool.name);
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The file has more servers than a group can.
    pub async fn open(client: &Client, file: &ConfigFile) -> Result<Self> {
        let group = Self::new();
        group.add_file(client, file, &Variables::process())?;
        group.ready().await;
        Ok(group)
    }

    /// Adds all servers of a configuration file that are enabled and not of one project only. Connections are opened in the
    /// background: see [`ready`](Self::ready).
    ///
    /// # Errors
    ///
    /// A name is taken, or there are too many members. Those before it were added.
    pub fn add_file(&self, client: &Client, file: &ConfigFile, variables: &Variables) -> Result<()> {
        for entry in file.servers.iter().filter(|entry| entry.project.is_none()) {
            self.add_entry(client, entry, variables)?;
        }
        for error in &file.rejected {
            let Some(name) = &error.server else { continue };
            let reason = error.to_string();
            let fails = move || -> std::future::Ready<Result<Connection>> {
                std::future::ready(Err(Error::Misuse(reason.clone())))
            };
            self.add_dialled(name, fails)?;
        }
        Ok(())
    }

    /// Adds a server of a configuration file, unless it is disabled. Tools that its entry does not allow are neither listed nor
    /// called.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    pub fn add_entry(&self, client: &Client, entry: &ServerEntry, variables: &Variables) -> Result<()> {
        if !entry.enabled {
            return Ok(());
        }
        let shared = Arc::new((client.clone(), entry.clone(), variables.clone()));
        let dial = move || {
            let shared = shared.clone();
            async move { shared.1.connect(&shared.0, &shared.2).await }
        };
        self.insert(&entry.name, |name| self.dialled(name, dial, entry.tools.clone()))
    }

    /// Adds a server, under a name of your choice. When its connection is lost, it is reported and not opened again.
    ///
    /// # Errors
    ///
    /// The name is taken or empty, or there are 256 members.
    pub fn add(&self, name: &str, connection: Connection) -> Result<()> {
        self.insert(name, |name| Member::connected(name, connection, self.inner.hub.clone()))
    }

    /// Adds a server with a function that connects to it, which is called now and whenever the connection was lost.
    ///
    /// [`Error::Misuse`] is taken to be final: the function is not called again by itself.
    ///
    /// ```
    /// use pintle::{Client, Server, server::tool};
    /// use pintle_host::Group;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> pintle::Result<()> {
    /// let clock = Server::new("clock", "1.0.0").tool(tool("now", || async { "noon" }));
    /// let client = Client::new("demo", "0.1.0");
    ///
    /// let group = Group::new();
    /// group.add_dialled("clock", move || {
    ///     let (client, clock) = (client.clone(), clock.clone());
    ///     async move { client.connect(clock.in_process()?).await }
    /// })?;
    /// assert_eq!(group.call_tool("clock__now", ()).await?.text(), "noon");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    pub fn add_dialled<F, Fut>(&self, name: &str, dial: F) -> Result<()>
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Connection>> + Send + 'static,
    {
        self.insert(name, |name| self.dialled(name, dial, ToolFilter::default()))
    }

    fn dialled<F, Fut>(&self, name: String, dial: F, tools: ToolFilter) -> Member
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Connection>> + Send + 'static,
    {
        let dial: Dial = Box::new(move || Box::pin(dial()));
        Member::dialled(name, dial, self.inner.redial.clone(), self.inner.hub.clone(), tools)
    }

    fn insert(&self, name: &str, member: impl FnOnce(String) -> Member) -> Result<()> {
        let mut members = lock(&self.inner.members);
        if name.is_empty() {
            return Err(Error::Misuse("the name of a member is empty: choose one".to_owned()));
        }
        if members.contains_key(name) {
            let reason = format!("the group already has a member named `{name}`: choose another name");
            return Err(Error::Misuse(reason));
        }
        if members.len() >= MAX_MEMBERS {
            let reason =
                format!("the group already has {MAX_MEMBERS} members: remove one, or make another group");
            return Err(Error::Misuse(reason));
        }
        members.insert(name.to_owned(), Arc::new(member(name.to_owned())));
        Ok(())
    }

    /// Removes a server. Its connection stays open as long as another handle to it exists.
    pub fn remove(&self, name: &str) -> bool {
        let removed = lock(&self.inner.members).remove(name).is_some();
        if removed {
            lock(&self.inner.tools).remove(&self.inner.naming, name);
            lock(&self.inner.prompts).remove(&self.inner.naming, name);
        }
        removed
    }

    /// Waits until every member is connected, or could not be.
    pub async fn ready(&self) {
        let members: Vec<_> = lock(&self.inner.members).values().map(|member| member.connection()).collect();
        for opened in members {
            // Why one could not be is kept in its state.
            let _ = opened.await;
        }
    }

    /// The members and their states, by name.
    pub fn members(&self) -> BTreeMap<String, MemberState> {
        lock(&self.inner.members).iter().map(|(name, member)| (name.clone(), member.state())).collect()
    }

    /// The connection to a member. Waits while it is being opened.
    ///
    /// # Errors
    ///
    /// There is no such member, or it is not connected.
    pub async fn connection(&self, member: &str) -> Result<Connection> {
        self.member(member)?.connection().await
    }

    /// Connects to a member again now, without waiting for the next attempt.
    ///
    /// # Errors
    ///
    /// There is no such member.
    pub fn redial(&self, member: &str) -> Result<()> {
        self.member(member)?.redial();
        Ok(())
    }

    fn member(&self, name: &str) -> Result<Arc<Member>> {
        let members = lock(&self.inner.members);
        members.get(name).cloned().ok_or_else(|| {
            let names: Vec<&str> = members.keys().map(String::as_str).collect();
            Error::Misuse(format!("the group has no member `{name}`: it has `{}`", names.join("`, `")))
        })
    }

    /// The events of all members from now on, each with the name of its member.
    ///
    /// ```no_run
    /// # async fn example(group: pintle_host::Group) {
    /// use pintle::client::{Change, Event};
    /// use pintle_host::GroupEvent;
    ///
    /// let mut changes = group.changes();
    /// while let Some(event) = changes.next().await {
    ///     match event {
    ///         GroupEvent::Server { member, event: Event::Changed(Change::Tools) } => println!("new tools of {member}"),
    ///         GroupEvent::Closed { member, reason } => println!("{member} is gone: {reason}"),
    ///         _ => {}
    ///     }
    /// }
    /// # }
    /// ```
    pub fn changes(&self) -> GroupChanges {
        GroupChanges(self.inner.hub.listen())
    }

    /// Calls a tool by its name in the group.
    ///
    /// # Errors
    ///
    /// As [`route`](Self::route) and [`Connection::call_tool`].
    pub async fn call_tool(&self, name: &str, arguments: impl Serialize) -> Result<CallToolResult> {
        self.route(name).await?.call().args(arguments).send().await
    }

    /// The server that a tool's name leads to. The tools are listed if the name is unknown.
    ///
    /// ```no_run
    /// # async fn example(group: pintle_host::Group) -> pintle::Result<()> {
    /// let route = group.route("git__log").await?;
    /// let log = route.call().on_progress(|step| println!("{}", step.progress)).send().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// There is no such tool, or its server is not connected.
    pub async fn route(&self, name: &str) -> Result<Route> {
        let known = lock(&self.inner.tools).find(name);
        let known = match known {
            Some(known) => Some(known),
            None => {
                let failed = self.tools().await.failed;
                let known = lock(&self.inner.tools).find(name);
                if known.is_none() {
                    return Err(unknown("tool", name, lock(&self.inner.tools).similar(name), &failed));
                }
                known
            }
        };
        let (member, tool) = known.ok_or_else(|| unknown("tool", name, None, &[]))?;
        let connection = self.connection(&member).await?;
        Ok(Route { member, connection, tool })
    }

    /// Gets a prompt by its name in the group.
    ///
    /// # Errors
    ///
    /// There is no such prompt, or its server is not connected; else as [`Connection::get_prompt`].
    pub async fn get_prompt(&self, name: &str, arguments: impl Serialize) -> Result<GetPromptResult> {
        let known = lock(&self.inner.prompts).find(name);
        let (member, prompt) = match known {
            Some(known) => known,
            None => {
                let failed = self.prompts().await.failed;
                let prompts = lock(&self.inner.prompts);
                prompts.find(name).ok_or_else(|| unknown("prompt", name, prompts.similar(name), &failed))?
            }
        };
        self.connection(&member).await?.get_prompt(&prompt, arguments).await
    }

    /// Reads a resource of a member: two members may have the same URI.
    ///
    /// # Errors
    ///
    /// There is no such member, or it is not connected; else as [`Connection::read_resource`].
    pub async fn read_resource(&self, member: &str, uri: &str) -> Result<ReadResourceResult> {
        self.connection(member).await?.read_resource(uri).await
    }

    /// Subscribes to updates of a resource of a member, also after its connection was lost and opened again. They are events of
    /// [`changes`](Self::changes).
    ///
    /// # Errors
    ///
    /// There is no such member, it has 256 subscriptions, or it is not connected; else as [`Connection::subscribe`].
    pub async fn subscribe(&self, member: &str, uri: &str) -> Result<()> {
        let member = self.member(member)?;
        member.subscribe(uri)?;
        let subscribed = async { member.connection().await?.subscribe(uri).await };
        subscribed.await.inspect_err(|_| member.unsubscribe(uri))
    }

    /// Cancels [`subscribe`](Self::subscribe).
    ///
    /// # Errors
    ///
    /// There is no such member, or it is not connected; else as [`Connection::unsubscribe`].
    pub async fn unsubscribe(&self, member: &str, uri: &str) -> Result<()> {
        let member = self.member(member)?;
        member.unsubscribe(uri);
        member.connection().await?.unsubscribe(uri).await
    }

    /// Closes the connections to all members, and removes them.
    pub async fn close(&self) {
        let members = std::mem::take(&mut *lock(&self.inner.members));
        let mut closing = JoinSet::new();
        for member in members.values() {
            if let MemberState::Open(connection) = member.state() {
                closing.spawn(async move { connection.close().await });
            }
        }
        drop(members);
        while closing.join_next().await.is_some() {}
        self.inner.hub.close();
    }
}

fn unknown(kind: &str, name: &str, similar: Option<&str>, failed: &[(String, Error)]) -> Error {
    let mut reason = format!("the group has no {kind} `{name}`");
    if let Some(similar) = similar {
        reason.push_str(&format!(": did you mean `{similar}`?"));
    }
    for (member, error) in failed {
        reason.push_str(&format!("; the {kind}s of `{member}` could not be listed: {error}"));
    }
    Error::Misuse(reason)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for GroupInner {
    fn drop(&mut self) {
        self.hub.close();
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").field("members", &lock(&self.inner.members)).finish_non_exhaustive()
    }
}
