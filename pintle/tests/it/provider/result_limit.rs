//! Results that are too large: cut, with a link to the whole for their caller.

use std::time::Duration;

use pintle::{
    Server,
    server::{Caller, Decision, GateRequest, Prefix, ResultLimit, Rules, Transform, prompt, resource, tool},
    types::schema::{CallToolResult, ContentBlock},
};
use serde_json::{Value, json};

use crate::support::{
    eras::{ALL, Client, R4, R5, not_found},
    line_client::Raw,
};

const LIMIT: usize = 1000;

fn long() -> String {
    (0..2000).map(|number| format!("{number} \"ä😀\"\n")).collect()
}

fn logs() -> Server {
    let block = |block: Value| -> ContentBlock { serde_json::from_value(block).unwrap() };
    let parts = move || {
        vec![
            block(json!({"type": "resource_link", "uri": "secret://r", "name": "hidden"})),
            block(json!({"type": "resource_link", "uri": "open://r", "name": "shown"})),
            block(json!({"type": "resource", "resource": {"uri": "open://r", "text": "o".repeat(5000)}})),
            block(json!({"type": "resource", "resource": {"uri": "secret://r", "text": "s".repeat(5000)}})),
            ContentBlock::text("first"),
            block(json!({"type": "image", "data": "AAAA".repeat(1000), "mimeType": "image/png"})),
            ContentBlock::text(long()),
            ContentBlock::text("last"),
        ]
    };
    let structured = || async {
        let mut result = CallToolResult::new(vec!["see the structured content".into()]);
        result.structured_content = Some(json!({"rows": vec![7; 2000]}));
        result
    };
    let noted = || async {
        let mut result = CallToolResult::new(vec!["noted".into()]);
        result.meta = Some(serde_json::from_value(json!({"example/note": "n".repeat(5000)})).unwrap());
        result.is_error = Some(true);
        result
    };
    Server::new("logs", "0")
        .tool(tool("tail", || async { long() }))
        .tool(tool("short", || async { "short" }))
        .tool(tool("parts", move || std::future::ready(parts())))
        .tool(tool("rows", structured))
        .tool(tool("noted", noted))
        .prompt(prompt("long", || async { long() }))
        .resource(resource("open://r", "open", || async { "open" }))
        .resource(resource("secret://r", "secret", || async { "secret" }))
}

async fn call(client: &mut Client, name: &str) -> Value {
    client.call("tools/call", json!({"name": name})).await["result"].clone()
}

/// The URI of the whole of a result that was cut. The first revisions have it in a text.
fn uri(result: &Value) -> String {
    let text = result["content"].to_string();
    let (_, rest) = text.split_once("cut-result://").unwrap_or_else(|| panic!("{text}"));
    let number: String =
        rest.chars().take_while(|letter| letter.is_ascii_alphanumeric() || *letter == '/').collect();
    format!("cut-result://{number}")
}

async fn read(client: &mut Client, uri: &str) -> Value {
    client.call("resources/read", json!({"uri": uri})).await
}

#[tokio::test]
async fn a_long_result_is_cut_and_the_whole_can_be_read() {
    let logs = Transform::new(logs()).max_result(ResultLimit::new(LIMIT));
    let server = Server::new("desk", "0").mount(Prefix::none(), logs);
    for revision in ALL {
        let mut client = Client::open(&server, revision, json!({})).await;
        assert_eq!(client.tool("short").await, "short");
        let cut = call(&mut client, "tail").await;
        let shown = cut["content"][0]["text"].as_str().unwrap();
        assert!(long().starts_with(shown) && shown.len() > LIMIT / 2, "{shown}");
        assert!(cut["content"][0].to_string().len() <= LIMIT);
        assert!(cut.to_string().len() < LIMIT + 800, "{cut}");
        let whole = read(&mut client, &uri(&cut)).await["result"].clone();
        assert_eq!(whole["contents"][0]["text"], long(), "{revision}");
        assert_eq!(whole["contents"][0]["uri"], uri(&cut));
        if revision == R5 {
            assert_eq!(whole["cacheScope"], "private");
        }
        let rows = call(&mut client, "rows").await;
        assert_eq!(rows.get("structuredContent"), None);
        let whole = read(&mut client, &uri(&rows)).await["result"]["contents"].clone();
        let text = whole.as_array().unwrap().last().unwrap()["text"].as_str().unwrap().to_owned();
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["rows"][1999], 7);
        // Other members count too. What says whether the call has failed stays.
        let noted = call(&mut client, "noted").await;
        assert!(noted.to_string().len() < LIMIT + 800, "{noted}");
        assert_eq!(
            (&noted["content"][0]["text"], &noted["isError"]),
            (&json!("noted"), &json!(true)),
            "{noted}"
        );
        let list = client.call("resources/list", json!({})).await["result"].to_string();
        assert!(
            list.contains("open://r") && !list.contains("cut-result"),
            "what is kept is not listed: {list}"
        );
        let prompt = client.call("prompts/get", json!({"name": "long"})).await;
        assert_eq!(prompt["result"]["messages"][0]["content"]["text"], long());
    }
}

#[tokio::test]
async fn what_is_kept_is_its_callers_whatever_gates_say_of_resources() {
    let set = json!({"rules": [{"tools": ["*"], "decision": "allow"},
        {"resources": ["open://*"], "decision": "allow"}]});
    let rules = Rules::new(serde_json::from_value(set).unwrap()).unwrap();
    let logs = Transform::new(logs()).max_result(ResultLimit::new(LIMIT));
    let server = Server::new("desk", "0").provider(logs).gate(rules);
    for revision in [R4, R5] {
        let open =
            async |caller: Caller| Client::over(Raw::known(&server, caller), revision, json!({})).await;
        let mut ann = open(Caller::new().principal("ann")).await;
        let cut = call(&mut ann, "tail").await;
        let link = cut["content"].as_array().unwrap().last().unwrap().clone();
        assert_eq!((&link["type"], &link["uri"]), (&json!("resource_link"), &json!(uri(&cut))), "{cut}");
        for caller in [Caller::new().principal("bob"), Caller::new(), Caller::local()] {
            let mut other = open(caller).await;
            let refused = read(&mut other, &uri(&cut)).await["error"].clone();
            assert_eq!(refused["code"], not_found(&other), "{refused}");
            let absent = uri(&cut).replace(|digit: char| digit.is_ascii_digit(), "f");
            let unknown = read(&mut other, &absent).await["error"].to_string();
            assert_eq!(refused.to_string().replace(&uri(&cut), &absent), unknown);
        }
        let mut again = open(Caller::new().principal("ann")).await;
        let whole = read(&mut again, &uri(&cut)).await;
        assert_eq!(whole["result"]["contents"][0]["text"], long());
    }
}

#[tokio::test]
async fn a_prefix_of_uris_is_one_of_the_link_too() {
    let logs = Transform::new(logs()).max_result(ResultLimit::new(LIMIT));
    let server = Server::new("desk", "0").mount(Prefix::new("l").uris(), logs);
    for revision in [R4, R5] {
        let mut client = Client::open(&server, revision, json!({})).await;
        let cut = call(&mut client, "l_tail").await;
        assert!(uri(&cut).starts_with("cut-result://l/"), "{cut}");
        let whole = read(&mut client, &uri(&cut)).await["result"].clone();
        assert_eq!(
            (&whole["contents"][0]["text"], &whole["contents"][0]["uri"]),
            (&json!(long()), &json!(uri(&cut)))
        );
    }
}

/// Links and embedded resources are judged: what is kept has none of them.
#[tokio::test]
async fn nothing_hidden_is_in_what_is_kept() {
    let logs = Transform::new(logs()).max_result(ResultLimit::new(LIMIT));
    let server = Server::new("desk", "0").provider(logs).gate(|request: &GateRequest<'_>| {
        if request.name().contains("secret") { Decision::Hide } else { Decision::Allow }
    });
    let mut client = Client::open(&server, R5, json!({})).await;
    let cut = call(&mut client, "parts").await;
    assert!(!cut.to_string().contains("secret"), "{cut}");
    let kinds: Vec<_> =
        cut["content"].as_array().unwrap().iter().map(|block| block["type"].clone()).collect();
    assert_eq!(
        kinds,
        ["resource_link", "resource_link", "text", "text", "text", "resource_link"],
        "links fit; an embedded resource becomes one: {cut}"
    );
    let whole = read(&mut client, &uri(&cut)).await;
    assert!(!whole.to_string().contains("secret"), "{whole}");
    let contents = whole["result"]["contents"].as_array().unwrap();
    assert_eq!(contents[0]["text"], "first");
    assert_eq!(
        (&contents[1]["mimeType"], contents[1]["blob"].as_str().unwrap().len()),
        (&json!("image/png"), 4000)
    );
    assert_eq!((contents[2]["text"].as_str().unwrap(), &contents[3]["text"]), (&*long(), &json!("last")));
}

#[tokio::test(start_paused = true)]
async fn what_is_kept_expires_and_is_bounded() {
    let limit = ResultLimit::new(LIMIT).lifetime(Duration::from_secs(60)).max_kept(100_000, 200_000);
    let server = Server::new("desk", "0").provider(Transform::new(logs()).max_result(limit.clone()));
    let mut client = Client::open(&server, R5, json!({})).await;
    let cut = call(&mut client, "tail").await;
    tokio::time::advance(Duration::from_secs(59)).await;
    assert!(read(&mut client, &uri(&cut)).await["result"].is_object());
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(read(&mut client, &uri(&cut)).await["error"]["code"], not_found(&client));
    let first = call(&mut client, "tail").await;
    for _ in 0..10 {
        call(&mut client, "tail").await;
    }
    assert_eq!(
        read(&mut client, &uri(&first)).await["error"]["code"],
        not_found(&client),
        "others came later"
    );
    let kept = format!("{limit:?}");
    let bytes: usize = kept.split("kept_bytes: ").nth(1).unwrap().split(',').next().unwrap().parse().unwrap();
    assert!(bytes > 50_000 && bytes <= 100_000, "{kept}");
    // A result that nobody may keep is cut all the same.
    let small = ResultLimit::new(LIMIT).max_kept(5000, 5000);
    let server = Server::new("desk", "0").provider(Transform::new(logs()).max_result(small));
    let mut client = Client::open(&server, R5, json!({})).await;
    let cut = call(&mut client, "tail").await;
    assert!(cut.to_string().contains("The rest is lost") && cut.to_string().len() < 2 * LIMIT, "{cut}");
}

/// It does not change, so nobody is notified: a client that watches all that it reads must not fail.
#[tokio::test]
async fn what_is_kept_can_be_watched_by_its_caller_alone() {
    let set = json!({"rules": [{"tools": ["*"], "decision": "allow"}]});
    let rules = || Rules::new(serde_json::from_value(set.clone()).unwrap()).unwrap();
    let limited = || Transform::new(logs()).max_result(ResultLimit::new(LIMIT));
    // The rules are those of the server of the connection, or of one that is mounted in it.
    let mounted = Server::new("inner", "0").provider(limited()).gate(rules());
    let servers = [
        Server::new("desk", "0").provider(limited()).gate(rules()),
        Server::new("desk", "0").provider(mounted),
    ];
    for (server, revision) in servers.iter().flat_map(|server| [(server, R4), (server, R5)]) {
        let open = async |name: &str| {
            let caller = Caller::new().principal(name);
            Client::over(Raw::known(server, caller), revision, json!({})).await
        };
        let mut ann = open("ann").await;
        let cut = uri(&call(&mut ann, "tail").await);
        for (name, is_granted) in [("ann", true), ("bob", false)] {
            let mut client = open(name).await;
            if revision == R4 {
                let answer = client.call("resources/subscribe", json!({"uri": cut})).await;
                assert_eq!(answer.get("result").is_some(), is_granted, "{name}: {answer}");
                continue;
            }
            let filter = json!({"notifications": {"resourceSubscriptions": [cut]}});
            client.send("subscriptions/listen", filter).await;
            let granted = client.receive().await["params"]["notifications"]["resourceSubscriptions"].clone();
            let expected = if is_granted { json!([cut]) } else { json!([]) };
            assert_eq!(granted, expected, "{name}");
        }
    }
}
