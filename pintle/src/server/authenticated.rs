use std::{fmt, sync::Arc};

use http::{Extensions, HeaderValue};

/// On whose behalf a request comes and what it may do, as an authentication layer found out: it leaves this in the
/// extensions of the HTTP request.
///
/// The principal binds sessions, states and subscriptions, unless [`Http::principal`] says otherwise. What the caller may
/// do is compared with what tools, prompts and resources [require](super::ToolRoute::requires).
///
/// ```
/// use pintle::server::Authenticated;
///
/// # fn layer<B>(mut request: http::Request<B>) {
/// // In a layer around the service, once the caller's password was found to be right:
/// let ann = Authenticated::new("ann").rights(|right| right == "notes:read");
/// request.extensions_mut().insert(ann);
/// # }
/// ```
///
/// [`Http::principal`]: https://docs.rs/pintle/latest/pintle/server/http/struct.Http.html#method.principal
#[derive(Clone)]
pub struct Authenticated {
    principal: Option<Box<str>>,
    has: Option<Arc<Has>>,
    challenge: Option<Arc<Challenge>>,
}

type Has = dyn Fn(&str) -> bool + Send + Sync;
type Challenge = dyn Fn(&Lacking<'_>) -> Option<HeaderValue> + Send + Sync;

/// What a request needs and its caller does not have all of.
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct Lacking<'a> {
    /// All rights that the request needs.
    pub needed: &'a [&'a str],
    /// Whether clients of this revision add what they are asked for to what they were granted before. Others ask for
    /// nothing else, so that what they have is to be named again.
    pub adds: bool,
}

impl Authenticated {
    /// Somebody who may do everything.
    pub fn new(principal: impl Into<Box<str>>) -> Self {
        Self { principal: Some(principal.into()), has: None, challenge: None }
    }

    /// Somebody whom nobody has asked for a name, and who may do nothing that anything is required for.
    #[cfg(any(test, feature = "http-server"))]
    pub(crate) fn nobody() -> Self {
        Self { principal: None, has: Some(Arc::new(|_| false)), challenge: None }
    }

    /// Which rights it has.
    #[must_use]
    pub fn rights(mut self, has: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.has = Some(Arc::new(has));
        self
    }

    /// What `WWW-Authenticate` says when it lacks some: the answer is 403, and nothing of the request is run.
    #[must_use]
    pub fn challenge(
        mut self,
        say: impl Fn(&Lacking<'_>) -> Option<HeaderValue> + Send + Sync + 'static,
    ) -> Self {
        self.challenge = Some(Arc::new(say));
        self
    }

    /// On whose behalf it is.
    pub fn principal(&self) -> Option<&str> {
        self.principal.as_deref()
    }

    /// Whether it has this right.
    pub fn has(&self, right: &str) -> bool {
        self.has.as_ref().is_none_or(|has| has(right))
    }

    #[cfg(feature = "http-server")]
    pub(crate) fn challenged(&self, lacking: &Lacking<'_>) -> Option<HeaderValue> {
        self.challenge.as_ref().and_then(|say| say(lacking))
    }
}

impl fmt::Debug for Authenticated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authenticated").field("principal", &self.principal).finish_non_exhaustive()
    }
}

/// What a caller needs to get to something, in the words of whoever authenticates: the scopes of a token, say.
#[derive(Clone, Debug, Default)]
pub(crate) struct Required {
    rights: Vec<Box<str>>,
    /// Whether it does not exist for those who lack something.
    hidden: bool,
}

impl Required {
    /// Nothing at all.
    pub(crate) const NOTHING: Self = Self { rights: Vec::new(), hidden: false };

    pub(crate) fn add<T: Into<String>>(&mut self, rights: impl IntoIterator<Item = T>) {
        for right in rights {
            let right: String = right.into();
            if !self.rights.iter().any(|known| **known == *right) {
                self.rights.push(right.into());
            }
        }
    }

    pub(crate) fn hide(&mut self) {
        self.hidden = true;
    }

    pub(crate) fn is_nothing(&self) -> bool {
        self.rights.is_empty()
    }

    pub(crate) fn hides(&self) -> bool {
        self.hidden && !self.rights.is_empty()
    }

    #[cfg(feature = "http-server")]
    pub(crate) fn rights(&self) -> impl Iterator<Item = &str> {
        self.rights.iter().map(|right| &**right)
    }

    /// Whether the caller has all of it. Where nobody authenticates, on a pipe of one user, everything is allowed.
    pub(crate) fn is_met(&self, extensions: &Extensions) -> bool {
        self.rights.is_empty()
            || extensions
                .get::<Authenticated>()
                .is_none_or(|caller| self.rights.iter().all(|right| caller.has(right)))
    }

    /// Whether the caller gets to know that it is there.
    pub(crate) fn shows(&self, extensions: &Extensions) -> bool {
        !self.hidden || self.is_met(extensions)
    }
}

/// Whether anything was ever required in a catalogue: in most nothing is, and then nothing is looked for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Requires {
    pub(crate) some: bool,
    pub(crate) hides: bool,
}

impl Requires {
    pub(crate) fn join(&mut self, other: Self) {
        self.some |= other.some;
        self.hides |= other.hides;
    }

    pub(crate) fn note(&mut self, required: &Required) {
        self.some |= !required.is_nothing();
        self.hides |= required.hides();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_required_is_compared_with_what_the_caller_may() {
        let mut required = Required::default();
        required.add(["read", "write", "read"]);
        let mut extensions = Extensions::new();
        assert!(required.is_met(&extensions), "nobody authenticates");
        extensions.insert(Authenticated::new("ann").rights(|right| right == "read"));
        assert!(!required.is_met(&extensions));
        assert!(required.shows(&extensions));
        required.hide();
        assert!(!required.shows(&extensions));
        extensions.insert(Authenticated::new("ann").rights(|_| true));
        assert!(required.is_met(&extensions) && required.shows(&extensions));
        extensions.insert(Authenticated::nobody());
        assert!(!required.is_met(&extensions));
        assert!(Required::NOTHING.is_met(&extensions));
    }
}
