//! Interpretation of messages from the server: the one place where they are raised to canonical shapes.

use pintle_types::{
    Malformed, MalformedKind, Message, Notification, RawObject, Request, RequestId, Response, RpcError,
    method,
};

use super::{
    Engine,
    engine::EraState,
    flights::{FlightState, Progress, repeated_id},
    inbound::{Ignored, Inbound},
    reading::RequestOutcome,
    shapes,
};
use crate::{Part, Violation, shown::shown};

impl Engine {
    /// Interprets a message.
    pub fn receive(&mut self, message: Result<Message, Box<Malformed>>) -> Inbound {
        match message {
            Ok(Message::Response(Response { id: Some(id), result, .. })) => self.receive_answer(id, result),
            Ok(Message::Response(Response { id: None, result, .. })) => self.receive_anonymous(result),
            Ok(Message::Notification(notification)) => self.receive_notification(notification),
            Ok(Message::Request(Request { id, method, params, .. })) => match &mut self.era {
                EraState::Session(session) => session.receive_request(id, &method, params),
                EraState::Stateless(stateless) => stateless.receive_request(&method),
                EraState::Opening { .. } if method == method::PING => {
                    Inbound::Reply(Response::new(Some(id), Ok(RawObject::empty())))
                }
                EraState::Opening { .. } => {
                    let error = RpcError::invalid_request(
                        "a request before the response to `initialize`: send the response first",
                    );
                    Inbound::Reply(Response::new(Some(id), Err(error)))
                }
            },
            Err(malformed) => self.receive_malformed(&malformed),
        }
    }

    /// Interprets the messages of a batch, in the one revision that has batches.
    pub fn receive_batch(&mut self, messages: Vec<Result<Message, Box<Malformed>>>) -> Vec<Inbound> {
        if !self.takes_batches() {
            return vec![Inbound::Violation(Violation::Batch)];
        }
        messages.into_iter().map(|message| self.receive(message)).collect()
    }

    fn receive_answer(&mut self, id: RequestId, result: Result<RawObject, RpcError>) -> Inbound {
        let number = match self.flights.state(&id) {
            FlightState::Flying(number) => number,
            FlightState::Over => return Inbound::Ignored(Ignored::LateAnswer(id)),
            FlightState::Never => return Inbound::Ignored(Ignored::UnknownAnswer(id)),
        };
        let Some(flight) = self.flights.remove(number) else {
            return Inbound::Ignored(Ignored::LateAnswer(id));
        };
        // The same for both eras. While opening, no revision is agreed on, and the opening raises what it reads.
        let raised = match (self.revision(), result) {
            (Some(revision), Ok(result)) => {
                shapes::raise(revision, Part::Result(&flight.method), result).map(Ok)
            }
            (_, result) => Ok(result),
        };
        let result = match raised {
            Ok(result) => result,
            Err(reason) => {
                if let EraState::Stateless(stateless) = &mut self.era {
                    stateless.subscriptions.remove(number);
                }
                let violation = Violation::MalformedResult { method: flight.method.into(), reason };
                return Inbound::Answer { id: number.into(), outcome: RequestOutcome::Violation(violation) };
            }
        };
        let outcome = match &mut self.era {
            EraState::Opening { .. } => match result {
                Ok(result) => RequestOutcome::Complete(result),
                Err(error) => RequestOutcome::Error(error),
            },
            EraState::Session(session) => session.read(&flight.method, result),
            EraState::Stateless(stateless) if stateless.subscriptions.contains(number) => {
                return stateless.read_end(number, result);
            }
            EraState::Stateless(stateless) => stateless.read(&flight.method, result, flight.can),
        };
        Inbound::Answer { id: number.into(), outcome }
    }

    /// Handles a response without an id. While opening, exactly one request is in flight, and an error without an id
    /// belongs to it.
    fn receive_anonymous(&mut self, result: Result<RawObject, RpcError>) -> Inbound {
        match (&self.era, self.flights.only(), result) {
            (EraState::Opening { given_up: false }, Some(id), Err(error)) => {
                self.receive_answer(id.into(), Err(error))
            }
            (_, _, Err(error)) => {
                Inbound::Violation(Violation::AnonymousError { reason: shown(&error.to_string()) })
            }
            (_, _, Ok(_)) => Inbound::Ignored(Ignored::AnonymousAnswer),
        }
    }

    fn receive_notification(&mut self, mut notification: Notification) -> Inbound {
        // While opening there is no revision yet, and the params stay.
        if let Some(revision) = self.revision()
            && let Some(params) = notification.params.take()
        {
            match shapes::raise(revision, Part::Params(&notification.method), params) {
                Ok(params) => notification.params = Some(params),
                Err(_) => return Inbound::Ignored(Ignored::Malformed(shown(&notification.method))),
            }
        }
        if notification.method == method::NOTIFICATIONS_PROGRESS {
            return self.receive_progress(notification);
        }
        match &mut self.era {
            EraState::Session(session) => session.receive_notification(notification),
            EraState::Stateless(stateless) => {
                let (inbound, ended) = stateless.receive_notification(notification, self.flights.wants_log());
                if let Some(id) = ended {
                    self.flights.remove(id);
                }
                inbound
            }
            EraState::Opening { .. } => match notification {
                Notification { method, params: Some(params), .. }
                    if method == method::NOTIFICATIONS_MESSAGE =>
                {
                    Inbound::Log(params)
                }
                Notification { method, .. } => Inbound::Ignored(Ignored::TooEarly(shown(&method))),
            },
        }
    }

    fn receive_progress(&mut self, notification: Notification) -> Inbound {
        let Some(params) = notification.params else {
            return Inbound::Ignored(Ignored::Malformed(notification.method.into()));
        };
        let token = repeated_id(&params, "progressToken");
        let progress = params.decode_member::<f64>("progress");
        let (Some(token), Ok(Some(progress))) = (token, progress) else {
            return Inbound::Ignored(Ignored::Malformed(notification.method.into()));
        };
        // The token of a request is its id.
        let FlightState::Flying(id) = self.flights.state(&token) else {
            return Inbound::Ignored(Ignored::StrayProgress);
        };
        let Some(flight) = self.flights.get_mut(id) else {
            return Inbound::Ignored(Ignored::StrayProgress);
        };
        match flight.progress {
            Progress::Unasked => return Inbound::Ignored(Ignored::StrayProgress),
            Progress::At(before) if progress <= before => {
                return Inbound::Ignored(Ignored::BackwardProgress(token));
            }
            Progress::Asked | Progress::At(_) => flight.progress = Progress::At(progress),
        }
        Inbound::Progress { id: id.into(), params }
    }

    fn receive_malformed(&mut self, malformed: &Malformed) -> Inbound {
        let reason = shown(&malformed.fault);
        match (malformed.kind, &malformed.id) {
            (MalformedKind::Answer, Some(id)) => match self.flights.state(id) {
                FlightState::Flying(number) => {
                    self.flights.remove(number);
                    if let EraState::Stateless(stateless) = &mut self.era {
                        stateless.subscriptions.remove(number);
                    }
                    let violation = Violation::MalformedAnswer { id: number.into(), reason };
                    Inbound::Answer { id: number.into(), outcome: RequestOutcome::Violation(violation) }
                }
                _ => Inbound::Violation(Violation::NotAMessage { reason }),
            },
            (MalformedKind::Call, Some(_)) if matches!(self.era, EraState::Session(_)) => malformed
                .reply()
                .map_or(Inbound::Violation(Violation::NotAMessage { reason }), Inbound::Reply),
            (MalformedKind::Unclear, None) => Inbound::Ignored(Ignored::Noise(reason)),
            _ => Inbound::Violation(Violation::NotAMessage { reason }),
        }
    }
}
