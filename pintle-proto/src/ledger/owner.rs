/// The party that bytes are charged to.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Owner {
    /// The process at the other end of a pipe.
    Local,
    /// An authenticated caller.
    Principal(Box<str>),
    /// A caller without a principal, by its address.
    Address {
        /// An IPv4 address, or an IPv6 network of 64 bits.
        near: u64,
        /// The network of 24 bits, or of 48 bits.
        network: u64,
    },
    /// All addresses of a network.
    Network(u64),
    /// All callers without a principal whose address is not known.
    Unknown,
}

impl Owner {
    pub(super) fn network(&self) -> Option<Self> {
        match self {
            Self::Address { network, .. } => Some(Self::Network(*network)),
            _ => None,
        }
    }

    /// Returns whether the owner is one of those that share three quarters of all.
    pub(super) fn is_anonymous(&self) -> bool {
        matches!(self, Self::Address { .. } | Self::Network(_) | Self::Unknown)
    }

    /// Returns whether this is one party, which has a quarter of all at most.
    pub(super) fn is_one(&self) -> bool {
        matches!(self, Self::Principal(_) | Self::Address { .. })
    }
}
