use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use pintle::{
    client::Change,
    forward::Audience,
    server::{Notice, ProviderChanges},
};

use crate::lock::lock;

/// The servers that a relay is a part of.
#[derive(Default)]
pub(crate) struct AttachedServers {
    servers: Mutex<Vec<ProviderChanges>>,
    listening: AtomicBool,
}

impl AttachedServers {
    /// Adds a server. One that is there already is not notified twice.
    pub(crate) fn add(&self, changes: ProviderChanges) {
        let mut servers = lock(&self.servers);
        servers.retain(|known| known.is_connected() && !known.is_same(&changes));
        servers.push(changes);
    }

    /// Returns whether this is the first time.
    pub(crate) fn begin(&self) -> bool {
        !self.listening.swap(true, Ordering::AcqRel)
    }

    /// Notifies the clients of all servers.
    pub(crate) fn publish_all(&self, changes: &[Change]) {
        let servers = lock(&self.servers).clone();
        for (server, change) in servers.iter().flat_map(|server| changes.iter().map(move |it| (server, it))) {
            server.publish(change);
        }
    }

    /// Sends the clients of all servers a notification about a task, if they watch it.
    pub(crate) fn tell(&self, notice: &Notice) {
        let servers = lock(&self.servers).clone();
        servers.iter().for_each(|server| server.tell(notice.clone()));
    }

    /// Sends the clients of all servers a notification about a task of the relay itself, if they watch it. Its result has passed the
    /// mounts.
    pub(crate) fn tell_of_own_task(&self, notice: &Notice) {
        let servers = lock(&self.servers).clone();
        let notice = Arc::new(notice.clone());
        servers.iter().for_each(|server| server.tell_outermost(&notice));
    }

    /// Notifies the selected clients of all servers.
    pub(crate) fn publish_to(&self, changes: &[Change], audience: &Audience<'_>) {
        let servers = lock(&self.servers).clone();
        for (server, change) in servers.iter().flat_map(|server| changes.iter().map(move |it| (server, it))) {
            server.publish_to(change, audience);
        }
    }
}
