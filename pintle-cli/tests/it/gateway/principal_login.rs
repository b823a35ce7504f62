//! A target that each principal logs in to, with an account of its own.

use std::{
    collections::BTreeMap,
    io::{Read as _, Write as _},
    net::TcpStream,
    sync::{Arc, Mutex},
    time::Duration,
};

use pintle::{
    Client, Connection,
    client::{Answer, Mode, http::Http},
};

use super::names;
use crate::support::{
    HttpServing, free_address::free_address, machine::Machine, pintle, protected::ProtectedServer,
};

/// A browser with its cookies, which logs in wherever it is sent to.
#[derive(Default)]
pub(super) struct Browser {
    cookies: BTreeMap<String, String>,
}

/// A page that a browser has loaded.
pub(super) struct LoadedPage {
    pub(super) status: u16,
    head: String,
    pub(super) body: String,
}

impl Browser {
    pub(super) fn load(&mut self, method: &str, url: &str) -> LoadedPage {
        let (address, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
        let cookies: Vec<_> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut connection = TcpStream::connect(address).unwrap();
        write!(
            connection,
            "{method} /{path} HTTP/1.1\r\nHost: {address}\r\nCookie: {}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            cookies.join("; ")
        )
        .unwrap();
        let mut response = String::new();
        connection.read_to_string(&mut response).unwrap();
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        for line in head.lines().filter_map(|line| line.strip_prefix("set-cookie: ")) {
            assert!(line.contains("; HttpOnly; SameSite=Lax; Max-Age=600"), "{line}");
            let (name, value) = line.split(';').next().unwrap().split_once('=').unwrap();
            self.cookies.insert(name.to_owned(), value.to_owned());
        }
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        LoadedPage { status, head: head.to_owned(), body: body.to_owned() }
    }

    /// Opens a link, and presses the button of its page. Returns the page, and the address at the authorization server.
    fn agree(&mut self, link: &str) -> (LoadedPage, String) {
        let page = self.load("GET", link);
        assert_eq!(page.status, 200, "{}", page.body);
        let begun = self.load("POST", &page.action(link));
        assert_eq!(begun.status, 303, "{}", begun.body);
        (page, begun.location())
    }

    /// Logs in at an authorization server, and comes back to the gateway.
    fn come_back(&mut self, url: &str) -> LoadedPage {
        let callback = self.load("GET", url).location();
        self.load("GET", &callback)
    }

    fn log_in(&mut self, link: &str) {
        let (_, url) = self.agree(link);
        let page = self.come_back(&url);
        assert_eq!(page.status, 200, "{}", page.body);
    }
}

impl LoadedPage {
    /// Returns the address of the form of a page.
    pub(super) fn action(&self, link: &str) -> String {
        let (_, rest) = self.body.split_once("action=\"").unwrap();
        let origin: String = link.split_inclusive('/').take(3).collect();
        format!("{}{}", origin.trim_end_matches('/'), rest.split('"').next().unwrap())
    }

    pub(super) fn location(&self) -> String {
        let line = self.head.lines().find(|line| line.to_lowercase().starts_with("location:"));
        line.unwrap_or_else(|| panic!("{}", self.head))["location:".len()..].trim().to_owned()
    }
}

/// A gateway with one target at a port of this machine, and clients of two principals.
struct LoginGateway {
    server: ProtectedServer,
    machine: Machine,
    address: String,
}

impl LoginGateway {
    fn new(name: &str) -> Self {
        let address = free_address().to_string();
        let (server, machine) = (ProtectedServer::start(), Machine::new(name));
        let file = format!(
            "access_log = \"access.jsonl\"\n[targets.notes]\nurl = \"{}\"\nlogin = \"each\"\n",
            server.url
        );
        machine.write("team.toml", &file);
        Self { server, machine, address }
    }

    fn start(&self, principals: &[&str]) -> HttpServing {
        let mut command = pintle();
        command.args(["gateway", "team.toml", "--http", &self.address]).current_dir(self.machine.path(""));
        command.env("PINTLE_STATE_DIR", self.machine.path("state"));
        for principal in principals {
            command.args(["--bearer-env", principal]).env(principal, format!("{principal}-token"));
        }
        HttpServing::of(command)
    }

    async fn connect(&self, principal: &str, mode: Mode) -> Connection {
        let http = Http::new(format!("http://{}/mcp", self.address)).unwrap();
        let http = http.bearer(format!("{principal}-token")).unwrap();
        Client::new("host", "1.0.0").mode(mode).connect(http).await.unwrap()
    }

    /// Has the next login at the authorization server be one with this account.
    fn account(&self, name: &str) {
        self.server.login.subject(name);
    }
}

/// Returns the link in an error, or in the result of the tool that logs in.
fn link_in(text: &str) -> String {
    let (_, rest) = text.split_once("open http://").unwrap_or_else(|| panic!("no link: {text}"));
    format!("http://{}", rest.split(' ').next().unwrap())
}

pub(super) async fn whoami(client: &Connection) -> Result<String, String> {
    client.call_tool("notes_whoami", ()).await.map(|result| result.text()).map_err(|error| error.to_string())
}

pub(super) async fn link_of(client: &Connection) -> String {
    link_in(&whoami(client).await.unwrap_err())
}

#[tokio::test]
async fn two_principals_log_in_with_two_accounts_and_calls_carry_the_right_one() {
    for mode in [Mode::Legacy, Mode::Modern] {
        let gateway = LoginGateway::new("gateway-each");
        // Tokens have to be replaced before each request.
        gateway.server.login.lifetime(Duration::ZERO);
        let running = gateway.start(&["ANN", "BOB"]);
        let (ann, bob) = (gateway.connect("ANN", mode).await, gateway.connect("BOB", mode).await);
        // There is one tool until then, which returns the link.
        assert_eq!(names(&ann, |_| true).await, ["notes_login"]);
        let link = link_in(&ann.call_tool("notes_login", ()).await.unwrap().text());
        let refused = whoami(&ann).await.unwrap_err();
        assert!(refused.contains("`notes` requires a login of `ANN`"), "{refused}");
        assert_eq!(link_in(&refused), link, "it is the same login");
        let other = link_of(&bob).await;
        assert_ne!(other, link);

        gateway.account("ann@notes");
        let mut browser = Browser::default();
        let (page, url) = browser.agree(&link);
        assert!(page.body.contains("ANN") && page.body.contains("notes") && !page.body.contains("BOB"));
        assert!(page.head.contains("x-frame-options: DENY"), "{}", page.head);
        let connected = browser.come_back(&url);
        assert!(connected.body.contains("connected to ANN"), "{}", connected.body);
        assert_eq!(names(&ann, |names| names == ["notes_whoami"]).await, ["notes_whoami"]);
        assert_eq!(whoami(&ann).await.unwrap(), "ann@notes");
        assert_eq!(link_of(&bob).await, other, "the account is not that of another principal");
        assert_eq!(names(&bob, |_| true).await, ["notes_login"]);

        gateway.account("bob@notes");
        // In the same browser, with the cookies of both.
        browser.log_in(&other);
        assert_eq!(whoami(&bob).await.unwrap(), "bob@notes");
        // Each new connection has the account of its principal, also after a new start.
        for (principal, account) in [("ANN", "ann@notes"), ("BOB", "bob@notes"), ("ANN", "ann@notes")] {
            let client = gateway.connect(principal, mode).await;
            assert_eq!(whoami(&client).await.unwrap(), account);
        }
        drop((ann, bob, running));
        let _running = gateway.start(&["ANN", "BOB"]);
        let ann = gateway.connect("ANN", mode).await;
        assert_eq!(whoami(&ann).await.unwrap(), "ann@notes");
        assert_eq!(whoami(&gateway.connect("BOB", mode).await).await.unwrap(), "bob@notes");

        // They are refreshed, and when that is refused, the principal logs in again.
        let refreshed = gateway.server.login.log();
        assert!(refreshed.iter().any(|asked| asked.parameter("grant_type") == Some("refresh_token")));
        gateway.server.login.revoke_refresh();
        let again = link_of(&ann).await;
        assert_ne!(again, link);
        gateway.account("ann2@notes");
        browser.log_in(&again);
        assert_eq!(whoami(&ann).await.unwrap(), "ann2@notes");
        // The logins of principals are not those of the user of this machine.
        let state = gateway.machine.path("state");
        assert!(state.join("principals.json").exists() && !state.join("credentials.json").exists());
        assert!(!gateway.machine.read("access.jsonl").contains("/login/"), "no link is logged");
    }
}

#[tokio::test]
async fn a_link_is_bound_to_its_principal_and_to_one_browser() {
    let gateway = LoginGateway::new("gateway-each-crossed");
    let _running = gateway.start(&["ANN", "BOB"]);
    let ann = gateway.connect("ANN", Mode::Modern).await;
    let link = link_of(&ann).await;
    // Whoever opens the link of another principal is told whose it is, and loading the page uses nothing up.
    let (mut own, mut other) = (Browser::default(), Browser::default());
    let shown = other.load("GET", &link);
    assert!(shown.body.contains("Go on only if you are ANN"), "{}", shown.body);
    // The button needs the cookie of the browser that shows it, and its own page.
    assert_eq!(Browser::default().load("POST", &shown.action(&link)).status, 403);
    assert_eq!(other.load("POST", &link).status, 403);
    let own_page = own.load("GET", &link);
    assert_eq!(other.load("POST", &own_page.action(&link)).status, 403);

    gateway.account("ann@notes");
    let (_, url) = own.agree(&link);
    // The address at the authorization server is of no use in another browser, which would connect another account.
    gateway.account("victim@notes");
    let crossed = other.come_back(&url);
    assert_eq!(crossed.status, 403, "{}", crossed.body);
    assert!(crossed.body.contains("in another browser"), "{}", crossed.body);
    assert_eq!(Browser::default().come_back(&url).status, 403);
    assert_eq!(link_of(&ann).await, link, "nothing is connected");
    // A link is used in one browser, which may begin again, and once.
    for browser in [&mut other, &mut Browser::default()] {
        assert_eq!(browser.load("GET", &link).status, 410);
    }
    let (_, url) = own.agree(&link);
    assert_eq!(other.load("POST", &shown.action(&link)).status, 410);
    gateway.account("ann@notes");
    let callback = own.load("GET", &url).location();
    assert_eq!(own.load("GET", &callback).status, 200);
    assert_eq!(whoami(&ann).await.unwrap(), "ann@notes");
    assert_eq!(own.load("GET", &callback).status, 410, "what comes back is used once");
    assert_eq!(own.load("GET", &link).status, 410, "and so is the link");
    for nothing in ["", "callback", "callback?state=x", "nonsense"] {
        let page = own.load("GET", &format!("http://{}/login/{nothing}", gateway.address));
        assert_eq!(page.status, 410, "{nothing}: {}", page.body);
    }
    // What was refused is logged without the secret of the link.
    let log = gateway.machine.read("access.jsonl");
    let secret = link.rsplit('/').next().unwrap();
    assert!(
        log.contains(r#""path":"/login/","status":"refused","code":410"#) && !log.contains(secret),
        "{log}"
    );
}

#[tokio::test]
async fn a_client_that_can_open_pages_is_asked_to() {
    for revision in ["2025-11-25", "2026-07-28"] {
        let gateway = LoginGateway::new("gateway-each-asks");
        let _running = gateway.start(&["ANN", "BOB"]);
        gateway.account("ann@notes");
        let opened = Arc::new(Mutex::new(Vec::new()));
        let pages = opened.clone();
        let client = Client::new("host", "1.0.0").revisions([revision.parse().unwrap()]);
        let client = client.on_elicit_url(move |question| {
            let pages = pages.clone();
            async move {
                let link = question.params.url.clone();
                pages.lock().unwrap().push(link.clone());
                tokio::task::spawn_blocking(move || Browser::default().log_in(&link)).await.unwrap();
                Answer::accept(())
            }
        });
        let http = Http::new(format!("http://{}/mcp", gateway.address)).unwrap().bearer("ANN-token").unwrap();
        let client = client.connect(http).await.unwrap();
        assert_eq!(whoami(&client).await.unwrap(), "ann@notes", "{revision}");
        let opened = opened.lock().unwrap().clone();
        assert!(opened.len() == 1 && opened[0].contains("/login/"), "{revision}: {opened:?}");
    }
}

#[tokio::test]
async fn a_call_whose_user_agrees_to_log_in_waits_for_the_login_and_one_who_declines_gets_the_link() {
    let gateway = LoginGateway::new("gateway-each-waits");
    let _running = gateway.start(&["ANN", "BOB"]);
    gateway.account("ann@notes");
    let connect = async |principal: &str, answer: Answer| {
        let (asked, mut questions) = tokio::sync::mpsc::channel(8);
        let client = Client::new("host", "1.0.0").mode(Mode::Modern).on_elicit_url(move |question| {
            let (asked, answer) = (asked.clone(), answer.clone());
            async move {
                asked.send(question.params.url.clone()).await.unwrap();
                answer
            }
        });
        let http = Http::new(format!("http://{}/mcp", gateway.address)).unwrap();
        let http = http.bearer(format!("{principal}-token")).unwrap();
        let client = client.connect(http).await.unwrap();
        (client, async move || questions.recv().await.unwrap())
    };
    let (ann, mut asked) = connect("ANN", Answer::accept(())).await;
    // The page is opened after the answer.
    let log_in = async {
        let link = asked().await;
        tokio::task::spawn_blocking(move || Browser::default().log_in(&link)).await.unwrap();
    };
    let (called, ()) = tokio::join!(whoami(&ann), log_in);
    assert_eq!(called.unwrap(), "ann@notes");
    let (bob, _asked) = connect("BOB", Answer::Decline).await;
    let declined = whoami(&bob).await.unwrap_err();
    assert!(declined.contains("did not agree") && declined.contains("/login/"), "{declined}");
}

#[tokio::test]
async fn nobody_without_a_name_gets_a_link() {
    let gateway = LoginGateway::new("gateway-each-anonymous");
    let _running = gateway.start(&[]);
    let client = Client::new("host", "1.0.0").mode(Mode::Modern);
    let client = client.connect(Http::new(format!("http://{}/mcp", gateway.address)).unwrap()).await.unwrap();
    assert_eq!(names(&client, |_| true).await, Vec::<String>::new());
    let refused = whoami(&client).await.unwrap_err();
    assert!(refused.contains("clients with names") && !refused.contains("/login/"), "{refused}");
}
