use std::{fmt, str::FromStr};

use pintle_types::{ErrorCode, Notification, RawObject, RpcError, method};
use serde::Deserialize;

use super::{open_error::OpenError, profile::Profile, reading::Outcome, session, stateless};
use crate::{Revision, UnknownRevision, Violation, shown::shown};

/// Which eras a client tries.
#[expect(clippy::exhaustive_enums, reason = "there are two eras: either one, or both")]
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Mode {
    /// Only the handshake. Saves the probe where the server is known to be old.
    Legacy,
    /// Ask first; fall back to the handshake if the server does not understand.
    #[default]
    Auto,
    /// Only the era without a handshake.
    Modern,
}

/// What an opening found out, to be remembered for the next time: per command, or per origin.
///
/// It is a hint. If the server has changed its era since, the opening finds out. It prints and parses, so it can be
/// kept in a file.
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

/// A connection being opened: what to do next, until the server's era and revision are known.
///
/// Do what a [`Step`] says, and hand back what came of it as an [`Event`]. Whoever drives it keeps the time: a step
/// that is not answered in a few seconds is [`Event::Silence`].
///
/// ```
/// use pintle_proto::{Revision, client::{Event, Mode, Opening, Profile, Step}};
/// use pintle_types::RpcError;
///
/// let profile = Profile::new(r#"{"name":"demo","version":"1"}"#.parse()?, "{}".parse()?);
/// let (mut opening, step) = Opening::new(profile, Mode::Auto, None);
/// assert!(matches!(step, Step::Send { method: "server/discover", .. }));
///
/// // An old server does not know the question. Any error will do, save three.
/// let step = opening.step(Event::Answer(Err(&RpcError::invalid_request("not initialized"))));
/// assert!(matches!(step, Step::Send { method: "initialize", .. }));
///
/// let oldest = Revision::all().last().unwrap();
/// let answer = format!(
///     r#"{{"protocolVersion":"{oldest}","capabilities":{{}},"serverInfo":{{"name":"old","version":"1"}}}}"#
/// );
/// let step = opening.step(Event::Answer(Ok(&answer.parse()?)));
/// assert!(matches!(step, Step::Notify(notification) if notification.method == "notifications/initialized"));
/// let Step::Ready(opened) = opening.step(Event::Done) else { panic!() };
/// assert_eq!(opened.revision, oldest);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug)]
pub struct Opening {
    profile: Profile,
    /// Those of our revisions that may be tried, by era, newest first.
    modern: Vec<Revision>,
    legacy: Vec<Revision>,
    state: State,
    /// The server has shown that it is of the stateless era.
    proven: bool,
    probes: u8,
    /// A probe was sent, and nothing came back for it.
    unanswered: bool,
    offered: Vec<Revision>,
    reopened: bool,
    moved: bool,
    /// Why a handshake failed that memory suggested.
    misled: Option<OpenError>,
}

/// What to do next.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub enum Step {
    /// Send this request, with a new id, and hand back its answer.
    Send {
        /// Its method.
        method: &'static str,
        /// Its params, complete.
        params: RawObject,
        /// The revision that it is written in, for the HTTP header.
        revision: Revision,
    },
    /// Send this, then hand back [`Event::Done`].
    Notify(Notification),
    /// The server did not survive a question that it may not have known. Start it again, tell the engine that all is
    /// [lost](super::Engine::lose), then hand back [`Event::Done`]; or [`Event::Closed`] if it cannot be started, or never
    /// read the question and so ended for another reason. Happens at most once.
    Reopen,
    /// Over HTTP: the endpoint does not take requests. `GET` it and wait for the event that names another, then hand
    /// back [`Event::Done`], or the [`Event::Status`] that came instead. Happens at most once.
    TwoEndpoints,
    /// Open.
    Ready(Box<Opened>),
    /// It cannot be opened.
    Failed(OpenError),
}

/// What came of a step.
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// The answer to the request that was sent last.
    Answer(Result<&'a RawObject, &'a RpcError>),
    /// Something came that is no JSON-RPC answer.
    Garbled,
    /// Over HTTP: the answer has a status of 400 to 499, and perhaps a JSON-RPC error in its body.
    ///
    /// Not for what says nothing about the server's era: a challenge to authorize, a plea to come back later, a
    /// failure of the network, a status of 500 and above. Those are for the transport to solve or to report.
    Status {
        /// The status.
        status: u16,
        /// The error in the body.
        error: Option<&'a RpcError>,
    },
    /// There was no answer in time.
    Silence,
    /// The server went away.
    Closed,
    /// What was to be done is done.
    Done,
}

impl<'a> From<&'a Outcome> for Event<'a> {
    fn from(outcome: &'a Outcome) -> Self {
        match outcome {
            Outcome::Complete(result) | Outcome::Extension { result, .. } => Self::Answer(Ok(result)),
            Outcome::Error(error) | Outcome::UrlRequired { error, .. } => Self::Answer(Err(error)),
            Outcome::InputRequired(_) | Outcome::Violation(_) => Self::Garbled,
        }
    }
}

/// An open connection, and what the server says of itself.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct Opened {
    /// The revision that both sides will speak.
    pub revision: Revision,
    /// The server's name and version, if it gave them. For display only.
    pub info: Option<RawObject>,
    /// What the server can do, in canonical form. Unknown if it is of the stateless era and does not describe itself.
    pub capabilities: Option<RawObject>,
    /// How the server wants to be used.
    pub instructions: Option<Box<str>>,
    /// What to remember.
    pub verdict: Verdict,
}

#[derive(Debug)]
enum State {
    /// `server/discover` is sent.
    Probing {
        revision: Revision,
    },
    /// The server is being started again, because it ended when it was sent this, or another endpoint looked for.
    Moving {
        method: &'static str,
    },
    /// `initialize` is sent.
    Shaking,
    /// `notifications/initialized` is sent.
    Announcing(Box<Opened>),
    Over,
}

impl Opening {
    /// Begins. What was remembered of the server saves a probe, and is not trusted beyond that.
    pub fn new(profile: Profile, mode: Mode, remembered: Option<Verdict>) -> (Self, Step) {
        let modern = if mode == Mode::Legacy { Vec::new() } else { profile.of_era(true) };
        let legacy = if mode == Mode::Modern { Vec::new() } else { profile.of_era(false) };
        let mut opening = Self {
            profile,
            modern,
            legacy,
            state: State::Over,
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

    /// What to do next.
    pub fn step(&mut self, event: Event<'_>) -> Step {
        if matches!(event, Event::Answer(_) | Event::Garbled | Event::Status { .. }) {
            self.unanswered = false;
        }
        match (std::mem::replace(&mut self.state, State::Over), event) {
            (State::Probing { revision }, Event::Answer(Ok(result))) => self.discovered(revision, result),
            (State::Probing { revision }, Event::Answer(Err(error))) => self.probe_refused(revision, error),
            (State::Probing { revision }, Event::Status { error: Some(error), .. }) => {
                self.probe_refused(revision, error)
            }
            (State::Probing { .. }, Event::Status { status, error: None }) => {
                self.fall_back(OpenError::Garbled { method: method::SERVER_DISCOVER, status: Some(status) })
            }
            (State::Probing { .. }, Event::Garbled) => {
                self.fall_back(OpenError::Garbled { method: method::SERVER_DISCOVER, status: None })
            }
            (State::Probing { .. }, Event::Silence) => {
                self.fall_back(OpenError::Silent { method: method::SERVER_DISCOVER })
            }
            (State::Probing { .. }, Event::Closed) => self.closed(method::SERVER_DISCOVER),

            (State::Moving { .. }, Event::Done) => match self.legacy.first().copied() {
                Some(offer) => self.shake(offer),
                None => self.fail(OpenError::NothingToOffer),
            },
            (State::Moving { method }, Event::Closed) => self.fail(OpenError::Exited { method }),
            // There is no other endpoint either.
            (State::Moving { .. }, Event::Status { status, .. }) => {
                self.fail(OpenError::Garbled { method: method::INITIALIZE, status: Some(status) })
            }

            (State::Shaking, Event::Answer(Ok(result))) => self.shaken(result),
            (State::Shaking, Event::Answer(Err(error))) => self.shake_refused(error),
            (State::Shaking, Event::Status { status, error }) => self.shake_rejected(status, error),
            (State::Shaking, Event::Garbled) => {
                self.fail(OpenError::Garbled { method: method::INITIALIZE, status: None })
            }
            (State::Shaking, Event::Silence) => self.fail(OpenError::Silent { method: method::INITIALIZE }),
            (State::Shaking, Event::Closed) => self.closed(method::INITIALIZE),

            (State::Announcing(opened), Event::Done) => Step::Ready(opened),
            (State::Announcing(_), _) => {
                self.fail(OpenError::Exited { method: method::NOTIFICATIONS_INITIALIZED })
            }

            (State::Probing { .. } | State::Moving { .. } | State::Shaking | State::Over, _) => {
                self.fail(OpenError::OutOfStep)
            }
        }
    }

    /// The revision that was agreed on by a handshake, while `notifications/initialized` is to be sent: over HTTP that
    /// has the header of its revision already.
    pub fn agreed(&self) -> Option<Revision> {
        match &self.state {
            State::Announcing(opened) => Some(opened.revision),
            _ => None,
        }
    }

    fn probe(&mut self, revision: Revision) -> Step {
        self.probes += 1;
        self.unanswered = true;
        self.state = State::Probing { revision };
        let params = stateless::discover(&self.profile, revision);
        Step::Send { method: method::SERVER_DISCOVER, params, revision }
    }

    fn shake(&mut self, offer: Revision) -> Step {
        self.offered.push(offer);
        self.state = State::Shaking;
        let params = session::initialize(&self.profile, offer);
        Step::Send { method: method::INITIALIZE, params, revision: offer }
    }

    fn fail(&mut self, error: OpenError) -> Step {
        self.state = State::Over;
        Step::Failed(error)
    }

    fn discovered(&mut self, probed: Revision, result: &RawObject) -> Step {
        let Some(found) = stateless::discovery(probed, result) else {
            // Some old servers answer everything; only the new era has result types.
            return if self.proven || result.get("resultType").is_some() {
                self.fail(OpenError::Violation(Violation::NoRevisionsListed))
            } else {
                self.fall_back(OpenError::Violation(Violation::NoRevisionsListed))
            };
        };
        match self.choose(&found.supported) {
            Choice::Modern(revision) => Step::Ready(Box::new(Opened {
                revision,
                info: found.info,
                capabilities: Some(found.capabilities),
                instructions: found.instructions,
                verdict: Verdict(revision),
            })),
            Choice::Legacy(offer) => self.shake(offer),
            Choice::Neither => self.nothing_in_common(&found.supported),
        }
    }

    /// Only three codes prove the new era; any other error is what an old server makes of an unknown question.
    fn probe_refused(&mut self, probed: Revision, error: &RpcError) -> Step {
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
            // A server of the new era that does not describe itself can still be used: every request stands alone.
            None if error.code == ErrorCode::METHOD_NOT_FOUND => Step::Ready(Box::new(Opened {
                revision: probed,
                info: None,
                capabilities: None,
                instructions: None,
                verdict: Verdict(probed),
            })),
            None => self.fail(refused),
        }
    }

    /// The server ended. If a probe may be the reason, it is started once more and not sent one: some servers end at
    /// once, some only when the next line arrives, and some start so slowly that the handshake is sent before they read
    /// the probe.
    fn closed(&mut self, method: &'static str) -> Step {
        if !self.unanswered || self.proven || self.reopened || self.legacy.is_empty() {
            return self.fail(OpenError::Exited { method });
        }
        self.reopened = true;
        self.unanswered = false;
        self.state = State::Moving { method };
        Step::Reopen
    }

    /// Whether there is another way if the request that was sent last stays without an answer. Where there is none, it
    /// is worth waiting longer.
    pub fn may_fall_back(&self) -> bool {
        matches!(self.state, State::Probing { .. }) && self.next_best().is_some()
    }

    /// What to offer in a handshake, if that is an option.
    fn next_best(&self) -> Option<Revision> {
        self.legacy.first().copied().filter(|offer| !self.proven && !self.offered.contains(offer))
    }

    /// The probe says that the server is of the old era, or nothing; `otherwise` is why it cannot be opened then.
    fn fall_back(&mut self, otherwise: OpenError) -> Step {
        match self.next_best() {
            Some(offer) => self.shake(offer),
            None => {
                let error = self.misled.take().unwrap_or(otherwise);
                self.fail(error)
            }
        }
    }

    fn shaken(&mut self, result: &RawObject) -> Step {
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
                self.state = State::Announcing(Box::new(Opened {
                    revision,
                    info: found.info,
                    capabilities: Some(found.capabilities),
                    instructions: found.instructions,
                    verdict: Verdict(revision),
                }));
                Step::Notify(session::initialized())
            }
            Err(violation) => self.fail(OpenError::Violation(violation)),
        }
    }

    /// A server that refuses the handshake may name what it speaks instead; it is asked for that, once.
    fn shake_refused(&mut self, error: &RpcError) -> Step {
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
                // Memory said that there is no need to probe. It may be out of date.
                Some(revision) if self.probes == 0 => {
                    self.misled = Some(refused);
                    self.probe(revision)
                }
                _ => self.fail(refused),
            },
        }
    }

    /// Over HTTP a refusal may come from the oldest transport, which takes requests at another endpoint. It does not
    /// come from there if it speaks of revisions, or with a code that the oldest transport never had.
    fn shake_rejected(&mut self, status: u16, error: Option<&RpcError>) -> Step {
        let informed = error.is_some_and(|error| is_modern(error) || supported(error).is_some());
        let oldest = self.legacy.iter().any(|revision| revision.dialect().two_endpoints);
        if !informed && oldest && !self.moved {
            self.moved = true;
            self.state = State::Moving { method: method::INITIALIZE };
            return Step::TwoEndpoints;
        }
        match error {
            Some(error) => self.shake_refused(error),
            None => self.fail(OpenError::Garbled { method: method::INITIALIZE, status: Some(status) }),
        }
    }

    fn choose(&self, theirs: &[Box<str>]) -> Choice {
        let mutual = |ours: &[Revision]| ours.iter().copied().find(|revision| lists(theirs, *revision));
        match (mutual(&self.modern), mutual(&self.legacy)) {
            (Some(revision), _) => Choice::Modern(revision),
            (None, Some(revision)) => Choice::Legacy(revision),
            (None, None) => Choice::Neither,
        }
    }

    fn nothing_in_common(&mut self, theirs: &[Box<str>]) -> Step {
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

/// The revisions that an error names.
fn supported(error: &RpcError) -> Option<Vec<Box<str>>> {
    #[derive(Deserialize)]
    struct Data {
        supported: Vec<Box<str>>,
    }
    error.data_as::<Data>().map(|data| data.supported).filter(|list| !list.is_empty())
}
