use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use http::HeaderMap;
use pintle::{
    Error, Result,
    client::http::{Auth, Challenge, Outgoing, OwnedChallenge},
    server::SessionHandle,
    types::{method, schema::ElicitationCompleteParams},
};
use pintle_oauth::client::{Consent, OAuth, Reach, Registered, Visit};
use tokio::{sync::watch, time::Instant};

use super::{
    pages::{LoginNames, LoginPages},
    principal_store::PrincipalStore,
};
use crate::{auth::APPLICATION, failure::Failure};

/// The limit of principals whose logins to one target are at hand. Those that were not used for the longest time are read again from the file.
const MAX_PRINCIPALS: usize = 1_000;
/// The limit of sessions of a principal that are notified when it has logged in.
const MAX_ASKED: usize = 16;

/// A target that each principal logs in to.
pub(in super::super) struct LoginTarget {
    pub(in super::super) pages: Arc<LoginPages>,
    pub(in super::super) name: String,
    /// The URL of the target.
    pub(in super::super) server: String,
    /// The networks that logins may reach.
    pub(in super::super) reach: Option<Reach>,
    /// The issuer of the tokens of clients of the gateway.
    pub(in super::super) issuer: Option<String>,
    /// The client of the target's authorization server, if it is registered there already.
    pub(in super::super) client: Option<Registered>,
}

/// The logins of all principals to one target.
pub(in super::super) struct PrincipalLogins {
    target: LoginTarget,
    /// By the name of the principal, with the time of its last use.
    logins: Mutex<HashMap<String, (PrincipalLogin, Instant)>>,
}

impl PrincipalLogins {
    pub(in super::super) fn new(target: LoginTarget) -> Self {
        Self { target, logins: Mutex::default() }
    }

    /// Returns the login of a principal.
    pub(in super::super) fn of(&self, principal: &str) -> Result<PrincipalLogin, Failure> {
        let mut logins = self.logins.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((login, used)) = logins.get_mut(principal) {
            *used = Instant::now();
            return Ok(login.clone());
        }
        if logins.len() >= MAX_PRINCIPALS {
            let oldest = logins.iter().min_by_key(|(_, (_, used))| *used).map(|(name, _)| name.clone());
            oldest.map(|oldest| logins.remove(&oldest));
        }
        let login = PrincipalLogin::new(&self.target, principal)?;
        logins.insert(principal.to_owned(), (login.clone(), Instant::now()));
        Ok(login)
    }

    /// Returns what counts the logins that have succeeded.
    pub(in super::super) fn changed(&self) -> watch::Receiver<u64> {
        self.target.pages.connections()
    }
}

/// The authorization of requests to a target on behalf of one principal, with its own account there.
///
/// Its tokens are stored and refreshed. A login that needs the user waits in the background, and requests fail with the link to its page.
#[derive(Clone)]
pub(in super::super) struct PrincipalLogin(Arc<PrincipalLoginInner>);

struct PrincipalLoginInner {
    names: LoginNames,
    pages: Arc<LoginPages>,
    oauth: OAuth,
    /// The link, while a login waits.
    link: watch::Sender<Option<String>>,
    /// Whether the user has come back from a login whose tokens are requested.
    came_back: AtomicBool,
    /// The sessions whose clients were asked to open a page, and the id of that.
    asked: Mutex<Vec<(SessionHandle, String)>>,
}

impl PrincipalLogin {
    fn new(target: &LoginTarget, principal: &str) -> Result<Self, Failure> {
        let LoginTarget { pages, name, server, reach, issuer, client } = target;
        let issuer = issuer.as_deref().unwrap_or_default();
        let owner = [pages.base(), issuer, name, server, principal].map(str::to_owned);
        let store = PrincipalStore::of(owner.into())?;
        let names =
            LoginNames { principal: principal.to_owned(), target: name.clone(), server: server.clone() };
        Ok(Self(Arc::new_cyclic(|inner| {
            let oauth = OAuth::login(APPLICATION, PrincipalConsent(inner.clone())).store(store);
            let oauth = match reach {
                Some(reach) => oauth.reach(*reach),
                None => oauth,
            };
            let oauth = match client {
                Some(client) => oauth.registered(client.clone()),
                None => oauth,
            };
            let link = watch::Sender::default();
            PrincipalLoginInner {
                names,
                pages: pages.clone(),
                oauth,
                link,
                came_back: AtomicBool::new(false),
                asked: Mutex::default(),
            }
        })))
    }

    /// Returns the link to the page of the login that waits for its user.
    pub(in super::super) fn link(&self) -> Option<String> {
        self.0.link.borrow().clone()
    }

    /// Returns the changes of the link.
    pub(in super::super) fn links(&self) -> watch::Receiver<Option<String>> {
        self.0.link.subscribe()
    }

    /// Describes what the user has to do.
    pub(in super::super) fn describe(&self, link: &str) -> String {
        let LoginNames { principal, target, .. } = &self.0.names;
        format!(
            "`{target}` requires a login of `{principal}`: open {link} in a browser, log in there, and call again"
        )
    }

    /// Has a client that was asked to open a page notified when the principal has logged in.
    pub(in super::super) fn notify_later(&self, session: SessionHandle, elicitation_id: &str) {
        let mut asked = self.0.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked
            .retain(|(other, id)| !other.is_closed() && (other.id() != session.id() || id != elicitation_id));
        if asked.len() >= MAX_ASKED {
            asked.remove(0);
        }
        asked.push((session, elicitation_id.to_owned()));
    }

    fn notify(&self) {
        let asked = std::mem::take(&mut *self.0.asked.lock().unwrap_or_else(PoisonError::into_inner));
        for (session, id) in asked {
            let params = ElicitationCompleteParams::new(id);
            // Without it, the client calls again when it has waited long enough.
            let _ = session.notify(method::NOTIFICATIONS_ELICITATION_COMPLETE, &params);
        }
    }

    /// Has a challenge answered, with a login if need be.
    async fn answer(self, challenge: OwnedChallenge) -> Result<bool> {
        let answered = self.0.oauth.challenged(challenge.get()).await;
        if self.0.came_back.swap(false, Ordering::AcqRel) && matches!(answered, Ok(true)) {
            self.0.pages.connected(&self.0.names).await;
            self.notify();
        }
        answered
    }
}

impl Auth for PrincipalLogin {
    async fn authorize(&self, request: Outgoing<'_>) -> Result<HeaderMap> {
        let mut link = self.0.link.subscribe();
        // In this order: a token that is still valid is used while more rights are asked for.
        tokio::select! {
            biased;
            headers = self.0.oauth.authorize(request) => headers,
            link = waiting(&mut link) => Err(Error::Refused(self.describe(&link))),
        }
    }

    async fn challenged(&self, challenge: Challenge<'_>) -> Result<bool> {
        let mut link = self.0.link.subscribe();
        if let Some(link) = self.link() {
            return Err(Error::Refused(self.describe(&link)));
        }
        // It goes on when the request has failed.
        let mut answering = tokio::spawn(self.clone().answer(challenge.into_owned()));
        // In this order: what is answered needs no page.
        tokio::select! {
            biased;
            answered = &mut answering => {
                answered.unwrap_or_else(|_| Err(Error::Refused("the login was interrupted; call again".into())))
            }
            link = waiting(&mut link) => Err(Error::Refused(self.describe(&link))),
        }
    }
}

/// Waits until a login waits for its user, and returns its link.
async fn waiting(link: &mut watch::Receiver<Option<String>>) -> String {
    let waited = link.wait_for(Option::is_some).await.ok().and_then(|link| link.clone());
    match waited {
        Some(link) => link,
        // The login was dropped: there is none any more.
        None => std::future::pending().await,
    }
}

/// Opens the page of a login for its principal.
struct PrincipalConsent(Weak<PrincipalLoginInner>);

impl Consent for PrincipalConsent {
    type Visit = PrincipalVisit;

    async fn begin(&self, _before: Option<&str>) -> Result<PrincipalVisit> {
        let ended = || Error::Refused("the target is not used any more".into());
        let inner = self.0.upgrade().ok_or_else(ended)?;
        Ok(PrincipalVisit { redirect_uri: inner.pages.redirect_uri(), inner })
    }
}

/// A login of a principal that has begun.
struct PrincipalVisit {
    redirect_uri: String,
    inner: Arc<PrincipalLoginInner>,
}

impl Visit for PrincipalVisit {
    fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    async fn ask(self, url: &str) -> Result<String> {
        let link = self.inner.pages.open(self.inner.names.clone(), url, &self.inner.link)?;
        let back = link.came_back().await;
        self.inner.came_back.store(back.is_ok(), Ordering::Release);
        back
    }
}

impl fmt::Debug for PrincipalLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PrincipalLogin").field(&self.0.names).finish()
    }
}

#[cfg(test)]
impl PrincipalLogins {
    /// The logins to a target that nobody reaches.
    pub(in super::super) fn for_test() -> Self {
        Self::new(LoginTarget {
            pages: Arc::new(LoginPages::new("https://gateway.example", None).unwrap()),
            name: "notes".to_owned(),
            server: "https://notes.example/mcp".to_owned(),
            reach: None,
            issuer: None,
            client: None,
        })
    }
}

#[cfg(test)]
impl PrincipalLogin {
    /// Has a login begin or end.
    pub(in super::super) fn set_link(&self, link: Option<String>) {
        self.0.link.send_replace(link);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn for_one_principal_more_the_login_that_was_not_used_for_the_longest_time_is_dropped() {
        let logins = PrincipalLogins::for_test();
        for number in 0..MAX_PRINCIPALS {
            logins.of(&number.to_string()).unwrap();
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        logins.of("0").unwrap();
        logins.of("one more").unwrap();
        let known = logins.logins.lock().unwrap();
        assert_eq!(known.len(), MAX_PRINCIPALS);
        assert_eq!(
            ["0", "1", "2", "one more"].map(|name| known.contains_key(name)),
            [true, false, true, true]
        );
    }
}
