use std::{
    collections::VecDeque,
    ops::Deref,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use pintle::{
    forward::OwnedPrincipal,
    server::Scope,
    types::{
        RpcError,
        schema::{ClientCapabilities, Implementation},
    },
};
use tokio::{
    sync::Notify,
    time::{Instant, sleep, timeout_at},
};

use super::link::RelayLink;
use crate::link_state::{
    catalogue::LinkCatalogue,
    holders::{Exhausted, Holders},
    limits::{LinkLimits, LinkUse},
    sharing::LinkSharing,
};

/// The limit of connections of one relay for clients without a session.
const MAX_LINKS: usize = 64;
/// The limit of those of one principal, so that others find one. All anonymous clients are one; the local user is not limited.
const MAX_PRINCIPAL_LINKS: usize = MAX_LINKS / 4 * 3;
/// The limit of calls that wait for a connection.
const MAX_WAITING: usize = 256;
/// The limit of those of one principal.
const MAX_PRINCIPAL_WAITING: usize = MAX_WAITING / 4 * 3;
/// How long a call waits for a connection.
const MAX_WAIT: Duration = Duration::from_secs(30);
/// How long an unused connection is kept.
const IDLE: Duration = Duration::from_secs(300);
/// The delay, in milliseconds, after which a client is asked to call again.
pub(crate) const RETRY_AFTER_MS: u64 = 1000;

/// On whose behalf a connection is open.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct LinkKey {
    /// The principal. All anonymous clients are one, if they may share.
    pub(crate) principal: OwnedPrincipal,
    /// The declared capabilities, as JSON.
    capabilities: Box<str>,
    /// The name and version of a client that can be asked.
    client: Option<(Box<str>, Box<str>)>,
}

impl LinkKey {
    pub(crate) fn new(
        principal: OwnedPrincipal,
        capabilities: &ClientCapabilities,
        client: Option<&Implementation>,
    ) -> Result<Self, RpcError> {
        let can_be_asked = capabilities.elicitation.is_some()
            || capabilities.sampling.is_some()
            || capabilities.roots.is_some();
        let client = client.filter(|_| can_be_asked);
        let client = client.map(|client| (client.name.as_str().into(), client.version.as_str().into()));
        let printed = serde_json::to_string(capabilities);
        let capabilities = printed.map_err(|error| RpcError::internal(error.to_string()))?.into();
        Ok(Self { principal, capabilities, client })
    }
}

/// The connections of a relay to a server with sessions, for clients without one.
///
/// A connection is used on behalf of one principal only, and of clients of one name if they can be asked: over a pipe, questions cannot be
/// attributed to a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct LinkPool(Arc<PoolState>);

#[derive(Debug, Default)]
struct PoolState {
    links: Mutex<Links>,
    /// Notified when a connection is released.
    released: Notify,
}

#[derive(Debug, Default)]
struct Links {
    open: Vec<PooledLink>,
    /// The lists of the newest connection of each principal, also of one that has ended. The oldest comes first.
    last: VecDeque<(OwnedPrincipal, Arc<LinkCatalogue>)>,
    /// The connections that are being opened, and those that are not kept, by their principals.
    reserved: Holders,
    /// The keys of the connections that are being opened: who needs the same one waits for it.
    opening: Vec<LinkKey>,
    /// The calls that wait for a connection.
    waiting: Holders,
    sweeping: bool,
}

impl Links {
    /// Returns the limit that does not allow another connection of a principal, if one does not.
    fn exhausted(&self, principal: &OwnedPrincipal) -> Option<Exhausted> {
        let of_principal = || {
            let open = self.open.iter().filter(|open| open.key.principal == *principal);
            open.count() + self.reserved.of(principal)
        };
        if *principal != OwnedPrincipal::Local && of_principal() >= MAX_PRINCIPAL_LINKS {
            return Some(Exhausted::Principal);
        }
        (self.open.len() + self.reserved.len() >= MAX_LINKS).then_some(Exhausted::Pool)
    }

    /// Returns the limit that does not allow another call of a principal to wait, if one does not.
    fn exhausted_waiting(&self, principal: &OwnedPrincipal) -> Option<Exhausted> {
        if *principal != OwnedPrincipal::Local && self.waiting.of(principal) >= MAX_PRINCIPAL_WAITING {
            return Some(Exhausted::Principal);
        }
        (self.waiting.len() >= MAX_WAITING).then_some(Exhausted::Pool)
    }

    /// Removes the connection that was not used for the longest time, of this principal if the limit is its own.
    fn remove_unused(&mut self, principal: &OwnedPrincipal, exhausted: Exhausted) -> Option<PooledLink> {
        let may_be_closed = |open: &PooledLink| {
            open.uses == 0 && (exhausted == Exhausted::Pool || open.key.principal == *principal)
        };
        let unused = self.open.iter().enumerate().filter(|(_, open)| may_be_closed(open));
        // One that is only listened to comes after those that are not.
        let (oldest, _) = unused.min_by_key(|(_, open)| (open.link.is_used(), open.released))?;
        Some(self.open.swap_remove(oldest))
    }

    /// Keeps the lists of a new connection of a principal, which takes over those of the one before.
    fn remember(&mut self, principal: &OwnedPrincipal, link: &RelayLink) {
        if let Some(at) = self.last.iter().position(|(known, _)| known == principal)
            && let Some((_, before)) = self.last.remove(at)
        {
            link.catalogue.inherit(&before);
        }
        if self.last.len() >= MAX_LINKS {
            self.last.pop_front();
        }
        self.last.push_back((principal.clone(), link.catalogue.clone()));
    }
}

#[derive(Debug)]
struct PooledLink {
    key: LinkKey,
    link: Arc<RelayLink>,
    uses: usize,
    released: Instant,
}

/// A connection that is in use.
#[derive(Debug)]
pub(crate) struct Lease {
    link: Arc<RelayLink>,
    pool: Option<(LinkPool, AfterUse)>,
    _use: LinkUse,
}

/// The use of a connection that was released.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum AfterUse {
    Pooled,
    Closed,
}

impl Lease {
    /// A connection that does not belong to a pool.
    pub(crate) fn shared(link: Arc<RelayLink>) -> Self {
        Self::new(link, None)
    }

    fn new(link: Arc<RelayLink>, pool: Option<(LinkPool, AfterUse)>) -> Self {
        let counted = link.begin_use();
        Self { link, pool, _use: counted }
    }

    /// Has the connection closed when it is not used, or after a time.
    pub(crate) fn limited(self, limits: LinkLimits) -> Self {
        self.link.limit(limits);
        self
    }

    /// Records that a call over the connection was cancelled.
    pub(crate) fn cancelled(&self) {
        self.link.cancelled();
    }

    /// Returns the connection, which may be leased to others too.
    pub(crate) fn link(&self) -> Arc<RelayLink> {
        self.link.clone()
    }

    /// Returns the connection for a part of what it was leased for.
    pub(crate) fn again(&self) -> Self {
        Self::shared(self.link.clone())
    }
}

impl Deref for Lease {
    type Target = RelayLink;

    fn deref(&self) -> &RelayLink {
        &self.link
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some((pool, kept)) = self.pool.take() else { return };
        pool.release(&self.link, kept);
    }
}

/// A reserved place for a connection of a principal that is being opened.
struct Reservation {
    pool: LinkPool,
    key: Option<LinkKey>,
    /// Whether it is reserved when this is dropped.
    is_kept: bool,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut links = self.pool.lock();
        if !self.is_kept {
            links.reserved.remove(&holder(self.key.as_ref()));
        }
        links.opening.retain(|key| Some(key) != self.key.as_ref());
        drop(links);
        self.pool.0.released.notify_waiters();
    }
}

/// The result of looking for a connection.
enum LeaseAttempt {
    Leased(Lease),
    /// There is room for another one. The connection that was closed for it, if any, is dropped outside of the lock.
    Room(Reservation, Option<PooledLink>),
    Full(Exhausted),
}

impl LinkPool {
    /// Leases a connection. `key` is `None` for a caller that must not share one with anybody. `open` opens another.
    pub(crate) async fn lease<Fut>(
        &self,
        key: Option<LinkKey>,
        open: impl FnOnce() -> Fut,
    ) -> Result<Lease, RpcError>
    where
        Fut: Future<Output = Result<Arc<RelayLink>, RpcError>>,
    {
        let reservation = match self.find(key.as_ref()) {
            LeaseAttempt::Leased(lease) => return Ok(lease),
            LeaseAttempt::Room(reservation, closed) => {
                drop(closed);
                reservation
            }
            LeaseAttempt::Full(_) => match self.wait(key.as_ref()).await? {
                LeaseAttempt::Leased(lease) => return Ok(lease),
                LeaseAttempt::Room(reservation, closed) => {
                    drop(closed);
                    reservation
                }
                LeaseAttempt::Full(exhausted) => return Err(overloaded(exhausted)),
            },
        };
        let link = open().await?;
        let mut reservation = reservation;
        let Some(key) = key else {
            // The place stays reserved until it is released.
            reservation.is_kept = true;
            return Ok(Lease::new(link, Some((self.clone(), AfterUse::Closed))));
        };
        let mut links = self.lock();
        links.remember(&key.principal, &link);
        links.open.push(PooledLink { key, link: link.clone(), uses: 1, released: Instant::now() });
        if !std::mem::replace(&mut links.sweeping, true) {
            drop(tokio::spawn(sweep(Arc::downgrade(&self.0))));
        }
        drop(links);
        drop(reservation);
        Ok(Lease::new(link, Some((self.clone(), AfterUse::Pooled))))
    }

    /// Returns an open connection of this key, in use or not, for what nobody is asked for: whatever the name of its client.
    pub(crate) fn peek(&self, key: &LinkKey) -> Option<Arc<RelayLink>> {
        let is_usable = |open: &&PooledLink| {
            let LinkKey { principal, capabilities, .. } = &open.key;
            (principal, capabilities) == (&key.principal, &key.capabilities) && !open.link.is_closed()
        };
        self.lock().open.iter().find(is_usable).map(|open| open.link.clone())
    }

    /// Returns the lists that were read last on behalf of a principal, if they are known still.
    pub(crate) fn last_catalogue(&self, principal: &OwnedPrincipal) -> Option<Arc<LinkCatalogue>> {
        let links = self.lock();
        links.last.iter().find(|(known, _)| known == principal).map(|(_, catalogue)| catalogue.clone())
    }

    /// Returns the open connections of a principal.
    pub(crate) fn of_principal(&self, principal: &OwnedPrincipal) -> Vec<Arc<RelayLink>> {
        let links = self.lock();
        let of_principal = links.open.iter().filter(|open| open.key.principal == *principal);
        of_principal.filter(|open| !open.link.is_closed()).map(|open| open.link.clone()).collect()
    }

    /// Waits until a connection is released.
    async fn wait(&self, key: Option<&LinkKey>) -> Result<LeaseAttempt, RpcError> {
        struct Waiting<'a>(&'a LinkPool, &'a OwnedPrincipal);
        impl Drop for Waiting<'_> {
            fn drop(&mut self) {
                self.0.lock().waiting.remove(self.1);
            }
        }
        let principal = holder(key);
        {
            let mut links = self.lock();
            if let Some(exhausted) = links.exhausted_waiting(&principal) {
                return Err(overloaded(exhausted));
            }
            links.waiting.add(principal.clone());
        }
        let _waiting = Waiting(self, &principal);
        let deadline = Instant::now() + MAX_WAIT;
        loop {
            let released = self.0.released.notified();
            // Of those that wait, some cannot use what was released: all look.
            let exhausted = match self.find(key) {
                LeaseAttempt::Full(exhausted) => exhausted,
                found => return Ok(found),
            };
            timeout_at(deadline, released).await.map_err(|_| overloaded(exhausted))?;
        }
    }

    fn find(&self, key: Option<&LinkKey>) -> LeaseAttempt {
        let mut links = self.lock();
        let usable = |open: &PooledLink| Some(&open.key) == key && !open.link.is_closed();
        if let Some(open) = links.open.iter_mut().find(|open| usable(open)) {
            open.uses += 1;
            let pool = Some((self.clone(), AfterUse::Pooled));
            return LeaseAttempt::Leased(Lease::new(open.link.clone(), pool));
        }
        if key.is_some_and(|key| links.opening.contains(key)) {
            return LeaseAttempt::Full(Exhausted::Opening);
        }
        let principal = holder(key);
        let mut closed = None;
        if let Some(exhausted) = links.exhausted(&principal) {
            // An unused one makes room.
            closed = links.remove_unused(&principal, exhausted);
            if closed.is_none() {
                return LeaseAttempt::Full(exhausted);
            }
        }
        links.reserved.add(principal);
        links.opening.extend(key.cloned());
        let reservation = Reservation { pool: self.clone(), key: key.cloned(), is_kept: false };
        LeaseAttempt::Room(reservation, closed)
    }

    fn release(&self, link: &Arc<RelayLink>, kept: AfterUse) {
        let mut dropped = None;
        let mut links = self.lock();
        match links.open.iter().position(|open| Arc::ptr_eq(&open.link, link)) {
            Some(at) => {
                if let Some(open) = links.open.get_mut(at) {
                    open.uses -= 1;
                    open.released = Instant::now();
                    if open.uses == 0 && link.is_closed() {
                        dropped = Some(links.open.swap_remove(at));
                    }
                }
            }
            None if kept == AfterUse::Closed => links.reserved.remove(&holder(None)),
            None => {}
        }
        drop(links);
        drop(dropped);
        self.0.released.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, Links> {
        self.0.links.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes connections that were not used for a while. Ends when there are none.
async fn sweep(pool: Weak<PoolState>) {
    loop {
        sleep(IDLE / 4).await;
        let Some(pool) = pool.upgrade().map(LinkPool) else { return };
        let mut links = pool.lock();
        let (idle, open): (Vec<_>, Vec<_>) = std::mem::take(&mut links.open)
            .into_iter()
            .partition(|open| open.uses == 0 && !open.link.is_used() && open.released.elapsed() >= IDLE);
        links.open = open;
        let done = links.open.is_empty();
        links.sweeping = !done;
        drop(links);
        drop(idle);
        if done {
            return;
        }
    }
}

/// Returns the principal that a connection counts for. One that is shared with nobody is that of an anonymous client.
fn holder(key: Option<&LinkKey>) -> OwnedPrincipal {
    key.map_or(OwnedPrincipal::Anonymous, |key| key.principal.clone())
}

/// Returns the error of a call for which there is no connection.
fn overloaded(exhausted: Exhausted) -> RpcError {
    let message = match exhausted {
        Exhausted::Principal => {
            "this caller has too many calls to the server behind this one at once: wait for some of them to end, and call again"
        }
        Exhausted::Opening => "a connection to the server behind this one is being opened: call again later",
        Exhausted::Pool => "all connections to the server behind this one are in use: call again later",
    };
    RpcError::overloaded(message, RETRY_AFTER_MS)
}

/// Returns the principal that a call without a session shares connections with; `None` if it shares none.
pub(crate) fn sharing_principal(scope: &Scope<'_>, sharing: LinkSharing) -> Option<OwnedPrincipal> {
    let principal = OwnedPrincipal::from(scope.identity());
    (principal != OwnedPrincipal::Anonymous || sharing == LinkSharing::Anonymous).then_some(principal)
}

/// Returns on whose behalf a call without a session has its connection; `None` if it shares none.
pub(crate) fn link_key(
    scope: &Scope<'_>,
    sharing: LinkSharing,
    capabilities: &ClientCapabilities,
) -> Result<Option<LinkKey>, RpcError> {
    let key = |principal| LinkKey::new(principal, capabilities, scope.peer.info.as_ref());
    sharing_principal(scope, sharing).map(key).transpose()
}
