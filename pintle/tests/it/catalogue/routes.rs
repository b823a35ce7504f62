//! The options that the four kinds of routes share.

use std::sync::{Arc, Mutex};

use pintle::{
    Server,
    server::{Cx, Next, around, prompt, resource, template, tool},
    types::Meta,
};
use serde_json::{Value, json};

use crate::support::eras::{ALL, Client, R4, R5, each};

fn meta(value: Value) -> Meta {
    serde_json::from_value(value).unwrap()
}

#[tokio::test]
async fn meta_given_twice_is_merged_and_the_later_value_wins() {
    let (first, second) = (|| meta(json!({"kept": 1, "both": 1})), || meta(json!({"both": 2, "added": 2})));
    let server = Server::new("s", "0")
        .tool(tool("t", || async { "" }).meta(first()).meta(second()))
        .prompt(prompt("p", || async { "" }).meta(first()).meta(second()))
        .resource(resource("r://1", "r", || async { "" }).meta(first()).meta(second()))
        .template(template("t://{x}", "m", || async { "" }).meta(first()).meta(second()));
    each(&server, &[R4, R5], json!({}), async |client: &mut Client| {
        for (method, list) in [
            ("tools/list", "tools"),
            ("prompts/list", "prompts"),
            ("resources/list", "resources"),
            ("resources/templates/list", "resourceTemplates"),
        ] {
            let answer = client.call(method, json!({})).await;
            let listed = &answer["result"][list][0]["_meta"];
            assert_eq!(*listed, json!({"kept": 1, "both": 2, "added": 2}), "{method}");
        }
    })
    .await;
}

#[tokio::test]
async fn every_kind_of_route_can_have_a_layer() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    let layer = around(move |cx: Cx, next: Next| {
        log.lock().unwrap().push(cx.method().to_owned());
        next.run(cx)
    });
    let server = Server::new("s", "0")
        .tool(tool("t", || async { "done" }).layer(&layer))
        .prompt(prompt("p", || async { "done" }).layer(&layer))
        .resource(resource("r://1", "r", || async { "done" }).layer(&layer))
        .template(template("t://{x}", "m", || async { "done" }).layer(&layer))
        .tool(tool("bare", || async { "done" }));
    each(&server, &ALL, json!({}), async |client: &mut Client| {
        for (method, params) in [
            ("tools/call", json!({"name": "t"})),
            ("tools/call", json!({"name": "bare"})),
            ("prompts/get", json!({"name": "p"})),
            ("resources/read", json!({"uri": "r://1"})),
            ("resources/read", json!({"uri": "t://2"})),
        ] {
            let answer = client.call(method, params).await;
            assert!(answer["result"].to_string().contains("done"), "{answer}");
        }
        let seen = std::mem::take(&mut *seen.lock().unwrap());
        assert_eq!(seen, ["tools/call", "prompts/get", "resources/read", "resources/read"]);
    })
    .await;
}
