use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Uri, header};
use pintle::server::http::nodes::{NodeId, Nodes};
use ring::{
    digest::{SHA256, digest},
    hmac,
    rand::{SecureRandom as _, SystemRandom},
};
use serde::{Deserialize, Serialize};
use tokio::{
    sync::{oneshot, watch},
    time::{Instant, timeout_at},
};

use super::page::{escaped, message, page, redirect};
use crate::failure::Failure;

/// The path before those of the pages.
pub(in super::super) const LOGIN_PATH: &str = "/login/";
/// The path that authorization servers send users back to.
pub(super) const CALLBACK: &str = "/login/callback";
/// The time that a principal has to log in.
pub(super) const LIFETIME: Duration = Duration::from_secs(600);
/// The limit of logins that wait for their users.
const MAX_OPEN: usize = 10_000;
/// The limit of bytes of an address that a user is sent to, or comes back with.
const MAX_ADDRESS: usize = 16 << 10;
/// The limit of processes that are asked for one login.
const MAX_OWNERS: usize = 4;

/// The pages of a gateway on which principals begin and end their logins to targets.
///
/// The link of a login is given to the principal who called. Its page names the principal and the target, and its button binds the login to
/// the browser by a cookie: the link is of no use in another one then, and what comes back there is refused.
pub(in super::super) struct LoginPages {
    /// The URL of the gateway, without a path.
    base: String,
    is_secure: bool,
    /// Signs the cookies, with the link that each is for.
    key: hmac::Key,
    /// The other processes, if there are any. The id of this one is the beginning of its links and cookies.
    nodes: Option<Arc<dyn Nodes>>,
    open: Mutex<HashMap<String, OpenLogin>>,
    /// Counts the logins that have succeeded, here or elsewhere.
    connected: watch::Sender<u64>,
}

/// A login that waits for its user.
struct OpenLogin {
    names: LoginNames,
    /// The address at the authorization server.
    url: String,
    /// The parameter that the user comes back with.
    state: String,
    /// The cookie of the browser in which the user has agreed. The link cannot be used in another one then.
    browser: Option<String>,
    until: Instant,
    back: Option<oneshot::Sender<String>>,
    /// The link, which its principal is given as long as the login is open.
    link: watch::Sender<Option<String>>,
}

/// The names that the page of a login shows.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(in super::super) struct LoginNames {
    pub(in super::super) principal: String,
    /// The name of the target.
    pub(in super::super) target: String,
    /// The URL of the target.
    pub(in super::super) server: String,
}

/// A link of a principal. Dropping it closes the page.
pub(super) struct LoginLink {
    pages: Arc<LoginPages>,
    nonce: String,
    until: Instant,
    back: Option<oneshot::Receiver<String>>,
}

impl LoginPages {
    /// Creates the pages of a gateway at a URL without a path, which may have other processes.
    pub(in super::super) fn new(base: &str, nodes: Option<Arc<dyn Nodes>>) -> Result<Self, Failure> {
        let base = base.trim_end_matches('/').to_owned();
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new());
        let key = key.map_err(|_| Failure::internal(&"the system's random number generator failed"))?;
        let (open, connected) = (Mutex::default(), watch::Sender::default());
        Ok(Self { is_secure: base.starts_with("https:"), base, key, nodes, open, connected })
    }

    /// Returns the URL of the gateway.
    pub(super) fn base(&self) -> &str {
        &self.base
    }

    /// Returns the address that authorization servers send users back to.
    pub(super) fn redirect_uri(&self) -> String {
        format!("{}{CALLBACK}", self.base)
    }

    /// Opens the page of a login at this address of an authorization server. `link` has the link as long as it is open.
    pub(super) fn open(
        self: &Arc<Self>,
        names: LoginNames,
        url: &str,
        link: &watch::Sender<Option<String>>,
    ) -> pintle::Result<LoginLink> {
        let refused = |text: &str| pintle::Error::Refused(text.to_owned());
        let uri: Option<Uri> = url.parse().ok().filter(|_| url.len() <= MAX_ADDRESS);
        let state = uri.as_ref().and_then(|uri| parameter(uri, "state")).map(str::to_owned);
        let state = state.ok_or_else(|| refused("the address of the login page has no `state`"))?;
        let nonce = self.own(random()?);
        let (back, waiting) = oneshot::channel();
        let until = Instant::now() + LIFETIME;
        let mut open = self.lock();
        open.retain(|_, login| login.until > Instant::now());
        if open.len() >= MAX_OPEN {
            return Err(refused("too many logins wait for their users: call again later"));
        }
        let (back, shown) = (Some(back), link.clone());
        let login = OpenLogin { names, url: url.to_owned(), state, browser: None, until, back, link: shown };
        open.insert(nonce.clone(), login);
        drop(open);
        let opened = LoginLink { pages: self.clone(), nonce, until, back: Some(waiting) };
        link.send_replace(Some(opened.url()));
        Ok(opened)
    }

    /// Notes that a login has succeeded, and tells the other processes.
    pub(super) async fn connected(&self, names: &LoginNames) {
        self.connected.send_modify(|count| *count += 1);
        if let (Some(nodes), Ok(names)) = (&self.nodes, serde_json::to_vec(names)) {
            // Without it, the others have the principal log in again.
            let _ = nodes.publish(names.into()).await;
        }
    }

    /// Notes that a login has succeeded at another process: those of the same names are not needed any more.
    pub(super) fn connected_elsewhere(&self, names: &LoginNames) {
        self.lock().retain(|_, login| login.names != *names);
        self.connected.send_modify(|count| *count += 1);
    }

    /// Returns what counts the logins that have succeeded.
    pub(super) fn connections(&self) -> watch::Receiver<u64> {
        self.connected.subscribe()
    }

    /// Returns the other processes that may have the login of a request: those whose ids are in the link or in the cookies of this browser.
    pub(super) fn other_owners(&self, uri: &Uri, headers: &HeaderMap) -> Vec<NodeId> {
        let Some(own) = self.nodes.as_ref().map(|nodes| nodes.id()) else { return Vec::new() };
        let texts = match uri.path() {
            CALLBACK => cookies(headers)
                .filter(|(name, _)| name.starts_with(self.cookie_prefix()))
                .map(|(_, value)| value.to_owned())
                .collect(),
            path => vec![path.trim_start_matches(LOGIN_PATH).to_owned()],
        };
        let mut owners: Vec<NodeId> =
            texts.iter().filter_map(|text| text.split_once('.')?.0.parse().ok()).collect();
        owners.sort_unstable();
        owners.dedup();
        owners.retain(|owner| *owner != own);
        owners.truncate(MAX_OWNERS);
        owners
    }

    /// Returns a random text as one of this process.
    fn own(&self, text: String) -> String {
        match &self.nodes {
            Some(nodes) => format!("{}.{text}", nodes.id()),
            None => text,
        }
    }

    /// Answers a request for one of the pages; `None` if its path is another.
    pub(in super::super) fn answer(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Option<Response<String>> {
        let nonce = uri.path().strip_prefix(LOGIN_PATH)?;
        Some(match (method, uri.path()) {
            (&Method::GET, CALLBACK) => self.come_back(uri, headers),
            (&Method::GET, _) => self.show(nonce, headers),
            (&Method::POST, path) if path != CALLBACK => self.begin(nonce, uri, headers),
            _ => message(StatusCode::METHOD_NOT_ALLOWED, "This page cannot be used so."),
        })
    }

    /// Shows who logs in where. Whatever loads a page before its user does not use the link up, and the browser in which the user has
    /// agreed may begin again.
    fn show(&self, nonce: &str, headers: &HeaderMap) -> Response<String> {
        let known = cookie(headers, &self.cookie_name(nonce));
        let Some((names, host, is_begun)) = self.shown(nonce, known.as_deref()) else { return used_up() };
        let begun = known.filter(|_| is_begun).map(Ok);
        let Ok(secret) = begun.unwrap_or_else(|| random().map(|text| self.own(text))) else {
            return used_up();
        };
        let [principal, target, server, host] =
            [&names.principal, &names.target, &names.server, &host].map(|text| escaped(text));
        let confirm = self.signed(nonce, &secret);
        let html = format!(
            "<h1>Connect an account to <em>{principal}</em>?</h1>\n\
             <p>You will log in at <b>{host}</b>. From then on, whoever uses this gateway as <b>{principal}</b> acts with your account at \
             <b>{target}</b> ({server}).</p>\n\
             <p><b>Go on only if you are {principal}</b> and have just asked for this. If somebody has sent you this link, close the page.</p>\n\
             <form method=\"post\" action=\"{LOGIN_PATH}{nonce}?confirm={confirm}\"><button>I am {principal}: log in</button></form>"
        );
        let mut response = page(StatusCode::OK, &html);
        let cookie = format!(
            "{}={secret}; Path=/; HttpOnly; SameSite=Lax; Max-Age={}{}",
            self.cookie_name(nonce),
            LIFETIME.as_secs(),
            if self.is_secure { "; Secure" } else { "" }
        );
        match HeaderValue::try_from(cookie) {
            Ok(cookie) => drop(response.headers_mut().insert(header::SET_COOKIE, cookie)),
            Err(_) => return used_up(),
        }
        response
    }

    /// Sends the user, who has agreed, to the authorization server.
    fn begin(&self, nonce: &str, uri: &Uri, headers: &HeaderMap) -> Response<String> {
        let Some(cookie) = cookie(headers, &self.cookie_name(nonce)) else {
            let text = "This browser has not shown the page of this login, or accepts no cookies. Open the link again.";
            return message(StatusCode::FORBIDDEN, text);
        };
        let confirmed = parameter(uri, "confirm").and_then(|sent| URL_SAFE_NO_PAD.decode(sent).ok());
        let is_confirmed =
            confirmed.is_some_and(|tag| hmac::verify(&self.key, &signed_text(nonce, &cookie), &tag).is_ok());
        if !is_confirmed {
            return message(
                StatusCode::FORBIDDEN,
                "The button of another page was used. Open the link again.",
            );
        }
        let mut open = self.lock();
        let login = open.get_mut(nonce).filter(|login| login.is_open_to(Some(&cookie)));
        let Some(login) = login else { return used_up() };
        login.browser = Some(cookie);
        redirect(&login.url)
    }

    /// Takes what the authorization server has sent the user back with.
    fn come_back(&self, uri: &Uri, headers: &HeaderMap) -> Response<String> {
        let state = parameter(uri, "state").unwrap_or_default();
        let mut open = self.lock();
        let found = open.iter().find(|(_, login)| login.state == state && login.until > Instant::now());
        let Some((nonce, login)) = found else { return used_up() };
        let sent = cookie(headers, &self.cookie_name(nonce));
        if !login.browser.as_ref().zip(sent).is_some_and(|(known, sent)| is_same(known, &sent)) {
            let text = "This login was started in another browser, and nothing was connected. If someone sent you this link, do not continue.";
            return message(StatusCode::FORBIDDEN, text);
        }
        let nonce = nonce.clone();
        let Some(mut login) = open.remove(&nonce) else { return used_up() };
        drop(open);
        let query = uri.query().unwrap_or_default();
        let back = login.back.take().filter(|_| query.len() <= MAX_ADDRESS);
        if back.is_none_or(|back| back.send(query.to_owned()).is_err()) {
            return used_up();
        }
        let LoginNames { principal, target, .. } = &login.names;
        let text = format!(
            "Your account at {target} is being connected to {principal}. Close this page, and go back to your program."
        );
        message(StatusCode::OK, &text)
    }

    /// Returns the names of a login that nobody has begun in another browser, the host that its user logs in at, and whether it has begun in
    /// this one.
    fn shown(&self, nonce: &str, cookie: Option<&str>) -> Option<(LoginNames, String, bool)> {
        let open = self.lock();
        let login = open.get(nonce).filter(|login| login.is_open_to(cookie))?;
        let host = login.url.parse::<Uri>().ok()?.host()?.to_owned();
        Some((login.names.clone(), host, login.browser.is_some()))
    }

    /// Returns the name of the cookie of a login. Those of two logins in one browser are different.
    fn cookie_name(&self, nonce: &str) -> String {
        let hash = digest(&SHA256, nonce.as_bytes());
        let hash: String = hash.as_ref().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        format!("{}{hash}", self.cookie_prefix())
    }

    fn cookie_prefix(&self) -> &'static str {
        match self.is_secure {
            // No other host can set a cookie with this prefix.
            true => "__Host-pintle-login-",
            false => "pintle-login-",
        }
    }

    fn signed(&self, nonce: &str, cookie: &str) -> String {
        URL_SAFE_NO_PAD.encode(hmac::sign(&self.key, &signed_text(nonce, cookie)))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, OpenLogin>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenLogin {
    /// Returns whether the login can be begun in a browser with this cookie.
    fn is_open_to(&self, cookie: Option<&str>) -> bool {
        self.until > Instant::now()
            && self
                .browser
                .as_deref()
                .is_none_or(|browser| cookie.is_some_and(|cookie| is_same(browser, cookie)))
    }
}

impl Drop for OpenLogin {
    /// Calls wait for the tokens from now on, also the one that follows the answer of the page.
    fn drop(&mut self) {
        self.link.send_replace(None);
    }
}

impl LoginLink {
    /// Returns the address of the page.
    pub(super) fn url(&self) -> String {
        format!("{}{LOGIN_PATH}{}", self.pages.base, self.nonce)
    }

    /// Waits until the user comes back, and returns the query of that.
    pub(super) async fn came_back(mut self) -> pintle::Result<String> {
        let late =
            || pintle::Error::Refused("the login was not completed within ten minutes: call again".into());
        let back = self.back.take().ok_or_else(late)?;
        timeout_at(self.until, back).await.ok().and_then(Result::ok).ok_or_else(late)
    }
}

impl Drop for LoginLink {
    fn drop(&mut self) {
        self.pages.lock().remove(&self.nonce);
    }
}

fn used_up() -> Response<String> {
    let text = "This link has been used, or is older than ten minutes. Go back to your program and call again, which gives you a new one.";
    message(StatusCode::GONE, text)
}

/// Compares two cookies, in a time that does not depend on how much of them is equal.
fn is_same(known: &str, sent: &str) -> bool {
    digest(&SHA256, known.as_bytes()).as_ref() == digest(&SHA256, sent.as_bytes()).as_ref()
}

fn signed_text(nonce: &str, cookie: &str) -> Vec<u8> {
    format!("{nonce}\n{cookie}").into_bytes()
}

/// Returns 256 random bits as a text.
pub(super) fn random() -> pintle::Result<String> {
    let mut bytes = [0; 32];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| pintle::Error::Refused("the system's random number generator failed".into()))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// Returns a parameter of a query that has no characters to decode, if there is exactly one.
fn parameter<'a>(uri: &'a Uri, name: &str) -> Option<&'a str> {
    let pairs = uri.query()?.split('&').filter_map(|pair| pair.split_once('='));
    let mut found = pairs.filter(|(known, _)| *known == name).map(|(_, value)| value);
    found.next().filter(|_| found.next().is_none())
}

/// Returns a cookie of a request.
fn cookie(headers: &HeaderMap, name: &str) -> Option<String> {
    cookies(headers).find(|(known, _)| *known == name).map(|(_, value)| value.to_owned())
}

/// Returns the names and values of the cookies of a request.
fn cookies(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    let all = headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(base: &str) -> Arc<LoginPages> {
        Arc::new(LoginPages::new(base, None).unwrap())
    }

    fn open(pages: &Arc<LoginPages>, principal: &str) -> LoginLink {
        let names = LoginNames {
            principal: principal.to_owned(),
            target: "notes".to_owned(),
            server: "https://notes.example/mcp".to_owned(),
        };
        let url = format!("https://login.example/authorize?a=b&state={principal}-state");
        pages.open(names, &url, &watch::Sender::default()).unwrap()
    }

    fn get(pages: &LoginPages, url: &str, cookie: &str) -> Response<String> {
        answer(pages, &Method::GET, url, cookie)
    }

    fn answer(pages: &LoginPages, method: &Method, url: &str, cookie: &str) -> Response<String> {
        let headers = HeaderMap::from_iter([(header::COOKIE, cookie.parse().unwrap())]);
        pages.answer(method, &url.parse().unwrap(), &headers).unwrap()
    }

    /// Presses the button of a page. Returns the cookie of the browser.
    fn agree(pages: &LoginPages, link: &str) -> String {
        let shown = get(pages, link, "");
        let cookie = shown.headers()[header::SET_COOKIE].to_str().unwrap();
        let cookie = cookie.split(';').next().unwrap().to_owned();
        let (_, rest) = shown.body().split_once("action=\"").unwrap();
        let begun = answer(pages, &Method::POST, rest.split('"').next().unwrap(), &cookie);
        assert_eq!(begun.status(), StatusCode::SEE_OTHER);
        assert!(begun.headers()[header::LOCATION].to_str().unwrap().starts_with("https://login.example/"));
        cookie
    }

    #[tokio::test]
    async fn a_call_after_the_last_page_does_not_get_the_link_again() {
        let pages = pages("https://mcp.example");
        let names = LoginNames { principal: "ann".into(), target: "notes".into(), server: "s".into() };
        let shown = watch::Sender::default();
        let link = pages.open(names, "https://login.example/authorize?state=x", &shown).unwrap();
        assert_eq!(*shown.borrow(), Some(link.url()));
        let cookie = agree(&pages, &link.url());
        let last = get(&pages, "https://mcp.example/login/callback?code=c&state=x", &cookie);
        assert_eq!((last.status(), &*shown.borrow()), (StatusCode::OK, &None));
        assert_eq!(link.came_back().await.unwrap(), "code=c&state=x");
    }

    #[tokio::test(start_paused = true)]
    async fn a_link_lasts_ten_minutes() {
        let pages = pages("https://mcp.example");
        let link = open(&pages, "ann");
        let url = link.url();
        assert_eq!(get(&pages, &url, "").status(), StatusCode::OK);
        tokio::time::advance(LIFETIME - Duration::from_secs(1)).await;
        let cookie = agree(&pages, &url);
        tokio::time::advance(Duration::from_secs(1)).await;
        let late = get(&pages, "https://mcp.example/login/callback?code=c&state=ann-state", &cookie);
        assert_eq!(late.status(), StatusCode::GONE, "also for who has begun");
        assert!(link.came_back().await.unwrap_err().to_string().contains("ten minutes"));
        assert!(pages.lock().is_empty(), "nothing is left");

        let link = open(&pages, "ann");
        tokio::time::advance(LIFETIME).await;
        assert_eq!(get(&pages, &link.url(), "").status(), StatusCode::GONE);
        drop(link);
        assert!(pages.lock().is_empty());
    }

    #[tokio::test]
    async fn what_comes_back_is_passed_on_from_the_browser_that_agreed_only() {
        let pages = pages("https://mcp.example/");
        let (ann, bob) = (open(&pages, "ann"), open(&pages, "bob"));
        assert_ne!(ann.url(), bob.url());
        let (of_ann, of_bob) = (agree(&pages, &ann.url()), agree(&pages, &bob.url()));
        let callback = "https://mcp.example/login/callback?code=c&state=ann-state";
        let forged = of_ann.replace(|c: char| c.is_ascii_digit(), "x");
        for cookie in ["", &of_bob, &forged, "a=b; c"] {
            assert_eq!(get(&pages, callback, cookie).status(), StatusCode::FORBIDDEN, "{cookie}");
        }
        let both = format!("other=1; {of_bob}; {of_ann}");
        assert_eq!(get(&pages, callback, &both).status(), StatusCode::OK);
        assert_eq!(ann.came_back().await.unwrap(), "code=c&state=ann-state");
        assert_eq!(get(&pages, callback, &both).status(), StatusCode::GONE);
        // A parameter that is there twice is none.
        let twice = "https://mcp.example/login/callback?state=bob-state&state=bob-state";
        assert_eq!(get(&pages, twice, &both).status(), StatusCode::GONE);
    }

    #[test]
    fn a_cookie_is_for_this_host_and_encrypted_connections_unless_on_this_machine() {
        let cookie = |base: &str| {
            let pages = pages(base);
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            runtime.block_on(async {
                let link = open(&pages, "ann");
                get(&pages, &link.url(), "").headers()[header::SET_COOKIE].to_str().unwrap().to_owned()
            })
        };
        let secure = cookie("https://mcp.example");
        assert!(secure.starts_with("__Host-pintle-login-") && secure.ends_with("; Secure"), "{secure}");
        let local = cookie("http://127.0.0.1:8000");
        assert!(local.starts_with("pintle-login-") && !local.contains("Secure"), "{local}");
        for cookie in [secure, local] {
            assert!(cookie.contains("; Path=/; HttpOnly; SameSite=Lax; Max-Age=600"), "{cookie}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn pages_are_bounded_in_number_and_those_that_are_over_make_room() {
        let pages = pages("https://mcp.example");
        let link = open(&pages, "ann");
        let names = pages.lock().values().next().unwrap().names.clone();
        let url = "https://login.example/authorize?state=s";
        for number in 1..MAX_OPEN {
            let (names, url, state) = (names.clone(), url.to_owned(), number.to_string());
            let (browser, until, (back, _)) = (None, link.until, oneshot::channel());
            let login = OpenLogin {
                names,
                url,
                state,
                browser,
                until,
                back: Some(back),
                link: watch::Sender::default(),
            };
            pages.lock().insert(number.to_string(), login);
        }
        let refused = pages.open(names.clone(), url, &watch::Sender::default()).err().unwrap().to_string();
        assert!(refused.contains("too many logins wait"), "{refused}");
        tokio::time::advance(LIFETIME).await;
        let _link = pages.open(names, url, &watch::Sender::default()).unwrap();
        assert_eq!(pages.lock().len(), 1);
    }

    #[tokio::test]
    async fn addresses_are_bounded_in_length() {
        let pages = pages("https://mcp.example");
        let link = open(&pages, "ann");
        let names = pages.lock().values().next().unwrap().names.clone();
        let long = "x".repeat(MAX_ADDRESS);
        let refused = pages
            .open(
                names,
                &format!("https://login.example/authorize?state=s&a={long}"),
                &watch::Sender::default(),
            )
            .err();
        assert!(refused.unwrap().to_string().contains("has no `state`"));
        let cookie = agree(&pages, &link.url());
        let callback = format!("https://mcp.example/login/callback?state=ann-state&code={long}");
        assert_eq!(get(&pages, &callback, &cookie).status(), StatusCode::GONE);
        assert!(link.came_back().await.is_err(), "nothing is passed on");
    }

    #[tokio::test]
    async fn the_button_of_one_page_is_of_no_use_at_another() {
        let pages = pages("https://mcp.example");
        let (ann, eve) = (open(&pages, "ann"), open(&pages, "eve"));
        let shown = get(&pages, &eve.url(), "");
        let cookie = shown.headers()[header::SET_COOKIE].to_str().unwrap();
        let (_, secret) = cookie.split(';').next().unwrap().split_once('=').unwrap();
        let (_, confirm) = shown.body().split_once("confirm=").unwrap();
        let confirm = confirm.split('"').next().unwrap();
        // Somebody has set the cookie of one login as that of another.
        let moved = format!("{}={secret}", pages.cookie_name(&ann.nonce));
        let begun = answer(&pages, &Method::POST, &format!("{}?confirm={confirm}", ann.url()), &moved);
        assert_eq!(begun.status(), StatusCode::FORBIDDEN);
        assert!(begun.body().contains("The button of another page"), "{}", begun.body());
        let posted = answer(&pages, &Method::POST, "https://mcp.example/login/callback?state=ann-state", "");
        assert_eq!(posted.status(), StatusCode::METHOD_NOT_ALLOWED);
    }
}
