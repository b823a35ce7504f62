//! What belongs to a principal: its sessions, the states of its calls. And what of its token is to be seen.

use std::fmt::Write as _;

use pintle_oauth::server::Checked;
use serde_json::{Value, json};

use crate::vault::{Vault, plain, protected};

const ANN: &str = "ann-app-vault~enter.vault~all";

#[tokio::test]
async fn a_session_is_its_openers_alone() {
    let vault = Vault::new();
    let session = vault.open(ANN, "2025-11-25").await;
    for other in ["bob-app-vault~enter", "ann-another-vault~enter"] {
        let answer = session.call(other, "look").await;
        assert_eq!(answer.status, 404, "{other}");
        let end = http::Request::delete("/mcp")
            .header("host", "mcp.test")
            .header("authorization", format!("Bearer {other}"))
            .header("mcp-session-id", &session.id)
            .header("mcp-protocol-version", "2025-11-25");
        assert_eq!(vault.send(end.body(String::new()).unwrap()).await.status, 404);
    }
    // A session is no way around a token.
    let bare = plain(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string());
    assert_eq!(vault.send(bare.header("mcp-session-id", &session.id).done()).await.status, 401);
    // Another token of the same user with the same client is as good.
    assert_eq!(session.call("ann-app-vault~enter.fresh", "look").await.status, 200);
}

#[tokio::test]
async fn the_same_subject_of_another_issuer_is_somebody_else() {
    let theirs = Checked::new("https://other.test", |token: pintle_oauth::server::Token| async move {
        let subject = token.reveal().to_owned();
        let principal = pintle_oauth::server::Principal::new("https://other.test", subject);
        Ok(principal.client("app").granted(["vault:enter"]))
    });
    // The first takes what is bad for it too, so each gets a server with the same sessions.
    let ours = Vault::new();
    let session = ours.open("ann-app-vault~enter", "2025-11-25").await;
    let protected = pintle_oauth::server::Protected::new("https://mcp.test/mcp", theirs).unwrap();
    let both = Vault::of(&protected, |_| ours.http.clone());
    let other = crate::vault::Session { vault: both, ..session };
    assert_eq!(other.call("ann", "look").await.status, 404);
}

#[tokio::test]
async fn a_sealed_state_is_its_askers_alone() {
    let vault = Vault::new();
    let asked = vault.call(ANN, "tools/call", json!({"name": "ask"})).await.json();
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let answered = |state: &Value| {
        json!({"name": "ask", "requestState": state,
            "inputResponses": {"sure": {"action": "accept", "content": {"sure": true}}}})
    };
    let state = &asked["result"]["requestState"];
    let stolen = vault.call("bob-app-vault~enter", "tools/call", answered(state)).await;
    assert_eq!(stolen.json()["error"]["code"], -32602, "{stolen:?}");
    let own = vault.call(ANN, "tools/call", answered(state)).await;
    assert_eq!(own.json()["result"]["resultType"], "complete", "{own:?}");
}

#[tokio::test]
async fn nobody_inside_gets_to_see_a_token() {
    let vault = Vault::new();
    let answer = vault.call(ANN, "tools/call", json!({"name": "look"})).await;
    assert_eq!(answer.status, 200);
    let session = vault.open(ANN, "2025-11-25").await;
    session.call(ANN, "look").await;
    let called = vault.called.lock().unwrap();
    assert_eq!(called.len(), 2);
    for seen in called.iter() {
        assert!(seen.contains("content-type") && !seen.contains("authorization"), "{seen}");
    }
}

#[tokio::test]
async fn nothing_prints_a_token() {
    let token = pintle_oauth::server::Token::new("s3cret-app-", "https://mcp.test/mcp");
    let mut shown = format!("{token:?} {:?} {:?}", protected(), Vault::new().service);
    write!(shown, " {:?}", crate::vault::tokens()).unwrap();
    assert!(shown.contains("https://mcp.test/mcp") && !shown.contains("s3cret"), "{shown}");
    for bad in ["s3cret", "s3cret-app-x", "s3cret.x.y"] {
        let answer = Vault::new().call(bad, "tools/list", json!({})).await;
        assert!(!format!("{answer:?}").contains("s3cret"), "{answer:?}");
    }
}
