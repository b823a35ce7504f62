use std::{fmt, sync::Arc};

use bytes::Bytes;
use http::{Request, header::LOCATION};
use pintle::{Error, Result};

use crate::{
    client::{Consent, Reach, Visit, Web},
    shared::{address::origin, web::AnyWeb},
};

/// The redirect address. Nothing listens there.
const REDIRECT_URI: &str = "http://127.0.0.1:7777/callback";
/// The limit of pages of a login.
const REDIRECTS: usize = 10;

/// A user who logs in without a browser, by following redirects.
///
/// The [`AuthorizationServer`](super::AuthorizationServer) decides whether they consent.
///
/// ```
/// use pintle_oauth::{client::OAuth, testing::{AuthorizationServer, Hosts, User}};
///
/// let login = AuthorizationServer::new("https://login.test");
/// let hosts = Hosts::new().host(login.issuer(), login.clone());
/// let oauth = OAuth::login("My app", User::on(hosts.clone())).web(hosts);
/// ```
#[derive(Clone)]
pub struct User(Arc<dyn AnyWeb>);

impl User {
    /// Creates a user who loads pages from there: [`Hosts`](super::Hosts), or the [`Network`](crate::client::Network).
    pub fn on(web: impl Web) -> Self {
        Self(Arc::new(web))
    }
}

impl Consent for User {
    type Visit = Self;

    async fn begin(&self, _before: Option<&str>) -> Result<Self> {
        Ok(self.clone())
    }
}

impl Visit for User {
    fn redirect_uri(&self) -> &str {
        REDIRECT_URI
    }

    async fn ask(self, url: &str) -> Result<String> {
        let mut url = url.to_owned();
        for _ in 0..REDIRECTS {
            let request = Request::get(&url).body(Bytes::new());
            let request = request.map_err(|error| Error::Misuse(error.to_string()))?;
            // A browser is not restricted.
            let uri = request.uri().clone();
            let addresses = self.0.addresses(uri.host().unwrap_or_default()).await;
            let answer = self.0.send(request, Reach::of(&uri, &addresses)).await?;
            let to = answer.headers().get(LOCATION).and_then(|to| to.to_str().ok());
            let Some(to) = to.filter(|_| answer.status().is_redirection()) else {
                return Err(Error::Refused(format!(
                    "the user was not redirected, but shown a page with status {}: {}",
                    answer.status().as_u16(),
                    String::from_utf8_lossy(answer.body())
                )));
            };
            if to.starts_with(REDIRECT_URI) {
                return Ok(to.to_owned());
            }
            url = if to.starts_with('/') { format!("{}{to}", origin(&uri)) } else { to.to_owned() };
        }
        Err(Error::Refused(format!("the user was redirected more than {REDIRECTS} times")))
    }
}

impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("User(…)")
    }
}
