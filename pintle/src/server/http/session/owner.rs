use super::Session;
use crate::server::access::peer_address::AddressKey;

/// The client that a session belongs to, for the limits per client.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) enum SessionOwner {
    Principal(Box<str>),
    /// The address of a client without a principal. All clients whose address is unknown are one owner.
    Address(Option<AddressKey>),
}

impl SessionOwner {
    pub(super) fn is_anonymous(&self) -> bool {
        matches!(self, Self::Address(_))
    }
}

impl Session {
    pub(super) fn owner(&self) -> SessionOwner {
        match &self.principal {
            Some(name) => SessionOwner::Principal(name.clone()),
            None => SessionOwner::Address(self.address),
        }
    }
}
