use std::{sync::Arc, time::Duration};

use super::{request::GateRequest, seen_states::SeenStates};
use crate::server::{Entry, Scope};

/// A decision about every use of every entry of a server: who may see, list, complete, read, subscribe to and call what.
///
/// [`Server::gate`](crate::server::Server::gate) adds one. A server asks all of its gates, and the strictest decision counts; rights that
/// entries [require](crate::server::ToolRoute::requires) and [filters](crate::server::Server::filter) are gates too. A function of a
/// [`GateRequest`] is a gate.
///
/// ```
/// use pintle::{Server, server::{Access, Decision, Entry, GateRequest, Principal, tool}};
///
/// /// Only known callers change anything, and they confirm it.
/// fn careful(request: &GateRequest<'_>) -> Decision {
///     let reads = matches!(request.entry, Entry::Tool(tool)
///         if tool.annotations.as_ref().is_some_and(|hints| hints.read_only_hint == Some(true)));
///     match request.identity() {
///         _ if reads => Decision::Allow,
///         Principal::Anonymous => Decision::Hide,
///         Principal::Local | Principal::Named(_) => Decision::Confirm(format!("Run `{}`?", request.name())),
///     }
/// }
///
/// let server = Server::new("notes", "1.0.0")
///     .tool(tool("look", || async { "notes" }).read_only())
///     .tool(tool("clear", || async { "cleared" }))
///     .gate(careful);
/// # server.check().unwrap();
/// ```
pub trait Gate: Send + Sync + 'static {
    /// Decides about a request. It is asked anew for every request, every entry of a list and every round of a call, so it must not
    /// block, and must not count.
    fn decide(&self, request: &GateRequest<'_>) -> Decision;

    /// Counts a call or read that all gates allow: once per call, and neither in lists nor in later rounds, unless the round has a state
    /// of a server behind that was seen before. Returns how long the caller has to wait if there were too many.
    fn count(&self, request: &GateRequest<'_>) -> Option<Duration> {
        let _ = request;
        None
    }

    /// Returns whether the gate decides by an argument of this name, in whatever case it is written.
    #[doc(hidden)]
    fn reads_argument(&self, name: &str) -> bool {
        let _ = name;
        false
    }

    /// Reports a request that is refused, although this gate allows it: by rights that the caller lacks, or by another gate. Returns
    /// whether it was reported; then no other gate is called.
    #[doc(hidden)]
    fn refused(&self, request: &GateRequest<'_>) -> bool {
        let _ = request;
        false
    }

    /// Returns the states of servers behind that were seen, if the gate remembers them longer than the server does, or shares them.
    #[doc(hidden)]
    fn seen(&self) -> Option<Arc<SeenStates>> {
        None
    }
}

impl<F: Fn(&GateRequest<'_>) -> Decision + Send + Sync + 'static> Gate for F {
    fn decide(&self, request: &GateRequest<'_>) -> Decision {
        self(request)
    }
}

/// A decision of a [`Gate`], from the mildest to the strictest.
#[expect(clippy::exhaustive_enums, reason = "an access decision must be handled")]
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Decision {
    /// The request is allowed.
    Allow,
    /// The user is asked this question first, and the request runs if they agree. The answer is valid for these arguments only. If the
    /// client cannot ask its user, the request is denied.
    Confirm(String),
    /// The request is refused for now. The caller may repeat it after this time.
    Limit(Duration),
    /// The request is refused with this reason. The entry stays in lists.
    Deny(String),
    /// The entry does not exist for the caller: it is in no list, and a request for it is answered as one for an unknown name.
    Hide,
}

impl Decision {
    /// Returns the stricter of two decisions; of two that are equally strict, the first.
    #[must_use]
    pub fn or_stricter(self, other: Self) -> Self {
        if other.rank() > self.rank() { other } else { self }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Allow => 0,
            Self::Confirm(_) => 1,
            Self::Limit(_) => 2,
            Self::Deny(_) => 3,
            Self::Hide => 4,
        }
    }
}

/// A use of an entry that a [`Gate`] decides about.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Access {
    /// A list that would contain the entry. Only [`Decision::Hide`] matters: what is denied is listed.
    List,
    /// A completion of an argument of the entry.
    Complete,
    /// A subscription to a resource, and each notification of it.
    Subscribe,
    /// A read of a resource.
    Read,
    /// A call of a tool, or a request for a prompt.
    Call,
}

/// A [filter](crate::server::Server::filter) as a gate.
pub(crate) struct FilterGate<F>(pub(crate) F);

impl<F: Fn(&Scope<'_>, Entry<'_>) -> bool + Send + Sync + 'static> Gate for FilterGate<F> {
    fn decide(&self, request: &GateRequest<'_>) -> Decision {
        if (self.0)(&request.scope, request.entry) { Decision::Allow } else { Decision::Hide }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strictest_decision_counts() {
        let all = [
            Decision::Allow,
            Decision::Confirm("sure?".into()),
            Decision::Limit(Duration::from_secs(1)),
            Decision::Deny("no".into()),
            Decision::Hide,
        ];
        for (at, one) in all.iter().enumerate() {
            for (other_at, other) in all.iter().enumerate() {
                assert_eq!(one.clone().or_stricter(other.clone()), all[at.max(other_at)]);
            }
        }
        let (first, second) = (Decision::Deny("first".into()), Decision::Deny("second".into()));
        assert_eq!(first.clone().or_stricter(second), first);
    }
}
