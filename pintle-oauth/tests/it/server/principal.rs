//! What belongs to a principal: its sessions, the states of its calls. And what of its token is to be seen.

use std::fmt::Write as _;

use pintle_oauth::server::Checked;
use serde_json::{Value, json};

use crate::support::vault::{Vault, plain, protected};

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
    let other = crate::support::vault::Session { vault: both, ..session };
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
    write!(shown, " {:?}", crate::support::vault::tokens()).unwrap();
    assert!(shown.contains("https://mcp.test/mcp") && !shown.contains("s3cret"), "{shown}");
    for bad in ["s3cret", "s3cret-app-x", "s3cret.x.y"] {
        let answer = Vault::new().call(bad, "tools/list", json!({})).await;
        assert!(!format!("{answer:?}").contains("s3cret"), "{answer:?}");
    }
}

#[tokio::test]
async fn a_bound_token_needs_a_proof_and_the_body_that_was_signed() {
    use base64::{
        Engine,
        engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
    };
    use ring::{
        digest::{SHA256, digest},
        rand::SystemRandom,
        signature::{Ed25519KeyPair, KeyPair},
    };

    let der = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
    let key = Ed25519KeyPair::from_pkcs8(der.as_ref()).unwrap();
    let x = URL_SAFE_NO_PAD.encode(key.public_key().as_ref());
    let sha = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(digest(&SHA256, bytes));
    let thumbprint = sha(format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#).as_bytes());
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let proof = |jti: &str, body: &str| {
        let digest = STANDARD.encode(digest(&SHA256, body.as_bytes()));
        let header =
            json!({"typ": "dpop+jwt", "alg": "EdDSA", "jwk": {"kty": "OKP", "crv": "Ed25519", "x": x}});
        let claims = json!({"jti": jti, "htm": "POST", "htu": "https://mcp.test/mcp", "iat": now,
            "ath": sha(b"t0ken"), "content_digest": format!("sha-256=:{digest}:")});
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&header), part(&claims));
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(key.sign(signed.as_bytes())))
    };
    let bound = Checked::new("https://as.test", move |_: pintle_oauth::server::Token| {
        let principal = pintle_oauth::server::Principal::new("https://as.test", "ann").bound_to(&thumbprint);
        std::future::ready(Ok(principal))
    });
    let protected = pintle_oauth::server::Protected::new("https://mcp.test/mcp", bound).unwrap();
    let vault = Vault::of(&protected, |http| http);
    let ask = |scheme: &str| {
        let asked = crate::support::vault::stateless("tools/call", json!({"name": "look"}));
        asked.header("authorization", format!("{scheme} t0ken"))
    };
    let body = ask("DPoP").done().into_body();

    let answer = vault.send(ask("Bearer").done()).await;
    assert_eq!(answer.status, 401);
    assert!(answer.text.contains("send it as `Authorization: DPoP` with a proof"), "{}", answer.text);
    let answer = vault.send(ask("DPoP").done()).await;
    assert!(answer.challenge().starts_with(r#"DPoP error="invalid_dpop_proof""#), "{}", answer.challenge());

    let answer = vault.send(ask("DPoP").header("dpop", proof("1", &body)).done()).await;
    assert_eq!(answer.json()["result"]["content"][0]["text"], "ann of -", "{answer:?}");
    let answer = vault.send(ask("DPoP").header("dpop", proof("1", &body)).done()).await;
    assert!(answer.text.contains("was used before"), "{}", answer.text);
    let answer = vault.send(ask("DPoP").header("dpop", proof("2", "another body")).done()).await;
    assert_eq!(answer.status, 401);
    assert!(answer.challenge().contains("the proof is for another body"), "{}", answer.challenge());
    assert_eq!(vault.called.lock().unwrap().len(), 1, "and none of them saw the proof");
    assert!(!vault.called.lock().unwrap()[0].contains("dpop"));

    // Where all have to be bound, one that is not is worth nothing.
    let vault = Vault::of(&crate::support::vault::protected().dpop_only(), |http| http);
    let answer = vault.call(ANN, "tools/list", json!({})).await;
    assert!(
        answer.challenge().starts_with(r#"DPoP error="invalid_token", error_description="it is not bound"#)
    );
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_with_the_token_that_it_was_opened_with() {
    let vault = Vault::new();
    let began = tokio::time::Instant::now();
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    let answer = vault.call("brief-app-vault~enter", "subscriptions/listen", wanted).await;
    assert_eq!(answer.json()["result"]["resultType"], "complete", "{answer:?}");
    let lasted = began.elapsed().as_secs();
    assert!((590..=600).contains(&lasted), "{lasted}");

    let session = vault.open("brief-app-vault~enter", "2025-11-25").await;
    let get = http::Request::get("/mcp")
        .header("host", "mcp.test")
        .header("accept", "text/event-stream")
        .header("authorization", "Bearer brief-app-vault~enter")
        .header("mcp-session-id", &session.id)
        .header("mcp-protocol-version", "2025-11-25");
    let began = tokio::time::Instant::now();
    let answer = vault.send(get.body(String::new()).unwrap()).await;
    assert_eq!(answer.status, 200);
    let lasted = began.elapsed().as_secs();
    assert!((590..=600).contains(&lasted), "{lasted}");
    assert_eq!(session.call("brief-app-vault~enter", "look").await.status, 200, "the session is still there");
}
