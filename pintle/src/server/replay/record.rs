use std::io;

use pintle_proto::server::Reply;

/// A number that no other claim has.
pub(super) type Tag = [u8; 16];
/// The SHA-256 of something.
pub(super) type Digest = [u8; 32];

/// The record of the use of a state.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct StateRecord {
    /// The claim that has written it. A claim that finds its own tag has been made, whatever it was told.
    pub(super) tag: Tag,
    /// The digest of the answers that the state was used with.
    pub(super) answers: Digest,
    pub(super) phase: StatePhase,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum StatePhase {
    /// A process runs the handler. The progress is that of an earlier claim, or what was saved since.
    Running {
        node: Tag,
        progress: Option<Vec<u8>>,
    },
    /// The next claim goes on with the progress.
    Released {
        progress: Option<Vec<u8>>,
    },
    Replied(Reply),
    /// The reply is too large to be kept.
    Used,
}

/// The size of a reply that is kept.
pub(super) const MAX_REPLY: usize = 1 << 20;

impl StatePhase {
    /// Returns the end of a claim with this reply.
    pub(super) fn replied(reply: &Reply) -> Self {
        if reply.body.len() > MAX_REPLY { Self::Used } else { Self::Replied(reply.clone()) }
    }
}

impl StateRecord {
    pub(super) fn encode(&self) -> Vec<u8> {
        let progress = |bare: u8, progress: &Option<Vec<u8>>| match progress {
            None => (bare, Vec::new()),
            Some(progress) => (bare + 1, progress.clone()),
        };
        let (kind, body) = match &self.phase {
            StatePhase::Running { node, progress: made } => {
                let (kind, body) = progress(b'0', made);
                (kind, [&node[..], &body].concat())
            }
            StatePhase::Released { progress: made } => progress(b'2', made),
            StatePhase::Replied(reply) => (b'4' + u8::from(reply.is_error), reply.body.as_bytes().to_vec()),
            StatePhase::Used => (b'6', Vec::new()),
        };
        [&[kind][..], &self.tag, &self.answers, &body].concat()
    }

    pub(super) fn decode(bytes: &[u8]) -> io::Result<Self> {
        Self::read(bytes).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, "the record of a call state is malformed")
        })
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        let (tag, rest) = rest.split_first_chunk()?;
        let (answers, body) = rest.split_first_chunk()?;
        let phase = match kind {
            b'0' | b'1' => {
                let (node, progress) = body.split_first_chunk()?;
                StatePhase::Running { node: *node, progress: (*kind == b'1').then(|| progress.to_vec()) }
            }
            b'2' => StatePhase::Released { progress: None },
            b'3' => StatePhase::Released { progress: Some(body.to_vec()) },
            b'4' | b'5' => StatePhase::Replied(Reply::new(*kind == b'5', std::str::from_utf8(body).ok()?)),
            b'6' => StatePhase::Used,
            _ => return None,
        };
        Some(Self { tag: *tag, answers: *answers, phase })
    }
}
