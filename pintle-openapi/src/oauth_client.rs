use http::Uri;
use pintle::client::http::Proxy;
use pintle_oauth::client::{BearerTokens, ClientCredentials, Network, Reach, Registered, Secret};

use crate::operation::{Scheme, Servers};

/// The program as a client of the authorization server of an API: `client_credentials` of OAuth.
///
/// A token is requested for the first call that needs one, used until shortly before its end, and requested again once if the API refuses
/// it.
#[derive(Clone, Debug)]
#[must_use = "it is for `OpenApi::oauth_client`"]
pub struct OAuthClient {
    id: String,
    secret: Secret,
    scopes: Vec<String>,
    token_url: Option<String>,
}

impl OAuthClient {
    /// Creates a client by its id and secret.
    pub fn new(id: impl Into<String>, secret: impl Into<String>) -> Self {
        Self { id: id.into(), secret: Secret::new(secret.into()), scopes: Vec::new(), token_url: None }
    }

    /// Sets the scopes of the tokens. By default, the authorization server chooses them.
    pub fn scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the URL of the token endpoint, in place of the one of the document.
    pub fn token_url(mut self, url: impl Into<String>) -> Self {
        self.token_url = Some(url.into());
        self
    }

    /// Returns the tokens that it gets for a scheme. The endpoint is where requests may go, too.
    pub(crate) fn tokens(
        &self,
        scheme: &Scheme<'_>,
        servers: &Servers,
        proxy: Proxy,
    ) -> Result<BearerTokens, String> {
        if !scheme.is_oauth {
            return Err("its security scheme is not `oauth2`; give its credential with `secret`".to_owned());
        }
        let (url, is_trusted) = match (&self.token_url, scheme.token_url) {
            (Some(url), _) => (url.clone(), true),
            (None, Some(url)) => servers.absolute(url.to_owned())?,
            (None, None) => {
                return Err("it has no flow `clientCredentials` with a `tokenUrl`; give it with `token_url`"
                    .to_owned());
            }
        };
        let host = url.parse::<Uri>().ok().and_then(|uri| Some(uri.host()?.to_owned()));
        if host.is_none_or(|host| host.is_empty()) {
            let shown: String = url.split(['?', '#']).next().unwrap_or_default().chars().take(200).collect();
            return Err(format!("`{shown}` is not the URL of a token endpoint; give it with `token_url`"));
        }
        let client = Registered::new(&*url, &*self.id).secret(self.secret.clone());
        let credentials = ClientCredentials::new(&*url, client)
            .scopes(self.scopes.iter().cloned())
            .web(Network::with_proxy(proxy));
        Ok(BearerTokens::of_client(match servers.allow_private {
            true => credentials,
            false => credentials.reach(Reach::as_written(if is_trusted { &url } else { "" })),
        }))
    }
}
