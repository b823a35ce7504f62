//! The schemas that `#[pintle::tool]` makes of parameters, and what is said of arguments that do not fit.

use std::collections::BTreeMap;

use pintle::Server;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::tool::{call, listed, text_of};

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Order {
    #[default]
    Name,
    Date,
}

#[derive(Deserialize, JsonSchema)]
struct Tree {
    name: String,
    #[serde(default)]
    children: Vec<Self>,
}

/// Finds things.
#[pintle::tool]
async fn find(
    /// What to look for.
    #[arg(min_length = 2, max_length = 5, pattern = "^[a-z]+$", examples = ["ab", "cd"])]
    query: String,
    /// How many.
    ///
    /// Ten if nothing is said.
    #[arg(default = 10, minimum = 1, maximum = 50)]
    limit: u32,
    #[arg(default)] order: Order,
    #[arg(default = "all", description = "Where.", rename = "in")] place: String,
    #[arg(max_items = 2, unique_items = true)] tags: Option<Vec<String>>,
) -> String {
    format!("{query} {limit} {order:?} {place} {tags:?}")
}

#[pintle::tool]
async fn count(tree: Tree, weights: BTreeMap<String, u8>) -> usize {
    fn names(tree: &Tree) -> usize {
        tree.name.len() + tree.children.iter().map(names).sum::<usize>()
    }
    names(&tree) + weights.len()
}

/// Defaults whose types are inferred from those of the parameters.
#[pintle::tool]
async fn inferred(
    #[arg(default = -1)] number: i8,
    #[arg(default = usize::from(3_u8))] limit: usize,
    #[arg(default = Vec::new())] list: Vec<u8>,
    #[arg(default = "x".into())] text: String,
    #[arg(default = Some(3))] option: Option<u32>,
    #[arg(default = Default::default())] map: BTreeMap<String, u8>,
    #[arg(default = [1, 2])] array: [u8; 2],
) -> String {
    format!("{number} {limit} {list:?} {text} {option:?} {map:?} {array:?}")
}

#[tokio::test]
async fn a_default_may_be_any_expression_of_the_type() {
    let server = Server::new("s", "0").tools(pintle::tools![inferred]);
    assert_eq!(text_of(&server, "inferred", json!({})).await, "-1 3 [] x Some(3) {} [1, 2]");
}

#[tokio::test]
async fn parameters_say_what_they_accept() {
    let tools = listed(&Server::new("s", "0").tools(pintle::tools![find])).await;
    let schema = &tools[0]["inputSchema"];
    assert_eq!(schema["required"], json!(["query"]));
    let properties = &schema["properties"];
    assert_eq!(
        properties["query"],
        json!({
            "type": "string", "description": "What to look for.", "minLength": 2, "maxLength": 5,
            "pattern": "^[a-z]+$", "examples": ["ab", "cd"]
        })
    );
    assert_eq!(
        properties["limit"],
        json!({
            "type": "integer", "format": "uint32", "description": "How many.\n\nTen if nothing is said.",
            "default": 10, "minimum": 1, "maximum": 50
        })
    );
    assert_eq!(properties["in"], json!({"type": "string", "description": "Where.", "default": "all"}));
    assert_eq!(
        properties["tags"],
        json!({"type": ["array", "null"], "items": {"type": "string"}, "maxItems": 2, "uniqueItems": true})
    );
}

#[tokio::test]
async fn what_they_do_not_accept_never_reaches_the_function() {
    let server = Server::new("s", "0").tools(pintle::tools![find]);
    assert_eq!(text_of(&server, "find", json!({"query": "ab"})).await, "ab 10 Name all None");
    let all = json!({"query": "ab", "limit": 50, "order": "date", "in": "x", "tags": ["t"]});
    assert_eq!(text_of(&server, "find", all).await, r#"ab 50 Date x Some(["t"])"#);
    for (wrong, place) in [
        (json!({"query": "a"}), "`/query`"),
        (json!({"query": "AB"}), "`/query`"),
        (json!({"query": "ab", "limit": 0}), "`/limit`"),
        (json!({"query": "ab", "limit": 51}), "`/limit`"),
        (json!({"query": "ab", "order": "dat"}), "did you mean `\"date\"`?"),
        (json!({"query": "ab", "tags": ["t", "t"]}), "`/tags`"),
        (json!({}), "`/query` is missing"),
    ] {
        let result = call(&server, "find", wrong.clone()).await;
        assert_eq!(result["isError"], true, "{wrong}");
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(place), "{wrong}: {text}");
    }
}

#[tokio::test]
async fn types_may_be_deep_and_recursive() {
    let server = Server::new("s", "0").tools(pintle::tools![count]);
    let tree = json!({"name": "abc", "children": [{"name": "d"}, {"name": "ef"}]});
    assert_eq!(text_of(&server, "count", json!({"tree": tree, "weights": {"x": 1}})).await, "7");
    let tree = json!({"name": "abc", "children": [{"name": 1}]});
    let text = text_of(&server, "count", json!({"tree": tree, "weights": {}})).await;
    assert!(text.contains("`/tree/children/0/name`"), "{text}");
    let text = text_of(&server, "count", json!({"tree": {"name": ""}, "weights": {"x": 256}})).await;
    assert!(text.contains("`/weights/x`"), "{text}");
}
