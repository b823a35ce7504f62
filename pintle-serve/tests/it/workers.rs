use std::{
    collections::BTreeMap,
    path::Path,
    process::Command,
    sync::{Arc, Mutex},
    time::Duration,
};

use pintle::{
    Client, Connection, Server,
    client::{Answer, Mode},
};
use pintle_serve::{CallPlan, EntryFault, ServedTools, ServedWorkers, ToolEntry, WorkerEntry};
use serde::Deserialize;
use serde_json::{Value, json};

use super::commands::{Folder, all_ended, failure, text};

#[derive(Default, Deserialize)]
#[serde(default)]
struct File {
    workers: BTreeMap<String, WorkerEntry>,
    tools: BTreeMap<String, ToolEntry>,
}

/// Checks a file, of which workers that `running` has go on.
fn read(
    file: &str,
    folder: &Path,
    running: &ServedWorkers,
) -> Result<(ServedWorkers, ServedTools), EntryFault> {
    let file: File = toml::from_str(file).unwrap();
    let workers = ServedWorkers::new(&file.workers, folder, |_, _| {})?.keeping(running);
    let tools = ServedTools::with_workers(&file.tools, &workers, folder)?;
    Ok((workers, tools))
}

/// Serves the tools of a file to a client. The workers end with it.
async fn serve(file: &str, folder: &Path, client: Client) -> Connection {
    let (_, tools) = read(file, folder, &ServedWorkers::default()).unwrap();
    connect(&tools, client).await
}

async fn connect(tools: &ServedTools, client: Client) -> Connection {
    let server = tools.routes().into_iter().fold(Server::new("served", "1"), Server::tool).logging();
    client.connect(server.in_process().unwrap()).await.unwrap()
}

fn nobody() -> Client {
    Client::new("nobody", "1")
}

/// Returns a client whose user gives these answers, and the questions.
fn user(mode: Mode, answers: Vec<Option<Value>>) -> (Client, Arc<Mutex<Vec<String>>>) {
    let (asked, answers) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(answers)));
    let seen = asked.clone();
    let client = Client::new("user", "1").mode(mode).on_elicit(move |question| {
        seen.lock().unwrap().push(question.message.clone());
        let answer = answers.lock().unwrap().remove(0);
        async move { answer.map_or(Answer::Decline, Answer::accept) }
    });
    (client, asked)
}

/// Returns a file with a worker of one Python program, and tools without arguments.
fn python(program: &str, more: &str, tools: &[&str]) -> String {
    let prelude = "import json, os, sys, time\ndef write(call, **members): print(json.dumps({'call': call, **members}), flush=True)\n";
    let program = format!("{prelude}{program}");
    let tools: String = tools.iter().map(|tool| format!("[tools.{tool}]\nworker = \"own\"\n")).collect();
    format!("[workers.own]\ncommand = [\"python3\", \"-c\", {program:?}]\n{more}\n{tools}")
}

/// Waits until a worker has written a file.
async fn is_there(path: &Path) {
    for _ in 0..6_000 {
        if path.exists() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("`{}` is not written", path.display());
}

/// The reference workers: the program, the file, the number of the first order if it is the third call, and the error of what is no function.
const REFERENCE: [(&str, &str, u32, &str); 4] = [
    ("python3", "tools.py", 1, "KeyError: 'fail'"),
    ("node", "tools.js", 1, "TypeError: "),
    ("ruby", "tools.rb", 1, "KeyError: "),
    // Its numbers are those of calls.
    ("sh", "tools.sh", 3, "no such tool: fail"),
];

#[tokio::test]
async fn a_worker_in_any_language_answers_reports_asks_and_fails() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/workers");
    for (program, file, number, error) in REFERENCE {
        if Command::new(program).args(["-c", ""]).output().is_err() {
            eprintln!("`{program}` is not installed: `{file}` is not tested");
            continue;
        }
        let file = format!(
            r#"
            [workers.own]
            command = [{program:?}, {file:?}]
            [tools.echo]
            worker = "own"
            arguments = {{ text = "string" }}
            [tools.count]
            worker = "own"
            arguments = {{ to = "integer" }}
            output_schema = {{ type = "object", properties = {{ counted = {{ type = "integer" }} }} }}
            [tools.buy]
            worker = "own"
            function = "order"
            arguments = {{ what = "string" }}
            [tools.fail]
            worker = "own"
            "#
        );
        for mode in [Mode::Legacy, Mode::Modern] {
            let (client, asked) = user(mode, vec![Some(json!({"pieces": 3})), None]);
            let client = serve(&file, &folder, client).await;
            let exact = "a \"b\" 'c' \\ ü\n$(id) %s";
            assert_eq!(text(&client, "echo", json!({"text": exact})).await, exact, "{program}");
            let lines = Arc::new(Mutex::new(Vec::new()));
            let seen = lines.clone();
            let counted = client.call("count").args(json!({"to": 3})).on_progress(move |progress| {
                seen.lock().unwrap().push(progress.message.clone().unwrap_or_default());
            });
            assert_eq!(counted.await.unwrap().structured_content, Some(json!({"counted": 3})), "{program}");
            assert_eq!(*lines.lock().unwrap(), ["1 of 3", "2 of 3", "3 of 3"], "{program}");
            let bought = text(&client, "buy", json!({"what": "tea"})).await;
            assert_eq!(bought, format!("Order {number}: 3 tea"), "{program}: a run does not repeat `once`");
            assert_eq!(text(&client, "buy", json!({"what": "tea"})).await, "Nothing was ordered.");
            assert_eq!(*asked.lock().unwrap(), ["How many pieces of tea?"; 2], "each is asked once");
            let failed = failure(&client, "fail", json!({})).await;
            assert!(failed.contains(error), "{program}: {failed}");
        }
    }
}

#[tokio::test]
async fn a_client_gets_what_a_worker_logs_and_several_questions_of_a_call() {
    let program = "
for line in map(json.loads, sys.stdin):
    missing = [key for key in 'abc' if key not in line['answers']]
    write(line['call'], log={'runs': 3 - len(missing)}, level='warning')
    write(line['call'], **({'question': {'key': missing[0], 'message': missing[0]}} if missing else {'result': line['answers']}))
";
    for mode in [Mode::Legacy, Mode::Modern] {
        let (client, asked) = user(mode, vec![Some(json!({})), None, Some(json!({}))]);
        let logged = Arc::new(Mutex::new(Vec::new()));
        let seen = logged.clone();
        let client = client.on_log(move |log| seen.lock().unwrap().push(format!("{:?}", log.params)));
        let client = client.log_level(pintle::types::schema::LoggingLevel::Info);
        let client = serve(&python(program, "", &["three"]), ".".as_ref(), client).await;
        let result = client.call_tool("three", json!({})).await.unwrap();
        let accepted = json!({"action": "accept", "content": {}});
        let answers = json!({"a": accepted, "b": {"action": "decline"}, "c": accepted});
        assert_eq!(result.structured_content, Some(answers));
        assert_eq!(*asked.lock().unwrap(), ["a", "b", "c"]);
        let logged = logged.lock().unwrap();
        assert!(
            logged.len() == 4 && logged[3].contains("own") && logged[3].contains("Warning"),
            "{logged:?}"
        );
    }
}

#[tokio::test]
async fn calls_run_at_once_and_each_gets_its_answer() {
    let program = "
calls = []
for line in map(json.loads, sys.stdin):
    calls.append(line)
    if len(calls) == 3:
        for line in reversed(calls): write(line['call'], result=line['arguments']['n'])
";
    let file = python(program, "", &[]) + "[tools.n]\nworker = \"own\"\narguments = { n = \"integer\" }\n";
    let client = serve(&file, ".".as_ref(), nobody()).await;
    let [one, two, three] = [1, 2, 3].map(|n| text(&client, "n", json!({"n": n})));
    assert_eq!(tokio::join!(one, two, three), ("1".to_owned(), "2".to_owned(), "3".to_owned()));
}

#[tokio::test]
async fn a_pool_starts_another_process_when_all_have_calls() {
    let program = "
for line in map(json.loads, sys.stdin):
    open(f'pid-{os.getpid()}', 'w').close()
    while sum(name.startswith('pid-') for name in os.listdir()) < 2: time.sleep(0.01)
    write(line['call'], result=os.getpid())
";
    let folder = Folder::new();
    let file = python(program, "processes = 2\nmax_running = 1", &["pid"]);
    let client = serve(&file, &folder.0, nobody()).await;
    let pid = || text(&client, "pid", json!({}));
    let (one, two, three) = tokio::join!(pid(), pid(), pid());
    assert_ne!(one, two);
    assert!(three == one || three == two, "the third call waits for one of the two");
}

const PID: &str = "
for line in map(json.loads, sys.stdin):
    if line.get('tool') == 'pid': write(line['call'], result=os.getpid())
";

#[tokio::test]
async fn a_crash_fails_its_calls_and_the_next_call_has_another_process() {
    let program = "
seen = set()
for line in map(json.loads, sys.stdin):
    seen.add(line['tool'])
    if {'wait', 'crash'} <= seen: sys.exit('error: it crashed')
    if line['tool'] == 'pid': write(line['call'], result=os.getpid())
";
    let client = serve(&python(program, "", &["pid", "wait", "crash"]), ".".as_ref(), nobody()).await;
    let before = text(&client, "pid", json!({})).await;
    let (waited, crashed) =
        tokio::join!(failure(&client, "wait", json!({})), failure(&client, "crash", json!({})));
    for error in [waited, crashed] {
        let expected = "worker `own` exited with status 1; its last output: `error: it crashed`";
        assert_eq!(error, expected);
    }
    assert_ne!(text(&client, "pid", json!({})).await, before);
}

#[tokio::test]
async fn a_call_that_is_cancelled_is_cancelled_at_the_worker_which_goes_on() {
    let program = "
asked, cancelled = None, None
for line in map(json.loads, sys.stdin):
    if line.get('tool') == 'wait': open('begun', 'w').close()
    if line.get('tool') == 'cancelled': asked = line['call']
    if 'cancel' in line:
        cancelled = line['cancel']
        write(cancelled, result='too late')
    if asked and cancelled: write(asked, result={'cancelled': cancelled, 'by': asked})
";
    for mode in [Mode::Modern, Mode::Legacy] {
        let folder = Folder::new();
        let file = python(program, "", &["wait", "cancelled"]);
        let client = serve(&file, &folder.0, nobody().mode(mode)).await;
        let begun = folder.0.join("begun");
        tokio::select! {
            called = async { client.call_tool("wait", ()).await } => panic!("{called:?}"),
            () = is_there(&begun) => {}
        }
        let result = client.call_tool("cancelled", ()).await.unwrap();
        assert_eq!(result.structured_content, Some(json!({"cancelled": 1, "by": 2})));
    }
}

#[tokio::test]
async fn a_call_over_its_time_does_not_end_the_others() {
    let program = "
held, cancelled = None, None
for line in map(json.loads, sys.stdin):
    if line.get('tool') == 'hold': held = line['call']
    cancelled = line.get('cancel', cancelled)
    if held and cancelled: write(held, result='held')
";
    let file = python(program, "", &["hold"]) + "[tools.late]\nworker = \"own\"\ntimeout = \"200ms\"\n";
    let client = serve(&file, ".".as_ref(), nobody()).await;
    let (held, late) = tokio::join!(text(&client, "hold", json!({})), failure(&client, "late", json!({})));
    assert_eq!(held, "held");
    assert_eq!(late, "worker `own` took longer than 200ms, and the call was cancelled");
}

const STUCK: &str = "
for line in map(json.loads, sys.stdin):
    if line.get('tool') == 'pid': write(line['call'], result=os.getpid())
    if line.get('tool') == 'hang': time.sleep(1000)
";

#[tokio::test]
async fn a_process_that_hangs_is_ended_with_the_call_that_it_has() {
    let file = python(STUCK, "", &["pid"]) + "[tools.hang]\nworker = \"own\"\ntimeout = \"5s\"\n";
    let client = serve(&file, ".".as_ref(), nobody()).await;
    let before = text(&client, "pid", json!({})).await;
    tokio::time::pause();
    for _ in 0..2 {
        let error = failure(&client, "hang", json!({})).await;
        assert!(error.contains("took longer than 5s"), "{error}");
    }
    tokio::time::resume();
    assert_ne!(text(&client, "pid", json!({})).await, before);
}

#[tokio::test]
async fn calls_go_to_another_process_than_one_that_hangs() {
    let file = python(STUCK, "processes = 2", &["pid"])
        + "[tools.hang]\nworker = \"own\"\ntimeout = \"5s\"\n[tools.long]\nworker = \"own\"\ntimeout = \"1h\"\n";
    let client = serve(&file, ".".as_ref(), nobody()).await;
    let before = text(&client, "pid", json!({})).await;
    tokio::time::pause();
    let long = || client.call_tool("long", ());
    let (hung, after) = tokio::select! {
        biased;
        both = async {
            let hung = failure(&client, "hang", json!({})).await;
            tokio::time::sleep(Duration::from_secs(1)).await;
            tokio::time::resume();
            (hung, text(&client, "pid", json!({})).await)
        } => both,
        // Two at the other process, so that the one that hangs has the fewest calls.
        ended = async { tokio::join!(long(), long(), long()) } => panic!("{ended:?}"),
    };
    assert!(hung.contains("took longer than 5s"), "{hung}");
    assert_ne!(after, before);
}

#[tokio::test]
async fn a_call_waits_a_minute_for_others() {
    let slow = "max_running = 1\ntimeout = \"1h\"";
    let file = python(STUCK, "max_running = 1", &[])
        + &format!("[tools.hang]\nworker = \"own\"\n{slow}\n[tools.pid]\nworker = \"own\"\n")
        + &format!("[tools.sleep]\ncommand = [\"sleep\", \"1000\"]\n{slow}\n");
    // The one behind waits for a turn of its tool, or for a place in the process.
    for (first, second, what) in
        [("hang", "hang", "worker `own`"), ("hang", "pid", "worker `own`"), ("sleep", "sleep", "`sleep`")]
    {
        let patient = nobody().map_timeouts(|timeouts| timeouts.call = Duration::from_secs(600));
        let client = serve(&file, ".".as_ref(), patient).await;
        let error = tokio::select! {
            biased;
            ended = client.call_tool(first, ()) => panic!("{ended:?}"),
            error = async {
                tokio::time::pause();
                failure(&client, second, json!({})).await
            } => error,
        };
        tokio::time::resume();
        assert_eq!(error, format!("other calls of {what} have run for 60s: call again later"));
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_hostile_worker_ends_in_time_with_a_clear_error_and_leaves_nothing() {
    let mark = format!("PINTLE_SERVE_WORKER={}", std::process::id());
    let (variable, value) = mark.split_once('=').unwrap();
    let tool = |(name, line, timeout, _): &(&str, &str, &str, Result<&str, &str>)| {
        format!(
            "[workers.{name}]\ncommand = [\"sh\", \"-c\", {line:?}]\nenv = {{ {variable} = {value:?} }}\n\
             [tools.{name}]\nworker = {name:?}\ntimeout = {timeout:?}\narguments = {{ text = \"string = x\" }}\n"
        )
    };
    let cases = [
        ("hangs", "trap '' TERM; while :; do sleep 1000; done", "200ms", Err("took longer than 200ms")),
        ("floods", "yes >&2 & yes", "500ms", Err("took longer than 500ms")),
        ("floods_long", "tr '\\0' x </dev/zero", "500ms", Err("took longer than 500ms")),
        (
            "long",
            "head -c 3000000 /dev/zero | tr '\\0' x; echo; cat",
            "1m",
            Err("a line of more than 1048576 bytes"),
        ),
        (
            "forks",
            "for i in 1 2 3; do (trap '' TERM; sleep 1000) & done; read a; echo '{\"call\":1,\"result\":\"a\"}'",
            "1m",
            Ok("a"),
        ),
        (
            "dies",
            "read a; echo 'error: no tea' >&2; exit 3",
            "1m",
            Err("exited with status 3; its last output: `error: no tea`"),
        ),
        ("is_killed", "read a; kill -9 $$", "1m", Err("was ended by signal 9")),
        ("invalid", "read a; printf '{\"call\":1,\"result\":\"a\\377b\"}\\n'; cat", "1m", Ok("a\u{fffd}b")),
        ("closes", "read a; exec >&-; sleep 1000", "1m", Err("closed its output, and was ended")),
        ("holds", "sleep 1000 & read a; exit 4", "1m", Err("exited with status 4")),
        ("is_deaf", "exec <&-; sleep 1000", "1m", Err("does not read its input, and was ended")),
        ("reads_nothing", "sleep 1000", "300ms", Err("took longer than 300ms")),
        (
            "prints",
            "read a; echo hello; exit 5",
            "1m",
            Err("; it wrote `hello`, which is no line about an open call"),
        ),
        (
            "answers_others",
            "read a; echo '{\"call\":2,\"result\":1}'; exit 5",
            "1m",
            Err("; it wrote `{\"call\":2,…`"),
        ),
        ("errs", "read a; echo '{\"call\":1,\"reslt\":1}'; cat", "1m", Err("wrote a line without `result`")),
        (
            "writes_nan",
            "read a; echo '{\"call\": 1, \"result\": NaN}'; cat",
            "1m",
            Err("wrote a line that is not strict JSON: expected value at line 1 column 23: change it"),
        ),
        (
            "writes_half_a_letter",
            r#"read a; printf '%s\n' '{"call":1,"result":"\udce9"}'; cat"#,
            "1m",
            Err("not strict JSON: lone leading surrogate"),
        ),
        (
            "nests",
            "read a; echo '{\"call\":1,\"result\":'$(head -c 100000 /dev/zero | tr '\\0' '['); cat",
            "1m",
            Err("not strict JSON: recursion limit exceeded"),
        ),
        (
            "answers_others_wrong",
            "read a; echo '{\"result\":NaN,\"call\":2,\"for\":\"Ann\"}'; exit 5",
            "1m",
            Err("; it wrote `{…`"),
        ),
        (
            "asks_long",
            "read a; echo '{\"call\":1,\"log\":\"'$(head -c 20000 /dev/zero | tr '\\0' x)'\"}'; cat",
            "1m",
            Err("write less"),
        ),
        (
            "has_no_content",
            "read a; echo '{\"call\":1,\"result\":{\"content\":[1]}}'; cat",
            "1m",
            Err("wrote a wrong `result`"),
        ),
        (
            "asks_again",
            "n=0; while read a; do n=$((n+1)); echo '{\"call\":'$n',\"question\":{\"key\":\"k\",\"message\":\"m\"}}'; done",
            "1m",
            Err("asked `k` again"),
        ),
        (
            "asks_a_list",
            "read a; echo '{\"call\":1,\"question\":{\"key\":\"k\",\"message\":\"m\",\"schema\":1}}'; cat",
            "1m",
            Err("the question `k` cannot be asked"),
        ),
        (
            "never_stops",
            "i=0; while :; do i=$((i+1)); echo '{\"call\":1,\"once\":{\"key\":\"'$i'\",\"value\":1}}'; done",
            "1m",
            Err("write fewer"),
        ),
    ];
    let file: String = cases.iter().map(tool).collect();
    let (client, _) = user(Mode::Legacy, vec![Some(json!({}))]);
    let client = serve(&file, ".".as_ref(), client).await;
    // It does not fit into a pipe.
    let large = json!({"text": "x".repeat(1 << 20)});
    for (name, _, _, expected) in cases {
        let arguments = if name == "is_deaf" || name == "reads_nothing" { large.clone() } else { json!({}) };
        match expected {
            Ok(expected) => assert_eq!(text(&client, name, arguments).await, expected, "{name}"),
            Err(expected) => {
                let error = failure(&client, name, arguments).await;
                assert!(error.contains(expected), "{name}: {error}");
            }
        }
    }
    // Those that go on are ended with the server.
    drop(client);
    all_ended(&mark).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_worker_that_floods_without_a_call_is_ended() {
    let unended = "tr '\\0' x </dev/zero";
    let floods = ["yes", "yes '{\"call\":1,\"log\":1}'", unended, "yes >&2", &format!("{unended} >&2")];
    for (number, flood) in floods.into_iter().enumerate() {
        let mark = format!("PINTLE_SERVE_FLOOD={}-{number}", std::process::id());
        let (variable, value) = mark.split_once('=').unwrap();
        let command = format!("read a; echo '{{\"call\":1,\"result\":\"a\"}}'; {flood}");
        let entry = json!({"command": ["sh", "-c", command], "env": {variable: value}});
        let entries = serde_json::from_value(json!({"own": entry})).unwrap();
        let last = Arc::new(Mutex::new(String::new()));
        let seen = last.clone();
        let log = move |_: &str, line: &str| line.clone_into(&mut seen.lock().unwrap());
        let workers = ServedWorkers::new(&entries, ".".as_ref(), log).unwrap();
        let tools = serde_json::from_value(json!({"once": {"worker": "own"}})).unwrap();
        let tools = ServedTools::with_workers(&tools, &workers, ".".as_ref()).unwrap();
        let client = connect(&tools, nobody()).await;
        assert_eq!(text(&client, "once", json!({})).await, "a", "{flood}");
        all_ended(&mark).await;
        if number < 3 {
            let last = last.lock().unwrap();
            assert!(last.contains("wrote more than 1048576 bytes without a call, and was ended"), "{last}");
        }
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_worker_that_does_not_read_ends_with_its_server() {
    let mark = format!("PINTLE_SERVE_UNREAD={}", std::process::id());
    let (variable, value) = mark.split_once('=').unwrap();
    let file = format!(
        "[workers.own]\ncommand = [\"sh\", \"-c\", \"echo > begun; sleep 1000\"]\nenv = {{ {variable} = {value:?} }}\n\
         [tools.wait]\nworker = \"own\"\ntimeout = \"10m\"\narguments = {{ text = \"string\" }}\n"
    );
    let folder = Folder::new();
    let client = serve(&file, &folder.0, nobody()).await;
    // It does not fit into a pipe.
    let large = json!({"text": "x".repeat(1 << 20)});
    let begun = folder.0.join("begun");
    tokio::select! {
        called = async { client.call_tool("wait", large).await } => panic!("{called:?}"),
        () = is_there(&begun) => {}
    }
    drop(client);
    all_ended(&mark).await;
}

#[tokio::test]
async fn a_worker_whose_entry_is_the_same_goes_on() {
    let (own, tools) = (python(PID, "", &["pid"]), &["pid"]);
    let (first, served) = read(&own, ".".as_ref(), &ServedWorkers::default()).unwrap();
    let pid = async |served: &ServedTools| text(&connect(served, nobody()).await, "pid", json!({})).await;
    let before = pid(&served).await;
    let (second, served) =
        read(&(own + "[tools.other]\ncommand = [\"date\"]\n"), ".".as_ref(), &first).unwrap();
    drop(first);
    assert_eq!(pid(&served).await, before);
    let changed = python(PID, "env = { A = \"b\" }", tools);
    let (_, served) = read(&changed, ".".as_ref(), &second).unwrap();
    assert_ne!(pid(&served).await, before);
}

#[test]
fn a_plan_is_the_line_that_a_worker_gets() {
    let file = "[workers.own]\ncommand = [\"python3\", \"it's.py\"]\nenv = { A = \"b\" }\n[tools.greet]\nworker = \"own\"\nfunction = \"hello\"\narguments = { name = \"string = Ann\" }\n";
    let (_, tools) = read(file, "/srv".as_ref(), &ServedWorkers::default()).unwrap();
    let plan = tools.plan("greet", &Default::default()).unwrap().unwrap();
    let line = r#"{"call":1,"tool":"hello","arguments":{"name":"Ann"},"answers":{},"once":{}}"#;
    assert_eq!(plan.to_string(), format!(r"printf '%s\n' '{line}' | A=… python3 'it'\''s.py'"));
    let CallPlan::Worker(plan) = plan else { panic!("{plan:?}") };
    assert_eq!((&*plan.worker, &*plan.line, &*plan.command.cwd), ("own", line, Path::new("/srv")));
    assert!(!format!("{plan:?}").contains("\"b\""), "values of variables may be secrets");
}

#[test]
fn a_worker_that_is_wrong_is_refused_with_what_to_write() {
    for (file, expected) in [
        ("[workers.a]", "worker `a`: it has no command: add `command"),
        ("[workers.a]\ncommand = [\"a\"]\nprocesses = 0", "worker `a`: a limit of 0"),
        ("[workers.a]\ncommand = [\"a\"]\nprocesses = 65", "write at most 64"),
        ("[workers.a]\ncommand = [\"a\"]\nenv = { \"A=B\" = \"c\" }", "a variable of `env`"),
        ("[workers.a]\ncommand = [\"a\\u0000\"]", "a NUL"),
        ("[tools.b]\nworker = \"a\"", "tool `b`: there is no worker `a`: add `[workers.a]`"),
        ("[tools.b]\ncommand = [\"a\"]\nfunction = \"c\"", "add `worker = \"NAME\"`"),
        ("[tools.b]\nworker = \"a\"\ncommand = [\"a\"]", "`command` is for a `command`: remove"),
        ("[tools.b]\nworker = \"a\"\nstdin = \"c\"", "it has a `worker`, and `stdin` is for a `command`"),
    ] {
        let fault = read(file, ".".as_ref(), &ServedWorkers::default()).unwrap_err().to_string();
        assert!(fault.contains(expected), "{file}: {fault}");
    }
}

#[tokio::test]
async fn a_secret_of_a_worker_is_not_in_the_error_of_a_crash() {
    let folder = Folder::new();
    std::fs::write(folder.0.join("token"), "t0p-s3cret\n").unwrap();
    let file = format!(
        r#"
        [workers.own]
        command = ["sh", "-c", "read call; echo \"$TOKEN is wrong\" >&2; exit 3"]
        env = {{ TOKEN = {{ file = "{}" }} }}

        [tools.a]
        worker = "own"
        "#,
        folder.0.join("token").display()
    );
    let client = serve(&file, &folder.0, nobody()).await;
    let crashed = failure(&client, "a", json!({})).await;
    assert!(crashed.contains("`… is wrong`") && !crashed.contains("s3cret"), "{crashed}");
}
