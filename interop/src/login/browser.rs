//! A user whom nobody has to watch: they log in as `ann`, and agree to everything or to nothing.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::{
    Request, Response, Uri,
    header::{CONTENT_TYPE, COOKIE, LOCATION, SET_COOKIE},
};
use pintle::{Error, Result, client::http::Requests};
use pintle_oauth::client::{Consent, Listening, Loopback, Visit};

/// Pages and redirects of a login. A provider that wants more goes round in circles.
const STEPS: usize = 20;

/// A user with a browser of their own: what they were logged in to, they stay logged in to.
#[derive(Clone)]
pub(super) struct User(Arc<Browser>);

struct Browser {
    agrees: bool,
    requests: Requests,
    cookies: Mutex<Vec<Cookie>>,
    seen: Mutex<Vec<String>>,
}

struct Cookie {
    name: String,
    path: String,
    value: String,
}

impl User {
    pub(super) fn agreeing() -> Self {
        Self::new(true)
    }

    pub(super) fn refusing() -> Self {
        Self::new(false)
    }

    fn new(agrees: bool) -> Self {
        let (cookies, seen) = (Mutex::default(), Mutex::default());
        Self(Arc::new(Browser { agrees, requests: Requests::new(), cookies, seen }))
    }

    /// The pages that were shown since the last call: `login`, `consent`.
    pub(super) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.0.seen))
    }

    /// Goes to an address, and on until there is nothing more to fill in.
    pub(super) async fn visit(&self, url: &str) -> Result<()> {
        let mut url = url.to_owned();
        let mut form = None;
        for _ in 0..STEPS {
            let answer = self.0.send(&url, form.take()).await?;
            if let Some(to) = answer.headers().get(LOCATION).and_then(|to| to.to_str().ok()) {
                url = absolute(&url, to)?;
                continue;
            }
            let page = String::from_utf8_lossy(answer.body()).into_owned();
            if answer.status() != 200 {
                return Err(lost(&url, &format!("status {}: {page}", answer.status())));
            }
            if !self.0.agrees
                && let Some(no) = links(&page).find(|link| link.ends_with("/abort"))
            {
                url = absolute(&url, &no)?;
                continue;
            }
            let Some((action, filled)) = self.0.fill(&page) else { return Ok(()) };
            url = absolute(&url, &action)?;
            form = Some(filled);
        }
        Err(lost(&url, "the login does not end"))
    }
}

impl Browser {
    async fn send(&self, url: &str, form: Option<String>) -> Result<Response<Bytes>> {
        let uri: Uri = url.parse().map_err(|_| lost(url, "no address"))?;
        let cookies: Vec<_> = lock(&self.cookies)
            .iter()
            .filter(|cookie| uri.path().starts_with(&cookie.path))
            .map(|cookie| format!("{}={}", cookie.name, cookie.value))
            .collect();
        let mut request = match form {
            Some(form) => Request::post(uri)
                .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
                .body(Bytes::from(form)),
            None => Request::get(uri).body(Bytes::new()),
        }
        .map_err(|error| lost(url, &error.to_string()))?;
        if let Ok(cookies) = cookies.join("; ").parse() {
            request.headers_mut().insert(COOKIE, cookies);
        }
        let answer = self.requests.send(request).await?;
        for cookie in answer.headers().get_all(SET_COOKIE).iter().filter_map(|value| value.to_str().ok()) {
            self.keep(cookie);
        }
        Ok(answer)
    }

    fn keep(&self, cookie: &str) {
        let mut parts = cookie.split("; ");
        let Some((name, value)) = parts.next().and_then(|pair| pair.split_once('=')) else { return };
        let path = parts.find_map(|part| part.strip_prefix("path=")).unwrap_or("/").to_owned();
        let mut cookies = lock(&self.cookies);
        cookies.retain(|own| own.name != name || own.path != path);
        // One without a value is taken away.
        if !value.is_empty() {
            cookies.push(Cookie { name: name.to_owned(), path, value: value.to_owned() });
        }
    }

    /// Where the form of a page goes, and what goes there.
    fn fill(&self, page: &str) -> Option<(String, String)> {
        let form = tags(page, "form").next()?;
        let action = attribute(form, "action")?;
        let mut filled = Vec::new();
        for input in tags(page, "input") {
            let Some(name) = attribute(input, "name") else { continue };
            let value = match name.as_str() {
                "login" => "ann".to_owned(),
                "password" => "s3cret".to_owned(),
                _ => attribute(input, "value").unwrap_or_default(),
            };
            if name == "prompt" {
                lock(&self.seen).push(value.clone());
            }
            // What forms have here are words and random letters.
            filled.push(format!("{name}={value}"));
        }
        Some((action, filled.join("&")))
    }
}

impl Consent for User {
    type Visit = Visiting;

    async fn begin(&self, before: Option<&str>) -> Result<Visiting> {
        let listening = Loopback::new(|_| Ok(())).begin(before).await?;
        Ok(Visiting { listening, user: self.clone() })
    }
}

/// The way of a user to the authorization server and back.
pub(super) struct Visiting {
    listening: Listening,
    user: User,
}

impl Visit for Visiting {
    fn redirect_uri(&self) -> &str {
        self.listening.redirect_uri()
    }

    async fn ask(self, url: &str) -> Result<String> {
        let (came_back, ()) = tokio::try_join!(self.listening.ask(url), self.user.visit(url))?;
        Ok(came_back)
    }
}

/// The insides of all tags of this name.
fn tags<'a>(page: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let start = format!("<{name} ");
    page.match_indices(&start)
        .map(|(at, start)| page[at + start.len()..].split('>').next().unwrap_or_default())
        .collect::<Vec<_>>()
        .into_iter()
}

fn links(page: &str) -> impl Iterator<Item = String> {
    tags(page, "a").filter_map(|tag| attribute(tag, "href"))
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let (_, rest) = tag.split_once(&format!("{name}=\""))?;
    Some(rest.split_once('"')?.0.replace("&amp;", "&"))
}

fn absolute(from: &str, to: &str) -> Result<String> {
    if !to.starts_with('/') {
        return Ok(to.to_owned());
    }
    let from: Uri = from.parse().map_err(|_| lost(from, "no address"))?;
    let authority = from.authority().map(|authority| authority.as_str()).unwrap_or_default();
    Ok(format!("{}://{authority}{to}", from.scheme_str().unwrap_or_default()))
}

fn lost(url: &str, why: &str) -> Error {
    Error::Refused(format!("the browser got lost at `{}`: {why}", url.split('?').next().unwrap_or_default()))
}

fn lock<T>(own: &Mutex<T>) -> MutexGuard<'_, T> {
    own.lock().unwrap_or_else(PoisonError::into_inner)
}
