//! What is wrong with registrations, what could be better, and what a caller perhaps meant.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex},
};

use pintle::{
    Server,
    server::{Entry, PromptArguments, prompt, resource, template, tool},
};
use serde_json::json;

use crate::support::eras::{ALL, Client, each};

fn server() -> Server {
    Server::new("s", "0")
}

#[test]
fn what_is_no_name_and_no_uri_is_refused() {
    let text = || async { "" };
    for (server, fault) in [
        (Server::new(" ", "0"), "the name of the server is empty: give it one"),
        (
            server().tool(tool("", text)),
            "`` is not a tool's name: use 1 to 128 letters, digits, `_`, `-` and `.`",
        ),
        (server().prompt(prompt("", text)), "the name of a prompt is empty: give it one"),
        (
            server().resource(resource("r://1", " ", text)),
            "the name of the resource `r://1` is empty: give it one",
        ),
        (
            server().template(template("r://{x}", "", text)),
            "the name of the resource template `r://{x}` is empty: give it one",
        ),
        (
            server().resource(resource("readme", "r", text)),
            "`readme` is not a URI: start with a scheme, as in `notes://readme`",
        ),
        (
            server().resource(resource("a b://c", "r", text)),
            "`a b://c` is not a URI: start with a scheme, as in `notes://a b://c`",
        ),
        (
            server().resource(resource("notes://{id}", "r", text)),
            "`notes://{id}` has variables: register it with `template`",
        ),
        (
            server().with_state(1_u8).with_state(2_u8),
            "a state of type `u8` is already registered; wrap one of them in a type of its own",
        ),
        (
            server().tool(tool("slow", text).task("required")).tool(tool("fast", text).task("optional")),
            "the tool `slow` is called as a task, and the server has no tasks: add `.with(Tasks::new())`",
        ),
    ] {
        assert_eq!(server.check().unwrap_err().to_string(), fault);
        assert!(server.in_process().is_err(), "{fault}");
    }
    for uri in ["urn:x", "file:///a%20b", "note:1", "X-1.2+3://ü", "data:,"] {
        server().resource(resource(uri, "r", text)).check().unwrap();
    }
}

#[test]
fn missing_descriptions_are_found() {
    let text = || async { "" };
    let server = server()
        .tool(tool("t", text))
        .prompt(prompt("p", |_: PromptArguments| async { "" }).argument("a", " ").argument("b", "Text."))
        .resource(resource("r://1", "r", text))
        .template(template("r://{x}", "r", text));
    assert_eq!(
        server.lint(),
        [
            "the tool `t` has no description: say what it does, the model has nothing else",
            "the prompt `p` has no description: say what it is for",
            "the argument `a` of the prompt `p` has no description: say what to enter",
            "the resource `r://1` has no description: say what it holds",
            "the resource template `r://{x}` has no description: say what it holds",
        ]
    );
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn what_could_be_better_is_logged_once_whatever_serves() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    let _listening = crate::support::subscriber::set_subscriber(subscriber);
    let bare = || server().tool(tool("bare", || async { "" }));
    let logged = || String::from_utf8(std::mem::take(&mut *log.0.lock().unwrap())).unwrap();
    let streamed = bare();
    drop(streamed.in_process().unwrap());
    let text = logged();
    assert!(text.contains("WARN") && text.contains("the tool `bare` has no description"), "{text}");
    drop(streamed.in_process().unwrap());
    assert_eq!(logged(), "");
    #[cfg(feature = "http-server")]
    {
        let served = bare();
        drop(served.http().unwrap());
        assert!(logged().contains("the tool `bare` has no description"));
        drop(served.http().unwrap());
        assert_eq!(logged(), "");
    }
}

#[tokio::test]
async fn a_name_that_is_not_there_may_be_a_misspelt_one_that_the_caller_sees() {
    let server = server()
        .tool(tool("delete_note", || async { "" }))
        .tool(tool("secret_notes", || async { "" }))
        .prompt(prompt("summary", || async { "" }))
        .filter(|_, entry| !matches!(entry, Entry::Tool(tool) if tool.name.starts_with("secret")));
    each(&server, &ALL, json!({}), async |client: &mut Client| {
        for (method, name, message) in [
            ("tools/call", "deleteNote", "no such tool: `deleteNote`; did you mean `delete_note`?"),
            ("tools/call", "delete_noet", "no such tool: `delete_noet`; did you mean `delete_note`?"),
            ("tools/call", "secret_note", "no such tool: `secret_note`"),
            ("tools/call", "fly", "no such tool: `fly`"),
            ("prompts/get", "sumary", "no such prompt: `sumary`; did you mean `summary`?"),
        ] {
            let answer = client.call(method, json!({"name": name})).await;
            assert_eq!(answer["error"]["message"], message, "{answer}");
        }
    })
    .await;
}
