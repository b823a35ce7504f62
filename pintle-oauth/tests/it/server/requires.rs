//! What single tools, prompts and resources require: before anything of a request runs, in both eras.

use serde_json::{Value, json};

use crate::support::vault::{METADATA, Vault, called};

const SAID: &str = r#"error="insufficient_scope", error_description="the token lacks a required scope""#;

fn names(list: &Value, of: &str) -> Vec<String> {
    let all = list["result"][of].as_array().unwrap();
    all.iter().map(|each| each["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn who_lacks_something_gets_all_that_is_needed() {
    let vault = Vault::new();
    let answer =
        vault.call("ann-app-vault~enter.gold~see.other", "tools/call", json!({"name": "take"})).await;
    assert_eq!(answer.status, 403);
    // Clients of this revision keep what they have: all that the call needs, and nothing else.
    assert_eq!(
        answer.challenge(),
        format!(r#"Bearer {SAID}, scope="vault:enter gold:see gold:take", resource_metadata="{METADATA}""#)
    );
    let error = json!({"code": -32600,
        "message": "`take` needs more than the caller may: `gold:see`, `gold:take` is required"});
    assert_eq!(answer.json(), json!({"jsonrpc": "2.0", "id": 1, "error": error}));
    assert!(vault.called.lock().unwrap().is_empty());

    let answer =
        vault.call("ann-app-vault~enter.gold~see.gold~take", "tools/call", json!({"name": "take"})).await;
    assert_eq!(answer.json()["result"]["content"][0]["text"], "ann of app");
    let answer = vault.call("ann-app-vault~enter.vault~all", "tools/call", json!({"name": "take"})).await;
    assert_eq!(answer.status, 200, "one scope implies others");
}

#[tokio::test]
async fn clients_that_replace_what_they_have_are_notified_of_that_too() {
    let vault = Vault::new();
    let session = vault.open("ann-app-vault~enter.other.offline_access", "2025-11-25").await;
    let answer = session.call("ann-app-vault~enter.other.offline_access", "take").await;
    assert_eq!(answer.status, 403);
    assert_eq!(
        answer.challenge(),
        format!(
            r#"Bearer {SAID}, scope="vault:enter other gold:see gold:take", resource_metadata="{METADATA}""#
        )
    );
    assert!(vault.called.lock().unwrap().is_empty());
    // The session is still there, for the same principal with more rights.
    let answer = session.call("ann-app-vault~enter.vault~all", "take").await;
    assert_eq!(answer.json()["result"]["content"][0]["text"], "ann of app");
}

#[tokio::test]
async fn a_batch_is_refused_as_a_whole() {
    let vault = Vault::new();
    let session = vault.open("ann-app-vault~enter", "2025-03-26").await;
    let both = json!([called(1, "look"), called(2, "take"), {"jsonrpc": "2.0", "id": 3, "method": "prompts/get",
        "params": {"name": "plan"}}]);
    let answer = session.send("ann-app-vault~enter", both.clone()).await;
    assert_eq!(answer.status, 403);
    let needed = "vault:enter gold:plan gold:see gold:take";
    assert!(answer.challenge().contains(&format!(r#"scope="{needed}""#)), "{}", answer.challenge());
    assert!(vault.called.lock().unwrap().is_empty(), "not even the first of it ran");
    let answer = session.send("ann-app-vault~enter.vault~all.gold~plan", both).await;
    assert_eq!(answer.status, 200);
    assert_eq!(vault.called.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn prompts_and_resources_are_like_tools() {
    let vault = Vault::new();
    let table = [
        ("prompts/get", json!({"name": "plan"}), "gold:plan"),
        ("resources/read", json!({"uri": "gold://bar"}), "gold:see"),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "plan"}, "argument": {"name": "x", "value": ""}}),
            "gold:plan",
        ),
        (
            "subscriptions/listen",
            json!({"notifications": {"resourceSubscriptions": ["gold://bar"]}}),
            "gold:see",
        ),
    ];
    for (method, params, needed) in table {
        let answer = vault.call("ann-app-vault~enter", method, params).await;
        assert_eq!(answer.status, 403, "{method}");
        assert!(answer.challenge().contains(&format!(r#"scope="vault:enter {needed}""#)), "{method}");
    }
    let session = vault.open("ann-app-vault~enter", "2025-11-25").await;
    let watch =
        json!({"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": {"uri": "gold://bar"}});
    assert_eq!(session.send("ann-app-vault~enter", watch.clone()).await.status, 403);
    assert_eq!(session.send("ann-app-vault~enter.gold~see", watch).await.status, 200);
    let read =
        vault.call("ann-app-vault~enter.gold~see", "resources/read", json!({"uri": "gold://bar"})).await;
    assert_eq!(read.json()["result"]["contents"][0]["text"], "heavy");
}

#[tokio::test]
async fn lists_show_what_can_be_asked_for_and_hide_what_is_hidden() {
    let vault = Vault::new();
    let answer = vault.call("ann-app-vault~enter", "tools/list", json!({})).await.json();
    assert_eq!(names(&answer, "tools"), ["look", "take", "ask"]);
    assert_eq!(answer["result"]["cacheScope"], "private");
    let answer = vault.call("ann-app-vault~enter.gold~secret", "tools/list", json!({})).await.json();
    assert_eq!(names(&answer, "tools"), ["look", "take", "secret", "ask"]);

    let unknown = vault.call("ann-app-vault~enter", "tools/call", json!({"name": "nothing"})).await;
    let hidden = vault.call("ann-app-vault~enter", "tools/call", json!({"name": "secret"})).await;
    assert_eq!((hidden.status, hidden.challenge()), (unknown.status, ""));
    assert_eq!(hidden.text, unknown.text.replace("nothing", "secret"));
    let session = vault.open("ann-app-vault~enter", "2025-11-25").await;
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    assert_eq!(
        names(&session.send("ann-app-vault~enter", list.clone()).await.json(), "tools"),
        ["look", "take", "ask"]
    );
    let answer = session.send("ann-app-vault~enter.gold~secret", list).await.json();
    assert_eq!(names(&answer, "tools"), ["look", "take", "secret", "ask"]);
    let answer = session.call("ann-app-vault~enter.gold~secret", "secret").await;
    assert_eq!(answer.json()["result"]["content"][0]["text"], "ann of app");
}
