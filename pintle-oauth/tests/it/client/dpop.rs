use std::sync::Arc;

use pintle_oauth::{
    client::MemoryStore,
    testing::{Endpoint, Fault},
};
use serde_json::json;

use crate::support::world::World;

#[tokio::test]
async fn a_token_that_is_not_bound_though_that_was_asked_for_is_used_as_it_is() {
    let world = World::new();
    world.login.say("dpop_signing_alg_values_supported", json!(["ES256"]));
    world.connect(&world.login().dpop()).await.unwrap();
    assert_eq!(world.log()[6], "server/discover with access-3");
}

#[tokio::test]
async fn a_bound_token_goes_with_a_proof_and_the_nonce_that_is_asked_for() {
    let world = World::new();
    world.login.bind_tokens("n0nce");
    world.change(|state| state.nonce = Some("n0nce".into()));
    let server = world.connect(&world.login().dpop()).await.unwrap();
    server.call_tool("t", ()).await.unwrap();
    let log = world.log();
    // Both servers say once what they want to see.
    assert_eq!(log.iter().filter(|line| line.contains("without the nonce")).count(), 1, "{log:#?}");
    assert_eq!(log.iter().filter(|line| line.starts_with("token")).count(), 2, "{log:#?}");
    assert_eq!(log.iter().filter(|line| line.starts_with("login")).count(), 1, "{log:#?}");
    assert_eq!(log.last().unwrap(), "tools/call with access-3 and a proof");
}

#[tokio::test]
async fn a_revoked_token_is_not_sent_again_because_the_refusal_has_a_new_nonce() {
    let world = World::new();
    world.login.bind_tokens("n0nce");
    world.change(|state| state.nonce = Some("n0nce".into()));
    let server = world.connect(&world.login().dpop()).await.unwrap();
    world.login.revoke_access();
    world.change(|state| state.next_nonce = Some("other".into()));
    world.log();
    server.call_tool("t", ()).await.unwrap();
    let log = world.log();
    let calls: Vec<_> = log.iter().filter(|line| line.starts_with("tools/call")).collect();
    assert_eq!(calls.len(), 2, "{log:#?}");
    assert!(calls.iter().all(|line| line.ends_with(" and a proof")) && calls[0] != calls[1], "{log:#?}");
}

#[tokio::test]
async fn the_next_run_uses_a_bound_token_with_the_key_that_is_stored_with_it() {
    let world = World::new();
    world.login.bind_tokens("n0nce");
    world.change(|state| state.nonce = Some("n0nce".into()));
    let store = Arc::new(MemoryStore::new());
    world.connect(&world.login().dpop().store(store.clone())).await.unwrap();
    world.log();
    let server = world.connect(&world.login().dpop().store(store)).await.unwrap();
    server.call_tool("t", ()).await.unwrap();
    let log = world.log();
    assert!(!log.iter().any(|line| line.starts_with("login") || line.starts_with("token")), "{log:#?}");
    assert_eq!(log.last().unwrap(), "tools/call with access-3 and a proof");
}

#[tokio::test]
async fn who_did_not_ask_for_it_gets_no_bound_token() {
    let world = World::new();
    world.login.fault(Fault::answer(Endpoint::Token, "token_type", "DPoP"));
    let error = world.connect(&world.login()).await.unwrap_err().to_string();
    assert!(error.contains("issued a token of a type that was not requested"), "{error}");
}
