//! The tokens for one server: used, refreshed, and replaced when a request is refused.

mod decision;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http::Uri;
use pintle::{Error, Result, client::http::Challenge, proto::http::same_origin};
use tokio::time::Instant;

use decision::{Decision, Refusal, StepUps, decide};

use super::{
    challenge,
    discovery::{Discovered, discover},
    dpop::Dpop,
    grant::flow::Flow,
    grant::settings::Settings,
    store::StoreLock,
    store::credentials::{Credentials, Tokens},
};
use crate::shared::{
    address,
    clock::now,
    reach::Reach,
    scope::{self, Scopes},
    web::Guarded,
};

/// After a refresh failed, the next one waits this long. Otherwise every call that waited for it would repeat it.
const REFRESH_PAUSE: Duration = Duration::from_secs(5);

/// The right to request tokens. A task that outlives its call shares it with the call.
type Flight = Arc<tokio::sync::OwnedMutexGuard<()>>;

/// The authorization of a client at one server.
#[derive(Default)]
pub(crate) struct Authorization {
    state: Mutex<AuthorizationState>,
    /// Lets one task at a time request tokens. It is held across the requests on purpose: the others wait for their
    /// result.
    flight: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Default)]
struct AuthorizationState {
    server: Option<Uri>,
    reach: Option<Reach>,
    tokens: Option<Arc<TokensInUse>>,
    step_ups: StepUps,
    /// The number of logins so far.
    logins: u64,
    /// The error of the last login, if it failed.
    login_error: Option<String>,
    /// When the next refresh may be tried, and why the last one failed.
    refresh_pause: Option<(Instant, String)>,
}

impl AuthorizationState {
    fn refresh_error(&self) -> Option<&str> {
        let paused = self.refresh_pause.as_ref().filter(|(until, _)| *until > Instant::now());
        paused.map(|(_, error)| error.as_str())
    }
}

/// Tokens, with what is needed to use and to replace them.
#[derive(Clone)]
pub(crate) struct TokensInUse {
    pub(crate) tokens: Tokens,
    pub(crate) dpop: Option<Arc<Dpop>>,
    discovered: Discovered,
    source: TokenSource,
}

/// The source of tokens, which decides what to do when they are refused.
#[derive(Clone, Copy, Debug, PartialEq)]
enum TokenSource {
    /// A grant. Another grant would give no better ones.
    Granted,
    /// A refresh token.
    Refreshed,
    /// The store, where an earlier run or another process left them. They may have been revoked since.
    Stored,
}

impl Authorization {
    /// Returns the tokens for a request to this address, if it is on the server's origin.
    pub(crate) fn tokens_for(&self, url: &Uri) -> Option<Arc<TokensInUse>> {
        let mut state = self.state();
        let server = state.server.get_or_insert_with(|| url.clone());
        if !same_origin(server, url) {
            return None;
        }
        state.tokens.clone()
    }

    /// Replaces tokens. Returns the old ones if that is not possible now, and `None` if they can no longer be used.
    pub(crate) async fn renewed(
        self: &Arc<Self>,
        settings: &Settings,
        old: Arc<TokensInUse>,
    ) -> Option<Arc<TokensInUse>> {
        let flight = self.begin_flight().await;
        match &self.state().tokens {
            Some(tokens) if tokens.tokens.access == old.tokens.access => {}
            other => return other.clone(),
        }
        self.renew_in_task(&flight, settings, old).await
    }

    /// Renews tokens in a task of its own. If the call that needs them is dropped, the refresh token that was exchanged
    /// is not lost.
    async fn renew_in_task(
        self: &Arc<Self>,
        flight: &Flight,
        settings: &Settings,
        old: Arc<TokensInUse>,
    ) -> Option<Arc<TokensInUse>> {
        let (server, reach) = {
            let state = self.state();
            match (&state.server, state.reach) {
                (Some(server), Some(reach)) if state.refresh_error().is_none() => (server.clone(), reach),
                _ => return Some(old),
            }
        };
        let (authorization, settings, flight) = (self.clone(), settings.clone(), flight.clone());
        let renewing = tokio::spawn(async move {
            let renewed = authorization.renew(&settings, &server, reach, old).await;
            drop(flight);
            renewed
        });
        renewing.await.unwrap_or_default()
    }

    async fn renew(
        &self,
        settings: &Settings,
        server: &Uri,
        reach: Reach,
        old: Arc<TokensInUse>,
    ) -> Option<Arc<TokensInUse>> {
        let web = Guarded { web: &*settings.web, reach };
        let flow = Flow { settings, web, server, discovered: &old.discovered, dpop: old.dpop.as_ref() };
        // Other processes that share the store wait here, and find the new tokens in it.
        let lock = flow.lock().await;
        let stored = stored_by_others(&flow, &old).await;
        if let Some(stored) = stored.as_ref().filter(|stored| !stored.tokens.is_stale(now())) {
            return Some(self.use_tokens(stored.clone()));
        }
        // Tokens that others have replaced are not tried: an authorization server takes a refresh token that is used
        // twice for a stolen one.
        let last = stored.as_ref().unwrap_or(&old);
        let flow = Flow { dpop: last.dpop.as_ref(), ..flow };
        match flow.renew(&last.tokens).await {
            Ok(Some(tokens)) => {
                tracing::debug!(issuer = old.discovered.key, "refreshed the tokens");
                store(&flow, &lock, &tokens).await;
                Some(self.use_tokens(TokensInUse { tokens, source: TokenSource::Refreshed, ..last.clone() }))
            }
            Ok(None) => Some(old),
            Err(error) if error.is_final() => {
                tracing::debug!(issuer = old.discovered.key, "the refresh token is no longer valid");
                let forget = |credentials: &mut Credentials| {
                    let key = flow.storage_key();
                    if credentials.tokens.get(&key).is_some_and(|kept| kept.access == last.tokens.access) {
                        credentials.tokens.remove(&key);
                    }
                    if error.is_client() {
                        credentials.forget(&last.tokens.client_id);
                    }
                };
                flow.update_locked(&lock, forget).await;
                self.state().tokens = None;
                None
            }
            Err(error) => {
                let error = error.into_error(&old.discovered.key);
                tracing::warn!(issuer = old.discovered.key, %error, "failed to refresh the tokens");
                self.state().refresh_pause = Some((Instant::now() + REFRESH_PAUSE, error.to_string()));
                Some(old)
            }
        }
    }

    /// Handles a refused request. Returns whether it should be sent again.
    pub(crate) async fn challenged(
        self: &Arc<Self>,
        settings: &Settings,
        challenge: &Challenge<'_>,
    ) -> Result<bool> {
        let logins = {
            let state = self.state();
            if !state.server.as_ref().is_some_and(|server| same_origin(server, challenge.url)) {
                return Ok(false);
            }
            state.logins
        };
        let challenges = challenge::parse(challenge.wanted());
        let Some(refusal) = Refusal::read(challenge, &challenges) else { return Ok(false) };

        let flight = self.begin_flight().await;
        let (decision, tokens) = {
            let mut state = self.state();
            let tokens = state.tokens.clone();
            if let Some(tokens) = &tokens
                && refusal.token.as_deref() != Some(tokens.tokens.access.reveal())
            {
                // Another call has replaced the refused token meanwhile.
                return Ok(true);
            }
            if let Some(error) = state.login_error.as_ref().filter(|_| state.logins > logins) {
                // Another call has just failed to log in: the user is not asked again at once.
                return Err(Error::Refused(error.clone()));
            }
            if let Some(dpop) = tokens.as_ref().and_then(|tokens| tokens.dpop.as_ref()) {
                let is_new = dpop.note(challenge.url, challenge.headers);
                if is_new && refusal.wants_nonce {
                    return Ok(true);
                }
            }
            let decision = decide(&refusal, challenge.tries, tokens.as_deref(), &state.step_ups);
            state.step_ups.started += u32::from(matches!(decision, Decision::StepUp(_)));
            (decision, tokens)
        };
        let url = challenge.url;
        match (decision, tokens) {
            (Decision::GiveUp, _) => Ok(false),
            (Decision::StepUp(scopes), _) => self.step_up(settings, url, &refusal, scopes).await,
            (Decision::Refresh, Some(tokens)) => {
                self.refresh_or_log_in(&flight, settings, url, &refusal, tokens).await
            }
            (Decision::LogIn | Decision::Refresh, _) => self.log_in(settings, url, &refusal, None).await,
        }
    }

    /// Logs in again with more scopes.
    async fn step_up(
        &self,
        settings: &Settings,
        url: &Uri,
        refusal: &Refusal<'_>,
        scopes: Scopes,
    ) -> Result<bool> {
        let scopes = scopes.and(&settings.scopes);
        let done = self.log_in(settings, url, refusal, Some(scopes)).await;
        if let (Err(Error::Refused(_)), Some(missing)) = (&done, &refusal.missing) {
            self.state().step_ups.denied.push(missing.clone());
        }
        done
    }

    /// Refreshes the tokens. Logs in if they are of another issuer than the server's, or can no longer be refreshed.
    async fn refresh_or_log_in(
        self: &Arc<Self>,
        flight: &Flight,
        settings: &Settings,
        url: &Uri,
        refusal: &Refusal<'_>,
        old: Arc<TokensInUse>,
    ) -> Result<bool> {
        if self.has_same_issuer(settings, url, &old, refusal).await? {
            let renewed = self.renew_in_task(flight, settings, old.clone()).await;
            if renewed.is_some_and(|renewed| renewed.tokens.access != old.tokens.access) {
                return Ok(true);
            }
            // The authorization server failed, so a login would fail as well.
            if let Some(error) = self.state().refresh_error() {
                return Err(Error::Refused(error.to_owned()));
            }
        }
        self.log_in(settings, url, refusal, None).await
    }

    /// Whether the server still names the issuer of these tokens. No other may see them.
    async fn has_same_issuer(
        &self,
        settings: &Settings,
        url: &Uri,
        tokens: &TokensInUse,
        refusal: &Refusal<'_>,
    ) -> Result<bool> {
        let discovered = self.discover(settings, url, refusal).await?;
        Ok(discovered.key == tokens.discovered.key && discovered.resource == tokens.discovered.resource)
    }

    async fn discover(&self, settings: &Settings, url: &Uri, refusal: &Refusal<'_>) -> Result<Discovered> {
        let reach = self.reach(settings, url).await?;
        let web = Guarded { web: &*settings.web, reach };
        let server = self.state().server.clone().unwrap_or_else(|| url.clone());
        discover(web, &server, refusal.metadata, settings.issuer()).await
    }

    async fn log_in(
        &self,
        settings: &Settings,
        url: &Uri,
        refusal: &Refusal<'_>,
        scopes: Option<Scopes>,
    ) -> Result<bool> {
        let done = self.try_log_in(settings, url, refusal, scopes).await;
        let mut state = self.state();
        state.logins += 1;
        state.login_error = done.as_ref().err().map(ToString::to_string);
        done
    }

    async fn try_log_in(
        &self,
        settings: &Settings,
        url: &Uri,
        refusal: &Refusal<'_>,
        scopes: Option<Scopes>,
    ) -> Result<bool> {
        let discovered = self.discover(settings, url, refusal).await?;
        let (server, reach) = {
            let state = self.state();
            (state.server.clone().unwrap_or_else(|| url.clone()), state.reach.unwrap_or(Reach::of(url, &[])))
        };
        let web = Guarded { web: &*settings.web, reach };
        let flow = |dpop| Flow { settings, web, server: &server, discovered: &discovered, dpop };

        // Tokens of an earlier run, unless they were just refused.
        let stored = settings.store.load(&discovered.key).await?.unwrap_or_default();
        if scopes.is_none()
            && let Some(tokens) = stored.tokens.get(&flow(None).storage_key())
            && refusal.token.as_deref() != Some(tokens.access.reveal())
            && flow(None).is_ours(tokens).await?
        {
            let dpop = tokens.dpop_key.as_ref().and_then(Dpop::restore).map(Arc::new);
            // A stale token is refreshed when the request is sent again, like any other.
            let is_usable = tokens.refresh.is_some() || !tokens.is_stale(now());
            if is_usable && tokens.dpop_key.is_some() == dpop.is_some() {
                let tokens = tokens.clone();
                self.use_tokens(TokensInUse {
                    tokens,
                    dpop,
                    discovered: discovered.clone(),
                    source: TokenSource::Stored,
                });
                return Ok(true);
            }
        }

        let dpop =
            if settings.dpop && discovered.server.signs_dpop() { Some(Arc::new(Dpop::new()?)) } else { None };
        let scopes = scopes.unwrap_or_else(|| {
            let wanted = scope::first(refusal.scopes.clone(), discovered.scopes.as_deref());
            let before = self.state().tokens.as_ref().map(|tokens| tokens.tokens.requested.clone());
            before.unwrap_or_default().and(&wanted).and(&settings.scopes)
        });
        let flow = flow(dpop.as_ref());
        let tokens = flow.grant(scopes).await.map_err(|error| match &discovered.unused {
            Some(unused) => Error::Refused(format!("{error} ({unused})")),
            None => error,
        })?;
        tracing::debug!(issuer = discovered.key, "logged in");
        let lock = flow.lock().await;
        store(&flow, &lock, &tokens).await;
        drop(lock);
        let dpop = dpop.clone().filter(|_| tokens.dpop_key.is_some());
        self.use_tokens(TokensInUse {
            tokens,
            dpop,
            discovered: discovered.clone(),
            source: TokenSource::Granted,
        });
        Ok(true)
    }

    /// Returns the addresses that may be requested on behalf of the server. It is resolved once.
    async fn reach(&self, settings: &Settings, url: &Uri) -> Result<Reach> {
        if let Some(reach) = self.state().reach {
            return Ok(reach);
        }
        let reach = match settings.reach {
            Some(reach) => reach,
            None => {
                let addresses = settings.web.addresses(url.host().unwrap_or_default()).await;
                Reach::of(url, &addresses)
            }
        };
        // Tokens are sent to the server too.
        reach.check(&format!("{}{}", address::origin(url), url.path()))?;
        self.state().reach = Some(reach);
        Ok(reach)
    }

    fn use_tokens(&self, tokens: TokensInUse) -> Arc<TokensInUse> {
        let tokens = Arc::new(tokens);
        let mut state = self.state();
        state.tokens = Some(tokens.clone());
        state.refresh_pause = None;
        tokens
    }

    async fn begin_flight(&self) -> Flight {
        Arc::new(self.flight.clone().lock_owned().await)
    }

    fn state(&self) -> MutexGuard<'_, AuthorizationState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Stores tokens for the next run.
async fn store(flow: &Flow<'_>, lock: &StoreLock, tokens: &Tokens) {
    let insert =
        |credentials: &mut Credentials| drop(credentials.tokens.insert(flow.storage_key(), tokens.clone()));
    flow.update_locked(lock, insert).await;
}

/// Returns the tokens that another process has stored meanwhile for the same client.
async fn stored_by_others(flow: &Flow<'_>, old: &TokensInUse) -> Option<TokensInUse> {
    let mut stored = flow.settings.store.load(&old.discovered.key).await.ok()??;
    let tokens = stored.tokens.remove(&flow.storage_key())?;
    if tokens.access == old.tokens.access || tokens.client_id != old.tokens.client_id {
        return None;
    }
    let dpop = match &tokens.dpop_key {
        Some(key) if old.tokens.dpop_key.as_ref() != Some(key) => Some(Arc::new(Dpop::restore(key)?)),
        Some(_) => old.dpop.clone(),
        None => None,
    };
    Some(TokensInUse { tokens, dpop, discovered: old.discovered.clone(), source: TokenSource::Stored })
}
