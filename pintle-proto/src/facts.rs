/// The facts that a program has to know of a revision: how questions, changes, tasks and results are sent.
///
/// Code above this crate asks for one of these facts, and never for an era: each says what the answer depends on.
///
/// ```
/// use pintle_proto::{Revision, TaskKind};
///
/// let facts = Revision::LATEST.facts();
/// assert!(!facts.asks_by_request && !facts.keeps_session);
/// assert_eq!(facts.tasks, TaskKind::Extension);
/// ```
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Facts {
    /// Whether a question is a request that the server sends while the call runs. Otherwise it is the response: the client repeats the
    /// call with the answer, and with a `requestState`.
    pub asks_by_request: bool,
    /// Whether requests belong to a session, whose values, tools and roots the next one finds. Otherwise each is complete by itself.
    pub keeps_session: bool,
    /// Whether the server sends changes without a stream that was opened for them: those of lists, and of resources that a request has
    /// subscribed to. Otherwise they are sent on the stream of a `subscriptions/listen`.
    pub pushes_changes: bool,
    /// The kind of tasks that calls may become.
    pub tasks: TaskKind,
    /// Whether each request has its own log level. Otherwise `logging/setLevel` sets that of the session.
    pub level_by_call: bool,
    /// Whether results name their type. Otherwise the request decides what its result is.
    pub result_types: bool,
    /// Whether results say how long, and for whom, they may be kept.
    pub cache_hints: bool,
}

/// The kind of tasks that a revision has.
#[expect(clippy::exhaustive_enums, reason = "code for tasks must handle each")]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TaskKind {
    /// No tasks: a call ends with its response.
    None,
    /// Tasks of the protocol itself: the client requests that a call becomes one.
    Protocol,
    /// Tasks of the official extension: the server decides that a call becomes one.
    Extension,
}

impl Facts {
    /// The revisions with a handshake.
    pub(crate) const SESSION: Self = Self {
        asks_by_request: true,
        keeps_session: true,
        pushes_changes: true,
        tasks: TaskKind::None,
        level_by_call: false,
        result_types: false,
        cache_hints: false,
    };

    /// The revisions whose requests are self-contained.
    pub(crate) const STATELESS: Self = Self {
        asks_by_request: false,
        keeps_session: false,
        pushes_changes: false,
        tasks: TaskKind::Extension,
        level_by_call: true,
        result_types: true,
        cache_hints: true,
    };
}

#[cfg(test)]
mod tests {
    use pintle_types::{Notification, method, schema::Implementation};

    use super::*;
    use crate::{
        Revision,
        revision::MessageKind,
        server::{Call, Service},
    };

    #[test]
    fn facts_agree_with_the_methods_of_each_revision() {
        for revision in Revision::all().chain([Revision::NEXT]) {
            let Facts { keeps_session, pushes_changes, tasks, level_by_call, .. } = revision.facts();
            let has = |method| revision.dialect().methods(MessageKind::Request).contains(&method);
            assert_eq!(keeps_session, has(method::INITIALIZE), "{revision}");
            assert_eq!(keeps_session, !revision.is_stateless(), "{revision}");
            assert_eq!(pushes_changes, !has(method::SUBSCRIPTIONS_LISTEN), "{revision}");
            assert_eq!(level_by_call, !has(method::LOGGING_SET_LEVEL), "{revision}");
            assert_eq!(tasks == TaskKind::Protocol, has(method::TASKS_RESULT), "{revision}");
            let extended = revision.dialect().extensions.contains(&method::TASKS_GET);
            assert_eq!(tasks == TaskKind::Extension, extended, "{revision}");
        }
    }

    #[test]
    fn a_notification_asks_nothing_and_belongs_to_a_session_after_the_handshake() {
        let service = Service::new(Implementation::new("s", "1"), Default::default());
        let call = |peer| {
            let notification = Notification::new(method::NOTIFICATIONS_INITIALIZED, None);
            Call::of_notification(&service, notification, peer, None)
        };
        let unknown = call(None);
        assert!(!unknown.facts().asks_by_request && !unknown.facts().keeps_session);
        let known = call(Some(unknown.peer().clone()));
        assert!(!known.facts().asks_by_request && known.facts().keeps_session);
    }
}
