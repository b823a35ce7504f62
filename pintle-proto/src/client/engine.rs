use std::borrow::Cow;

use pintle_types::{Notification, RawObject, Request, RequestId, Response, RpcError, method};
use serde::Serialize;

use super::{
    extras::Extras,
    flights::{Flight, FlightState, Flights, Progress},
    opening::Opened,
    profile::Profile,
    send_error::SendError,
    session::ClientSession,
    shapes,
    stateless::Stateless,
};
use crate::{
    Limits, Part, Revision,
    revision::{Knows, MessageKind},
};

/// The protocol state of one client connection.
///
/// It assigns request ids, adds what the server's era requires, tracks the requests in flight, and interprets each
/// message from the server. It does no I/O: write what it returns, and pass it what you read.
///
/// ```
/// use pintle_proto::{Limits, Revision};
/// use pintle_proto::client::{
///     Engine, Extras, Inbound, Mode, Opening, OpeningEvent, OpeningStep, Profile, RequestOutcome,
/// };
/// use pintle_types::Message;
///
/// let profile = Profile::new(r#"{"name":"demo","version":"1"}"#.parse()?, "{}".parse()?);
/// let mut engine = Engine::new(profile.clone(), Limits::default());
///
/// // Opening: send what it returns, and pass it the response.
/// let (mut opening, step) = Opening::new(profile, Mode::Auto, None);
/// let OpeningStep::Send { method, params, .. } = step else { panic!() };
/// engine.opening_request(method, params);
/// let line = format!(
///     r#"{{"jsonrpc":"2.0","id":1,"result":{{"resultType":"complete","supportedVersions":["{}"],"capabilities":{{}}}}}}"#,
///     Revision::LATEST
/// );
/// let Inbound::Answer { outcome, .. } = engine.receive(Message::parse(line.as_bytes())) else { panic!() };
/// let OpeningStep::Ready(opened) = opening.step(OpeningEvent::from(&outcome)) else { panic!() };
/// engine.settle(&opened);
///
/// // Then requests and responses.
/// let request = engine.request("tools/list", &"{}".parse()?, &Extras::default())?;
/// assert_eq!(request.id, 2.into());
/// let line = br#"{"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","tools":[]}}"#;
/// let Inbound::Answer { outcome, .. } = engine.receive(Message::parse(line)) else { panic!() };
/// assert!(matches!(outcome, RequestOutcome::Complete(result) if result.get("tools") == Some("[]")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Engine {
    profile: Profile,
    limits: Limits,
    pub(super) flights: Flights,
    pub(super) era: EraState,
}

/// The requests that were lost with a connection.
#[non_exhaustive]
#[derive(Clone, Debug, Default)]
pub struct Lost {
    /// The requests that will not be answered, including subscriptions.
    pub requests: Vec<RequestId>,
    /// The params of the subscriptions among them, to subscribe again.
    pub listen: Vec<RawObject>,
}

#[derive(Debug)]
pub(super) enum EraState {
    /// `given_up` is whether a request of the opening was abandoned, whose response may still arrive.
    Opening {
        given_up: bool,
    },
    Session(ClientSession),
    Stateless(Stateless),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Cancelled<'a> {
    request_id: &'a RequestId,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

impl Engine {
    /// Creates an engine for a connection that is not open yet.
    pub fn new(profile: Profile, limits: Limits) -> Self {
        Self { profile, limits, flights: Flights::new(), era: EraState::Opening { given_up: false } }
    }

    /// Returns a request of the opening, whose params are complete.
    pub fn opening_request(&mut self, method: &'static str, params: RawObject) -> Request {
        let method = Cow::Borrowed(method);
        let flight = Flight { method: method.clone(), progress: Progress::Unasked, log: false, can: None };
        Request::new(self.flights.add(flight).into(), method, Some(params))
    }

    /// Sets the era and the revision that the opening determined.
    pub fn settle(&mut self, opened: &Opened) {
        let revision = opened.revision;
        self.era = if revision.is_stateless() {
            EraState::Stateless(Stateless::new(&self.profile, revision, &self.limits))
        } else {
            EraState::Session(ClientSession::new(&self.profile, revision, &self.limits))
        };
    }

    /// Returns the agreed revision, once it is known.
    pub fn revision(&self) -> Option<Revision> {
        match &self.era {
            EraState::Opening { .. } => None,
            EraState::Session(session) => Some(session.revision),
            EraState::Stateless(stateless) => Some(stateless.revision),
        }
    }

    /// Returns whether the revision has batches. Only one has.
    pub fn takes_batches(&self) -> bool {
        matches!(&self.era, EraState::Session(session) if session.takes_batches())
    }

    /// Returns a request with a new id, in the form that the server's era requires. Its response is returned by
    /// [`receive`](Self::receive).
    ///
    /// `params` are in canonical shapes, and may have a `_meta` of the caller's.
    ///
    /// # Errors
    ///
    /// The server's revision lacks the method or cannot express the params, or too many requests are in flight.
    pub fn request(
        &mut self,
        method: impl Into<Cow<'static, str>>,
        params: &RawObject,
        extras: &Extras<'_>,
    ) -> Result<Request, SendError> {
        self.prepare_request(method.into(), params, extras)
    }

    fn prepare_request(
        &mut self,
        method: Cow<'static, str>,
        params: &RawObject,
        extras: &Extras<'_>,
    ) -> Result<Request, SendError> {
        self.available(MessageKind::Request, &method)?;
        if self.flights.len() >= self.limits.in_flight {
            return Err(SendError::TooMany { limit: self.limits.in_flight });
        }
        let id = self.flights.next_id();
        let (mut log, mut can) = (false, None);
        let progress;
        let prepared = match &mut self.era {
            EraState::Opening { .. } => return Err(SendError::NotOpen),
            EraState::Session(session) => {
                // It is nearly always absent; no empty object is created.
                let own = params.object_member("_meta").ok().flatten();
                progress = extras.wants_progress(own.as_ref());
                session.prepare(id, &method, params, own.as_ref(), extras)?
            }
            EraState::Stateless(stateless) => {
                let prepared = stateless.prepare(id, &method, params, extras)?;
                (log, can, progress) = (prepared.log, prepared.can, prepared.progress);
                if method == method::SUBSCRIPTIONS_LISTEN {
                    stateless.subscriptions.add(id, params.clone());
                }
                Some(prepared.params)
            }
        };
        let progress = if progress { Progress::Asked } else { Progress::Unasked };
        let id = self.flights.add(Flight { method: method.clone(), progress, log, can });
        Ok(Request::new(id.into(), method, prepared))
    }

    /// Returns the method of a request that is in flight.
    pub fn method(&self, id: &RequestId) -> Option<&str> {
        let FlightState::Flying(number) = self.flights.state(id) else { return None };
        self.flights.get(number).map(|flight| &*flight.method)
    }

    /// Returns a notification in the shapes of the server's revision.
    ///
    /// # Errors
    ///
    /// The server's revision lacks the notification, or cannot express the params.
    pub fn notify(
        &self,
        method: impl Into<Cow<'static, str>>,
        params: Option<RawObject>,
    ) -> Result<Notification, SendError> {
        let method = method.into();
        self.available(MessageKind::Notification, &method)?;
        let revision = self.revision().ok_or(SendError::NotOpen)?;
        let params =
            params.map(|params| shapes::lower(revision, Part::Params(&method), params)).transpose()?;
        Ok(Notification::new(method, params))
    }

    fn available(&self, kind: MessageKind, method: &str) -> Result<(), SendError> {
        let revision = self.revision().ok_or(SendError::NotOpen)?;
        match revision.knows(kind, method) {
            Knows::Has | Knows::Never => Ok(()),
            Knows::Lacks => Err(SendError::Unavailable { method: method.into(), revision }),
        }
    }

    /// Cancels a request, and returns the notification for the server. A response that still arrives is ignored.
    ///
    /// Returns `None` for a request that has ended, and for `initialize`, which cannot be cancelled. Over HTTP in the
    /// stateless era, closing the request's stream cancels it, and the notification is not sent.
    pub fn cancel(&mut self, id: &RequestId, reason: Option<&str>) -> Option<Notification> {
        let FlightState::Flying(number) = self.flights.state(id) else { return None };
        let flight = self.flights.remove(number)?;
        if let EraState::Stateless(stateless) = &mut self.era {
            stateless.subscriptions.remove(number);
        }
        if flight.method == method::INITIALIZE {
            return None;
        }
        let params = Cancelled { request_id: id, reason };
        Some(Notification::new(method::NOTIFICATIONS_CANCELLED, RawObject::from_serialize(&params).ok()))
    }

    /// Drops a request without notifying the server, for example because its stream broke.
    ///
    /// Returns the params to subscribe again with, if it was a subscription.
    pub fn abandon(&mut self, id: &RequestId) -> Option<RawObject> {
        let FlightState::Flying(number) = self.flights.state(id) else { return None };
        self.flights.remove(number);
        match &mut self.era {
            EraState::Stateless(stateless) => stateless.subscriptions.remove(number),
            EraState::Opening { given_up } => {
                *given_up = true;
                None
            }
            EraState::Session(_) => None,
        }
    }

    /// Drops all requests, because the connection broke. Ids are not reused.
    ///
    /// A session is lost with its connection and has to be opened again. A stateless client can send its next request
    /// over a new connection.
    pub fn lose(&mut self) -> Lost {
        let requests = self.flights.drain();
        let listen = match &mut self.era {
            EraState::Stateless(stateless) => stateless.subscriptions.drain(),
            EraState::Session(_) | EraState::Opening { .. } => {
                self.era = EraState::Opening { given_up: false };
                Vec::new()
            }
        };
        Lost { requests, listen }
    }

    /// Returns the response to a question from the server, or `None` if the question is not open.
    pub fn reply(&mut self, id: &RequestId, answer: Result<RawObject, RpcError>) -> Option<Response> {
        match &mut self.era {
            EraState::Session(session) => session.reply(id, answer),
            EraState::Opening { .. } | EraState::Stateless(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Violation,
        client::{
            Ignored, Inbound, RequestOutcome,
            testing::{engine, object, printed, receive},
        },
    };

    const BOTH: [&str; 2] = ["2025-11-25", "2026-07-28"];

    #[test]
    fn an_answer_whose_id_became_a_text_or_a_float_is_taken() {
        let prints = [r#""1""#, "1.0"];
        for (revision, printed) in BOTH.into_iter().flat_map(|revision| prints.map(|it| (revision, it))) {
            let mut client = engine(revision, "{}");
            let extras = Extras { progress: true, ..Extras::default() };
            client.request("tools/list", &object("{}"), &extras).unwrap();
            let progress = format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{printed},"progress":1}}}}"#
            );
            assert!(
                matches!(receive(&mut client, &progress), Inbound::Progress { id, .. } if id == 1.into())
            );
            let answer = format!(r#"{{"jsonrpc":"2.0","id":{printed},"result":{{"tools":[]}}}}"#);
            assert!(matches!(
                receive(&mut client, &answer),
                Inbound::Answer { id, outcome: RequestOutcome::Complete(_) } if id == 1.into()
            ));
            client.request("tools/list", &object("{}"), &Extras::default()).unwrap();
            let malformed = r#"{"jsonrpc":"1.0","id":"2","result":{}}"#;
            let Inbound::Answer { id, outcome: RequestOutcome::Violation(violation) } =
                receive(&mut client, malformed)
            else {
                panic!("an answer")
            };
            assert_eq!(id, 2.into());
            assert_eq!(
                violation.to_string(),
                "the response to request 2 is malformed: `jsonrpc` is not \"2.0\""
            );
        }
    }

    #[test]
    fn capabilities_of_one_request_are_declared_and_honoured_for_it_alone() {
        let mut client = engine("2026-07-28", "{}");
        let form = object(r#"{"elicitation":{"form":{}}}"#);
        let extras = Extras { capabilities: Some(&form), ..Extras::default() };
        let call = object(r#"{"name":"t"}"#);
        let first = printed(client.request("tools/call", &call, &extras).unwrap());
        assert!(first.contains(r#"clientCapabilities":{"elicitation":{"form":{}}}"#), "{first}");
        let second = printed(client.request("tools/call", &call, &Extras::default()).unwrap());
        assert!(second.contains(r#"clientCapabilities":{}"#), "{second}");
        assert_eq!(client.method(&1.into()), Some("tools/call"));
        let asks = |id: u8| {
            let question = r#"{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object"}}}"#;
            let result = format!(r#"{{"resultType":"input_required","inputRequests":{{"k":{question}}}}}"#);
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
        };
        let outcome = |inbound| match inbound {
            Inbound::Answer { outcome, .. } => outcome,
            other => panic!("{other:?}"),
        };
        assert!(matches!(outcome(receive(&mut client, &asks(1))), RequestOutcome::InputRequired(_)));
        assert!(matches!(
            outcome(receive(&mut client, &asks(2))),
            RequestOutcome::Violation(Violation::UndeclaredQuestion { .. })
        ));
        assert_eq!(client.method(&1.into()), None);
    }

    #[test]
    fn an_answer_is_taken_once_and_only_if_it_was_asked_for() {
        for revision in BOTH {
            let mut client = engine(revision, "{}");
            client.request("tools/list", &object("{}"), &Extras::default()).unwrap();
            let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}"#;
            assert!(matches!(receive(&mut client, answer), Inbound::Answer { id, .. } if id == 1.into()));
            for (line, ignored) in [
                (answer, Ignored::LateAnswer(1.into())),
                (r#"{"jsonrpc":"2.0","id":2,"result":{}}"#, Ignored::UnknownAnswer(2.into())),
                (r#"{"jsonrpc":"2.0","id":-1,"result":{}}"#, Ignored::UnknownAnswer((-1).into())),
                (r#"{"jsonrpc":"2.0","id":"1","result":{}}"#, Ignored::LateAnswer("1".into())),
                (r#"{"jsonrpc":"2.0","id":"01","result":{}}"#, Ignored::UnknownAnswer("01".into())),
                (r#"{"jsonrpc":"2.0","result":{}}"#, Ignored::AnonymousAnswer),
            ] {
                match receive(&mut client, line) {
                    Inbound::Ignored(found) => assert_eq!(found, ignored),
                    other => panic!("{line}: {other:?}"),
                }
            }
        }
    }

    #[test]
    fn a_cancelled_request_is_notified_once_and_its_answer_ignored() {
        for revision in BOTH {
            let mut client = engine(revision, "{}");
            let request =
                client.request("tools/call", &object(r#"{"name":"t"}"#), &Extras::default()).unwrap();
            let notification = client.cancel(&request.id, Some("no more")).unwrap();
            assert_eq!(
                printed(notification),
                r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"no more"}}"#
            );
            assert!(client.cancel(&request.id, None).is_none());
            assert!(client.cancel(&"1".into(), None).is_none());
            let late = receive(&mut client, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
            assert!(matches!(late, Inbound::Ignored(Ignored::LateAnswer(_))));
        }
    }

    #[test]
    fn progress_goes_forward_and_only_where_it_was_asked_for() {
        for revision in BOTH {
            let mut client = engine(revision, "{}");
            let asked = Extras { progress: true, ..Extras::default() };
            client.request("tools/call", &object(r#"{"name":"t"}"#), &asked).unwrap();
            client.request("tools/call", &object(r#"{"name":"t"}"#), &Extras::default()).unwrap();
            let mut progress = |token: &str, progress: &str| {
                let line = format!(
                    r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{progress}}}}}"#
                );
                receive(&mut client, &line)
            };
            assert!(matches!(progress("1", "0"), Inbound::Progress { id, .. } if id == 1.into()));
            assert!(matches!(progress("1", "0"), Inbound::Ignored(Ignored::BackwardProgress(_))));
            assert!(matches!(progress("1", "0.5"), Inbound::Progress { .. }));
            assert!(matches!(progress("1", "0.25"), Inbound::Ignored(Ignored::BackwardProgress(_))));
            assert!(matches!(progress("2", "1"), Inbound::Ignored(Ignored::StrayProgress)));
            assert!(matches!(progress("3", "1"), Inbound::Ignored(Ignored::StrayProgress)));
            assert!(matches!(progress("\"01\"", "1"), Inbound::Ignored(Ignored::StrayProgress)));
            assert!(matches!(progress("1", "\"1\""), Inbound::Ignored(Ignored::Malformed(_))));
        }
    }

    #[test]
    fn a_malformed_answer_spoils_its_own_request_only() {
        for revision in BOTH {
            let mut client = engine(revision, "{}");
            client.request("tools/list", &object("{}"), &Extras::default()).unwrap();
            client.request("prompts/list", &object("{}"), &Extras::default()).unwrap();
            let both = r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}"#;
            let inbound = receive(&mut client, both);
            assert!(
                matches!(
                    &inbound,
                    Inbound::Answer { id, outcome: RequestOutcome::Violation(Violation::MalformedAnswer { .. }) } if *id == 1.into()
                ),
                "{inbound:?}"
            );
            assert!(matches!(
                receive(&mut client, "listening on port 80"),
                Inbound::Ignored(Ignored::Noise(_))
            ));
            let anonymous = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what"}}"#;
            assert!(matches!(
                receive(&mut client, anonymous),
                Inbound::Violation(Violation::AnonymousError { .. })
            ));
            let fine = receive(&mut client, r#"{"jsonrpc":"2.0","id":2,"result":{"prompts":[]}}"#);
            assert!(matches!(fine, Inbound::Answer { outcome: RequestOutcome::Complete(_), .. }));
        }
    }

    #[test]
    fn requests_are_bounded() {
        let mut client = engine("2026-07-28", "{}");
        client.limits.in_flight = 2;
        for _ in 0..2 {
            client.request("tools/list", &object("{}"), &Extras::default()).unwrap();
        }
        let error = client.request("tools/list", &object("{}"), &Extras::default()).unwrap_err();
        assert_eq!(error.to_string(), "2 requests are already in flight: wait for their responses");
    }

    #[test]
    fn ten_thousand_requests_answered_backwards() {
        let mut client = engine("2026-07-28", "{}");
        for _ in 0..10_000 {
            client.request("tools/list", &object("{}"), &Extras::default()).unwrap();
        }
        for id in (1..=10_000).rev() {
            let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tools":[]}}}}"#);
            assert!(matches!(receive(&mut client, &line), Inbound::Answer { .. }));
        }
        assert!(client.lose().requests.is_empty());
    }

    #[test]
    fn a_lost_session_is_to_be_opened_again() {
        let mut client = engine("2025-11-25", r#"{"roots":{}}"#);
        client.request("tools/list", &object("{}"), &Extras::default()).unwrap();
        receive(&mut client, r#"{"jsonrpc":"2.0","id":9,"method":"roots/list"}"#);
        assert_eq!(client.lose().requests, [1.into()]);
        assert_eq!(client.revision(), None);
        assert!(client.reply(&9.into(), Ok(object(r#"{"roots":[]}"#))).is_none());
        assert_eq!(client.opening_request("initialize", object("{}")).id, 2.into());
    }

    #[test]
    fn before_the_opening_is_done_little_is_understood() {
        let profile = Profile::new(object(r#"{"name":"t","version":"1"}"#), object(r#"{"roots":{}}"#));
        let mut client = Engine::new(profile, Limits::default());
        assert_eq!(
            client.request("tools/list", &object("{}"), &Extras::default()).unwrap_err(),
            SendError::NotOpen
        );
        let request = client.opening_request("initialize", object("{}"));
        assert!(matches!(
            receive(&mut client, r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#),
            Inbound::Reply(Response { result: Ok(_), .. })
        ));
        assert!(matches!(
            receive(&mut client, r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#),
            Inbound::Reply(Response { result: Err(_), .. })
        ));
        assert!(matches!(
            receive(&mut client, r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#),
            Inbound::Ignored(Ignored::TooEarly(_))
        ));
        // The one thing that was asked is what an error without an id is about.
        let inbound =
            receive(&mut client, r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what"}}"#);
        assert!(
            matches!(inbound, Inbound::Answer { id, outcome: RequestOutcome::Error(_) } if id == request.id)
        );
        // Unless an earlier question was given up: then it may be about that.
        let probe = client.opening_request("server/discover", object("{}"));
        client.abandon(&probe.id);
        client.opening_request("initialize", object("{}"));
        let inbound = receive(&mut client, r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"what"}}"#);
        assert!(matches!(inbound, Inbound::Violation(Violation::AnonymousError { .. })));
        // The handshake cannot be cancelled.
        let again = client.opening_request("initialize", object("{}"));
        assert!(client.cancel(&again.id, None).is_none());
    }
}
