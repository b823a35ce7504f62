//! Requests to the token endpoint.

use bytes::Bytes;
use http::HeaderMap;
use pintle::{Error, Result};
use serde::{Deserialize, de::DeserializeOwned};

use crate::{
    client::{
        consent::callback::error_text,
        dpop::{Dpop, PROOF, ProofRequest},
    },
    shared::{form::Form, identity::Identity, secret::Secret, web::Guarded},
};

/// A request for tokens.
pub(crate) struct TokenRequest<'a> {
    pub(crate) web: Guarded<'a>,
    pub(crate) endpoint: &'a str,
    /// The audience of the client's assertions.
    pub(crate) issuer: &'a str,
    pub(crate) client: Option<&'a Identity>,
    pub(crate) dpop: Option<&'a Dpop>,
    pub(crate) form: Form,
}

/// A successful response of the token endpoint.
#[derive(Debug, Deserialize)]
pub(crate) struct TokenResponse {
    pub(crate) access_token: Secret,
    #[serde(default)]
    pub(crate) token_type: String,
    #[serde(default, deserialize_with = "seconds")]
    pub(crate) expires_in: Option<u64>,
    pub(crate) refresh_token: Option<Secret>,
    pub(crate) issued_token_type: Option<String>,
}

/// The failure of a token request.
#[derive(Debug)]
pub(crate) enum TokenError {
    /// The authorization server refused.
    Refused { error: String, description: String },
    /// The request failed, or its response is not one of OAuth.
    Failed(Error),
}

impl From<Error> for TokenError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl TokenError {
    /// Whether a retry would be refused as well. Servers use other errors than `invalid_grant` for that.
    pub(crate) fn is_final(&self) -> bool {
        const LATER: [&str; 3] = ["server_error", "slow_down", "temporarily_unavailable"];
        matches!(self, Self::Refused { error, .. } if !LATER.contains(&error.as_str()))
    }

    /// Whether the client is no longer known, so that it has to be registered again. Servers differ in which of the two
    /// errors they use.
    pub(crate) fn is_client(&self) -> bool {
        matches!(self, Self::Refused { error, .. } if error == "invalid_client" || error == "unauthorized_client")
    }

    pub(crate) fn into_error(self, issuer: &str) -> Error {
        match self {
            Self::Refused { error, description } => Error::Refused(format!(
                "the authorization server `{issuer}` refused to issue a token: {}",
                error_text(&error, &description)
            )),
            Self::Failed(error) => error,
        }
    }
}

/// The body of an error response: RFC 6749 §5.2 and RFC 7591 §3.2.2.
#[derive(Default, Deserialize)]
pub(crate) struct ErrorResponse {
    #[serde(default)]
    pub(crate) error: String,
    #[serde(default)]
    pub(crate) error_description: String,
}

impl TokenRequest<'_> {
    /// Sends the request. `member` is the required member of the response, for the error.
    pub(crate) async fn send<T: DeserializeOwned>(self, member: &str) -> Result<T, TokenError> {
        let body = self.response().await?;
        let unread = || {
            Error::Decode(format!("the response of `{}` cannot be used: it has no `{member}`", self.endpoint))
        };
        serde_json::from_slice(&body).map_err(|_| unread().into())
    }

    /// Sends a request whose response has no contents.
    pub(crate) async fn send_for_status(self) -> Result<(), TokenError> {
        self.response().await.map(drop)
    }

    /// Returns the body of a successful response.
    async fn response(&self) -> Result<Bytes, TokenError> {
        let mut tries = 0;
        loop {
            tries += 1;
            let (headers, form) = self.proven()?;
            let kind = "application/x-www-form-urlencoded";
            let answer = self.web.post(self.endpoint, kind, headers, form.into_body()).await?;
            let uri = self.web.reach.check(self.endpoint)?;
            let wants_more = self.dpop.is_some_and(|dpop| dpop.note(&uri, answer.headers()));
            if answer.status().is_success() {
                return Ok(answer.into_body());
            }
            let refusal: ErrorResponse = serde_json::from_slice(answer.body()).unwrap_or_default();
            if refusal.error == "use_dpop_nonce" && wants_more && tries == 1 {
                continue;
            }
            let is_busy = answer.status().is_server_error() || answer.status() == 429;
            if is_busy || refusal.error.is_empty() {
                return Err(TokenError::Failed(Error::Io(std::io::Error::other(format!(
                    "`{}` returned status {}",
                    self.endpoint,
                    answer.status().as_u16()
                )))));
            }
            let description = refusal.error_description;
            return Err(TokenError::Refused { error: refusal.error, description });
        }
    }

    /// Returns the headers and the form, with the client's authentication.
    fn proven(&self) -> Result<(HeaderMap, Form)> {
        let mut headers = HeaderMap::new();
        let mut form = self.form.clone();
        if let Some(client) = self.client {
            client.prove(self.issuer, &mut headers, &mut form)?;
        }
        if let Some(dpop) = self.dpop {
            let uri = self.web.reach.check(self.endpoint)?;
            headers.insert(PROOF, dpop.proof(&ProofRequest { method: "POST", url: &uri, with: None })?);
        }
        Ok((headers, form))
    }
}

/// Deserializes a number, or a string that contains one: some servers quote it.
fn seconds<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let value = serde_json::Value::deserialize(from)?;
    Ok(value.as_f64().map(|seconds| seconds as u64).or_else(|| value.as_str()?.parse().ok()))
}

#[cfg(test)]
mod tests {
    use std::{
        net::IpAddr,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use http::{Request, Response};

    use super::*;
    use crate::shared::{reach::Reach, web::Web};

    #[test]
    fn tokens_are_read_as_they_come() {
        for (text, expires_in) in [
            (r#"{"access_token":"t","token_type":"Bearer","expires_in":3600}"#, Some(3600)),
            (r#"{"access_token":"t","expires_in":"60"}"#, Some(60)),
            (r#"{"access_token":"t","expires_in":1.5}"#, Some(1)),
            (r#"{"access_token":"t","expires_in":null,"scope":"x"}"#, None),
            (r#"{"access_token":"t","expires_in":-5}"#, Some(0)),
        ] {
            let answer: TokenResponse = serde_json::from_str(text).unwrap();
            assert_eq!(answer.expires_in, expires_in, "{text}");
            assert!(!format!("{answer:?}").contains("\"t\""));
        }
    }

    /// A token endpoint that refuses with this error, and a new nonce each time.
    struct Refusing {
        error: &'static str,
        count: AtomicUsize,
    }

    impl Web for Refusing {
        async fn send(&self, _: Request<Bytes>, _: Reach) -> Result<Response<Bytes>> {
            let count = self.count.fetch_add(1, Ordering::Relaxed);
            let body = serde_json::json!({ "error": self.error }).to_string();
            let answer = Response::builder().status(400).header("dpop-nonce", count.to_string());
            Ok(answer.body(body.into()).unwrap())
        }

        async fn addresses(&self, _: &str) -> Vec<IpAddr> {
            Vec::new()
        }
    }

    #[tokio::test]
    async fn a_request_is_repeated_only_because_its_proof_had_no_nonce_and_only_once() {
        for (error, count) in [("invalid_grant", 1), ("use_dpop_nonce", 2)] {
            let dpop = Dpop::new().unwrap();
            let web = Refusing { error, count: AtomicUsize::new(0) };
            let endpoint = "https://as.test/token";
            let request = TokenRequest {
                web: Guarded { web: &web, reach: Reach::of(&endpoint.parse().unwrap(), &[]) },
                endpoint,
                issuer: "https://as.test",
                client: None,
                dpop: Some(&dpop),
                form: Form::new().with("grant_type", "refresh_token"),
            };
            let refused = request.send::<TokenResponse>("access_token").await.unwrap_err();
            assert!(
                matches!(&refused, TokenError::Refused { error: own, .. } if own == error),
                "{refused:?}"
            );
            assert_eq!(web.count.load(Ordering::Relaxed), count, "{error}");
        }
    }
}
