use std::{collections::HashSet, ops::Deref};

use pintle::{
    Connection, Error, Result,
    types::schema::{Prompt, Resource, ResourceTemplate, ServerCapabilities, Tool},
};
use tokio::task::JoinSet;

use super::{Group, lock};

/// The items that the members of a group offer, and the members that could not be listed.
#[non_exhaustive]
#[derive(Debug)]
pub struct Listing<T> {
    /// The items, by member; within a member in its own order.
    pub items: Vec<Listed<T>>,
    /// The members that could not be listed, with the reason.
    pub failed: Vec<(String, Error)>,
    /// The members that could be.
    listed: Vec<String>,
}

/// An item that a member of a group offers.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct Listed<T> {
    /// The member.
    pub member: String,
    /// The item. A tool or a prompt has its name in the group.
    pub item: T,
    /// The member's own name for the item, or its URI.
    pub own_name: String,
}

impl<T> Listing<T> {
    /// The items, without their members.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.items.iter().map(|listed| &listed.item)
    }
}

impl<T> Deref for Listed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.item
    }
}

impl Group {
    /// Lists the tools of all members. One that cannot be listed does not affect the others.
    pub async fn tools(&self) -> Listing<Tool> {
        let listed = |can: &ServerCapabilities| can.tools.is_some();
        let mut listing =
            self.list(listed, |server| async move { server.tools().await }, |tool| &tool.name).await;
        let allowed = |member: &str, tool: &str| {
            let members = lock(&self.inner.members);
            members.get(member).is_some_and(|found| found.tools.allows(tool))
        };
        listing.items.retain(|tool| allowed(&tool.member, &tool.own_name));
        let mut table = lock(&self.inner.tools);
        self.retain_members(&mut listing);
        table.update(&self.inner.naming, own_names(&listing));
        listing.rename(|tool, own| table.name(&tool.member, own), |tool, name| tool.name = name);
        listing
    }

    /// Lists the prompts of all members. One that cannot be listed does not affect the others.
    pub async fn prompts(&self) -> Listing<Prompt> {
        let listed = |can: &ServerCapabilities| can.prompts.is_some();
        let mut listing =
            self.list(listed, |server| async move { server.prompts().await }, |prompt| &prompt.name).await;
        let mut table = lock(&self.inner.prompts);
        self.retain_members(&mut listing);
        table.update(&self.inner.naming, own_names(&listing));
        listing.rename(|prompt, own| table.name(&prompt.member, own), |prompt, name| prompt.name = name);
        listing
    }

    /// Lists the resources of all members, with the URIs that [`read_resource`](Self::read_resource) takes.
    pub async fn resources(&self) -> Listing<Resource> {
        let listed = |can: &ServerCapabilities| can.resources.is_some();
        self.list(listed, |server| async move { server.resources().await }, |resource| &resource.uri).await
    }

    /// Lists the resource templates of all members.
    pub async fn resource_templates(&self) -> Listing<ResourceTemplate> {
        let listed = |can: &ServerCapabilities| can.resources.is_some();
        self.list(
            listed,
            |server| async move { server.resource_templates().await },
            |template| &template.uri_template,
        )
        .await
    }
}

impl Group {
    /// Leaves out members that were removed meanwhile. With the table locked: removing one from it comes later then.
    fn retain_members<T>(&self, listing: &mut Listing<T>) {
        let members = lock(&self.inner.members);
        listing.items.retain(|listed| members.contains_key(&listed.member));
        listing.listed.retain(|member| members.contains_key(member));
    }

    /// Lists something of all members at once.
    async fn list<T, Fut>(
        &self,
        offered: impl Fn(&ServerCapabilities) -> bool + Copy + Send + Sync + 'static,
        list: impl Fn(Connection) -> Fut + Copy + Send + Sync + 'static,
        own_name: impl Fn(&T) -> &String,
    ) -> Listing<T>
    where
        T: Send + 'static,
        Fut: Future<Output = Result<Vec<T>>> + Send,
    {
        let mut listing = JoinSet::new();
        for (name, member) in &*lock(&self.inner.members) {
            let (name, connection) = (name.clone(), member.connection());
            listing.spawn(async move {
                let listed = async {
                    let connection = connection.await?;
                    let can = connection.capabilities();
                    // One that states nothing is asked.
                    if !offered(&can) && can != ServerCapabilities::default() {
                        return Ok(Vec::new());
                    }
                    list(connection).await
                };
                (name, listed.await)
            });
        }
        let mut answers = Vec::new();
        while let Some(answer) = listing.join_next().await {
            // A listing that panicked has been reported by the hook.
            answers.extend(answer.ok());
        }
        answers.sort_by(|(one, _), (other, _)| one.cmp(other));
        let mut listing = Listing { items: Vec::new(), failed: Vec::new(), listed: Vec::new() };
        for (member, answer) in answers {
            let items = match answer {
                Ok(items) => items,
                Err(error) => {
                    listing.failed.push((member, error));
                    continue;
                }
            };
            let mut seen = HashSet::new();
            for item in items {
                let own_name = own_name(&item).clone();
                if seen.insert(own_name.clone()) {
                    listing.items.push(Listed { member: member.clone(), item, own_name });
                } else {
                    tracing::warn!(
                        member,
                        name = own_name,
                        "a server lists the same twice; the second is ignored"
                    );
                }
            }
            listing.listed.push(member);
        }
        listing
    }
}

impl<T> Listing<T> {
    /// Gives the items their names in the group. Those without one are left out.
    fn rename(&mut self, name: impl Fn(&Listed<T>, &str) -> Option<String>, set: impl Fn(&mut T, String)) {
        self.items.retain_mut(|listed| match name(listed, &listed.own_name) {
            Some(name) => {
                set(&mut listed.item, name);
                true
            }
            None => false,
        });
    }
}

/// The names that each member has listed, none included.
fn own_names<T>(listing: &Listing<T>) -> Vec<(String, Vec<String>)> {
    let names = |member: &String| {
        let of_member = listing.items.iter().filter(|listed| listed.member == *member);
        (member.clone(), of_member.map(|listed| listed.own_name.clone()).collect())
    };
    listing.listed.iter().map(names).collect()
}
