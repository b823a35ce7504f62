//! The rows: whose SDK, over what, in which era, and which side of it is theirs.

/// Another SDK.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Peer {
    Ts2,
    Ts1,
    Py2,
    Rmcp,
}

/// How the two are connected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Transport {
    Stdio,
    Http,
}

/// The era that the client is started for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Era {
    Session,
    Stateless,
    Auto,
}

/// Which side is the other SDK's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum TheirRole {
    Server,
    Client,
    /// The client, and the server is [`Peer::BRIDGED`]: ours is `pintle bridge` between them, at a URL.
    Both,
}

/// One conversation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) peer: Peer,
    pub(super) transport: Transport,
    pub(super) era: Era,
    pub(super) role: TheirRole,
}

pub(super) fn all() -> impl Iterator<Item = Row> {
    pairs().chain(bridged())
}

/// The transport is that between the bridge and the server.
fn bridged() -> impl Iterator<Item = Row> {
    Transport::ALL.into_iter().flat_map(|transport| {
        Era::ALL.into_iter().map(move |era| Row { peer: Peer::Ts2, transport, era, role: TheirRole::Both })
    })
}

fn pairs() -> impl Iterator<Item = Row> {
    Peer::ALL.into_iter().flat_map(|peer| {
        TheirRole::ALL.into_iter().flat_map(move |role| {
            Transport::ALL.into_iter().flat_map(move |transport| {
                Era::ALL.into_iter().map(move |era| Row { peer, transport, era, role })
            })
        })
    })
}

impl Row {
    /// For people, and for `--only`: `ts2/http/session/server`.
    pub(super) fn name(&self) -> String {
        let Self { peer, transport, era, role } = self;
        format!("{}/{}/{}/{}", peer.as_str(), transport.as_str(), era.as_str(), role.as_str())
    }

    /// Whether a conversation needs the programs of an SDK.
    pub(super) fn needs(&self, peer: Peer) -> bool {
        self.peer == peer || self.role == TheirRole::Both && peer == Peer::BRIDGED
    }

    /// Whether the two should end up without a session: where both can, automatic choice takes the newer era.
    pub(super) fn is_stateless(&self) -> bool {
        match self.era {
            Era::Session => false,
            Era::Stateless => true,
            Era::Auto => self.peer != Peer::Ts1,
        }
    }
}

impl Peer {
    /// The server behind a bridge.
    pub(super) const BRIDGED: Self = Self::Py2;
    pub(super) const ALL: [Self; 4] = [Self::Ts2, Self::Py2, Self::Rmcp, Self::Ts1];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Ts2 => "ts2",
            Self::Ts1 => "ts1",
            Self::Py2 => "py2",
            Self::Rmcp => "rmcp",
        }
    }

    /// For people, with the version that the lock files have.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Ts2 => "TypeScript SDK 2.4.0",
            Self::Ts1 => "TypeScript SDK 1.32.2",
            Self::Py2 => "Python SDK 2.3.0",
            Self::Rmcp => "rmcp 3.8.0",
        }
    }
}

impl Transport {
    const ALL: [Self; 2] = [Self::Stdio, Self::Http];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "http",
        }
    }
}

impl Era {
    const ALL: [Self; 3] = [Self::Session, Self::Stateless, Self::Auto];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Stateless => "stateless",
            Self::Auto => "auto",
        }
    }
}

impl TheirRole {
    const ALL: [Self; 2] = [Self::Server, Self::Client];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Client => "client",
            Self::Both => "bridged",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use super::*;
    use crate::workspace::root;

    #[test]
    fn every_combination_is_there_once() {
        let names: BTreeSet<_> = all().map(|row| row.name()).collect();
        assert_eq!((all().count(), names.len()), (54, 54));
    }

    #[test]
    fn the_versions_are_those_of_the_lock_files() {
        let locked = |file: &str| fs::read_to_string(root().join("interop").join(file)).unwrap();
        let newest = |peer: Peer| peer.title().rsplit(' ').next().unwrap();
        let npm = locked("ts/package.json");
        assert!(npm.contains(&format!("\"@modelcontextprotocol/server\": \"{}\"", newest(Peer::Ts2))));
        assert!(npm.contains(&format!("\"@modelcontextprotocol/client\": \"{}\"", newest(Peer::Ts2))));
        assert!(npm.contains(&format!("\"@modelcontextprotocol/sdk\": \"{}\"", newest(Peer::Ts1))));
        assert!(locked("py/requirements.txt").contains(&format!("\nmcp=={} ", newest(Peer::Py2))));
        let rmcp = format!("name = \"rmcp\"\nversion = \"{}\"", newest(Peer::Rmcp));
        assert!(locked("rmcp/Cargo.lock").contains(&rmcp));
    }
}
