//! Tokens of a token endpoint that the program knows, without discovery.

use std::{sync::Arc, time::Duration};

use http::Uri;
use pintle::{Error, Result};

use super::token::{TokenError, TokenRequest, TokenResponse};
use crate::shared::{
    form::Form,
    identity::Identity,
    metadata::ServerMetadata,
    reach::Reach,
    registered::{Proof, Registered},
    scope::Scopes,
    secret::Secret,
    web::{AnyWeb, Guarded, Network},
};

/// A token that a token endpoint has issued.
#[derive(Clone, Debug)]
pub struct IssuedToken {
    secret: Secret,
    lifetime: Option<Duration>,
}

impl IssuedToken {
    /// Returns the token.
    pub fn secret(&self) -> &Secret {
        &self.secret
    }

    /// Returns how long it is valid from now on, if the authorization server says it.
    pub fn lifetime(&self) -> Option<Duration> {
        self.lifetime
    }
}

/// A token endpoint, and what the program is there.
#[derive(Clone)]
pub(super) struct TokenEndpoint {
    pub(super) url: String,
    pub(super) client: Registered,
    pub(super) scopes: Scopes,
    /// The networks that it may be in; those that it is in by default, because the program has its address.
    pub(super) reach: Option<Reach>,
    pub(super) web: Arc<dyn AnyWeb>,
}

impl TokenEndpoint {
    pub(super) fn new(url: String, client: Registered) -> Self {
        Self { url, client, scopes: Scopes::default(), reach: None, web: Arc::new(Network::new()) }
    }

    /// Requests a token with this form. `other` is a secret of it, which no error repeats.
    pub(super) async fn issue(&self, mut form: Form, other: Option<&Secret>) -> Result<IssuedToken> {
        let scopes = self.scopes.to_string();
        if !scopes.is_empty() {
            form.push("scope", &scopes);
        }
        let uri: Uri = self
            .url
            .parse()
            .map_err(|_| Error::Misuse(format!("`{}` is not the address of a token endpoint", self.url)))?;
        let reach = match self.reach {
            Some(reach) => reach,
            None => Reach::of(&uri, &self.web.addresses(uri.host().unwrap_or_default()).await),
        };
        let client = Identity::registered(&self.client, &ServerMetadata::default());
        let request = TokenRequest {
            web: Guarded { web: &*self.web, reach },
            endpoint: &self.url,
            issuer: &self.client.issuer,
            client: Some(&client),
            dpop: None,
            form,
        };
        let answer = request.send::<TokenResponse>("access_token").await;
        let answer = answer.map_err(|error| self.without_secrets(error, other).into_error(&self.url))?;
        // RFC 6749 requires the type, and some servers leave it out.
        if !matches!(&*answer.token_type.to_ascii_lowercase(), "bearer" | "") {
            return Err(Error::Decode(format!(
                "`{}` issued a token of the type `{}`, instead of a bearer token",
                self.url, answer.token_type
            )));
        }
        Ok(IssuedToken { secret: answer.access_token, lifetime: answer.expires_in.map(Duration::from_secs) })
    }

    /// Returns an error without what the endpoint repeats of the request.
    fn without_secrets(&self, error: TokenError, other: Option<&Secret>) -> TokenError {
        let TokenError::Refused { mut error, mut description } = error else { return error };
        let own = match &self.client.proof {
            Proof::Secret(secret) => Some(secret),
            Proof::None | Proof::Key(_) => None,
        };
        for secret in own.into_iter().chain(other).map(Secret::reveal).filter(|secret| !secret.is_empty()) {
            (error, description) = (error.replace(secret, "…"), description.replace(secret, "…"));
        }
        TokenError::Refused { error, description }
    }
}
