//! The servers that the verbs are typed at, over what and in which era.

use std::process::Command;

use crate::interop::install::InstalledSdks;
use crate::interop::rows::{Era, Peer, Transport};
use crate::workspace;

/// A server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Server {
    /// The one of `pintle demo`.
    Demo,
    /// The one of the conformance suite.
    Fixture,
    Peer(Peer),
}

/// One server, over one transport, in one era.
#[derive(Clone, Copy, Debug)]
pub(super) struct VerbRow {
    pub(super) server: Server,
    pub(super) transport: Transport,
    pub(super) era: Era,
}

impl Server {
    pub(super) fn all() -> impl Iterator<Item = Self> {
        [Self::Demo, Self::Fixture].into_iter().chain(Peer::ALL.map(Self::Peer))
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Demo => "demo",
            Self::Fixture => "fixture",
            Self::Peer(peer) => peer.as_str(),
        }
    }

    /// Returns the words that start it on standard streams.
    pub(super) fn on_stdio(self, peers: &InstalledSdks) -> Vec<String> {
        match self {
            Self::Demo => vec![ours("pintle"), "demo".to_owned()],
            Self::Fixture => vec![ours("conformance-server")],
            Self::Peer(peer) => [peers.server(peer), vec!["stdio".to_owned()]].concat(),
        }
    }

    /// Returns the command that serves it on a free port, which it prints.
    pub(super) fn on_http(self, peers: &InstalledSdks) -> Command {
        let words = match self {
            Self::Demo => [ours("pintle")]
                .into_iter()
                .chain(["demo", "--http", "127.0.0.1:0"].map(str::to_owned))
                .collect(),
            Self::Fixture => vec![ours("conformance-server")],
            Self::Peer(peer) => [peers.server(peer), vec!["http".to_owned()]].concat(),
        };
        let mut command = Command::new(&words[0]);
        // The fixture listens only if there is a port.
        command.args(&words[1..]).env("PORT", "0");
        command
    }
}

impl VerbRow {
    /// Returns all rows. A server that has sessions only has no row without one.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        Server::all().flat_map(|server| {
            [Transport::Stdio, Transport::Http].into_iter().flat_map(move |transport| {
                let eras: &[Era] = match server {
                    Server::Peer(Peer::Ts1) => &[Era::Session],
                    _ => &[Era::Session, Era::Stateless],
                };
                eras.iter().map(move |era| Self { server, transport, era: *era })
            })
        })
    }

    /// Whether what one command does at the server is seen by another. On standard streams each starts a program, and the other SDKs
    /// have an instance for each session.
    pub(super) fn is_shared(&self) -> bool {
        let is_own = matches!(self.server, Server::Demo | Server::Fixture);
        self.transport == Transport::Http && (is_own || self.era == Era::Stateless)
    }

    /// For people, and for `--only`: `ts2/http/session`.
    pub(super) fn name(&self) -> String {
        format!("{}/{}/{}", self.server.as_str(), self.transport.as_str(), self.era.as_str())
    }
}

/// Returns the path of a program of the workspace.
pub(super) fn ours(name: &str) -> String {
    workspace::program(name).display().to_string()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_combination_is_there_once() {
        let names: BTreeSet<_> = VerbRow::all().map(|row| row.name()).collect();
        assert_eq!((VerbRow::all().count(), names.len()), (22, 22));
        assert!(names.contains("ts1/stdio/session") && !names.contains("ts1/stdio/stateless"));
    }
}
