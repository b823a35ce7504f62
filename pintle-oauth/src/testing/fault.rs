use serde_json::Value;

use super::endpoint::Endpoint;

/// What an [`AuthorizationServer`](super::AuthorizationServer) does wrong when it is told to.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// A member of its metadata says something else: another `issuer`, no `S256`, an address in a private network.
    /// `null` leaves the member out.
    Metadata(String, Value),
    /// A member of what another endpoint answers says something else: `token_type`, `client_secret`. `null` leaves the
    /// member out.
    Answer(Endpoint, String, Value),
    /// A parameter of the address that users are sent back to says something else: `iss`, `state`, `code`. `None` leaves
    /// it out.
    Redirect(String, Option<String>),
    /// A claim of the tokens that it issues says something else: `aud`, `iss`, `exp`. `null` leaves it out.
    Claim(String, Value),
    /// Tokens are signed with a key that it does not publish.
    UnknownKey,
    /// Tokens are signed by somebody else, in the name of the key that it publishes.
    Forged,
    /// Users say no.
    Denied,
    /// An endpoint refuses with this `error`: `invalid_grant`, `slow_down`.
    Refused(Endpoint, String),
    /// An endpoint answers with this status and nothing else, but for what [`Answer`](Self::Answer) puts there.
    Status(Endpoint, u16),
    /// An endpoint cannot be reached: the connection is cut off.
    CutOff(Endpoint),
}

impl Fault {
    /// A member of its metadata says something else.
    pub fn metadata(member: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::Metadata(member.into(), value.into())
    }

    /// A member of what another endpoint answers says something else.
    pub fn answer(endpoint: Endpoint, member: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::Answer(endpoint, member.into(), value.into())
    }

    /// A parameter of the address that users are sent back to says something else.
    pub fn redirect(parameter: impl Into<String>, value: impl Into<String>) -> Self {
        Self::Redirect(parameter.into(), Some(value.into()))
    }

    /// A parameter of the address that users are sent back to is not there.
    pub fn redirect_without(parameter: impl Into<String>) -> Self {
        Self::Redirect(parameter.into(), None)
    }

    /// A claim of the tokens that it issues says something else.
    pub fn claim(name: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::Claim(name.into(), value.into())
    }

    /// An endpoint refuses with this `error`.
    pub fn refused(endpoint: Endpoint, error: impl Into<String>) -> Self {
        Self::Refused(endpoint, error.into())
    }
}

/// The faults that there are now, in the order they were asked for.
#[derive(Debug, Default)]
pub(super) struct Faults(Vec<Planned>);

#[derive(Debug)]
struct Planned {
    fault: Fault,
    /// How often it still happens; `None`: until it is mended.
    times: Option<usize>,
}

impl Faults {
    pub(super) fn plan(&mut self, fault: Fault, times: Option<usize>) {
        if times != Some(0) {
            self.0.push(Planned { fault, times });
        }
    }

    pub(super) fn mend(&mut self) {
        self.0.clear();
    }

    /// The first fault that this picks something from; it has happened once more then.
    pub(super) fn happens<T>(&mut self, pick: impl Fn(&Fault) -> Option<T>) -> Option<T> {
        let at = self.0.iter().position(|planned| pick(&planned.fault).is_some())?;
        let picked = pick(&self.0[at].fault);
        if let Some(times) = &mut self.0[at].times {
            *times -= 1;
            if *times == 0 {
                self.0.remove(at);
            }
        }
        picked
    }

    /// All that this picks from: they change different parts of one answer.
    pub(super) fn all<T>(&mut self, pick: impl Fn(&Fault) -> Option<T>) -> Vec<T> {
        let picked = self.0.iter().filter_map(|planned| pick(&planned.fault)).collect();
        for planned in self.0.iter_mut().filter(|planned| pick(&planned.fault).is_some()) {
            planned.times = planned.times.map(|times| times - 1);
        }
        self.0.retain(|planned| planned.times != Some(0));
        picked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_happens_as_often_as_it_was_asked_for_and_in_that_order() {
        let mut faults = Faults::default();
        faults.plan(Fault::Status(Endpoint::Token, 503), Some(2));
        faults.plan(Fault::Status(Endpoint::Token, 500), None);
        let status = |fault: &Fault| match fault {
            Fault::Status(Endpoint::Token, status) => Some(*status),
            _ => None,
        };
        let mut happened = || faults.happens(status);
        assert_eq!([happened(), happened(), happened(), happened()], [503, 503, 500, 500].map(Some));
        faults.mend();
        assert_eq!(faults.happens(status), None);
    }
}
