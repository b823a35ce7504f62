use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use http::HeaderMap;
use pintle::{
    Error, Result,
    client::http::{Auth, Challenge, Outgoing, OwnedChallenge},
};
use pintle_oauth::client::{Consent, Listening, Loopback, OAuth, Reach, StoreLock, Visit};
use tokio::{sync::watch, time::sleep};

use super::{
    Grant, Login, Logins, credentials,
    login_page::{OpenPage, SharedLoginPage, show_login_page},
    logins::of_server,
};
use crate::{failure::Failure, output::Output};

/// The interval at which another process that logs in is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// The authorization of requests to a server, for a command whose user does not see it.
///
/// Stored tokens are used, and refreshed. A login that needs the user is made in the background: its page is opened once, whatever
/// number of processes need it, and requests fail with its address until the user has logged in.
#[derive(Clone)]
pub(crate) struct BackgroundLogin(Arc<LoginInner>);

struct LoginInner {
    /// The URL of the server, as logins have it.
    server: String,
    /// The networks that the login may reach, if its name does not decide it.
    reach: Option<Reach>,
    page: SharedLoginPage,
    no_browser: bool,
    output: Output,
    oauth: Mutex<Option<Arc<OAuth>>>,
    /// Held from the opening of the page until the tokens are stored.
    lock: Mutex<Option<StoreLock>>,
    state: watch::Sender<LoginState>,
}

/// Whether a login waits for its user.
#[derive(Clone, Debug, Default)]
struct LoginState {
    /// The address of the page, while a login waits.
    page: Option<String>,
    /// The number of logins that have ended.
    ended: u64,
}

impl BackgroundLogin {
    /// Creates the authorization for the server at a URL without secrets.
    pub(crate) fn new(
        server: String,
        reach: Option<Reach>,
        no_browser: bool,
        output: &Output,
    ) -> Result<Self, Failure> {
        let page = SharedLoginPage::of(&server)?;
        let login = Self(Arc::new(LoginInner {
            server,
            reach,
            page,
            no_browser,
            output: output.clone(),
            oauth: Mutex::default(),
            lock: Mutex::default(),
            state: watch::Sender::default(),
        }));
        login.load()?;
        Ok(login)
    }

    /// Returns the error of requests while a login waits for its user.
    pub(crate) fn waiting(&self) -> Option<String> {
        self.0.state.borrow().page.as_deref().map(|page| self.describe(page))
    }

    /// Waits until a login has ended, however, from now on.
    pub(crate) fn ended(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut state = self.0.state.subscribe();
        let before = state.borrow_and_update().ended;
        async move {
            // It fails if this was dropped: no login ends any more.
            if state.wait_for(|state| state.ended > before).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Returns whether tokens for the server are stored.
    pub(crate) async fn has_tokens(&self) -> bool {
        let Ok(file) = credentials() else { return false };
        file.logins().await.is_ok_and(|stored| of_server(stored, &self.0.server).is_some())
    }

    fn describe(&self, page: &str) -> String {
        format!(
            "`{}` requires a login: open {page} in a browser, log in there, and call again",
            self.0.server
        )
    }

    /// Begins with the tokens that are stored.
    fn load(&self) -> Result<(), Failure> {
        let consent = PageConsent(Arc::downgrade(&self.0));
        let oauth = match Logins::load().find(&self.0.server) {
            Some(login) => login.oauth(consent)?,
            None => Login::new_oauth(consent)?,
        };
        let oauth = match self.0.reach {
            Some(reach) => oauth.reach(reach),
            None => oauth,
        };
        *lock(&self.0.oauth) = Some(Arc::new(oauth));
        Ok(())
    }

    fn oauth(&self) -> Result<Arc<OAuth>> {
        let oauth = lock(&self.0.oauth).clone();
        oauth.ok_or_else(|| Error::Refused("there is no directory for logins".into()))
    }

    /// Has a challenge answered, with a login if need be.
    async fn answer(self, challenge: OwnedChallenge) -> Result<bool> {
        let answered = self.oauth()?.challenged(challenge.get()).await;
        let held = lock(&self.0.lock).take();
        if held.is_some() {
            if matches!(answered, Ok(true))
                && let Err(failure) = self.record().await
            {
                // The tokens are stored all the same.
                self.0.output.note(failure.message.as_str());
            }
            drop(held);
            self.0.state.send_modify(|state| state.ended += 1);
        }
        answered
    }

    /// Stores what was logged in to, for the other verbs.
    async fn record(&self) -> Result<(), Failure> {
        let server = &self.0.server;
        if Logins::load().find(server).is_some() {
            return Ok(());
        }
        let stored = credentials()?.logins().await.map_err(|error| super::unusable(&error))?;
        let Some(stored) = of_server(stored, server) else { return Ok(()) };
        let (url, issuer, resource) = (server.clone(), stored.issuer, stored.resource);
        Logins::add(Login { url, grant: Grant::User, issuer, resource, client_id: None, secret_env: None })
    }

    /// Waits for the login that another process has opened the page of.
    async fn wait_for_other(&self) -> Result<()> {
        let inner = &self.0;
        loop {
            let page = inner.page.read();
            inner.state.send_if_modified(|state| {
                let is_new = page.is_some() && state.page != page;
                if is_new {
                    state.page = page;
                }
                is_new
            });
            sleep(LOOK).await;
            if inner.page.lock().await?.is_some() {
                break;
            }
        }
        let loaded = self.load();
        inner.state.send_modify(|state| {
            state.page = None;
            state.ended += 1;
        });
        loaded.map_err(|failure| Error::Refused(failure.message))
    }
}

impl Auth for BackgroundLogin {
    async fn authorize(&self, request: Outgoing<'_>) -> Result<HeaderMap> {
        let oauth = self.oauth()?;
        let mut state = self.0.state.subscribe();
        // In this order: a token that is still valid is used while more rights are asked for.
        tokio::select! {
            biased;
            headers = oauth.authorize(request) => headers,
            page = page(&mut state) => Err(Error::Refused(self.describe(&page))),
        }
    }

    async fn challenged(&self, challenge: Challenge<'_>) -> Result<bool> {
        let mut state = self.0.state.subscribe();
        if let Some(page) = self.waiting() {
            return Err(Error::Refused(page));
        }
        // It goes on when the request has failed.
        let mut answering = tokio::spawn(self.clone().answer(challenge.into_owned()));
        // In this order: what is answered needs no page.
        tokio::select! {
            biased;
            answered = &mut answering => {
                answered.unwrap_or_else(|_| Err(Error::Refused("the login was interrupted; call again".into())))
            }
            page = page(&mut state) => Err(Error::Refused(self.describe(&page))),
        }
    }
}

/// Waits until a login waits for its user, and returns the address of its page.
async fn page(state: &mut watch::Receiver<LoginState>) -> String {
    let waited = state.wait_for(|state| state.page.is_some()).await;
    let page = waited.ok().and_then(|state| state.page.clone());
    match page {
        Some(page) => page,
        // This was dropped: there is no login any more.
        None => std::future::pending().await,
    }
}

/// Opens the page of a login, unless another process has done so.
struct PageConsent(Weak<LoginInner>);

impl Consent for PageConsent {
    type Visit = PageVisit;

    async fn begin(&self, before: Option<&str>) -> Result<PageVisit> {
        let ending = || Error::Refused("the program is ending".into());
        let inner = self.0.upgrade().ok_or_else(ending)?;
        let Some(held) = inner.page.lock().await? else {
            BackgroundLogin(inner).wait_for_other().await?;
            return Err(Error::Refused("another process has logged in meanwhile; call again".into()));
        };
        *lock(&inner.lock) = Some(held);
        let (no_browser, output) = (inner.no_browser, inner.output.clone());
        let show = move |url: &str| {
            show_login_page(url, no_browser, &output);
            Ok(())
        };
        Ok(PageVisit { listening: Loopback::new(show).begin(before).await?, inner })
    }
}

/// A login that waits for its user.
struct PageVisit {
    listening: Listening,
    inner: Arc<LoginInner>,
}

impl Visit for PageVisit {
    fn redirect_uri(&self) -> &str {
        self.listening.redirect_uri()
    }

    async fn ask(self, url: &str) -> Result<String> {
        let Self { listening, inner } = self;
        let _open = WaitingGuard::new(inner, url)?;
        listening.ask(url).await
    }
}

/// A page that the user has not come back from.
struct WaitingGuard {
    inner: Arc<LoginInner>,
    _file: OpenPage,
}

impl WaitingGuard {
    fn new(inner: Arc<LoginInner>, url: &str) -> Result<Self> {
        let file = inner.page.open(url)?;
        inner.state.send_modify(|state| state.page = Some(url.to_owned()));
        Ok(Self { inner, _file: file })
    }
}

impl Drop for WaitingGuard {
    fn drop(&mut self) {
        self.inner.state.send_modify(|state| state.page = None);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for BackgroundLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BackgroundLogin").field("server", &self.0.server).finish_non_exhaustive()
    }
}
