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

/// A `tower` layer that implements CORS for the origins that a [`Guard`] allows.
///
/// Apply it outside all other layers, including authentication: a browser sends preflight requests without a token, and
/// hides every response without CORS headers from the page, even a 401. Credentials such as cookies are not allowed.
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
    /// Creates a layer for the origins that this guard allows. Use the same guard for the service.
    pub fn new(guard: Guard) -> Self {
        Self {
            guard,
            allowed: ALLOWED.map(str::to_owned).into(),
            exposed: HeaderValue::from_static(EXPOSED),
            max_age: Duration::from_secs(2 * 3600),
        }
    }

    /// Allows these request headers, in addition to those of the protocol. A name that ends in `*` matches by prefix.
    #[must_use]
    pub fn allow_headers<T: AsRef<str>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.allowed.extend(names.into_iter().map(|name| name.as_ref().to_ascii_lowercase()));
        self
    }

    /// Exposes these response headers, in addition to those of the protocol.
    #[must_use]
    pub fn expose_headers(mut self, names: impl IntoIterator<Item = HeaderName>) -> Self {
        let mut exposed = self.exposed.as_bytes().to_vec();
        for name in names {
            exposed.extend_from_slice(b", ");
            exposed.extend_from_slice(name.as_str().as_bytes());
        }
        // A list of header names is always a valid value.
        self.exposed = HeaderValue::from_bytes(&exposed).unwrap_or(self.exposed);
        self
    }

    /// Sets how long a browser may cache the result of a preflight request. Default: 2 hours, the maximum that any browser
    /// accepts.
    #[must_use]
    pub fn max_age(mut self, max_age: Duration) -> Self {
        self.max_age = max_age;
        self
    }

    /// Decides how to respond to a request.
    fn decide<B>(&self, request: &Request<B>) -> CorsDecision {
        let headers = request.headers();
        let Some(origin) = headers.get(ORIGIN) else { return CorsDecision::Pass(None) };
        let head = Head::new(request.method(), request.uri(), headers);
        let once = headers.get_all(ORIGIN).iter().nth(1).is_none();
        if !once || self.guard.check(&head).is_err() {
            return CorsDecision::Pass(None);
        }
        if request.method() == Method::OPTIONS && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD) {
            return CorsDecision::Preflight(self.preflight(origin, headers));
        }
        CorsDecision::Pass(Some(AllowedOrigin { origin: origin.clone(), exposed: self.exposed.clone() }))
    }

    /// Returns the headers of a preflight response.
    fn preflight(&self, origin: &HeaderValue, request: &HeaderMap) -> HeaderMap {
        let requested =
            request.get_all(ACCESS_CONTROL_REQUEST_HEADERS).iter().filter_map(|names| names.to_str().ok());
        let names = requested.flat_map(|names| names.split(',')).map(|name| name.trim().to_ascii_lowercase());
        let granted: Vec<_> = names.filter(|name| self.allows(name)).collect();
        let mut headers = HeaderMap::with_capacity(6);
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
        headers.insert(ACCESS_CONTROL_MAX_AGE, self.max_age.as_secs().into());
        headers.insert(VARY, HeaderValue::from_static(PREFLIGHT_VARY));
        if let (false, Ok(granted)) = (granted.is_empty(), HeaderValue::try_from(granted.join(", "))) {
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, granted);
        }
        headers
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

/// The request headers of the protocol.
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

/// The response headers that a client has to read.
const EXPOSED: &str = "Mcp-Session-Id, WWW-Authenticate, MCP-Protocol-Version";

const METHODS: &str = "GET, POST, DELETE";

const PREFLIGHT_VARY: &str = "Origin, Access-Control-Request-Method, Access-Control-Request-Headers";

enum CorsDecision {
    /// Responds to a preflight request with these headers.
    Preflight(HeaderMap),
    /// Calls the service. The response may be read by pages of this origin, if there is one.
    Pass(Option<AllowedOrigin>),
}

#[derive(Debug)]
struct AllowedOrigin {
    origin: HeaderValue,
    exposed: HeaderValue,
}

/// Adds the CORS headers to a response.
fn expose(allowed: Option<AllowedOrigin>, headers: &mut HeaderMap) {
    // Also without an origin: a cache must not serve that response to a page.
    headers.append(VARY, HeaderValue::from_static("Origin"));
    if let Some(AllowedOrigin { origin, exposed }) = allowed {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    }
}

/// A service with CORS headers, created by the layer [`Cors`].
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
        match self.cors.decide(&request) {
            CorsDecision::Preflight(headers) => CorsFuture { state: CorsState::Preflight { headers } },
            CorsDecision::Pass(allowed) => {
                CorsFuture { state: CorsState::Inner { response: self.inner.call(request), allowed } }
            }
        }
    }
}

pin_project! {
    /// The response future of a [`CorsService`].
    #[derive(Debug)]
    pub struct CorsFuture<F> {
        #[pin]
        state: CorsState<F>,
    }
}

pin_project! {
    #[project = CorsStateProj]
    #[derive(Debug)]
    enum CorsState<F> {
        Preflight { headers: HeaderMap },
        Inner { #[pin] response: F, allowed: Option<AllowedOrigin> },
    }
}

impl<F, R, E> Future for CorsFuture<F>
where
    F: Future<Output = Result<Response<R>, E>>,
    R: Default,
{
    type Output = Result<Response<R>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            CorsStateProj::Preflight { headers } => {
                let mut response = Response::new(R::default());
                *response.status_mut() = StatusCode::NO_CONTENT;
                *response.headers_mut() = std::mem::take(headers);
                Poll::Ready(Ok(response))
            }
            CorsStateProj::Inner { response, allowed } => {
                let mut response = ready!(response.poll(cx))?;
                expose(allowed.take(), response.headers_mut());
                Poll::Ready(Ok(response))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, future::Ready, task::Waker};

    use super::*;

    /// A service that responds with 401, and counts its calls.
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

    /// Returns the status and headers of a response, and whether the inner service was called.
    fn answer(cors: &Cors, method: &str, lines: &str) -> (String, bool) {
        let mut service = cors.layer(Refusing::default());
        let mut future = std::pin::pin!(service.call(request(method, lines)));
        let Poll::Ready(Ok(answer)) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
            panic!("the response is pending")
        };
        let mut lines: Vec<_> = answer
            .headers()
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        lines.sort();
        (format!("{}\n{}", answer.status().as_u16(), lines.join("\n")), service.inner.0 > 0)
    }

    const PREFLIGHT: &str =
        "host: localhost\norigin: https://app.example.com\naccess-control-request-method: POST";

    #[test]
    fn a_preflight_request_is_answered_without_the_service() {
        let (response, called) = answer(
            &cors(),
            "OPTIONS",
            &format!("{PREFLIGHT}\naccess-control-request-headers: content-type,mcp-protocol-version"),
        );
        assert_eq!(
            response,
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
    fn responses_are_exposed_to_allowed_origins() {
        let exposed = "access-control-expose-headers: Mcp-Session-Id, WWW-Authenticate, MCP-Protocol-Version";
        for origin in ["https://app.example.com", "http://localhost:5173"] {
            let (response, _) = answer(&cors(), "POST", &format!("host: localhost\norigin: {origin}"));
            assert_eq!(
                response,
                format!("401\naccess-control-allow-origin: {origin}\n{exposed}\nvary: Accept\nvary: Origin")
            );
        }
    }

    #[test]
    fn origins_that_the_guard_refuses_get_no_cors_headers() {
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
    fn other_options_requests_go_to_the_service() {
        let (response, called) =
            answer(&cors(), "OPTIONS", "host: localhost\norigin: https://app.example.com");
        assert!(
            called && response.starts_with("401\naccess-control-allow-origin: https://app.example.com\n")
        );
        let (_, called) = answer(&cors(), "OPTIONS", "host: localhost\naccess-control-request-method: POST");
        assert!(called, "a preflight request has an origin");
        let (_, called) = answer(&cors(), "POST", PREFLIGHT);
        assert!(called);
    }

    fn granted(cors: &Cors, asked: &str) -> Option<String> {
        let lines = format!("{PREFLIGHT}\naccess-control-request-headers: {asked}");
        let CorsDecision::Preflight(headers) = cors.decide(&request("OPTIONS", &lines)) else {
            panic!("not a preflight request")
        };
        headers.get(ACCESS_CONTROL_ALLOW_HEADERS).map(|names| names.to_str().unwrap().to_owned())
    }

    #[test]
    fn only_the_headers_of_the_protocol_are_allowed() {
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
    fn exposed_headers_and_max_age_can_be_set() {
        let cors = cors().expose_headers([HeaderName::from_static("x-request-id")]).max_age(Duration::ZERO);
        let (response, _) = answer(&cors, "GET", "host: localhost\norigin: https://app.example.com");
        assert!(response.contains("WWW-Authenticate, MCP-Protocol-Version, x-request-id\n"), "{response}");
        assert!(answer(&cors, "OPTIONS", PREFLIGHT).0.contains("access-control-max-age: 0\n"));
    }

    #[test]
    fn with_any_origin_the_actual_one_is_named() {
        let any = Cors::new(Guard::any_host().any_origin());
        let (response, _) = answer(&any, "POST", "host: a\norigin: https://b.example");
        assert!(response.contains("access-control-allow-origin: https://b.example\n"), "{response}");
    }
}
