use std::{fmt, str::FromStr};

use pintle_types::{ErrorCode, Notification, RawObject, RpcError, method};
use serde::Deserialize;

use super::{open_error::OpenError, profile::Profile, reading::RequestOutcome, session, stateless};
use crate::{Revision, UnknownRevision, Violation, shown::shown};

/// The eras that a client tries.
#[expect(clippy::exhaustive_enums, reason = "there are two eras: either one, or both")]
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Mode {
    /// Only the handshake. This saves the probe if the server is known to be old.
    Legacy,
    /// Probes with `server/discover` first, and falls back to the handshake if the server does not support it.
    #[default]
    Auto,
    /// Only the stateless era.
    Modern,
}

/// The result of an opening, to be remembered for the next one: per command, or per origin.
///
/// It is a hint: if the server has changed its era since, the opening detects it. It can be printed and parsed, so it
/// can be kept in a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Verdict(Revision);

impl Verdict {
    /// The revision that was agreed on.
    pub fn revision(self) -> Revision {
        self.0
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Verdict {
    type Err = UnknownRevision;

    fn from_str(text: &str) -> Result<Self, UnknownRevision> {
        text.parse().map(Self)
    }
}

/// The state machine that opens a connection and determines the server's era and revision.
///
/// Carry out each [`OpeningStep`], and pass back its result as an [`OpeningEvent`]. The driver measures time: if a step
/// is not answered within a few seconds, the event is [`OpeningEvent::Silence`].
///
/// ```
/// use pintle_proto::{Revision, client::{Mode, Opening, OpeningEvent, OpeningStep, Profile}};
/// use pintle_types::RpcError;
///
/// let profile = Profile::new(r#"{"name":"demo","version":"1"}"#.parse()?, "{}".parse()?);
/// let (mut opening, step) = Opening::new(profile, Mode::Auto, None);
/// assert!(matches!(step, OpeningStep::Send { method: "server/discover", .. }));
///
/// // An old server does not know the method. Any error will do, except three.
/// let step = opening.step(OpeningEvent::Answer(Err(&RpcError::invalid_request("not initialized"))));
/// assert!(matches!(step, OpeningStep::Send { method: "initialize", .. }));
///
/// let oldest = Revision::all().last().unwrap();
/// let answer = format!(
///     r#"{{"protocolVersion":"{oldest}","capabilities":{{}},"serverInfo":{{"name":"old","version":"1"}}}}"#
/// );
/// let step = opening.step(OpeningEvent::Answer(Ok(&answer.parse()?)));
/// assert!(matches!(step, OpeningStep::Notify(notification) if notification.method == "notifications/initialized"));
/// let OpeningStep::Ready(opened) = opening.step(OpeningEvent::Done) else { panic!() };
/// assert_eq!(opened.revision, oldest);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug)]
pub struct Opening {
    profile: Profile,
    /// The allowed revisions, by era, newest first.
    modern: Vec<Revision>,
    legacy: Vec<Revision>,
    state: OpeningState,
    /// Whether the server has proven to be of the stateless era.
    proven: bool,
    probes: u8,
    /// Whether a probe was sent that was not answered.
    unanswered: bool,
    offered: Vec<Revision>,
    reopened: bool,
    moved: bool,
    /// The error of a handshake that a remembered verdict suggested.
    misled: Option<OpenError>,
}

/// The next step of an opening.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub enum OpeningStep {
    /// Send this request with a new id, and pass back its response.
    Send {
        /// The method.
        method: &'static str,
        /// The params, complete.
        params: RawObject,
        /// The revision of the request, for the HTTP header.
        revision: Revision,
    },
    /// Send this notification, then pass back [`OpeningEvent::Done`].
    Notify(Notification),
    /// The server exited after a request that it may not have known. Restart it, call
    /// [`Engine::lose`](super::Engine::lose), then pass back [`OpeningEvent::Done`]; or [`OpeningEvent::Closed`] if it
    /// cannot be restarted, or never read the request and so exited for another reason. This happens at most once.
    Reopen,
    /// Over HTTP: the endpoint does not accept requests. `GET` it and wait for the event that names another, then pass
    /// back [`OpeningEvent::Done`], or the [`OpeningEvent::Status`] of the response. This happens at most once.
    TwoEndpoints,
    /// The connection is open.
    Ready(Box<Opened>),
    /// The connection cannot be opened.
    Failed(OpenError),
}

/// The result of a step.
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub enum OpeningEvent<'a> {
    /// The response to the last request.
    Answer(Result<&'a RawObject, &'a RpcError>),
    /// Something other than a JSON-RPC response arrived.
    Garbled,
    /// Over HTTP: the response has a status of 400 to 499, and possibly a JSON-RPC error in its body.
    ///
    /// Not for responses that say nothing about the server's era: an authorization challenge, a request to retry later,
    /// a network failure, a status of 500 and above. The transport handles or reports those. The probe alone may also have status 500 or
    /// 501: old servers fail with what they do not know.
    Status {
        /// The status.
        status: u16,
        /// The error in the body.
        error: Option<&'a RpcError>,
    },
    /// There was no response in time.
    Silence,
    /// The server disconnected.
    Closed,
    /// The step was carried out.
    Done,
}

impl<'a> From<&'a RequestOutcome> for OpeningEvent<'a> {
    fn from(outcome: &'a RequestOutcome) -> Self {
        match outcome {
            RequestOutcome::Complete(result) | RequestOutcome::Extension { result, .. } => {
                Self::Answer(Ok(result))
            }
            RequestOutcome::Error(error) | RequestOutcome::UrlRequired { error, .. } => {
                Self::Answer(Err(error))
            }
            RequestOutcome::InputRequired(_) | RequestOutcome::Violation(_) => Self::Garbled,
        }
    }
}

/// An open connection, and the server's description of itself.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct Opened {
    /// The agreed revision.
    pub revision: Revision,
    /// The server's name and version, if it gave them. For display only.
    pub info: Option<RawObject>,
    /// The server's capabilities, in canonical form. `None` if it is of the stateless era and does not describe itself.
    pub capabilities: Option<RawObject>,
    /// The server's instructions for its use.
    pub instructions: Option<Box<str>>,
    /// The verdict to remember.
    pub verdict: Verdict,
    /// Whether the server has a revision of the session era too that the client offers, although this one is of the stateless era.
    pub has_sessions: bool,
}

#[derive(Debug)]
enum OpeningState {
    /// `server/discover` was sent.
    Probing {
        revision: Revision,
    },
    /// The server is being restarted because it exited after `method`, or the second endpoint is being looked up.
    Moving {
        method: &'static str,
    },
    /// `initialize` was sent.
    Shaking,
    /// `notifications/initialized` is being sent.
    Announcing(Box<Opened>),
    Over,
}

impl Opening {
    /// Starts an opening. A remembered verdict saves a probe, and is not trusted beyond that.
    pub fn new(profile: Profile, mode: Mode, remembered: Option<Verdict>) -> (Self, OpeningStep) {
        let modern = if mode == Mode::Legacy { Vec::new() } else { profile.of_era(true) };
        let legacy = if mode == Mode::Modern { Vec::new() } else { profile.of_era(false) };
        let mut opening = Self {
            profile,
            modern,
            legacy,
            state: OpeningState::Over,
            proven: false,
            probes: 0,
            unanswered: false,
            offered: Vec::new(),
            reopened: false,
            moved: false,
            misled: None,
        };
        let was_legacy = remembered.is_some_and(|verdict| !verdict.0.is_stateless());
        let first = match (opening.modern.first().copied(), opening.legacy.first().copied()) {
            (None, None) => opening.fail(OpenError::NothingToOffer),
            (_, Some(offer)) if was_legacy => opening.shake(offer),
            (None, Some(offer)) => opening.shake(offer),
            (Some(revision), _) => opening.probe(revision),
        };
        (opening, first)
    }

    /// Returns the next step after an event.
    pub fn step(&mut self, event: OpeningEvent<'_>) -> OpeningStep {
        if matches!(event, OpeningEvent::Answer(_) | OpeningEvent::Garbled | OpeningEvent::Status { .. }) {
            self.unanswered = false;
        }
        match (std::mem::replace(&mut self.state, OpeningState::Over), event) {
            (OpeningState::Probing { revision }, OpeningEvent::Answer(Ok(result))) => {
                self.discovered(revision, result)
            }
            (OpeningState::Probing { revision }, OpeningEvent::Answer(Err(error))) => {
                self.probe_refused(revision, error)
            }
            (OpeningState::Probing { revision }, OpeningEvent::Status { error: Some(error), .. }) => {
                self.probe_refused(revision, error)
            }
            (OpeningState::Probing { .. }, OpeningEvent::Status { status, error: None }) => {
                self.fall_back(OpenError::Garbled { method: method::SERVER_DISCOVER, status: Some(status) })
            }
            (OpeningState::Probing { .. }, OpeningEvent::Garbled) => {
                self.fall_back(OpenError::Garbled { method: method::SERVER_DISCOVER, status: None })
            }
            (OpeningState::Probing { .. }, OpeningEvent::Silence) => {
                self.fall_back(OpenError::Silent { method: method::SERVER_DISCOVER })
            }
            (OpeningState::Probing { .. }, OpeningEvent::Closed) => self.closed(method::SERVER_DISCOVER),

            (OpeningState::Moving { .. }, OpeningEvent::Done) => match self.legacy.first().copied() {
                Some(offer) => self.shake(offer),
                None => self.fail(OpenError::NothingToOffer),
            },
            (OpeningState::Moving { method }, OpeningEvent::Closed) => {
                self.fail(OpenError::Exited { method })
            }
            // There is no second endpoint either.
            (OpeningState::Moving { .. }, OpeningEvent::Status { status, .. }) => {
                self.fail(OpenError::Garbled { method: method::INITIALIZE, status: Some(status) })
            }

            (OpeningState::Shaking, OpeningEvent::Answer(Ok(result))) => self.shaken(result),
            (OpeningState::Shaking, OpeningEvent::Answer(Err(error))) => self.shake_refused(error),
            (OpeningState::Shaking, OpeningEvent::Status { status, error }) => {
                self.shake_rejected(status, error)
            }
            (OpeningState::Shaking, OpeningEvent::Garbled) => {
                self.fail(OpenError::Garbled { method: method::INITIALIZE, status: None })
            }
            (OpeningState::Shaking, OpeningEvent::Silence) => {
                self.fail(OpenError::Silent { method: method::INITIALIZE })
            }
            (OpeningState::Shaking, OpeningEvent::Closed) => self.closed(method::INITIALIZE),

            (OpeningState::Announcing(opened), OpeningEvent::Done) => OpeningStep::Ready(opened),
            (OpeningState::Announcing(_), _) => {
                self.fail(OpenError::Exited { method: method::NOTIFICATIONS_INITIALIZED })
            }

            (
                OpeningState::Probing { .. }
                | OpeningState::Moving { .. }
                | OpeningState::Shaking
                | OpeningState::Over,
                _,
            ) => self.fail(OpenError::OutOfStep),
        }
    }

    /// Returns the revision agreed on by the handshake while `notifications/initialized` is being sent: over HTTP that
    /// request already has the header of its revision.
    pub fn agreed(&self) -> Option<Revision> {
        match &self.state {
            OpeningState::Announcing(opened) => Some(opened.revision),
            _ => None,
        }
    }

    fn probe(&mut self, revision: Revision) -> OpeningStep {
        self.probes += 1;
        self.unanswered = true;
        self.state = OpeningState::Probing { revision };
        let params = stateless::discover(&self.profile, revision);
        OpeningStep::Send { method: method::SERVER_DISCOVER, params, revision }
    }

    fn shake(&mut self, offer: Revision) -> OpeningStep {
        self.offered.push(offer);
        self.state = OpeningState::Shaking;
        let params = session::initialize(&self.profile, offer);
        OpeningStep::Send { method: method::INITIALIZE, params, revision: offer }
    }

    fn fail(&mut self, error: OpenError) -> OpeningStep {
        self.state = OpeningState::Over;
        OpeningStep::Failed(error)
    }

    fn discovered(&mut self, probed: Revision, result: &RawObject) -> OpeningStep {
        let Some(found) = stateless::discovery(probed, result) else {
            // Some old servers return a result for every method; only the stateless era has result types.
            return if self.proven || result.get("resultType").is_some() {
                self.fail(OpenError::Violation(Violation::NoRevisionsListed))
            } else {
                self.fall_back(OpenError::Violation(Violation::NoRevisionsListed))
            };
        };
        match self.choose(&found.supported) {
            Choice::Modern(revision) => self.ready(revision, found),
            Choice::Legacy(offer) => self.shake(offer),
            Choice::Neither => self.nothing_in_common(&found.supported),
        }
    }

    /// Handles an error response to a probe. Only three codes prove the stateless era; any other error is how an old
    /// server responds to an unknown method.
    fn probe_refused(&mut self, probed: Revision, error: &RpcError) -> OpeningStep {
        if !is_modern(error) && !self.proven {
            return self.fall_back(OpenError::TooOld { error: error.clone() });
        }
        let refused = OpenError::Refused { method: method::SERVER_DISCOVER, error: error.clone() };
        let retried = std::mem::replace(&mut self.proven, true);
        match supported(error) {
            Some(list) => match self.choose(&list) {
                Choice::Modern(_) if error.code != ErrorCode::UNSUPPORTED_PROTOCOL_VERSION => {
                    self.fail(refused)
                }
                Choice::Modern(revision) if retried || self.probes > 1 => {
                    self.fail(OpenError::Violation(Violation::ListedButRefused {
                        revision: revision.as_str().into(),
                    }))
                }
                Choice::Modern(revision) => self.probe(revision),
                Choice::Legacy(offer) => self.shake(offer),
                Choice::Neither => self.nothing_in_common(&list),
            },
            // A stateless server that does not describe itself can still be used: every request is self-contained.
            None if error.code == ErrorCode::METHOD_NOT_FOUND => OpeningStep::Ready(Box::new(Opened {
                revision: probed,
                info: None,
                capabilities: None,
                instructions: None,
                verdict: Verdict(probed),
                has_sessions: false,
            })),
            None => self.fail(refused),
        }
    }

    /// Handles a disconnect. If a probe may be the reason, the server is restarted once without one: some servers exit
    /// at once, some only when the next line arrives, and some start so slowly that the handshake is sent before they
    /// read the probe.
    fn closed(&mut self, method: &'static str) -> OpeningStep {
        if !self.unanswered || self.proven || self.reopened || self.legacy.is_empty() {
            return self.fail(OpenError::Exited { method });
        }
        self.reopened = true;
        self.unanswered = false;
        self.state = OpeningState::Moving { method };
        OpeningStep::Reopen
    }

    /// Returns whether the opening can fall back if the last request is not answered. If it cannot, a longer timeout is
    /// worthwhile.
    pub fn may_fall_back(&self) -> bool {
        matches!(self.state, OpeningState::Probing { .. }) && self.next_best().is_some()
    }

    /// Returns the revision to offer in a handshake, if one is possible.
    fn next_best(&self) -> Option<Revision> {
        self.legacy.first().copied().filter(|offer| !self.proven && !self.offered.contains(offer))
    }

    /// Falls back to the handshake after a probe that failed, or fails with `otherwise`.
    fn fall_back(&mut self, otherwise: OpenError) -> OpeningStep {
        match self.next_best() {
            Some(offer) => self.shake(offer),
            None => {
                let error = self.misled.take().unwrap_or(otherwise);
                self.fail(error)
            }
        }
    }

    fn shaken(&mut self, result: &RawObject) -> OpeningStep {
        let name = match session::agreed(result) {
            Ok(name) => name,
            Err(violation) => return self.fail(OpenError::Violation(violation)),
        };
        let revision = match name.parse::<Revision>() {
            Ok(revision) if self.legacy.contains(&revision) => revision,
            Ok(revision) if revision.is_stateless() => {
                let revision = shown(&name);
                return self.fail(OpenError::Violation(Violation::HandshakeOnStateless { revision }));
            }
            _ => return self.nothing_in_common(&[name]),
        };
        match session::handshake(revision, result) {
            Ok(found) => {
                self.state = OpeningState::Announcing(Box::new(Opened {
                    revision,
                    info: found.info,
                    capabilities: Some(found.capabilities),
                    instructions: found.instructions,
                    verdict: Verdict(revision),
                    has_sessions: false,
                }));
                OpeningStep::Notify(session::initialized())
            }
            Err(violation) => self.fail(OpenError::Violation(violation)),
        }
    }

    /// Handles an error response to `initialize`. It may name the revisions that the server supports; those are tried
    /// once.
    fn shake_refused(&mut self, error: &RpcError) -> OpeningStep {
        let list = supported(error);
        let refused = OpenError::Refused { method: method::INITIALIZE, error: error.clone() };
        match list.as_deref().map(|list| self.choose(list)) {
            Some(Choice::Modern(revision)) if self.probes < 2 => {
                self.proven = true;
                self.probe(revision)
            }
            Some(Choice::Legacy(offer)) if !self.offered.contains(&offer) => self.shake(offer),
            Some(Choice::Neither) => self.nothing_in_common(list.as_deref().unwrap_or_default()),
            Some(Choice::Modern(_) | Choice::Legacy(_)) => self.fail(refused),
            None => match self.modern.first().copied() {
                Some(revision) if is_modern(error) && self.probes < 2 => {
                    self.proven = true;
                    self.probe(revision)
                }
                // A remembered verdict skipped the probe. It may be out of date.
                Some(revision) if self.probes == 0 => {
                    self.misled = Some(refused);
                    self.probe(revision)
                }
                _ => self.fail(refused),
            },
        }
    }

    /// Handles an HTTP error status for `initialize`. It may come from an HTTP+SSE server, which accepts requests at
    /// another endpoint, unless the error names revisions or has a code that HTTP+SSE servers never send.
    fn shake_rejected(&mut self, status: u16, error: Option<&RpcError>) -> OpeningStep {
        let informed = error.is_some_and(|error| is_modern(error) || supported(error).is_some());
        let oldest = self.legacy.iter().any(|revision| revision.dialect().two_endpoints);
        if !informed && oldest && !self.moved {
            self.moved = true;
            self.state = OpeningState::Moving { method: method::INITIALIZE };
            return OpeningStep::TwoEndpoints;
        }
        match error {
            Some(error) => self.shake_refused(error),
            None => self.fail(OpenError::Garbled { method: method::INITIALIZE, status: Some(status) }),
        }
    }

    /// Takes the answer to a probe that was given up, while the handshake is not answered yet: a server that starts slowly reads
    /// both. Returns the next step if the answer decides the era, or `None` if the handshake goes on.
    pub fn late_discovery(&mut self, result: &RawObject) -> Option<OpeningStep> {
        let (OpeningState::Shaking, true) = (&self.state, self.unanswered) else { return None };
        let found = stateless::discovery(self.modern.first().copied()?, result)?;
        let Choice::Modern(revision) = self.choose(&found.supported) else { return None };
        self.state = OpeningState::Over;
        Some(self.ready(revision, found))
    }

    fn ready(&self, revision: Revision, found: stateless::Discovery) -> OpeningStep {
        OpeningStep::Ready(Box::new(Opened {
            revision,
            info: found.info,
            capabilities: Some(found.capabilities),
            instructions: found.instructions,
            verdict: Verdict(revision),
            has_sessions: self.legacy.iter().any(|ours| lists(&found.supported, *ours)),
        }))
    }

    fn choose(&self, theirs: &[Box<str>]) -> Choice {
        let mutual = |ours: &[Revision]| ours.iter().copied().find(|revision| lists(theirs, *revision));
        match (mutual(&self.modern), mutual(&self.legacy)) {
            (Some(revision), _) => Choice::Modern(revision),
            (None, Some(revision)) => Choice::Legacy(revision),
            (None, None) => Choice::Neither,
        }
    }

    fn nothing_in_common(&mut self, theirs: &[Box<str>]) -> OpeningStep {
        const SHOWN: usize = 20;
        let ours = self.modern.iter().chain(&self.legacy).copied().collect();
        let theirs = theirs.iter().take(SHOWN).map(|name| shown(name)).collect();
        self.fail(OpenError::NothingInCommon { ours, theirs })
    }
}

enum Choice {
    Modern(Revision),
    Legacy(Revision),
    Neither,
}

fn lists(theirs: &[Box<str>], revision: Revision) -> bool {
    theirs.iter().any(|name| **name == *revision.as_str())
}

fn is_modern(error: &RpcError) -> bool {
    matches!(
        error.code,
        ErrorCode::HEADER_MISMATCH
            | ErrorCode::MISSING_CLIENT_CAPABILITY
            | ErrorCode::UNSUPPORTED_PROTOCOL_VERSION
    )
}

/// Returns the revisions that an error lists as supported.
fn supported(error: &RpcError) -> Option<Vec<Box<str>>> {
    #[derive(Deserialize)]
    struct SupportedVersions {
        supported: Vec<Box<str>>,
    }
    error.data_as::<SupportedVersions>().map(|data| data.supported).filter(|list| !list.is_empty())
}
