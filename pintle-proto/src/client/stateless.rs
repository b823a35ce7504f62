//! The client's side of the stateless era: every request describes its sender, and only the client sends requests.

use std::borrow::Cow;

use pintle_types::keys::{
    CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, PROTOCOL_VERSION, SERVER_INFO, SUBSCRIPTION_ID,
};
use pintle_types::{Notification, RawObject, RequestId, RpcError, method};

use super::{
    capabilities::Capabilities,
    extras::Extras,
    flights::repeated_id,
    inbound::{End, Ignored, Inbound},
    profile::Profile,
    reading::{Reading, RequestOutcome},
    request_meta::RequestMeta,
    send_error::SendError,
    shapes,
    subscriptions::Subscriptions,
};
use crate::{Change, Limits, Part, Revision, Violation, shown::shown};

/// The client's state of a stateless connection: its description of itself, and its subscriptions.
#[derive(Debug)]
pub(super) struct Stateless {
    pub(super) revision: Revision,
    introduction: Introduction,
    reading: Reading,
    pub(super) subscriptions: Subscriptions,
}

/// The `_meta` that every request carries, serialized once.
#[derive(Debug)]
pub(super) struct Introduction {
    meta: RequestMeta,
    info: Option<RawObject>,
    /// That of the last request with capabilities of its own: those of the next one are mostly the same.
    foreign: Option<Box<ForeignIntroduction>>,
}

/// The `_meta` of requests for another client.
#[derive(Debug)]
struct ForeignIntroduction {
    declared: RawObject,
    meta: RequestMeta,
    can: Capabilities,
}

/// The params of a request, as they are sent.
#[derive(Debug)]
pub(super) struct PreparedParams {
    pub(super) params: RawObject,
    /// The capabilities that were declared for this request alone.
    pub(super) can: Option<Capabilities>,
    pub(super) log: bool,
    pub(super) progress: bool,
}

/// The server's description from `server/discover`.
#[derive(Debug)]
pub(super) struct Discovery {
    pub(super) supported: Vec<Box<str>>,
    pub(super) info: Option<RawObject>,
    pub(super) capabilities: RawObject,
    pub(super) instructions: Option<Box<str>>,
}

/// Returns the params of `server/discover`.
pub(super) fn discover(profile: &Profile, revision: Revision) -> RawObject {
    let params = RawObject::empty().with_object("_meta", &Introduction::new(profile, revision).meta.members);
    // Params that cannot be lowered are sent as they are.
    shapes::lower(revision, Part::Params(method::SERVER_DISCOVER), params.clone()).unwrap_or(params)
}

/// Reads the result of `server/discover` in `revision`. Returns `None` if it lists no revisions.
pub(super) fn discovery(revision: Revision, result: &RawObject) -> Option<Discovery> {
    let result = shapes::raise(revision, Part::Result(method::SERVER_DISCOVER), result.clone()).ok()?;
    let supported = result.decode_member("supportedVersions").ok()??;
    let meta: Option<RawObject> = result.decode_member("_meta").ok().flatten();
    Some(Discovery {
        supported,
        info: meta.and_then(|meta| meta.decode_member(SERVER_INFO).ok().flatten()),
        capabilities: result.decode_member("capabilities").ok().flatten().unwrap_or_default(),
        instructions: result.decode_member("instructions").ok().flatten(),
    })
}

impl Introduction {
    pub(super) fn new(profile: &Profile, revision: Revision) -> Self {
        let info = profile.introduce.then(|| profile.info.clone());
        let members = introduce(revision, &profile.capabilities, info.as_ref());
        Self { meta: RequestMeta::new(members), info, foreign: None }
    }

    /// Returns that of a client with these capabilities.
    fn foreign(&mut self, revision: Revision, declared: &RawObject) -> &mut ForeignIntroduction {
        let known = self.foreign.take().filter(|known| known.declared == *declared);
        self.foreign.insert(known.unwrap_or_else(|| {
            Box::new(ForeignIntroduction {
                declared: declared.clone(),
                meta: RequestMeta::new(introduce(revision, declared, self.info.as_ref())),
                can: Capabilities::of(declared),
            })
        }))
    }
}

fn introduce(revision: Revision, capabilities: &RawObject, info: Option<&RawObject>) -> RawObject {
    let members = RawObject::builder(256).text(PROTOCOL_VERSION, revision.as_str());
    let members = members.finish().unwrap_or_default();
    let members = members.with_object(CLIENT_CAPABILITIES, &declared(capabilities));
    info.into_iter().fold(members, |members, info| members.with_object(CLIENT_INFO, info))
}

/// Returns the capabilities that this era has: there is no notification of changed roots, and tasks are an extension.
fn declared(capabilities: &RawObject) -> RawObject {
    let capabilities = capabilities.without(&["tasks"]);
    let Some(roots) = capabilities.decode_member::<RawObject>("roots").ok().flatten() else {
        return capabilities;
    };
    capabilities.with_object("roots", &roots.without(&["listChanged"]))
}

impl Stateless {
    pub(super) fn new(profile: &Profile, revision: Revision, limits: &Limits) -> Self {
        Self {
            revision,
            introduction: Introduction::new(profile, revision),
            reading: Reading::new(profile, limits).of(revision),
            subscriptions: Subscriptions::default(),
        }
    }

    /// Returns the params in the shapes of the revision, with `_meta`.
    pub(super) fn prepare(
        &mut self,
        id: i64,
        method: &str,
        params: &RawObject,
        extras: &Extras<'_>,
    ) -> Result<PreparedParams, SendError> {
        let (meta, can) = match extras.capabilities {
            Some(declared) => {
                let foreign = self.introduction.foreign(self.revision, declared);
                let can = Capabilities { any_result_type: extras.any_result_type, ..foreign.can };
                (&mut foreign.meta, Some(can))
            }
            None => (&mut self.introduction.meta, None),
        };
        let text = params.get("_meta").filter(|_| !extras.adds_members());
        let (log, progress, introduced);
        if let Some(known) = text.and_then(|text| meta.known(text)) {
            (log, progress) = (false, false);
            introduced = params.with_object("_meta", known);
        } else {
            // It is nearly always absent; no empty object is created.
            let own = params.object_member("_meta").ok().flatten();
            let own = own.as_ref();
            (log, progress) = (Self::wants_log(own, extras), extras.wants_progress(own));
            let all = meta.introduce(id, own, extras);
            introduced = params.with_object("_meta", &all);
            if let (Cow::Owned(all), Some(text), false, false) = (all, text, log, progress) {
                meta.keep(text, all);
            }
        }
        let params = shapes::lower(self.revision, Part::Params(method), introduced)?;
        Ok(PreparedParams { params, can, log, progress })
    }

    /// Returns whether a request asks for log messages.
    fn wants_log(own: Option<&RawObject>, extras: &Extras<'_>) -> bool {
        extras.log_level.is_some() || own.is_some_and(|own| own.get(LOG_LEVEL).is_some())
    }

    /// Reads the response to a request.
    pub(super) fn read(
        &self,
        method: &str,
        result: Result<RawObject, RpcError>,
        can: Option<Capabilities>,
    ) -> RequestOutcome {
        match (result, can) {
            (Ok(result), None) => self.reading.read(method, result),
            (Ok(result), Some(can)) => self.reading.read_with(method, result, can),
            (Err(mut error), _) => {
                self.revision.raise_error(method, &mut error);
                RequestOutcome::Error(error)
            }
        }
    }

    /// Reads the response to a `subscriptions/listen`, which ends the subscription.
    pub(super) fn read_end(&mut self, id: i64, result: Result<RawObject, RpcError>) -> Inbound {
        self.subscriptions.remove(id);
        let end = result.map_or_else(End::Error, |_| End::Graceful);
        Inbound::Ended { subscription: id.into(), end }
    }

    /// Handles a request from the server: a violation in this era, and not answered.
    pub(super) fn receive_request(&self, method: &str) -> Inbound {
        Inbound::Violation(Violation::UnwelcomeRequest { method: shown(method) })
    }

    /// Handles a notification that is not progress. The second value is the request that it ended.
    pub(super) fn receive_notification(
        &mut self,
        notification: Notification,
        log_wanted: bool,
    ) -> (Inbound, Option<i64>) {
        let inbound = match &*notification.method {
            method::NOTIFICATIONS_MESSAGE => match notification.params {
                Some(params) if log_wanted => Inbound::Log(params),
                Some(_) => Inbound::Ignored(Ignored::UnaskedLog),
                None => Inbound::Ignored(Ignored::Malformed(method::NOTIFICATIONS_MESSAGE.into())),
            },
            method::NOTIFICATIONS_CANCELLED => {
                let params = notification.params.unwrap_or_default();
                return match repeated_id(&params, "requestId") {
                    Some(RequestId::Number(id)) if self.subscriptions.contains(id) => {
                        self.subscriptions.remove(id);
                        (Inbound::Ended { subscription: id.into(), end: End::Graceful }, Some(id))
                    }
                    _ => (Inbound::Ignored(Ignored::StrayCancel), None),
                };
            }
            method::NOTIFICATIONS_SUBSCRIPTIONS_ACKNOWLEDGED => self.acknowledge(&notification),
            _ => self.tagged(notification),
        };
        (inbound, None)
    }

    fn acknowledge(&mut self, notification: &Notification) -> Inbound {
        let Some(RequestId::Number(id)) = subscription_id(notification) else {
            return Inbound::Ignored(Ignored::UnknownSubscription);
        };
        let params = notification.params.as_ref();
        let granted =
            params.and_then(|params| params.decode_member::<RawObject>("notifications").ok().flatten());
        let Some(granted) = granted else {
            return Inbound::Ignored(Ignored::Malformed(shown(&notification.method)));
        };
        if self.subscriptions.acknowledge(id, &granted) {
            Inbound::Acknowledged { subscription: id.into(), granted }
        } else {
            Inbound::Ignored(Ignored::UnknownSubscription)
        }
    }

    /// Handles a notification of a subscription or of an extension.
    fn tagged(&self, notification: Notification) -> Inbound {
        let change = Change::of(&notification);
        let subscription = subscription_id(&notification);
        let admitted = match &subscription {
            Some(RequestId::Number(id)) => self.subscriptions.admits(*id, change.as_ref()),
            Some(RequestId::String(_)) => Err(Ignored::UnknownSubscription),
            None if change.is_some() => Err(Ignored::UnknownSubscription),
            None => Ok(()),
        };
        match (admitted, change) {
            (Err(ignored), _) => Inbound::Ignored(ignored),
            (Ok(()), Some(change)) => Inbound::Change { change, subscription },
            (Ok(()), None) if notification.method == method::NOTIFICATIONS_RESOURCES_UPDATED => {
                Inbound::Ignored(Ignored::Malformed(shown(&notification.method)))
            }
            (Ok(()), None) => Inbound::Notification { notification, subscription },
        }
    }
}

fn subscription_id(notification: &Notification) -> Option<RequestId> {
    let meta: RawObject = notification.params.as_ref()?.decode_member("_meta").ok()??;
    repeated_id(&meta, SUBSCRIPTION_ID)
}

#[cfg(test)]
mod tests {
    use crate::{
        Violation,
        client::{
            Change, End, Engine, Extras, Ignored, Inbound, RequestOutcome,
            testing::{engine, object, printed, receive},
        },
    };

    const R5: &str = "2026-07-28";

    #[test]
    fn every_request_says_who_asks() {
        let mut client = engine(R5, r#"{"roots":{"listChanged":true},"tasks":{}}"#);
        let request = client.request("tools/list", &object("{}"), &Extras::default()).unwrap();
        assert_eq!(
            printed(request),
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{}},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}}}"#
        );
    }

    #[test]
    fn the_callers_own_meta_is_kept_and_cannot_pose_as_ours() {
        let mut client = engine(R5, "{}");
        let params = object(
            r#"{"name":"t","arguments":{"big":1e400},"_meta":{"acme/x":[1],"io.modelcontextprotocol/protocolVersion":"x","traceparent":"theirs","progressToken":7}}"#,
        );
        let extras = Extras { log_level: Some("debug"), tracestate: Some("a=\"b\""), ..Extras::default() };
        let request = client.request("tools/call", &params, &extras).unwrap();
        let params = request.params.unwrap();
        assert_eq!(params.get("arguments"), Some(r#"{"big":1e400}"#));
        assert_eq!(
            params.get("_meta"),
            Some(
                r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"progressToken":1,"tracestate":"a=\"b\"","io.modelcontextprotocol/logLevel":"debug","acme/x":[1],"traceparent":"theirs"}"#
            )
        );
    }

    #[test]
    fn a_request_like_the_last_one_has_its_meta_and_no_other() {
        let mut client = engine(R5, "{}");
        let mut meta = |own: &str, extras: &Extras<'_>| {
            let params = object(&format!(r#"{{"name":"t","_meta":{own}}}"#));
            let request = client.request("tools/call", &params, extras).unwrap();
            let meta = request.params.unwrap().get("_meta").unwrap().to_owned();
            meta.split_once(r#""version":"1"}"#).unwrap().1.to_owned()
        };
        let (plain, traced) = (Extras::default(), Extras { traceparent: Some("t"), ..Extras::default() });
        for _ in 0..2 {
            for _ in 0..2 {
                assert_eq!(meta(r#"{"a":1}"#, &plain), r#","a":1}"#);
                assert_eq!(meta(r#"{"a":1}"#, &traced), r#","traceparent":"t","a":1}"#);
                assert_eq!(meta(r#"{"a":2}"#, &plain), r#","a":2}"#);
            }
            let (sampling, none) = (object(r#"{"sampling":{}}"#), object("{}"));
            for declared in [&sampling, &sampling, &none] {
                let foreign = Extras { capabilities: Some(declared), ..Extras::default() };
                assert_eq!(meta(r#"{"a":2}"#, &foreign), r#","a":2}"#);
            }
        }
        // The token is that of each request.
        let tokens = [0; 2].map(|_| meta(r#"{"progressToken":7}"#, &plain));
        assert_ne!(tokens[0], tokens[1]);
    }

    #[test]
    fn a_request_for_another_client_has_its_capabilities_whatever_the_last_one_had() {
        let mut client = engine(R5, "{}");
        for declared in [r#"{"sampling":{}}"#, r#"{"sampling":{}}"#, "{}", r#"{"sampling":{}}"#] {
            let (params, capabilities) = (object(r#"{"_meta":{"a":1}}"#), object(declared));
            let extras = Extras { capabilities: Some(&capabilities), ..Extras::default() };
            let meta = client.request("tools/list", &params, &extras).unwrap().params.unwrap();
            let meta = meta.object_member("_meta").unwrap().unwrap();
            assert_eq!(meta.get("io.modelcontextprotocol/clientCapabilities"), Some(declared));
            assert_eq!(meta.get("a"), Some("1"));
        }
    }

    #[test]
    fn a_request_that_wants_logs_wants_them_each_time() {
        let mut client = engine(R5, "{}");
        let params = object(r#"{"_meta":{"io.modelcontextprotocol/logLevel":"info"}}"#);
        for _ in 0..2 {
            client.request("tools/list", &params, &Extras::default()).unwrap();
            let log =
                r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}"#;
            assert!(matches!(receive(&mut client, log), Inbound::Log(_)));
            client.lose();
        }
    }

    #[test]
    fn what_the_era_lacks_is_not_sent() {
        let mut client = engine(R5, "{}");
        for method in ["ping", "logging/setLevel", "resources/subscribe", "initialize", "tasks/result"] {
            let error = client.request(method, &object("{}"), &Extras::default()).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("the server speaks revision `2026-07-28`, which has no `{method}`")
            );
        }
        assert!(client.notify("notifications/roots/list_changed", None).is_err());
        assert!(client.notify("notifications/initialized", None).is_err());
    }

    #[test]
    fn a_request_from_the_server_is_never_answered() {
        let mut client = engine(R5, r#"{"roots":{}}"#);
        for method in ["ping", "roots/list", "elicitation/create"] {
            let inbound = receive(&mut client, &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}"}}"#));
            assert!(matches!(inbound, Inbound::Violation(Violation::UnwelcomeRequest { .. })), "{inbound:?}");
        }
        assert!(client.reply(&1.into(), Ok(object("{}"))).is_none());
        let malformed = receive(&mut client, r#"{"id":1,"method":"ping"}"#);
        assert!(matches!(malformed, Inbound::Violation(Violation::NotAMessage { .. })));
    }

    #[test]
    fn logs_come_only_if_somebody_asked() {
        let mut client = engine(R5, "{}");
        let log = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}"#;
        assert!(matches!(receive(&mut client, log), Inbound::Ignored(Ignored::UnaskedLog)));
        let extras = Extras { log_level: Some("info"), ..Extras::default() };
        client.request("tools/list", &object("{}"), &extras).unwrap();
        assert!(matches!(receive(&mut client, log), Inbound::Log(_)));
        receive(&mut client, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        assert!(matches!(receive(&mut client, log), Inbound::Ignored(Ignored::UnaskedLog)));
    }

    fn listen(client: &mut Engine, wishes: &str) {
        let params = object(&format!(r#"{{"notifications":{wishes}}}"#));
        client.request("subscriptions/listen", &params, &Extras::default()).unwrap();
    }

    fn on(id: &str, method: &str, rest: &str) -> String {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/{method}","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}{rest}}}}}"#
        )
    }

    #[test]
    fn subscriptions_are_distinguished() {
        let mut client = engine(R5, "{}");
        listen(&mut client, r#"{"toolsListChanged":true,"promptsListChanged":true}"#);
        listen(&mut client, r#"{"resourceSubscriptions":["a:b"]}"#);

        // Nothing before the acknowledgement, and an acknowledgement of one is none of the other.
        let tools = on("1", "tools/list_changed", "");
        assert!(matches!(receive(&mut client, &tools), Inbound::Ignored(Ignored::NotAcknowledged(_))));
        let granted = on("1", "subscriptions/acknowledged", r#","notifications":{"toolsListChanged":true}"#);
        let Inbound::Acknowledged { subscription, granted: what } = receive(&mut client, &granted) else {
            panic!()
        };
        assert_eq!((subscription, what.as_str()), (1.into(), r#"{"toolsListChanged":true}"#));
        assert!(matches!(receive(&mut client, &granted), Inbound::Ignored(_)), "twice");
        let Inbound::Change { change: Change::Tools, subscription } = receive(&mut client, &tools) else {
            panic!()
        };
        assert_eq!(subscription, Some(1.into()));

        for (line, ignored) in [
            (on("1", "prompts/list_changed", ""), Ignored::NotGranted(1.into())),
            (on("2", "resources/updated", r#","uri":"a:b/c""#), Ignored::NotAcknowledged(2.into())),
            // Not every string is a number, and a notification without an id belongs to no subscription.
            (on("\"01\"", "tools/list_changed", ""), Ignored::UnknownSubscription),
            (on("9", "tools/list_changed", ""), Ignored::UnknownSubscription),
            (
                r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#.into(),
                Ignored::UnknownSubscription,
            ),
        ] {
            match receive(&mut client, &line) {
                Inbound::Ignored(found) => assert_eq!(found, ignored, "{line}"),
                other => panic!("{line}: {other:?}"),
            }
        }
        receive(
            &mut client,
            &on("2", "subscriptions/acknowledged", r#","notifications":{"resourceSubscriptions":["a:b"]}"#),
        );
        // Some servers print the id that they repeat as a float.
        let updated = on("2.0", "resources/updated", r#","uri":"a:b/c""#);
        assert!(matches!(
            receive(&mut client, &updated),
            Inbound::Change { change: Change::Resource(_), .. }
        ));
        // An extension's own news come through.
        let task = on("2", "tasks", r#","taskId":"1""#);
        assert!(matches!(receive(&mut client, &task), Inbound::Notification { subscription: Some(_), .. }));
    }

    #[test]
    fn a_subscription_ends_once_however_the_server_says_it() {
        let result = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":1}}}"#;
        let cancelled = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
        for (first, second) in [(result, cancelled), (cancelled, result)] {
            let mut client = engine(R5, "{}");
            listen(&mut client, "{}");
            let inbound = receive(&mut client, first);
            assert!(matches!(inbound, Inbound::Ended { end: End::Graceful, .. }), "{inbound:?}");
            assert!(matches!(receive(&mut client, second), Inbound::Ignored(_)));
            assert!(client.lose().listen.is_empty());
        }
        let mut client = engine(R5, "{}");
        listen(&mut client, "{}");
        let refused = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}"#;
        assert!(matches!(receive(&mut client, refused), Inbound::Ended { end: End::Error(_), .. }));
    }

    #[test]
    fn a_server_may_cancel_nothing_but_subscriptions() {
        let mut client = engine(R5, "{}");
        client.request("tools/list", &object("{}"), &Extras::default()).unwrap();
        let cancelled = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
        assert!(matches!(receive(&mut client, cancelled), Inbound::Ignored(Ignored::StrayCancel)));
        let answer = receive(&mut client, r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}"#);
        assert!(matches!(answer, Inbound::Answer { outcome: RequestOutcome::Complete(_), .. }));
    }

    #[test]
    fn a_broken_connection_says_what_to_listen_to_again() {
        let mut client = engine(R5, "{}");
        listen(&mut client, r#"{"toolsListChanged":true}"#);
        client.request("tools/list", &object("{}"), &Extras::default()).unwrap();
        listen(&mut client, r#"{"promptsListChanged":true}"#);
        assert_eq!(
            client.abandon(&3.into()).unwrap().as_str(),
            r#"{"notifications":{"promptsListChanged":true}}"#
        );
        listen(&mut client, r#"{"resourcesListChanged":true}"#);
        let lost = client.lose();
        assert_eq!(lost.requests, [1.into(), 2.into(), 4.into()]);
        let again: Vec<_> = lost.listen.iter().map(|params| params.as_str()).collect();
        assert_eq!(
            again,
            [
                r#"{"notifications":{"toolsListChanged":true}}"#,
                r#"{"notifications":{"resourcesListChanged":true}}"#
            ]
        );
        assert_eq!(client.request("tools/list", &object("{}"), &Extras::default()).unwrap().id, 5.into());
    }

    #[test]
    fn a_thousand_subscriptions_are_no_slower_than_one() {
        let mut client = engine(R5, "{}");
        for _ in 0..1_000 {
            listen(&mut client, r#"{"toolsListChanged":true}"#);
        }
        for id in 1..=1_000 {
            let id = id.to_string();
            receive(
                &mut client,
                &on(&id, "subscriptions/acknowledged", r#","notifications":{"toolsListChanged":true}"#),
            );
            assert!(matches!(
                receive(&mut client, &on(&id, "tools/list_changed", "")),
                Inbound::Change { .. }
            ));
        }
    }
}
