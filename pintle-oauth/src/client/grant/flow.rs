//! The steps of each grant, from discovery to tokens.

use std::sync::Arc;

use http::Uri;
use pintle::{Error, Result};

use super::{
    assertion::{Assertion, IdentityProvider},
    device::Show,
    pkce::Pkce,
    registration::register,
    settings::Settings,
    token::{TokenError, TokenRequest, TokenResponse},
};
use crate::{
    client::{
        consent::AnyConsent,
        consent::callback::{Callback, Expected},
        discovery::Discovered,
        dpop::Dpop,
        store::StoreLock,
        store::credentials::{Credentials, Tokens, stale_at},
    },
    shared::{
        clock::now, form::Form, identity::Identity, noise, reach::Reach, registered::Registered,
        scope::Scopes, secret::Secret, web::Guarded,
    },
};

const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";
/// The scope of OpenID Connect that asks for a refresh token.
const OFFLINE: &str = "offline_access";
const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// The grant that tokens are requested with.
pub(crate) enum Grant {
    /// A user logs in with a browser.
    Login { name: String, consent: Box<dyn AnyConsent> },
    /// A user logs in on another device.
    Device { name: String, show: Box<Show> },
    /// The client authorizes itself.
    Machine,
    /// The user's identity provider authorizes the user.
    Enterprise(IdentityProvider),
    /// The platform that the program runs on identifies it.
    Workload { issuer: String, assertion: Assertion },
}

impl Grant {
    /// Whether tokens can be requested again without a user.
    pub(crate) fn is_silent(&self) -> bool {
        !matches!(self, Self::Login { .. } | Self::Device { .. })
    }
}

/// A grant for one server.
pub(crate) struct Flow<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) web: Guarded<'a>,
    pub(crate) server: &'a Uri,
    pub(crate) discovered: &'a Discovered,
    pub(crate) dpop: Option<&'a Arc<Dpop>>,
}

impl Flow<'_> {
    /// Requests tokens with these scopes.
    pub(crate) async fn grant(&self, scopes: Scopes) -> Result<Tokens> {
        match &*self.settings.grant {
            Grant::Login { name, consent } => self.login(name, &**consent, scopes).await,
            Grant::Device { name, show } => self.device(name, &**show, scopes).await,
            Grant::Machine => {
                let client = self.registered()?;
                let form = self.form("client_credentials", &scopes);
                self.tokens(Some(&client), form, scopes).await
            }
            Grant::Enterprise(provider) => {
                let assertion = self.exchange(provider, &scopes).await?;
                let client = self.registered()?;
                let form = self.form(JWT_BEARER, &scopes).with("assertion", assertion.reveal());
                self.tokens(Some(&client), form, scopes).await
            }
            Grant::Workload { assertion, .. } => {
                let assertion = assertion.fetch().await?;
                let form = self.form(JWT_BEARER, &scopes).with("assertion", assertion.reveal());
                self.tokens(None, form, scopes).await
            }
        }
    }

    /// Replaces tokens. `None`: that takes a login of the user.
    pub(crate) async fn renew(&self, old: &Tokens) -> Result<Option<Tokens>, TokenError> {
        let client = self.known(&old.client_id).await?;
        let (Some(refresh), Some(client)) = (&old.refresh, client) else {
            if !self.settings.grant.is_silent() {
                return Ok(None);
            }
            return Ok(Some(self.grant(old.requested.clone()).await?));
        };
        let mut form =
            Form::new().with("grant_type", "refresh_token").with("refresh_token", refresh.reveal());
        self.add_resource(&mut form);
        let answer = self.ask(Some(&client), form).await?;
        let mut tokens = self.read(answer, Some(&client), old.requested.clone())?;
        // Without a new refresh token, the old one stays valid.
        tokens.refresh = tokens.refresh.or_else(|| old.refresh.clone());
        Ok(Some(tokens))
    }

    async fn login(&self, name: &str, consent: &dyn AnyConsent, scopes: Scopes) -> Result<Tokens> {
        let server = &self.discovered.server;
        server.check_pkce()?;
        let endpoint = server.authorization_endpoint()?;
        // Checked before the user is redirected, who would log in for nothing.
        self.web.reach.check(endpoint)?;
        self.web.reach.check(server.token_endpoint()?)?;
        let mut credentials = self.settings.store.load(&self.discovered.key).await?.unwrap_or_default();
        let before = credentials.registration.as_ref().map(|registration| registration.redirect_uri.clone());
        let visit = consent.begin(before.as_deref()).await?;
        let redirect_uri = visit.redirect_uri().to_owned();
        check_redirect(&redirect_uri)?;
        let client = self.identify(name, Some(&redirect_uri), &mut credentials).await?;

        let asked = self.staying(&scopes);
        let (state, pkce) = (noise::random()?, Pkce::new()?);
        let mut form = Form::new()
            .with("response_type", "code")
            .with("client_id", &client.client_id)
            .with("redirect_uri", &redirect_uri)
            .with("state", &state)
            .with("code_challenge", &pkce.challenge)
            .with("code_challenge_method", "S256");
        self.add_resource(&mut form);
        add_scopes(&mut form, &asked);
        if asked.has(OFFLINE) {
            // OpenID Connect Core §11: a provider ignores that scope unless the user is asked about it.
            form.push("prompt", "consent");
        }
        let address = match visit.ask(&form.on(endpoint)).await {
            Ok(address) => address,
            Err(error) => {
                if matches!(error, Error::Refused(_)) {
                    self.update(|credentials| credentials.doubt(&client.client_id)).await;
                }
                return Err(error);
            }
        };
        let code = Callback::parse(&address)?.check(&Expected {
            state: &state,
            issuer: &server.issuer,
            names_itself: server.authorization_response_iss_parameter_supported,
        })?;

        let mut form = Form::new()
            .with("grant_type", "authorization_code")
            .with("code", code.reveal())
            .with("redirect_uri", &redirect_uri)
            .with("code_verifier", pkce.verifier.reveal());
        self.add_resource(&mut form);
        match self.ask(Some(&client), form).await {
            Ok(answer) => self.read(answer, Some(&client), scopes),
            Err(error) => Err(self.refused(error, &client).await),
        }
    }

    /// Adds the scope for a refresh token, if the server supports it ([Authorization, Scope Selection]).
    pub(crate) fn staying(&self, scopes: &Scopes) -> Scopes {
        let more = if self.discovered.server.has_scope(OFFLINE) { OFFLINE } else { "" };
        scopes.clone().and(&Scopes::parse(more))
    }

    /// Returns the identity of the client ([Client Registration Approaches]): registered before, by a metadata document, or
    /// registered now.
    pub(crate) async fn identify(
        &self,
        name: &str,
        redirect_uri: Option<&str>,
        credentials: &mut Credentials,
    ) -> Result<Identity> {
        let server = &self.discovered.server;
        if self.settings.registered.is_some() {
            return self.registered();
        }
        if let Some(url) = &self.settings.document
            && server.client_id_metadata_document_supported
        {
            return Ok(Identity::documented(url));
        }
        if let Some(registration) = &credentials.registration
            && registration.serves(redirect_uri.unwrap_or_default(), now())
        {
            return Ok(registration.identity(server));
        }
        let registration = register(self.web, server, name, redirect_uri).await?;
        let client = registration.identity(server);
        let _lock = self.lock().await;
        // Another process may have registered and logged in meanwhile: its client is used, since it has tokens.
        if let Some(kept) = self.settings.store.load(&self.discovered.key).await?
            && let Some(registration) = &kept.registration
            && registration.serves(redirect_uri.unwrap_or_default(), now())
        {
            let client = registration.identity(server);
            *credentials = kept;
            return Ok(client);
        }
        // Tokens of the former client cannot be used by this one.
        *credentials = Credentials { registration: Some(registration), ..Credentials::default() };
        self.settings.store.save(&self.discovered.key, credentials).await?;
        Ok(client)
    }

    /// Returns the error of a failed login. If the client is no longer known, its registration is forgotten.
    pub(crate) async fn refused(&self, error: TokenError, client: &Identity) -> Error {
        if error.is_client() {
            self.update(|credentials| credentials.forget(&client.client_id)).await;
        }
        error.into_error(&self.discovered.key)
    }

    /// Locks the stored credentials of the issuer against other processes. Without a lock, the worst outcome is an
    /// unnecessary login.
    pub(crate) async fn lock(&self) -> StoreLock {
        self.settings.store.lock(&self.discovered.key).await.unwrap_or_else(|error| {
            tracing::warn!(issuer = self.discovered.key, %error, "failed to lock the stored credentials");
            StoreLock::none()
        })
    }

    /// Updates the stored credentials. A failure is logged: the login itself has succeeded.
    pub(crate) async fn update(&self, update: impl FnOnce(&mut Credentials)) {
        let lock = self.lock().await;
        self.update_locked(&lock, update).await;
    }

    /// Updates the stored credentials under their lock.
    pub(crate) async fn update_locked(&self, _: &StoreLock, update: impl FnOnce(&mut Credentials)) {
        let (store, key) = (&self.settings.store, &self.discovered.key);
        let kept = async {
            let mut credentials = store.load(key).await?.unwrap_or_default();
            update(&mut credentials);
            store.save(key, &credentials).await
        };
        if let Err(error) = kept.await {
            tracing::warn!(issuer = key, %error, "failed to store the tokens; the next run has to log in again");
        }
    }

    /// Whether tokens were issued to this client, and not to another one that shares the store.
    pub(crate) async fn is_ours(&self, tokens: &Tokens) -> Result<bool> {
        Ok(match &*self.settings.grant {
            Grant::Workload { .. } => tokens.client_id.is_empty(),
            _ => self.known(&tokens.client_id).await?.is_some(),
        })
    }

    /// Returns the client that tokens were issued to, if it is still known.
    pub(crate) async fn known(&self, client_id: &str) -> Result<Option<Identity>> {
        let server = &self.discovered.server;
        let is_it = |client: &Identity| client.client_id == client_id;
        if self.settings.registered.is_some() {
            return Ok(Some(self.registered()?).filter(is_it));
        }
        if self.settings.document.as_deref() == Some(client_id) {
            return Ok(Some(Identity::documented(client_id)));
        }
        let credentials = self.settings.store.load(&self.discovered.key).await?.unwrap_or_default();
        Ok(credentials.registration.map(|registration| registration.identity(server)).filter(is_it))
    }

    fn registered(&self) -> Result<Identity> {
        let missing =
            || Error::Misuse("this grant needs a registered client; set one with `OAuth::registered`".into());
        let client: &Registered = self.settings.registered.as_ref().ok_or_else(missing)?;
        Ok(Identity::registered(client, &self.discovered.server))
    }

    /// Exchanges an identity token for an ID-JAG, the identity provider's assertion for the server.
    async fn exchange(&self, provider: &IdentityProvider, scopes: &Scopes) -> Result<Secret> {
        let id_token = provider.id_token.fetch().await?;
        let mut form = Form::new()
            .with("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange")
            .with("requested_token_type", ID_JAG)
            .with("audience", &self.discovered.key)
            .with("subject_token", id_token.reveal())
            .with("subject_token_type", "urn:ietf:params:oauth:token-type:id_token");
        self.add_resource(&mut form);
        add_scopes(&mut form, scopes);
        // Its address is configured by the program, so it may be in a network that the server is not in.
        let endpoint: Uri = provider.token_endpoint.parse().map_err(|_| {
            Error::Misuse(format!("`{}` is not the address of a token endpoint", provider.token_endpoint))
        })?;
        let addresses = self.web.web.addresses(endpoint.host().unwrap_or_default()).await;
        let web = Guarded { reach: Reach::of(&endpoint, &addresses), ..self.web };
        let client =
            Identity::registered(&provider.client, &crate::shared::metadata::ServerMetadata::default());
        let request = TokenRequest {
            web,
            endpoint: &provider.token_endpoint,
            issuer: &provider.client.issuer,
            client: Some(&client),
            dpop: None,
            form,
        };
        let answer = request
            .send::<TokenResponse>("access_token")
            .await
            .map_err(|error| error.into_error(&provider.token_endpoint))?;
        if answer.issued_token_type.is_some_and(|kind| kind != ID_JAG) {
            return Err(Error::Decode(format!(
                "`{}` issued a token that is not an ID-JAG",
                provider.token_endpoint
            )));
        }
        Ok(answer.access_token)
    }

    fn form(&self, grant: &str, scopes: &Scopes) -> Form {
        let mut form = Form::new().with("grant_type", grant);
        self.add_resource(&mut form);
        add_scopes(&mut form, scopes);
        form
    }

    pub(crate) fn add_resource(&self, form: &mut Form) {
        if let Some(resource) = &self.discovered.resource {
            form.push("resource", resource);
        }
    }

    async fn tokens(&self, client: Option<&Identity>, form: Form, scopes: Scopes) -> Result<Tokens> {
        let answer = self.ask(client, form).await.map_err(|error| error.into_error(&self.discovered.key))?;
        self.read(answer, client, scopes)
    }

    pub(crate) async fn ask(
        &self,
        client: Option<&Identity>,
        form: Form,
    ) -> Result<TokenResponse, TokenError> {
        let endpoint = self.discovered.server.token_endpoint()?;
        self.request(endpoint, client, form).send("access_token").await
    }

    pub(crate) fn request<'a>(
        &'a self,
        endpoint: &'a str,
        client: Option<&'a Identity>,
        form: Form,
    ) -> TokenRequest<'a> {
        let dpop = self.dpop.map(|dpop| &**dpop);
        TokenRequest { web: self.web, endpoint, issuer: &self.discovered.server.issuer, client, dpop, form }
    }

    pub(crate) fn read(
        &self,
        answer: TokenResponse,
        client: Option<&Identity>,
        requested: Scopes,
    ) -> Result<Tokens> {
        let bound = match answer.token_type.to_ascii_lowercase().as_str() {
            "" | "bearer" => false,
            "dpop" if self.dpop.is_some() => true,
            // RFC 6749 §7.1: one of a kind that is not understood is not used.
            _ => {
                return Err(Error::Decode(format!(
                    "the authorization server `{}` issued a token of a type that was not requested",
                    self.discovered.key
                )));
            }
        };
        Ok(Tokens {
            access: answer.access_token,
            refresh: answer.refresh_token,
            stale_at: answer.expires_in.map(|seconds| stale_at(now(), seconds)),
            requested,
            client_id: client.map(|client| client.client_id.clone()).unwrap_or_default(),
            dpop_key: self.dpop.filter(|_| bound).map(|dpop| dpop.kept.clone()),
        })
    }

    /// Returns the key of these tokens among the stored ones of the same issuer.
    pub(crate) fn storage_key(&self) -> String {
        let server = format!("{}{}", crate::shared::address::origin(self.server), self.server.path());
        self.discovered.resource.clone().unwrap_or(server)
    }
}

/// Checks that a redirect address is encrypted or on the user's machine ([Authorization Security, Communication Security]).
/// An address with a private scheme belongs to one program there.
fn check_redirect(address: &str) -> Result<()> {
    let uri: Option<Uri> = address.parse().ok();
    let Some(uri) = uri.filter(|uri| uri.scheme_str() == Some("http")) else { return Ok(()) };
    if Reach::of(&uri, &[]).is_loopback() {
        return Ok(());
    }
    Err(Error::Misuse(format!(
        "`{address}` cannot be a redirect address: a code would be sent unencrypted; use `https` or a loopback address"
    )))
}

pub(crate) fn add_scopes(form: &mut Form, scopes: &Scopes) {
    if !scopes.is_empty() {
        form.push("scope", &scopes.to_string());
    }
}
