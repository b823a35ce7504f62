//! What a type becomes as a schema, a call that fits it, and what is said of one that does not.

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Debug,
};

use pintle::{
    Server,
    server::{Args, tool},
};
use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::support::line_client::{Raw, modern};

/// A server with one tool that takes a `T` and says what it took.
struct Shows(Raw);

impl Shows {
    fn a<T: Debug + DeserializeOwned + JsonSchema + Send + 'static>() -> Self {
        let show = tool("show", |Args(value): Args<T>| async move { format!("{value:?}") });
        Self(Raw::new(&Server::new("s", "0").tool(show)))
    }

    async fn schema(&mut self) -> Value {
        self.0.request("tools/list", modern(json!({}), json!({}))).await;
        let mut schema = self.0.recv().await["result"]["tools"][0]["inputSchema"].take();
        schema.as_object_mut().unwrap().remove("title");
        schema
    }

    /// What a call with these arguments, as text, is told.
    async fn call(&mut self, arguments: &str) -> (bool, String) {
        let meta = modern(json!({}), json!({}))["_meta"].clone();
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"show","arguments":{arguments},"_meta":{meta}}}}}"#
        );
        self.0.send_text(line).await;
        let result = self.0.recv().await["result"].take();
        (result["isError"] != true, result["content"][0]["text"].as_str().unwrap().to_owned())
    }

    async fn good(&mut self, arguments: &str, shown: &str) {
        assert_eq!(self.call(arguments).await, (true, shown.to_owned()), "{arguments}");
    }

    async fn bad(&mut self, arguments: &str, message: &str) {
        let (good, text) = self.call(arguments).await;
        assert_eq!(text, format!("{message}\ncorrect it and try again"), "{arguments}");
        assert!(!good, "{arguments}");
    }
}

#[tokio::test]
async fn an_enum_parameter() {
    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Colour {
        Red,
        Green,
    }
    #[derive(Debug, Deserialize, JsonSchema)]
    struct Paint {
        #[expect(dead_code, reason = "shown by `Debug`")]
        colour: Colour,
    }
    let mut server = Shows::a::<Paint>();
    assert_eq!(
        server.schema().await,
        json!({
            "type": "object",
            "properties": {"colour": {"$ref": "#/$defs/Colour"}},
            "required": ["colour"],
            "$defs": {"Colour": {"type": "string", "enum": ["red", "green"]}},
        })
    );
    server.good(r#"{"colour":"green"}"#, "Paint { colour: Green }").await;
    server
        .bad(
            r#"{"colour":"gren"}"#,
            "`/colour` should be `\"red\"` or `\"green\"`, but is `\"gren\"`: did you mean `\"green\"`?",
        )
        .await;
    server.bad(r#"{"colour":7}"#, "`/colour` should be a string, but is `7`").await;
    server
        .bad(
            r#"{"color":"red"}"#,
            "`/colour` is missing: it should be `\"red\"` or `\"green\"`; is `color` meant for it?",
        )
        .await;
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "shown by `Debug`")]
struct Point {
    x: f64,
    y: f64,
}

#[tokio::test]
async fn nested_structs() {
    #[derive(Debug, Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "shown by `Debug`")]
    struct Line {
        /// Where it begins.
        from: Point,
        via: Vec<Point>,
    }
    let mut server = Shows::a::<Line>();
    let number = json!({"type": "number", "format": "double"});
    assert_eq!(
        server.schema().await,
        json!({
            "type": "object",
            "properties": {
                "from": {"$ref": "#/$defs/Point", "description": "Where it begins."},
                "via": {"type": "array", "items": {"$ref": "#/$defs/Point"}},
            },
            "required": ["from", "via"],
            "$defs": {"Point": {"type": "object", "properties": {"x": number, "y": number}, "required": ["x", "y"]}},
        })
    );
    server
        .good(
            r#"{"from":{"x":1,"y":2.5},"via":[{"x":0,"y":0}]}"#,
            "Line { from: Point { x: 1.0, y: 2.5 }, via: [Point { x: 0.0, y: 0.0 }] }",
        )
        .await;
    server
        .bad(
            r#"{"from":{"x":1,"y":2},"via":[{"x":0,"y":0},{"x":"1","y":0}]}"#,
            "`/via/1/x` should be a number, but is `\"1\"`: did you mean `1`?",
        )
        .await;
    server.bad(r#"{"from":{"x":1},"via":[]}"#, "`/from/y` is missing: it should be a number").await;
    // Serde would read a struct from a list; the schema says otherwise.
    server.bad(r#"{"from":[1,2],"via":[]}"#, "`/from` should be an object, but is `[1,2]`").await;
}

#[tokio::test]
async fn an_option() {
    #[derive(Debug, Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "shown by `Debug`")]
    struct Maybe {
        note: Option<String>,
        at: Option<Point>,
    }
    let mut server = Shows::a::<Maybe>();
    let mut schema = server.schema().await;
    schema.as_object_mut().unwrap().remove("$defs");
    assert_eq!(
        schema,
        json!({
            "type": "object",
            "properties": {
                "note": {"type": ["string", "null"]},
                "at": {"anyOf": [{"$ref": "#/$defs/Point"}, {"type": "null"}]},
            },
        })
    );
    server.good("{}", "Maybe { note: None, at: None }").await;
    server.good(r#"{"note":null,"at":null}"#, "Maybe { note: None, at: None }").await;
    server.bad(r#"{"note":1}"#, "`/note` should be a string or `null`, but is `1`").await;
    server.bad(r#"{"at":{"x":1}}"#, "`/at/y` is missing: it should be a number").await;
    server.bad(r#"{"at":3}"#, "`/at` should be an object with `x` and `y` or `null`, but is `3`").await;
}

#[tokio::test]
async fn defaults() {
    fn ten() -> u32 {
        10
    }
    #[derive(Debug, Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "shown by `Debug`")]
    struct Page {
        #[serde(default = "ten")]
        size: u32,
        #[serde(default)]
        words: Vec<String>,
    }
    let mut server = Shows::a::<Page>();
    assert_eq!(
        server.schema().await,
        json!({
            "type": "object",
            "properties": {
                "size": {"type": "integer", "format": "uint32", "minimum": 0, "default": 10},
                "words": {"type": "array", "items": {"type": "string"}, "default": []},
            },
        })
    );
    server.good("{}", "Page { size: 10, words: [] }").await;
    server.good(r#"{"size":1}"#, "Page { size: 1, words: [] }").await;
    server.bad(r#"{"size":null}"#, "`/size` should be an integer, but is `null`").await;
    server.bad(r#"{"size":-1}"#, "`/size` should be at least 0, but is `-1`").await;
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "shown by `Debug`")]
struct Limits {
    signed: i64,
    unsigned: u64,
    small: i8,
}

#[tokio::test]
async fn integers_at_their_limits() {
    let mut server = Shows::a::<Limits>();
    assert_eq!(
        server.schema().await,
        json!({
            "type": "object",
            "properties": {
                "signed": {"type": "integer", "format": "int64"},
                "unsigned": {"type": "integer", "format": "uint64", "minimum": 0},
                "small": {"type": "integer", "format": "int8", "minimum": -128, "maximum": 127},
            },
            "required": ["signed", "unsigned", "small"],
        })
    );
    let with = |signed: &str, unsigned: &str, small: &str| {
        format!(r#"{{"signed":{signed},"unsigned":{unsigned},"small":{small}}}"#)
    };
    let (least, most) = ("-9223372036854775808", "18446744073709551615");
    server
        .good(
            &with(least, most, "-128"),
            &format!("Limits {{ signed: {least}, unsigned: {most}, small: -128 }}"),
        )
        .await;
    server
        .good(
            &with("9223372036854775807", "0", "127"),
            "Limits { signed: 9223372036854775807, unsigned: 0, small: 127 }",
        )
        .await;
    // For JSON Schema it is an integer.
    server.good(&with("-3.0", "4.0", "5e0"), "Limits { signed: -3, unsigned: 4, small: 5 }").await;
    for (arguments, message) in [
        (
            with("9223372036854775808", "0", "0"),
            "`/signed` should be at most 9223372036854775807, but is `9223372036854775808`",
        ),
        (
            with("18446744073709551616", "0", "0"),
            "`/signed` should be at most 9223372036854775807, but is `1.8446744073709552e+19`",
        ),
        // As a 64-bit float it is the smallest integer, so the schema cannot tell.
        (
            with("-9223372036854775809", "0", "0"),
            "`/signed` is `-9223372036854775809`, which cannot be read: invalid type: floating point \
             `-9.223372036854776e+18`, expected an integer in range",
        ),
        (
            with("0", "18446744073709551616", "0"),
            "`/unsigned` should be at most 18446744073709551615, but is `1.8446744073709552e+19`",
        ),
        (with("0", "-1", "0"), "`/unsigned` should be at least 0, but is `-1`"),
        (with("0", "0", "128"), "`/small` should be at most 127, but is `128`"),
        (with("0.5", "0", "0"), "`/signed` should be an integer, but is `0.5`"),
        (with("1e400", "0", "0"), "`/signed` is `1e400`, which cannot be read: number out of range"),
    ] {
        server.bad(&arguments, message).await;
    }
}

#[tokio::test]
async fn maps() {
    #[derive(Debug, Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "shown by `Debug`")]
    struct Weights {
        by_name: BTreeMap<String, u8>,
        free: HashMap<String, Value>,
    }
    let mut server = Shows::a::<Weights>();
    assert_eq!(
        server.schema().await,
        json!({
            "type": "object",
            "properties": {
                "by_name": {
                    "type": "object",
                    "additionalProperties": {"type": "integer", "format": "uint8", "minimum": 0, "maximum": 255},
                },
                "free": {"type": "object", "additionalProperties": true},
            },
            "required": ["by_name", "free"],
        })
    );
    server
        .good(
            r#"{"by_name":{"a":1,"b":255},"free":{"c":[null]}}"#,
            r#"Weights { by_name: {"a": 1, "b": 255}, free: {"c": Array [Null]} }"#,
        )
        .await;
    server
        .bad(r#"{"by_name":{"a/b":256},"free":{}}"#, "`/by_name/a~1b` should be at most 255, but is `256`")
        .await;
    server.bad(r#"{"by_name":[],"free":{}}"#, "`/by_name` should be an object, but is `[]`").await;
}

#[tokio::test]
async fn tagged_enums() {
    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(tag = "kind", rename_all = "lowercase")]
    #[expect(dead_code, reason = "shown by `Debug`")]
    enum Shape {
        Circle { radius: f64 },
        Square { side: f64 },
    }
    #[derive(Debug, Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "shown by `Debug`")]
    struct Draw {
        shape: Shape,
    }
    let mut server = Shows::a::<Draw>();
    let branch = |kind: &str, member: &str| {
        json!({
            "type": "object",
            "properties": {"kind": {"type": "string", "const": kind}, member: {"type": "number", "format": "double"}},
            "required": ["kind", member],
        })
    };
    assert_eq!(
        server.schema().await,
        json!({
            "type": "object",
            "properties": {"shape": {"$ref": "#/$defs/Shape"}},
            "required": ["shape"],
            "$defs": {"Shape": {"oneOf": [branch("circle", "radius"), branch("square", "side")]}},
        })
    );
    server.good(r#"{"shape":{"kind":"circle","radius":2}}"#, "Draw { shape: Circle { radius: 2.0 } }").await;
    server
        .bad(
            r#"{"shape":{"kind":"sqaure","side":2}}"#,
            "`/shape/kind` should be `\"circle\"` or `\"square\"`, but is `\"sqaure\"`: did you mean `\"square\"`?",
        )
        .await;
    server
        .bad(
            r#"{"shape":{"kind":"circle","radios":2}}"#,
            "`/shape/radius` is missing: it should be a number; is `radios` meant for it?",
        )
        .await;
    server
        .bad(
            r#"{"shape":{"radius":2}}"#,
            "`/shape/kind` is missing: it should be `\"circle\"` or `\"square\"`",
        )
        .await;
}

#[tokio::test]
async fn enums_tagged_by_their_member() {
    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    #[expect(dead_code, reason = "shown by `Debug`")]
    enum Step {
        Wait,
        Move { by: i32 },
    }
    #[derive(Debug, Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "shown by `Debug`")]
    struct Plan {
        steps: Vec<Step>,
    }
    let mut server = Shows::a::<Plan>();
    assert_eq!(
        server.schema().await["$defs"]["Step"],
        json!({"oneOf": [
            {"type": "string", "enum": ["wait"]},
            {
                "type": "object",
                "properties": {"move": {
                    "type": "object",
                    "properties": {"by": {"type": "integer", "format": "int32"}},
                    "required": ["by"],
                }},
                "required": ["move"],
                "additionalProperties": false,
            },
        ]})
    );
    server.good(r#"{"steps":["wait",{"move":{"by":-1}}]}"#, "Plan { steps: [Wait, Move { by: -1 }] }").await;
    server
        .bad(
            r#"{"steps":[{"move":{"by":3000000000}}]}"#,
            "`/steps/0/move/by` should be at most 2147483647, but is `3000000000`",
        )
        .await;
    server
        .bad(
            r#"{"steps":["wiat"]}"#,
            "`/steps/0` should be `\"wait\"` or an object with `move`, but is `\"wiat\"`: did you mean `\"wait\"`?",
        )
        .await;
}

#[tokio::test]
async fn untagged_enums() {
    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(untagged)]
    #[expect(dead_code, reason = "shown by `Debug`")]
    enum Target {
        Id(u32),
        Name { name: String },
    }
    #[derive(Debug, Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "shown by `Debug`")]
    struct Open {
        target: Target,
    }
    let mut server = Shows::a::<Open>();
    assert_eq!(
        server.schema().await["$defs"]["Target"],
        json!({"anyOf": [
            {"type": "integer", "format": "uint32", "minimum": 0},
            {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        ]})
    );
    server.good(r#"{"target":7}"#, "Open { target: Id(7) }").await;
    server.good(r#"{"target":{"name":"x"}}"#, r#"Open { target: Name { name: "x" } }"#).await;
    server
        .bad(r#"{"target":true}"#, "`/target` should be an integer or an object with `name`, but is `true`")
        .await;
    server
        .bad(
            r#"{"target":{"nmae":"x"}}"#,
            "`/target/name` is missing: it should be a string; is `nmae` meant for it?",
        )
        .await;
    server
        .bad(r#"{"target":4294967296}"#, "`/target` should be at most 4294967295, but is `4294967296`")
        .await;
}

#[tokio::test]
async fn recursion() {
    #[derive(Debug, Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "shown by `Debug`")]
    struct Tree {
        name: String,
        #[serde(default)]
        children: Vec<Self>,
    }
    let mut server = Shows::a::<Tree>();
    assert_eq!(
        server.schema().await,
        json!({
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "children": {"type": "array", "items": {"$ref": "#"}},
            },
            "required": ["name"],
        })
    );
    server
        .good(
            r#"{"name":"a","children":[{"name":"b"}]}"#,
            r#"Tree { name: "a", children: [Tree { name: "b", children: [] }] }"#,
        )
        .await;
    server
        .bad(
            r#"{"name":"a","children":[{"name":"b","children":[{"nam":"c"}]}]}"#,
            "`/children/0/children/0/name` is missing: it should be a string; is `nam` meant for it?",
        )
        .await;
    // Deeper than text is read: an answer, and no stack overflow.
    let deep = format!("{}{}", r#"{"name":"a","children":["#.repeat(150), "]}".repeat(150));
    let (good, message) = server.call(&deep).await;
    assert!(!good && message.contains("recursion limit exceeded"), "{message}");
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "shape", rename_all = "lowercase")]
#[expect(dead_code, reason = "shown by `Debug`")]
enum Shape {
    /// A circle.
    Circle {
        radius: f64,
    },
    Square {
        side: f64,
    },
}

#[tokio::test]
async fn a_tagged_enum_may_be_all_arguments() {
    let mut server = Shows::a::<Shape>();
    let schema = server.schema().await;
    assert_eq!(schema["type"], "object", "{schema}");
    assert_eq!(schema["oneOf"][1]["properties"]["shape"]["const"], "square", "{schema}");
    server.good(r#"{"shape":"circle","radius":2}"#, "Circle { radius: 2.0 }").await;
    assert!(!server.call(r#"{"shape":"circle"}"#).await.0);
    assert!(!server.call(r#"{"shape":"line"}"#).await.0);
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Either {
    #[expect(dead_code, reason = "only its schema is looked at")]
    Object { a: u8 },
    #[expect(dead_code, reason = "only its schema is looked at")]
    Number(u8),
}

#[test]
fn a_choice_that_need_not_be_an_object_is_no_arguments() {
    let route = tool("show", |Args(_): Args<Either>| async { "" });
    let error = Server::new("s", "0").tool(route).check().unwrap_err().to_string();
    assert!(error.contains("which is not a JSON object"), "{error}");
}
