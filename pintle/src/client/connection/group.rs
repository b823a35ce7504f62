use std::collections::BTreeMap;

use pintle_types::schema::{CallToolResult, GetPromptResult, Prompt, Tool};
use serde::Serialize;
use tokio::task::JoinSet;

use super::{Connection, call::Call};
use crate::{Error, Result};

/// Several servers as one: the names of what they offer begin with the name that each goes by here.
///
/// ```
/// use pintle::{Client, Server, client::Group, server::tool};
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> pintle::Result<()> {
/// let client = Client::new("demo", "0.1.0");
/// let git = Server::new("git", "1.0.0").tool(tool("status", || async { "clean" }));
/// let files = Server::new("files", "1.0.0").tool(tool("status", || async { "full" }));
///
/// let mut group = Group::new();
/// group.add("git", client.connect(git.in_process()?).await?)?;
/// group.add("files", client.connect(files.in_process()?).await?)?;
/// for tool in &group.tools().await.items {
///     println!("{}", tool.name); // `files.status`, `git.status`
/// }
/// let status = group.call_tool("git.status", json!({})).await?;
/// assert_eq!(status.text(), "clean");
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Group {
    members: BTreeMap<String, Connection>,
    separator: String,
}

/// What all members of a group offer, and which could not be asked.
#[non_exhaustive]
#[derive(Debug)]
pub struct Listing<T> {
    /// By member; within a member in its own order. Names have their member's name in front.
    pub items: Vec<T>,
    /// The members that could not be asked, and why.
    pub failed: Vec<(String, Error)>,
}

impl Default for Group {
    fn default() -> Self {
        Self::new()
    }
}

impl Group {
    /// A group without members, whose names are joined by a dot.
    pub fn new() -> Self {
        Self { members: BTreeMap::new(), separator: ".".into() }
    }

    /// Joins names by something else, such as `__`.
    ///
    /// # Errors
    ///
    /// It is empty, or a member's name already has it inside.
    pub fn separator(mut self, separator: impl Into<String>) -> Result<Self> {
        self.separator = separator.into();
        if self.separator.is_empty() {
            return Err(Error::misuse("the separator is empty: names could not be told apart"));
        }
        for name in self.members.keys() {
            self.check(name)?;
        }
        Ok(self)
    }

    /// Adds a server, under a name of your choice.
    ///
    /// # Errors
    ///
    /// The name is taken, or empty, or could be mistaken for another together with what follows it.
    pub fn add(&mut self, name: impl Into<String>, connection: Connection) -> Result<()> {
        let name = name.into();
        self.check(&name)?;
        if self.members.contains_key(&name) {
            return Err(Error::Misuse(format!(
                "the group has a member `{name}` already: choose another name"
            )));
        }
        self.members.insert(name, connection);
        Ok(())
    }

    /// Takes a server out. Its connection stays open as long as somebody holds it.
    pub fn remove(&mut self, name: &str) -> Option<Connection> {
        self.members.remove(name)
    }

    /// One of the servers.
    pub fn member(&self, name: &str) -> Option<&Connection> {
        self.members.get(name)
    }

    /// The names of the servers, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.members.keys().map(String::as_str)
    }

    /// The tools of all servers. One that cannot be asked does not keep back the others.
    pub async fn tools(&self) -> Listing<Tool> {
        let mut listing = self.each(|server| async move { server.tools().await }).await;
        for (member, tool) in &mut listing.0 {
            tool.name = self.join(member, &tool.name);
        }
        listing.into()
    }

    /// The prompts of all servers. One that cannot be asked does not keep back the others.
    pub async fn prompts(&self) -> Listing<Prompt> {
        let mut listing = self.each(|server| async move { server.prompts().await }).await;
        for (member, prompt) in &mut listing.0 {
            prompt.name = self.join(member, &prompt.name);
        }
        listing.into()
    }

    /// Calls a tool by its name in the group.
    ///
    /// # Errors
    ///
    /// There is no such member; else as [`Connection::call_tool`].
    pub async fn call_tool(&self, name: &str, arguments: impl Serialize) -> Result<CallToolResult> {
        self.call(name)?.args(arguments).send().await
    }

    /// A call of a tool by its name in the group, to be put together and sent.
    ///
    /// # Errors
    ///
    /// There is no such member.
    pub fn call(&self, name: &str) -> Result<Call<'_>> {
        let (server, name) = self.route(name)?;
        Ok(server.call(name))
    }

    /// A prompt by its name in the group.
    ///
    /// # Errors
    ///
    /// There is no such member; else as [`Connection::get_prompt`].
    pub async fn get_prompt(&self, name: &str, arguments: impl Serialize) -> Result<GetPromptResult> {
        let (server, name) = self.route(name)?;
        server.get_prompt(name, arguments).await
    }

    /// The server that a name of the group leads to, and the name that the server itself uses.
    ///
    /// # Errors
    ///
    /// There is no such member.
    pub fn route<'a>(&self, name: &'a str) -> Result<(&Connection, &'a str)> {
        let routed = name.split_once(self.separator.as_str());
        let routed = routed.and_then(|(member, rest)| Some((self.members.get(member)?, rest)));
        routed.ok_or_else(|| {
            let members: Vec<&str> = self.names().collect();
            Error::Misuse(format!(
                "no member of the group has `{name}`: names begin with one of `{}` and `{}`",
                members.join("`, `"),
                self.separator
            ))
        })
    }

    fn join(&self, member: &str, name: &str) -> String {
        [member, &self.separator, name].concat()
    }

    /// A name that holds the separator, or its beginning at the end, would make two names of one.
    fn check(&self, name: &str) -> Result<()> {
        let joined = self.join(name, "");
        if name.is_empty() || joined.find(&self.separator) != Some(name.len()) {
            return Err(Error::Misuse(format!(
                "`{name}` cannot be a member's name: it is empty, or runs into the separator `{}`",
                self.separator
            )));
        }
        Ok(())
    }

    async fn each<T, F, Fut>(&self, ask: F) -> (Vec<(String, T)>, Vec<(String, Error)>)
    where
        T: Send + 'static,
        F: Fn(Connection) -> Fut,
        Fut: Future<Output = Result<Vec<T>>> + Send + 'static,
    {
        let mut asking = JoinSet::new();
        for (name, server) in &self.members {
            let (name, answer) = (name.clone(), ask(server.clone()));
            asking.spawn(async move { (name, answer.await) });
        }
        let mut answers = BTreeMap::new();
        let mut failed = Vec::new();
        while let Some(answered) = asking.join_next().await {
            match answered {
                Ok((name, Ok(items))) => drop(answers.insert(name, items)),
                Ok((name, Err(error))) => failed.push((name, error)),
                Err(_) => {}
            }
        }
        failed.sort_by(|(one, _), (other, _)| one.cmp(other));
        let items = answers.into_iter().flat_map(|(name, items)| {
            let named = move |item| (name.clone(), item);
            items.into_iter().map(named)
        });
        (items.collect(), failed)
    }
}

impl<T> From<(Vec<(String, T)>, Vec<(String, Error)>)> for Listing<T> {
    fn from((items, failed): (Vec<(String, T)>, Vec<(String, Error)>)) -> Self {
        Self { items: items.into_iter().map(|(_, item)| item).collect(), failed }
    }
}
