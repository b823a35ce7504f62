//! `#[pintle::resource]` on functions.

use pintle::{
    Server,
    server::{CacheHint, Cx, Json, Partial, State, Vars},
    types::schema::{Annotations, CacheScope, Role},
    uri,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::eras::{ALL, Client, R4, R5, each, not_found};

fn for_people() -> Annotations {
    let mut annotations = Annotations::default();
    annotations.audience = Some(vec![Role::User]);
    annotations
}

/// What is new.
#[pintle::resource(
    "notes://news",
    title = "News",
    mime_type = "text/plain",
    annotations = for_people(),
    cache = CacheHint::new(5000, CacheScope::Public)
)]
fn news() -> &'static str {
    "nothing"
}

async fn authors(_: Partial) -> Vec<&'static str> {
    vec!["ann", "ben"]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Form {
    Short,
    Long,
}

/// A note.
#[pintle::resource("notes://{author}/{id}{?form,tags*,page}", name = "by_id")]
async fn note(
    cx: Cx,
    id: u32,
    #[arg(complete = authors)] author: String,
    State(sign): State<char>,
    form: Option<Form>,
    #[arg(default)] tags: Vec<String>,
    #[arg(default = 1, minimum = 1, rename = "page")] number: u8,
) -> Option<String> {
    (id < 10).then(|| format!("{sign} {} {id} {author} {form:?} {tags:?} {number}", cx.method()))
}

#[pintle::resource("pairs://{_x}/{y}")]
fn pair(_x: String, _y: String) -> Json<[u8; 2]> {
    Json([1, 2])
}

#[pintle::resource("whole://{a}/{b}")]
fn whole(Vars((a, b)): Vars<(String, u8)>, vars: uri::Vars) -> String {
    format!("{a} {b} {:?}", vars.get("b"))
}

fn server() -> Server {
    Server::new("s", "0").with_state('!').routes(pintle::routes![news, note, pair, whole])
}

async fn read(client: &mut Client, uri: &str) -> Value {
    let answer = client.call("resources/read", json!({"uri": uri})).await;
    match answer.get("error") {
        Some(error) => error.clone(),
        None => answer["result"]["contents"][0]["text"].clone(),
    }
}

#[tokio::test]
async fn options_are_what_clients_see() {
    each(&server(), &[R4, R5], json!({}), async |client: &mut Client| {
        let listed = client.call("resources/list", json!({})).await["result"]["resources"].clone();
        assert_eq!(
            listed,
            json!([{
                "uri": "notes://news", "name": "news", "title": "News", "description": "What is new.",
                "mimeType": "text/plain", "annotations": {"audience": ["user"]}
            }])
        );
        let listed =
            client.call("resources/templates/list", json!({})).await["result"]["resourceTemplates"].clone();
        assert_eq!(
            listed[0],
            json!({
                "uriTemplate": "notes://{author}/{id}{?form,tags*,page}", "name": "by_id", "description": "A note."
            })
        );
        assert_eq!(listed[1]["name"], "pair");
        if client.is_stateless() {
            let read = client.call("resources/read", json!({"uri": "notes://news"})).await;
            assert_eq!(read["result"]["ttlMs"], 5000);
        }
    })
    .await;
}

#[tokio::test]
async fn it_is_read_by_clients_of_every_revision() {
    each(&server(), &ALL, json!({}), async |client: &mut Client| {
        assert_eq!(read(client, "notes://news").await, "nothing");
        assert_eq!(read(client, "notes://ann/7").await, "! resources/read 7 ann None [] 1");
        assert_eq!(
            read(client, "notes://ann/7?form=long&tags=a&tags=b&page=2").await,
            r#"! resources/read 7 ann Some(Long) ["a", "b"] 2"#
        );
        assert_eq!(read(client, "pairs://1/2").await, "[1,2]");
        assert_eq!(read(client, "whole://x/7").await, r#"x 7 Some("7")"#);
        let uri = "notes://ann/x";
        let error = read(client, uri).await;
        assert_eq!(
            (&error["code"], &error["message"], &error["data"]),
            (
                &json!(not_found(client)),
                &json!("variable `id`: `x` is not a whole number of 32 bits, from 0"),
                &json!({"uri": uri})
            )
        );
        assert_eq!(read(client, "notes://ann/10").await["data"], json!({"uri": "notes://ann/10"}));
        #[cfg(feature = "validation")]
        assert_eq!(
            read(client, "notes://ann/7?page=0").await["message"],
            "`/page` should be at least 1, but is `0`\ncorrect it and try again"
        );
        for (name, values) in [("author", json!(["ann", "ben"])), ("form", json!(["short", "long"]))] {
            let reference = json!({"type": "ref/resource", "uri": "notes://{author}/{id}{?form,tags*,page}"});
            let params = json!({"ref": reference, "argument": {"name": name, "value": ""}});
            let answer = client.call("completion/complete", params).await;
            assert_eq!(answer["result"]["completion"]["values"], values, "{name}: {answer}");
        }
    })
    .await;
}

#[test]
fn the_function_stays_a_function() {
    assert_eq!(news(), "nothing");
    assert_eq!(pair(String::new(), String::new()).0, [1, 2]);
}
