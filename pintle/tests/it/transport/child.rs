use std::{
    env, fs, io,
    os::unix::fs::PermissionsExt,
    sync::{Arc, Mutex},
    time::Duration,
};

use pintle::transport::{Child, ChildCommand, Stage, Stderr, Transport};
use rustix::process::{Pid, test_kill_process, test_kill_process_group};

use crate::support::transport_calls::{recv, rest, send};

fn sh(script: &str) -> ChildCommand {
    Child::command("sh").args(["-c", script])
}

/// Whether a process is there and not just waiting to be collected by whoever inherited it.
fn runs(pid: i32) -> bool {
    let dead = fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "));
    !dead && test_kill_process(Pid::from_raw(pid).unwrap()).is_ok()
}

/// Waits for processes to be gone. They are told to when this is called, so it is a matter of moments.
async fn gone(pids: &[i32]) {
    for _ in 0..1_000 {
        if !pids.iter().any(|pid| runs(*pid)) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("still there: {pids:?}");
}

/// A server, and a child of its own, that ignore everything they can. It says both process ids.
const STUBBORN: &str = r#"trap "" TERM; (trap "" TERM; while :; do sleep 1000; done) & echo "$$ $!"
    while :; do sleep 1000; done"#;

async fn stubborn(command: ChildCommand) -> (Child, Vec<i32>) {
    let mut child = command.spawn().unwrap();
    let pids = recv(&mut child).await.unwrap();
    let pids: Vec<i32> = pids.split(' ').map(|pid| pid.parse().unwrap()).collect();
    assert_eq!(pids[0].unsigned_abs(), child.id());
    assert!(pids.iter().all(|pid| runs(*pid)));
    (child, pids)
}

#[tokio::test]
async fn a_server_that_ignores_the_end_and_term_is_gone_after_shutdown_and_so_are_its_children() {
    let (child, pids) = stubborn(sh(STUBBORN).grace(Duration::from_millis(1))).await;
    let exit = child.shutdown().await;
    assert_eq!(exit.stage, Stage::Killed);
    assert_eq!(exit.to_string(), "was ended by signal 9");
    gone(&pids).await;
}

#[tokio::test]
async fn a_dropped_child_is_ended_in_the_background() {
    let (child, pids) = stubborn(sh(STUBBORN).grace(Duration::ZERO)).await;
    drop(child);
    gone(&pids).await;
}

#[test]
fn a_child_is_killed_when_its_runtime_stops_or_when_it_is_dropped_outside_of_one() {
    for first in ["runtime", "child"] {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let long = Duration::from_secs(1_000);
        let (child, pids) = runtime.block_on(stubborn(sh(STUBBORN).grace(long)));
        let kept = if first == "runtime" {
            drop(runtime);
            (Some(child), None)
        } else {
            drop(child);
            (None, Some(runtime))
        };
        let other = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        other.block_on(gone(&pids));
        drop(kept);
    }
}

#[tokio::test]
async fn each_stage_is_tried_before_the_next() {
    let long = Duration::from_secs(1_000);
    // One that ends with its input.
    let exit = sh("cat").grace(long).spawn().unwrap().shutdown().await;
    assert_eq!((exit.stage, exit.to_string().as_str()), (Stage::Closed, "exited with status 0"));
    // One that says goodbye at length: it is listened to, so that it does not fail.
    let exit = sh("cat; head -c 1000000 /dev/zero && exit 5").grace(long).spawn().unwrap().shutdown().await;
    assert_eq!((exit.stage, exit.to_string().as_str()), (Stage::Closed, "exited with status 5"));
    // One that needs to be told.
    let tidy = r#"trap "exit 7" TERM; echo up; while :; do sleep 0.01; done"#;
    let mut child = sh(tidy).stderr(Stderr::Null).grace(Duration::from_millis(1)).spawn().unwrap();
    recv(&mut child).await;
    let exit = child.shutdown().await;
    assert!(exit.stage >= Stage::Terminated, "{exit:?}");
}

#[tokio::test]
async fn what_a_server_leaves_behind_when_it_exits_is_ended() {
    let mut child = sh("sleep 1000 >/dev/null 2>&1 & echo $!; exit 3").spawn().unwrap();
    let left = recv(&mut child).await.unwrap().parse().unwrap();
    assert_eq!(recv(&mut child).await, None);
    assert_eq!(child.describe_exit().unwrap(), "the server `sh` exited with status 3");
    gone(&[left]).await;
    // There is nothing left to ask.
    let exit = child.shutdown().await;
    assert_eq!(exit.status.and_then(|status| status.code()), Some(3));
    assert!(exit.stage >= Stage::Terminated);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_exit_is_noticed_though_another_process_holds_the_output_open() {
    let mut child = sh("setsid sh -c 'echo $$; exec sleep 1000' & read line; exit 3").spawn().unwrap();
    let daemon = recv(&mut child).await.unwrap().parse().unwrap();
    send(&mut child, "go").await;
    assert_eq!(recv(&mut child).await, None);
    assert_eq!(child.describe_exit().unwrap(), "the server `sh` exited with status 3");
    // It left the group on purpose.
    assert!(runs(daemon));
    rustix::process::kill_process(Pid::from_raw(daemon).unwrap(), rustix::process::Signal::KILL).unwrap();
}

#[tokio::test]
async fn closing_waits_like_shutdown() {
    let mut child: Box<dyn Transport> = Box::new(sh("cat >/dev/null; exit 4").spawn().unwrap());
    std::future::poll_fn(|cx| child.poll_close(cx)).await.unwrap();
    assert_eq!(child.close_reason().unwrap(), "the server `sh` exited with status 4");
    assert_eq!(recv(&mut child).await, None);
    child.send("late".into());
    let late = std::future::poll_fn(|cx| child.poll_flush(cx)).await.unwrap_err();
    assert_eq!(late.kind(), io::ErrorKind::BrokenPipe);
}

#[tokio::test]
async fn noise_before_the_first_message_is_passed_on_as_it_came() {
    let mut child = sh(r#"echo "Starting server..."; printf '\n\033[1mbold\n'; cat"#).spawn().unwrap();
    send(&mut child, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).await;
    assert_eq!(recv(&mut child).await.unwrap(), "Starting server...");
    assert_eq!(recv(&mut child).await.unwrap(), "\u{1b}[1mbold");
    assert_eq!(recv(&mut child).await.unwrap(), r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
}

#[tokio::test]
async fn a_server_that_dies_in_a_call_ends_the_connection_with_the_reason() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    let command = sh(r#"read line; echo "half an ans"; echo "first" >&2; echo "disk full" >&2; exit 3"#);
    let mut child = command
        .stderr(Stderr::lines(move |line| {
            log.lock().unwrap().push(line.to_owned());
            assert_ne!(line, "first", "one that panics is called again");
        }))
        .spawn()
        .unwrap();
    assert_eq!(child.exit_status(), None);
    send(&mut child, r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#).await;
    assert_eq!(rest(&mut child).await, ["half an ans"]);
    assert_eq!(child.exit_status().unwrap().code(), Some(3));
    let why = "the server `sh` exited with status 3; its last output: `first`, `disk full`";
    assert_eq!(child.close_reason().unwrap(), why);
    assert_eq!(child.exit().unwrap().to_string(), "exited with status 3");
    assert_eq!(child.last_words().unwrap(), "`first`, `disk full`");
    assert_eq!(*seen.lock().unwrap(), ["first", "disk full"]);
}

#[tokio::test]
async fn a_server_that_died_of_the_first_question_is_started_again() {
    let mut child = Child::spawn("sh", ["-c", r#"read line; test "$line" = known && echo answer"#]).unwrap();
    send(&mut child, "unknown").await;
    assert_eq!(recv(&mut child).await, None);
    assert_eq!(child.exit_status().unwrap().code(), Some(1));
    let before = child.id();
    child.restart().unwrap();
    assert_ne!(child.id(), before);
    assert_eq!(child.exit_status(), None);
    send(&mut child, "known").await;
    assert_eq!(recv(&mut child).await.unwrap(), "answer");
}

#[tokio::test]
async fn only_harmless_variables_are_inherited_by_default() {
    // Cargo sets some for its tests: those stand for the secrets.
    let named = "CARGO_MANIFEST_DIR";
    if env::var_os(named).is_none() {
        println!("skipped: not started by cargo");
        return;
    }
    let names = async |command: ChildCommand| {
        let lines = rest(&mut command.spawn().unwrap()).await;
        lines.iter().filter_map(|line| line.split('=').next()).map(str::to_owned).collect::<Vec<_>>()
    };
    let has = |names: &[String], name: &str| names.iter().any(|n| n == name);

    let few = names(Child::command("env").env("GIVEN", "1")).await;
    assert!(has(&few, "PATH") && has(&few, "GIVEN"), "{few:?}");
    let usual = ["HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER", "GIVEN"];
    assert!(few.iter().all(|name| usual.contains(&name.as_str()) || name.starts_with("LC_")), "{few:?}");

    let some = names(Child::command("env").inherit_env(["CARGO_MANIFEST_*"])).await;
    assert!(has(&some, named) && !has(&some, "CARGO_PKG_NAME"), "{some:?}");

    let all = names(Child::command("env").full_env()).await;
    assert!(has(&all, named) && has(&all, "CARGO_PKG_NAME"), "{all:?}");
}

#[tokio::test]
async fn it_runs_in_a_group_of_its_own_in_the_directory_given() {
    let mut child = sh("pwd; cat").current_dir("/").spawn().unwrap();
    assert_eq!(recv(&mut child).await.unwrap(), "/");
    let group = Pid::from_raw(child.id().try_into().unwrap()).unwrap();
    assert!(test_kill_process_group(group).is_ok());
}

#[tokio::test]
async fn errors_say_what_to_do() {
    let error = Child::command("no-such-server").spawn().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    assert_eq!(error.to_string(), "no such program: `no-such-server`: install it or give its path");

    let error = sh("cat").current_dir("/no/such/place").spawn().unwrap_err().to_string();
    assert_eq!(error, "no such directory: `/no/such/place`: create it or give another to start in");

    let script = env::temp_dir().join(format!("pintle-script-{}", std::process::id()));
    fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    let error = Child::command(&script).spawn().unwrap_err().to_string();
    assert!(error.starts_with("may not run `"), "{error}");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o700)).unwrap();
    let error = Child::command(&script).spawn().unwrap_err().to_string();
    assert!(error.ends_with("names in its first line a program that is not there: install that"), "{error}");
    fs::remove_file(script).unwrap();
}

#[test]
fn without_a_runtime_it_is_an_error_not_a_panic() {
    let error = Child::command("cat").spawn().unwrap_err().to_string();
    assert_eq!(error, "a child process needs a tokio runtime: start it in an `async fn`");
}

#[tokio::test]
async fn the_exit_of_each_process_is_reported_when_all_of_it_is_gone() {
    let (sender, mut exits) = tokio::sync::mpsc::unbounded_channel();
    // One that leaves another behind, which ignores `SIGTERM`.
    let script = "trap '' TERM; sleep 600 & echo $!; exit 3";
    let command = sh(script).grace(Duration::from_millis(20));
    let mut child = command.on_exit(move |exit| sender.send(exit.to_string()).unwrap()).spawn().unwrap();
    for _ in 0..2 {
        let left: i32 = recv(&mut child).await.unwrap().parse().unwrap();
        assert_eq!(exits.recv().await.unwrap(), "exited with status 3");
        assert!(!runs(left));
        child.restart().unwrap();
    }
    drop(child);
    exits.recv().await.unwrap();
    assert_eq!(exits.recv().await, None, "what it captures is dropped with the last of it");
}

#[tokio::test]
async fn what_the_start_of_a_process_returns_is_dropped_when_all_of_it_is_gone() {
    struct Group(u32, tokio::sync::mpsc::UnboundedSender<String>);

    impl Drop for Group {
        fn drop(&mut self) {
            let _ = self.1.send(format!("{} is gone", self.0));
        }
    }

    let (sender, mut events) = tokio::sync::mpsc::unbounded_channel();
    let started = move |id| {
        sender.send(format!("{id} has started")).unwrap();
        Group(id, sender.clone())
    };
    // One that leaves another behind, which ignores `SIGTERM`.
    let script = "trap '' TERM; sleep 600 & echo $!; exit 3";
    let mut child = sh(script).grace(Duration::from_millis(20)).on_start(started).spawn().unwrap();
    for _ in 0..2 {
        let (id, left) = (child.id(), recv(&mut child).await.unwrap().parse().unwrap());
        assert_eq!(events.recv().await.unwrap(), format!("{id} has started"));
        assert_eq!(events.recv().await.unwrap(), format!("{id} is gone"));
        assert!(!runs(left));
        child.restart().unwrap();
    }
}

#[tokio::test]
async fn what_is_read_is_counted_also_without_line_ends() {
    let (sender, mut reads) = tokio::sync::mpsc::unbounded_channel();
    let command = sh("printf 12345; printf 123 >&2; sleep 600").stderr(Stderr::lines(|_| {}));
    let mut child = command.on_output(move |bytes| sender.send(bytes).unwrap_or_default()).spawn().unwrap();
    let mut counted = 0;
    tokio::select! {
        line = recv(&mut child) => panic!("{line:?}"),
        () = async {
            while counted < 8 {
                counted += reads.recv().await.unwrap();
            }
        } => {}
    }
    assert_eq!(counted, 8);
}
