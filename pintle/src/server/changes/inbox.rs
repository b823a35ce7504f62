use std::{
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Waker},
};

use pintle_proto::{
    ledger::{Account, Ceiling, FREE, Held},
    server::{Change, Listener, PendingChanges, Watched},
};

use super::{
    Audience, Subscriber,
    notice::Notice,
    notice_queue::{NoticeQueue, QueuedNotice},
};

/// The changes that a connection, session or subscription has not read yet, merged ([`PendingChanges`]), and the pending
/// notifications of extensions.
#[derive(Debug, Default)]
pub(crate) struct ChangeInbox(Mutex<Inbox>);

#[derive(Debug, Default)]
struct Inbox {
    pending: PendingChanges,
    /// The resources that the first listener watches. Most inboxes have one.
    watched: Option<Watched>,
    also_watched: Vec<Watched>,
    /// Whether nobody reads: then one mark for all resources is enough.
    unread: bool,
    /// Notifications of extensions. `None` while there would be none.
    notices: Option<Box<NoticeQueue>>,
    /// The account of its client. `None` while nobody listens.
    account: Option<Account>,
    /// Whether there will be no more changes.
    closed: bool,
    waker: Option<Waker>,
    owner: Subscriber,
}

/// The changes that were taken from an inbox.
#[derive(Debug)]
pub(crate) struct TakenChanges {
    pub(crate) changes: PendingChanges,
    /// Whether there are notifications of extensions: see [`ChangeInbox::take_notice`].
    pub(crate) has_notices: bool,
}

impl ChangeInbox {
    /// Adds a change, unless it is of a resource that nobody watches.
    pub(crate) fn add(&self, change: &Change) {
        let mut guard = self.lock();
        let inbox = &mut *guard;
        let added = inbox.pending.add(change, inbox.watched.iter().chain(&inbox.also_watched));
        if inbox.unread {
            inbox.pending.collapse();
        }
        if added {
            wake(guard);
        }
    }

    /// Notes on whose behalf changes are collected.
    pub(crate) fn edit_owner(&self, edit: impl FnOnce(&mut Subscriber)) {
        edit(&mut self.lock().owner);
    }

    /// Returns whether the owner is one of these.
    pub(super) fn is_in(&self, audience: &Audience<'_>) -> bool {
        audience(&self.lock().owner)
    }

    /// Marks everything as changed: changes may have been missed.
    #[cfg(feature = "http-server")]
    pub(crate) fn add_all(&self) {
        let mut inbox = self.lock();
        inbox.pending.add_all();
        wake(inbox);
    }

    /// Adds a notification of an extension, unless it is for another session or nobody listens. It replaces an older one with the same
    /// key. Older ones are dropped while the client's account has no room.
    pub(super) fn add_notice(self: &Arc<Self>, notice: &Arc<Notice>, ceiling: Ceiling) {
        let Some((account, replaced, is_free)) = self.lock().expect_notice(notice) else { return };
        // Dropped and charged without the lock: whoever gives way may be this inbox.
        drop(replaced);
        let bytes = if is_free { 0 } else { FREE + notice.bytes() };
        let charge = loop {
            match account.charge(Held::Notice, bytes, ceiling) {
                Ok(charge) => break charge,
                Err(full) => {
                    tracing::debug!(%full, "a notification of an extension was dropped");
                    if self.take_notice().is_none() {
                        return;
                    }
                }
            }
        };
        let (inbox, weak) = (Arc::downgrade(self), Arc::downgrade(notice));
        charge.on_give_way(move || {
            let gone = inbox
                .upgrade()
                .zip(weak.upgrade())
                .map(|(inbox, notice)| inbox.lock().remove_notices(|other| std::ptr::eq(other, &*notice)));
            drop(gone);
        });
        let mut inbox = self.lock();
        let is_read = !inbox.unread;
        let queue = inbox.notices.get_or_insert_default();
        queue.push(QueuedNotice { notice: notice.clone(), _charge: charge });
        let dropped = queue.shorten(is_read);
        wake(inbox);
        drop(dropped);
    }

    /// Closes the inbox: there will be no more changes.
    pub(crate) fn close(&self) {
        let mut inbox = self.lock();
        inbox.closed = true;
        wake(inbox);
    }

    #[cfg(feature = "http-server")]
    pub(crate) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Wakes the reader.
    pub(crate) fn notify(&self) {
        wake(self.lock());
    }

    /// Collects changes of what a listener watches, and notifications for its account, from now on.
    pub(crate) fn follow(&self, listener: &Listener) {
        let (watched, account) = (listener.watched(), listener.account());
        let mut inbox = self.lock();
        if inbox.account.is_none() {
            inbox.account = account.cloned();
        }
        if inbox.watched.as_ref().is_none_or(|known| known.is_last()) {
            inbox.watched = Some(watched.clone());
            return;
        }
        // Those whose listeners are gone go too.
        inbox.also_watched.retain(|known| !known.is_last());
        inbox.also_watched.push(watched.clone());
    }

    /// Sets whether somebody reads. While nobody does, changed resources are one mark.
    #[cfg(feature = "http-server")]
    pub(crate) fn set_read(&self, read: bool) {
        let mut inbox = self.lock();
        inbox.unread = !read;
        if !read {
            inbox.pending.collapse();
            let dropped = inbox.notices.as_mut().map(|queue| queue.shorten(false));
            drop(inbox);
            drop(dropped);
        }
    }

    /// Takes the next notification of an extension.
    pub(crate) fn take_notice(&self) -> Option<Arc<Notice>> {
        let taken = self.lock().pop_notice();
        taken.map(|taken| taken.notice)
    }

    /// Takes the pending changes. The task is woken when there are more.
    pub(crate) fn take(&self, cx: &mut Context<'_>) -> Option<TakenChanges> {
        let mut inbox = self.lock();
        match &mut inbox.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        let has_notices = inbox.notices.is_some();
        // Empty, nearly each time.
        if inbox.pending.is_empty() && !has_notices {
            return None;
        }
        Some(TakenChanges { changes: mem::take(&mut inbox.pending), has_notices })
    }

    fn lock(&self) -> MutexGuard<'_, Inbox> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inbox {
    /// Prepares for a notification: returns the account that it is charged to, those with its key, which it replaces, and whether it is
    /// among the bytes that are free. `None` if it is not for this inbox.
    fn expect_notice(&mut self, notice: &Notice) -> Option<(Account, Vec<QueuedNotice>, bool)> {
        if notice.session.is_some() && notice.session != self.owner.session {
            return None;
        }
        let account = self.account.clone()?;
        let is_same = |other: &Notice| (&other.method, &other.key) == (&notice.method, &notice.key);
        let replaced = if notice.key.is_some() { self.remove_notices(is_same) } else { Vec::new() };
        let bytes = notice.bytes();
        let is_free = self.notices.as_ref().map_or(bytes <= FREE, |queue| queue.is_free(bytes));
        Some((account, replaced, is_free))
    }

    fn remove_notices(&mut self, is_removed: impl Fn(&Notice) -> bool) -> Vec<QueuedNotice> {
        let removed = self.notices.as_mut().map(|queue| queue.remove_all(is_removed));
        self.forget_empty();
        removed.unwrap_or_default()
    }

    fn pop_notice(&mut self) -> Option<QueuedNotice> {
        let popped = self.notices.as_mut()?.pop();
        self.forget_empty();
        popped
    }

    fn forget_empty(&mut self) {
        self.notices.take_if(|queue| queue.is_empty());
    }
}

fn wake(mut inbox: MutexGuard<'_, Inbox>) {
    let waker = inbox.waker.take();
    drop(inbox);
    waker.into_iter().for_each(Waker::wake);
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use pintle_proto::{
        Limits, Revision,
        ledger::{Ledger, Owner},
        server::{Arrival, Engine, Inbound, Service},
    };
    use pintle_types::{
        Frame,
        schema::{Implementation, ResourcesCapability, ServerCapabilities},
    };

    use super::*;

    /// A session that watches these.
    fn watching(uris: &[&str]) -> Engine {
        watching_as(None, uris)
    }

    /// A session of an account that watches these.
    fn watching_as(account: Option<Account>, uris: &[&str]) -> Engine {
        let mut can = ServerCapabilities::default();
        can.resources.insert(ResourcesCapability::default()).subscribe = Some(true);
        let service = Service::new(Implementation::new("s", "0"), can);
        let oldest = Revision::all().next_back().unwrap();
        let record = pintle_proto::server::SessionRecord::new(oldest);
        let mut engine = Engine::restore(&service, &record, 0).unwrap();
        if let Some(account) = account {
            engine = engine.charged_to(account);
        }
        for uri in uris {
            let text = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{{"uri":"{uri}"}}}}"#
            );
            let frame = Frame::parse(text.as_bytes(), 1).unwrap();
            assert!(
                matches!(engine.receive(&service, frame, &Arrival::at(0)), Inbound::Reply(reply) if reply.result.is_ok())
            );
        }
        engine
    }

    fn inbox(engine: &mut Engine) -> Arc<ChangeInbox> {
        let inbox = Arc::new(ChangeInbox::default());
        inbox.follow(engine.listener().unwrap());
        inbox
    }

    fn ceiling() -> Ceiling {
        Limits::default().ceiling(Held::Notice)
    }

    fn notice(bytes: usize) -> Arc<Notice> {
        Arc::new(Notice::new("x", "notifications/x", "x".repeat(bytes)))
    }

    /// The number of notifications that wait.
    fn count(inbox: &ChangeInbox) -> usize {
        inbox.lock().notices.as_ref().map_or(0, |queue| queue.len())
    }

    fn updated(inbox: &ChangeInbox, uri: String) {
        inbox.add(&Change::Resource(uri.into()));
    }

    fn taken(inbox: &ChangeInbox) -> Option<TakenChanges> {
        inbox.take(&mut Context::from_waker(Waker::noop()))
    }

    /// The resources that a listener which watches these is notified of.
    fn notified(watched: &[&str], taken: &TakenChanges) -> Vec<String> {
        let mut engine = watching(watched);
        let listener = engine.listener().unwrap();
        listener.merge(&taken.changes);
        let lines = std::iter::from_fn(|| listener.next_notice());
        lines
            .map(|line| {
                let line: serde_json::Value = serde_json::from_slice(&line).unwrap();
                line["params"]["uri"].as_str().unwrap().to_owned()
            })
            .collect()
    }

    #[test]
    fn what_nobody_watches_is_not_collected() {
        let mut engine = watching(&["note://1"]);
        let inbox = inbox(&mut engine);
        for n in 2..10_000 {
            updated(&inbox, format!("note://{n}"));
        }
        assert!(taken(&inbox).is_none());
        updated(&inbox, "note://1/part".into());
        assert_eq!(notified(&["note://1"], &taken(&inbox).unwrap()), ["note://1/part"]);
        // A subscription of the same connection is notified too, until it is gone.
        let mut other = watching(&["note://2"]);
        inbox.follow(other.listener().unwrap());
        updated(&inbox, "note://2".into());
        assert_eq!(notified(&["note://2"], &taken(&inbox).unwrap()), ["note://2"]);
    }

    #[cfg(feature = "http-server")]
    #[test]
    fn while_nobody_reads_one_mark_is_enough() {
        let mut engine = watching(&["note://1"]);
        let inbox = inbox(&mut engine);
        updated(&inbox, "note://1/0".into());
        inbox.set_read(false);
        assert_eq!(inbox.lock().pending.updates(), (0, 0));
        for n in 0..10_000 {
            updated(&inbox, format!("note://1/{n}"));
            let added = Notice::new("x", "notifications/x", serde_json::json!({ "n": n }));
            inbox.add_notice(&Arc::new(added), ceiling());
        }
        assert_eq!(inbox.lock().pending.updates(), (0, 0));
        assert_eq!(count(&inbox), 32);
        for _ in 0..3 {
            inbox.add_notice(&notice(1 << 20), ceiling());
        }
        assert_eq!(count(&inbox), 1, "the last one, however long");
        inbox.set_read(true);
        let all = taken(&inbox).unwrap();
        assert!(all.has_notices);
        assert_eq!(notified(&["note://1", "note://2"], &all), ["note://1", "note://2"]);
        updated(&inbox, "note://1/0".into());
        assert_eq!(notified(&["note://1"], &taken(&inbox).unwrap()), ["note://1/0"]);
    }

    #[test]
    fn a_slow_listener_collects_so_many_bytes() {
        let mut engine = watching(&["note://1", "note://2"]);
        let inbox = inbox(&mut engine);
        let long = "x".repeat(1000);
        for n in 0..10_000 {
            updated(&inbox, format!("note://1/{n}/{long}"));
            assert!(inbox.lock().pending.updates().1 <= (64 << 10) + 16);
        }
        let notified = notified(&["note://1", "note://2"], &taken(&inbox).unwrap());
        assert!(notified.contains(&"note://1".to_owned()), "what is not kept apart is in it");
        assert!(!notified.contains(&"note://2".to_owned()), "nothing of it has changed");
    }

    /// The inboxes of so many sessions of a principal, which read nothing.
    fn inboxes(ledger: &Ledger, name: &str, count: usize) -> Vec<(Engine, Arc<ChangeInbox>)> {
        let account = ledger.account(&Owner::Principal(name.into()));
        let engines = (0..count).map(|_| watching_as(Some(account.clone()), &[]));
        engines
            .map(|mut engine| {
                let inbox = inbox(&mut engine);
                (engine, inbox)
            })
            .collect()
    }

    fn held(inboxes: &[(Engine, Arc<ChangeInbox>)]) -> usize {
        inboxes.iter().map(|(_, inbox)| inbox.lock().notices.as_ref().map_or(0, |queue| queue.bytes())).sum()
    }

    #[test]
    fn notices_that_wait_are_bounded_in_bytes_of_a_client_and_in_all_and_who_holds_most_gives_way() {
        let (ledger, ceiling) = (Ledger::default(), Ceiling { kind: 8 << 20, all: 64 << 20 });
        let before = ledger.bytes();
        let added = notice(100 << 10);
        let tell = |inboxes: &[(Engine, Arc<ChangeInbox>)], count: usize| {
            for (_, inbox) in inboxes {
                (0..count).for_each(|_| inbox.add_notice(&Arc::new(Notice::clone(&added)), ceiling));
            }
        };
        // A client has a quarter of the kind.
        let clients: Vec<_> = ["ann", "bob", "cem", "dan"].map(|name| inboxes(&ledger, name, 8)).into();
        for client in &clients {
            tell(client, 10);
            let held = held(client);
            assert!(held > 1 << 20 && held <= (2 << 20) + 8 * FREE, "{held}");
        }
        // One that has little is told although nothing is left: the one that has most loses the newest.
        let all: usize = clients.iter().map(|client| held(client)).sum();
        let eve = inboxes(&ledger, "eve", 1);
        tell(&eve, 3);
        assert_eq!(held(&eve), 3 * added.bytes());
        let after: usize = clients.iter().map(|client| held(client)).sum();
        assert!(after <= all - added.bytes(), "{all} {after}");
        // What is read is not charged any more, and the same notice is read once.
        let mut taken = 0;
        while eve[0].1.take_notice().is_some() {
            taken += 1;
        }
        assert_eq!((taken, held(&eve)), (3, 0));
        drop((clients, eve));
        assert_eq!(ledger.bytes(), before);
    }

    #[test]
    fn a_notice_replaces_the_one_with_its_key_before_it_is_charged_and_nothing_is_kept_for_nobody() {
        let (ledger, ceiling) = (Ledger::default(), Ceiling { kind: 1 << 20, all: 64 << 20 });
        let ann = inboxes(&ledger, "ann", 1);
        // The client has a quarter, so that two of these would be too many.
        for _ in 0..3 {
            let status = Notice::new("x", "notifications/x", "x".repeat(200 << 10)).key("k");
            ann[0].1.add_notice(&Arc::new(status), ceiling);
            assert_eq!(count(&ann[0].1), 1);
        }
        assert!(ledger.bytes() > 200 << 10);
        let nobody = Arc::new(ChangeInbox::default());
        nobody.add_notice(&notice(10), ceiling);
        assert!(nobody.take_notice().is_none());
    }
}
