use std::sync::{Arc, Mutex, PoisonError, Weak};

use pintle_proto::{ledger::Ceiling, server::Change};

use super::notice::Notice;
use super::{Audience, ChangeInbox, ChangeLink};

/// The inboxes of all that may be notified of changes.
#[derive(Default)]
pub(crate) struct ChangeHub {
    inboxes: Mutex<Inboxes>,
    /// The servers that this one is mounted in. Most have none.
    links: Mutex<Vec<Arc<dyn ChangeLink>>>,
}

#[derive(Debug, Default)]
struct Inboxes {
    inboxes: Vec<Weak<ChangeInbox>>,
    /// The length at which dropped inboxes are removed: so that joining is cheap, however many have joined.
    cleanup_at: usize,
    /// Whether there will be no more changes.
    closed: bool,
}

impl ChangeHub {
    /// Adds an inbox, and returns it.
    pub(crate) fn join(&self) -> Arc<ChangeInbox> {
        let inbox = Arc::new(ChangeInbox::default());
        self.add(&inbox);
        inbox
    }

    /// Adds an inbox of another hub to this one as well.
    pub(crate) fn add(&self, inbox: &Arc<ChangeInbox>) {
        let mut all = self.inboxes.lock().unwrap_or_else(PoisonError::into_inner);
        let Inboxes { inboxes, cleanup_at, closed } = &mut *all;
        if *closed {
            inbox.close();
        }
        if inboxes.len() >= *cleanup_at {
            inboxes.retain(|inbox| inbox.strong_count() > 0);
            *cleanup_at = 2 * inboxes.len() + 16;
        }
        inboxes.push(Arc::downgrade(inbox));
    }

    /// Adds a change to every inbox.
    pub(crate) fn publish(&self, change: &Change) {
        self.each(|inbox| inbox.add(change));
        self.each_link(|link| link.publish(change));
    }

    /// Adds a change to the selected inboxes.
    pub(crate) fn publish_to(&self, change: &Change, audience: &Audience<'_>) {
        self.each(|inbox| {
            if inbox.is_in(audience) {
                inbox.add(change);
            }
        });
        self.each_link(|link| link.publish_to(change, audience));
    }

    /// Adds a notification of an extension to every inbox, within these limits of the bytes that wait.
    pub(crate) fn publish_notice(&self, notice: &Arc<Notice>, ceiling: Ceiling) {
        self.each(|inbox| inbox.add_notice(notice, ceiling));
        self.each_link(|link| link.publish_notice(notice));
    }

    /// Marks everything as changed, in every inbox of this hub.
    #[cfg(feature = "http-server")]
    pub(crate) fn publish_all(&self) {
        self.each(|inbox| inbox.add_all());
    }

    /// Publishes the changes to an outer server too, as long as it exists.
    pub(crate) fn link(&self, link: Arc<dyn ChangeLink>) {
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        links.retain(|link| link.is_alive());
        links.push(link);
    }

    /// Visits the outer servers, without a lock.
    pub(crate) fn each_link(&self, visit: impl Fn(&dyn ChangeLink)) {
        let links = self.links.lock().unwrap_or_else(PoisonError::into_inner).clone();
        links.iter().for_each(|link| visit(&**link));
    }

    /// Closes every inbox, and those that join later.
    #[cfg(feature = "http-server")]
    pub(crate) fn close(&self) {
        self.inboxes.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
        self.each(|inbox| inbox.close());
    }

    fn each(&self, visit: impl Fn(&Arc<ChangeInbox>)) {
        let inboxes: Vec<_> = {
            let all = self.inboxes.lock().unwrap_or_else(PoisonError::into_inner);
            all.inboxes.iter().filter_map(Weak::upgrade).collect()
        };
        inboxes.iter().for_each(visit);
    }
}
