//! Tokens that are bound to a key of the client: whoever steals one has nothing.

use std::{sync::Arc, time::Duration};

use pintle_oauth::{
    client::MemoryStore,
    server::{Introspection, Jwt, Registered},
};

use crate::support::notes::{ERAS, Notes, STATELESS, count, not_accepted};

/// Tokens are bound where that is asked for, with a nonce that clients have to be told first.
fn notes() -> Notes {
    let notes = Notes::protected(
        |login, hosts| Jwt::new(login).unwrap().web(hosts),
        |protected| protected.dpop_only(),
    );
    notes.login.bind_tokens("n0nce");
    notes
}

#[tokio::test]
async fn each_request_goes_with_a_proof_in_both_eras() {
    for era in ERAS {
        let notes = notes();
        let server = notes.connect_as(&notes.oauth().dpop(), era).await.unwrap();
        assert_eq!(server.call_tool("read", ()).await.unwrap().text(), "read for alice");
        assert_eq!(server.call_tool("read", ()).await.unwrap().text(), "read for alice");
        let asked = notes.asked();
        assert_eq!(count(&asked, "POST /token (authorization_code): 400 use_dpop_nonce"), 1, "{asked:#?}");
        assert_eq!(count(&asked, "POST /token (authorization_code): 200"), 1, "{asked:#?}");
    }
}

#[tokio::test]
async fn a_stolen_one_is_not_accepted_without_the_key() {
    let notes = notes();
    notes.connect_as(&notes.oauth().dpop(), STATELESS).await.unwrap();
    let stolen = notes.login.issued().pop().unwrap();
    let http = notes.http().bearer(stolen).unwrap();
    let error = notes.connect_by(http, STATELESS).await.unwrap_err().to_string();
    let why = "it is bound to a DPoP key; send it as `Authorization: DPoP` with a proof";
    assert_eq!(error, not_accepted(why));
    assert!(notes.ran().is_empty());
}

#[tokio::test]
async fn one_that_is_not_bound_is_not_accepted_where_that_is_wanted() {
    let notes = notes();
    let error = notes.connect(STATELESS).await.unwrap_err().to_string();
    assert_eq!(error, not_accepted("it is not bound to a DPoP key"));
    assert!(notes.ran().is_empty());
}

/// Tokens are bound and can be revoked.
fn revocable() -> Notes {
    let notes = Notes::protected(
        |login, hosts| {
            let us = Registered::new(login, "notes").secret("s3cret");
            Introspection::new(us).unwrap().cache_for(Duration::ZERO).web(hosts)
        },
        |protected| protected.dpop_only(),
    );
    notes.login.opaque();
    notes.login.add_client_with_secret("notes", "s3cret");
    notes.login.bind_tokens("n0nce");
    notes
}

/// The token requests of clients.
fn token_requests(notes: &Notes) -> Vec<String> {
    notes.asked().into_iter().filter(|line| line.starts_with("POST /token")).collect()
}

#[tokio::test]
async fn tokens_of_another_process_are_used_with_the_key_that_they_are_bound_to() {
    let notes = revocable();
    let store = Arc::new(MemoryStore::new());
    let connect =
        async || notes.connect_as(&notes.oauth().dpop().store(store.clone()), STATELESS).await.unwrap();
    let (one, other) = (connect().await, connect().await);
    notes.login.revoke_access();
    notes.login.revoke_refresh();
    // This one has to log in again, with a new key.
    one.call_tool("read", ()).await.unwrap();
    notes.asked();
    other.call_tool("read", ()).await.unwrap();
    assert_eq!(token_requests(&notes), [""; 0]);
}

#[tokio::test]
async fn stale_tokens_of_another_process_are_refreshed_with_the_key_that_they_are_bound_to() {
    let notes = revocable();
    let store = Arc::new(MemoryStore::new());
    let connect =
        async || notes.connect_as(&notes.oauth().dpop().store(store.clone()), STATELESS).await.unwrap();
    let (one, other) = (connect().await, connect().await);
    notes.login.revoke_access();
    notes.login.revoke_refresh();
    notes.hurry();
    one.call_tool("read", ()).await.unwrap();
    notes.login.clear_faults();
    notes.login.revoke_access();
    notes.asked();
    other.call_tool("read", ()).await.unwrap();
    let refused = "POST /token (refresh_token): 400 use_dpop_nonce";
    assert_eq!(token_requests(&notes), [refused, "POST /token (refresh_token): 200"]);
}

#[tokio::test]
async fn a_key_that_is_still_in_use_keeps_its_nonces() {
    let notes = revocable();
    let store = Arc::new(MemoryStore::new());
    let connect =
        async || notes.connect_as(&notes.oauth().dpop().store(store.clone()), STATELESS).await.unwrap();
    let (one, other) = (connect().await, connect().await);
    notes.login.revoke_access();
    other.call_tool("read", ()).await.unwrap();
    one.call_tool("read", ()).await.unwrap();
    notes.login.revoke_access();
    notes.asked();
    one.call_tool("read", ()).await.unwrap();
    assert_eq!(token_requests(&notes), ["POST /token (refresh_token): 200"]);
}
