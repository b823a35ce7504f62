use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Uri, header};
use pintle::server::http::nodes::{NodeEvent, NodeId, Nodes};
use serde::{Deserialize, Serialize};
use tokio::{sync::oneshot, task::AbortHandle, time::timeout};

use super::{
    page::{message, with_headers},
    pages::{CALLBACK, LoginNames, LoginPages, random},
};

/// The time that another process has to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// The time after which messages are received again when Redis has failed.
const RETRY: Duration = Duration::from_secs(1);
/// The limit of the time that it takes to leave the other processes.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(2);
/// The limit of requests that wait for another process.
const MAX_WAITING: usize = 1_000;
/// The limit of bytes of the address and of the cookies of a request.
const MAX_BYTES: usize = 32 << 10;

/// The processes of a gateway, whose login pages can be opened at any of them.
///
/// A login belongs to the process that has given its link away, which is a part of the link and of the cookie. A process that is asked for
/// the page of another passes the request on to it, and the answer back.
pub(in super::super) struct LoginFleet {
    inner: Arc<LoginFleetInner>,
    receiving: AbortHandle,
}

struct LoginFleetInner {
    pages: Arc<LoginPages>,
    nodes: Arc<dyn Nodes>,
    waiting: Mutex<HashMap<String, oneshot::Sender<PassedPage>>>,
    /// Whether this process has left the others.
    has_left: AtomicBool,
}

/// A message from one process to another.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
enum LoginMessage {
    Request { id: String, from: String, request: PassedRequest },
    Page { id: String, page: PassedPage },
}

/// A request of a browser.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct PassedRequest {
    method: String,
    /// The path and the query.
    uri: String,
    cookies: String,
}

/// A page that answers it.
#[derive(Debug, Deserialize, Serialize)]
struct PassedPage {
    status: u16,
    location: Option<String>,
    cookie: Option<String>,
    html: String,
}

impl LoginFleet {
    /// Answers the requests of other processes for pages, until it is dropped.
    pub(in super::super) fn start(pages: Arc<LoginPages>, nodes: Arc<dyn Nodes>) -> Self {
        let inner = Arc::new(LoginFleetInner {
            pages,
            nodes,
            waiting: Mutex::default(),
            has_left: AtomicBool::new(false),
        });
        let receiving = tokio::spawn(inner.clone().receive()).abort_handle();
        Self { inner, receiving }
    }

    /// Answers a request for one of the pages, of this process or of another; `None` if its path is another.
    pub(in super::super) fn answer(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Option<impl Future<Output = Response<String>> + Send + 'static> {
        let own = self.inner.pages.answer(method, uri, headers)?;
        let mut owners = self.inner.pages.other_owners(uri, headers);
        // What comes back does not say whose it is.
        if uri.path() == CALLBACK && own.status() != StatusCode::GONE {
            owners.clear();
        }
        let (inner, request) = (self.inner.clone(), PassedRequest::of(method, uri, headers));
        Some(async move { if owners.is_empty() { own } else { inner.pass(request, owners).await } })
    }
}

impl LoginFleet {
    /// Leaves the other processes, because this one is ending: they tell users at once that its logins are over, and it passes on no more
    /// requests.
    pub(in super::super) async fn leave(&self) {
        self.inner.has_left.store(true, Ordering::Release);
        self.receiving.abort();
        // Otherwise the others find out when its lease has ended.
        let _ = timeout(LEAVE_TIMEOUT, self.inner.nodes.close()).await;
    }
}

impl Drop for LoginFleet {
    fn drop(&mut self) {
        self.receiving.abort();
    }
}

impl LoginFleetInner {
    /// Asks the processes that may have a login, until one has it.
    async fn pass(&self, request: Option<PassedRequest>, owners: Vec<NodeId>) -> Response<String> {
        let Some(request) = request else {
            return message(
                StatusCode::URI_TOO_LONG,
                "The address or the cookies of this request are too long.",
            );
        };
        let mut last = ended();
        for owner in owners {
            last = self.ask(request.clone(), owner).await;
            if last.status() != StatusCode::GONE {
                break;
            }
        }
        last
    }

    async fn ask(&self, request: PassedRequest, owner: NodeId) -> Response<String> {
        if self.has_left.load(Ordering::Acquire) {
            // The answer would not come back.
            return unanswered();
        }
        let Ok(id) = random() else { return unanswered() };
        let (answered, answer) = oneshot::channel();
        {
            let mut waiting = self.waiting();
            if waiting.len() >= MAX_WAITING {
                return unanswered();
            }
            waiting.insert(id.clone(), answered);
        }
        let _waiting = PassedGuard { fleet: self, id: id.clone() };
        let request = LoginMessage::Request { id, from: self.nodes.id().to_string(), request };
        match self.send(owner, &request).await {
            Some(true) => {}
            Some(false) => return ended(),
            None => return unanswered(),
        }
        match timeout(ANSWER_TIMEOUT, answer).await {
            Ok(Ok(page)) => page.into_response(),
            Ok(Err(_)) | Err(_) => unanswered(),
        }
    }

    /// Sends a message. Returns `false` if the process is gone, and `None` if that is not known.
    async fn send(&self, node: NodeId, message: &LoginMessage) -> Option<bool> {
        let message = Bytes::from(serde_json::to_vec(message).ok()?);
        self.nodes.send_to(node, message).await.ok()
    }

    async fn receive(self: Arc<Self>) {
        loop {
            match self.nodes.receive().await {
                Ok(NodeEvent::Message(message)) => self.received(&message).await,
                Ok(NodeEvent::Change(change)) => {
                    if let Ok(names) = serde_json::from_slice::<LoginNames>(&change) {
                        self.pages.connected_elsewhere(&names);
                    }
                }
                Ok(_) => {}
                Err(_) => tokio::time::sleep(RETRY).await,
            }
        }
    }

    async fn received(&self, message: &[u8]) {
        match serde_json::from_slice(message) {
            Ok(LoginMessage::Request { id, from, request }) => {
                let (Some(page), Ok(from)) = (request.answer(&self.pages), from.parse()) else { return };
                // Who asked waits for a while, and tells the user to repeat it.
                self.send(from, &LoginMessage::Page { id, page }).await;
            }
            Ok(LoginMessage::Page { id, page }) => {
                if let Some(waiting) = self.waiting().remove(&id) {
                    // The browser may be gone.
                    let _ = waiting.send(page);
                }
            }
            Err(_) => {}
        }
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<String, oneshot::Sender<PassedPage>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that waits for another process, until this is dropped.
struct PassedGuard<'a> {
    fleet: &'a LoginFleetInner,
    id: String,
}

impl Drop for PassedGuard<'_> {
    fn drop(&mut self) {
        self.fleet.waiting().remove(&self.id);
    }
}

impl PassedRequest {
    /// Returns what a page depends on; `None` if it is too long.
    fn of(method: &Method, uri: &Uri, headers: &HeaderMap) -> Option<Self> {
        let cookies = headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
        let cookies = cookies.collect::<Vec<_>>().join("; ");
        let uri = uri.path_and_query()?.as_str();
        let is_short = uri.len() + cookies.len() <= MAX_BYTES;
        is_short.then(|| Self { method: method.to_string(), uri: uri.to_owned(), cookies })
    }

    fn answer(&self, pages: &LoginPages) -> Option<PassedPage> {
        let cookies = HeaderValue::from_str(&self.cookies).ok()?;
        let headers = HeaderMap::from_iter([(header::COOKIE, cookies)]);
        let response = pages.answer(&self.method.parse().ok()?, &self.uri.parse().ok()?, &headers)?;
        let header = |name| response.headers().get(name)?.to_str().ok().map(str::to_owned);
        Some(PassedPage {
            status: response.status().as_u16(),
            location: header(header::LOCATION),
            cookie: header(header::SET_COOKIE),
            html: response.into_body(),
        })
    }
}

impl PassedPage {
    fn into_response(self) -> Response<String> {
        let Ok(status) = StatusCode::from_u16(self.status) else { return unanswered() };
        let mut response = with_headers(status, self.html);
        for (name, value) in [(header::LOCATION, self.location), (header::SET_COOKIE, self.cookie)] {
            if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
                response.headers_mut().insert(name, value);
            }
        }
        response
    }
}

fn ended() -> Response<String> {
    let text = "The process of the gateway that had this login has ended, and nothing was connected. Go back to your program and call again, \
                which gives you a new link.";
    message(StatusCode::GONE, text)
}

fn unanswered() -> Response<String> {
    let text =
        "The process of the gateway that has this login does not answer. Load this page again in a moment.";
    message(StatusCode::SERVICE_UNAVAILABLE, text)
}

#[cfg(test)]
mod tests {
    use pintle::server::http::nodes::MemoryFleet;
    use tokio::time::Instant;

    use tokio::sync::watch;

    use super::*;

    struct LoginProcess {
        pages: Arc<LoginPages>,
        fleet: LoginFleet,
    }

    fn process(fleet: &MemoryFleet) -> LoginProcess {
        let nodes: Arc<dyn Nodes> = Arc::new(fleet.node().unwrap());
        let pages = Arc::new(LoginPages::new("https://mcp.example", Some(nodes.clone())).unwrap());
        LoginProcess { fleet: LoginFleet::start(pages.clone(), nodes), pages }
    }

    impl LoginProcess {
        async fn get(&self, url: &str, cookie: &str) -> Response<String> {
            let headers = HeaderMap::from_iter([(header::COOKIE, cookie.parse().unwrap())]);
            self.fleet.answer(&Method::GET, &url.parse().unwrap(), &headers).unwrap().await
        }
    }

    fn names(principal: &str) -> LoginNames {
        let server = "https://notes.example/mcp".to_owned();
        LoginNames { principal: principal.to_owned(), target: "notes".to_owned(), server }
    }

    const AUTHORIZE: &str = "https://login.example/authorize?state=s";

    #[tokio::test(start_paused = true)]
    async fn a_page_of_another_process_is_shown_and_one_of_a_process_that_is_gone_says_so() {
        let fleet = MemoryFleet::new();
        let (one, two) = (process(&fleet), process(&fleet));
        let link = one.pages.open(names("ann"), AUTHORIZE, &watch::Sender::default()).unwrap();
        let (here, there) = (one.get(&link.url(), "").await, two.get(&link.url(), "").await);
        for shown in [&here, &there] {
            assert_eq!(shown.status(), StatusCode::OK, "{}", shown.body());
            assert!(shown.headers().contains_key(header::SET_COOKIE) && shown.body().contains("I am ann"));
            assert_eq!(shown.headers()[header::X_FRAME_OPTIONS], "DENY");
        }
        // The links of this process, of none and of one that never was are not passed on for ever.
        let url = link.url();
        drop(link);
        assert!(two.get(&url, "").await.body().contains("has been used"));
        for unknown in ["nonsense", "0000000000000001.nonsense", "callback?state=s"] {
            let cookie = "__Host-pintle-login-0=0000000000000001.x";
            let gone = two.get(&format!("https://mcp.example/login/{unknown}"), cookie).await;
            assert_eq!(gone.status(), StatusCode::GONE, "{unknown}: {}", gone.body());
        }
        let gone = two.get("https://mcp.example/login/0000000000000001.nonsense", "").await;
        assert!(gone.body().contains("has ended"), "{}", gone.body());
        // A process that receives nothing is waited for no longer than a while.
        let silent: Arc<dyn Nodes> = Arc::new(fleet.node().unwrap());
        let late = two.get(&format!("https://mcp.example/login/{}.x", silent.id()), "").await;
        assert_eq!(late.status(), StatusCode::SERVICE_UNAVAILABLE, "{}", late.body());
        assert!(two.fleet.inner.waiting().is_empty(), "nothing is left");
    }

    #[tokio::test(start_paused = true)]
    async fn the_links_of_a_process_that_is_ending_say_so_at_once() {
        let fleet = MemoryFleet::new();
        let (one, two) = (process(&fleet), process(&fleet));
        let of_one = one.pages.open(names("ann"), AUTHORIZE, &watch::Sender::default()).unwrap();
        let of_two = two.pages.open(names("bob"), AUTHORIZE, &watch::Sender::default()).unwrap();
        assert_eq!(two.get(&of_one.url(), "").await.status(), StatusCode::OK);
        let start = Instant::now();
        one.fleet.leave().await;
        let gone = two.get(&of_one.url(), "").await;
        assert_eq!(gone.status(), StatusCode::GONE, "{}", gone.body());
        assert!(gone.body().contains("has ended"), "{}", gone.body());
        // Those of the others are not passed on any more: another process answers them.
        let elsewhere = one.get(&of_two.url(), "").await;
        assert_eq!(elsewhere.status(), StatusCode::SERVICE_UNAVAILABLE, "{}", elsewhere.body());
        assert_eq!(two.get(&of_two.url(), "").await.status(), StatusCode::OK);
        assert_eq!(start.elapsed(), Duration::ZERO, "nobody waits");
    }

    #[tokio::test]
    async fn a_login_at_one_process_ends_those_of_the_same_principal_at_the_others() {
        let fleet = MemoryFleet::new();
        let (one, two) = (process(&fleet), process(&fleet));
        let mut connections = two.pages.connections();
        let (ann, bob) = (
            two.pages.open(names("ann"), AUTHORIZE, &watch::Sender::default()).unwrap(),
            two.pages.open(names("bob"), AUTHORIZE, &watch::Sender::default()),
        );
        one.pages.connected(&names("ann")).await;
        connections.changed().await.unwrap();
        assert_eq!(two.get(&ann.url(), "").await.status(), StatusCode::GONE);
        assert_eq!(two.get(&bob.unwrap().url(), "").await.status(), StatusCode::OK);
        assert!(ann.came_back().await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_passed_on_is_bounded() {
        let fleet = MemoryFleet::new();
        let (one, two) = (process(&fleet), process(&fleet));
        let link = one.pages.open(names("ann"), AUTHORIZE, &watch::Sender::default()).unwrap();
        let long = two.get(&link.url(), &format!("a={}", "x".repeat(MAX_BYTES))).await;
        assert_eq!(long.status(), StatusCode::URI_TOO_LONG, "{}", long.body());
        // A browser may have the cookies of many processes.
        let cookies: Vec<_> =
            (1..10).map(|number| format!("__Host-pintle-login-{number}={number:016x}.x")).collect();
        let headers = HeaderMap::from_iter([(header::COOKIE, cookies.join("; ").parse().unwrap())]);
        let callback = "https://mcp.example/login/callback?state=s".parse().unwrap();
        assert_eq!(two.pages.other_owners(&callback, &headers).len(), 4);

        let mut waiting = Vec::new();
        for number in 0..MAX_WAITING {
            let (answered, answer) = oneshot::channel();
            two.fleet.inner.waiting().insert(number.to_string(), answered);
            waiting.push(answer);
        }
        let start = Instant::now();
        let busy = two.get(&link.url(), "").await;
        assert_eq!(busy.status(), StatusCode::SERVICE_UNAVAILABLE, "{}", busy.body());
        assert_eq!((start.elapsed(), two.fleet.inner.waiting().len()), (Duration::ZERO, MAX_WAITING));
        two.fleet.inner.waiting().clear();
        assert_eq!(two.get(&link.url(), "").await.status(), StatusCode::OK);
    }
}
