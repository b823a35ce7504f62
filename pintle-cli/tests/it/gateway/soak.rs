//! Ten backends of all kinds, many clients, and a file that changes all the time: no call is lost, no principal sees another's, and
//! nothing grows.
//!
//! `cargo xtask chaos --gateway` runs it for a minute with a hundred clients, and repeats a seed.

use std::{
    borrow::Cow,
    fs,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use pintle::{
    Client, Connection, Server,
    client::{Mode, http::Http},
    server::{
        Args, Cx, ListKind, Outcome, PageRequest, ProvidedEntry, Provider, ProviderPage, RequestError, Scope,
        Target, tool,
    },
    types::{
        JsonObject, RpcError,
        schema::{ServerCapabilities, Tool, ToolsCapability},
    },
};
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use crate::{
    bridge::{chaos::Random, programs::marked},
    support::{HttpServing, http_request, machine::Machine, pintle},
};

/// Only a call that is never answered takes so long.
const LIMIT: Duration = Duration::from_secs(60);
/// The backends whose every call succeeds.
const HONEST: [&str; 6] = ["demo", "program", "modern", "session", "oldest", "slow"];

fn variable<T: std::str::FromStr>(name: &str, otherwise: T) -> T {
    std::env::var(name)
        .map_or(otherwise, |value| value.parse().ok().unwrap_or_else(|| panic!("{name}: {value}")))
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Text {
    text: String,
}

/// A server with a memory for each of its sessions.
fn server(delay: Duration) -> Server {
    let echo = tool("echo", move |Args(Text { text }): Args<Text>| async move {
        sleep(delay).await;
        text
    });
    let keep = tool("keep", |cx: Cx, Args(Text { text }): Args<Text>| async move {
        let before = cx.session().and_then(|session| session.insert(text).unwrap());
        before.map_or_else(String::new, |before: Arc<String>| String::clone(&before))
    });
    Server::new("soak", "0").tool(echo).tool(keep)
}

/// A server whose list never ends, and whose calls fail.
struct Hostile;

impl Provider for Hostile {
    fn name(&self) -> Cow<'_, str> {
        "hostile".into()
    }

    fn capabilities(&self) -> ServerCapabilities {
        let mut capabilities = ServerCapabilities::default();
        capabilities.tools = Some(ToolsCapability::default());
        capabilities
    }

    async fn list(&self, _: Cx, _: ListKind, page: PageRequest) -> Result<ProviderPage, RequestError> {
        let first: usize = page.cursor.as_deref().unwrap_or("0").parse()?;
        let name = |number| format!("../{number}/{}", "x".repeat(number % 90));
        let tools = (first..first + 20).map(|number| Tool::new(name(number), JsonObject::new()));
        Ok(ProviderPage::of(tools)?.next((first + 20).to_string()))
    }

    fn describe(&self, _: &Scope<'_>, _: &Target<'_>) -> Option<ProvidedEntry> {
        None
    }

    async fn handle(&self, _: Cx) -> Outcome {
        Outcome::Failed(RpcError::internal("it is hostile"))
    }
}

/// Serves a server at `/mcp`, and at `/sse`. Returns its origin.
async fn serve(server: Server) -> String {
    let http = server.http().unwrap().at("/mcp").two_endpoints("/sse", "/messages");
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let serving = http.serve(listener).unwrap();
    let origin = format!("http://{}", serving.address());
    // Until the test ends.
    tokio::spawn(async move { serving.wait().await });
    origin
}

/// The targets of the file, and the mark of the program that is killed.
struct Backends {
    targets: String,
    mark: String,
}

impl Backends {
    async fn start() -> Self {
        let program = env!("CARGO_BIN_EXE_pintle");
        let modern = serve(server(Duration::ZERO)).await;
        let session = serve(server(Duration::ZERO).revisions(["2025-11-25".parse().unwrap()])).await;
        let oldest = serve(server(Duration::ZERO).revisions(["2024-11-05".parse().unwrap()])).await;
        let slow = serve(server(Duration::from_millis(200))).await;
        let hostile = serve(Server::new("hostile", "0").provider(Hostile)).await;
        // It closes each connection in the middle of a response.
        let broken = http_request::listen(|mut connection, _| {
            http_request::HttpRequest::read(connection)?;
            std::io::Write::write_all(
                &mut connection,
                b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{\"json",
            )
        });
        let mark = format!("soak-{}", std::process::id());
        let targets = format!(
            r#"
            [targets.demo]
            server = "demo"
            [targets.program]
            command = ["{program}", "demo"]
            [targets.crashing]
            command = ["{program}", "demo"]
            env = {{ PINTLE_TEST_MARK = "{mark}" }}
            [targets.modern]
            url = "{modern}/mcp"
            [targets.session]
            url = "{session}/mcp"
            [targets.oldest]
            url = "{oldest}/sse"
            [targets.slow]
            url = "{slow}/mcp"
            [targets.hostile]
            url = "{hostile}/mcp"
            only = ["*1*"]
            [targets.broken]
            url = "http://{broken}/mcp"
            [targets.dead]
            command = ["/no/such/program"]
            "#
        );
        Self { targets, mark: format!("PINTLE_TEST_MARK={mark}") }
    }

    /// A file with all of them, and with something else each time.
    fn file(&self, random: &mut Random) -> String {
        let mut file = self.targets.clone();
        if random.below(2) == 0 {
            file += "[targets.sometimes]\nserver = \"demo\"\n";
        }
        if random.below(2) == 0 {
            file = file.replace("[targets.dead]\n", "[targets.dead]\nhide = [\"x\"]\n");
        }
        file += &format!("[servers.some]\nonly = [\"modern_*\", \"x{}\"]\n", random.below(100));
        file += &format!(
            "[[rules]]\nname = \"{}\"\ntools = [\"demo_berth\"]\ndecision = \"deny\"\n",
            random.below(100)
        );
        file + "[[rules]]\ndecision = \"allow\"\n"
    }
}

/// The resources that the gateway has.
#[derive(Clone, Copy, Debug)]
struct Usage {
    kilobytes: usize,
    descriptors: usize,
    programs: usize,
}

impl Usage {
    fn of(gateway: &HttpServing) -> Self {
        let id = gateway.id();
        let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap();
        let resident = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        let kilobytes = resident.split_whitespace().nth(1).unwrap().parse().unwrap();
        let descriptors = fs::read_dir(format!("/proc/{id}/fd")).unwrap().count();
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
        Self { kilobytes, descriptors, programs: children.split_whitespace().count() }
    }
}

/// One of the clients, and what it has seen.
struct SoakClient {
    number: usize,
    principal: &'static str,
    mode: Mode,
    connection: Connection,
}

impl SoakClient {
    async fn connect(number: usize, url: &str) -> Self {
        let principal = ["ALICE", "BOB", "CAROL"][number % 3];
        let mode = if number.is_multiple_of(2) { Mode::Modern } else { Mode::Legacy };
        let http = Http::new(url).unwrap().bearer(principal.to_lowercase()).unwrap();
        let connection = Client::new("host", "1.0.0").mode(mode).connect(http).await.unwrap();
        Self { number, principal, mode, connection }
    }

    /// Makes a call, which has to be answered.
    async fn call(&self, random: &mut Random, calls: &AtomicUsize) {
        let Self { number, principal, mode, connection } = self;
        let text = format!("{principal}-{number}-{}", random.below(1_000_000));
        let tide = || json!({"port": "bergen", "hour": 4});
        let backend = HONEST[usize::try_from(random.below(HONEST.len() as u64)).unwrap()];
        let (name, arguments) = match (random.below(10), backend) {
            (0, _) => ("crashing_tide".to_owned(), tide()),
            (1, _) => ("sometimes_tide".to_owned(), tide()),
            (2, _) => ("broken_echo".to_owned(), json!({"text": text})),
            (3, _) => ("dead_echo".to_owned(), json!({"text": text})),
            (4, _) => ("session_keep".to_owned(), json!({"text": text})),
            (_, "demo" | "program") => (format!("{backend}_tide"), tide()),
            (_, backend) => (format!("{backend}_echo"), json!({"text": text})),
        };
        let answered = timeout(LIMIT, connection.call_tool(&*name, arguments)).await;
        let answered = answered.unwrap_or_else(|_| panic!("client {number}: `{name}` is not answered"));
        calls.fetch_add(1, Ordering::Relaxed);
        match (name.as_str(), answered) {
            ("crashing_tide" | "sometimes_tide", _) => {}
            ("broken_echo" | "dead_echo", answered) => {
                let error = answered.unwrap_err().to_string();
                assert!(error.contains("`broken`") || error.contains("`dead`"), "{error}");
            }
            ("session_keep", answered) => {
                let before = answered.unwrap_or_else(|error| panic!("{mode:?} {number}: {error}")).text();
                // A session is that of one client, or of those of a principal that have none.
                let own = match mode {
                    Mode::Legacy => format!("{principal}-{number}-"),
                    _ => format!("{principal}-"),
                };
                assert!(before.is_empty() || before.starts_with(&own), "{own} sees {before}");
            }
            (name, answered) => {
                let result =
                    answered.unwrap_or_else(|error| panic!("client {number}: `{name}`: {error}")).text();
                assert!(result == text || name.ends_with("_tide"), "{name}: {result} is not {text}");
            }
        }
    }
}

#[tokio::test]
async fn many_clients_of_ten_backends_lose_nothing_while_the_file_changes() {
    let seed: u64 = variable("PINTLE_CHAOS_SEED", u64::from(std::process::id()));
    let seconds: u64 = variable("PINTLE_SOAK_SECONDS", 8);
    let count: usize = variable("PINTLE_SOAK_CLIENTS", 12);
    println!("PINTLE_CHAOS_SEED={seed}, {count} clients for {seconds} s");
    let mut random = Random(seed);
    let backends = Backends::start().await;
    let machine = Machine::new("gateway-soak");
    machine.write("team.toml", &backends.file(&mut random));
    let mut command = pintle();
    command.args(["gateway", "team.toml", "--http", "127.0.0.1:0"]).current_dir(machine.path(""));
    command.stderr(fs::File::create(machine.path("gateway.log")).unwrap());
    for principal in ["ALICE", "BOB", "CAROL"] {
        command.args(["--bearer-env", principal]).env(principal, principal.to_lowercase());
    }
    let gateway = HttpServing::of(command);
    let (calls, start) = (Arc::new(AtomicUsize::new(0)), Instant::now());
    let end = start + Duration::from_secs(seconds);
    let first = SoakClient::connect(0, &gateway.url).await;
    super::names(&first.connection, |names| {
        HONEST.iter().all(|backend| names.iter().any(|name| name.starts_with(&format!("{backend}_"))))
    })
    .await;
    let mut clients = tokio::task::JoinSet::new();
    for number in 0..count {
        let (url, calls, mut random) =
            (gateway.url.clone(), calls.clone(), Random(seed ^ (number as u64) << 32));
        clients.spawn(async move {
            let client = SoakClient::connect(number, &url).await;
            while Instant::now() < end {
                client.call(&mut random, &calls).await;
            }
            client.connection.close().await;
        });
    }
    let (mut reloads, mut kills, mut half) = (0, 0, None);
    while Instant::now() < end {
        sleep(Duration::from_millis(500 + random.below(2_500))).await;
        machine.write("team.toml", &backends.file(&mut random));
        reloads += 1;
        for id in marked(&backends.mark) {
            // It may have ended.
            let _ = kill_process(Pid::from_raw(id.cast_signed()).unwrap(), Signal::KILL);
            kills += 1;
        }
        if half.is_none() && start.elapsed() > Duration::from_secs(seconds / 2) {
            half = Some(Usage::of(&gateway));
        }
    }
    let whole = Usage::of(&gateway);
    while let Some(ended) = clients.join_next().await {
        ended.unwrap();
    }
    let calls = calls.load(Ordering::Relaxed);
    println!("{calls} calls, {reloads} changes, {kills} programs killed: {half:?}, then {whole:?}");
    assert!(calls > count, "{calls}");
    let half = half.unwrap();
    assert!(whole.kilobytes < half.kilobytes * 3 / 2 + 20_000, "{half:?}, then {whole:?}");
    assert!(whole.descriptors < half.descriptors * 3 / 2 + 40, "{half:?}, then {whole:?}");
    assert!(whole.programs <= half.programs + count, "{half:?}, then {whole:?}");
    // The file that is written last is in use, and everybody is still served.
    assert!(first.connection.call_tool("modern_echo", json!({"text": "end"})).await.unwrap().text() == "end");
}
