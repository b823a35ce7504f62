use std::panic::{AssertUnwindSafe, catch_unwind};

use http::Extensions;
use pintle_proto::{Peer, server::Listener};
use serde_json::Value;

use crate::server::{Notice, Principal, Scope, core::snapshot::Snapshot};

/// A listener, and what decides which notifications its client is sent.
pub(crate) struct Recipient<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) listener: &'a mut Listener,
    pub(crate) peer: &'a Peer,
    pub(crate) principal: Option<&'a str>,
    pub(crate) extensions: &'a Extensions,
}

impl Recipient<'_> {
    /// Returns the next notification. With an inbox of its own, those of extensions come first.
    #[cfg(feature = "http-server")]
    pub(crate) fn next(&mut self, inbox: &crate::server::changes::ChangeInbox) -> Option<Vec<u8>> {
        while let Some(notice) = inbox.take_notice() {
            if let Some(line) = self.extension_notification(&notice) {
                return Some(line);
            }
        }
        self.listener.next_notice()
    }

    /// Drops changes of resources that are hidden from the client.
    pub(crate) fn withhold(&mut self) {
        let Self { snapshot, principal, extensions, peer, .. } = *self;
        let scope = Scope::new(peer, principal, extensions);
        // A gate that panics hides: nothing of the author's may end the connection.
        let hidden = |uri: &str| {
            catch_unwind(AssertUnwindSafe(|| !snapshot.shows_resource(&scope, uri))).unwrap_or(true)
        };
        self.listener.withhold(hidden);
    }

    /// Serializes a notification of an extension, if the client wants it and may see it.
    pub(crate) fn extension_notification(&self, notice: &Notice) -> Option<Vec<u8>> {
        let wanted = match self.listener.tag() {
            tag if notice.session.is_some() => tag.is_none(),
            Some(_) => notice.is_for(self.listener.grants(&notice.member)),
            None => notice.is_for(self.granted(notice).as_ref()),
        };
        let wanted = wanted && notice.is_visible_to(Principal::of(self.principal, self.extensions));
        wanted.then(|| self.listener.notification(&notice.method, Some(&notice.params)))
    }

    /// Returns what a session is granted of a member of the filter. A session has no filter, so it wants all of the extensions
    /// that its client declared; how much of that it gets the extension decides, as for a subscription.
    fn granted(&self, notice: &Notice) -> Option<Value> {
        let mut extensions = self.snapshot.service.extensions().iter();
        let known = extensions
            .find(|known| known.listens.contains(&notice.member) && known.is_declared(self.peer))?;
        let all = Value::Bool(true);
        let Some(grant) = &known.grant else { return Some(all) };
        // Nothing of the author's may end the connection.
        catch_unwind(AssertUnwindSafe(|| grant.grant(&notice.member, &all, self.principal))).ok().flatten()
    }
}
