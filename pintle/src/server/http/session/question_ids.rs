//! The ids of questions in a fleet, where any process may receive the answers.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use pintle_proto::server::QuestionNames;
use ring::hmac;

use super::nodes::NodeId;
use crate::server::random;

/// The limit of answers that are known to be forwarded. An answer to an older question may be forwarded once more.
const MAX_FORWARDED: usize = 256;

/// The ids of the questions of a session that several processes have. They share a key, which clients do not know: an answer is
/// forwarded only if its id is that of a question which one of them has asked, and once.
pub(in crate::server::http) struct QuestionIds {
    /// The key as it is stored.
    secret: u128,
    key: hmac::Key,
    forwarded: Mutex<VecDeque<(NodeId, i64)>>,
}

impl QuestionIds {
    fn new(secret: u128) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &secret.to_be_bytes());
        Self { secret, key, forwarded: Mutex::default() }
    }

    /// Creates the ids of a new session. Returns `None` if the system's random number generator failed.
    pub(in crate::server::http) fn random() -> Option<Self> {
        random::bytes().ok().map(|bytes| Self::new(u128::from_be_bytes(bytes)))
    }

    /// Returns the ids of a session whose key is stored.
    pub(in crate::server::http) fn stored(key: &str) -> Option<Self> {
        u128::from_str_radix(key, 16).ok().map(Self::new)
    }

    /// Returns the key, to be stored.
    pub(in crate::server::http) fn key(&self) -> String {
        format!("{:032x}", self.secret)
    }

    /// Returns the ids of the questions of a process.
    pub(in crate::server::http) fn names(&self, node: NodeId) -> QuestionNames {
        let key = self.key.clone();
        QuestionNames::new(node.number(), move |number| tag(&key, node, number))
    }

    /// Returns the process that has asked the question with this id.
    pub(in crate::server::http) fn asker(&self, id: &str) -> Option<NodeId> {
        self.question(id).map(|(node, _)| node)
    }

    /// Notes that the answer to a question is forwarded. Returns `false` if it was already.
    pub(in crate::server::http) fn forward(&self, id: &str) -> bool {
        let Some(question) = self.question(id) else { return false };
        let mut forwarded = self.forwarded.lock().unwrap_or_else(PoisonError::into_inner);
        if forwarded.contains(&question) {
            return false;
        }
        if forwarded.len() >= MAX_FORWARDED {
            forwarded.pop_front();
        }
        forwarded.push_back(question);
        true
    }

    /// Lets an answer that could not be forwarded be sent again.
    pub(in crate::server::http) fn retry(&self, id: &str) {
        let question = self.question(id);
        let mut forwarded = self.forwarded.lock().unwrap_or_else(PoisonError::into_inner);
        forwarded.retain(|forwarded| Some(*forwarded) != question);
    }

    fn question(&self, id: &str) -> Option<(NodeId, i64)> {
        let mut parts = id.split('-');
        let node: NodeId = parts.next()?.parse().ok()?;
        let number = parts.next()?.parse().ok()?;
        (self.names(node).id(number) == id).then_some((node, number))
    }
}

fn tag(key: &hmac::Key, node: NodeId, number: i64) -> u64 {
    let tag = hmac::sign(key, &[node.number().to_be_bytes(), number.to_be_bytes()].concat());
    tag.as_ref().first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_forwarded_once_and_only_to_who_asked() {
        let (asker, other) = (NodeId::new(1), NodeId::new(2));
        let asked = QuestionIds::random().unwrap();
        let here = QuestionIds::stored(&asked.key()).unwrap();
        let id = asked.names(asker).id(7);
        assert_eq!(here.asker(&id), Some(asker));
        assert!(here.forward(&id));
        assert!(!here.forward(&id), "it is answered");
        here.retry(&id);
        assert!(here.forward(&id));
        let (head, tag) = id.rsplit_once('-').unwrap();
        for forged in [
            QuestionIds::random().unwrap().names(asker).id(7),
            format!("{asker}-8-{tag}"),
            format!("{other}-7-{tag}"),
            format!("{head}-0000000000000000"),
            format!("{id}-"),
            format!("{id} "),
            head.to_owned(),
            asker.to_string(),
            String::new(),
        ] {
            assert_eq!(here.asker(&forged), None, "{forged}");
            assert!(!here.forward(&forged), "{forged}");
        }
    }

    #[test]
    fn what_is_known_of_forwarded_answers_is_bounded() {
        let ids = QuestionIds::random().unwrap();
        let asker = ids.names(NodeId::new(1));
        for number in 0..1_000 {
            assert!(ids.forward(&asker.id(number)));
        }
        assert_eq!(ids.forwarded.lock().unwrap().len(), MAX_FORWARDED);
        assert!(!ids.forward(&asker.id(999)));
    }
}
