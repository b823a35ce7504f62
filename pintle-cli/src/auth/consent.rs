use pintle::{Error, Result};
use pintle_oauth::client::{Consent, Visit};

/// A user who is not asked: only stored logins are used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoConsent;

/// A login that does not happen.
#[derive(Debug)]
pub(crate) enum NoVisit {}

impl Consent for NoConsent {
    type Visit = NoVisit;

    async fn begin(&self, _before: Option<&str>) -> Result<NoVisit> {
        Err(Error::Refused("the login is no longer valid: log in again".into()))
    }
}

impl Visit for NoVisit {
    fn redirect_uri(&self) -> &str {
        match *self {}
    }

    async fn ask(self, _url: &str) -> Result<String> {
        match self {}
    }
}
