//! A server of notes that only lets those in who have logged in, and who logs them in: nothing in here is a fake.

use std::sync::{Arc, Mutex};

use pintle::{
    Client, Connection, Result, Server,
    client::http::{Http, Proxy},
    proto::http::Guard,
    server::{http::HttpServing, tool},
};
use pintle_oauth::{
    client::{Network, OAuth},
    server::{Introspection, Jwt, Principal, Protected, Registered, Verify},
    testing::{AuthorizationServer, Endpoint, Fault, Hosts, User},
};
use tokio::net::TcpListener;
use tower_layer::Layer;

pub(crate) const URL: &str = "https://notes.test/mcp";
pub(crate) const STATELESS: &str = "2026-07-28";
pub(crate) const SESSION: &str = "2025-11-25";
pub(crate) const ERAS: [&str; 2] = [STATELESS, SESSION];

pub(crate) struct Notes {
    pub(crate) login: AuthorizationServer,
    /// What lies between them, if that is not the network.
    pub(crate) hosts: Hosts,
    url: String,
    ran: Ran,
    serving: Option<HttpServing>,
}

/// What handlers have done, and for whom.
type Ran = Arc<Mutex<Vec<String>>>;

impl Notes {
    /// In memory, with tokens that are signed.
    pub(crate) fn new() -> Self {
        Self::checking(|login, hosts| Jwt::new(login).unwrap().web(hosts))
    }

    /// In memory, with tokens that the authorization server is asked about each time.
    pub(crate) fn asking() -> Self {
        let notes = Self::checking(|login, hosts| {
            let us = Registered::new(login, "notes").secret("s3cret");
            Introspection::new(us).unwrap().cache_for(std::time::Duration::ZERO).web(hosts)
        });
        notes.login.opaque();
        notes.login.add_client_with_secret("notes", "s3cret");
        notes
    }

    /// In memory, with tokens that this finds to be good.
    pub(crate) fn checking<V: Verify>(verifier: impl FnOnce(String, Hosts) -> V) -> Self {
        Self::protected(verifier, |protected| protected)
    }

    /// In memory, and protected in some other way too.
    pub(crate) fn protected<V: Verify>(
        verifier: impl FnOnce(String, Hosts) -> V,
        more: impl FnOnce(Protected) -> Protected,
    ) -> Self {
        let login = AuthorizationServer::new("https://login.test");
        login.subject("alice");
        let hosts = Hosts::new().host(login.issuer(), login.clone());
        let (server, ran) = server();
        let http = server.http().unwrap().at("/mcp").guard(Guard::hosts(["notes.test"]));
        let protected = Protected::new(URL, verifier(login.issuer().to_owned(), hosts.clone())).unwrap();
        let hosts = hosts.host(URL, more(protected).scopes(["notes:read"]).layer(http));
        Self { login, hosts, url: URL.into(), ran, serving: None }
    }

    /// On sockets of this machine.
    pub(crate) async fn listening() -> Self {
        let login = AuthorizationServer::listen().await.unwrap();
        login.subject("alice");
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let (server, ran) = server();
        let tokens = Jwt::new(login.issuer()).unwrap().web(Network::with_proxy(Proxy::none()));
        let protected = Protected::new(url.as_str(), tokens).unwrap().scopes(["notes:read"]);
        let serving = server.http().unwrap().at("/mcp").serve_with(&protected, listener).unwrap();
        Self { login, hosts: Hosts::new(), url, ran, serving: Some(serving) }
    }

    /// A user who logs in.
    pub(crate) fn oauth(&self) -> OAuth {
        if self.serving.is_some() {
            let network = || Network::with_proxy(Proxy::none());
            return OAuth::login("App", User::on(network())).web(network());
        }
        OAuth::login("App", User::on(self.hosts.clone())).web(self.hosts.clone())
    }

    pub(crate) async fn connect(&self, revision: &str) -> Result<Connection> {
        self.connect_as(&self.oauth(), revision).await
    }

    pub(crate) async fn connect_as(&self, oauth: &OAuth, revision: &str) -> Result<Connection> {
        self.connect_by(self.http().auth(oauth.clone()), revision).await
    }

    pub(crate) async fn connect_by(&self, http: Http, revision: &str) -> Result<Connection> {
        Client::new("test", "0").revisions([revision.parse().unwrap()]).connect(http).await
    }

    /// A way to the server, without a token.
    pub(crate) fn http(&self) -> Http {
        let http = Http::new(&self.url).unwrap();
        if self.serving.is_some() { http.proxy(Proxy::none()) } else { http.client(self.hosts.clone()) }
    }

    /// How connecting fails with this fault. No handler gets to run.
    pub(crate) async fn refused(&self, fault: Fault) -> String {
        self.login.fault(fault);
        let error = self.connect(STATELESS).await.unwrap_err().to_string();
        assert_eq!(self.ran(), [""; 0]);
        for secret in ["code-", "access-", "refresh-", "eyJ"] {
            assert!(!error.contains(secret), "{error}");
        }
        self.login.clear_faults();
        error
    }

    /// What handlers have done since the last time.
    pub(crate) fn ran(&self) -> Vec<String> {
        std::mem::take(&mut self.ran.lock().unwrap())
    }

    /// What the authorization server was asked since the last time.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.login.log().iter().map(ToString::to_string).collect()
    }

    /// Clients are told that their tokens are good for no time at all, so that they get new ones before the next call.
    pub(crate) fn hurry(&self) {
        self.login.fault(Fault::answer(Endpoint::Token, "expires_in", 0));
    }
}

fn server() -> (Server, Ran) {
    let ran = Ran::default();
    let noting = |what: &'static str| {
        let ran = ran.clone();
        move |who: Principal| {
            let done = format!("{what} for {}", who.subject());
            ran.lock().unwrap().push(done.clone());
            async move { done }
        }
    };
    let server = Server::new("notes", "1.0.0")
        .tool(tool("read", noting("read")))
        .tool(tool("write", noting("write")).requires(["notes:write"]))
        .tool(tool("share", noting("share")).requires(["notes:share"]));
    (server, ran)
}

/// What a client says whose request was answered with this status, when it connects.
pub(crate) fn answered(status: u16, text: &str, advice: &str) -> String {
    format!("`{URL}` answered `server/discover` with status {status}: {text} (-32600); {advice}")
}

/// What a client says whose token was not accepted.
pub(crate) fn not_accepted(why: &str) -> String {
    let text = format!("the token is not accepted: {why}");
    answered(401, &text, "what it was authorized with was not accepted")
}

/// What a client says that could not log in.
pub(crate) fn not_authorized(why: &str) -> String {
    format!("`{URL}` could not be authorized for: {why}")
}

/// How many of these lines there are.
pub(crate) fn count(lines: &[String], line: &str) -> usize {
    lines.iter().filter(|own| *own == line).count()
}
