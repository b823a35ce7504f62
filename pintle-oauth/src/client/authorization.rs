use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http::{HeaderMap, Uri, header::AUTHORIZATION};
use pintle::{Error, Result, client::http::Challenge, proto::http::same_origin};
use tokio::time::Instant;

use super::{
    challenge::{self, Wanted},
    discovery::{Found, discover},
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

/// How often more scopes are asked for. Each time the user has to agree, and a server could go on for ever.
const STEP_UPS: u32 = 16;
/// How often a user who says no is asked for the same ones. They may have missed the window, or think better of it.
const SAME_STEP_UPS: usize = 3;
/// After a refresh that failed, the next one waits this long: those who waited for it would all try it again.
const PAUSE: Duration = Duration::from_secs(5);

/// Who has it goes for tokens.
type Flight = tokio::sync::OwnedMutexGuard<()>;

/// What is going on with one server.
#[derive(Default)]
pub(crate) struct Live {
    now: Mutex<Now>,
    /// Only one at a time goes for tokens. It is held while it waits for them, which is what it is for.
    flight: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Default)]
struct Now {
    server: Option<Uri>,
    reach: Option<Reach>,
    held: Option<Arc<Held>>,
    step_ups: u32,
    /// The scopes that were asked for in vain, each time: no more often than there are step-ups.
    denied: Vec<Scopes>,
    /// Logins so far, and how the last one failed.
    logins: u64,
    failed: Option<String>,
    /// Why tokens could not be renewed, and until when that is not tried again.
    paused: Option<(Instant, String)>,
}

impl Now {
    fn pause(&self) -> Option<&str> {
        self.paused.as_ref().filter(|(until, _)| *until > Instant::now()).map(|(_, failed)| failed.as_str())
    }
}

/// Tokens in use.
#[derive(Clone)]
pub(crate) struct Held {
    pub(crate) tokens: Tokens,
    pub(crate) dpop: Option<Arc<Dpop>>,
    found: Found,
    came: Came,
}

/// How tokens were come by: what can be done when they are refused.
#[derive(Clone, Copy, PartialEq)]
enum Came {
    /// Straight from a grant. Others from the same place would fare no better.
    Granted,
    /// For a refresh token of ours.
    Renewed,
    /// From the store, as an earlier run or somebody who shares it has left them: they may have been revoked since.
    Kept,
}

impl Live {
    /// The tokens for a request to this address, if it is the server's own.
    pub(crate) fn held_for(&self, url: &Uri) -> Option<Arc<Held>> {
        let mut now = self.now();
        let server = now.server.get_or_insert_with(|| url.clone());
        if !same_origin(server, url) {
            return None;
        }
        now.held.clone()
    }

    /// Newer tokens than these if there is a way, else these. `None`: these are worth nothing any more.
    pub(crate) async fn renewed(self: &Arc<Self>, settings: &Settings, old: Arc<Held>) -> Option<Arc<Held>> {
        let flight = self.flight.clone().lock_owned().await;
        match &self.now().held {
            Some(held) if held.tokens.access == old.tokens.access => {}
            other => return other.clone(),
        }
        self.renew_apart(flight, settings, old).await.1
    }

    /// Renews tokens apart from the call that needs them: were that given up, a refresh token that was just exchanged
    /// would be lost with it.
    async fn renew_apart(
        self: &Arc<Self>,
        flight: Flight,
        settings: &Settings,
        old: Arc<Held>,
    ) -> (Option<Flight>, Option<Arc<Held>>) {
        let (server, reach) = {
            let now = self.now();
            match (&now.server, now.reach) {
                (Some(server), Some(reach)) if now.pause().is_none() => (server.clone(), reach),
                _ => return (Some(flight), Some(old)),
            }
        };
        let (live, settings) = (self.clone(), settings.clone());
        let renewing = tokio::spawn(async move {
            let renewed = live.renew(&settings, &server, reach, old).await;
            (Some(flight), renewed)
        });
        renewing.await.unwrap_or((None, None))
    }

    async fn renew(
        &self,
        settings: &Settings,
        server: &Uri,
        reach: Reach,
        old: Arc<Held>,
    ) -> Option<Arc<Held>> {
        let web = Guarded { web: &*settings.web, reach };
        let flow = Flow { settings, web, server, found: &old.found, dpop: old.dpop.as_ref() };
        // Whoever else shares the store waits, and finds the new ones there.
        let lock = flow.lock().await;
        let kept = kept_by_others(&flow, &old).await;
        if let Some(kept) = kept.as_ref().filter(|kept| !kept.tokens.is_stale(now())) {
            return Some(self.hold(kept.clone()));
        }
        // Those that others replaced are not tried: an authorization server takes a refresh token that comes twice for a
        // stolen one.
        let last = kept.as_ref().unwrap_or(&old);
        let flow = Flow { dpop: last.dpop.as_ref(), ..flow };
        match flow.renew(&last.tokens).await {
            Ok(Some(tokens)) => {
                tracing::debug!(issuer = old.found.key, "tokens renewed");
                keep(&flow, &lock, &tokens).await;
                Some(self.hold(Held { tokens, came: Came::Renewed, ..last.clone() }))
            }
            Ok(None) => Some(old),
            Err(ungranted) if ungranted.is_final() => {
                tracing::debug!(issuer = old.found.key, "tokens can no longer be renewed");
                let forget = |credentials: &mut Credentials| {
                    let key = flow.kept_under();
                    if credentials.tokens.get(&key).is_some_and(|kept| kept.access == last.tokens.access) {
                        credentials.tokens.remove(&key);
                    }
                    if ungranted.is_client() {
                        credentials.forget(&last.tokens.client_id);
                    }
                };
                flow.change_locked(&lock, forget).await;
                self.now().held = None;
                None
            }
            Err(ungranted) => {
                let error = ungranted.into_error(&old.found.key);
                tracing::warn!(issuer = old.found.key, %error, "tokens could not be renewed");
                self.now().paused = Some((Instant::now() + PAUSE, error.to_string()));
                Some(old)
            }
        }
    }

    /// A request was refused. Says whether it is worth sending again.
    pub(crate) async fn challenged(
        self: &Arc<Self>,
        settings: &Settings,
        challenge: &Challenge<'_>,
    ) -> Result<bool> {
        let seen = {
            let now = self.now();
            let ours = now.server.as_ref().is_some_and(|server| same_origin(server, challenge.url));
            if !ours {
                return Ok(false);
            }
            now.logins
        };
        let wanted = challenge::parse(challenge.wanted());
        let refused = Refused::read(challenge, &wanted);
        if refused.more.is_none() && challenge.status != 401 {
            return Ok(false);
        }

        let mut flight = self.flight.clone().lock_owned().await;
        let held = {
            let now = self.now();
            if let Some(held) = &now.held
                && refused.token.as_deref() != Some(held.tokens.access.reveal())
            {
                // Somebody else got another one meanwhile.
                return Ok(true);
            }
            if let Some(failed) = &now.failed
                && now.logins > seen
            {
                // Somebody else has just tried: the user is not asked the same again.
                return Err(Error::Refused(failed.clone()));
            }
            now.held.clone()
        };
        if let Some(dpop) = held.as_ref().and_then(|held| held.dpop.as_ref()) {
            let is_new = dpop.note(challenge.url, challenge.headers);
            if is_new && wanted.iter().any(|wanted| wanted.error() == Some("use_dpop_nonce")) {
                return Ok(true);
            }
        }
        if let Some(more) = &refused.more {
            let Some(scopes) = self.step_up(held.as_deref(), more) else { return Ok(false) };
            let scopes = scopes.and(&settings.scopes);
            let done = self.log_in(settings, challenge.url, &refused, Some(scopes)).await;
            if let Err(Error::Refused(_)) = done {
                self.now().denied.push(more.clone());
            }
            return done;
        }
        if let Some(held) = held {
            if challenge.tries > 1 && held.came == Came::Granted {
                return Ok(false);
            }
            // A request that was sent with kept ones was refused before, for having none or older ones.
            if (challenge.tries == 1 || held.came == Came::Kept)
                && held.tokens.refresh.is_some()
                && self.still_the_same(settings, challenge.url, &held, &refused).await?
            {
                let (again, renewed) = self.renew_apart(flight, settings, held.clone()).await;
                if renewed.is_some_and(|renewed| renewed.tokens.access != held.tokens.access) {
                    return Ok(true);
                }
                // The user could not mend that by logging in again.
                if let Some(failed) = self.now().pause() {
                    return Err(Error::Refused(failed.to_owned()));
                }
                flight = match again {
                    Some(flight) => flight,
                    None => self.flight.clone().lock_owned().await,
                };
            }
        }
        let done = self.log_in(settings, challenge.url, &refused, None).await;
        drop(flight);
        done
    }

    /// All scopes to ask for now; `None` if there is no point.
    fn step_up(&self, held: Option<&Held>, more: &Scopes) -> Option<Scopes> {
        let asked = held.map(|held| held.tokens.requested.clone()).unwrap_or_default();
        // Asked for already, and it was not enough: the user or the authorization server said no.
        if held.is_some() && asked.covers(more) {
            return None;
        }
        let mut now = self.now();
        if now.denied.iter().filter(|denied| *denied == more).count() >= SAME_STEP_UPS {
            return None;
        }
        now.step_ups += 1;
        (now.step_ups <= STEP_UPS).then(|| asked.and(more))
    }

    /// Whether the server still wants tokens of the same issuer: no other may see them.
    async fn still_the_same(
        &self,
        settings: &Settings,
        url: &Uri,
        held: &Held,
        refused: &Refused<'_>,
    ) -> Result<bool> {
        let found = self.discover(settings, url, refused).await?;
        Ok(found.key == held.found.key && found.resource == held.found.resource)
    }

    async fn discover(&self, settings: &Settings, url: &Uri, refused: &Refused<'_>) -> Result<Found> {
        let reach = self.reach(settings, url).await?;
        let web = Guarded { web: &*settings.web, reach };
        let server = self.now().server.clone().unwrap_or_else(|| url.clone());
        discover(web, &server, refused.metadata, settings.issuer()).await
    }

    async fn log_in(
        &self,
        settings: &Settings,
        url: &Uri,
        refused: &Refused<'_>,
        scopes: Option<Scopes>,
    ) -> Result<bool> {
        let done = self.try_log_in(settings, url, refused, scopes).await;
        let mut now = self.now();
        now.logins += 1;
        now.failed = done.as_ref().err().map(ToString::to_string);
        done
    }

    async fn try_log_in(
        &self,
        settings: &Settings,
        url: &Uri,
        refused: &Refused<'_>,
        scopes: Option<Scopes>,
    ) -> Result<bool> {
        let found = self.discover(settings, url, refused).await?;
        let (server, reach) = {
            let now = self.now();
            (now.server.clone().unwrap_or_else(|| url.clone()), now.reach.unwrap_or(Reach::of(url, &[])))
        };
        let web = Guarded { web: &*settings.web, reach };
        let flow = |dpop| Flow { settings, web, server: &server, found: &found, dpop };

        // What an earlier run of the program was given, unless that was just refused.
        let stored = settings.store.load(&found.key).await?.unwrap_or_default();
        if scopes.is_none()
            && let Some(tokens) = stored.tokens.get(&flow(None).kept_under())
            && refused.token.as_deref() != Some(tokens.access.reveal())
            && flow(None).is_ours(tokens).await?
        {
            let dpop = tokens.dpop_key.as_ref().and_then(Dpop::restore).map(Arc::new);
            // A stale one is renewed when the request is sent again, like any other.
            let is_good = tokens.refresh.is_some() || !tokens.is_stale(now());
            if is_good && tokens.dpop_key.is_some() == dpop.is_some() {
                self.hold(Held { tokens: tokens.clone(), dpop, found: found.clone(), came: Came::Kept });
                return Ok(true);
            }
        }

        let dpop =
            if settings.dpop && found.server.signs_dpop() { Some(Arc::new(Dpop::new()?)) } else { None };
        let scopes = scopes.unwrap_or_else(|| {
            let wanted = scope::first(refused.scopes.clone(), found.scopes.as_deref());
            let before = self.now().held.as_ref().map(|held| held.tokens.requested.clone());
            before.unwrap_or_default().and(&wanted).and(&settings.scopes)
        });
        let flow = flow(dpop.as_ref());
        let tokens = flow.grant(scopes).await.map_err(|error| match &found.unused {
            Some(unused) => Error::Refused(format!("{error} ({unused})")),
            None => error,
        })?;
        tracing::debug!(issuer = found.key, "logged in");
        let lock = flow.lock().await;
        keep(&flow, &lock, &tokens).await;
        drop(lock);
        let dpop = dpop.clone().filter(|_| tokens.dpop_key.is_some());
        self.hold(Held { tokens, dpop, found: found.clone(), came: Came::Granted });
        Ok(true)
    }

    /// What may be reached on behalf of the server, which is looked up once.
    async fn reach(&self, settings: &Settings, url: &Uri) -> Result<Reach> {
        if let Some(reach) = self.now().reach {
            return Ok(reach);
        }
        let addresses = settings.web.addresses(url.host().unwrap_or_default()).await;
        let reach = Reach::of(url, &addresses);
        // Tokens go there too.
        reach.check(&format!("{}{}", address::origin(url), url.path()))?;
        self.now().reach = Some(reach);
        Ok(reach)
    }

    fn hold(&self, held: Held) -> Arc<Held> {
        let held = Arc::new(held);
        let mut now = self.now();
        now.held = Some(held.clone());
        now.paused = None;
        held
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a refusal says.
struct Refused<'a> {
    /// The token that was refused.
    token: Option<String>,
    metadata: Option<&'a str>,
    scopes: Option<Scopes>,
    /// The scopes that are missing, if that is all.
    more: Option<Scopes>,
}

impl<'a> Refused<'a> {
    fn read(challenge: &Challenge<'_>, wanted: &'a [Wanted]) -> Self {
        let missing = wanted.iter().find(|wanted| wanted.error() == Some("insufficient_scope"));
        let more = missing.filter(|_| challenge.status == 403).and_then(Wanted::scopes);
        Self {
            token: token(challenge.sent),
            metadata: wanted.iter().find_map(Wanted::resource_metadata),
            scopes: wanted.iter().find_map(Wanted::scopes),
            more,
        }
    }
}

fn token(sent: &HeaderMap) -> Option<String> {
    let (_, token) = sent.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    Some(token.to_owned())
}

/// Keeps tokens for the next run.
async fn keep(flow: &Flow<'_>, lock: &StoreLock, tokens: &Tokens) {
    let keep =
        |credentials: &mut Credentials| drop(credentials.tokens.insert(flow.kept_under(), tokens.clone()));
    flow.change_locked(lock, keep).await;
}

/// Tokens that somebody else who shares the store has got meanwhile, for the same client.
async fn kept_by_others(flow: &Flow<'_>, old: &Held) -> Option<Held> {
    let mut stored = flow.settings.store.load(&old.found.key).await.ok()??;
    let tokens = stored.tokens.remove(&flow.kept_under())?;
    if tokens.access == old.tokens.access || tokens.client_id != old.tokens.client_id {
        return None;
    }
    let dpop = match &tokens.dpop_key {
        Some(key) if old.tokens.dpop_key.as_ref() != Some(key) => Some(Arc::new(Dpop::restore(key)?)),
        Some(_) => old.dpop.clone(),
        None => None,
    };
    Some(Held { tokens, dpop, found: old.found.clone(), came: Came::Kept })
}
