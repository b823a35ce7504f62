use pintle_proto::ledger::{Account, FREE, Owner};

use super::{Core, Session};
use crate::server::access::peer_address::AddressKey;

/// The client that a session belongs to, for the limits per client.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(super) enum SessionOwner {
    Principal(Box<str>),
    /// The address of a client without a principal. All clients whose address is unknown are one owner.
    Address(Option<AddressKey>),
}

impl SessionOwner {
    pub(super) fn is_anonymous(&self) -> bool {
        matches!(self, Self::Address(_))
    }

    /// Returns the network of an address; a principal is its own.
    pub(super) fn network(&self) -> Self {
        match self {
            Self::Address(Some(address)) => Self::Address(Some(address.network())),
            other => other.clone(),
        }
    }
}

impl From<SessionOwner> for Owner {
    fn from(owner: SessionOwner) -> Self {
        match owner {
            SessionOwner::Principal(name) => Self::Principal(name),
            SessionOwner::Address(address) => address.map_or(Self::Unknown, AddressKey::owner),
        }
    }
}

impl Session {
    /// Has the session end if others need the room, once it is charged for something.
    pub(super) fn yield_if_charged(&self, core: &mut Core) {
        if core.yields || core.engine.charge().is_none_or(|charge| charge.bytes() <= FREE) {
            return;
        }
        let Some((charge, kept)) = core.engine.charge().zip(self.kept.as_ref()) else { return };
        let (shared, id) = (kept.shared.clone(), self.id);
        charge.on_give_way(move || {
            if let Some(shared) = shared.upgrade() {
                shared.give_up(id);
            }
        });
        core.yields = true;
    }

    /// Returns the account of its client.
    pub(super) fn account(&self) -> Account {
        self.server.snapshot().service.ledger().account(&self.owner().into())
    }

    pub(super) fn owner(&self) -> SessionOwner {
        match &self.principal {
            Some(name) => SessionOwner::Principal(name.clone()),
            None => SessionOwner::Address(self.address),
        }
    }
}
