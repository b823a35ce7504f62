//! `pintle gateway` as a process: many targets as one, with rules.

mod addresses;
mod declared;
mod drain;
#[cfg(unix)]
mod ending;
mod exchange;
mod explain;
mod exposure;
mod extensions;
mod fleet;
mod from_hosts;
mod kept;
mod leaks;
mod login;
mod login_fleet;
mod logs;
mod operating;
mod principal_login;
mod protected;
#[cfg(unix)]
mod reloaded;
mod servers;
#[cfg(target_os = "linux")]
mod soak;
mod tasks;

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use pintle::{
    Client, Connection, Server,
    client::{Answer, Mode, http::Http},
    server::{around, tool},
};
use serde_json::{Value, json};

use crate::support::{HttpServing, PATIENCE, machine::Machine, pintle};

/// Two demo servers, in this process and as a program, and one that cannot be started.
fn file(rules: &str) -> String {
    let program = env!("CARGO_BIN_EXE_pintle").replace('\\', "\\\\");
    format!(
        r#"
        audit = "audit.jsonl"

        [targets.one]
        server = "demo"
        tools.tide = {{ rename = "water", description = "How high is the water?", fix = {{ hour = 4 }} }}

        [targets.two]
        command = ["{program}", "demo"]
        only = ["tide", "berth"]

        [targets.dead]
        command = ["/no/such/program"]

        {rules}
        "#
    )
}

const RULES: &str = r#"
    [[rules]]
    name = "bob reads"
    principals = ["BOB"]
    tools = ["one_water"]
    decision = "allow"

    [[rules]]
    name = "not the open sea"
    tools = ["*_water", "*_tide"]
    arguments = { port = "lerwick" }
    decision = "deny"
    reason = "it is too cold there"

    [[rules]]
    name = "alice"
    principals = ["ALICE", "@local"]
    decision = "allow"
"#;

fn gateway(machine: &Machine, text: &str) -> HttpServing {
    machine.write("team.toml", text);
    let mut command = pintle();
    command.args([
        "gateway",
        "team.toml",
        "--http",
        "127.0.0.1:0",
        "--bearer-env",
        "ALICE",
        "--bearer-env",
        "BOB",
    ]);
    command.current_dir(machine.path("")).env("ALICE", "alice-token").env("BOB", "bob-token");
    HttpServing::of(command)
}

/// Returns the entry of a target at an address.
fn target(name: &str, address: SocketAddr) -> String {
    format!("[targets.{name}]\nurl = \"http://{address}/mcp\"\n")
}

async fn connect(url: &str, token: &str, mode: Mode) -> Connection {
    let client = Client::new("host", "1.0.0").mode(mode).on_elicit(|_| async { Answer::Decline });
    client.connect(Http::new(url).unwrap().bearer(token).unwrap()).await.unwrap()
}

/// Has a gateway end, so that its logs are written, and returns one of them.
pub(crate) fn ended(gateway: HttpServing, machine: &Machine, log: &str) -> String {
    let mut gateway = gateway;
    let kill = std::process::Command::new("kill").arg(gateway.id().to_string()).status();
    assert!(kill.unwrap().success());
    assert_eq!(gateway.exit_code(), Some(0));
    machine.read(log)
}

/// Lists the tools until a condition is met, again after each change.
async fn names(client: &Connection, until: impl Fn(&[String]) -> bool) -> Vec<String> {
    let mut changes = client.changes().await.unwrap();
    loop {
        let names: Vec<_> = client.tools().await.unwrap().into_iter().map(|tool| tool.name).collect();
        if until(&names) || tokio::time::timeout(PATIENCE, changes.next()).await.is_err() {
            return names;
        }
    }
}

/// Requests a page. Returns its whole response.
pub(crate) fn page(gateway: &HttpServing, path: &str, token: &str) -> String {
    let address = gateway.url.strip_prefix("http://").unwrap().split('/').next().unwrap();
    page_at(address, path, token)
}

/// Requests a page at an address. Returns its whole response.
fn page_at(address: &str, path: &str, token: &str) -> String {
    let mut connection = TcpStream::connect(address).unwrap();
    write!(
        connection,
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut response = String::new();
    connection.read_to_string(&mut response).unwrap();
    response
}

#[tokio::test]
async fn many_targets_are_one_and_each_principal_has_its_rules() {
    let machine = Machine::new("gateway");
    let gateway = gateway(&machine, &file(RULES));
    for mode in [Mode::Legacy, Mode::Modern] {
        let alice = connect(&gateway.url, "alice-token", mode).await;
        let all = names(&alice, |names| {
            names.contains(&"one_water".to_owned()) && names.contains(&"two_tide".to_owned())
        })
        .await;
        let two: Vec<_> = all.iter().filter(|name| name.starts_with("two_")).collect();
        assert_eq!(two, ["two_tide", "two_berth"], "{all:?}");
        assert!(!all.contains(&"one_tide".to_owned()), "{all:?}");
        let water = alice.call_tool("one_water", json!({"port": "bergen"})).await.unwrap().text();
        let tide = alice.call_tool("two_tide", json!({"port": "bergen", "hour": 4})).await.unwrap().text();
        assert_eq!(water, tide);
        let cold = alice.call_tool("two_tide", json!({"port": "lerwick", "hour": 4})).await.unwrap_err();
        assert!(cold.to_string().contains("too cold"), "{cold}");
        let dead = alice.call_tool("dead_thing", ()).await.unwrap_err().to_string();
        assert!(dead.contains("the backend `dead` has been down for"), "{dead}");

        let bob = connect(&gateway.url, "bob-token", mode).await;
        assert_eq!(names(&bob, |_| true).await, ["one_water"]);
        assert_eq!(bob.call_tool("one_water", json!({"port": "bergen"})).await.unwrap().text(), water);
        for hidden in ["two_tide", "dead_thing", "nothing"] {
            let error = bob.call_tool(hidden, ()).await.unwrap_err().to_string();
            assert!(error.contains(&format!("no such tool: `{hidden}`")), "{error}");
            assert!(!error.contains("been down"), "{error}");
        }

        let only = connect(&format!("{}/two", gateway.url), "alice-token", mode).await;
        assert_eq!(names(&only, |_| true).await, ["two_tide", "two_berth"]);
    }
    assert!(page(&gateway, "/health", "").contains("ok"));
    let ready = page(&gateway, "/ready", "bob-token");
    assert!(ready.contains("503") && ready.contains("dead is down for"), "{ready}");
    let metrics = page(&gateway, "/metrics", "bob-token");
    assert!(metrics.contains("backend_up{backend=\"one\"} 1"), "{metrics}");
    assert!(metrics.contains("decisions_total{decision=\"deny\"} 2"), "{metrics}");
    assert!(page(&gateway, "/metrics", "nobody").contains("401"));
    let audit = ended(gateway, &machine, "audit.jsonl");
    assert!(audit.contains(r#""rule":"not the open sea""#) && !audit.contains("lerwick"), "{audit}");
}

#[tokio::test]
async fn a_changed_file_reaches_connected_clients() {
    let machine = Machine::new("gateway-reload");
    let gateway = gateway(&machine, &file(RULES));
    let bob = connect(&gateway.url, "bob-token", Mode::Modern).await;
    let sees = |wanted: &'static str| move |names: &[String]| names.iter().any(|name| name == wanted);
    assert_eq!(names(&bob, sees("one_water")).await, ["one_water"]);
    machine.write(
        "team.toml",
        &file("[[rules]]\nprincipals = [\"BOB\"]\ntools = [\"two_*\"]\ndecision = \"allow\"\n"),
    );
    // A list that was begun before the change may have entries of both.
    let two = ["two_tide", "two_berth"];
    assert_eq!(names(&bob, |names| names == two).await, two);
    let more = "\n[targets.three]\nserver = \"demo\"\nonly = [\"tide\"]\n[[rules]]\ndecision = \"allow\"\n";
    machine.write("team.toml", &file(more).replace("[targets.two]", "[targets.zwei]"));
    let all = names(&bob, |names| sees("three_tide")(names) && sees("zwei_tide")(names)).await;
    assert!(all.contains(&"one_water".to_owned()) && !all.contains(&"two_tide".to_owned()), "{all:?}");
    let gone = bob.call_tool("two_tide", ()).await.unwrap_err().to_string();
    assert!(gone.contains("no such tool"), "{gone}");
    let ready = page(&gateway, "/ready", "bob-token");
    assert!(ready.contains("dead is down") && !ready.contains("two is down"), "{ready}");
    let metrics = page(&gateway, "/metrics", "bob-token");
    assert!(metrics.contains("{backend=\"zwei\"} 1") && !metrics.contains("\"two\""), "{metrics}");
}

#[tokio::test]
async fn targets_that_the_file_still_has_stay_connected() {
    let handshakes = Arc::new(AtomicUsize::new(0));
    let counted = handshakes.clone();
    let server = Server::new("steady", "0").tool(tool("look", || async { "seen" }));
    let server = server.layer(&around(move |cx, next| {
        counted.fetch_add(
            usize::from(matches!(cx.method(), "initialize" | "server/discover")),
            Ordering::SeqCst,
        );
        next.run(cx)
    }));
    let serving = server.serve_http("127.0.0.1:0").await.unwrap();
    let machine = Machine::new("gateway-steady");
    let file = target("steady", serving.address());
    let gateway = gateway(&machine, &file);
    let alice = connect(&gateway.url, "alice-token", Mode::Modern).await;
    names(&alice, |names| !names.is_empty()).await;
    assert_eq!(alice.call_tool("steady_look", ()).await.unwrap().text(), "seen");
    let before = handshakes.load(Ordering::SeqCst);
    machine.write("team.toml", &format!("{file}[[rules]]\ndecision = \"allow\"\n"));
    gateway.printed("has changed, and is in use now").await;
    assert_eq!(alice.call_tool("steady_look", ()).await.unwrap().text(), "seen");
    assert_eq!(handshakes.load(Ordering::SeqCst), before);
}

#[tokio::test]
async fn tools_are_searched_in_place_of_listed_and_rules_judge_what_is_called() {
    let machine = Machine::new("gateway-search");
    let gateway = gateway(&machine, &format!("search = true\n{}", file(RULES)));
    for mode in [Mode::Legacy, Mode::Modern] {
        let bob = connect(&gateway.url, "bob-token", mode).await;
        assert_eq!(names(&bob, |_| true).await, ["search_tools", "call_tool"]);
        // Its path lists what the search finds.
        let one = connect(&format!("{}/one", gateway.url), "bob-token", mode).await;
        assert_eq!(names(&one, |names| !names.is_empty()).await, ["one_water"]);
        let found = bob.call_tool("search_tools", json!({"query": "water"})).await.unwrap().text();
        assert!(found.contains("one_water") && !found.contains("two_"), "{found}");
        let call = json!({"name": "one_water", "arguments": {"port": "bergen"}});
        assert!(!bob.call_tool("call_tool", call).await.unwrap().text().is_empty());
        let hidden = bob.call_tool("call_tool", json!({"name": "two_tide"})).await.unwrap_err().to_string();
        assert!(hidden.contains("no such tool: `two_tide`"), "{hidden}");
        let alice = connect(&gateway.url, "alice-token", mode).await;
        let cold = json!({"name": "two_tide", "arguments": {"port": "lerwick", "hour": 1}});
        let cold = alice.call_tool("call_tool", cold).await.unwrap_err().to_string();
        assert!(cold.contains("too cold"), "{cold}");
    }
}

#[test]
fn a_file_is_checked_and_its_rules_are_explained() {
    let machine = Machine::new("gateway-check");
    let run = |words: &[&str]| {
        let mut command = pintle();
        command.arg("gateway").args(words).current_dir(machine.path(""));
        crate::support::run(&mut command)
    };
    machine.write("team.toml", &file(RULES));
    assert!(run(&["team.toml", "--check"]).stdout.contains("3 targets and 3 rules"));
    machine.write("wrong.toml", "[targets.a]\nserver = \"demo\"\n\n[[rules]]\ntols = [\"a\"]\n");
    let wrong = run(&["wrong.toml", "--check"]);
    assert!(wrong.stderr.contains("line 5") && wrong.stderr.contains("`tols`"), "{}", wrong.stderr);
    let schema: Value = serde_json::from_str(&run(&["--schema"]).stdout).unwrap();
    let target = &schema["$defs"]["TargetEntry"]["properties"];
    assert!(schema["properties"]["rules"].is_object() && target["login_client"].is_object(), "{schema}");
    assert!(schema["$defs"]["LoginEntry"].to_string().contains("boolean"), "{schema}");
    machine.write("demo.toml", &format!("[targets.one]\nserver = \"demo\"\n{RULES}"));
    let explained = run(&["demo.toml", "--explain", "ALICE", "one_tide", r#"{"port": "lerwick"}"#]).stdout;
    assert!(explained.contains("bob reads: does not decide"), "{explained}");
    assert!(explained.contains("not the open sea: Deny(\"it is too cold there\")"), "{explained}");
    // What decides is who calls, and which target has the tool.
    let kinds = "[[rules]]\nname = \"guests\"\nprincipals = [\"@anonymous\"]\ndecision = \"allow\"\n\
                 [[rules]]\nname = \"of one\"\nbackends = [\"one\"]\ndecision = \"deny\"\n";
    machine.write("kinds.toml", &format!("[targets.one]\nserver = \"demo\"\n{kinds}"));
    for (principal, expected) in [("@anonymous", "guests: Allow"), ("ANN", "of one: Deny")] {
        let explained = run(&["kinds.toml", "--explain", principal, "one_tide"]).stdout;
        assert!(explained.contains(expected), "{explained}");
    }
    // A virtual server, what it fixes, and what a target fixes; prompts; rights, which are in tokens.
    let all = "[targets.one]\nserver = \"demo\"\ntools.tide.fix = { port = \"lerwick\" }\n\
               [servers.small]\ntools.one_tide = { rename = \"tides\", fix = { hour = 3 } }\n\
               [[servers.small.rules]]\nname = \"late\"\ntools = [\"one_tide\"]\narguments = { hour = { min = 3 } }\ndecision = \"deny\"\n\
               [[servers.small.rules]]\ndecision = \"allow\"\n\
               [[rules]]\nname = \"north\"\ntools = [\"one_tide\"]\narguments = { port = \"lerwick\" }\ndecision = \"confirm\"\n\
               [[rules]]\nname = \"readers\"\nrights = [\"read\"]\ndecision = \"allow\"\n";
    machine.write("all.toml", all);
    let explain = |words: &[&str]| {
        let explained = run(&[&["all.toml", "--explain"], words].concat());
        explained.stdout + &explained.stderr
    };
    for (words, expected) in [
        (&["@local", "one_tide", r#"{"hour":1}"#] as &[&str], "north: Confirm"),
        (&["@local", "one_tide", r#"{"port":"bergen"}"#], "there is no argument `port`: leave it out"),
        (&["@local", "tides", "--server", "small"], "late: Deny"),
        (&["@local", "tides", "--server", "small"], "the strictest counts: Deny"),
        (&["@local", "tides"], "has a tool, prompt or resource `tides`"),
        (&["@local", "one_tide", "--server", "large"], "no server or target `large`"),
        (&["@local", "one_signal"], "readers: Allow"),
        (&["@local", "one_passage"], "readers: Allow"),
        (&["@local", "harbour://notice"], "readers: Allow"),
        (&["@anonymous", "one_signal"], "the default: Hide"),
        (&["ANN", "one_signal"], "With `read`:"),
        (&["ANN", "one_signal"], "readers: Allow"),
        (
            &["ANN", "one_signal"],
            "without them:\nnorth: does not decide, because of the entry\nreaders: does not decide, because of `rights`\nthe default: Hide",
        ),
        (&["ANN", "one_tide"], "the same with and without the rights `read`"),
    ] {
        let explained = explain(words);
        assert!(explained.contains(expected), "{words:?}: {explained}");
    }
    // Names that hosts refuse are listed, and only those.
    let long = "a".repeat(32);
    machine
        .write("long.toml", &format!("[targets.{long}]\nserver = \"demo\"\ntools.tide.title = \"Tides\"\n"));
    let checked = run(&["long.toml", "--check", "--connect"]).stdout;
    assert!(checked.contains("tools") && !checked.contains("is offered as"), "{checked}");
    machine.write("huge.toml", &format!("{}[targets.one]\nserver = \"demo\"\n", "# x\n".repeat(300_000)));
    let huge = run(&["huge.toml", "--check"]);
    assert!(
        huge.stderr.contains("more than 1048576 bytes: move a part") && huge.code != Some(0),
        "{}",
        huge.stderr
    );
}
