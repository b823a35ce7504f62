//! Routes from definitions, renaming, timeouts, and changes that take effect together.

use std::time::Duration;

use pintle::{
    Server,
    server::{
        Args, Arguments, CatalogueEdits, Cx, Outcome, PromptArguments, PromptRoute, ResourceRoute, Route,
        TemplateRoute, ToolRoute, Vars, prompt, resource, template, tool,
    },
    types::{
        ErrorCode, RawObject, RpcError,
        schema::{Tool, ToolAnnotations},
    },
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::support::eras::{ALL, Client, R4, R5, each};

fn read<T: DeserializeOwned>(definition: &Value) -> T {
    serde_json::from_value(definition.clone()).unwrap()
}

fn definition() -> Value {
    json!({
        "name": "echo",
        "title": "Echo",
        "description": "Say it again.",
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
        "outputSchema": {"type": "object", "properties": {"said": {"type": "string"}}, "required": ["said"]},
        "annotations": {
            "title": "Echo!", "readOnlyHint": false, "destructiveHint": false, "idempotentHint": false,
            "openWorldHint": false, "com.example/hint": 1
        },
        "icons": [{"src": "https://example.com/echo.png"}],
        "_meta": {"com.example/a": {"b": null}},
        "com.example/price": 3
    })
}

async fn listed(client: &mut Client, method: &str, list: &str) -> Value {
    client.call(method, json!({})).await["result"][list].clone()
}

#[tokio::test]
async fn a_route_of_a_definition_is_listed_with_every_member() {
    let prompt = json!({"name": "p", "title": "P", "arguments": [{"name": "a", "required": true, "x": 1}], "x": false});
    let resource = json!({"uri": "r://1", "name": "r", "size": 3, "mimeType": "text/plain", "x": [1]});
    let template = json!({"uriTemplate": "t://{id}", "name": "t", "description": "d", "x": {}});
    let server = Server::new("s", "0")
        .tool(ToolRoute::of(read(&definition()), |Arguments(_)| async { "" }))
        .prompt(PromptRoute::of(read(&prompt), |given: PromptArguments| async move { given["a"].clone() }))
        .resource(ResourceRoute::of(read(&resource), || async { "one" }))
        .template(TemplateRoute::of(read(&template), |Vars(id): Vars<u8>| async move { id.to_string() }));
    server.check().unwrap();
    let mut client = Client::open(&server, R5, json!({})).await;
    assert_eq!(listed(&mut client, "tools/list", "tools").await, json!([definition()]));
    assert_eq!(listed(&mut client, "prompts/list", "prompts").await, json!([prompt]));
    assert_eq!(listed(&mut client, "resources/list", "resources").await, json!([resource]));
    let method = "resources/templates/list";
    assert_eq!(listed(&mut client, method, "resourceTemplates").await, json!([template]));

    let got = client.call("prompts/get", json!({"name": "p", "arguments": {"a": "b"}})).await;
    assert_eq!(got["result"]["messages"][0]["content"]["text"], "b", "{got}");
    let got = client.call("prompts/get", json!({"name": "p"})).await;
    assert_eq!(got["error"]["message"], "the prompt `p` needs `a`");
    let read = client.call("resources/read", json!({"uri": "r://1"})).await;
    assert_eq!(read["result"]["contents"][0]["mimeType"], "text/plain", "{read}");
    let read = client.call("resources/read", json!({"uri": "t://7"})).await;
    assert_eq!(read["result"]["contents"][0]["text"], "7", "{read}");
}

#[tokio::test]
async fn arguments_and_results_are_validated_by_the_definition_unless_it_is_left_to_others() {
    let result =
        || Outcome::Complete(RawObject::from_serialize(&json!({"content": [], "x": 1})).unwrap().into());
    let wrong = |_: Arguments| async { "no structure" };
    let mut renamed: Tool = read(&definition());
    renamed.name = "raw".to_owned();
    let server = Server::new("s", "0")
        .tool(ToolRoute::of(read(&definition()), wrong))
        .tool(ToolRoute::of(read(&definition()), wrong).rename("loose").unvalidated())
        .tool(ToolRoute::of(renamed, move || async move { result() }));
    each(&server, &[R4, R5], json!({}), async |client: &mut Client| {
        let missing = client.call("tools/call", json!({"name": "echo"})).await;
        assert!(
            missing["result"]["content"][0]["text"].as_str().unwrap().contains("`/text` is missing"),
            "{missing}"
        );
        let bad = client.call("tools/call", json!({"name": "echo", "arguments": {"text": ""}})).await;
        assert_eq!(bad["result"]["isError"], true, "the result does not fit: {bad}");
        let loose = client.call("tools/call", json!({"name": "loose", "arguments": {"other": 1}})).await;
        assert_eq!(loose["result"]["content"][0]["text"], "no structure", "{loose}");
        let raw = client.call("tools/call", json!({"name": "raw", "arguments": {"text": ""}})).await;
        assert_eq!(raw["result"]["x"], 1, "an outcome is the answer as it is: {raw}");
    })
    .await;
}

#[tokio::test]
async fn outcomes_of_prompts_and_resources_are_the_answer() {
    let refused = || Outcome::Failed(RpcError::new(ErrorCode(-32099), "the other server refused"));
    let server = Server::new("s", "0")
        .prompt(prompt("p", move || async move { refused() }))
        .resource(resource("r://1", "r", move || async move { refused() }));
    each(&server, &[R4, R5], json!({}), async |client: &mut Client| {
        for (method, params) in
            [("prompts/get", json!({"name": "p"})), ("resources/read", json!({"uri": "r://1"}))]
        {
            assert_eq!(client.call(method, params).await["error"]["code"], -32099, "{method}");
        }
    })
    .await;
}

#[test]
fn a_definition_that_is_none_is_an_error_when_it_is_registered() {
    let faulty = |tool: Tool| {
        let server = Server::new("s", "0").tool(ToolRoute::of(tool, || async { "" }));
        server.check().unwrap_err().to_string()
    };
    let mut tool: Tool = read(&definition());
    tool.input_schema = serde_json::Map::new().into();
    assert!(faulty(tool).contains("is not an object schema"));
    let mut tool: Tool = read(&definition());
    tool.name = "two words".to_owned();
    assert!(faulty(tool.clone()).contains("`two words` is not a tool's name"));
    let renamed = ToolRoute::of(tool, || async { "" }).rename("one");
    assert!(Server::new("s", "0").tool(renamed).check().is_ok());
    let mut tool: Tool = read(&definition());
    let mut hints = ToolAnnotations::new();
    (hints.read_only_hint, hints.destructive_hint) = (Some(true), Some(true));
    tool.annotations = Some(hints);
    assert!(faulty(tool).contains("read-only and destructive"));
}

#[tokio::test]
async fn names_get_a_prefix_and_uris_stay() {
    let routes: Vec<Route> = vec![
        tool("open", || async { "open" }).into(),
        prompt("ask", || async { "ask" }).into(),
        resource("door://1", "door", || async { "" }).into(),
        template("door://{n}/lock", "lock", || async { "" }).into(),
    ];
    let server = Server::new("s", "0").routes(routes.into_iter().map(|route| route.prefix("door_")));
    let mut client = Client::open(&server, R5, json!({})).await;
    assert_eq!(listed(&mut client, "tools/list", "tools").await[0]["name"], "door_open");
    assert_eq!(client.tool("door_open").await, "open");
    assert_eq!(listed(&mut client, "prompts/list", "prompts").await[0]["name"], "door_ask");
    assert_eq!(listed(&mut client, "resources/list", "resources").await[0]["uri"], "door://1");
    assert!(client.call("tools/call", json!({"name": "open"})).await["error"].is_object());
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Named {
    name: String,
}

#[tokio::test]
async fn a_strict_tool_refuses_unknown_arguments() {
    let greet = |Args(Named { name })| async move { name };
    let server = Server::new("s", "0").tool(tool("greet", greet)).tool(tool("strictly", greet).strict());
    let mut client = Client::open(&server, R5, json!({})).await;
    let arguments = json!({"name": "Ada", "nmae": "Eve"});
    let lenient = client.call("tools/call", json!({"name": "greet", "arguments": arguments})).await;
    assert_eq!(lenient["result"]["content"][0]["text"], "Ada", "{lenient}");
    let strict = client.call("tools/call", json!({"name": "strictly", "arguments": arguments})).await;
    assert_eq!(strict["result"]["isError"], true, "{strict}");
    assert!(strict["result"]["content"][0]["text"].as_str().unwrap().contains("nmae"), "{strict}");
}

#[tokio::test(start_paused = true)]
async fn a_route_may_have_a_timeout_of_its_own() {
    let wait = |millis: u64| {
        move || async move {
            tokio::time::sleep(Duration::from_millis(millis)).await;
            "done"
        }
    };
    let server = Server::new("s", "0")
        .call_timeout(Duration::from_millis(100))
        .tool(tool("short", wait(80)).timeout(Duration::from_millis(50)))
        .tool(tool("long", wait(600)).timeout(Duration::from_millis(900)))
        .tool(tool("endless", wait(2000)).timeout(None))
        .tool(tool("common", wait(600)))
        .prompt(prompt("p", wait(80)).timeout(Duration::from_millis(50)))
        .resource(resource("r://1", "r", wait(80)).timeout(Duration::from_millis(50)))
        .template(template("t://{x}", "t", wait(80)).timeout(Duration::from_millis(50)));
    each(&server, &[R4, R5], json!({}), async |client: &mut Client| {
        for (method, params, limit) in [
            ("tools/call", json!({"name": "short"}), "50ms"),
            ("tools/call", json!({"name": "common"}), "100ms"),
            ("prompts/get", json!({"name": "p"}), "50ms"),
            ("resources/read", json!({"uri": "r://1"}), "50ms"),
            ("resources/read", json!({"uri": "t://1"}), "50ms"),
        ] {
            let answer = client.call(method, params).await;
            let message = answer["error"]["message"].as_str().unwrap_or_default();
            assert!(message.contains(&format!("longer than {limit}")), "{method}: {answer}");
        }
        assert_eq!(client.tool("long").await, "done");
        assert_eq!(client.tool("endless").await, "done");
    })
    .await;
}

#[tokio::test]
async fn several_changes_take_effect_together() {
    let named = |name: &str| tool(name, || async { "" });
    let server = Server::new("s", "0").may_change();
    each(&server, &ALL, json!({}), async |client: &mut Client| {
        server.replace_tools([named("a"), named("b"), named("c")]).unwrap();
        server.replace_prompts([]).unwrap();
        server.replace_resources([]).unwrap();
        let names = async |client: &mut Client| {
            let tools = listed(client, "tools/list", "tools").await;
            let names: Vec<_> = tools.as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
            Value::from(names)
        };
        assert_eq!(names(client).await, json!(["a", "b", "c"]));
        client.received();
        client.listen(&[]).await;
        let edits = CatalogueEdits::new()
            .remove_tool("a")
            .put(named("b").title("replaced"))
            .add(named("d"))
            .put(named("e"))
            .add(named("a"))
            .remove_prompt("not there")
            .add(resource("r://1", "r", || async { "" }));
        server.apply(edits).unwrap();
        let mut received =
            [client.receive().await["method"].clone(), client.receive().await["method"].clone()];
        received.sort_by_key(Value::to_string);
        assert_eq!(received, ["notifications/resources/list_changed", "notifications/tools/list_changed"]);
        assert_eq!(names(client).await, json!(["b", "c", "d", "e", "a"]));
        assert_eq!(listed(client, "tools/list", "tools").await[0]["name"], "b", "in its place");

        let half = CatalogueEdits::new().remove_tool("b").add(prompt("p", || async { "" })).add(named("c"));
        let error = server.apply(half).unwrap_err().to_string();
        assert_eq!(error, "a tool named `c` is already registered; choose another name");
        let invalid = CatalogueEdits::new().remove_tool("b").add(named("not a name"));
        assert!(server.apply(invalid).is_err());
        assert_eq!(names(client).await, json!(["b", "c", "d", "e", "a"]), "all or nothing");
        assert!(client.received().is_empty(), "one notification for each list, and none for what failed");
    })
    .await;
}

#[tokio::test]
async fn lists_can_be_declared_changed() {
    let server = Server::new("s", "0").may_change();
    each(&server, &ALL, json!({}), async |client: &mut Client| {
        client.listen(&[]).await;
        server.tools_changed();
        assert_eq!(client.receive().await["method"], "notifications/tools/list_changed");
        server.prompts_changed();
        assert_eq!(client.receive().await["method"], "notifications/prompts/list_changed");
    })
    .await;
}

#[tokio::test]
async fn a_handler_of_a_definition_may_take_the_call() {
    let forward = |cx: Cx| async move { cx.params().get("arguments").unwrap_or("none").to_owned() };
    let mut tool = Tool::new("forward", json!({"type": "object"}).as_object().unwrap().clone());
    tool.description = Some("Forward the call.".to_owned());
    let server = Server::new("s", "0").tool(ToolRoute::of(tool, forward));
    let mut client = Client::open(&server, R5, json!({})).await;
    let answer = client.call("tools/call", json!({"name": "forward", "arguments": {"b": 1, "a": [2]}})).await;
    assert_eq!(answer["result"]["content"][0]["text"], r#"{"b":1,"a":[2]}"#, "in their order");
}
