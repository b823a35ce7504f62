//! Providers that have to read lists before it is known where a link leads.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::time::{Instant, timeout};

use super::snapshot::Snapshot;
use crate::{
    lock::lock,
    runtime::join_all,
    server::{Cx, Target},
};

/// How long a result or a question waits for lists.
const MAX_READ: Duration = Duration::from_secs(5);
/// How long a provider is not asked again that could not tell what it lists. Its links are judged by their URIs meanwhile.
const PAUSE: Duration = Duration::from_secs(30);

/// The providers, by the numbers of their server and their own.
#[derive(Default)]
pub(crate) struct UnreadLists(BTreeSet<(usize, usize)>);

impl UnreadLists {
    /// Adds providers of a server.
    pub(crate) fn extend(&mut self, server: usize, providers: impl IntoIterator<Item = usize>) {
        self.0.extend(providers.into_iter().map(|provider| (server, provider)));
    }

    fn of(&self, server: usize) -> impl Iterator<Item = usize> {
        self.0.range((server, 0)..=(server, usize::MAX)).map(|(_, provider)| *provider)
    }
}

/// The time of the last attempt after which a provider could not tell what it lists. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct FailedRead(Arc<Mutex<Option<Instant>>>);

impl FailedRead {
    fn is_recent(&self) -> bool {
        lock(&self.0).is_some_and(|failed| failed.elapsed() < PAUSE)
    }

    fn note(&self) {
        *lock(&self.0) = Some(Instant::now());
    }
}

/// Returns what a function makes of links to resources of these servers. If that depends on lists that have to be read first, they are
/// read, once and within a time, and it is what the function returns then.
pub(crate) async fn once_read<T>(cx: &Cx, servers: &[&Snapshot], judge: impl Fn(&mut UnreadLists) -> T) -> T {
    let mut unread = UnreadLists::default();
    let judged = judge(&mut unread);
    unread.0.retain(|(server, provider)| {
        let known = servers.get(*server).and_then(|server| server.providers.get(*provider));
        known.is_some_and(|known| !known.failed_read.is_recent())
    });
    if unread.0.is_empty() {
        return judged;
    }
    drop(judged);
    let any = Target::Resource("".into());
    let reading = servers.iter().enumerate().map(async |(at, server)| {
        server.providers.refresh(cx, &any, unread.of(at)).await;
    });
    // Boxed, because few results need it. Whether it failed is known by what is still unread.
    let _ = timeout(MAX_READ, Box::pin(join_all(reading))).await;
    let mut left = UnreadLists::default();
    let judged = judge(&mut left);
    for (server, provider) in left.0.intersection(&unread.0) {
        if let Some(known) = servers.get(*server).and_then(|server| server.providers.get(*provider)) {
            known.failed_read.note();
        }
    }
    judged
}
