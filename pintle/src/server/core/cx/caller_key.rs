use std::sync::Weak;

use pintle_proto::ledger::Owner;

use crate::server::{Cx, Principal, access::peer_address::AddressKey};

/// The caller that something is counted for, if one caller may have only so many: a principal, or else an address or a connection.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct CallerKey(CallerId);

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
enum CallerId {
    Named(Box<str>),
    /// An anonymous caller, by the address of its connection.
    Address(AddressKey),
    /// An anonymous caller, by its connection.
    Connection(u64),
    Unknown,
}

impl CallerKey {
    /// Returns the owner of what the caller makes a server hold.
    pub(crate) fn owner(&self) -> Owner {
        match &self.0 {
            CallerId::Named(name) => Owner::Principal(name.clone()),
            CallerId::Address(address) => address.owner(),
            CallerId::Connection(_) | CallerId::Unknown => Owner::Unknown,
        }
    }

    /// Returns the caller of a call. `None` is the local user, whom no other caller competes with.
    pub(crate) fn of(cx: &Cx) -> Option<Self> {
        match cx.identity() {
            Principal::Local => None,
            Principal::Named(name) => Some(Self::named(name)),
            Principal::Anonymous => {
                let address =
                    cx.peer_address().map(|address| CallerId::Address(AddressKey::of(address.ip())));
                let connection = || cx.sink().session().and_then(Weak::upgrade);
                let of_connection = || connection().map(|it| CallerId::Connection(it.facts().number));
                Some(Self(address.or_else(of_connection).unwrap_or(CallerId::Unknown)))
            }
        }
    }

    /// Returns an authenticated caller.
    pub(crate) fn named(name: &str) -> Self {
        Self(CallerId::Named(name.into()))
    }
}
