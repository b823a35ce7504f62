//! Two gateways with one Redis serve a client as one.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use http::{HeaderMap, Method};
use pintle::{
    Client,
    client::{
        Mode,
        http::{Auth, Challenge, Http, Outgoing},
    },
};
use pintle_oauth::{
    client::{OAuth, Registered},
    testing::AuthorizationServer,
};

use crate::support::{HttpServing, free_address::free_address, machine::Machine, pintle, run};

/// A `redis-server` that ends with the test.
pub(super) struct RedisProcess(Child, u16);

impl RedisProcess {
    /// Starts a server. Returns `None` if it is not installed; with `PINTLE_REQUIRE_REDIS` that is a failure.
    pub(super) fn start() -> Option<Self> {
        let port = free_address().port();
        let mut command = Command::new("redis-server");
        command.args([
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--requirepass",
            "sesame",
            "--port",
            &port.to_string(),
        ]);
        let Ok(child) = command.stdout(Stdio::null()).spawn() else {
            assert!(std::env::var_os("PINTLE_REQUIRE_REDIS").is_none(), "`redis-server` is missing");
            return None;
        };
        let redis = Self(child, port);
        for _ in 0..500 {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Some(redis);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("`redis-server` does not listen");
    }

    pub(super) fn url(&self) -> String {
        format!("redis://:sesame@127.0.0.1:{}/", self.1)
    }
}

impl Drop for RedisProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        self.0.wait().unwrap();
    }
}

const FILE: &str = r#"
    [targets.one]
    server = "demo"

    [[servers.few.rules]]
    rate = { calls = 4, seconds = 3600 }
    decision = "allow"

    [[servers.more.rules]]
    rate = { calls = 4, seconds = 3600 }
    decision = "allow"

    [[rules]]
    decision = "allow"
"#;

pub(super) fn gateway(machine: &Machine, redis: &str, key: &str) -> Command {
    machine.write("team.toml", FILE);
    let mut command = pintle();
    command.args(["gateway", "team.toml", "--http", "127.0.0.1:0", "--redis-env", "FLEET_REDIS"]);
    command.args(["--redis-key-env", "FLEET_KEY"]).env("FLEET_REDIS", redis).env("FLEET_KEY", key);
    command.current_dir(machine.path(""));
    command
}

/// Sends a message. Returns the whole response.
fn post(gateway: &HttpServing, path: &str, session: Option<&str>, body: &str) -> String {
    let session = session.map(|id| format!("Mcp-Session-Id: {id}\r\n")).unwrap_or_default();
    post_with(gateway, path, &session, body)
}

/// Sends a message with more headers. Returns the whole response.
fn post_with(gateway: &HttpServing, path: &str, headers: &str, body: &str) -> String {
    let address = gateway.url.strip_prefix("http://").unwrap().split('/').next().unwrap();
    let mut connection = TcpStream::connect(address).unwrap();
    write!(
        connection,
        "POST {path} HTTP/1.1\r\nHost: {address}\r\n{headers}Content-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut response = String::new();
    connection.read_to_string(&mut response).unwrap();
    response
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}"#;
const CALL: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"one_tide","arguments":{"port":"bergen","hour":4}}}"#;

/// Opens a session. Returns its id.
fn open(gateway: &HttpServing, path: &str) -> String {
    let opened = post(gateway, path, None, INITIALIZE);
    let id = opened.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("mcp-session-id").then(|| value.trim().to_owned())
    });
    id.unwrap_or_else(|| panic!("{opened}"))
}

#[test]
fn a_session_that_one_gateway_has_opened_goes_on_at_another_and_ends_at_both() {
    let Some(redis) = RedisProcess::start() else { return };
    let machine = Machine::new("gateway-fleet");
    let key = "0f".repeat(32);
    let start = || HttpServing::of(gateway(&machine, &redis.url(), &key));
    let (one, two) = (start(), start());
    for path in ["/mcp", "/mcp/one"] {
        let id = open(&one, path);
        for gateway in [&two, &one, &two] {
            let called = post(gateway, path, Some(&id), CALL);
            assert!(called.starts_with("HTTP/1.1 200") && called.contains("metres"), "{called}");
        }
        // The session of one path is not that of another.
        let elsewhere = if path == "/mcp" { "/mcp/one" } else { "/mcp" };
        assert!(post(&two, elsewhere, Some(&id), CALL).starts_with("HTTP/1.1 404"));
        // A process with another key does not read it, and does not take it for ended.
        let stranger = HttpServing::of(gateway(&machine, &redis.url(), &"aa".repeat(32)));
        let refused = post(&stranger, path, Some(&id), CALL);
        assert!(refused.starts_with("HTTP/1.1 503"), "{refused}");
    }
}

#[test]
fn the_rates_of_a_virtual_server_are_those_of_all_processes() {
    let Some(redis) = RedisProcess::start() else { return };
    let machine = Machine::new("gateway-fleet-rates");
    let start = || HttpServing::of(gateway(&machine, &redis.url(), &"0f".repeat(32)));
    let (one, two) = (start(), start());
    // The limit of one server is not that of another.
    for path in ["/mcp/few", "/mcp/more"] {
        let id = open(&one, path);
        let mut allowed = 0;
        for gateway in [&one, &two].into_iter().cycle().take(20) {
            let called = post(gateway, path, Some(&id), CALL);
            let is_limited = called.contains("called too often");
            assert!(called.contains("metres") != is_limited, "{called}");
            allowed += usize::from(!is_limited);
        }
        // Each process may allow one call before it knows of the others.
        assert!((4..=6).contains(&allowed), "{path}: {allowed}");
    }
}

/// An authorization whose headers are kept, and not sent once it is told so.
#[derive(Clone)]
struct KeptAuth {
    oauth: OAuth,
    is_sent: Arc<AtomicBool>,
    kept: Arc<Mutex<(HeaderMap, String)>>,
}

impl Auth for KeptAuth {
    async fn authorize(&self, request: Outgoing<'_>) -> pintle::Result<HeaderMap> {
        let headers = self.oauth.authorize(request).await?;
        // A proof is for one method and one body.
        if request.method == Method::POST {
            let body = String::from_utf8(request.body.to_vec()).unwrap();
            *self.kept.lock().unwrap() = (headers.clone(), body);
        }
        match self.is_sent.load(Ordering::SeqCst) {
            true => Ok(headers),
            false => Err(pintle::Error::Refused("it is kept".to_owned())),
        }
    }

    async fn challenged(&self, challenge: Challenge<'_>) -> pintle::Result<bool> {
        self.oauth.challenged(challenge).await
    }
}

#[tokio::test]
async fn a_proof_that_one_process_has_accepted_is_refused_by_the_others() {
    let Some(redis) = RedisProcess::start() else { return };
    let machine = Machine::new("gateway-fleet-proofs");
    let login = AuthorizationServer::listen().await.unwrap();
    login.bind_tokens("nonce");
    login.add_client_with_secret("host", "s3cret");
    let address = free_address().to_string();
    let auth = format!("[auth]\nissuer = \"{}\"\nurl = \"http://{address}\"\n", login.issuer());
    machine.write("team.toml", &format!("{auth}{FILE}"));
    let start = |address: &str| {
        let mut command = pintle();
        command.args(["gateway", "team.toml", "--http", address, "--redis-env", "FLEET_REDIS"]);
        command.args(["--redis-key-env", "FLEET_KEY"]).env("FLEET_REDIS", redis.url());
        command.env("FLEET_KEY", "0f".repeat(32)).current_dir(machine.path(""));
        HttpServing::of(command)
    };
    let (one, two) = (Arc::new(start(&address)), Arc::new(start("127.0.0.1:0")));
    let oauth = OAuth::machine(Registered::new(login.issuer(), "host").secret("s3cret")).dpop();
    let auth = KeptAuth { oauth, is_sent: Arc::new(AtomicBool::new(true)), kept: Arc::default() };
    let http = Http::new(&one.url).unwrap().auth(auth.clone());
    let client = Client::new("host", "1.0.0").mode(Mode::Legacy).connect(http).await.unwrap();
    auth.is_sent.store(false, Ordering::SeqCst);
    client.tools().await.unwrap_err();
    let (kept, body) = auth.kept.lock().unwrap().clone();
    assert!(kept.contains_key("dpop"), "{kept:?}");
    let headers: String =
        kept.iter().map(|(name, value)| format!("{name}: {}\r\n", value.to_str().unwrap())).collect();
    // The authorization server answers meanwhile.
    let respond = async |gateway: &Arc<HttpServing>| {
        let (gateway, headers, body) = (gateway.clone(), headers.clone(), body.clone());
        let posted = move || post_with(&gateway, "/mcp", &headers, &body);
        tokio::task::spawn_blocking(posted).await.unwrap()
    };
    // It was made for the first, whose address is the URL of both. The request has no session, which is found out after the proof.
    for (gateway, is_accepted) in [(&two, true), (&one, false), (&two, false)] {
        let response = respond(gateway).await;
        assert_eq!(!response.starts_with("HTTP/1.1 401"), is_accepted, "{response}");
    }
}

#[test]
fn a_gateway_does_not_start_without_its_redis_or_its_key() {
    let machine = Machine::new("gateway-no-redis");
    let port = free_address().port();
    let down = run(&mut gateway(&machine, &format!("redis://:sesame@127.0.0.1:{port}/"), &"0f".repeat(32)));
    assert!(down.stderr.contains("the Redis of the gateway cannot be used"), "{down:?}");
    assert!(!down.stderr.contains("sesame"), "{down:?}");
    let mut keyless = pintle();
    keyless.args(["gateway", "team.toml", "--http", "127.0.0.1:0", "--redis", "redis://127.0.0.1/"]);
    let keyless = run(keyless.current_dir(machine.path("")));
    assert!(keyless.stderr.contains("need a key that they share"), "{keyless:?}");
    let mut on_streams = pintle();
    on_streams.args(["gateway", "team.toml", "--redis", "redis://127.0.0.1/"]);
    let on_streams = run(on_streams.current_dir(machine.path("")));
    assert!(on_streams.stderr.contains("`--redis` is an option of `--http`"), "{on_streams:?}");
}
