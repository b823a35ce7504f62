use std::{
    fmt,
    future::poll_fn,
    io,
    sync::atomic::Ordering,
    task::{Context, Poll},
    time::Duration,
};

use http::HeaderMap;
use pintle_proto::{
    Revision,
    client::{Inbound, OpenError, Opening, OpeningEvent, OpeningStep, RequestOutcome, Verdict},
    http::Probed,
};
use pintle_types::{Message, Notification, RawObject, RequestId, method, schema::SetLevelParams};
use tokio::time::{Instant, sleep, timeout};

use super::{
    BUDGET, Driver, STEADY,
    own_messages::{LayerStep, OwnKind, OwnMessage},
};
use crate::{
    Ended, Error, Result,
    client::state::ServerFacts,
    timeouts::after,
    transport::{Failed, Incoming, Oversized, Skipped},
};

/// A request of the opening that the server refused.
struct Refusal {
    method: &'static str,
    status: u16,
    reason: Box<str>,
}

impl Refusal {
    /// Records the reason of a refusal, unless it is known already.
    fn note(refusals: &mut Vec<Self>, method: &'static str, failed: &Failed) {
        if let (Some(status), Some(reason)) = (failed.status, failed.reason.clone())
            && !refusals.iter().any(|known| known.reason == reason)
        {
            refusals.push(Self { method, status, reason });
        }
    }

    /// Returns the first refusal of a caller, which is the reason of whatever fails after it.
    fn of_caller(refusals: &[Self]) -> Option<&Self> {
        refusals.iter().find(|refusal| matches!(refusal.status, 401 | 403))
    }
}

/// The outcome of a request of the opening.
enum OpeningReply {
    Answer(RequestOutcome),
    /// The probe was answered after it had been given up, and that decides.
    Decided(OpeningStep),
    Failed(Box<Failed>),
    Silence,
    Gone,
}

impl OpeningReply {
    /// Returns what the layers see of it.
    fn outcome(&self, wait: Duration, ended: impl FnOnce() -> Ended) -> Result<RequestOutcome> {
        Err(match self {
            Self::Answer(outcome) => return Ok(outcome.clone()),
            Self::Failed(failed) => Error::Failed(failed.clone()),
            Self::Decided(_) | Self::Silence => Error::Timeout(wait),
            Self::Gone => Error::Closed(ended()),
        })
    }
}

/// A request of the opening.
struct OpeningRequest {
    method: &'static str,
    revision: Revision,
    wait: Duration,
}

impl Driver {
    /// Opens the connection and negotiates era and revision.
    pub(in crate::client) async fn open(&mut self, remembered: Option<Verdict>) -> Result<()> {
        let mode = self.shared.settings.mode;
        let (mut opening, mut step) = Opening::new(self.profile.clone(), mode, remembered);
        // There are few requests in an opening.
        let mut refusals = Vec::new();
        let mut late_probe = None;
        loop {
            step = match step {
                OpeningStep::Send { method, params, revision } => {
                    let timeouts = &self.shared.settings.timeouts;
                    let wait = if opening.may_fall_back() { timeouts.probe } else { timeouts.initialize };
                    let send = OpeningRequest { method, revision, wait };
                    match self.opening_reply(&send, params, &mut late_probe, &mut opening).await? {
                        OpeningReply::Answer(outcome) => opening.step(OpeningEvent::from(&outcome)),
                        OpeningReply::Decided(step) => step,
                        OpeningReply::Failed(failed) => match era_evidence(&failed, method) {
                            Some(event) => {
                                Refusal::note(&mut refusals, method, &failed);
                                opening.step(event)
                            }
                            None => return Err(failed_after(failed, &refusals)),
                        },
                        OpeningReply::Silence => opening.step(OpeningEvent::Silence),
                        OpeningReply::Gone => {
                            self.engine.lose();
                            opening.step(OpeningEvent::Closed)
                        }
                    }
                }
                OpeningStep::Notify(notification) => {
                    self.notify_opened(notification, opening.agreed()).await?;
                    opening.step(OpeningEvent::Done)
                }
                // What never read the question would end again.
                OpeningStep::Reopen if self.transport.ended_unread() => opening.step(OpeningEvent::Closed),
                OpeningStep::Reopen => match self.restart() {
                    Ok(()) => opening.step(OpeningEvent::Done),
                    Err(_) => opening.step(OpeningEvent::Closed),
                },
                OpeningStep::TwoEndpoints => {
                    let wait = self.shared.settings.timeouts.initialize;
                    match timeout(wait, poll_fn(|cx| self.transport.poll_sse_endpoints(cx))).await {
                        Ok(Ok(())) => {
                            self.shared.has_streams.store(false, Ordering::Relaxed);
                            opening.step(OpeningEvent::Done)
                        }
                        Ok(Err(failed)) => match failed.status {
                            Some(status) if failed.probed == Probed::Rejected => {
                                Refusal::note(&mut refusals, "GET", &failed);
                                opening.step(OpeningEvent::Status { status, error: None })
                            }
                            _ => return Err(failed_after(failed, &refusals)),
                        },
                        Err(_) => {
                            return Err(
                                self.refused(OpenError::Silent { method: method::INITIALIZE }, &refusals)
                            );
                        }
                    }
                }
                OpeningStep::Ready(opened) => {
                    late_probe.iter().for_each(|id| drop(self.engine.abandon(id)));
                    self.engine.settle(&opened);
                    self.shared.set_server_facts(ServerFacts::new(
                        *opened,
                        self.engine.takes_batches(),
                        self.shared.has_headers,
                    ));
                    self.resume();
                    self.own_passed().await;
                    return Ok(());
                }
                OpeningStep::Failed(error) => return Err(self.refused(error, &refusals)),
                _ => return Err(self.refused(OpenError::OutOfStep, &refusals)),
            };
        }
    }

    /// Sends a request of the opening, through the layers, and waits for its answer.
    async fn opening_reply(
        &mut self,
        request: &OpeningRequest,
        params: RawObject,
        late_probe: &mut Option<RequestId>,
        opening: &mut Opening,
    ) -> Result<OpeningReply> {
        let kind = OwnKind::Request(request.method);
        let mut own = OwnMessage::new(&self.shared, kind, params, Some(request.revision));
        let mut replied = None;
        loop {
            match own.next().await {
                LayerStep::Passed(params, reply) => {
                    let answer = self.send_opening(request, params, late_probe, opening).await;
                    reply.send(answer.outcome(request.wait, || self.went_away()));
                    replied = Some(answer);
                }
                LayerStep::Ended(result) => {
                    return match (replied, result) {
                        (None | Some(OpeningReply::Answer(_)), Ok(result)) => {
                            Ok(OpeningReply::Answer(RequestOutcome::Complete(result)))
                        }
                        // The layers refuse it.
                        (None | Some(OpeningReply::Answer(RequestOutcome::Complete(_))), Err(error)) => {
                            Err(error)
                        }
                        // It tells something of the server's era, whatever the layers make of it.
                        (Some(other), _) => Ok(other),
                    };
                }
            }
        }
    }

    async fn send_opening(
        &mut self,
        request: &OpeningRequest,
        params: RawObject,
        late_probe: &mut Option<RequestId>,
        opening: &mut Opening,
    ) -> OpeningReply {
        let OpeningRequest { method, revision, wait } = *request;
        let request = self.engine.opening_request(method, params);
        let id = request.id.clone();
        self.send_as(&Message::Request(request), Some(revision), HeaderMap::new());
        let reply = self.answer_to(&id, wait, late_probe, opening).await;
        match &reply {
            OpeningReply::Answer(_) | OpeningReply::Gone => {}
            // A server that starts slowly still answers it, unless its stream is closed.
            OpeningReply::Silence if method == method::SERVER_DISCOVER && !self.transport.abandon(&id) => {
                *late_probe = Some(id);
            }
            OpeningReply::Silence | OpeningReply::Decided(_) | OpeningReply::Failed(_) => {
                self.engine.abandon(&id);
            }
        }
        reply
    }

    /// Sends the notification that ends the opening, through the layers.
    async fn notify_opened(&mut self, notification: Notification, revision: Option<Revision>) -> Result<()> {
        let Notification { method, params, .. } = notification;
        let kind = OwnKind::Notification(method::NOTIFICATIONS_INITIALIZED);
        let mut own = OwnMessage::new(&self.shared, kind, params.unwrap_or_default(), revision);
        loop {
            match own.next().await {
                LayerStep::Passed(params, reply) => {
                    let params = Some(params).filter(|params| !params.is_empty());
                    let message = Message::Notification(Notification::new(method.clone(), params));
                    self.send_as(&message, revision, HeaderMap::new());
                    reply.complete();
                }
                LayerStep::Ended(result) => return result.map(drop),
            }
        }
    }

    /// Opens a lost connection again, if the transport supports it. Returns whether it succeeded.
    pub(super) async fn open_again(&mut self) -> bool {
        if self.since.elapsed() > STEADY {
            self.losses = 0;
        }
        while self.losses < self.shared.settings.reconnects && !self.commands.is_closed() {
            if self.losses > 0 {
                sleep(Duration::from_millis(250) * 2u32.saturating_pow(self.losses.min(6))).await;
            }
            self.losses += 1;
            match self.restart() {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Unsupported => return false,
                Err(error) => {
                    tracing::debug!(%error, "the connection could not be opened again");
                    continue;
                }
            }
            // Where every request stands alone there is nothing to open: it only has to be possible to write.
            let opened = match self.engine.revision() {
                Some(_) => {
                    self.resume();
                    self.own_passed().await;
                    self.written().await
                }
                None => self.open(self.shared.server_facts().verdict).await,
            };
            match opened {
                Ok(()) => {
                    self.shared.reopened();
                    return true;
                }
                Err(error) => tracing::debug!(%error, "the connection could not be opened again"),
            }
        }
        false
    }

    fn restart(&mut self) -> io::Result<()> {
        self.transport.restart()?;
        self.engine.lose();
        self.clear_line();
        Ok(())
    }

    async fn written(&mut self) -> Result<()> {
        let wait = self.shared.settings.timeouts.initialize;
        let written = timeout(wait, poll_fn(|cx| self.transport.poll_flush(cx))).await;
        Ok(written.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?)
    }

    /// Restores keepalive, log level and subscriptions of an open connection.
    fn resume(&mut self) {
        let now = Instant::now();
        self.since = now;
        self.misses = 0;
        self.keepalive = self.shared.settings.timeouts.keepalive.map(|every| after(now, every));
        let logs = self.shared.server_facts().capabilities.as_ref().is_some_and(|can| can.logging.is_some());
        if let (true, Some(level)) = (logs, self.shared.log_level()) {
            // Where levels go with each request there is no such method, and none is needed.
            if let Ok(params) = RawObject::from_serialize(&SetLevelParams::new(level)) {
                self.send_own(OwnKind::Request(method::LOGGING_SET_LEVEL), params);
            }
        }
        self.watch_again();
    }

    /// Waits for the answer to a request of the opening, or to a probe before it that was given up.
    async fn answer_to(
        &mut self,
        id: &RequestId,
        wait: Duration,
        late_probe: &mut Option<RequestId>,
        opening: &mut Opening,
    ) -> OpeningReply {
        loop {
            let begun = self.shared.deadline_pauses.ended();
            let answer = poll_fn(|cx| self.poll_answer(cx, id, late_probe, opening));
            match timeout(wait, answer).await {
                Ok(came) => return came,
                // As while a user logs in.
                Err(_) if self.shared.was_held_up(begun) => {}
                Err(_) => return OpeningReply::Silence,
            }
        }
    }

    fn poll_answer(
        &mut self,
        cx: &mut Context<'_>,
        id: &RequestId,
        late_probe: &mut Option<RequestId>,
        opening: &mut Opening,
    ) -> Poll<OpeningReply> {
        for _ in 0..BUDGET {
            if self.poll_write(cx).is_ready() {
                return Poll::Ready(OpeningReply::Gone);
            }
            if self.owes_much() {
                return Poll::Pending;
            }
            let incoming = match self.transport.poll_recv(cx) {
                Poll::Ready(Ok(Some(incoming))) => incoming,
                Poll::Ready(Ok(None) | Err(_)) => return Poll::Ready(OpeningReply::Gone),
                Poll::Pending => return Poll::Pending,
            };
            let bytes = match incoming {
                Incoming::Failed(failed) if failed.request.as_ref() == Some(id) => {
                    return Poll::Ready(OpeningReply::Failed(failed));
                }
                Incoming::Oversized(oversized) if may_answer(&oversized, id) => {
                    return Poll::Ready(OpeningReply::Failed(Box::new(oversized.failed().of(id))));
                }
                Incoming::Message(bytes) => bytes,
                other => {
                    self.receive(other);
                    continue;
                }
            };
            for inbound in self.read(&bytes).into_vec() {
                match inbound {
                    Inbound::Answer { id: answered, outcome } if answered == *id => {
                        self.transport.answered(id);
                        return Poll::Ready(OpeningReply::Answer(outcome));
                    }
                    Inbound::Answer { id: answered, outcome } if Some(&answered) == late_probe.as_ref() => {
                        *late_probe = None;
                        if let RequestOutcome::Complete(result) = outcome
                            && let Some(step) = opening.late_discovery(&result)
                        {
                            return Poll::Ready(OpeningReply::Decided(step));
                        }
                    }
                    other => self.take(other),
                }
            }
        }
        // However much it says, time goes on.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// The error of a failed opening, with what was observed of the server.
    fn refused(&self, error: OpenError, refusals: &[Refusal]) -> Error {
        // What the handshake was told counts most: that an old server does not know the probe is no wonder.
        let refusal = [method::INITIALIZE, method::SERVER_DISCOVER, "GET"]
            .into_iter()
            .find_map(|method| refusals.iter().find(|refusal| refusal.method == method));
        let mut seen = Vec::new();
        let error = match (error, Refusal::of_caller(refusals), refusal) {
            (OpenError::Garbled { status: Some(_), .. }, Some(refusal), _)
            | (OpenError::Garbled { status: Some(_), .. }, None, Some(refusal)) => refusal.into(),
            (error, Some(refusal), _) => {
                // What it says again is not shown again.
                let then = Some(error.to_string()).filter(|then| !then.contains(&*refusal.reason));
                seen.extend(then.map(|then| format!("then {then}")));
                refusal.into()
            }
            (error, None, _) => error,
        };
        let shown = error.to_string();
        let others = refusals.iter().filter(|refusal| !shown.contains(&*refusal.reason));
        seen.extend(others.map(|refusal| format!("it {refusal}")));
        if let Some(line) = &self.first_noise {
            let lines = self.shared.noise.load(Ordering::Relaxed);
            seen.push(match lines {
                1 => format!("it printed a line that is not a message, `{line}`"),
                _ => format!("it printed {lines} lines that are not messages, the first of them `{line}`"),
            });
        }
        if let Some(id) = &self.stray {
            seen.push(format!("it answered request {id}, which was never sent"));
        }
        seen.extend(self.transport.close_reason());
        Error::Open { error, seen: Some(seen.join("; ")).filter(|seen| !seen.is_empty()) }
    }
}

impl From<&Refusal> for OpenError {
    fn from(refusal: &Refusal) -> Self {
        let Refusal { method, status, reason } = refusal;
        Self::Rejected { method, status: *status, reason: reason.clone() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { method, status, reason } = self;
        write!(f, "refused `{method}` with status {status}: {reason}")
    }
}

/// A failure, with the refusals before it.
fn failed_after(mut failed: Box<Failed>, refusals: &[Refusal]) -> Error {
    if let Some(refusal) = Refusal::of_caller(refusals) {
        failed.message = format!("the server {refusal}; then {}", failed.message).into();
        failed.status = Some(refusal.status);
        failed.reason = Some(refusal.reason.clone());
        return Error::Failed(failed);
    }
    for refusal in refusals.iter().filter(|refusal| failed.reason.as_ref() != Some(&refusal.reason)) {
        let message = failed.message.to_mut();
        message.push_str("; before that the server ");
        message.push_str(&refusal.to_string());
    }
    Error::Failed(failed)
}

/// Whether a skipped message may be the answer to the open request.
fn may_answer(oversized: &Oversized, id: &RequestId) -> bool {
    match &oversized.what {
        Skipped::Answer(answered) => answered == id,
        Skipped::Unknown => true,
        Skipped::Call(_) | Skipped::Noise => false,
    }
}

/// The evidence about the server's era in a failed request, if any.
fn era_evidence<'a>(failed: &'a Failed, method: &str) -> Option<OpeningEvent<'a>> {
    match (failed.probed, failed.status) {
        // Old servers fail with what they do not know.
        (Probed::Nothing, Some(status @ (500 | 501))) if method == method::SERVER_DISCOVER => {
            Some(OpeningEvent::Status { status, error: failed.error.as_ref() })
        }
        (Probed::Rejected, Some(status)) => {
            Some(OpeningEvent::Status { status, error: failed.error.as_ref() })
        }
        (Probed::Answered, _) => Some(OpeningEvent::Garbled),
        (Probed::Rejected | Probed::Challenged | Probed::Nothing, _) => None,
    }
}
