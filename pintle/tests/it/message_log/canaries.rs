//! Secrets are put wherever they can be, and looked for in everything that is printed.

use std::{
    io::{self, Write},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::{HeaderMap, HeaderValue, header::AUTHORIZATION};
use pintle::{
    Client, Server,
    client::{
        Answer, Mode,
        http::{Auth, Http, Outgoing},
    },
    message_log::{MessageFile, MessageLog, Redactor},
    server::{Cx, ToolError, template, tool},
    transport::{Transport, listen_tcp, listen_unix, tcp, unix},
    types::schema::{ContentBlock, CreateMessageParams, CreateMessageResult, Role, SamplingMessage},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tracing::Level;

/// What must not be printed on any transport.
const CANARIES: [&str; 7] = [
    "canary-answer",
    "canary-model",
    "canary-root",
    "canary-user",
    "canary-param",
    "canary-page",
    "canary-argument",
];
/// What must not be printed over HTTP either.
const HTTP_CANARIES: [&str; 5] =
    ["canary-token", "canary-cookie", "canary-dpop", "canary-key", "canary-query"];

/// Everything that was printed.
#[derive(Clone, Default)]
struct Printed(Arc<Mutex<Vec<u8>>>);

impl Printed {
    fn add(&self, text: impl AsRef<str>) {
        let mut printed = self.0.lock().unwrap();
        printed.extend_from_slice(text.as_ref().as_bytes());
        printed.push(b'\n');
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Printed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Authorizes requests, and prints them.
struct Token(Printed);

impl Auth for Token {
    async fn authorize(&self, request: Outgoing<'_>) -> pintle::Result<HeaderMap> {
        self.0.add(format!("{request:?}"));
        Ok([(AUTHORIZATION, HeaderValue::from_static("Bearer canary-token"))].into_iter().collect())
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Pin {
    #[expect(dead_code, reason = "nothing is done with it")]
    pin: String,
}

fn server(printed: &Printed) -> Server {
    let printed = printed.clone();
    let ask = move |cx: Cx| {
        let printed = printed.clone();
        async move {
            printed.add(format!("{cx:?} {:?}", cx.http()));
            cx.elicit::<Pin>("pin", "Your PIN?").await?;
            let message = SamplingMessage::new(Role::User, ContentBlock::text("?"));
            cx.sample("text", CreateMessageParams::new(vec![message], 10)).await?;
            cx.roots().await?;
            cx.elicit_url("page", "Pay", "https://example.com/pay?canary-page=1").await?;
            Ok::<_, ToolError>("done")
        }
    };
    let failing = |_: Cx| async {
        Err::<String, anyhow::Error>(anyhow::anyhow!("the disk is broken").context("no such note"))
    };
    Server::new("s", "1").tool(tool("ask", ask)).template(template("notes://{+rest}", "note", failing))
}

fn client() -> Client {
    Client::new("c", "1")
        .on_elicit(|_| async { Answer::accept(json!({"pin": "canary-answer"})) })
        .on_elicit_url(|_| async { Answer::Decline })
        .on_sample(|_| async { CreateMessageResult::new("m", ContentBlock::text("canary-model")) })
        .roots(["file:///canary-root"])
}

async fn talk(client: &Client, transport: impl Transport, printed: &Printed) {
    printed.add(format!("{transport:?} {client:?}"));
    let connection = client.connect(transport).await.unwrap();
    let asked = connection.call_tool("ask", json!({"secret argument": "canary-argument"})).await.unwrap();
    assert_eq!(asked.text(), "done");
    let read = connection.read_resource("notes://canary-user:x@host/a?b=canary-param").await.unwrap_err();
    printed.add(format!("{connection:?}"));
    // The error is for the caller, who knows the URI.
    drop(read);
    connection.close().await;
}

/// A log of everything, and what it has got.
fn raw() -> (MessageLog, Arc<Mutex<Vec<Value>>>) {
    let (log, records) = super::transports::collected();
    (log.redactor(Redactor::disabled()), records)
}

/// The session ids and request states in raw records, and whether each canary is in them.
fn secrets(records: &Mutex<Vec<Value>>, canaries: &[&str]) -> Vec<String> {
    let records = records.lock().unwrap();
    let text = serde_json::to_string(&*records).unwrap();
    for canary in canaries {
        assert!(text.contains(canary), "`{canary}` is not in the messages: {text}");
    }
    let mut secrets = Vec::new();
    for record in &*records {
        let headers = record["http"]["headers"].as_array().into_iter().flatten();
        let ids = headers.filter(|header| header[0] == "mcp-session-id").map(|header| &header[1]);
        let states =
            [&record["message"]["params"]["requestState"], &record["message"]["result"]["requestState"]];
        secrets.extend(ids.chain(states).filter_map(Value::as_str).map(str::to_owned));
    }
    secrets
}

fn check(printed: &str, canaries: &[&str], secrets: &[String], what: &str) {
    for canary in canaries.iter().copied().chain(secrets.iter().map(String::as_str)) {
        let line = printed.lines().find(|line| line.contains(canary));
        assert!(line.is_none(), "{what}: `{canary}` was printed: {line:?}");
    }
}

/// Calls `run` with a server and a client, of which one has a redacted log and the other a raw one; then looks for secrets.
async fn each_side(canaries: &[&str], mode: Mode, run: impl AsyncFn(Server, Client, &Printed)) {
    static FILES: AtomicUsize = AtomicUsize::new(0);
    let name =
        format!("pintle-canaries-{}-{}.jsonl", std::process::id(), FILES.fetch_add(1, Ordering::Relaxed));
    let path = std::env::temp_dir().join(name);
    for side in ["client", "server"] {
        for sink in ["records", "file", "tracing"] {
            let printed = Printed::default();
            let writer = printed.clone();
            let subscriber = tracing_subscriber::fmt()
                .with_ansi(false)
                .with_max_level(Level::TRACE)
                .with_writer(move || writer.clone())
                .finish();
            let file = MessageFile::open(&path).unwrap();
            let redacted = match sink {
                "file" => MessageLog::to_file(&file),
                "tracing" => MessageLog::to_tracing(),
                _ => MessageLog::new({
                    let printed = printed.clone();
                    move |record| printed.add(format!("{record} {} {record:?}", record.to_json()))
                }),
            };
            let redacted = redacted.redactor(Redactor::new().arguments());
            let (raw, records) = raw();
            printed.add(format!("{redacted:?} {file:?}"));
            let (server, client) = (server(&printed), client().mode(mode));
            let (server, client) = match side {
                "client" => (server.message_log(raw), client.message_log(redacted)),
                _ => (server.message_log(redacted), client.message_log(raw)),
            };
            {
                let _subscribed = crate::support::subscriber::set_subscriber(subscriber);
                run(server, client, &printed).await;
            }
            file.flush().await;
            printed.add(std::fs::read_to_string(&path).unwrap());
            std::fs::remove_file(&path).unwrap();
            let printed = printed.text();
            // The log was written, and so were log lines.
            assert!(printed.contains("tools/call") && printed.contains("a handler failed"), "{printed}");
            check(&printed, canaries, &secrets(&records, canaries), &format!("{mode:?} {side} {sink}"));
        }
    }
}

#[tokio::test]
async fn no_secret_is_printed_in_memory() {
    for mode in [Mode::Modern, Mode::Legacy] {
        each_side(&CANARIES, mode, async |server, client, printed| {
            talk(&client, server.in_process().unwrap(), printed).await;
        })
        .await;
    }
}

#[tokio::test]
async fn no_secret_is_printed_over_sockets() {
    let directory = std::env::temp_dir().join(format!("pintle-canaries-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    for mode in [Mode::Modern, Mode::Legacy] {
        each_side(&CANARIES, mode, async |server, client, printed| {
            let mut listener = listen_tcp("127.0.0.1:0").await.unwrap();
            let theirs = tcp(listener.address().unwrap()).await.unwrap();
            drop(server.serve(listener.accept().await.unwrap()).unwrap());
            talk(&client, theirs, printed).await;

            let mut listener = listen_unix(directory.join("socket")).unwrap();
            let theirs = unix(directory.join("socket")).await.unwrap();
            drop(server.serve(listener.accept().await.unwrap()).unwrap());
            talk(&client, theirs, printed).await;
        })
        .await;
    }
    std::fs::remove_dir_all(directory).unwrap();
}

#[tokio::test]
async fn no_secret_is_printed_over_http() {
    let canaries = [&CANARIES[..], &HTTP_CANARIES].concat();
    for mode in [Mode::Modern, Mode::Legacy] {
        each_side(&canaries, mode, async |server, client, printed| {
            let serving = server.serve_http("127.0.0.1:0").await.unwrap();
            let url = format!("http://{}/mcp?key=canary-query", serving.address());
            let transport = Http::new(&url)
                .unwrap()
                .header("cookie", "a=canary-cookie")
                .header("dpop", "canary-dpop")
                .header("x-api-key", "canary-key")
                .auth(Token(printed.clone()));
            talk(&client, transport, printed).await;
            let _ = serving.shutdown(Duration::ZERO).await;
            let error = client.connect(Http::new(&url).unwrap()).await.unwrap_err();
            printed.add(format!("{error} {error:?}"));
        })
        .await;
    }
}

/// A session of the oldest revision is named in the URL that the first event of its stream has.
#[tokio::test]
async fn the_session_in_a_url_is_not_printed() {
    for side in ["client", "server"] {
        let (redacted, shown) = super::transports::collected();
        let (raw, records) = raw();
        let (server_log, client_log) = if side == "client" { (raw, redacted) } else { (redacted, raw) };
        let server = server(&Printed::default()).message_log(server_log);
        let http = server.http().unwrap().two_endpoints("/sse", "/messages");
        let serving = http.serve(tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap()).unwrap();
        let client = client().mode(Mode::Legacy).message_log(client_log);
        let url = format!("http://{}/sse", serving.address());
        let connection = client.connect(Http::new(url).unwrap()).await.unwrap();
        connection.ping().await.unwrap();
        connection.close().await;
        let _ = serving.shutdown(Duration::ZERO).await;
        let records = serde_json::to_string(&*records.lock().unwrap()).unwrap();
        let (_, rest) = records.split_once("/messages?session=").unwrap();
        let id = rest.split('"').next().unwrap();
        assert!(id.len() >= 16, "{id}");
        let shown = serde_json::to_string(&*shown.lock().unwrap()).unwrap();
        assert!(shown.contains("/messages?<redacted>"), "{shown}");
        check(&shown, &[], &[id.to_owned()], side);
    }
}
