//! Errors of handlers: `?` on any error, what the client reads of it, and what is logged.

use std::{
    error::Error,
    fmt,
    io::{self, Write},
    sync::{Arc, Mutex},
};

use pintle::{
    Server,
    server::{Cx, Partial, RequestError, ToolError, Vars, method, prompt, resource, template, tool},
    types::RpcError,
};
use serde_json::{Value, json};

use crate::support::eras::{Client, R4, R5, each};

/// An error whose sources are not for clients.
#[derive(Debug)]
struct Outer(io::Error);

impl fmt::Display for Outer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the store is down")
    }
}

impl Error for Outer {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

fn typed() -> Result<(), Outer> {
    Err(Outer(io::Error::other("secret.internal:5432")))
}

fn by_anyhow() -> anyhow::Result<()> {
    anyhow::Context::context(Err(io::Error::other("secret.internal:5432")), "the store is down")
}

fn by_eyre() -> eyre::Result<()> {
    eyre::WrapErr::wrap_err(Err(io::Error::other("secret.internal:5432")), "the store is down")
}

fn boxed() -> Result<(), Box<dyn Error + Send + Sync>> {
    Ok(typed()?)
}

/// Everything that was logged while it lives.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn listen(&self) -> tracing::subscriber::DefaultGuard {
        let log = self.clone();
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || log.clone()).finish();
        crate::support::subscriber::set_subscriber(subscriber)
    }

    fn take(&self) -> String {
        String::from_utf8(std::mem::take(&mut *self.0.lock().unwrap())).unwrap()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_tool_returns_any_error_and_the_model_reads_its_own_message() {
    let server = Server::new("s", "0")
        .tool(tool("typed", || async { typed() }))
        .tool(tool("anyhow", || async { by_anyhow() }))
        .tool(tool("eyre", || async { by_eyre() }))
        .tool(tool("boxed", || async { boxed() }))
        .tool(tool("string", || async { Err::<(), _>("the store is down".to_owned()) }))
        .tool(tool("str", || async { Err::<(), _>("the store is down") }))
        .tool(tool("asked", || async {
            typed().or_else(|_| by_anyhow())?;
            Err::<(), _>(ToolError::new("unreachable"))
        }))
        .tool(tool("eyre_asked", || async {
            by_eyre()?;
            Ok::<_, ToolError>(())
        }))
        .tool(tool("boxed_asked", || async {
            boxed()?;
            Ok::<_, ToolError>(())
        }))
        .tool(tool("string_asked", || async {
            Err("the store is down".to_owned())?;
            Ok::<_, ToolError>(())
        }));
    let log = Log::default();
    let _listening = log.listen();
    each(&server, &[R4, R5], json!({}), async |client: &mut Client| {
        log.take();
        for name in ["typed", "anyhow", "eyre", "boxed", "asked", "eyre_asked", "boxed_asked"] {
            let answer = client.call("tools/call", json!({"name": name})).await;
            assert_eq!(answer["result"]["isError"], true, "{answer}");
            assert_eq!(answer["result"]["content"], json!([{"type": "text", "text": "the store is down"}]));
            let logged = log.take();
            assert!(logged.contains("secret.internal:5432") && logged.contains(name), "{name}: {logged}");
        }
        for name in ["string", "str", "string_asked"] {
            let answer = client.call("tools/call", json!({"name": name})).await;
            assert_eq!(answer["result"]["content"][0]["text"], "the store is down", "{answer}");
            assert_eq!(log.take(), "", "an error without sources is logged by nobody");
        }
    })
    .await;
}

#[tokio::test]
async fn prompts_resources_and_methods_return_any_error() {
    let server = Server::new("s", "0")
        .prompt(prompt("anyhow", || async { by_anyhow().map(|()| "") }))
        .prompt(prompt("string", || async { Err::<&str, _>("the store is down".to_owned()) }))
        .resource(resource("x://eyre", "eyre", || async { by_eyre().map(|()| "") }))
        .resource(resource("x://str", "str", || async { Err::<&str, _>("the store is down") }))
        .template(template("y://{id}", "y", |Vars(_): Vars<String>| async { boxed().map(|()| "") }))
        .method(method("x/anyhow", |_: Cx, _: Value| async { by_anyhow() }))
        .method(method("x/eyre", |_: Cx, _: Value| async { by_eyre() }))
        .method(method("x/string", |_: Cx, _: Value| async { Err::<(), _>("the store is down".to_owned()) }))
        .method(method("x/rpc", |_: Cx, _: Value| async {
            Err::<(), _>(RpcError::invalid_params("the store is down"))
        }))
        .method(method("x/tool", |_: Cx, _: Value| async {
            // A function that tools share with other handlers.
            let shared = || Err::<(), _>(ToolError::from("the store is down"));
            shared()?;
            Ok::<_, RequestError>(())
        }));
    let log = Log::default();
    let _listening = log.listen();
    each(&server, &[R4, R5], json!({}), async |client: &mut Client| {
        for (method, params, code, logs) in [
            ("prompts/get", json!({"name": "anyhow"}), -32603, true),
            ("prompts/get", json!({"name": "string"}), -32603, false),
            ("resources/read", json!({"uri": "x://eyre"}), -32603, true),
            ("resources/read", json!({"uri": "x://str"}), -32603, false),
            ("resources/read", json!({"uri": "y://1"}), -32603, true),
            ("x/anyhow", json!({}), -32603, true),
            ("x/eyre", json!({}), -32603, true),
            ("x/string", json!({}), -32603, false),
            ("x/rpc", json!({}), -32602, false),
            ("x/tool", json!({}), -32603, false),
        ] {
            let answer = client.call(method, params).await;
            assert_eq!(answer["error"]["message"], "the store is down", "{method}: {answer}");
            assert_eq!(answer["error"]["code"], code, "{method}: {answer}");
            assert!(!answer.to_string().contains("secret"), "{answer}");
            let logged = log.take();
            assert_eq!(logged.contains("secret.internal:5432"), logs, "{method}: {logged}");
        }
    })
    .await;
}

#[tokio::test]
async fn completers_return_any_error_and_the_client_reads_none() {
    async fn failing(_: Partial) -> anyhow::Result<Vec<String>> {
        by_anyhow()?;
        Ok(Vec::new())
    }
    async fn refusing(_: Partial) -> Result<Vec<&'static str>, RequestError> {
        boxed()?;
        Ok(vec![])
    }
    let answer = |_: std::collections::BTreeMap<String, String>| async { "" };
    let server = Server::new("s", "0").prompt(
        prompt("p", answer)
            .argument("a", "")
            .argument("b", "")
            .complete("a", failing)
            .complete("b", refusing),
    );
    let log = Log::default();
    let _listening = log.listen();
    each(&server, &[R4, R5], json!({}), async |client: &mut Client| {
        for argument in ["a", "b"] {
            let params = json!({
                "ref": {"type": "ref/prompt", "name": "p"},
                "argument": {"name": argument, "value": ""},
            });
            let answer = client.call("completion/complete", params).await;
            assert_eq!(answer["result"]["completion"]["values"], json!([]), "{answer}");
            let logged = log.take();
            assert!(logged.contains("the store is down: secret.internal:5432"), "{logged}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_protocol_error_stays_one_unless_another_error_type_wraps_it() {
    let refused = || RpcError::invalid_params("no such row");
    let server = Server::new("s", "0")
        .tool(tool("plain", move || async move { Err::<(), _>(refused()) }))
        .tool(tool(
            "boxed",
            move || async move { Err::<(), Box<dyn Error + Send + Sync>>(Box::new(refused())) },
        ))
        .tool(tool("wrapped", move || async move { Err::<(), _>(anyhow::Error::new(refused())) }));
    let mut client = Client::open(&server, R5, json!({})).await;
    for name in ["plain", "boxed"] {
        let answer = client.call("tools/call", json!({"name": name})).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    let answer = client.call("tools/call", json!({"name": "wrapped"})).await;
    assert_eq!(answer["result"]["isError"], true, "{answer}");
}

#[derive(serde::Deserialize)]
#[allow(dead_code, reason = "only what cannot be read matters")]
struct Wanted {
    count: u32,
}

#[tokio::test(start_paused = true)]
async fn params_that_cannot_be_read_are_described_without_types_of_rust() {
    let server = Server::new("s", "0")
        .tool(tool(
            "echo",
            |pintle::server::Arguments(arguments)| async move { arguments.as_str().to_owned() },
        ))
        .prompt(
            prompt("greet", || async { "Greet me." })
                .argument("name", "")
                .complete("name", |_: Partial| async { vec!["Ann"] }),
        )
        .resource(resource("a://b", "b", || async { "text" }))
        .method(method("x/count", |_: Cx, wanted: Wanted| async move {
            Ok::<_, RequestError>(json!({"count": wanted.count}))
        }));
    each(&server, &[R4, R5], json!({}), async |client: &mut Client| {
        for (method, params) in [
            ("tools/list", json!({"cursor": {}})),
            ("prompts/list", json!({"cursor": []})),
            ("resources/list", json!({"cursor": 1})),
            ("tools/call", json!({"name": {}})),
            ("prompts/get", json!({"name": 7})),
            ("prompts/get", json!({"name": "greet", "arguments": "text"})),
            ("resources/read", json!({"uri": []})),
            ("completion/complete", json!({"ref": 7, "argument": "x"})),
            ("completion/complete", json!({"ref": {"type": "ref/prompt", "name": "greet"}, "argument": "x"})),
            ("x/count", json!({"count": "many"})),
            ("x/count", json!({"count": {}})),
            ("x/count", json!({})),
        ] {
            let answer = client.call(method, params.clone()).await;
            assert_eq!(answer["error"]["code"], -32602, "{method} {params}: {answer}");
            let message = answer["error"]["message"].as_str().unwrap();
            for word in ["struct ", "enum ", "u32", " at line ", "a map", "a sequence", "variant"] {
                assert!(!message.contains(word), "{method} {params}: {message}");
            }
        }
    })
    .await;
}
