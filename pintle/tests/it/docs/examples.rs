//! Every example runs and does what it says: each is started as a program, as a host would, and talked to.

use std::{env, ffi::OsStr, fs, path::PathBuf, process::Stdio};

use pintle::{
    Client, Connection, Error,
    client::{Answer, Change, Event, Mode},
    transport::{Child, Stderr},
    types::schema::{CompletionReference, ContentBlock, CreateMessageResult, ResourceReference, Root},
};
use serde_json::json;
use tokio::{process::Command, sync::mpsc};

/// The program of an example. Cargo builds it beside the tests, unless only one of them was asked for.
fn program(name: &str) -> PathBuf {
    let tests = env::current_exe().unwrap();
    let built = tests.ancestors().nth(2).unwrap().join("examples").join(name);
    let built = built.with_extension(env::consts::EXE_EXTENSION);
    let examples = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples");
    let changed = |path: &PathBuf| fs::metadata(path).and_then(|file| file.modified());
    let in_folder = |folder| changed(&examples.join(folder).join(name).with_extension("rs"));
    let source = ["", "clients", "extensions"].into_iter().find_map(|folder| in_folder(folder).ok());
    let stale = source.unwrap() > changed(&built).unwrap_or(std::time::UNIX_EPOCH);
    assert!(
        !stale,
        "run `cargo build --package pintle --examples --all-features` first: `{name}` is not built"
    );
    built
}

async fn connect(client: &Client, name: &str) -> Connection {
    client.connect(Child::spawn(program(name), [""; 0]).unwrap()).await.unwrap()
}

/// Talks to an example with a session and without one.
async fn both(client: Client, name: &str, talk: impl AsyncFn(Connection)) {
    for mode in [Mode::Legacy, Mode::Modern] {
        let server = connect(&client.clone().mode(mode), name).await;
        talk(server.clone()).await;
        server.close().await;
    }
}

async fn text_of(server: &Connection, tool: &str, arguments: serde_json::Value) -> String {
    server.call_tool(tool, arguments).await.unwrap().text()
}

/// What a program that is no server prints.
async fn printed(name: &str, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> String {
    let mut command = Command::new(program(name));
    let output = command.args(arguments).stdin(Stdio::null()).kill_on_drop(true).output().await.unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {}: {complaints}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

fn client() -> Client {
    Client::new("examples", "0")
}

#[tokio::test]
async fn concurrent_calls_have_their_own_answers() {
    let printed = printed("concurrent_calls", [""; 0]).await;
    assert!(printed.contains("Ada is asked by travel: For how many?"), "{printed}");
    assert!(printed.contains("Ada's call is at 1"), "{printed}");
    assert!(printed.ends_with("Bergen for 2\nLerwick is not booked\n"), "{printed}");
}

#[tokio::test]
async fn layers_of_a_client_log_trace_remember_and_refuse() {
    let expected = [
        "hotel -> server/discover: ok",
        "hotel <- elicitation/create: ok",
        "hotel -> tools/call: ok",
        "booked for 2, traced: true",
        "hotel -> tools/call: ok",
        "booked for 2, traced: true",
        "hotel -> tools/call: failed",
        "`demolish` is not for guests: call the owner",
    ];
    assert_eq!(printed("client_layers", [""; 0]).await.lines().collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn messages_are_logged_to_a_file_without_secrets() {
    let path = env::temp_dir().join(format!("pintle-example-messages-{}.jsonl", std::process::id()));
    let printed = printed("message_log", [&path]).await;
    let file = fs::read_to_string(&path).unwrap();
    fs::remove_file(&path).unwrap();
    // The question is a result, and the second call has its answer.
    let expected = ["paid", "out: server/discover", "in: response"];
    let calls = ["out: tools/call", "in: response", "out: tools/call", "in: response"];
    assert_eq!(printed.lines().collect::<Vec<_>>(), [&expected[..], &calls].concat());
    for secret in ["4711", "DE02120300000000202051"] {
        assert!(!file.contains(secret), "{file}");
    }
    assert!(file.contains("Ada") && file.contains("<redacted"), "{file}");
}

#[tokio::test]
async fn the_smallest_server_adds() {
    both(client(), "smallest", async |server| {
        assert_eq!(server.server_info().unwrap().name, "adder");
        assert_eq!(text_of(&server, "add", json!({"a": 1, "b": 2})).await, "3");
    })
    .await;
}

#[tokio::test]
async fn notes_are_saved_asked_about_read_and_digested() {
    let client = client()
        .on_elicit(|question| async move {
            assert_eq!(question.message, "There is a note `to do` already.");
            Answer::Decline
        })
        .on_sample(|_| async { CreateMessageResult::new("m", ContentBlock::text("about bread")) });
    both(client, "notes", async |server| {
        let save = async |text: &str| server.call_tool("save", json!({"title": "to do", "text": text})).await;
        let saved = save("Bread.").await.unwrap();
        assert_eq!(saved.structured_content, Some(json!({"uri": "note://to%20do", "replaced": false})));
        let kept = save("Butter.").await.unwrap();
        assert_eq!(kept.is_error, Some(true));

        let read = server.read_resource("note://to%20do").await.unwrap();
        assert_eq!(read.contents[0].as_text(), Some("Bread."));
        assert!(matches!(server.read_resource("note://gone").await, Err(Error::Rpc(_))));
        let reference = CompletionReference::Resource(ResourceReference::new("note://{title}"));
        let completed = server.complete(reference, "title", "to", []).await.unwrap();
        assert_eq!(completed.values, ["to do"]);

        assert_eq!(text_of(&server, "digest", json!({"title": "to do"})).await, "about bread");
        let review = server.get_prompt("review", json!({"title": "to do"})).await.unwrap();
        assert!(review.messages[0].content.as_text().unwrap().ends_with("Bread."));
    })
    .await;
}

#[tokio::test]
async fn issues_are_created_found_closed_and_deleted_after_a_confirmation() {
    let client = client().on_elicit(|question| async move {
        assert_eq!(question.message, "Delete issue 1, `The pump leaks`?");
        Answer::accept(json!({"confirmed": true}))
    });
    both(client, "tracker", async |server| {
        let call = async |tool: &str, arguments| server.call_tool(tool, arguments).await.unwrap();
        let created = call("create_issue", json!({"title": "The pump leaks"})).await;
        let issue = json!({"id": 1, "title": "The pump leaks", "status": "open", "comments": []});
        assert_eq!(created.structured_content, Some(issue));
        call("create_issue", json!({"title": "The horn is loud"})).await;
        let found = call("search_issues", json!({"text": "pump", "status": "open"})).await;
        assert_eq!(found.structured_content.unwrap()["total"], 1);
        let refused = call("search_issues", json!({"limit": 0})).await;
        assert_eq!(refused.is_error, Some(true));

        call("comment", json!({"id": 1, "text": "At the seal."})).await;
        let triage = server.get_prompt("triage", json!({"id": "1"})).await.unwrap();
        assert!(triage.messages[0].content.as_text().unwrap().ends_with("- At the seal."));
        let reference = CompletionReference::Resource(ResourceReference::new("issue://{id}"));
        assert_eq!(server.complete(reference, "id", "", []).await.unwrap().values, ["1", "2"]);
        call("close_issue", json!({"id": 2})).await;
        let open = server.read_resource("issues://open").await.unwrap();
        assert_eq!(open.contents[0].as_text(), Some("1: The pump leaks"));

        assert_eq!(call("delete_issue", json!({"id": 1})).await.text(), "issue 1 is deleted");
        let unknown = call("delete_issue", json!({"id": 1})).await;
        assert_eq!(unknown.text(), "there is no issue 1: `search_issues` lists those that exist");
        assert!(matches!(server.read_resource("issue://1").await, Err(Error::Rpc(_))));
    })
    .await;
    let server = connect(&self::client(), "tracker").await;
    server.call_tool("create_issue", json!({"title": "The pump leaks"})).await.unwrap();
    let refused = text_of(&server, "delete_issue", json!({"id": 1})).await;
    assert_eq!(refused, "the user cannot be asked: close the issue instead");
}

#[tokio::test]
async fn files_are_read_in_the_roots_and_nowhere_else() {
    let folder = env::temp_dir().join(format!("pintle-files-{}", std::process::id()));
    let root = folder.join("open");
    fs::create_dir_all(root.join("notes")).unwrap();
    fs::write(root.join("notes/boat.txt"), "one\ntwo\nthree").unwrap();
    fs::write(folder.join("secret.txt"), "42").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(folder.join("secret.txt"), root.join("link.txt")).unwrap();

    let roots = [Root::new(pintle::uri::uri_from_path(&root).unwrap())];
    both(client().roots(roots), "files", async |server| {
        assert!(text_of(&server, "list", json!({})).await.ends_with("notes/"));
        assert_eq!(text_of(&server, "list", json!({"folder": "notes"})).await, "boat.txt");
        let lines = json!({"path": "notes/boat.txt", "from": 2, "lines": 1});
        assert_eq!(text_of(&server, "read", lines).await, "two");
        for path in ["../secret.txt", "link.txt", folder.join("secret.txt").to_str().unwrap()] {
            let refused = server.call_tool("read", json!({"path": path})).await.unwrap();
            assert_eq!(refused.is_error, Some(true), "{path}");
            assert!(!refused.text().contains("42"), "{path}");
        }
    })
    .await;
    both(client(), "files", async |server| {
        let refused = text_of(&server, "list", json!({})).await;
        assert_eq!(refused, "no folder is open: ask the user to open one");
    })
    .await;
    fs::remove_dir_all(folder).unwrap();
}

/// Starts an example that serves HTTP at a free port, and returns its URL.
#[cfg(all(feature = "http-client", feature = "http-server"))]
async fn serve_http(name: &str, mark: &str) -> (tokio::process::Child, String) {
    use tokio::io::{AsyncBufReadExt, BufReader};

    let mut command = Command::new(program(name));
    command.args(["--http", "127.0.0.1:0"]).stdin(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut process = command.spawn().unwrap();
    let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
    let url = loop {
        let line = lines.next_line().await.unwrap().expect("a line with the URL");
        if let Some((_, url)) = line.split_once(mark) {
            break url.trim_matches('"').to_owned();
        }
    };
    // What is written later must not fill the pipe.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    (process, url)
}

#[cfg(all(feature = "http-client", feature = "http-server"))]
#[tokio::test]
async fn a_flag_serves_http_instead_of_stdio() {
    let (_process, url) = serve_http("notes", "listening at ").await;
    for mode in [Mode::Legacy, Mode::Modern] {
        let http = pintle::client::http::Http::new(&url).unwrap();
        let server = client().mode(mode).connect(http).await.unwrap();
        let read = server.read_resource("notes://titles").await.unwrap();
        assert_eq!(read.contents[0].as_text(), Some(""));
        server.close().await;
    }
    for (arguments, status, expected) in [
        (&["--htpp"][..], 2, "error: unexpected argument `--htpp`"),
        (&["--http", ":8000"], 2, "error: `:8000` has no host"),
        (&["--help"], 0, "usage: notes"),
    ] {
        let mut command = Command::new(program("notes"));
        let output = command.args(arguments).stdin(Stdio::null()).output().await.unwrap();
        let printed = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert_eq!(output.status.code(), Some(status), "{printed}");
        assert!(printed.starts_with(expected), "{printed}");
        assert!(printed.contains("--allow-host HOST"), "{printed}");
    }
}

#[cfg(all(unix, feature = "http-client", feature = "http-server"))]
#[tokio::test]
async fn a_server_that_is_terminated_completes_its_calls() {
    use rustix::process::{Pid, Signal, kill_process};

    for mode in [Mode::Legacy, Mode::Modern] {
        let (mut process, url) = serve_http("http_server", "url=").await;
        let http = pintle::client::http::Http::new(&url).unwrap();
        let server = client().mode(mode).connect(http).await.unwrap();
        let pid = Pid::from_raw(process.id().unwrap().cast_signed()).unwrap();
        let call = server.call("brew").on_progress(move |_| kill_process(pid, Signal::TERM).unwrap());
        assert_eq!(call.send().await.unwrap().text(), "ready", "{mode:?}");
        assert!(process.wait().await.unwrap().success());
    }
}

#[tokio::test]
async fn an_extension_is_for_those_who_declare_it() {
    let printed = printed("extension", [""; 0]).await;
    assert_eq!(
        printed.lines().collect::<Vec<_>>(),
        [
            r#"the server has the extension: {"maxNames":100}"#,
            "in the kitchen: Ben",
            "in the hall: Ben",
            "Ann reads: Ben entered the hall",
            "the peer returned an error: the extension `com.example/presence` is not declared: name it in the client's \
             capabilities (-32021)",
        ]
    );
}

#[tokio::test]
async fn a_long_call_reports_and_is_stopped_by_dropping_it() {
    both(client(), "long_running", async |server| {
        let (steps, mut reported) = mpsc::channel(1);
        // It would take years, and there is room for one call at a time.
        let years = server
            .call("count_primes")
            .args(json!({"below": 1_000_000_000_000_u64}))
            .on_progress(move |step| drop(steps.try_send(step.message)))
            .send();
        tokio::select! {
            biased;
            ended = years => panic!("{ended:?}"),
            step = reported.recv() => assert_eq!(step.flatten().as_deref(), Some("5133 primes so far")),
        }
        assert_eq!(text_of(&server, "count_primes", json!({"below": 100})).await, "25 primes below 100");
    })
    .await;
}

#[tokio::test]
async fn clients_are_notified_when_the_catalogue_changes() {
    both(client(), "dynamic_catalogue", async |server| {
        let mut changes = server.changes().await.unwrap();
        let learn = async || text_of(&server, "learn", json!({"language": "welsh"})).await;
        assert_eq!(learn().await, "there is a tool `greet_in_welsh` now");
        assert_eq!(changes.next().await, Some(Event::Changed(Change::Tools)));
        assert_eq!(server.tools().await.unwrap().len(), 3);
        assert_eq!(text_of(&server, "greet_in_welsh", json!({"name": "Ann"})).await, "Helo, Ann!");
        assert_eq!(learn().await, "a tool named `greet_in_welsh` is already registered; choose another name");
        assert_eq!(text_of(&server, "forget", json!({"language": "welsh"})).await, "forgotten");
        assert_eq!(changes.next().await, Some(Event::Changed(Change::Tools)));
        assert_eq!(server.tools().await.unwrap().len(), 2);
    })
    .await;
}

#[tokio::test]
async fn a_checkout_appears_with_the_first_item_of_a_session() {
    let server = connect(&client().mode(Mode::Legacy), "session_tools").await;
    let mut changes = server.changes().await.unwrap();
    assert_eq!(server.tools().await.unwrap().len(), 2);
    assert_eq!(text_of(&server, "pick", json!({"item": "tea"})).await, "1 in the basket");
    assert_eq!(changes.next().await, Some(Event::Changed(Change::Tools)));
    assert_eq!(text_of(&server, "pick", json!({"item": "milk"})).await, "2 in the basket");
    assert_eq!(server.tools().await.unwrap().len(), 3);
    assert_eq!(text_of(&server, "check_out", json!({})).await, "bought tea, milk");
    assert_eq!(changes.next().await, Some(Event::Changed(Change::Tools)));
    assert_eq!(server.tools().await.unwrap().len(), 2);
    server.close().await;

    let server = connect(&client().mode(Mode::Modern), "session_tools").await;
    let refused = text_of(&server, "pick", json!({"item": "tea"})).await;
    assert_eq!(refused, "your client has no session: use `buy` with all items at once");
    assert_eq!(text_of(&server, "buy", json!({"items": ["tea"]})).await, "bought tea");
    server.close().await;
}

#[tokio::test]
async fn middleware_counts_refuses_and_writes_a_line_for_each_call() {
    let (lines, mut written) = mpsc::channel(16);
    let command = Child::command(program("middleware"))
        .stderr(Stderr::lines(move |line| drop(lines.try_send(line.to_owned()))));
    let server = client().connect(command.spawn().unwrap()).await.unwrap();
    for _ in 0..3 {
        let rolled = text_of(&server, "roll", json!({})).await;
        assert!(rolled.starts_with("4 for "), "{rolled}");
    }
    let refused = server.call_tool("roll", json!({})).await.unwrap_err();
    assert!(refused.to_string().contains("the dice are worn out"), "{refused}");
    let mut seen = Vec::new();
    while seen.len() < 4 {
        let line: String = written.recv().await.unwrap();
        seen.extend(
            line.strip_prefix("tools/call roll: ").and_then(|rest| rest.split(' ').next().map(str::to_owned)),
        );
    }
    assert_eq!(seen, ["ok", "ok", "ok", "failed"]);
    server.close().await;
}

#[tokio::test]
async fn a_custom_transport_carries_a_call_and_passes_the_kit() {
    assert_eq!(printed("custom_transport", [""; 0]).await, "hello\nthe kit finds nothing wrong\n");
}

#[tokio::test]
async fn a_client_lists_and_calls() {
    let server = program("smallest");
    let arguments = [server.as_os_str(), "--".as_ref(), "add".as_ref(), r#"{"a": 20, "b": 22}"#.as_ref()];
    let printed = printed("client", arguments).await;
    let lines: Vec<_> = printed.lines().collect();
    assert!(lines[0].starts_with("adder speaks 20"), "{printed}");
    assert_eq!(lines[1..], ["  add: Add two integers.", "it says:", "  42"]);
    let server = program("long_running");
    let arguments = [server.as_os_str(), "--".as_ref(), "count_primes".as_ref(), r#"{"below": 10}"#.as_ref()];
    assert!(self::printed("client", arguments).await.ends_with("  ... 10\nit says:\n  4 primes below 10\n"));
}

#[tokio::test]
async fn a_client_answers_for_its_model_and_its_user() {
    let expected = [
        r#"{"uri":"note://shopping","replaced":false}"#,
        "There is a note `shopping` already.",
        r#"{"uri":"note://shopping","replaced":true}"#,
        "notes wants to know: Say in a few words what this is about.",
        "4 words, the last of them butter.",
    ];
    assert_eq!(
        printed("client_with_sampling", [program("notes")]).await.lines().collect::<Vec<_>>(),
        expected
    );
}

#[tokio::test]
async fn a_server_that_is_tested_serves() {
    both(client(), "testing_your_server", async |server| {
        assert_eq!(server.tools().await.unwrap()[0].name, "book");
    })
    .await;
}

#[test]
fn no_example_is_forgotten() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples");
    let talked_to = include_str!("examples.rs");
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let name = path.file_stem().unwrap().to_str().unwrap();
        assert!(talked_to.contains(&format!("\"{name}\"")), "no test starts `{name}`");
    }
}

#[tokio::test]
async fn a_gateway_is_several_servers_as_one() {
    for mode in [Mode::Legacy, Mode::Modern] {
        let behind = |name: &str, example: &str| format!("{name}={}", program(example).display());
        let gateway = Child::spawn(program("gateway"), [behind("sums", "smallest"), behind("desk", "notes")]);
        let client = client().mode(mode).on_elicit(async |_| Answer::accept(json!({"overwrite": true})));
        let server = client.connect(gateway.unwrap()).await.unwrap();
        assert_eq!(text_of(&server, "servers", json!({})).await, "sums, desk");
        assert_eq!(text_of(&server, "sums_add", json!({"a": 2, "b": 3})).await, "5");
        let save = |text: &str| text_of(&server, "desk_save", json!({"title": "boat", "text": text}));
        save("green").await;
        assert!(
            save("red").await.contains(r#""replaced":true"#),
            "the question of the server behind is answered"
        );
        let error = server.call_tool("sums_ad", json!({})).await.unwrap_err().to_string();
        assert!(error.contains("sums_ad"), "{error}");
        server.close().await;
    }
}

#[tokio::test]
async fn errors_of_any_type_are_read_by_the_model() {
    both(client(), "errors", async |server| {
        let count = server.call_tool("count_lines", json!({"path": "/no/such/file"})).await.unwrap();
        assert_eq!(count.is_error, Some(true));
        assert_eq!(count.text(), "the file cannot be read: name another");
        assert_eq!(text_of(&server, "half", json!({"number": "7"})).await, "7 is odd: give an even number");
        assert_eq!(text_of(&server, "half", json!({"number": "x"})).await, "invalid digit found in string");
        let error = server.read_resource("numbers://1/by/0").await.unwrap_err().to_string();
        assert!(error.contains("nothing can be divided by 0"), "{error}");
    })
    .await;
}

#[tokio::test]
async fn tools_of_definitions_are_replaced_in_one_step() {
    both(client(), "definitions", async |server| {
        let lamp = server.tools().await.unwrap().into_iter().find(|tool| tool.name == "home_lamp").unwrap();
        assert_eq!(lamp.extra["com.example/room"], "kitchen");
        assert_eq!(lamp.annotations.unwrap().read_only_hint, Some(false));
        assert_eq!(text_of(&server, "home_lamp", json!({"on": true})).await, r#"lamp: {"on":true}"#);
        let refused = server.call_tool("home_blinds", json!({"percent": 101})).await.unwrap();
        assert_eq!(refused.is_error, Some(true));
        assert_eq!(text_of(&server, "add_up", json!({"below": 10})).await, "45");
        assert_eq!(text_of(&server, "reload", json!({})).await, "done");
        assert_eq!(text_of(&server, "home_curtains", json!({})).await, "curtains: {}");
        assert!(matches!(server.call_tool("home_blinds", json!({})).await, Err(Error::Rpc(_))));
    })
    .await;
}

#[tokio::test]
async fn a_task_has_a_result_and_a_status() {
    let lines = printed("tasks", [""; 0]).await;
    assert_eq!(
        lines.lines().collect::<Vec<_>>(),
        [
            "Delivery 4711: carrot cake to Harbour 1",
            "a task that is under way",
            "Delivery 4711: cheesecake to Harbour 1",
        ]
    );
}
