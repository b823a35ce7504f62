use std::{
    collections::VecDeque,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Waker},
};

use pintle_proto::server::{Change, PendingChanges, Watched};

use super::{Audience, InboxOwner, notice::Notice};

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
    /// Notifications of extensions, and the bytes of their params.
    notices: VecDeque<Arc<Notice>>,
    notice_bytes: u32,
    /// Whether there will be no more changes.
    closed: bool,
    waker: Option<Waker>,
    owner: InboxOwner,
}

/// The changes that were taken from an inbox.
#[derive(Debug)]
pub(crate) struct TakenChanges {
    pub(crate) changes: PendingChanges,
    /// Whether there are notifications of extensions: see [`ChangeInbox::take_notice`].
    pub(crate) has_notices: bool,
}

/// The capacity for notifications of extensions while somebody reads, and while nobody does. The oldest is dropped when it is
/// full.
const NOTICES: (usize, usize) = (1024, 32);
/// The capacity in bytes of their params. One may be longer.
const NOTICE_BYTES: (u32, u32) = (1 << 20, 64 << 10);

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
    pub(crate) fn edit_owner(&self, edit: impl FnOnce(&mut InboxOwner)) {
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

    /// Adds a notification of an extension, unless it is for another session. It replaces an older one with the same key.
    pub(super) fn add_notice(&self, notice: &Arc<Notice>) {
        let mut inbox = self.lock();
        if notice.session.is_some() && notice.session != inbox.owner.session {
            return;
        }
        if notice.key.is_some() {
            inbox.notices.retain(|other| (&other.method, &other.key) != (&notice.method, &notice.key));
            inbox.notice_bytes =
                inbox.notices.iter().fold(0, |bytes, notice| bytes.saturating_add(notice.bytes));
        }
        inbox.notice_bytes = inbox.notice_bytes.saturating_add(notice.bytes);
        inbox.notices.push_back(notice.clone());
        inbox.drop_notices();
        wake(inbox);
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

    /// Collects changes of what a listener watches, from now on.
    pub(crate) fn follow(&self, watched: &Watched) {
        let mut inbox = self.lock();
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
            inbox.drop_notices();
            inbox.notices.shrink_to_fit();
        }
    }

    /// Takes the next notification of an extension.
    pub(crate) fn take_notice(&self) -> Option<Arc<Notice>> {
        self.lock().pop_notice()
    }

    /// Takes the pending changes. The task is woken when there are more.
    pub(crate) fn take(&self, cx: &mut Context<'_>) -> Option<TakenChanges> {
        let mut inbox = self.lock();
        match &mut inbox.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        let has_notices = !inbox.notices.is_empty();
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
    fn pop_notice(&mut self) -> Option<Arc<Notice>> {
        let notice = self.notices.pop_front()?;
        self.notice_bytes = self.notice_bytes.saturating_sub(notice.bytes);
        Some(notice)
    }

    /// Drops the oldest notifications that are too many.
    fn drop_notices(&mut self) {
        let (count, bytes) = match self.unread {
            true => (NOTICES.1, NOTICE_BYTES.1),
            false => (NOTICES.0, NOTICE_BYTES.0),
        };
        while self.notices.len() > count || (self.notices.len() > 1 && self.notice_bytes > bytes) {
            tracing::debug!("a notification of an extension was dropped: its receiver is too slow");
            self.pop_notice();
        }
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
        Revision,
        server::{Arrival, Engine, Inbound, Service},
    };
    use pintle_types::{
        Frame,
        schema::{Implementation, ResourcesCapability, ServerCapabilities},
    };

    use super::*;

    /// A session that watches these.
    fn watching(uris: &[&str]) -> Engine {
        let mut can = ServerCapabilities::default();
        can.resources.insert(ResourcesCapability::default()).subscribe = Some(true);
        let service = Service::new(Implementation::new("s", "0"), can);
        let oldest = Revision::all().next_back().unwrap();
        let record = pintle_proto::server::SessionRecord::new(oldest);
        let mut engine = Engine::restore(&service, &record, 0).unwrap();
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

    fn inbox(engine: &mut Engine) -> ChangeInbox {
        let inbox = ChangeInbox::default();
        inbox.follow(engine.listener().unwrap().watched());
        inbox
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
        inbox.follow(other.listener().unwrap().watched());
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
            inbox.add_notice(&Arc::new(Notice::new("x", "notifications/x", serde_json::json!({ "n": n }))));
        }
        assert_eq!(inbox.lock().pending.updates(), (0, 0));
        assert_eq!(inbox.lock().notices.len(), NOTICES.1);
        let long = "x".repeat(1 << 20);
        for _ in 0..3 {
            inbox.add_notice(&Arc::new(Notice::new(
                "x",
                "notifications/x",
                serde_json::json!({ "x": long }),
            )));
        }
        assert_eq!(inbox.lock().notices.len(), 1, "the last one, however long");
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
}
