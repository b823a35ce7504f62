//! From what was found out about a server to tokens for it, in each of the ways there are.

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
/// Stay logged in, in the words of OpenID Connect.
const OFFLINE: &str = "offline_access";
const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// How tokens are come by.
pub(crate) enum Grant {
    /// A user agrees, in a browser.
    Login { name: String, consent: Box<dyn AnyConsent> },
    /// A user agrees, on another device.
    Device { name: String, show: Box<Show> },
    /// The client itself is who is let in.
    Machine,
    /// The user's identity provider agrees for them.
    Enterprise(IdentityProvider),
    /// The platform that the program runs on says who it is.
    Workload { issuer: String, assertion: Assertion },
}

impl Grant {
    /// Whether tokens can be had again without anyone noticing.
    pub(crate) fn is_silent(&self) -> bool {
        !matches!(self, Self::Login { .. } | Self::Device { .. })
    }
}

/// One way to one server.
pub(crate) struct Flow<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) web: Guarded<'a>,
    pub(crate) server: &'a Uri,
    pub(crate) discovered: &'a Discovered,
    pub(crate) dpop: Option<&'a Arc<Dpop>>,
}

impl Flow<'_> {
    /// Tokens with these scopes, by whatever grant there is.
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

    /// New tokens for old ones. `None`: there is no way without the user.
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
        // Without a new one the old one stays good.
        tokens.refresh = tokens.refresh.or_else(|| old.refresh.clone());
        Ok(Some(tokens))
    }

    async fn login(&self, name: &str, consent: &dyn AnyConsent, scopes: Scopes) -> Result<Tokens> {
        let server = &self.discovered.server;
        server.check_pkce()?;
        let endpoint = server.authorization_endpoint()?;
        // Before the user is sent away: they would log in for nothing.
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

    /// [Authorization, Scope Selection]: these and what a client may ask for to stay logged in, where the server knows it.
    pub(crate) fn staying(&self, scopes: &Scopes) -> Scopes {
        let more = if self.discovered.server.has_scope(OFFLINE) { OFFLINE } else { "" };
        scopes.clone().and(&Scopes::parse(more))
    }

    /// [Client Registration Approaches]: known before, then known by a document, then registered now.
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
        // Another process may have registered and logged in meanwhile: its client is as good, and has tokens.
        if let Some(kept) = self.settings.store.load(&self.discovered.key).await?
            && let Some(registration) = &kept.registration
            && registration.serves(redirect_uri.unwrap_or_default(), now())
        {
            let client = registration.identity(server);
            *credentials = kept;
            return Ok(client);
        }
        // What the former client was given is of no use to this one.
        *credentials = Credentials { registration: Some(registration), ..Credentials::default() };
        self.settings.store.save(&self.discovered.key, credentials).await?;
        Ok(client)
    }

    /// Why a login came to nothing. If the client is not known any more, the next one registers it anew.
    pub(crate) async fn refused(&self, error: TokenError, client: &Identity) -> Error {
        if error.is_client() {
            self.update(|credentials| credentials.forget(&client.client_id)).await;
        }
        error.into_error(&self.discovered.key)
    }

    /// Keeps others who share the store from changing what is kept for the issuer. If that cannot be, the worst is a login
    /// that would not have been needed.
    pub(crate) async fn lock(&self) -> StoreLock {
        self.settings.store.lock(&self.discovered.key).await.unwrap_or_else(|error| {
            tracing::warn!(issuer = self.discovered.key, %error, "what is kept could not be locked");
            StoreLock::none()
        })
    }

    /// Changes what is kept for the next run. A login that cannot be kept is still one.
    pub(crate) async fn update(&self, update: impl FnOnce(&mut Credentials)) {
        let lock = self.lock().await;
        self.update_locked(&lock, update).await;
    }

    /// Changes what is kept while it is locked.
    pub(crate) async fn update_locked(&self, _: &StoreLock, update: impl FnOnce(&mut Credentials)) {
        let (store, key) = (&self.settings.store, &self.discovered.key);
        let kept = async {
            let mut credentials = store.load(key).await?.unwrap_or_default();
            update(&mut credentials);
            store.save(key, &credentials).await
        };
        if let Err(error) = kept.await {
            tracing::warn!(issuer = key, %error, "the tokens could not be kept: the next run has to log in again");
        }
    }

    /// Whether tokens were given to this client, and not to another one that shares the store.
    pub(crate) async fn is_ours(&self, tokens: &Tokens) -> Result<bool> {
        Ok(match &*self.settings.grant {
            Grant::Workload { .. } => tokens.client_id.is_empty(),
            _ => self.known(&tokens.client_id).await?.is_some(),
        })
    }

    /// The client that tokens were given to, if it still is one.
    async fn known(&self, client_id: &str) -> Result<Option<Identity>> {
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
            || Error::Misuse("this way to be let in needs a client: give it to `OAuth::registered`".into());
        let client: &Registered = self.settings.registered.as_ref().ok_or_else(missing)?;
        Ok(Identity::registered(client, &self.discovered.server))
    }

    /// The identity provider's word that its user may use the server: an ID-JAG.
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
        // Its address was given by who wrote the program, so it may be where the server is not.
        let endpoint: Uri = provider.token_endpoint.parse().map_err(|_| {
            Error::Misuse(format!("`{}` is no address of a token endpoint", provider.token_endpoint))
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
                "`{}` gave a token that says nothing to other servers: it has to be an ID-JAG",
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
                    "the authorization server `{}` gave a token of a kind that was not asked for",
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

    /// What these tokens are kept under, beside others of the same issuer.
    pub(crate) fn storage_key(&self) -> String {
        let server = format!("{}{}", crate::shared::address::origin(self.server), self.server.path());
        self.discovered.resource.clone().unwrap_or(server)
    }
}

/// [Authorization Security, Communication Security]: where a user is sent back to is encrypted, or on their machine. An
/// address with a scheme of its own belongs to one program there.
fn check_redirect(address: &str) -> Result<()> {
    let uri: Option<Uri> = address.parse().ok();
    let Some(uri) = uri.filter(|uri| uri.scheme_str() == Some("http")) else { return Ok(()) };
    if Reach::of(&uri, &[]).is_loopback() {
        return Ok(());
    }
    Err(Error::Misuse(format!(
        "the login must not lead back to `{address}`: a code would be sent in the clear; use `https`, or an address of this \
         machine"
    )))
}

pub(crate) fn add_scopes(form: &mut Form, scopes: &Scopes) {
    if !scopes.is_empty() {
        form.push("scope", &scopes.to_string());
    }
}
