use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
};

/// The limit of logged requests. The oldest are dropped.
const MAX_LOGGED: usize = 10_000;

/// A logged request with its outcome.
///
/// It prints as and compares equal to a line such as `POST /token (refresh_token): 200`, so that a test can list the expected
/// requests:
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
    /// Returns a parameter of its query, its form or its JSON body: `code`, `scope`, `application_type`.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }

    /// Returns the client that sent it, however it identified itself.
    pub fn client(&self) -> Option<&str> {
        self.client.as_deref()
    }

    /// Returns the status of the response; `None` if the connection was closed.
    pub fn status(&self) -> Option<u16> {
        self.status
    }

    /// Returns the line that it compares equal to.
    pub fn as_str(&self) -> &str {
        &self.line
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}

/// Prints the line alone, so that lists in failed tests are readable.
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

/// The logged requests, in order.
#[derive(Debug, Default)]
pub(super) struct Log(VecDeque<Asked>);

impl Log {
    pub(super) fn push(&mut self, asked: Asked) {
        if self.0.len() == MAX_LOGGED {
            self.0.pop_front();
        }
        self.0.push_back(asked);
    }

    pub(super) fn take(&mut self) -> Vec<Asked> {
        std::mem::take(&mut self.0).into()
    }
}
