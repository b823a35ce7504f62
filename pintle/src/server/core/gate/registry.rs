use std::{fmt, sync::Arc, time::Duration};

use super::{
    decision::{Access, Decision, Gate},
    request::{GateRequest, JudgedUri},
    seen_states::{SeenStates, StateDigest},
};
use crate::server::{Entry, Scope};

/// The gates of a server.
#[derive(Clone, Default)]
pub(crate) struct Gates(Vec<Arc<dyn Gate>>, Arc<SeenStates>);

impl Gates {
    pub(crate) fn push(&mut self, gate: impl Gate) {
        self.0.push(Arc::new(gate));
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the strictest decision. This is the one place where gates are asked.
    pub(crate) fn judge(&self, request: &GateRequest<'_>) -> Decision {
        let ask = |request: &GateRequest<'_>| {
            let decisions = self.0.iter().map(|gate| gate.decide(request));
            decisions.fold(Decision::Allow, Decision::or_stricter)
        };
        if request.is_unclear() {
            return Decision::Hide;
        }
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
        self.0.iter().filter_map(|gate| gate.count(request)).max()
    }

    /// Notes a state of a server behind that can be used for this time. Returns whether it was seen before, or nobody knows.
    pub(crate) async fn is_repeated(&self, state: StateDigest, lifetime: Duration) -> bool {
        let seen = self.0.iter().find_map(|gate| gate.seen()).unwrap_or_else(|| self.1.clone());
        seen.is_repeated(state, lifetime).await
    }

    /// Returns whether a gate decides by an argument of this name.
    pub(crate) fn reads_argument(&self, name: &str) -> bool {
        self.0.iter().any(|gate| gate.reads_argument(name))
    }

    /// Has a gate report a request that is refused, unless one has reported its decision.
    pub(crate) fn refused(&self, request: &GateRequest<'_>) {
        if !request.is_reported() {
            self.0.iter().any(|gate| gate.refused(request));
        }
    }

    /// Returns whether an entry is visible to the caller.
    pub(crate) fn shows(&self, scope: &Scope<'_>, entry: Entry<'_>, backend: Option<&str>) -> bool {
        self.shows_uri(scope, entry, backend, None)
    }

    /// Returns whether an entry is visible to the caller: a template as the resource of a URI.
    pub(crate) fn shows_uri(
        &self,
        scope: &Scope<'_>,
        entry: Entry<'_>,
        backend: Option<&str>,
        uri: Option<&str>,
    ) -> bool {
        if self.is_empty() {
            return true;
        }
        let uri = JudgedUri::of(entry, uri);
        let request = GateRequest::new(*scope, Access::List, entry).backend(backend).uri(uri.as_ref());
        self.judge(&request) != Decision::Hide
    }

    /// Decides whether the caller may be notified of changes of a resource.
    pub(crate) fn watching(
        &self,
        scope: &Scope<'_>,
        entry: Entry<'_>,
        backend: Option<&str>,
        uri: &str,
    ) -> Decision {
        match self.is_empty() {
            true => Decision::Allow,
            false => {
                let uri = JudgedUri::of(entry, Some(uri));
                let request = GateRequest::new(*scope, Access::Subscribe, entry).repeated();
                self.judge(&request.backend(backend).uri(uri.as_ref()))
            }
        }
    }
}

impl fmt::Debug for Gates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} gates", self.0.len())
    }
}
