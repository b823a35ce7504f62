//! `pintle serve` with workers: over standard streams and HTTP, with questions, and with a file that changes.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    sync::{Arc, Mutex},
};

use pintle::{
    Client,
    client::{Answer, Mode, http::Http},
    transport::Child,
};
use serde_json::json;

use crate::support::{HttpServing, machine::Machine, pintle, run};

const FILE: &str = r#"
[workers.shop]
command = ["python3", "tools.py"]

[tools.echo]
description = "Returns a text."
worker = "shop"
arguments = { text = "string" }

[tools.order]
description = "Orders something."
worker = "shop"
arguments = { what = "string" }
"#;

fn served(name: &str, file: &str) -> Machine {
    let machine = Machine::new(name);
    machine.write("tools.toml", file);
    machine.write("tools.py", include_str!("../../../../docs/workers/tools.py"));
    machine
}

/// Returns a client whose user orders three pieces, and the questions.
fn user(mode: Mode) -> (Client, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = asked.clone();
    let client = Client::new("test", "1").mode(mode).on_elicit(move |question| {
        seen.lock().unwrap().push(question.message.clone());
        async { Answer::accept(json!({"pieces": 3})) }
    });
    (client, asked)
}

#[tokio::test]
async fn a_worker_serves_calls_and_asks_on_standard_streams() {
    let machine = served("workers-stdio", FILE);
    let file = machine.path("tools.toml");
    let child = Child::command(env!("CARGO_BIN_EXE_pintle")).args(["serve", file.to_str().unwrap()]);
    let (client, asked) = user(Mode::Legacy);
    let client = client.connect(child.spawn().unwrap()).await.unwrap();
    assert_eq!(client.tools().await.unwrap().len(), 2);
    assert_eq!(client.call_tool("echo", json!({"text": "$(id)"})).await.unwrap().text(), "$(id)");
    let ordered = client.call_tool("order", json!({"what": "tea"})).await.unwrap().text();
    assert_eq!(ordered, "Order 1: 3 tea");
    assert_eq!(*asked.lock().unwrap(), ["How many pieces of tea?"]);
    client.close().await;
}

/// A worker that counts its runs in a file, and does something once.
const COUNTING: &str = "
import json, os, sys
runs, done = 0, 0
def write(call, **members): print(json.dumps({'call': call, **members}), flush=True)
for line in map(json.loads, sys.stdin):
    if line.get('tool') == 'pid': write(line['call'], result=os.getpid())
    if line.get('tool') != 'count': continue
    runs += 1
    print('run', runs, file=sys.stderr, flush=True)
    if 'done' not in line['once']:
        done += 1
        write(line['call'], once={'key': 'done', 'value': done})
    if 'sure' in line['answers']: write(line['call'], result={'runs': runs, 'done': done, 'once': line['once']})
    else: write(line['call'], question={'key': 'sure', 'message': 'Are you sure?'})
";

#[tokio::test]
async fn a_question_runs_the_call_again_for_a_client_without_a_session_and_a_worker_goes_on() {
    let file = "[workers.own]\ncommand = [\"python3\", \"own.py\"]\n[tools.count]\nworker = \"own\"\n[tools.pid]\nworker = \"own\"\n";
    let machine = served("workers-http", file);
    machine.write("own.py", COUNTING);
    let mut command = pintle();
    command.args(["-v", "serve", "tools.toml", "--http", "127.0.0.1:0"]).current_dir(machine.path(""));
    let serving = HttpServing::of(command);
    let (client, asked) = user(Mode::Modern);
    let client = client.connect(Http::new(&serving.url).unwrap()).await.unwrap();
    let counted = client.call_tool("count", json!({})).await.unwrap().structured_content;
    assert_eq!(counted, Some(json!({"runs": 2, "done": 1, "once": {"done": 1}})));
    assert_eq!(*asked.lock().unwrap(), ["Are you sure?"]);
    serving.printed("own: run 2").await;

    let pid = async || client.call_tool("pid", json!({})).await.unwrap().text();
    let before = pid().await;
    let has = async |name: &str| client.tools().await.unwrap().iter().any(|tool| tool.name == name);
    let mut changes = client.changes().await.unwrap();
    machine.write("tools.toml", &format!("{file}[tools.other]\ncommand = [\"date\"]\n"));
    while !has("other").await {
        changes.next().await.unwrap();
    }
    assert_eq!(pid().await, before, "its entry is the same");
    machine.write("tools.toml", &file.replace("\"own.py\"]", "\"own.py\", \"changed\"]"));
    while has("other").await {
        changes.next().await.unwrap();
    }
    assert_ne!(pid().await, before, "its entry has changed");
}

#[test]
fn a_file_with_workers_is_checked_and_a_dry_run_prints_what_a_worker_would_get() {
    let machine = served("workers-check", FILE);
    let pintle = |words: &[&str]| run(pintle().args(words).current_dir(machine.path("")));
    let check = || pintle(&["serve", "tools.toml", "--check"]);
    assert_eq!(check().stdout, "tools.toml: 2 tools, 1 worker, 0 targets and 0 rules\n");
    let planned = pintle(&["serve", "tools.toml", "--dry-run", "order", "what=tea"]);
    let line = r#"{"call":1,"tool":"order","arguments":{"what":"tea"},"answers":{},"once":{}}"#;
    assert_eq!(planned.stdout, format!("printf '%s\\n' '{line}' | python3 tools.py\n"), "{planned:?}");
    for (from, to, expected) in [
        ("worker = \"shop\"", "worker = \"shp\"", "line 5: tool `echo`: there is no worker `shp`"),
        ("command", "comand", "line 3: unknown field `comand`; did you mean `command`?"),
        ("[\"python3\", \"tools.py\"]", "[]", "line 2: worker `shop`: it has no command: add"),
        (
            "tools.py\"]",
            "tools.py\"]\nenv = { TOKEN = \"hunter2\" }",
            "worker `shop`: `TOKEN` looks like a secret",
        ),
        (
            "tools.py\"]",
            "tools.py\"]\nenv = { A = { env = \"PINTLE_NO_SUCH\" } }",
            "`PINTLE_NO_SUCH` is not set",
        ),
    ] {
        machine.write("tools.toml", &FILE.replacen(from, to, 1));
        let printed = check();
        assert!(printed.code == Some(1) && printed.stderr.contains(expected), "{to}: {printed:?}");
    }
    // A worker alone is a command that others could write.
    machine.write("tools.toml", "include = [\"more/*.toml\"]\n");
    machine.write(
        "more/own.toml",
        "[workers.own]\ncommand = [\"sh\", \"own.sh\"]\n[tools.a]\nworker = \"own\"\n",
    );
    assert_eq!(check().stdout, "tools.toml: 1 tool, 1 worker, 0 targets and 0 rules\n");
    let planned = pintle(&["serve", "tools.toml", "--json", "--dry-run", "a"]);
    let plan: serde_json::Value = serde_json::from_str(&planned.stdout).unwrap();
    assert_eq!(plan["command"]["cwd"], "more/", "paths are relative to the file that has them");
    let planned = pintle(&["serve", "tools.toml", "--dry-run", "a"]);
    assert!(planned.stdout.starts_with("cd more/ && printf "), "{planned:?}");
    machine.write("more/own.toml", "[workers.own]\ncommand = [\"sh\", \"own.sh\"]\n");
    fs::set_permissions(machine.path("more/own.toml"), fs::Permissions::from_mode(0o666)).unwrap();
    assert!(check().stderr.contains("others than you may write it"));
}
