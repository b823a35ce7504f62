//! The `_meta` of requests of the stateless era.

use std::borrow::Cow;

use pintle_types::RawObject;
use pintle_types::keys::{CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, PROTOCOL_VERSION};
use serde_json::Value;

use super::extras::{Extras, push};

/// The `_meta` that requests carry, alone and with members of their own.
#[derive(Debug)]
pub(super) struct RequestMeta {
    pub(super) members: RawObject,
    /// With those of the last request that had any: those of the next one are often the same.
    joined: Option<JoinedMeta>,
}

/// The `_meta` of a request with members of its own.
#[derive(Debug)]
struct JoinedMeta {
    own: Box<str>,
    all: RawObject,
}

impl RequestMeta {
    /// The longest `_meta` of a request that is kept, in bytes.
    const MAX_OWN: usize = 1024;

    pub(super) fn new(members: RawObject) -> Self {
        Self { members, joined: None }
    }

    /// Returns the `_meta` of a request with these members, if the last one had the same.
    pub(super) fn known(&self, own: &str) -> Option<&RawObject> {
        self.joined.as_ref().filter(|joined| *joined.own == *own).map(|joined| &joined.all)
    }

    /// Keeps the `_meta` of a request, which the next request with the same members has too.
    pub(super) fn keep(&mut self, own: &str, all: RawObject) {
        if own.len() <= Self::MAX_OWN {
            self.joined = Some(JoinedMeta { own: own.into(), all });
        }
    }

    /// Returns the `_meta` of a request.
    pub(super) fn introduce(
        &self,
        id: i64,
        own: Option<&RawObject>,
        extras: &Extras<'_>,
    ) -> Cow<'_, RawObject> {
        let mut added = String::new();
        extras.write(id, own, &mut added);
        if let Some(level) = extras.log_level {
            push(&mut added, LOG_LEVEL, &Value::from(level).to_string());
        }
        let mut meta = Cow::Borrowed(&self.members);
        if !added.is_empty() {
            let added: RawObject = format!("{{{added}}}").parse().unwrap_or_default();
            meta = Cow::Owned(meta.joined(&added, |_| true));
        }
        let ours = |name: &str| match name {
            PROTOCOL_VERSION | CLIENT_CAPABILITIES | CLIENT_INFO => true,
            LOG_LEVEL => extras.log_level.is_some(),
            _ => extras.replaces(name),
        };
        match own {
            Some(own) if !own.is_empty() => Cow::Owned(meta.joined(own, |name| !ours(name))),
            _ => meta,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::testing::object;

    #[test]
    fn only_a_short_meta_of_a_request_is_kept() {
        let mut meta = RequestMeta::new(object("{}"));
        let kept = |meta: &RequestMeta| meta.joined.as_ref().map(|joined| joined.own.len());
        meta.keep(&"x".repeat(RequestMeta::MAX_OWN), object("{}"));
        assert_eq!(kept(&meta), Some(RequestMeta::MAX_OWN));
        meta.keep(&"x".repeat(RequestMeta::MAX_OWN + 1), object("{}"));
        assert_eq!(kept(&meta), Some(RequestMeta::MAX_OWN));
    }
}
