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
use tokio::time::Instant;

use super::{credentials::ClientCredentials, exchange::TokenExchange};
use crate::shared::secret::Secret;

/// The time before its end at which a token is not used any more.
const MARGIN: Duration = Duration::from_secs(10);
/// The lifetime of a token of which none is stated.
const LIFETIME: Duration = Duration::from_secs(300);

/// The bearer tokens of a grant without a user: one is used until shortly before its end, and requested once for all who wait for it.
///
/// It is the authorization of a transport, too. A clone has the same tokens.
#[derive(Clone)]
pub struct BearerTokens {
    inner: Arc<Inner>,
}

struct Inner {
    grant: TokenGrant,
    /// The header of the last token, and until when it is used.
    current: Mutex<Option<(HeaderValue, Instant)>>,
    /// Held while a token is requested, so that there is one request for all who wait.
    requesting: tokio::sync::Mutex<()>,
}

enum TokenGrant {
    Credentials(ClientCredentials),
    Exchange(TokenExchange, Secret),
}

impl BearerTokens {
    /// Has tokens of the program itself.
    pub fn of_client(credentials: ClientCredentials) -> Self {
        Self::new(TokenGrant::Credentials(credentials))
    }

    /// Has tokens that the one of a caller is exchanged for. The token of the caller is sent to the token endpoint only.
    pub fn of_caller(exchange: TokenExchange, caller: Secret) -> Self {
        Self::new(TokenGrant::Exchange(exchange, caller))
    }

    fn new(grant: TokenGrant) -> Self {
        Self { inner: Arc::new(Inner { grant, current: Mutex::default(), requesting: Default::default() }) }
    }

    /// Returns the value of `Authorization`, with a token that is requested if there is none.
    ///
    /// # Errors
    ///
    /// The authorization server cannot be reached, or refuses.
    pub async fn header(&self) -> Result<HeaderValue> {
        if let Some(header) = self.current() {
            return Ok(header);
        }
        let _requesting = self.inner.requesting.lock().await;
        if let Some(header) = self.current() {
            return Ok(header);
        }
        let token = match &self.inner.grant {
            TokenGrant::Credentials(credentials) => credentials.token().await?,
            TokenGrant::Exchange(exchange, caller) => exchange.exchange(caller).await?,
        };
        let header = HeaderValue::try_from(format!("Bearer {}", token.secret().reveal()));
        let mut header =
            header.map_err(|_| Error::Decode("the new token cannot be sent in a header".into()))?;
        header.set_sensitive(true);
        let until = Instant::now() + token.lifetime().map_or(LIFETIME, limited).saturating_sub(MARGIN);
        *self.inner.current.lock().unwrap_or_else(PoisonError::into_inner) = Some((header.clone(), until));
        Ok(header)
    }

    /// Does not use the token of this header again, which a server has refused.
    pub fn discard(&self, refused: &HeaderValue) {
        let mut current = self.inner.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.as_ref().is_some_and(|(header, _)| header == refused) {
            *current = None;
        }
    }

    fn current(&self) -> Option<HeaderValue> {
        let current = self.inner.current.lock().unwrap_or_else(PoisonError::into_inner);
        current.as_ref().filter(|(_, until)| *until > Instant::now()).map(|(header, _)| header.clone())
    }
}

/// Returns a lifetime that a clock can be moved by, whatever is stated.
fn limited(lifetime: Duration) -> Duration {
    lifetime.min(Duration::from_secs(30 * 24 * 3600))
}

impl Auth for BearerTokens {
    async fn authorize(&self, _: Outgoing<'_>) -> Result<HeaderMap> {
        Ok(HeaderMap::from_iter([(AUTHORIZATION, self.header().await?)]))
    }

    async fn challenged(&self, _: Challenge<'_>) -> Result<bool> {
        // The next request gets another one.
        *self.inner.current.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(false)
    }
}

impl fmt::Debug for BearerTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BearerTokens(…)")
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use bytes::Bytes;
    use http::{Request, Response};

    use super::*;
    use crate::shared::{reach::Reach, registered::Registered, web::Web};

    /// A token endpoint that numbers its tokens, of which each is valid for a minute, and refuses the scope `no`.
    #[derive(Clone, Default)]
    struct Endpoint(Arc<Mutex<Vec<String>>>);

    impl Web for Endpoint {
        async fn send(&self, request: Request<Bytes>, reach: Reach) -> Result<Response<Bytes>> {
            assert_eq!(reach, Reach::as_written(""), "a public one");
            let form = String::from_utf8(request.body().to_vec()).unwrap();
            let number = {
                let mut received = self.0.lock().unwrap();
                received.push(form.clone());
                received.len()
            };
            // Others wait meanwhile.
            tokio::time::sleep(Duration::from_secs(1)).await;
            let refusal = r#"{"error":"invalid_scope","error_description":"the s3cret and the caller"}"#;
            Ok(match form.contains("scope=no") {
                true => Response::builder().status(400).body(refusal.into()).unwrap(),
                false => Response::new(format!(r#"{{"access_token":"t{number}","expires_in":60}}"#).into()),
            })
        }

        async fn addresses(&self, _: &str) -> Vec<IpAddr> {
            vec![[9, 9, 9, 9].into()]
        }
    }

    fn credentials(endpoint: &Endpoint) -> ClientCredentials {
        let client = Registered::new("https://login.test", "bot").secret("s3cret");
        ClientCredentials::new("https://login.test/token", client).web(endpoint.clone())
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_is_requested_once_and_used_until_shortly_before_its_end() {
        let endpoint = Endpoint::default();
        let tokens = BearerTokens::of_client(credentials(&endpoint));
        let (one, other) = tokio::join!(tokens.header(), tokens.header());
        assert_eq!(
            (one.unwrap(), other.unwrap()),
            ("Bearer t1".parse().unwrap(), "Bearer t1".parse().unwrap())
        );
        assert_eq!(*endpoint.0.lock().unwrap(), ["grant_type=client_credentials"]);
        tokio::time::advance(Duration::from_secs(49)).await;
        assert_eq!(tokens.header().await.unwrap(), "Bearer t1");
        tokio::time::advance(Duration::from_secs(1)).await;
        let header = tokens.header().await.unwrap();
        assert!(header == "Bearer t2" && header.is_sensitive());
        tokens.discard(&"Bearer t1".parse().unwrap());
        assert_eq!(tokens.header().await.unwrap(), "Bearer t2", "another one was refused");
        tokens.discard(&header);
        assert_eq!(tokens.header().await.unwrap(), "Bearer t3");
        assert!(!format!("{tokens:?} {:?}", credentials(&endpoint)).contains("t3"));
    }

    #[tokio::test(start_paused = true)]
    async fn an_endpoint_that_refuses_does_not_have_secrets_shown() {
        let endpoint = Endpoint::default();
        let tokens = BearerTokens::of_client(credentials(&endpoint).scopes(["no"]));
        let error = tokens.header().await.unwrap_err().to_string();
        assert!(error.contains("invalid_scope") && !error.contains("s3cret"), "{error}");
        let client = Registered::new("https://login.test", "gateway").secret("s3cret");
        let exchange = TokenExchange::new("https://login.test/token", client).web(endpoint.clone());
        let refused = BearerTokens::of_caller(exchange.clone().scopes(["no"]), Secret::new("caller"));
        let error = refused.header().await.unwrap_err().to_string();
        assert!(error.ends_with("`invalid_scope`: the … and the …"), "{error}");
        let tokens = BearerTokens::of_caller(exchange, Secret::new("caller"));
        assert_eq!(tokens.header().await.unwrap(), "Bearer t3");
        assert!(endpoint.0.lock().unwrap()[2].contains("subject_token=caller"));
    }

    #[tokio::test]
    async fn an_endpoint_that_others_have_named_is_public() {
        let client = || Registered::new("https://login.test", "bot").secret("s3cret");
        for url in ["http://127.0.0.1/token", "https://10.0.0.1/token", "http://login.test/token"] {
            let credentials = ClientCredentials::new(url, client()).web(Endpoint::default());
            let error = credentials.reach(Reach::as_written("")).token().await.unwrap_err().to_string();
            assert!(error.contains("are not allowed"), "{error}");
        }
    }
}
