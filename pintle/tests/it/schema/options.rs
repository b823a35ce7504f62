//! Schemas that say more than a type: by nested options, or written whole.

use std::collections::BTreeMap;

use pintle::{
    Server,
    server::{Args, Arguments, Json, SchemaPart, ToolRoute, tool},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::line_client::{Raw, modern};

#[derive(Debug, Deserialize, JsonSchema, Serialize)]
struct Page {
    size: u32,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "shown by `Debug`")]
struct Search {
    query: String,
    count: u32,
    first: Page,
    then: Option<Page>,
    tags: Option<Vec<String>>,
    weights: BTreeMap<String, f64>,
}

fn search() -> ToolRoute {
    tool("search", |Args(search): Args<Search>| async move { format!("{search:?}") })
}

async fn listed(route: ToolRoute) -> Value {
    let mut client = Raw::new(&Server::new("s", "0").tool(route));
    client.request("tools/list", modern(json!({}), json!({}))).await;
    client.recv().await["result"]["tools"][0].take()
}

async fn call(route: &ToolRoute, arguments: Value) -> Value {
    let mut client = Raw::new(&Server::new("s", "0").tool(route.clone()));
    let name = format!("{route:?}").split('"').nth(1).unwrap().to_owned();
    client.request("tools/call", modern(json!({"name": name, "arguments": arguments}), json!({}))).await;
    client.recv().await["result"].take()
}

async fn text(route: &ToolRoute, arguments: Value) -> String {
    call(route, arguments).await["content"][0]["text"].as_str().unwrap().to_owned()
}

fn refused(route: ToolRoute) -> String {
    Server::new("s", "0").tool(route).check().unwrap_err().to_string()
}

#[tokio::test]
async fn options_reach_every_place_and_that_place_alone() {
    let route = search().input(|schema| {
        schema
            .title("A search")
            .property("query", |query| {
                query
                    .title("Query")
                    .description("What to look for.")
                    .pattern("^[a-z ]+$")
                    .example("blue boats")
            })
            .property("count", |count| count.minimum(1).maximum(50).default(10))
            .property("first", |page| page.property("size", |size| size.maximum(100)).deny_unknown())
            .property("then", |page| page.property("size", |size| size.multiple_of(2).optional()))
            .property("tags", |tags| {
                tags.required().max_items(2).unique_items().items(|tag| tag.one_of(["old", "new"]))
            })
            .property("weights", |weights| {
                weights.entries(|weight| weight.exclusive_minimum(0.5)).format("weights")
            })
            .deny_unknown()
    });
    let schema = listed(route).await["inputSchema"].take();
    let size = json!({"type": "integer", "format": "uint32", "minimum": 0});
    assert_eq!(
        schema,
        json!({
            "title": "A search",
            "type": "object",
            "properties": {
                "query": {
                    "type": "string", "title": "Query", "description": "What to look for.", "pattern": "^[a-z ]+$",
                    "examples": ["blue boats"],
                },
                "count": {"type": "integer", "format": "uint32", "minimum": 1, "maximum": 50, "default": 10},
                "first": {
                    "type": "object",
                    "properties": {"size": {"type": "integer", "format": "uint32", "minimum": 0, "maximum": 100}},
                    "required": ["size"],
                    "additionalProperties": false,
                },
                "then": {"anyOf": [
                    {
                        "type": "object",
                        "properties": {"size": {"type": "integer", "format": "uint32", "minimum": 0, "multipleOf": 2}},
                    },
                    {"type": "null"},
                ]},
                "tags": {
                    "type": ["array", "null"], "items": {"type": "string", "enum": ["old", "new"]},
                    "maxItems": 2, "uniqueItems": true,
                },
                "weights": {
                    "type": "object", "format": "weights",
                    "additionalProperties": {"type": "number", "format": "double", "exclusiveMinimum": 0.5},
                },
            },
            "required": ["query", "first", "weights", "tags"],
            "additionalProperties": false,
            "$defs": {"Page": {"type": "object", "properties": {"size": size}, "required": ["size"]}},
        })
    );
}

#[tokio::test]
async fn declared_constraints_are_checked() {
    let route = search().input(|schema| {
        schema
            .property("count", |count| count.minimum(1).default(10))
            .property("tags", |tags| tags.items(|tag| tag.one_of(["old", "new"])))
            .deny_unknown()
    });
    let good = json!({"query": "a", "first": {"size": 1}, "weights": {}, "tags": ["old"]});
    assert_eq!(
        text(&route, good.clone()).await,
        r#"Search { query: "a", count: 10, first: Page { size: 1 }, then: None, tags: Some(["old"]), weights: {} }"#
    );
    for (name, value, message) in [
        ("count", json!(0), "`/count` should be at least 1, but is `0`"),
        ("count", json!(4294967296_u64), "`/count` should be at most 4294967295, but is `4294967296`"),
        (
            "tags",
            json!(["odl"]),
            "`/tags/0` should be `\"old\"` or `\"new\"`, but is `\"odl\"`: did you mean `\"old\"`?",
        ),
        ("querry", json!("a"), "`/querry` is not known: did you mean `query`?"),
    ] {
        let mut arguments = good.clone();
        arguments[name] = value;
        assert_eq!(text(&route, arguments).await, format!("{message}\ncorrect it and try again"));
    }
}

#[test]
fn mistakes_are_reported_when_the_tool_is_added() {
    let nothing = |part: SchemaPart| part;
    for (route, message) in [
        (
            search().input(|schema| schema.property("cuont", nothing)),
            "the input schema of `search` has no `/cuont`: did you mean `count`?",
        ),
        (
            search().input(|schema| schema.property("then", |page| page.property("sise", nothing))),
            "the input schema of `search` has no `/then/sise`: did you mean `size`?",
        ),
        (
            search().input(|schema| schema.property("first", |page| page.property("x", nothing))),
            "the input schema of `search` has no `/first/x`: there are `size`; use `add` for a new one",
        ),
        (
            search().input(|schema| schema.property("query", |query| query.property("x", nothing))),
            "the input schema of `search` has no `/query/x`: use `add` for a new property",
        ),
        (
            search().input(|schema| schema.property("query", |query| query.items(nothing))),
            "the input schema of `search` has no `items` there: `/query` is not a list",
        ),
        (
            search().input(|schema| schema.add("query", nothing)),
            "the input schema of `search` already has `/query`: use `property` to edit it",
        ),
        (
            search().input(SchemaPart::required),
            "the input schema of `search` is always present as a whole: use `required` and `optional` for its properties",
        ),
        (
            search().input(|schema| schema.property("count", |count| count.minimum("one"))),
            "the input schema of `search` cannot be used: schema: `\"one\"` at `/properties/count/minimum` is not what \
             JSON Schema allows there",
        ),
        (
            search().input(|schema| schema.property("query", |query| query.pattern("(?=a)b"))),
            "the input schema of `search` cannot be used: schema: the pattern `(?=a)b` at `/properties/query/pattern` \
             cannot be used; write it without look-around, back-references and large repetitions",
        ),
        (
            search().output(nothing),
            "`search` has no output schema: return a `Json<T>`, or give a schema with `output_schema`",
        ),
        (
            search().input_schema("{"),
            "the input schema of `search` cannot be read: EOF while parsing an object at line 1 column 1",
        ),
        (search().output_schema(json!([])), "the output schema of `search` is not a JSON object"),
        (
            search().input_schema(json!({"properties": {}})),
            "the input schema of `search` is not an object schema: give it `\"type\":\"object\"`",
        ),
    ] {
        assert_eq!(refused(route), message);
    }
}

fn echo() -> ToolRoute {
    tool("echo", |Arguments(arguments)| async move { arguments.as_str().to_owned() })
}

#[tokio::test]
async fn a_tool_without_a_type_can_be_given_a_schema_in_three_ways() {
    let schema = json!({
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "What to say."},
            "times": {"type": "array", "items": {"type": "integer", "minimum": 0}},
            "mode": {"type": "string", "enum": ["loud", "soft"]},
            "at": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]},
        },
        "required": ["text"],
    });
    let by_options = echo().input(|schema| {
        schema
            .add("text", |text| text.string().description("What to say.").required())
            .add("times", |times| times.list(|time| time.integer().minimum(0)))
            .add("mode", |mode| mode.one_of(["loud", "soft"]))
            .add("at", |at| at.object().add("x", |x| x.number().required()))
    });
    for route in [by_options, echo().input_schema(schema.clone()), echo().input_schema(schema.to_string())] {
        assert_eq!(listed(route.clone()).await["inputSchema"], schema);
        assert_eq!(text(&route, json!({"text": "a"})).await, r#"{"text":"a"}"#);
        assert_eq!(
            text(&route, json!({"txet": "a", "at": {}})).await,
            "`/at/x` is missing: it should be a number\n\
             `/text` is missing: it should be a string; is `txet` meant for it?\n\
             correct these and try again"
        );
    }
}

#[tokio::test]
async fn defaults_are_there_when_the_handler_looks() {
    let route = echo().input_schema(json!({
        "type": "object",
        "properties": {
            "count": {"type": "integer", "default": 18446744073709551615_u64},
            "page": {"type": "object", "properties": {"size": {"default": 20}}},
        },
    }));
    assert_eq!(text(&route, json!({})).await, r#"{"count":18446744073709551615}"#);
    assert_eq!(text(&route, json!(null)).await, r#"{"count":18446744073709551615}"#);
    assert_eq!(text(&route, json!({"page": {}, "count": 1})).await, r#"{"page":{"size":20},"count":1}"#);
    // Nothing is missing: the arguments are as they came.
    let mut client = Raw::new(&Server::new("s", "0").tool(route));
    client.open("2025-11-25", json!({})).await;
    let line = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"count":1.0}}}"#;
    client.send_text(line.to_owned()).await;
    assert_eq!(client.recv().await["result"]["content"][0]["text"], r#"{"count":1.0}"#);
}

#[tokio::test]
async fn a_result_fits_the_output_schema_or_is_an_error() {
    let sized = |size: u32| {
        tool("page", move || async move { Json(Page { size }) })
            .output(|schema| schema.description("A page.").property("size", |size| size.minimum(1)))
    };
    assert_eq!(
        listed(sized(0)).await["outputSchema"],
        json!({
            "title": "Page", "type": "object", "description": "A page.",
            "properties": {"size": {"type": "integer", "format": "uint32", "minimum": 1}},
            "required": ["size"],
        })
    );
    assert_eq!(call(&sized(1), json!({})).await["structuredContent"], json!({"size": 1}));
    let result = call(&sized(0), json!({})).await;
    assert_eq!(result["isError"], true);
    assert_eq!(
        result["content"][0]["text"],
        "the tool's result does not fit its output schema: `/size` should be at least 1, but is `0`"
    );
    let textual = tool("text", || async { "no structure" }).output_schema(r#"{"type":"object"}"#);
    assert_eq!(
        text(&textual, json!({})).await,
        "the tool's result does not fit its output schema: there is no structured content"
    );
}

/// Schemas that cost too much or lead outside, and what is said of them.
fn hostile() -> Vec<(Value, String)> {
    let deep = (0..99).fold(json!({}), |inner, _| json!({"items": inner}));
    let outside = |reference: &str| {
        let message = format!(
            "schema: nothing in it is called `{reference}`, and nothing is fetched; put the target into `$defs`"
        );
        (json!({"type": "object", "properties": {"a": {"$ref": reference}}}), message)
    };
    vec![
        outside("http://e.example/s.json"),
        outside("https://e.example/s.json"),
        outside("file:///etc/passwd"),
        (
            json!({"type": "object", "description": "x".repeat(1024 * 1024)}),
            "schema: it has more than 1048576 bytes; split it up".to_owned(),
        ),
        (
            json!({"type": "object", "properties": {"a": deep}}),
            "schema: it is nested more than 100 levels deep; move parts into `$defs`".to_owned(),
        ),
    ]
}

#[test]
fn a_hostile_schema_is_refused_when_the_tool_is_added() {
    let mut schemas = hostile();
    let deep = (0..200).fold(json!({}), |inner, _| json!({"items": inner}));
    let message = schemas.last().unwrap().1.clone();
    schemas.push((json!({"type": "object", "properties": {"a": deep}}), message));
    for (schema, message) in schemas {
        assert_eq!(
            refused(echo().input_schema(schema.clone())),
            format!("the input schema of `echo` cannot be used: {message}")
        );
        assert_eq!(
            refused(echo().output_schema(schema)),
            format!("the output schema of `echo` cannot be used: {message}")
        );
    }
}

#[cfg(feature = "client")]
mod foreign {
    use pintle::Client;
    use pintle_testing::Peer;

    use super::*;

    /// Opens a session, lists one tool with this output schema, and answers the calls that come.
    async fn serves(mut server: Peer, schema: &Value) {
        let probe = server.receives("server/discover").await;
        server.refuses(&probe, -32601, "what?").await;
        let hello = server.receives("initialize").await;
        let opened = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "foreign", "version": "0"}});
        server.answers(&hello, opened).await;
        server.receives("notifications/initialized").await;
        let list = server.receives("tools/list").await;
        let tool = json!({"name": "page", "inputSchema": {"type": "object"}, "outputSchema": schema});
        server.answers(&list, json!({"tools": [tool]})).await;
        while let Some(call) = server.next().await {
            server.answers(&call, json!({"content": [], "structuredContent": {}})).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_hostile_schema_is_refused_when_its_tool_answers() {
        for (schema, message) in hostile() {
            let (server, transport) = Peer::new();
            let talk = async {
                let connection = Client::new("c", "0").connect(transport).await.unwrap();
                assert_eq!(connection.tools().await.unwrap().len(), 1);
                let notified = connection.call_tool("page", ()).await.unwrap_err().to_string();
                connection.close().await;
                notified
            };
            let (notified, ()) = tokio::join!(talk, serves(server, &schema));
            assert_eq!(
                notified,
                format!(
                    "the response is invalid: the result of tool `page`: its output schema cannot be used: {message}"
                )
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_deeper_than_text_is_read_is_refused_with_its_list() {
        let (server, transport) = Peer::new();
        let schema = (0..200).fold(json!({}), |inner, _| json!({"items": inner}));
        let talk = async {
            let connection = Client::new("c", "0").connect(transport).await.unwrap();
            let notified = connection.tools().await.unwrap_err().to_string();
            connection.close().await;
            notified
        };
        let (notified, ()) = tokio::join!(talk, serves(server, &schema));
        assert_eq!(notified, "the response is invalid: the result of `tools/list`: recursion limit exceeded");
    }
}
