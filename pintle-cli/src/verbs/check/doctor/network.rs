use std::{
    env,
    net::IpAddr,
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, Uri, header};
use pintle::client::http::Requests;
use serde_json::{Value, json};
use tokio::{
    net::{TcpStream, lookup_host},
    time::timeout,
};

use super::report::Report;
use crate::args::quoted;

/// How long a step may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The origin of a web page that no server of ours should answer.
const FOREIGN: &str = "https://attacker.example";

/// The way to a server at a URL: from its name to its well-known documents.
pub(super) struct Network {
    url: String,
    uri: Uri,
    host: String,
    requests: Requests,
}

/// The transport that a URL is the address of.
enum HttpTransport {
    Streamable,
    /// That of the oldest revision, whose address takes no messages.
    Sse,
}

/// Checks the way to a URL. Returns whether it leads to a server, which may refuse what it is sent.
pub(super) async fn check(url: &str, token: Option<&str>, login: &str, report: &mut Report<'_>) -> bool {
    let Some(network) = Network::new(url) else {
        report.failed("url", "the URL cannot be read", "pintle doctor https://example.com/mcp");
        return false;
    };
    if let Some(variable) = network.proxy() {
        report.ok("proxy", format!("requests go through the proxy of `{variable}`"));
        report.skipped("dns", "the proxy resolves names");
    } else if !network.connects(report).await {
        return false;
    }
    let Some((status, transport)) = network.responds(report).await else { return false };
    match transport {
        HttpTransport::Sse => {
            report.skipped("origin", "messages are sent to an address that the stream names")
        }
        HttpTransport::Streamable => network.refuses_pages(status, report).await,
    }
    network.documents(status, report).await;
    match (status, token) {
        (StatusCode::UNAUTHORIZED, None) => {
            report.failed("auth", "the server requires a login or a token", login)
        }
        (_, Some(source)) => report.ok("auth", format!("there is a token of {source}")),
        (_, None) => report.ok("auth", "the server does not require a token for this"),
    }
    true
}

impl Network {
    fn new(url: &str) -> Option<Self> {
        let uri: Uri = url.parse().ok()?;
        let host = uri.host()?.trim_matches(['[', ']']).to_owned();
        // What a server names is not followed into a private network that the server is not in.
        let is_local = is_local_name(&host);
        let requests = Requests::new().only(move |address| is_local || !is_private(address));
        Some(Self { url: url.to_owned(), uri, host, requests })
    }

    fn is_tls(&self) -> bool {
        self.uri.scheme_str() == Some("https")
    }

    fn port(&self) -> u16 {
        self.uri.port_u16().unwrap_or(if self.is_tls() { 443 } else { 80 })
    }

    /// Returns the variable that names the proxy of requests, if one does.
    fn proxy(&self) -> Option<&'static str> {
        let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
        let direct = ["NO_PROXY", "no_proxy"].iter().filter_map(|name| env::var(name).ok());
        let direct: Vec<_> = direct
            .flat_map(|list| list.split(',').map(|host| host.trim().to_owned()).collect::<Vec<_>>())
            .collect();
        if direct.iter().any(|host| host == "*" || !host.is_empty() && self.host.ends_with(host.as_str())) {
            return None;
        }
        let names: &[&'static str] = match self.is_tls() {
            true => &["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"],
            false => &["http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"],
        };
        names.iter().find(|name| is_set(name)).copied()
    }

    /// Resolves the name and opens a connection.
    async fn connects(&self, report: &mut Report<'_>) -> bool {
        let next = format!("nslookup {}", quoted(&self.host));
        let addresses: Vec<_> = match timeout(TIMEOUT, lookup_host((self.host.as_str(), self.port()))).await {
            Ok(Ok(found)) => found.collect(),
            Ok(Err(error)) => {
                report.failed("dns", format!("the name `{}` cannot be resolved: {error}", self.host), next);
                return false;
            }
            Err(_) => {
                report.failed("dns", format!("the name `{}` was not resolved in time", self.host), next);
                return false;
            }
        };
        let listed: Vec<_> = addresses.iter().take(4).map(|address| address.ip().to_string()).collect();
        report.ok("dns", format!("`{}` is {}", self.host, listed.join(", ")));
        let mut reason = "there is no address".to_owned();
        for address in addresses.into_iter().take(4) {
            let started = Instant::now();
            match timeout(TIMEOUT, TcpStream::connect(address)).await {
                Ok(Ok(_)) => {
                    report.ok("tcp", format!("{address} accepts connections, in {:.1?}", started.elapsed()));
                    return true;
                }
                Ok(Err(error)) => reason = format!("{address}: {error}"),
                Err(_) => reason = format!("{address} does not answer: a firewall may drop packets"),
            }
        }
        let hint = "start the server, and check the port and what it listens on";
        report.failed("tcp", format!("{reason}: {hint}"), format!("curl -i {}", quoted(&self.url)));
        false
    }

    /// Sends a request to the endpoint, and returns the status of the response, and what it is that of.
    async fn responds(&self, report: &mut Report<'_>) -> Option<(StatusCode, HttpTransport)> {
        let curl = format!("curl -i {}", quoted(&self.url));
        let response = match self.post(None).await {
            Ok(response) => response,
            Err(error) => {
                let name = if self.is_tls() { "tls" } else { "http" };
                report.failed(name, error, curl);
                return None;
            }
        };
        if self.is_tls() {
            report.ok("tls", "the certificate is valid for this name");
        }
        let status = response.status();
        let header =
            |name| response.headers().get(name).and_then(|text: &http::HeaderValue| text.to_str().ok());
        let kind = header(header::CONTENT_TYPE).unwrap_or("no content type").to_owned();
        let is_page = kind.starts_with("text/html");
        match status {
            StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED if self.streams().await => {
                report.ok(
                    "http",
                    "a stream of events for GET, and none for POST: the HTTP+SSE transport of the oldest revision",
                );
                return Some((status, HttpTransport::Sse));
            }
            _ if status.is_redirection() => {
                let to = header(header::LOCATION).unwrap_or("elsewhere").to_owned();
                let next = format!("pintle doctor {}", quoted(&to));
                report.failed("http", format!("the server redirects to `{to}`: use that URL"), next);
                return None;
            }
            StatusCode::NOT_FOUND if is_page => {
                report.failed(
                    "http",
                    "status 404 with a page for browsers: the path is wrong; many servers have `/mcp`",
                    curl,
                );
                return None;
            }
            _ if is_page && status.is_success() => {
                report.failed("http", "the URL is that of a page for browsers, not of an MCP endpoint; many servers have `/mcp`", curl);
                return None;
            }
            _ if status.is_server_error() => {
                report.failed("http", format!("status {status}: look at the server's log"), curl);
            }
            StatusCode::METHOD_NOT_ALLOWED => {
                report.failed("http", "status 405: the endpoint does not take POST requests; it may be the old SSE transport, or another path", curl);
            }
            StatusCode::BAD_REQUEST => {
                report.ok(
                    "http",
                    format!("{kind}; status 400, as it should be for a request outside of a session"),
                );
            }
            _ => report.ok("http", format!("status {status}, {kind}")),
        }
        Some((status, HttpTransport::Streamable))
    }

    /// Whether GET is answered with a stream of events, as in the transport of the oldest revision.
    async fn streams(&self) -> bool {
        let request = Request::get(self.uri.clone()).header(header::ACCEPT, "text/event-stream");
        let Ok(request) = request.body(Bytes::new()) else { return false };
        let Ok(Ok(response)) = timeout(TIMEOUT, self.requests.stream(request)).await else { return false };
        let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        response.status().is_success() && kind.is_some_and(|kind| kind.starts_with("text/event-stream"))
    }

    /// Checks that a server on this machine refuses requests of web pages.
    async fn refuses_pages(&self, status: StatusCode, report: &mut Report<'_>) {
        if !is_local_name(&self.host) {
            return;
        }
        match self.post(Some(FOREIGN)).await {
            Ok(response) if response.status() == StatusCode::FORBIDDEN && status != StatusCode::FORBIDDEN => {
                report.ok("origin", "requests of foreign web pages are refused");
            }
            Ok(response) if response.status() == status => report.warning(
                "origin",
                format!("a request of the web page `{FOREIGN}` is answered as any other: pages that the user visits can call the server"),
                "check the `Origin` and `Host` headers in the server",
            ),
            Ok(response) => report.ok("origin", format!("requests of foreign web pages get status {}", response.status())),
            Err(error) => report.warning("origin", error, format!("curl -i {}", quoted(&self.url))),
        }
    }

    /// Looks at the documents that tell a client where to log in.
    async fn documents(&self, status: StatusCode, report: &mut Report<'_>) {
        let path = self.uri.path().trim_end_matches('/');
        let origin = format!(
            "{}://{}",
            self.uri.scheme_str().unwrap_or("https"),
            self.uri.authority().map_or("", |authority| authority.as_str())
        );
        let mut addresses = vec![format!("{origin}/.well-known/oauth-protected-resource{path}")];
        if !path.is_empty() {
            addresses.push(format!("{origin}/.well-known/oauth-protected-resource"));
        }
        let mut found = None;
        for address in &addresses {
            if let Some(document) = self.document(address).await {
                found = Some((address, document));
                break;
            }
        }
        let Some((address, document)) = found else {
            return match status {
                StatusCode::UNAUTHORIZED => report.warning(
                    "well-known",
                    "the server requires a token and does not name its authorization server (RFC 9728)",
                    format!("curl -i {}", quoted(&addresses[0])),
                ),
                _ => report.skipped("well-known", "no document about authorization, and none is needed"),
            };
        };
        let resource = document["resource"].as_str().unwrap_or_default();
        let own = format!("{origin}{path}");
        if !(own == resource.trim_end_matches('/')
            || own.starts_with(&format!("{}/", resource.trim_end_matches('/'))))
        {
            let message = format!("the document is about `{resource}`, not about `{own}`: clients refuse it");
            return report.failed("well-known", message, format!("curl {}", quoted(address)));
        }
        let Some(issuer) = document["authorization_servers"][0].as_str() else {
            return report.warning(
                "well-known",
                "the document names no authorization server",
                format!("curl {}", quoted(address)),
            );
        };
        report.ok("well-known", format!("the authorization server is `{issuer}`"));
        self.issuer(issuer, report).await;
    }

    async fn issuer(&self, issuer: &str, report: &mut Report<'_>) {
        let Some(uri) = issuer.parse::<Uri>().ok().filter(|uri| uri.host().is_some()) else {
            return report.failed("issuer", format!("`{issuer}` is not a URL"), "pintle login --help");
        };
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
        if uri.scheme_str() != Some("https") && !(is_local_name(host) && is_local_name(&self.host)) {
            return report.failed(
                "issuer",
                format!("`{issuer}` is not encrypted: clients refuse it"),
                "pintle login --help",
            );
        }
        let (base, path) = (
            issuer.trim_end_matches('/').trim_end_matches(uri.path().trim_end_matches('/')),
            uri.path().trim_end_matches('/'),
        );
        let mut document = None;
        for kind in ["oauth-authorization-server", "openid-configuration"] {
            if document.is_none() {
                document = self.document(&format!("{base}/.well-known/{kind}{path}")).await;
            }
        }
        match document {
            None => report.failed(
                "issuer",
                format!("`{issuer}` has no metadata"),
                format!(
                    "curl -i {}",
                    quoted(&format!("{base}/.well-known/oauth-authorization-server{path}"))
                ),
            ),
            Some(document) if document["issuer"] != issuer => {
                let named = document["issuer"].as_str().unwrap_or_default();
                report.failed(
                    "issuer",
                    format!("the metadata is that of `{named}`: clients refuse it"),
                    "pintle login --help",
                );
            }
            Some(document) => {
                let methods = document["code_challenge_methods_supported"].as_array();
                if methods.is_some_and(|methods| methods.iter().any(|method| method == "S256")) {
                    report.ok("issuer", "its metadata has what a login needs");
                } else {
                    report.failed(
                        "issuer",
                        "its metadata does not list PKCE with `S256`: clients refuse it",
                        "pintle login --help",
                    );
                }
            }
        }
    }

    async fn post(&self, origin: Option<&str>) -> Result<Response<Bytes>, String> {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": pintle::types::method::PING }).to_string();
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(self.uri.clone())
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json, text/event-stream");
        if let Some(origin) = origin {
            request = request.header(header::ORIGIN, origin);
        }
        let request = request.body(Bytes::from(body)).map_err(|error| error.to_string())?;
        self.send(request).await
    }

    async fn document(&self, address: &str) -> Option<Value> {
        let request =
            Request::get(address).header(header::ACCEPT, "application/json").body(Bytes::new()).ok()?;
        let response = self.send(request).await.ok()?;
        serde_json::from_slice(response.body()).ok().filter(|_| response.status().is_success())
    }

    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, String> {
        match timeout(TIMEOUT, self.requests.send(request)).await {
            Ok(sent) => sent.map_err(|error| error.to_string()),
            Err(_) => Err(format!("no response within {TIMEOUT:?}")),
        }
    }
}

fn is_local_name(host: &str) -> bool {
    host == "localhost" || host.ends_with(".localhost") || host.parse::<IpAddr>().is_ok_and(is_private)
}

fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            address.is_loopback()
                || address.is_private()
                || address.is_link_local()
                || address.is_unspecified()
        }
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(mapped) => is_private(mapped.into()),
            None => {
                address.is_loopback()
                    || address.is_unspecified()
                    || address.is_unique_local()
                    || address.is_unicast_link_local()
            }
        },
    }
}
