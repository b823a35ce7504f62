use std::num::NonZeroU64;

use crate::server::Principal;

/// A recipient of changes: a session, or the subscriptions of a principal without one.
#[derive(Debug, Default)]
pub struct Subscriber {
    /// The number of the session, if there is one.
    pub(crate) session: Option<NonZeroU64>,
    /// The principal of the subscriptions without a session, if there are any. In a box, because most inboxes are those of sessions.
    pub(crate) subscriber: Option<Box<OwnedPrincipal>>,
    /// The authenticated principal of the session, if it has one.
    pub(crate) principal: Option<Box<OwnedPrincipal>>,
}

impl Subscriber {
    /// Returns the number of the session, if it is one.
    pub fn session(&self) -> Option<NonZeroU64> {
        self.session
    }

    /// Returns the principal of the subscriptions without a session, if there are any.
    pub fn subscriber(&self) -> Option<&OwnedPrincipal> {
        self.subscriber.as_deref()
    }

    /// Returns whether it receives changes on behalf of an authenticated principal.
    pub fn is_of(&self, name: &str) -> bool {
        let mut owners = [&self.principal, &self.subscriber].into_iter().flatten();
        owners.any(|owner| matches!(&**owner, OwnedPrincipal::Named(it) if **it == *name))
    }
}

/// A selection of recipients.
pub type Audience<'a> = dyn Fn(&Subscriber) -> bool + Send + Sync + 'a;

/// A [`Principal`] to compare with others.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "those of `Principal`")]
pub enum OwnedPrincipal {
    /// The user of this machine.
    Local,
    /// Somebody unknown.
    Anonymous,
    /// An authenticated principal.
    Named(Box<str>),
}

impl OwnedPrincipal {
    /// Returns the name of an authenticated one.
    pub fn name(&self) -> Option<String> {
        match self {
            Self::Named(name) => Some(name.to_string()),
            Self::Local | Self::Anonymous => None,
        }
    }
}

impl From<Principal<'_>> for OwnedPrincipal {
    fn from(principal: Principal<'_>) -> Self {
        match principal {
            Principal::Local => Self::Local,
            Principal::Anonymous => Self::Anonymous,
            Principal::Named(name) => Self::Named(name.into()),
        }
    }
}
