//! The names of keys. All keys of a session have its id as their hash tag.

use std::fmt::Write as _;

use pintle::server::http::nodes::NodeId;

/// The names of the keys of a service.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    prefix: String,
}

impl Keys {
    pub(crate) fn new(prefix: String) -> Self {
        Self { prefix }
    }

    /// The record of a session.
    pub(crate) fn session(&self, session: &str) -> String {
        format!("{}:s:{{{}}}", self.prefix, escaped(session))
    }

    /// The processes that have a session.
    pub(crate) fn holders(&self, session: &str) -> String {
        format!("{}:h:{{{}}}", self.prefix, escaped(session))
    }

    /// The descriptions of the open streams of a session.
    pub(crate) fn openings(&self, session: &str) -> String {
        format!("{}:o:{{{}}}", self.prefix, escaped(session))
    }

    /// The events of a stream.
    pub(crate) fn stream(&self, session: &str, stream: impl std::fmt::Display) -> String {
        format!("{}:l:{{{}}}:{stream}", self.prefix, escaped(session))
    }

    /// The bytes that the log has taken for a session in a window of time.
    pub(crate) fn logged_bytes(&self, session: &str, window: u64) -> String {
        format!("{}:b:{{{}}}:{window}", self.prefix, escaped(session))
    }

    /// The inbox of a process. It exists while the process does.
    pub(crate) fn inbox(&self, node: NodeId) -> String {
        format!("{}:in:{node}", self.prefix)
    }

    /// The log of changes.
    pub(crate) fn changes(&self) -> String {
        format!("{}:changes", self.prefix)
    }

    /// The use of a call state.
    pub(crate) fn used_state(&self, state: &[u8; 32]) -> String {
        format!("{}:u:{}", self.prefix, hex(state))
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Escapes the characters that could end the hash tag or look like another key.
fn escaped(id: &str) -> String {
    id.bytes().fold(String::with_capacity(id.len()), |mut text, byte| {
        match byte {
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'-' | b'_' => text.push(char::from(byte)),
            other => drop(write!(text, "%{other:02x}")),
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_ids_have_different_keys_with_one_tag() {
        let keys = Keys::new("p".to_owned());
        let ids = ["", "a", "a}", "{a", "a:1", "a%3a1", "\n", "*", "\u{4e16}"];
        let mut all: Vec<_> = ids.iter().map(|id| keys.session(id)).collect();
        for key in &all {
            assert_eq!((key.matches('{').count(), key.matches('}').count()), (1, 1), "{key}");
        }
        all.sort();
        all.dedup();
        assert_eq!(all.len(), ids.len());
        assert_eq!(keys.stream("00ff", 3), "p:l:{00ff}:3");
    }
}
