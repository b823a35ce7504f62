use std::{collections::BTreeSet, mem, sync::Arc};

use pintle_types::{
    JsonObject, Message, Notification, RawObject, RequestId, RpcError, keys, method,
    schema::SubscriptionFilter,
};
use serde_json::{Value, value::to_raw_value};

use super::{PendingChanges, Service, WatchObserver, Watched, weight};
use crate::{
    Change, Part, Revision,
    ledger::{Account, Charge},
};

/// A receiver of change notifications: a session, or one subscription.
///
/// Pending changes are merged, not queued: a slow listener holds a bounded number of marks ([`PendingChanges`]), and is
/// notified of the newest state.
///
/// ```
/// use pintle_proto::server::{Arrival, Change, Inbound, Service};
/// use pintle_types::{Message, schema::{Implementation, ServerCapabilities, ToolsCapability}};
///
/// let mut capabilities = ServerCapabilities::default();
/// capabilities.tools.insert(ToolsCapability::default()).list_changed = Some(true);
/// let service = Service::new(Implementation::new("adder", "1.0.0"), capabilities);
///
/// let Ok(Message::Request(request)) = Message::parse(
///     br#"{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{
///     "notifications":{"toolsListChanged":true},"_meta":{
///     "io.modelcontextprotocol/protocolVersion":"2026-07-28",
///     "io.modelcontextprotocol/clientCapabilities":{}}}}"#,
/// ) else { panic!("a request") };
/// let Ok(Inbound::Listen(mut listen)) = service.admit(request, &Arrival::at(0)) else { panic!("granted") };
///
/// assert!(listen.listener.note(&Change::Tools));
/// assert!(!listen.listener.note(&Change::Tools), "merged with the first");
/// assert!(!listen.listener.note(&Change::Prompts), "not requested");
/// let notice = String::from_utf8(listen.listener.next_notice().unwrap()).unwrap();
/// assert!(notice.contains("notifications/tools/list_changed"));
/// assert!(listen.listener.next_notice().is_none());
/// ```
#[derive(Debug)]
pub struct Listener {
    wants: Wants,
    watched: Watched,
    pending: PendingChanges,
    /// The grants of extensions, if there are any.
    extra: Option<Box<JsonObject>>,
    /// The id of the request that opened the subscription; a session has none.
    pub(super) tag: Option<RequestId>,
    /// The revision that its notifications are written in.
    pub(super) revision: Revision,
    /// The memory that the listener is charged for.
    pub(super) charge: Charge,
}

/// The lists whose changes are wanted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wants {
    pub(super) tools: bool,
    pub(super) prompts: bool,
    pub(super) resources: bool,
}

impl Listener {
    pub(super) fn new(
        wants: Wants,
        watched: BTreeSet<Box<str>>,
        tag: Option<RequestId>,
        revision: Revision,
        observer: Option<Arc<dyn WatchObserver>>,
    ) -> Self {
        Self {
            wants,
            watched: Watched::new(watched, observer),
            pending: PendingChanges::default(),
            extra: None,
            tag,
            revision,
            charge: Charge::default(),
        }
    }

    pub(super) fn charged(mut self, charge: Charge) -> Self {
        self.charge = charge;
        self
    }

    pub(super) fn granted(mut self, extra: JsonObject) -> Self {
        self.extra = (!extra.is_empty()).then(|| Box::new(extra));
        self
    }

    /// Returns what was granted of an extension's member of the filter.
    pub fn grants(&self, member: &str) -> Option<&Value> {
        self.extra.as_ref()?.get(member)
    }

    /// Returns the id of the subscription; a session has none.
    pub fn tag(&self) -> Option<&RequestId> {
        self.tag.as_ref()
    }

    /// Adds a change. Returns whether it adds a notification.
    pub fn note(&mut self, change: &Change) -> bool {
        let wanted = match change {
            Change::Tools => self.wants.tools,
            Change::Prompts => self.wants.prompts,
            Change::Resources => self.wants.resources,
            Change::Resource(_) => true,
        };
        wanted && self.pending.add(change, [&self.watched])
    }

    /// Adds changes that were collected for this listener and others.
    pub fn merge(&mut self, changes: &PendingChanges) {
        let (changes, all) = changes.changes();
        if all {
            self.pending.set_updated(self.watched.all());
        }
        changes.for_each(|change| {
            self.note(&change);
        });
    }

    /// Drops the changes of resources that are hidden from the listener's client.
    pub fn withhold(&mut self, hidden: impl Fn(&str) -> bool) {
        self.pending.retain(|uri| !hidden(uri));
    }

    /// Returns the next notification to send, lists first.
    pub fn next_notice(&mut self) -> Option<Vec<u8>> {
        let method = match self.pending.pop()? {
            Change::Tools => method::NOTIFICATIONS_TOOLS_LIST_CHANGED,
            Change::Prompts => method::NOTIFICATIONS_PROMPTS_LIST_CHANGED,
            Change::Resources => method::NOTIFICATIONS_RESOURCES_LIST_CHANGED,
            Change::Resource(uri) => {
                let params = RawObject::from_serialize(&serde_json::json!({ "uri": uri })).ok();
                return Some(self.notification(method::NOTIFICATIONS_RESOURCES_UPDATED, params.as_ref()));
            }
        };
        Some(self.notification(method, None))
    }

    /// Returns a notification for this listener. That of a subscription carries its id, in the JSON type of the
    /// request.
    pub fn notification(&self, method: &str, params: Option<&RawObject>) -> Vec<u8> {
        let mut params = params.cloned();
        if let Some(tag) = &self.tag {
            let meta = to_raw_value(&serde_json::json!({ keys::SUBSCRIPTION_ID: tag }));
            params = Some(params.unwrap_or_default().with("_meta", &meta.expect("an id prints")));
        }
        let part = Part::Params(method);
        // Params that cannot be lowered are sent as they are: receivers ignore unknown members of a notification.
        let lower = |params: RawObject| match self.revision.lowered(part, params.clone()) {
            Ok(lowered) => lowered,
            Err(_) => params,
        };
        if !self.revision.is_canonical() {
            params = params.map(lower);
        }
        Message::Notification(Notification::new(method.to_owned(), params)).to_vec()
    }

    /// Returns whether the listener watches this resource, or one that contains it.
    pub fn watches(&self, uri: &str) -> bool {
        self.watched.covers(uri)
    }

    /// Returns the watched resources.
    pub fn watched(&self) -> &Watched {
        &self.watched
    }

    /// Returns the account of its client. A listener that was not admitted by a service has none.
    pub fn account(&self) -> Option<&Account> {
        self.charge.account()
    }

    /// Replaces the watched resources of `other` in place and shares its set, so that existing clones of
    /// [`watched`](Self::watched) see the change.
    pub(super) fn taking_over(mut self, other: &mut Self) -> Self {
        let watched = mem::take(&mut other.watched);
        watched.replace(&self.watched.all());
        self.watched.replace(&BTreeSet::new());
        self.watched = watched;
        self
    }

    pub(super) fn watch(&mut self, uri: &str, service: &Service) -> Result<(), RpcError> {
        if self.watched.contains(uri) {
            return Ok(());
        }
        service.bounds().check_watched(uri)?;
        let limit = service.bounds().watched;
        if self.watched.len() >= limit {
            let reason = format!("{limit} resources are already watched: unsubscribe from one first");
            return Err(RpcError::overloaded(reason, crate::RETRY_AFTER_MS));
        }
        let bytes = self.charge.bytes().saturating_add(weight::watched(uri));
        weight::charge(&mut self.charge, bytes, service, "unsubscribe from a resource first")?;
        self.watched.insert(uri);
        Ok(())
    }

    pub(super) fn unwatch(&mut self, uri: &str) {
        if self.watched.remove(uri) {
            self.charge.force(self.charge.bytes().saturating_sub(weight::watched(uri)));
        }
        let watched = &self.watched;
        self.pending.retain(|updated| watched.covers(updated));
    }
}

/// Clones of the watched resources may outlive the listener, which watches nothing from now on.
impl Drop for Listener {
    fn drop(&mut self) {
        self.watched.replace(&BTreeSet::new());
    }
}

impl Wants {
    pub(super) fn of(filter: &SubscriptionFilter) -> Self {
        let on = |flag: Option<bool>| flag == Some(true);
        Self {
            tools: on(filter.tools_list_changed),
            prompts: on(filter.prompts_list_changed),
            resources: on(filter.resources_list_changed),
        }
    }
}

#[cfg(test)]
mod tests {
    use pintle_types::schema::{Implementation, ServerCapabilities};

    use super::*;

    fn listener(watched: &[&str]) -> Listener {
        let wants = Wants { tools: true, ..Wants::default() };
        let watched = watched.iter().map(|uri| (*uri).into()).collect();
        Listener::new(wants, watched, None, Revision::LATEST, None)
    }

    fn notices(listener: &mut Listener) -> Vec<String> {
        std::iter::from_fn(|| listener.next_notice()).map(|bytes| String::from_utf8(bytes).unwrap()).collect()
    }

    #[test]
    fn changes_are_merged_and_only_the_wanted_ones_sent() {
        let mut listener = listener(&["note://a"]);
        assert!(listener.note(&Change::Tools));
        assert!(!listener.note(&Change::Tools));
        assert!(!listener.note(&Change::Prompts));
        for _ in 0..3 {
            listener.note(&Change::Resource("note://a".into()));
            listener.note(&Change::Resource("note://b".into()));
        }
        assert_eq!(
            notices(&mut listener),
            [
                r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
                r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"note://a"}}"#,
            ]
        );
        assert!(notices(&mut listener).is_empty());
    }

    #[test]
    fn what_lies_below_a_watched_resource_is_told_too() {
        let mut listener = listener(&["file:///a/", "file:///b"]);
        for (uri, noted) in [
            ("file:///a/x", true),
            ("file:///b/x/y", true),
            ("file:///b", true),
            ("file:///bb", false),
            ("file:///", false),
        ] {
            assert_eq!(listener.note(&Change::Resource(uri.into())), noted, "{uri}");
        }
        assert_eq!(notices(&mut listener).len(), 3);
    }

    #[test]
    fn a_slow_listener_holds_little() {
        let mut listener = listener(&["file:///a"]);
        for n in 0..10_000 {
            listener.note(&Change::Resource(format!("file:///a/{n}").into()));
        }
        let notices = notices(&mut listener);
        assert!((256..2000).contains(&notices.len()), "{}", notices.len());
        assert!(notices.iter().any(|notice| notice.contains(r#"{"uri":"file:///a"}"#)));
    }

    #[test]
    fn what_is_watched_no_more_is_told_no_more() {
        let mut listener = listener(&["a"]);
        listener.note(&Change::Resource("a".into()));
        listener.unwatch("a");
        assert!(notices(&mut listener).is_empty());
        let limits = crate::Limits { watched: 1, ..Default::default() };
        let service =
            Service::new(Implementation::new("s", "0"), ServerCapabilities::default()).limits(limits);
        assert!(listener.watch("b", &service).is_ok());
        assert!(listener.watch("b", &service).is_ok(), "watching twice is watching");
        assert!(listener.watch("c", &service).is_err());
    }

    fn updated(uri: &str) -> String {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"uri":"{uri}"}}}}"#
        )
    }

    #[test]
    fn collected_changes_are_merged_as_far_as_they_are_wanted() {
        let mut listener = listener(&["note://a", "note://b"]);
        let others = Watched::new(["note://a", "note://c"].map(Into::into).into(), None);
        let mut collected = PendingChanges::default();
        let resources = ["note://a", "note://c"].map(|uri| Change::Resource(uri.into()));
        for change in [Change::Tools, Change::Prompts].iter().chain(&resources) {
            assert!(collected.add(change, [&others]));
        }
        listener.merge(&collected);
        let tools = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
        assert_eq!(notices(&mut listener), [tools, &updated("note://a")]);
        // One mark for all stands for each that this listener watches.
        collected.collapse();
        listener.merge(&collected);
        assert_eq!(listener.pending.updates(), (2, 16));
        assert_eq!(notices(&mut listener), [tools, &updated("note://a"), &updated("note://b")]);
    }

    #[test]
    fn changes_of_hidden_resources_are_dropped() {
        let mut listener = listener(&["note://a", "note://b"]);
        for uri in ["note://a", "note://b"] {
            listener.note(&Change::Resource(uri.into()));
        }
        listener.withhold(|uri| uri == "note://a");
        assert_eq!(notices(&mut listener), [updated("note://b")]);
    }

    #[test]
    fn a_listener_watches_what_it_subscribed_to_and_what_lies_below() {
        let listener = listener(&["file:///a"]);
        assert!(listener.watches("file:///a") && listener.watches("file:///a/x"));
        assert!(!listener.watches("file:///b"));
    }
}
