use crate::{
    failure::Failure,
    output::Output,
    verbs::gateway::{
        api::{ApiEntry, LoadedApi},
        backend::TargetOffer,
        secret::SecretValue,
        target::TargetEntry,
    },
};

/// The entry of a file that a backend is made of.
#[derive(Clone, Copy, PartialEq)]
pub(in crate::verbs::gateway) enum BackendEntry<'a> {
    Target(&'a TargetEntry),
    /// An API, with its document if that was read.
    Api(&'a ApiEntry, Option<&'a LoadedApi>),
}

impl<'a> BackendEntry<'a> {
    /// Returns the kind, as it is the name of a table without its `s`.
    pub(in crate::verbs::gateway) fn kind(self) -> &'static str {
        match self {
            Self::Target(_) => "target",
            Self::Api(..) => "api",
        }
    }

    /// Returns what it is, for messages.
    pub(in crate::verbs::gateway) fn noun(self) -> &'static str {
        match self {
            Self::Target(_) => "a target",
            Self::Api(..) => "an API",
        }
    }

    /// Returns the text before the `_` of the names; it is empty if they have no prefix.
    pub(in crate::verbs::gateway) fn prefix_text(self, name: &'a str) -> &'a str {
        match self {
            Self::Target(target) => target.prefix_text(name),
            Self::Api(api, _) => api.prefix_text(name),
        }
    }

    /// Returns how a backend of this name is offered.
    pub(in crate::verbs::gateway) fn offer(self, name: &str, output: &Output) -> TargetOffer {
        match self {
            Self::Target(target) => TargetOffer::of_target(name, target, output),
            Self::Api(api, _) => TargetOffer::of_api(name, api, output),
        }
    }

    /// Returns whether the other entry has the same connection.
    pub(in crate::verbs::gateway) fn is_connected_like(self, other: Self) -> bool {
        match (self, other) {
            (Self::Target(target), Self::Target(other)) => target.is_connected_like(other),
            _ => self == other,
        }
    }

    /// Returns whether the connection of this entry may be used until that of the next one is there.
    pub(in crate::verbs::gateway) fn may_stay_for(self, next: Self) -> bool {
        match (self, next) {
            (Self::Target(target), Self::Target(next)) => target.may_stay_for(next),
            // The next one needs no connection.
            (Self::Api(..), Self::Api(..)) => true,
            _ => false,
        }
    }

    /// Returns the values that may be secrets, with the settings that have them.
    pub(in crate::verbs::gateway) fn secrets(self) -> Vec<(String, &'a SecretValue)> {
        match self {
            Self::Target(target) => target.secrets(),
            Self::Api(api, _) => api.secrets(),
        }
    }

    /// Returns whether tokens of clients are exchanged.
    pub(in crate::verbs::gateway) fn has_exchange(self) -> bool {
        match self {
            Self::Target(target) => target.exchange().is_some(),
            Self::Api(api, _) => api.exchange().is_some(),
        }
    }

    /// Returns what is wrong with the entry of this name.
    pub(in crate::verbs::gateway) fn fault(self, name: &str) -> Option<String> {
        match self {
            Self::Target(target) => target.fault(name),
            Self::Api(api, _) => api.fault(),
        }
    }

    /// Refuses to serve the entry of this name to everybody who can connect, if that would give them the rights of its owner there.
    pub(in crate::verbs::gateway) fn not_for_everybody(self, name: &str) -> Result<(), Failure> {
        match self {
            Self::Target(target) => target.not_for_everybody(name),
            Self::Api(api, _) => api.not_for_everybody(name),
        }
    }
}
