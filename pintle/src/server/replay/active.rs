use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use pintle_proto::server::Reply;
use tokio::{sync::watch, time::timeout};

use super::record::{Digest, StatePhase, StateRecord, Tag};
use crate::server::{
    random,
    store::{Expected, Key, Space},
};

/// The use of a state by a client.
#[derive(Clone, Debug)]
pub(super) struct UsedState {
    /// The SHA-256 of the `requestState`, in hexadecimal digits: the id of its record.
    pub(super) id: Arc<str>,
    /// The SHA-256 of the canonical form of the `inputResponses`.
    pub(super) answers: Digest,
    /// The authenticated principal, if there is one, for limits. The state is already bound to it.
    pub(super) principal: Option<Arc<str>>,
    /// The expiry of the state, in milliseconds since the Unix epoch. After that the state can be forgotten.
    pub(super) expires: u64,
}

/// A claim of this process, which other requests of this process with the same state wait for.
#[derive(Debug)]
pub(crate) struct ActiveClaim {
    pub(super) used: UsedState,
    pub(super) tag: Tag,
    /// The state of the record that its next change expects.
    at: Mutex<Expected>,
    phase: watch::Sender<ClaimPhase>,
}

#[derive(Clone, Debug)]
pub(super) enum ClaimPhase {
    /// The store is asked for the claim.
    Claiming,
    /// The handler runs.
    Running,
    /// The handler is gone, and the claim is being released.
    Releasing,
    /// With the reply, if there is one.
    Over(Option<Reply>),
}

/// The result of waiting for the claim of another request.
#[derive(Debug)]
pub(super) enum Waited {
    Replied(Reply),
    OtherAnswers,
    /// The claim is over without a reply.
    Over,
}

/// How long a request waits for the release of the claim before, if the store cannot be reached.
const RELEASE: Duration = Duration::from_secs(2);

impl ActiveClaim {
    pub(super) fn new(used: UsedState) -> io::Result<Self> {
        let tag =
            random::bytes().map_err(|_| io::Error::other("the system's random number generator failed"))?;
        let phase = watch::Sender::new(ClaimPhase::Claiming);
        Ok(Self { used, tag, at: Mutex::new(Expected::Absent), phase })
    }

    pub(super) fn key(&self) -> Key<'_> {
        Key::new(Space::State, &self.used.id).owned_by(self.used.principal.as_deref())
    }

    pub(super) fn record(&self, phase: StatePhase) -> StateRecord {
        StateRecord { tag: self.tag, answers: self.used.answers, phase }
    }

    pub(super) fn at(&self) -> Expected {
        *self.at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_at(&self, at: Expected) {
        *self.at.lock().unwrap_or_else(PoisonError::into_inner) = at;
    }

    pub(super) fn enter(&self, phase: ClaimPhase) {
        self.phase.send_replace(phase);
    }

    /// Waits for the end of the claim, for a request with the same state.
    pub(super) async fn wait(&self, answers: &Digest) -> io::Result<Waited> {
        let mut phase = self.phase.subscribe();
        let is_same = self.used.answers == *answers;
        loop {
            let now = phase.borrow_and_update().clone();
            match now {
                ClaimPhase::Over(None) => return Ok(Waited::Over),
                ClaimPhase::Running | ClaimPhase::Over(Some(_)) if !is_same => {
                    return Ok(Waited::OtherAnswers);
                }
                ClaimPhase::Over(Some(reply)) => return Ok(Waited::Replied(reply)),
                ClaimPhase::Claiming | ClaimPhase::Running => drop(phase.changed().await),
                ClaimPhase::Releasing => {
                    let late =
                        |_| io::Error::new(io::ErrorKind::TimedOut, "the claim before is not released yet");
                    drop(timeout(RELEASE, phase.changed()).await.map_err(late)?);
                }
            }
        }
    }
}
