//! Programs behind a bridge: how many there are, and that none is left.

use std::{fs, time::Duration};

use pintle::{
    Client, Connection, Error,
    client::{Mode, http::Http},
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::HostedBridge;
use crate::support::{HttpServing, machine::Machine, pintle};

/// A bridge whose programs, and all that they start, have a mark in their environment.
struct MarkedBridge {
    bridge: HttpServing,
    mark: String,
}

/// Ignores signals, leaves a process behind that does so too, and fills its standard error.
const HOSTILE: &str = r#"trap "" TERM HUP INT
    (while :; do sleep 1000; done) &
    (yes "$(printf '%02000d' 0)" | head -c 20000000) >&2 &
    exec "$0" demo"#;

impl MarkedBridge {
    fn start(name: &str, options: &[&str], script: &str) -> Self {
        let mark = format!("PINTLE_TEST_MARK={name}-{}", std::process::id());
        let mut command = pintle();
        command.args(["bridge", "--http", "127.0.0.1:0", "--era", "session", "--env", &mark]).args(options);
        command.args(["--", "sh", "-c", script, env!("CARGO_BIN_EXE_pintle")]);
        Self { bridge: HttpServing::of(command), mark }
    }

    async fn connect(&self, mode: Mode) -> Connection {
        let client = Client::new("host", "1.0.0").mode(mode);
        client.connect(Http::new(&self.bridge.url).unwrap()).await.unwrap()
    }

    fn processes(&self) -> Vec<u32> {
        marked(&self.mark)
    }

    /// Waits until there are so many processes. What ends them was done before.
    async fn reaches(&self, count: usize) {
        reaches(&self.mark, count).await;
    }
}

/// Returns the living processes that have this in their environment.
pub(crate) fn marked(mark: &str) -> Vec<u32> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let ids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter(|id| {
        // It may end at any time.
        let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    })
    .collect()
}

async fn reaches(mark: &str, count: usize) {
    for _ in 0..2_000 {
        if marked(mark).len() == count {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{:?} instead of {count}", marked(mark));
}

async fn tide(client: &Connection) -> pintle::Result<String> {
    Ok(client.call_tool("tide", json!({"port": "bergen", "hour": 4})).await?.text())
}

#[tokio::test]
async fn a_hostile_program_is_gone_with_its_session_and_with_the_bridge() {
    let marked = MarkedBridge::start("hostile", &[], HOSTILE);
    let clients = [marked.connect(Mode::Legacy).await, marked.connect(Mode::Modern).await];
    for client in &clients {
        tide(client).await.unwrap();
    }
    // Each program has left two processes behind.
    assert!(marked.processes().len() >= 6, "{:?}", marked.processes());
    for client in clients {
        client.close().await;
    }
    // The session has ended, and its program was killed; that of clients without a session is kept for the next one.
    marked.reaches(3).await;
    let client = marked.connect(Mode::Legacy).await;
    tide(&client).await.unwrap();
    let bridge = Pid::from_raw(marked.bridge.id().cast_signed()).unwrap();
    kill_process(bridge, Signal::TERM).unwrap();
    marked.reaches(0).await;
}

#[tokio::test]
async fn a_host_that_leaves_leaves_no_program() {
    let machine = Machine::new("bridge-leaves");
    let mark = format!("PINTLE_TEST_MARK=leaves-{}", std::process::id());
    let words = ["--era", "session", "--env", &mark, "--", "sh", "-c", HOSTILE, env!("CARGO_BIN_EXE_pintle")];
    let bridge = HostedBridge::new(&machine, &words);
    let client = Client::new("host", "1.0.0").connect(bridge.spawn()).await.unwrap();
    tide(&client).await.unwrap();
    assert!(marked(&mark).len() >= 3);
    client.close().await;
    reaches(&mark, 0).await;
}

#[tokio::test]
async fn a_program_that_is_killed_is_started_again_for_the_next_call() {
    let marked = MarkedBridge::start("killed", &[], r#"exec "$0" demo"#);
    for mode in [Mode::Legacy, Mode::Modern] {
        let client = marked.connect(mode).await;
        tide(&client).await.unwrap();
        for _ in 0..6 {
            for id in marked.processes() {
                // It may have ended.
                let _ = kill_process(Pid::from_raw(id.cast_signed()).unwrap(), Signal::KILL);
            }
            // The call may be the one that finds out.
            if let Err(error) = tide(&client).await {
                assert!(error.to_string().contains("`harbour`"), "{error}");
            }
            assert!(tide(&client).await.unwrap().contains("0.6"));
        }
        client.close().await;
    }
}

#[tokio::test]
async fn a_principal_does_not_have_all_programs() {
    let mut command = pintle();
    command.args([
        "bridge",
        "--http",
        "127.0.0.1:0",
        "--era",
        "session",
        "--max-programs",
        "2",
        "--max-wait",
        "0s",
    ]);
    command.args(["--bearer-env", "ANN", "--bearer-env", "BOB", "--", env!("CARGO_BIN_EXE_pintle"), "demo"]);
    let bridge = HttpServing::of({
        command.env("ANN", "ann-token").env("BOB", "bob-token");
        command
    });
    let connect = async |token: &str| {
        let http = Http::new(&bridge.url).unwrap().bearer(token).unwrap();
        Client::new("host", "1.0.0").mode(Mode::Legacy).connect(http).await.unwrap()
    };
    let (ann, again, bob) =
        (connect("ann-token").await, connect("ann-token").await, connect("bob-token").await);
    tide(&ann).await.unwrap();
    let Err(Error::Rpc(error)) = tide(&again).await else { panic!("she has all programs") };
    assert_eq!(error.code, pintle::types::ErrorCode::OVERLOADED, "{error}");
    assert!(
        error.message.contains("for this caller") && error.message.contains("`--max-programs`"),
        "{error}"
    );
    tide(&bob).await.unwrap();
    tide(&ann).await.unwrap();
}

#[tokio::test]
async fn more_programs_than_allowed_are_refused_with_what_to_do() {
    let marked =
        MarkedBridge::start("limited", &["--max-programs", "2", "--max-wait", "0s"], r#"exec "$0" demo"#);
    let first = marked.connect(Mode::Legacy).await;
    tide(&first).await.unwrap();
    // The one that told what the server offers has ended.
    marked.reaches(1).await;
    let other = marked.connect(Mode::Legacy).await;
    tide(&other).await.unwrap();
    let second = marked.connect(Mode::Legacy).await;
    let Err(Error::Rpc(error)) = tide(&second).await else { panic!("it has a program") };
    assert_eq!(error.code, pintle::types::ErrorCode::OVERLOADED, "{error}");
    assert!(error.message.contains("`--max-programs`"), "{error}");
    tide(&first).await.unwrap();
    first.close().await;
    // Its program ends in the background.
    marked.reaches(1).await;
    tide(&second).await.unwrap();
}

/// A call that needs a third program waits for the end of another session.
#[tokio::test]
async fn who_finds_all_programs_in_use_waits_for_one() {
    let marked =
        MarkedBridge::start("waits", &["--max-programs", "1", "--max-wait", "1h"], r#"exec "$0" demo"#);
    let first = marked.connect(Mode::Legacy).await;
    tide(&first).await.unwrap();
    let second = marked.connect(Mode::Legacy).await;
    let (waited, ()) = tokio::join!(tide(&second), async {
        tide(&first).await.unwrap();
        first.close().await;
    });
    assert!(waited.unwrap().contains("0.6"));
}

#[tokio::test]
async fn one_program_for_all_if_that_is_wanted() {
    let marked = MarkedBridge::start("shared", &["--shared"], r#"exec "$0" demo"#);
    for mode in [Mode::Legacy, Mode::Modern, Mode::Legacy] {
        tide(&marked.connect(mode).await).await.unwrap();
    }
    assert_eq!(marked.processes().len(), 1);
}

#[tokio::test]
async fn a_program_that_nobody_calls_is_ended() {
    let marked = MarkedBridge::start("idle", &["--idle", "1ms"], r#"exec "$0" demo"#);
    let client = marked.connect(Mode::Legacy).await;
    for _ in 0..3 {
        tide(&client).await.unwrap();
        marked.reaches(0).await;
    }
}

#[tokio::test]
async fn an_old_program_is_replaced_between_two_calls() {
    let options = ["--lifetime", "1ms", "--idle", "1h"];
    let marked = MarkedBridge::start("lifetime", &options, r#"exec "$0" demo"#);
    let client = marked.connect(Mode::Legacy).await;
    for _ in 0..3 {
        assert!(tide(&client).await.unwrap().contains("0.6"));
        marked.reaches(0).await;
    }
}

/// A program that shows what it offers once, and then exits at once, whoever starts it.
#[tokio::test]
async fn a_program_that_exits_at_once_is_started_again_after_a_delay_that_is_reported_to_clients() {
    let machine = Machine::new("bridge-exits");
    let started = machine.path("started");
    let script = format!(
        r#"if [ -e '{0}' ]; then echo started >> '{0}'; exit 3; fi; : > '{0}'; exec "$0" demo"#,
        started.display()
    );
    let marked = MarkedBridge::start("exits", &[], &script);
    let client = marked.connect(Mode::Legacy).await;
    let mut delayed = 0;
    // A busy machine may take longer for a call than the first delays are; they double, up to half a minute.
    for _ in 0..40 {
        let error = tide(&client).await.unwrap_err().to_string();
        assert!(error.contains("`harbour`"), "{error}");
        if error.contains("exited with status 3") && error.contains("it is started again in") {
            delayed += 1;
        }
        if delayed == 3 {
            break;
        }
    }
    assert_eq!(delayed, 3, "every call starts a program");
    let starts = fs::read_to_string(&started).unwrap().lines().count();
    assert!((4..40).contains(&starts), "{starts}");
}

/// `--max-message` counts for both directions; the default lets the same pass.
#[tokio::test]
async fn a_message_that_is_longer_than_allowed_is_refused() {
    for (options, is_refused) in [(&["--max-message", "64KiB"][..], true), (&[], false)] {
        let bridge = HttpServing::start(&[&["bridge", "--http", "127.0.0.1:0"], options, &["demo"]].concat());
        let client = Client::new("test", "1").connect(Http::new(&bridge.url).unwrap()).await.unwrap();
        let called = client.call_tool("tide", json!({"port": "x".repeat(100_000), "hour": 4})).await;
        let is_too_long = |error: &Error| error.to_string().contains("the body is larger than 65536 bytes");
        assert_eq!(called.as_ref().is_err_and(is_too_long), is_refused, "{options:?}: {called:?}");
    }
}

/// A bridge, and a gateway with a target, a worker and a command: what they have started has started others, and ignores `SIGTERM` and the
/// end of its input.
#[tokio::test]
async fn nothing_is_left_of_a_bridge_or_gateway_that_is_killed() {
    let kill = async |serving: &HttpServing, mark: &str| {
        assert!(marked(mark).len() >= 3, "{:?}", marked(mark));
        kill_process(Pid::from_raw(serving.id().cast_signed()).unwrap(), Signal::KILL).unwrap();
        reaches(mark, 0).await;
    };
    let bridge = MarkedBridge::start("of-killed", &[], HOSTILE);
    tide(&bridge.connect(Mode::Modern).await).await.unwrap();
    kill(&bridge.bridge, &bridge.mark).await;

    let machine = Machine::new("gateway-killed");
    let mark = format!("PINTLE_TEST_MARK=gateway-killed-{}", std::process::id());
    let (_, value) = mark.split_once('=').unwrap();
    let loops = "(while :; do sleep 1000; done)";
    let hostile = format!("trap '' TERM HUP INT; {loops} & ");
    let program = format!(r#"{hostile} exec "$0" demo"#);
    let worker = format!(
        r#"{hostile} read line; id=${{line#*:}}; echo "{{\"call\":${{id%%,*}},\"result\":\"done\"}}"; {loops}"#
    );
    let env = format!("env = {{ PINTLE_TEST_MARK = \"{value}\" }}");
    let pintle = env!("CARGO_BIN_EXE_pintle");
    machine.write(
        "team.toml",
        &format!(
            r#"
[targets.sea]
command = ["sh", "-c", {program:?}, "{pintle}"]
era = "session"
{env}

[workers.stays]
command = ["sh", "-c", {worker:?}]
{env}

[tools.work]
worker = "stays"

[tools.run]
shell = true
command = "{hostile} echo begun; {loops}"
progress = true
{env}
"#
        ),
    );
    let file = machine.path("team.toml");
    let gateway = HttpServing::start(&["gateway", file.to_str().unwrap(), "--http", "127.0.0.1:0"]);
    let client = Client::new("host", "1.0.0").mode(Mode::Legacy);
    let client = client.connect(Http::new(&gateway.url).unwrap()).await.unwrap();
    client.call_tool("sea_tide", json!({"port": "bergen", "hour": 4})).await.unwrap();
    assert_eq!(client.call_tool("work", ()).await.unwrap().text(), "done");
    let (sender, mut begun) = tokio::sync::mpsc::channel(1);
    let run = tokio::spawn(async move {
        client
            .call("run")
            .on_progress(move |_| {
                // One line is enough.
                let _ = sender.try_send(());
            })
            .await
    });
    begun.recv().await.unwrap();
    kill(&gateway, &mark).await;
    run.abort();
}
