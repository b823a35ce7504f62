use serde_json::Value;

use super::endpoint::Endpoint;

/// A fault that is injected into an [`AuthorizationServer`](super::AuthorizationServer).
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// Changes a member of the metadata: another `issuer`, no `S256`, an address in a private network. `null` removes it.
    Metadata(String, Value),
    /// Changes a member of another endpoint's response: `token_type`, `client_secret`. `null` removes it.
    Answer(Endpoint, String, Value),
    /// Changes a parameter of the redirect: `iss`, `state`, `code`. `None` removes it.
    Redirect(String, Option<String>),
    /// Changes a claim of issued tokens: `aud`, `iss`, `exp`. `null` removes it.
    Claim(String, Value),
    /// Signs tokens with a key that is not published.
    UnknownKey,
    /// Signs tokens with another key, with the `kid` of the published one.
    Forged,
    /// Users deny their consent.
    Denied,
    /// An endpoint returns this `error`: `invalid_grant`, `slow_down`.
    Refused(Endpoint, String),
    /// An endpoint returns this status with an empty body, but for members that [`Answer`](Self::Answer) adds.
    Status(Endpoint, u16),
    /// An endpoint closes the connection.
    CutOff(Endpoint),
}

impl Fault {
    /// Changes a member of the metadata.
    pub fn metadata(member: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::Metadata(member.into(), value.into())
    }

    /// Changes a member of another endpoint's response.
    pub fn answer(endpoint: Endpoint, member: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::Answer(endpoint, member.into(), value.into())
    }

    /// Changes a parameter of the redirect.
    pub fn redirect(parameter: impl Into<String>, value: impl Into<String>) -> Self {
        Self::Redirect(parameter.into(), Some(value.into()))
    }

    /// Removes a parameter of the redirect.
    pub fn redirect_without(parameter: impl Into<String>) -> Self {
        Self::Redirect(parameter.into(), None)
    }

    /// Changes a claim of issued tokens.
    pub fn claim(name: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::Claim(name.into(), value.into())
    }

    /// Has an endpoint return this `error`.
    pub fn refused(endpoint: Endpoint, error: impl Into<String>) -> Self {
        Self::Refused(endpoint, error.into())
    }
}

/// The injected faults, in order.
#[derive(Debug, Default)]
pub(super) struct Faults(Vec<Planned>);

#[derive(Debug)]
struct Planned {
    fault: Fault,
    /// How often it still happens; `None`: until it is cleared.
    times: Option<usize>,
}

impl Faults {
    pub(super) fn plan(&mut self, fault: Fault, times: Option<usize>) {
        if times != Some(0) {
            self.0.push(Planned { fault, times });
        }
    }

    pub(super) fn clear_faults(&mut self) {
        self.0.clear();
    }

    /// Returns what `pick` takes from the first fault that it applies to, and counts that fault.
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

    /// Returns what `pick` takes from all faults: they change different parts of one response.
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
        faults.clear_faults();
        assert_eq!(faults.happens(status), None);
    }
}
