//! The names of keys. All keys of a session have its id as their hash tag, so that a cluster has them in one place; so have the keys of all
//! processes, and those of all tasks.

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
        format!("{}:s:{{{}}}", self.prefix, tag(session))
    }

    /// The processes that have a session.
    pub(crate) fn holders(&self, session: &str) -> String {
        format!("{}:h:{{{}}}", self.prefix, tag(session))
    }

    /// The descriptions of the open streams of a session.
    pub(crate) fn openings(&self, session: &str) -> String {
        format!("{}:o:{{{}}}", self.prefix, tag(session))
    }

    /// The events of a stream.
    pub(crate) fn stream(&self, session: &str, stream: impl std::fmt::Display) -> String {
        format!("{}:l:{{{}}}:{stream}", self.prefix, tag(session))
    }

    /// The bytes that the log has taken for a session in a window of time.
    pub(crate) fn logged_bytes(&self, session: &str, window: u64) -> String {
        format!("{}:b:{{{}}}:{window}", self.prefix, tag(session))
    }

    /// The inbox of a process. It exists while the process does.
    pub(crate) fn inbox(&self, node: NodeId) -> String {
        format!("{}:{{nodes}}:in:{node}", self.prefix)
    }

    /// The bytes of the messages in the inbox of a process.
    pub(crate) fn inbox_bytes(&self, node: NodeId) -> String {
        format!("{}:{{nodes}}:ib:{node}", self.prefix)
    }

    /// The log of changes.
    pub(crate) fn changes(&self) -> String {
        format!("{}:{{nodes}}:changes", self.prefix)
    }

    /// The processes of the fleet, also those that are gone and that nobody has found yet.
    pub(crate) fn processes(&self) -> String {
        format!("{}:{{nodes}}:all", self.prefix)
    }

    /// A random number. It is another one, or none, if Redis has lost its data.
    pub(crate) fn epoch(&self) -> String {
        format!("{}:{{nodes}}:epoch", self.prefix)
    }

    /// One of the keys of all tasks, which have one hash tag.
    pub(crate) fn tasks(&self, name: &str) -> String {
        format!("{}:t:{{tasks}}:{name}", self.prefix)
    }

    /// A value of the store of this kind.
    pub(crate) fn value(&self, kind: &str, id: &str) -> String {
        format!("{}:{kind}:{}", self.prefix, escaped(id))
    }
}

/// Returns the hash tag of a session. A tag is never empty: it would not be one.
fn tag(session: &str) -> String {
    if session.is_empty() { "%".to_owned() } else { escaped(session) }
}

/// Escapes the characters that could end the hash tag or look like another key.
pub(crate) fn escaped(id: &str) -> String {
    id.bytes().fold(String::with_capacity(id.len()), |mut text, byte| {
        match byte {
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'-' | b'_' => text.push(char::from(byte)),
            other => drop(write!(text, "%{other:02x}")),
        }
        text
    })
}

/// Returns the text that was [`escaped`].
pub(crate) fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
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
            assert!(!key.contains("{}"), "{key}");
        }
        all.sort();
        all.dedup();
        assert_eq!(all.len(), ids.len());
        assert_eq!(keys.stream("00ff", 3), "p:l:{00ff}:3");
        for id in ids {
            assert_eq!(unescaped(&escaped(id)).as_deref(), Some(id));
        }
        assert_eq!(unescaped("%3"), None);
    }
}
