use std::num::NonZeroU64;

use crate::server::Principal;

/// On whose behalf an inbox collects changes.
#[derive(Debug, Default)]
pub(crate) struct InboxOwner {
    /// The number of the session, if there is one.
    pub(crate) session: Option<NonZeroU64>,
    /// The principal of the subscriptions without a session, if there are any. In a box, because most inboxes are those of sessions.
    pub(crate) subscriber: Option<Box<OwnedPrincipal>>,
    /// The authenticated principal of the session, if it has one.
    pub(crate) principal: Option<Box<OwnedPrincipal>>,
}

impl InboxOwner {
    /// Returns whether the changes are collected on behalf of an authenticated principal.
    pub(crate) fn is_of(&self, name: &str) -> bool {
        let mut owners = [&self.principal, &self.subscriber].into_iter().flatten();
        owners.any(|owner| matches!(&**owner, OwnedPrincipal::Named(it) if **it == *name))
    }
}

/// A selection of inboxes, by their owners.
pub(crate) type Audience<'a> = dyn Fn(&InboxOwner) -> bool + Send + Sync + 'a;

/// A [`Principal`] to compare with others.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) enum OwnedPrincipal {
    Local,
    Anonymous,
    Named(Box<str>),
}

impl OwnedPrincipal {
    /// Returns the name of an authenticated one.
    pub(crate) fn name(&self) -> Option<String> {
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
