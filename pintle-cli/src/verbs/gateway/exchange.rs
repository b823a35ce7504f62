use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use http::{HeaderMap, HeaderValue, header::AUTHORIZATION};
use pintle::{
    Error, Result,
    client::http::{Auth, Challenge, Outgoing},
};
use pintle_oauth::client::{Registered, Secret, TokenExchange};
#[cfg(test)]
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::Instant;

use super::secret::{SecretValue, fault_as_client_secret};
use crate::failure::Failure;

/// The time before its end at which a token is not used any more.
const MARGIN: Duration = Duration::from_secs(10);
/// The lifetime of a token of which none is stated.
const LIFETIME: Duration = Duration::from_secs(300);

/// The exchange of the tokens of clients for tokens of a target (RFC 8693).
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct ExchangeEntry {
    /// The URL of the token endpoint.
    token_url: String,
    /// The id of the gateway as a client of the authorization server.
    client_id: String,
    /// The secret of that client, from the environment or a file.
    client_secret: Option<SecretValue>,
    /// The name of the target at the authorization server, in place of its URL.
    audience: Option<String>,
    /// The scopes of the new tokens.
    #[serde(default)]
    scopes: Vec<String>,
}

impl ExchangeEntry {
    /// Returns what is wrong with the entry.
    pub(super) fn fault(&self) -> Option<String> {
        self.client_secret.as_ref().and_then(fault_as_client_secret)
    }

    /// Returns the exchange for the target at a URL, as a client of this issuer.
    pub(super) fn exchange(&self, issuer: &str, url: &str) -> Result<TokenExchange, Failure> {
        let client = Registered::new(issuer, &self.client_id);
        let client = match &self.client_secret {
            Some(secret) => client.secret(secret.read()?),
            None => client,
        };
        let exchange = TokenExchange::new(&self.token_url, client).scopes(self.scopes.iter().cloned());
        Ok(match &self.audience {
            Some(audience) => exchange.audience(audience),
            None => exchange.resource(url),
        })
    }
}

/// The authorization of requests to a target on behalf of one token of a client. The token itself is never sent there.
#[derive(Clone)]
pub(super) struct ExchangedAuth {
    exchange: TokenExchange,
    caller: Secret,
    /// The header of the last exchange, and until when it is used.
    current: Arc<Mutex<Option<(HeaderValue, Instant)>>>,
    /// Held during an exchange, so that there is one for all requests that wait for it.
    exchanging: Arc<tokio::sync::Mutex<()>>,
}

impl ExchangedAuth {
    pub(super) fn new(exchange: TokenExchange, caller: Secret) -> Self {
        Self { exchange, caller, current: Arc::default(), exchanging: Arc::default() }
    }

    fn current(&self) -> Option<HeaderValue> {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        current.as_ref().filter(|(_, until)| *until > Instant::now()).map(|(header, _)| header.clone())
    }

    async fn header(&self) -> Result<HeaderValue> {
        if let Some(header) = self.current() {
            return Ok(header);
        }
        let _exchanging = self.exchanging.lock().await;
        if let Some(header) = self.current() {
            return Ok(header);
        }
        let token = self.exchange.exchange(&self.caller).await?;
        let header = HeaderValue::try_from(format!("Bearer {}", token.secret().reveal()));
        let mut header =
            header.map_err(|_| Error::Decode("the exchanged token cannot be sent in a header".into()))?;
        header.set_sensitive(true);
        let until = Instant::now() + token.lifetime().unwrap_or(LIFETIME).saturating_sub(MARGIN);
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Some((header.clone(), until));
        Ok(header)
    }
}

impl Auth for ExchangedAuth {
    async fn authorize(&self, _: Outgoing<'_>) -> Result<HeaderMap> {
        Ok(HeaderMap::from_iter([(AUTHORIZATION, self.header().await?)]))
    }

    async fn challenged(&self, _: Challenge<'_>) -> Result<bool> {
        // The next request gets another one.
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(false)
    }
}

impl fmt::Debug for ExchangedAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ExchangedAuth(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_token_is_used_until_it_ends() {
        let client = Registered::new("https://login.example", "gateway");
        let exchange = TokenExchange::new("https://login.example/token", client);
        let auth = ExchangedAuth::new(exchange, Secret::new("caller"));
        let until = Instant::now() + Duration::from_secs(60);
        *auth.current.lock().unwrap() = Some((HeaderValue::from_static("Bearer new"), until));
        tokio::time::advance(Duration::from_secs(59)).await;
        assert_eq!(auth.header().await.unwrap(), "Bearer new");
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(auth.current(), None, "the next request gets another one");
    }
}
