//! What is wrong with registrations, what could be better, and what a caller perhaps meant.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex},
};

use pintle::{
    Server,
    server::{Args, Entry, PromptArguments, State, prompt, resource, template, tool},
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
fn all_mistakes_are_reported_together() {
    let text = || async { "" };
    let server = server()
        .tools([tool("a b", text), tool("c d", text), tool("twice", text), tool("twice", text)])
        .tool(tool("counts", |State(_): State<u8>| async { "" }))
        .resources([resource("one", "r", text), resource("r://2", " ", text)])
        .with_state(1_u16);
    assert_eq!(
        server.check().unwrap_err().to_string().split('\n').collect::<Vec<_>>(),
        [
            "`a b` is not a tool's name: use 1 to 128 letters, digits, `_`, `-` and `.`",
            "`c d` is not a tool's name: use 1 to 128 letters, digits, `_`, `-` and `.`",
            "a tool named `twice` is already registered; choose another name",
            "`one` is not a URI: start with a scheme, as in `notes://one`",
            "the name of the resource `r://2` is empty: give it one",
            "the tool `counts` wants `State<u8>`: give the server one with `with_state`; it has `u16`",
        ]
    );
}

#[test]
fn all_mistakes_of_one_route_are_reported() {
    let route = tool("a b", || async { "" }).read_only().destructive(true);
    let error = server().tool(route).check().unwrap_err().to_string();
    assert_eq!(error.lines().count(), 2, "{error}");
}

/// It may be the state of a handler that takes it without `State`, which has a value of its own for each call.
#[tokio::test]
async fn a_state_that_nobody_takes_is_refused() {
    let takes = || tool("t", |State(_): State<u8>| async { "" });
    let error = server().with_state(1_u8).check().unwrap_err().to_string();
    assert_eq!(error, "no handler takes the state `u8`: take `State<u8>`, or remove `with_state`");
    assert!(server().with_state(1_u8).in_process().is_err());
    server().with_state(1_u8).tool(takes()).check().unwrap();
    // What takes it may come later.
    server().with_state(1_u8).may_change().check().unwrap();
    // A server that runs goes on without what took it.
    let running = server().with_state(1_u8).tool(takes());
    drop(running.in_process().unwrap());
    assert!(running.remove_tool("t"));
    drop(running.in_process().unwrap());
}

#[test]
fn arguments_without_a_description_are_found() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    #[expect(dead_code, reason = "only the schema is used")]
    struct Book {
        title: String,
        #[schemars(description = "The year.")]
        year: u16,
        pages: u16,
        /// Its type has a description.
        shelf: Shelf,
        room: Shelf,
    }
    /// Where it stands.
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    #[expect(dead_code, reason = "only the schema is used")]
    struct Shelf(u8);
    let server = server().tool(tool("keep", |Args(_): Args<Book>| async { "" }).description("Keeps a book."));
    assert_eq!(
        server.lint(),
        ["the arguments `title`, `pages` of the tool `keep` have no description: describe what to enter"]
    );
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
            "the tool `t` has no description: describe what it does, the model relies on it",
            "the prompt `p` has no description: describe what it is for",
            "the argument `a` of the prompt `p` has no description: describe what to enter",
            "the resource `r://1` has no description: describe its contents",
            "the resource template `r://{x}` has no description: describe its contents",
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
