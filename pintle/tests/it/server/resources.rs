//! Resources over types: the variables of a template are what the handler takes, and it may hold anything.

use bytes::Bytes;
use pintle::{
    Server,
    server::{Args, Cx, Json, RequestError, State, Vars, resource, template},
    types::schema::ResourceContents,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::eras::{ALL, Client, each, not_found};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Open,
    Closed,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "printed")]
struct Issue {
    #[schemars(range(min = 1))]
    id: u32,
    kind: Kind,
    exact: Option<bool>,
    #[serde(default)]
    tags: Vec<String>,
}

fn issues() -> Server {
    let issue =
        |State(sign): State<char>, Vars(issue): Vars<Issue>| async move { format!("{sign} {issue:?}") };
    let one = |Vars(number): Vars<u8>| async move { number.to_string() };
    let pair = |Vars((a, b)): Vars<(String, Option<u8>)>| async move { format!("{a} {b:?}") };
    Server::new("s", "0")
        .with_state('!')
        .template(template("issue://{id}/{kind}{?exact,tags*}", "issue", issue).mime_type("text/x-issue"))
        .template(template("one://{number}", "one", one))
        .template(template("pair://{a}{?b}", "pair", pair))
}

async fn read(client: &mut Client, uri: &str) -> Value {
    let answer = client.call("resources/read", json!({"uri": uri})).await;
    match answer.get("error") {
        Some(error) => error.clone(),
        None => answer["result"]["contents"][0].clone(),
    }
}

#[tokio::test]
async fn variables_become_what_the_fields_are() {
    each(&issues(), &ALL, json!({}), async |client: &mut Client| {
        assert_eq!(
            read(client, "issue://7/open?exact=true&tags=a&tags=b").await,
            json!({
                "uri": "issue://7/open?exact=true&tags=a&tags=b", "mimeType": "text/x-issue",
                "text": r#"! Issue { id: 7, kind: Open, exact: Some(true), tags: ["a", "b"] }"#
            })
        );
        assert_eq!(
            read(client, "issue://7/closed").await["text"],
            "! Issue { id: 7, kind: Closed, exact: None, tags: [] }"
        );
        assert_eq!(read(client, "one://255").await["text"], "255");
        assert_eq!(read(client, "pair://x?b=3").await["text"], "x Some(3)");
        assert_eq!(read(client, "pair://x").await["text"], "x None");
    })
    .await;
}

#[tokio::test]
async fn a_uri_that_does_not_match_gets_the_reason() {
    each(&issues(), &ALL, json!({}), async |client: &mut Client| {
        for (uri, message) in [
            ("issue://x/open", "variable `id`: `x` is not a whole number of 32 bits, from 0"),
            ("issue://7/opne", "variable `kind`: `opne` is not `open` or `closed`: did you mean `open`?"),
            ("issue://7/open?exact=yes", "variable `exact`: `yes` is not `true` or `false`"),
            ("one://256", "variable `number`: `256` is not a whole number from 0 to 255"),
        ] {
            let error = read(client, uri).await;
            assert_eq!(
                (&error["code"], &error["message"], &error["data"]),
                (&json!(not_found(client)), &json!(message), &json!({"uri": uri}))
            );
        }
        #[cfg(feature = "validation")]
        assert_eq!(
            read(client, "issue://0/open").await["message"],
            "`/id` should be at least 1, but is `0`\ncorrect it and try again"
        );
    })
    .await;
}

#[tokio::test]
async fn enums_complete_themselves() {
    each(&issues(), &ALL, json!({}), async |client: &mut Client| {
        for (name, value, values) in
            [("kind", "", json!(["open", "closed"])), ("kind", "c", json!(["closed"])), ("id", "", json!([]))]
        {
            let reference = json!({"type": "ref/resource", "uri": "issue://{id}/{kind}{?exact,tags*}"});
            let params = json!({"ref": reference, "argument": {"name": name, "value": value}});
            let answer = client.call("completion/complete", params).await;
            assert_eq!(answer["result"]["completion"]["values"], values, "{name}: {answer}");
        }
    })
    .await;
}

#[tokio::test]
async fn every_kind_of_result() {
    let contents = || async {
        let mut contents = ResourceContents::text("r://other", "contents");
        contents.mime_type = Some("text/own".into());
        contents
    };
    let many = || async { vec![ResourceContents::text("r://a", "a"), ResourceContents::text("r://b", "b")] };
    let server = Server::new("s", "0")
        .resource(resource("r://str", "r", || async { "str" }).mime_type("text/plain"))
        .resource(resource("r://vec", "r", || async { vec![0_u8, 255] }).mime_type("image/png"))
        .resource(resource("r://bytes", "r", || async { Bytes::from_static(&[0, 255]) }))
        .resource(resource("r://slice", "r", || async { &b"\0\xff"[..] }))
        .resource(resource("r://json", "r", || async { Json([1, 2]) }))
        .resource(resource("r://geo", "r", || async { Json([1, 2]) }).mime_type("application/geo+json"))
        .resource(resource("r://contents", "r", contents).mime_type("text/plain"))
        .resource(resource("r://many", "r", many))
        .resource(resource("r://method", "r", |cx: Cx| async move { cx.method().to_owned() }))
        .resource(resource("r://none", "r", || async { None::<String> }))
        .resource(resource("r://failing", "r", || async { "x".parse::<u8>().map(|_| "never") }))
        .resource(resource("r://gone", "r", || async { Err::<Vec<u8>, _>(RequestError::not_found()) }));
    each(&server, &ALL, json!({}), async |client: &mut Client| {
        assert_eq!(
            read(client, "r://str").await,
            json!({"uri": "r://str", "mimeType": "text/plain", "text": "str"})
        );
        assert_eq!(
            read(client, "r://vec").await,
            json!({"uri": "r://vec", "mimeType": "image/png", "blob": "AP8="})
        );
        for uri in ["r://bytes", "r://slice"] {
            assert_eq!(read(client, uri).await, json!({"uri": uri, "blob": "AP8="}));
        }
        let json = read(client, "r://json").await;
        assert_eq!((&json["mimeType"], &json["text"]), (&json!("application/json"), &json!("[1,2]")));
        assert_eq!(read(client, "r://geo").await["mimeType"], "application/geo+json");
        assert_eq!(
            read(client, "r://contents").await,
            json!({"uri": "r://other", "mimeType": "text/own", "text": "contents"})
        );
        let many = client.call("resources/read", json!({"uri": "r://many"})).await;
        assert_eq!(many["result"]["contents"][1]["uri"], "r://b");
        assert_eq!(read(client, "r://method").await["text"], "resources/read");
        for uri in ["r://none", "r://gone"] {
            let error = read(client, uri).await;
            assert_eq!(
                (&error["code"], &error["data"]),
                (&json!(not_found(client)), &json!({"uri": uri})),
                "{error}"
            );
        }
        let failed = read(client, "r://failing").await;
        assert_eq!(
            (&failed["code"], &failed["message"]),
            (&json!(-32603), &json!("invalid digit found in string"))
        );
    })
    .await;
}

#[test]
fn invalid_resources_are_reported_before_the_first_read() {
    let of_template = |route| Server::new("s", "0").template(route).check().unwrap_err().to_string();
    let of_resource = |route| Server::new("s", "0").resource(route).check().unwrap_err().to_string();
    assert_eq!(
        of_template(template("i://{id}{?tags*}", "i", |_: Vars<Issue>| async { "" })),
        "the handler of `i://{id}{?tags*}` takes `kind`, which is not one of its variables: `id`, `tags`"
    );
    assert_eq!(
        of_template(template("i://{id}", "i", |_: Args<Issue>| async { "" })),
        "the resource template `i://{id}` has nothing for `Args`: take its variables, as `Vars<T>`"
    );
    assert_eq!(
        of_resource(resource("i://1", "i", |_: Vars<Issue>| async { "" })),
        "the resource `i://1` has nothing for `Vars`: give it a URI with variables, by `template`, or take `Cx`"
    );
    assert_eq!(
        of_resource(resource("i://1", "i", |_: State<u8>| async { "" })),
        "the resource `i://1` wants `State<u8>`: give the server one with `with_state`"
    );
    assert!(of_template(template("i://{id", "i", || async { "" })).contains("is not closed"));
}
