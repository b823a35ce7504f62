use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
};

/// Requests that are remembered; the oldest are forgotten.
const MOST: usize = 10_000;

/// A request that was made, and what came of it.
///
/// It prints and equals a line such as `POST /token (refresh_token): 200`, so that a test can say what should have been
/// asked:
///
/// ```
/// # use pintle_oauth::testing::AuthorizationServer;
/// # let login = AuthorizationServer::new("https://login.test");
/// let nothing: [&str; 0] = [];
/// assert_eq!(login.log(), nothing);
/// ```
#[derive(Clone, Eq, PartialEq)]
pub struct Asked {
    pub(super) line: String,
    pub(super) parameters: BTreeMap<String, String>,
    pub(super) client: Option<String>,
    pub(super) status: Option<u16>,
}

impl Asked {
    /// What was said with it, in its query, its form or the texts of its JSON: `code`, `scope`, `application_type`.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }

    /// The client that asked, however it said so.
    pub fn client(&self) -> Option<&str> {
        self.client.as_deref()
    }

    /// What was answered; `None` if the connection was cut off.
    pub fn status(&self) -> Option<u16> {
        self.status
    }

    /// The line that it equals.
    pub fn as_str(&self) -> &str {
        &self.line
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}

/// The line alone: a list of these is read by people whose test has failed.
impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.line, f)
    }
}

impl PartialEq<str> for Asked {
    fn eq(&self, line: &str) -> bool {
        self.line == line
    }
}

impl PartialEq<&str> for Asked {
    fn eq(&self, line: &&str) -> bool {
        self.line == *line
    }
}

/// What was asked, in order.
#[derive(Debug, Default)]
pub(super) struct Log(VecDeque<Asked>);

impl Log {
    pub(super) fn push(&mut self, asked: Asked) {
        if self.0.len() == MOST {
            self.0.pop_front();
        }
        self.0.push_back(asked);
    }

    pub(super) fn take(&mut self) -> Vec<Asked> {
        std::mem::take(&mut self.0).into()
    }
}
