use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode,
    header::{
        ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
        ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
        ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
    },
};
use pin_project_lite::pin_project;
use pintle_proto::http::{Guard, Head};
use tower_layer::Layer;
use tower_service::Service;

/// Lets pages of other origins use a server: those that its guard lets in (CORS).
///
/// It is a layer. Put it around everything else, authentication too: a browser asks for leave before it sends a token,
/// and shows a page no answer without these headers, not even a 401. Cookies are not allowed for.
///
/// ```
/// use pintle::{proto::http::Guard, server::http::Cors};
/// use tower_layer::Layer;
///
/// # fn around<S>(service: S) {
/// let guard = Guard::hosts(["mcp.example.com"]).origins(["https://app.example.com"]);
/// let service = Cors::new(guard).allow_headers(["x-request-id"]).layer(service);
/// # }
/// # around(());
/// ```
#[derive(Clone, Debug)]
pub struct Cors {
    guard: Guard,
    allowed: Vec<String>,
    exposed: HeaderValue,
    max_age: Duration,
}

impl Cors {
    /// For the origins that this guard lets in; give the service the same.
    pub fn new(guard: Guard) -> Self {
        Self {
            guard,
            allowed: ALLOWED.map(str::to_owned).into(),
            exposed: HeaderValue::from_static(EXPOSED),
            max_age: Duration::from_secs(2 * 3600),
        }
    }

    /// Lets pages send these headers too, besides those of the protocol. Names that end in `*` stand for all that begin
    /// so.
    #[must_use]
    pub fn allow_headers<T: AsRef<str>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.allowed.extend(names.into_iter().map(|name| name.as_ref().to_ascii_lowercase()));
        self
    }

    /// Lets pages read these headers of answers too.
    #[must_use]
    pub fn expose_headers(mut self, names: impl IntoIterator<Item = HeaderName>) -> Self {
        let mut exposed = self.exposed.as_bytes().to_vec();
        for name in names {
            exposed.extend_from_slice(b", ");
            exposed.extend_from_slice(name.as_str().as_bytes());
        }
        // A list of names is always a value.
        self.exposed = HeaderValue::from_bytes(&exposed).unwrap_or(self.exposed);
        self
    }

    /// For how long a browser may remember what it is allowed. 2 hours, the most that any of them takes.
    #[must_use]
    pub fn max_age(mut self, max_age: Duration) -> Self {
        self.max_age = max_age;
        self
    }

    /// What the answer to a request says of CORS.
    fn judge<B>(&self, request: &Request<B>) -> Verdict {
        let headers = request.headers();
        let Some(origin) = headers.get(ORIGIN) else { return Verdict::Pass(None) };
        let head = Head::new(request.method(), request.uri(), headers);
        let once = headers.get_all(ORIGIN).iter().nth(1).is_none();
        if !once || self.guard.check(&head).is_err() {
            return Verdict::Pass(None);
        }
        if request.method() == Method::OPTIONS && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD) {
            return Verdict::Preflight(self.preflight(origin, headers));
        }
        Verdict::Pass(Some(Page { origin: origin.clone(), exposed: self.exposed.clone() }))
    }

    /// The headers of the leave that an origin is given.
    fn preflight(&self, origin: &HeaderValue, asked: &HeaderMap) -> HeaderMap {
        let asked =
            asked.get_all(ACCESS_CONTROL_REQUEST_HEADERS).iter().filter_map(|names| names.to_str().ok());
        let names = asked.flat_map(|names| names.split(',')).map(|name| name.trim().to_ascii_lowercase());
        let granted: Vec<_> = names.filter(|name| self.allows(name)).collect();
        let mut leave = HeaderMap::with_capacity(6);
        leave.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        leave.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
        leave.insert(ACCESS_CONTROL_MAX_AGE, self.max_age.as_secs().into());
        leave.insert(VARY, HeaderValue::from_static(ASKED));
        if let (false, Ok(granted)) = (granted.is_empty(), HeaderValue::try_from(granted.join(", "))) {
            leave.insert(ACCESS_CONTROL_ALLOW_HEADERS, granted);
        }
        leave
    }

    fn allows(&self, name: &str) -> bool {
        self.allowed.iter().any(|allowed| match allowed.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix) && HeaderName::try_from(name).is_ok(),
            None => name == allowed,
        })
    }
}

impl<S> Layer<S> for Cors {
    type Service = CorsService<S>;

    fn layer(&self, inner: S) -> CorsService<S> {
        CorsService { inner, cors: Arc::new(self.clone()) }
    }
}

/// The headers of requests that the protocol has.
const ALLOWED: [&str; 10] = [
    "content-type",
    "accept",
    "authorization",
    "dpop",
    "mcp-protocol-version",
    "mcp-session-id",
    "mcp-method",
    "mcp-name",
    "mcp-param-*",
    "last-event-id",
];

/// The headers of answers that a client has to read.
const EXPOSED: &str = "Mcp-Session-Id, WWW-Authenticate, MCP-Protocol-Version";

const METHODS: &str = "GET, POST, DELETE";

const ASKED: &str = "Origin, Access-Control-Request-Method, Access-Control-Request-Headers";

enum Verdict {
    /// The browser asks for leave: this is the answer.
    Preflight(HeaderMap),
    /// A request like any other, and the page that may read the answer.
    Pass(Option<Page>),
}

#[derive(Debug)]
struct Page {
    origin: HeaderValue,
    exposed: HeaderValue,
}

/// Lets a page read an answer.
fn expose(page: Option<Page>, answer: &mut HeaderMap) {
    // Also where there was no origin: a cache must not give that answer to a page.
    answer.append(VARY, HeaderValue::from_static("Origin"));
    if let Some(Page { origin, exposed }) = page {
        answer.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        answer.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    }
}

/// A service that pages of other origins may use. [`Cors`] makes it.
#[derive(Clone, Debug)]
pub struct CorsService<S> {
    inner: S,
    cors: Arc<Cors>,
}

impl<S, B, R> Service<Request<B>> for CorsService<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    R: Default,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = CorsFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> CorsFuture<S::Future> {
        match self.cors.judge(&request) {
            Verdict::Preflight(leave) => CorsFuture { run: Run::Leave { leave } },
            Verdict::Pass(page) => CorsFuture { run: Run::Inner { answer: self.inner.call(request), page } },
        }
    }
}

pin_project! {
    /// The answer of a [`CorsService`].
    #[derive(Debug)]
    pub struct CorsFuture<F> {
        #[pin]
        run: Run<F>,
    }
}

pin_project! {
    #[project = Running]
    #[derive(Debug)]
    enum Run<F> {
        Leave { leave: HeaderMap },
        Inner { #[pin] answer: F, page: Option<Page> },
    }
}

impl<F, R, E> Future for CorsFuture<F>
where
    F: Future<Output = Result<Response<R>, E>>,
    R: Default,
{
    type Output = Result<Response<R>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().run.project() {
            Running::Leave { leave } => {
                let mut answer = Response::new(R::default());
                *answer.status_mut() = StatusCode::NO_CONTENT;
                *answer.headers_mut() = std::mem::take(leave);
                Poll::Ready(Ok(answer))
            }
            Running::Inner { answer, page } => {
                let mut answer = ready!(answer.poll(cx))?;
                expose(page.take(), answer.headers_mut());
                Poll::Ready(Ok(answer))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, future::Ready, task::Waker};

    use super::*;

    /// Says no, as authentication does, and counts how often it had to.
    #[derive(Clone, Default)]
    struct Refusing(usize);

    impl Service<Request<()>> for Refusing {
        type Response = Response<String>;
        type Error = Infallible;
        type Future = Ready<Result<Response<String>, Infallible>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: Request<()>) -> Self::Future {
            self.0 += 1;
            let answer = Response::builder().status(401).header(VARY, "Accept").body("who are you?".into());
            std::future::ready(Ok(answer.unwrap()))
        }
    }

    fn request(method: &str, lines: &str) -> Request<()> {
        let mut request = Request::builder().method(method).uri("/mcp");
        for (name, value) in lines.lines().map(|line| line.split_once(": ").unwrap()) {
            request = request.header(name, value);
        }
        request.body(()).unwrap()
    }

    fn cors() -> Cors {
        Cors::new(Guard::loopback().origins(["https://app.example.com"]))
    }

    /// Status and headers of an answer in lines, and whether the service within was called.
    fn answer(cors: &Cors, method: &str, lines: &str) -> (String, bool) {
        let mut service = cors.layer(Refusing::default());
        let mut future = std::pin::pin!(service.call(request(method, lines)));
        let Poll::Ready(Ok(answer)) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
            panic!("it waits")
        };
        let mut lines: Vec<_> = answer
            .headers()
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        lines.sort();
        (format!("{}\n{}", answer.status().as_u16(), lines.join("\n")), service.inner.0 > 0)
    }

    const ASKS: &str =
        "host: localhost\norigin: https://app.example.com\naccess-control-request-method: POST";

    #[test]
    fn leave_is_given_without_asking_anyone_else() {
        let (said, called) = answer(
            &cors(),
            "OPTIONS",
            &format!("{ASKS}\naccess-control-request-headers: content-type,mcp-protocol-version"),
        );
        assert_eq!(
            said,
            "204\n\
             access-control-allow-headers: content-type, mcp-protocol-version\n\
             access-control-allow-methods: GET, POST, DELETE\n\
             access-control-allow-origin: https://app.example.com\n\
             access-control-max-age: 7200\n\
             vary: Origin, Access-Control-Request-Method, Access-Control-Request-Headers"
        );
        assert!(!called);
    }

    #[test]
    fn answers_may_be_read_by_pages_that_are_let_in() {
        let exposed = "access-control-expose-headers: Mcp-Session-Id, WWW-Authenticate, MCP-Protocol-Version";
        for origin in ["https://app.example.com", "http://localhost:5173"] {
            let (said, _) = answer(&cors(), "POST", &format!("host: localhost\norigin: {origin}"));
            assert_eq!(
                said,
                format!("401\naccess-control-allow-origin: {origin}\n{exposed}\nvary: Accept\nvary: Origin")
            );
        }
    }

    #[test]
    fn who_is_not_let_in_by_the_guard_gets_no_leave() {
        let plain = ("401\nvary: Accept\nvary: Origin".to_owned(), true);
        for lines in [
            "host: localhost",
            "host: localhost\norigin: https://evil.example.com",
            "host: localhost\norigin: null",
            "host: evil.example.com\norigin: https://app.example.com",
            "host: localhost\norigin: https://app.example.com\norigin: https://app.example.com",
        ] {
            assert_eq!(answer(&cors(), "POST", lines), plain, "{lines}");
            let asks = format!("{lines}\naccess-control-request-method: POST");
            assert_eq!(answer(&cors(), "OPTIONS", &asks), plain, "{lines}");
        }
    }

    #[test]
    fn other_options_requests_are_the_services() {
        let (said, called) = answer(&cors(), "OPTIONS", "host: localhost\norigin: https://app.example.com");
        assert!(called && said.starts_with("401\naccess-control-allow-origin: https://app.example.com\n"));
        let (_, called) = answer(&cors(), "OPTIONS", "host: localhost\naccess-control-request-method: POST");
        assert!(called, "no page asks without an origin");
        let (_, called) = answer(&cors(), "POST", ASKS);
        assert!(called);
    }

    fn granted(cors: &Cors, asked: &str) -> Option<String> {
        let lines = format!("{ASKS}\naccess-control-request-headers: {asked}");
        let Verdict::Preflight(leave) = cors.judge(&request("OPTIONS", &lines)) else { panic!("it is one") };
        leave.get(ACCESS_CONTROL_ALLOW_HEADERS).map(|names| names.to_str().unwrap().to_owned())
    }

    #[test]
    fn the_headers_of_the_protocol_may_be_sent_and_no_others() {
        let all = "content-type, accept, authorization, mcp-protocol-version, mcp-session-id, mcp-method, mcp-name, last-event-id";
        for (asked, names) in [
            (all, Some(all)),
            ("Content-Type, MCP-Session-Id", Some("content-type, mcp-session-id")),
            ("mcp-param-region,mcp-param-user_id", Some("mcp-param-region, mcp-param-user_id")),
            ("x-other, accept", Some("accept")),
            ("mcp-param-a b, mcp-param-\"", None),
            ("cookie", None),
            ("*", None),
            ("", None),
        ] {
            assert_eq!(granted(&cors(), asked).as_deref(), names, "{asked}");
        }
        let more = cors().allow_headers(["X-Request-Id", "x-trace-*"]);
        assert_eq!(granted(&more, "x-request-id, x-trace-a, x-other").unwrap(), "x-request-id, x-trace-a");
    }

    #[test]
    fn more_can_be_read_and_remembered_for_less() {
        let cors = cors().expose_headers([HeaderName::from_static("x-request-id")]).max_age(Duration::ZERO);
        let (said, _) = answer(&cors, "GET", "host: localhost\norigin: https://app.example.com");
        assert!(said.contains("WWW-Authenticate, MCP-Protocol-Version, x-request-id\n"), "{said}");
        assert!(answer(&cors, "OPTIONS", ASKS).0.contains("access-control-max-age: 0\n"));
    }

    #[test]
    fn any_origin_is_named() {
        let any = Cors::new(Guard::any_host().any_origin());
        let (said, _) = answer(&any, "POST", "host: a\norigin: https://b.example");
        assert!(said.contains("access-control-allow-origin: https://b.example\n"), "{said}");
    }
}
