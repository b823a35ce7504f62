//! Registering twice under one name: nothing is overwritten, and `check` reports it.

use pintle::{
    Server,
    server::{
        Cx, Installation, PromptRoute, ProtocolExtension, ResourceRoute, State, TemplateRoute, ToolRoute,
        method, prompt, resource, template, tool,
    },
    types::RpcError,
};
use serde_json::{Value, json};

use crate::support::eras::{ALL, Client, each};

fn reason(server: &Server) -> String {
    server.check().unwrap_err().to_string()
}

fn a_tool(text: &'static str) -> ToolRoute {
    tool("x", move || async move { text })
}

fn a_prompt() -> PromptRoute {
    prompt("x", || async { "" })
}

fn a_resource() -> ResourceRoute {
    resource("x://1", "x", || async { "" })
}

fn a_template() -> TemplateRoute {
    template("x://{y}", "x", || async { "" })
}

async fn null(_: Cx, _: Value) -> Result<Value, RpcError> {
    Ok(Value::Null)
}

#[test]
fn a_route_that_is_registered_twice_is_reported() {
    let new = || Server::new("s", "0");
    let a_tool = || a_tool("");
    for (server, message) in [
        (new().tool(a_tool()).tool(a_tool()), "a tool named `x` is already registered; choose another name"),
        (new().tools([a_tool(), a_tool()]), "a tool named `x` is already registered; choose another name"),
        (new().routes([a_tool(), a_tool()]), "a tool named `x` is already registered; choose another name"),
        (
            new().prompt(a_prompt()).prompts([a_prompt()]),
            "a prompt named `x` is already registered; choose another name",
        ),
        (
            new().resource(a_resource()).resources([a_resource()]),
            "a resource with the URI `x://1` is already registered; choose another URI",
        ),
        (
            new().template(a_template()).templates([a_template()]),
            "a resource template `x://{y}` is already registered; choose another URI template",
        ),
    ] {
        assert_eq!(reason(&server), message);
    }
}

#[tokio::test]
async fn the_first_of_two_tools_is_kept_while_the_server_runs() {
    let server = Server::new("s", "0").tool(a_tool("first"));
    assert!(server.add_tool(a_tool("second")).is_err());
    each(&server, &ALL, json!({}), async |client: &mut Client| {
        let answer = client.call("tools/call", json!({"name": "x"})).await;
        assert_eq!(answer["result"]["content"][0]["text"], "first");
    })
    .await;
}

#[test]
fn two_handlers_of_one_method_or_notification_are_reported() {
    let server = Server::new("s", "0").method(method("x/y", null)).method(method("x/y", null));
    assert_eq!(reason(&server), "a handler for the method `x/y` is already registered; choose another name");
    let quiet = |_, _| async {};
    let server = Server::new("s", "0").on_notification("x/y", quiet).on_notification("x/y", quiet);
    assert_eq!(
        reason(&server),
        "a handler for the notification `x/y` is already registered; handle it in one function"
    );
}

#[test]
fn a_capability_that_is_declared_twice_is_reported() {
    let server =
        Server::new("s", "0").extension("com.example/a", json!({})).extension("com.example/a", json!({}));
    assert_eq!(reason(&server), "an extension named `com.example/a` is already registered; add it once");
    let server = Server::new("s", "0").experimental("a", json!({})).experimental("a", json!({}));
    assert_eq!(reason(&server), "an experimental capability named `a` is already registered; add it once");
}

#[test]
fn a_second_state_of_one_type_is_reported() {
    let server = Server::new("s", "0").with_state(1_u8).with_state(2_u8);
    assert_eq!(
        reason(&server),
        "a state of type `u8` is already registered; wrap one of them in a type of its own"
    );
    let two = Server::new("s", "0").with_state(1_u8).with_state(2_u16);
    two.tool(tool("t", |_: State<u8>, _: State<u16>| async { "" })).check().unwrap();
}

struct Clock(&'static str, fn(Installation) -> Installation);

impl ProtocolExtension for Clock {
    fn name(&self) -> &str {
        self.0
    }

    fn install(self, installation: Installation) -> Installation {
        (self.1)(installation)
    }
}

#[test]
fn an_extension_that_brings_something_twice_is_reported() {
    const METHOD: &str = "a handler for the method `x/y` is already registered; choose another name";
    const NOTIFICATION: &str =
        "a handler for the notification `x/y` is already registered; handle it in one function";
    let wind: fn(Installation) -> Installation = |clock| clock.method(method("x/y", null));
    let notification: fn(Installation) -> Installation =
        |clock| clock.on_notification("x/y", |_, _| async {});
    let (a, b) = ("com.example/a", "com.example/b");
    let new = || Server::new("s", "0");
    for (server, message) in [
        (
            new().with(Clock(a, |clock| clock)).with(Clock(a, |clock| clock)),
            "an extension named `com.example/a` is already registered; add it once",
        ),
        (
            new().extension(a, json!({})).with(Clock(a, |clock| clock)),
            "an extension named `com.example/a` is already registered; add it once",
        ),
        (new().with(Clock(a, |clock| clock.method(method("x/y", null)).method(method("x/y", null)))), METHOD),
        (
            new().with(Clock(a, wind)).with(Clock(b, wind)),
            "the method `x/y` of `com.example/b` is one of the extension `com.example/a`; choose another name",
        ),
        (new().with(Clock(a, wind)).method(method("x/y", null)), METHOD),
        (new().method(method("x/y", null)).with(Clock(a, wind)), METHOD),
        (new().with(Clock(a, notification)).with(Clock(b, notification)), NOTIFICATION),
        (new().with(Clock(a, notification)).on_notification("x/y", |_, _| async {}), NOTIFICATION),
        (
            new().with(Clock(a, |clock| {
                clock.on_notification("x/y", |_, _| async {}).on_notification("x/y", |_, _| async {})
            })),
            NOTIFICATION,
        ),
    ] {
        assert_eq!(reason(&server), message);
    }
}

#[test]
fn a_method_of_the_protocol_has_no_handler_of_the_application() {
    let new = || Server::new("s", "0");
    for name in ["tools/call", "ping", "initialize", "server/discover", "sampling/createMessage"] {
        let message = format!("`{name}` is a method of the protocol; choose another name");
        assert_eq!(reason(&new().method(method(name, null))), message);
    }
    let tools: fn(Installation) -> Installation = |clock| clock.method(method("tools/list", null));
    let message = "`tools/list` is a method of the protocol; choose another name";
    assert_eq!(reason(&new().with(Clock("com.example/a", tools))), message);
    // Those of tasks are for the extension of that name to implement.
    let tasks: fn(Installation) -> Installation = |tasks| tasks.method(method("tasks/get", null));
    new().with(Clock("com.example/tasks", tasks)).check().unwrap();
}

#[test]
fn a_result_type_or_filter_member_has_one_extension() {
    let (a, b) = ("com.example/a", "com.example/b");
    let new = || Server::new("s", "0");
    for (server, message) in [
        (
            new()
                .with(Clock(a, |clock| clock.result_type("x")))
                .with(Clock(b, |clock| clock.result_type("x"))),
            "the result type `x` of `com.example/b` is one of the extension `com.example/a`; choose another name",
        ),
        (
            new().with(Clock(a, |clock| clock.result_type("x").result_type("x"))),
            "the result type `x` of `com.example/a` is one of the extension `com.example/a`; choose another name",
        ),
        (
            new().with(Clock(a, |clock| clock.result_type("complete"))),
            "the result type `complete` of `com.example/a` is one of the protocol; choose another name",
        ),
        (
            new().with(Clock(a, |clock| clock.listens("x"))).with(Clock(b, |clock| clock.listens("x"))),
            "the filter member `x` of `com.example/b` is one of the extension `com.example/a`; choose another name",
        ),
        (
            new().with(Clock(a, |clock| clock.listens("toolsListChanged"))),
            "the filter member `toolsListChanged` of `com.example/a` is one of the protocol; choose another name",
        ),
    ] {
        assert_eq!(reason(&server), message);
    }
    new().with(Clock(a, |clock| clock.result_type("x").listens("x"))).check().unwrap();
}

#[test]
fn each_fault_has_a_line() {
    let server = Server::new("s", "0")
        .method(method("ping", null))
        .method(method("x/y", null))
        .method(method("x/y", null));
    let expected = "`ping` is a method of the protocol; choose another name\n\
        a handler for the method `x/y` is already registered; choose another name";
    assert_eq!(reason(&server), expected);
}

#[test]
fn two_completers_of_one_argument_are_reported() {
    let none = || async { Vec::<String>::new() };
    let new = || Server::new("s", "0");
    for (server, message) in [
        (
            new().tool(a_tool("").complete("a", none).complete("a", none)),
            "the tool `x` has two completers for `a`; keep one of them",
        ),
        (
            new().prompt(a_prompt().argument("a", "").complete("a", none).complete("a", none)),
            "the prompt `x` has two completers for `a`; keep one of them",
        ),
        (
            new().template(a_template().complete("y", none).complete("y", none)),
            "the resource template `x://{y}` has two completers for `y`; keep one of them",
        ),
        (
            new()
                .prompt(a_prompt().argument("a", "").argument_values("a", ["1"]).argument_values("a", ["2"])),
            "the prompt `x` has two lists of values for `a`; keep one of them",
        ),
    ] {
        assert_eq!(reason(&server), message);
    }
    // A list of values is completed unless something else completes it.
    new()
        .prompt(a_prompt().argument("a", "").argument_values("a", ["1"]).complete("a", none))
        .check()
        .unwrap();
}
