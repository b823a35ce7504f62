use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use pintle::{
    Client, Connection, Server,
    client::Mode,
    types::schema::{ContentBlock, LoggingLevel},
};
use pintle_serve::{CallPlan, EntryFault, ServedTools, ToolEntry};
use serde_json::{Value, json};

/// A folder that is removed at the end of a test.
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    pub(super) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("pintle-serve-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(super) fn read(file: &str, folder: &Path) -> Result<ServedTools, EntryFault> {
    let entries: BTreeMap<String, ToolEntry> = toml::from_str(file).unwrap();
    ServedTools::new(&entries, folder)
}

/// Serves the tools of a file to a client.
async fn serve_in(file: &str, folder: &Path) -> Connection {
    let tools = read(file, folder).unwrap();
    let server = tools.routes().into_iter().fold(Server::new("served", "1"), Server::tool);
    Client::new("test", "1").connect(server.in_process().unwrap()).await.unwrap()
}

async fn serve(file: &str) -> Connection {
    serve_in(file, Path::new(".")).await
}

pub(super) async fn text(client: &Connection, tool: &str, arguments: Value) -> String {
    client.call_tool(tool, arguments).await.unwrap().text()
}

/// Returns the text of a call that failed.
pub(super) async fn failure(client: &Connection, tool: &str, arguments: Value) -> String {
    match client.call_tool(tool, arguments).await {
        Ok(result) if result.is_error == Some(true) => result.text(),
        Ok(result) => panic!("{result:?}"),
        Err(error) => error.to_string(),
    }
}

/// Returns the number of living processes that have this in their environment.
fn marked(mark: &str) -> usize {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let environments = all.map(|entry| fs::read(entry.path().join("environ")).unwrap_or_default());
    environments
        .filter(|all| all.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes()))
        .count()
}

/// Waits until no process has this in its environment.
#[cfg(target_os = "linux")]
pub(super) async fn all_ended(mark: &str) {
    for _ in 0..6_000 {
        if marked(mark) == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{} processes are left", marked(mark));
}

const ECHO: &str = r#"
    [echo]
    description = "Prints its arguments."
    command = ["printf", "%s|", "--", "{text}", "<{text}>"]
    arguments = { text = "string" }
    [shell]
    description = "Prints its arguments."
    command = "printf '%s|' -- {text} \"<{text}>\""
    shell = true
    arguments = { text = "string" }
    [cat]
    description = "Prints its input."
    command = ["cat"]
    stdin = "{text}"
    arguments = { text = "string" }
"#;

#[tokio::test]
async fn a_value_reaches_the_command_exactly() {
    let client = serve(ECHO).await;
    let long = "x".repeat(100_000);
    for value in ["a b", "'\"`$(id)`", "a\nb\n", "*", "\\", "ünï©ode", "-x", "--", "", "${HOME}", "%s", &long]
    {
        for tool in ["echo", "shell"] {
            let printed = text(&client, tool, json!({"text": value})).await;
            assert_eq!(printed, format!("--|{value}|<{value}>|"), "{tool}");
        }
        assert_eq!(text(&client, "cat", json!({"text": value})).await, value);
    }
    let large = "y".repeat(1 << 20);
    assert_eq!(
        text(&client, "cat", json!({"text": large})).await,
        large,
        "standard input has no limit of words"
    );
}

#[tokio::test]
async fn a_value_that_no_program_takes_is_refused_with_a_reason() {
    let client = serve(ECHO).await;
    for (value, expected) in
        [("a\0b".to_owned(), "holds a NUL"), ("x".repeat(1 << 20), "have the tool use `stdin`")]
    {
        let error = failure(&client, "echo", json!({"text": value})).await;
        assert!(error.contains(expected), "{error}");
    }
    let error = failure(&client, "echo", json!({"text": 1})).await;
    assert!(error.contains("string"), "the schema is checked: {error}");
    assert!(failure(&client, "echo", json!({})).await.contains("text"));
}

#[tokio::test]
async fn a_command_that_fails_says_why_and_quotes_the_end_of_its_error_output() {
    let file = r#"
        [fails]
        command = "echo before >&2; echo 'error: no such city' >&2; exit 3"
        shell = true
        [dies]
        command = "kill -9 $$"
        shell = true
        [missing]
        command = ["pintle-no-such-program"]
    "#;
    let client = serve(file).await;
    let error = failure(&client, "fails", json!({})).await;
    assert!(
        error.contains("`sh` exited with status 3") && error.contains("`error: no such city`"),
        "{error}"
    );
    assert!(failure(&client, "dies", json!({})).await.contains("was ended by signal 9"));
    let error = failure(&client, "missing", json!({})).await;
    assert!(error.contains("no such program: `pintle-no-such-program`: install it"), "{error}");
}

#[tokio::test]
async fn a_default_and_a_value_that_is_left_out() {
    let file = r#"
        [log]
        command = ["echo", "-n{count}", "{loud?--verbose}", "{paths}"]
        arguments = { count = "integer = 3", loud = "boolean?", paths = "string[]?" }
    "#;
    let client = serve(file).await;
    assert_eq!(text(&client, "log", json!({})).await, "-n3\n");
    let all = json!({"count": 1, "loud": true, "paths": ["a b", "c"]});
    assert_eq!(text(&client, "log", all).await, "-n1 --verbose a b c\n");
    let tools = read(file, Path::new("/srv")).unwrap();
    let plan = tools.plan("log", json!({"paths": ["it's"]}).as_object().unwrap()).unwrap().unwrap();
    assert_eq!(plan.to_string(), r"echo -n3 'it'\''s'");
    let CallPlan::Command(plan) = plan else { panic!("{plan:?}") };
    assert_eq!(plan.cwd, Path::new("/srv"));
    let many = json!({"paths": vec![""; 400_000]});
    let wrong = tools.plan("log", many.as_object().unwrap()).unwrap().unwrap_err();
    assert!(wrong.to_string().contains("400002 words, and 4096 are allowed: send shorter lists"), "{wrong}");
    let wrong = tools.plan("log", json!({"count": "x"}).as_object().unwrap()).unwrap().unwrap_err();
    assert!(wrong.to_string().contains("integer"), "what a call refuses has no plan: {wrong}");
    assert!(tools.plan("other", &Default::default()).is_none());
}

#[tokio::test]
async fn the_environment_is_that_of_the_file_and_little_more() {
    let folder = Folder::new();
    fs::write(folder.0.join("token"), "from a file\n").unwrap();
    let secret = folder.0.join("token").display().to_string();
    let file = format!(
        r#"
        [show]
        command = "echo $PLAIN, $TOKEN, ${{CARGO_MANIFEST_DIR-none}}; pwd"
        shell = true
        env = {{ PLAIN = "text", TOKEN = {{ file = "{secret}" }} }}
        [inherits]
        command = "test -n \"$CARGO_MANIFEST_DIR\" && echo yes"
        shell = true
        inherit = ["CARGO_*"]
        [unset]
        command = ["env"]
        env = {{ TOKEN = {{ env = "PINTLE_NO_SUCH_VARIABLE" }} }}
        "#
    );
    let client = serve_in(&file, &folder.0).await;
    let shown = text(&client, "show", json!({})).await;
    let path = fs::canonicalize(&folder.0).unwrap();
    assert_eq!(shown, format!("text, from a file, none\n{}\n", path.display()));
    assert_eq!(text(&client, "inherits", json!({})).await, "yes\n");
    let error = failure(&client, "unset", json!({})).await;
    assert!(error.contains("`PINTLE_NO_SUCH_VARIABLE` is not set"), "{error}");
    let plan = read(&file, &folder.0).unwrap().plan("show", &Default::default()).unwrap().unwrap();
    assert!(!format!("{plan} {plan:?}").contains("from a file"), "a plan has no secrets");
}

#[tokio::test]
async fn the_output_is_text_json_or_media() {
    let folder = Folder::new();
    let pixel = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89";
    fs::write(folder.0.join("pixel.png"), pixel).unwrap();
    let file = r#"
        [invalid]
        command = "printf 'a\\377b'"
        shell = true
        [json]
        command = ["cat"]
        stdin = "{text}"
        arguments = { text = "string" }
        output = "json"
        output_schema = { type = "object", properties = { n = { type = "integer" } }, required = ["n"] }
        [image]
        command = ["cat", "pixel.png"]
        output = "image/png"
        [no_image]
        command = ["echo", "text"]
        output = "image/png"
    "#;
    let client = serve_in(file, &folder.0).await;
    assert_eq!(text(&client, "invalid", json!({})).await, "a\u{fffd}b");
    let result = client.call_tool("json", json!({"text": "{\"n\": 1}"})).await.unwrap();
    assert_eq!(result.structured_content, Some(json!({"n": 1})));
    let error = failure(&client, "json", json!({"text": "{\"n\": "})).await;
    assert!(error.contains("its output is no JSON") && error.contains("output = \"text\""), "{error}");
    let error = failure(&client, "json", json!({"text": "{\"n\": \"x\"}"})).await;
    assert!(error.contains("integer"), "the schema is checked: {error}");
    let image = client.call_tool("image", json!({})).await.unwrap();
    assert!(
        matches!(&image.content[..], [ContentBlock::Image(image)] if image.mime_type == "image/png"),
        "{image:?}"
    );
    assert!(failure(&client, "no_image", json!({})).await.contains("image"));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_hostile_command_ends_in_time_with_a_clear_error_and_leaves_nothing() {
    let mark = format!("PINTLE_SERVE_MARK={}", std::process::id());
    let (name, value) = mark.split_once('=').unwrap();
    let tool = |name_of: &str, line: &str, more: &str| {
        format!("[{name_of}]\ncommand = {line:?}\nshell = true\nenv = {{ {name} = {value:?} }}\n{more}\n")
    };
    let file = [
        tool("hangs", "trap '' TERM; while :; do sleep 1000; done", "timeout = \"200ms\""),
        tool("floods", "yes >&2 & yes", "max_output = 100000"),
        tool("floods_errors", "yes >&2", "timeout = \"500ms\""),
        tool("forks", "for i in 1 2 3; do (trap '' TERM; sleep 1000) & done; echo started", ""),
        tool("holds", "sleep 1000 & echo held", ""),
        tool("closes", "echo closed; exec >&-; exit 0", ""),
        tool("ignores_input", "echo done", "stdin = \"{text}\"\narguments = { text = \"string\" }"),
    ]
    .concat();
    let client = serve(&file).await;
    for (tool, expected) in [
        ("hangs", "took longer than 200ms, and was ended"),
        ("floods", "wrote more than 100000 bytes, and was ended"),
        ("floods_errors", "took longer than 500ms, and was ended"),
    ] {
        let error = failure(&client, tool, json!({})).await;
        assert!(error.contains(expected), "{error}");
    }
    for (tool, expected) in [("forks", "started\n"), ("holds", "held\n"), ("closes", "closed\n")] {
        assert_eq!(text(&client, tool, json!({})).await, expected);
    }
    let long = json!({"text": "x".repeat(1 << 20)});
    assert_eq!(text(&client, "ignores_input", long).await, "done\n");
    all_ended(&mark).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_call_that_is_cancelled_ends_its_command() {
    let mark = format!("PINTLE_SERVE_CANCELLED={}", std::process::id());
    let (name, value) = mark.split_once('=').unwrap();
    let folder = Folder::new();
    let file = format!(
        "[waits]\ncommand = \"echo > begun; sleep 1000\"\nshell = true\nenv = {{ {name} = {value:?} }}\n"
    );
    for mode in [Mode::Modern, Mode::Legacy] {
        let tools = read(&file, &folder.0).unwrap();
        let server = tools.routes().into_iter().fold(Server::new("served", "1"), Server::tool);
        let client = Client::new("test", "1").mode(mode).connect(server.in_process().unwrap()).await.unwrap();
        let begun = async {
            for _ in 0..6_000 {
                if folder.0.join("begun").exists() {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            panic!("the command was not started");
        };
        tokio::select! {
            called = async { client.call_tool("waits", ()).await } => panic!("{called:?}"),
            () = begun => {}
        }
        all_ended(&mark).await;
        fs::remove_file(folder.0.join("begun")).unwrap();
    }
}

#[tokio::test]
async fn lines_are_progress_while_the_command_runs() {
    let file = r#"
        [steps]
        command = "echo one; echo two; printf 'no end'"
        shell = true
        progress = true
    "#;
    let client = serve(file).await;
    let lines = std::sync::Arc::new(Mutex::new(Vec::new()));
    let seen = lines.clone();
    let called = client.call("steps").on_progress(move |progress| {
        seen.lock().unwrap().push(progress.message.clone().unwrap_or_default());
    });
    assert_eq!(called.await.unwrap().text(), "one\ntwo\nno end");
    assert_eq!(*lines.lock().unwrap(), ["one", "two", "no end"]);
}

/// A value stays one word wherever it stands in a line, whatever the shell.
#[test]
fn a_value_in_a_line_is_one_word_for_every_shell() {
    let value = "a  b\t*; $(echo no) `echo no` \"'\\ /etc/pass*";
    let lines = [
        "printf '[%s]' {x}",
        "printf '[%s]' \"{x}\"",
        "printf '[%s]' \"$(printf %s {x})\"",
        "printf '[%s]' \"$(printf %s \"$(printf %s {x})\")\"",
        "A={x}; printf '[%s]' \"$A\"",
        "printf '[%s]' $(true){x}",
        "(printf '[%s]' {x})",
        "true # \" '\nprintf '[%s]' {x} # \"",
        "if printf '[%s]' {x}; then true; fi",
        "{ printf '[%s]' {x} 2>&1; } | cat",
        "printf %s[ ''; printf %s \"\"\"{x}\"''; printf ']'",
    ];
    for line in lines {
        let line = serde_json::to_string(line).unwrap();
        let file = format!("[a]\ncommand = {line}\nshell = true\narguments = {{ x = \"string\" }}");
        let plan = read(&file, Path::new(".")).unwrap().plan("a", json!({"x": value}).as_object().unwrap());
        let CallPlan::Command(plan) = plan.unwrap().unwrap() else { panic!("{line}") };
        for shell in ["sh", "bash", "dash"] {
            let Ok(ran) = std::process::Command::new(shell).args(&plan.words[1..]).output() else { continue };
            assert_eq!(
                String::from_utf8_lossy(&ran.stdout),
                format!("[{value}]"),
                "{shell}: {line}: {ran:?}"
            );
        }
    }
}

#[tokio::test]
async fn lines_of_the_error_output_are_logged() {
    let file = r#"
        [fetch]
        command = "echo begun >&2; (setsid sleep 20 &); echo done; echo ended >&2"
        shell = true
        log = true
    "#;
    let tools = read(file, Path::new(".")).unwrap();
    let server = tools.routes().into_iter().fold(Server::new("served", "1").logging(), Server::tool);
    let client = Client::new("test", "1").log_level(LoggingLevel::Info);
    let client = client.connect(server.in_process().unwrap()).await.unwrap();
    let lines = std::sync::Arc::new(Mutex::new(Vec::new()));
    let seen = lines.clone();
    let called = client.call("fetch").on_log(move |log| {
        seen.lock().unwrap().push((log.logger.clone(), log.data.clone()));
    });
    assert_eq!(called.await.unwrap().text(), "done\n");
    let fetch = Some("fetch".to_owned());
    assert_eq!(*lines.lock().unwrap(), [(fetch.clone(), json!("begun")), (fetch, json!("ended"))]);
}

#[tokio::test]
async fn a_secret_that_a_command_repeats_is_in_no_error_progress_and_log() {
    let folder = Folder::new();
    fs::write(folder.0.join("token"), "t0p s3cret/2\n").unwrap();
    let file = format!(
        r#"
        [a]
        command = "echo bad $TOKEN; echo \"url?token=t0p%20s3cret%2f2\" >&2; exit 3"
        shell = true
        progress = true
        log = true
        env = {{ TOKEN = {{ file = "{}" }}, MODE = "fast" }}
        "#,
        folder.0.join("token").display()
    );
    let tools = read(&file, Path::new(".")).unwrap();
    let server = tools.routes().into_iter().fold(Server::new("served", "1").logging(), Server::tool);
    let client = Client::new("test", "1").log_level(LoggingLevel::Info);
    let client = client.connect(server.in_process().unwrap()).await.unwrap();
    let lines = std::sync::Arc::new(Mutex::new(Vec::new()));
    let (logged, progressed) = (lines.clone(), lines.clone());
    let called = client.call("a").on_log(move |log| logged.lock().unwrap().push(log.data.to_string()));
    let called = called.on_progress(move |progress| {
        progressed.lock().unwrap().push(progress.message.clone().unwrap_or_default());
    });
    let failed = called.await.unwrap().text();
    assert!(failed.contains("url?token=…") && !failed.contains("s3cret"), "{failed}");
    let lines = lines.lock().unwrap().join("\n");
    assert!(lines.contains("bad …") && lines.contains("url?token=…") && !lines.contains("s3cret"), "{lines}");
}

#[tokio::test]
async fn a_command_that_uses_more_cpu_than_it_may_is_ended() {
    let file = r#"
        [spin]
        command = ["sh", "-c", "trap '' XCPU; while :; do :; done", "{name}"]
        arguments = { name = "string" }
        max_cpu = "0.5s"

        [spin_in_shell]
        command = "(while :; do :; done)"
        shell = true
        max_cpu = "1s"

        [print]
        command = ["printf", "%s|", "{words}"]
        arguments = { words = "string[]" }
        max_cpu = "1s"
    "#;
    let client = serve(file).await;
    let killed = failure(&client, "spin", json!({"name": "x"})).await;
    assert!(killed.contains("`sh` was ended by signal 9"), "{killed}");
    let ended = failure(&client, "spin_in_shell", json!({})).await;
    assert!(ended.contains("`sh` used more than 1 s of CPU time, and was ended"), "{ended}");
    let words = ["a b", "$(id)", "'", ""];
    assert_eq!(text(&client, "print", json!({"words": words})).await, "a b|$(id)|'||");
    let plan =
        read(file, Path::new(".")).unwrap().plan("print", json!({"words": ["a"]}).as_object().unwrap());
    assert_eq!(plan.unwrap().unwrap().to_string(), "ulimit -t 1 && printf '%s|' a");
}

#[tokio::test]
async fn an_entry_that_is_wrong_is_refused_with_what_to_write() {
    for (file, expected) in [
        ("[a]\n", "tool `a`: it has no command"),
        ("[a]\ncommand = \"echo\"", "`shell = true`"),
        ("[a]\ncommand = [\"echo\"]\nshell = true", "needs a line"),
        (
            "[a]\ncommand = [\"echo\", \"{x}\"]\narguments = { x = { type = \"intger\" } }",
            "tool `a`: argument `x`: ",
        ),
        (
            "[a]\ncommand = [\"echo\", \"{x}\"]\narguments = { x = { type = \"integer\", default = \"x\" } }",
            "argument `x`: its `default` is not what",
        ),
        (
            "[a]\ncommand = [\"echo\"]\noutput = \"json\"\noutput_schema = { type = \"objct\" }",
            "tool `a`: `output_schema`: ",
        ),
        ("[a]\ncommand = [\"echo\"]\narguments = { x = \"string\" }", "argument `x` has no place"),
        (
            "[a]\ncommand = [\"echo\", \"{x}\"]\narguments = { x = \"text\" }",
            "argument `x`: `text` is no type",
        ),
        ("[a]\ncommand = [\"echo\"]\noutput_schema = { type = \"object\" }", "`output_schema` is for"),
        ("[a]\ncommand = [\"echo\"]\nmax_running = 0", "a limit of 0"),
        ("[a]\ncommand = [\"echo\"]\nenv = { \"A=B\" = \"c\" }", "a variable of `env`"),
    ] {
        let error = read(file, Path::new(".")).unwrap_err().to_string();
        assert!(error.contains(expected), "{file}: {error}");
    }
    for (file, expected) in [
        ("[a]\ncomand = [\"echo\"]", "unknown field `comand`"),
        ("[a]\ncommand = [\"echo\"]\noutput = \"pdf\"", "`pdf` is no output"),
        ("[a]\ncommand = [\"echo\"]\ntimeout = \"5 moons\"", "write it as"),
    ] {
        let error = toml::from_str::<BTreeMap<String, ToolEntry>>(file).unwrap_err().to_string();
        assert!(error.contains(expected), "{file}: {error}");
    }
}
