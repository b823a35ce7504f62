use std::{borrow::Borrow, fmt, sync::Arc, time::Duration};

use super::{
    decision::{Access, Decision, Gate},
    request::{GateRequest, JudgedUri},
    seen_states::{SeenStates, StateDigest},
};
use crate::server::{Entry, Scope, core::provider::definition::Definition};

/// The gates of a server. Without one, everything is allowed.
#[derive(Clone, Default)]
pub(crate) struct Gates {
    gates: Vec<Arc<dyn Gate>>,
    /// The states that were seen, unless a gate shares them with other processes.
    seen: Option<Arc<SeenStates>>,
}

impl Gates {
    pub(crate) fn push(&mut self, gate: impl Gate) {
        self.gates.push(Arc::new(gate));
        self.seen.get_or_insert_default();
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.gates.is_empty()
    }

    /// Returns the strictest decision. This is the one place where gates are asked.
    pub(crate) fn judge(&self, request: &GateRequest<'_>) -> Decision {
        let decide = |gate: &Arc<dyn Gate>, request: &GateRequest<'_>| match request.is_unclear() {
            true => Decision::Hide,
            false => gate.decide(request).or_stricter(request.params_decision()),
        };
        let ask = |request: &GateRequest<'_>| {
            let decisions = self.gates.iter().map(|gate| decide(gate, request));
            decisions.fold(Decision::Allow, Decision::or_stricter)
        };
        let mut decision = ask(request);
        if let Some(second) = request.second_reading() {
            decision = decision.or_stricter(ask(&second));
        }
        match request.arguments_fault() {
            // It says what to send instead.
            Some(fault) => Decision::Deny(fault.to_owned()).or_stricter(decision),
            None => decision,
        }
    }

    /// Counts a call that is allowed. Returns the longest time that a gate has the caller wait.
    pub(crate) fn count(&self, request: &GateRequest<'_>) -> Option<Duration> {
        self.gates.iter().filter_map(|gate| gate.count(request)).max()
    }

    /// Notes a state of a server behind that can be used for this time. Returns whether it was seen before, or nobody knows.
    pub(crate) async fn is_repeated(&self, state: StateDigest, lifetime: Duration) -> bool {
        let shared = self.gates.iter().find_map(|gate| gate.seen());
        match shared.as_ref().or(self.seen.as_ref()) {
            Some(seen) => seen.is_repeated(state, lifetime).await,
            None => false,
        }
    }

    /// Returns whether a gate decides by an argument of this name.
    pub(crate) fn reads_argument(&self, name: &str) -> bool {
        self.gates.iter().any(|gate| gate.reads_argument(name))
    }

    /// Has a gate report a request that is refused, unless one has reported its decision.
    pub(crate) fn refused(&self, request: &GateRequest<'_>) {
        if !request.is_reported() {
            self.gates.iter().any(|gate| gate.refused(request));
        }
    }

    /// Returns whether an entry is visible to the caller: a template as the resource of a URI.
    pub(crate) fn shows(
        &self,
        scope: &Scope<'_>,
        entry: Entry<'_>,
        backend: Option<&str>,
        uri: Option<&str>,
    ) -> bool {
        let uri = JudgedUri::of(entry, uri);
        let request = GateRequest::new(*scope, Access::List, entry).backend(backend).uri(uri.as_ref());
        self.judge(&request) != Decision::Hide
    }

    /// Returns whether an entry is visible to the caller whose definition is read for the gates. What is not known they would have to
    /// judge unseen: they hide it.
    pub(crate) fn shows_read<D: Borrow<Definition>>(
        &self,
        scope: &Scope<'_>,
        backend: Option<&str>,
        definition: impl FnOnce() -> Option<D>,
    ) -> bool {
        self.is_empty()
            || definition().is_some_and(|read| self.shows(scope, read.borrow().entry(), backend, None))
    }

    /// Decides whether the caller may be notified of changes of a resource.
    pub(crate) fn watching(
        &self,
        scope: &Scope<'_>,
        entry: Entry<'_>,
        backend: Option<&str>,
        uri: &str,
    ) -> Decision {
        let uri = JudgedUri::of(entry, Some(uri));
        let request = GateRequest::new(*scope, Access::Subscribe, entry).repeated();
        self.judge(&request.backend(backend).uri(uri.as_ref()))
    }
}

impl fmt::Debug for Gates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} gates", self.gates.len())
    }
}
