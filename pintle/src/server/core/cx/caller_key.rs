use std::sync::Weak;

#[cfg(feature = "client")]
use pintle_proto::ledger::Owner;

use crate::server::{Cx, Principal, access::peer_address::AddressKey};

/// The caller that something is counted for, if one caller may have only so many.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) enum CallerKey {
    Named(Box<str>),
    /// An anonymous caller, by the address of its connection.
    Address(AddressKey),
    /// An anonymous caller, by its connection.
    Connection(u64),
    Unknown,
}

impl CallerKey {
    /// Returns the owner of what the caller makes a server hold.
    #[cfg(feature = "client")]
    pub(crate) fn owner(&self) -> Owner {
        match self {
            Self::Named(name) => Owner::Principal(name.clone()),
            Self::Address(address) => address.owner(),
            Self::Connection(_) | Self::Unknown => Owner::Unknown,
        }
    }

    /// Returns the caller of a call. `None` is the local user, whom no other caller competes with.
    pub(crate) fn of(cx: &Cx) -> Option<Self> {
        match cx.identity() {
            Principal::Local => None,
            Principal::Named(name) => Some(Self::Named(name.into())),
            Principal::Anonymous => {
                if let Some(address) = cx.peer_address() {
                    return Some(Self::Address(AddressKey::of(address.ip())));
                }
                let connection = cx.sink().session().and_then(Weak::upgrade);
                Some(
                    connection
                        .map_or(Self::Unknown, |connection| Self::Connection(connection.facts().number)),
                )
            }
        }
    }
}
