//! An authorization server that signs with another key than before, or with one that it never had.

use pintle_oauth::testing::{Claims, Endpoint, Fault};

use crate::support::notes::{ERAS, Notes, STATELESS, URL, answered, count, not_accepted};

#[tokio::test]
async fn a_new_key_is_fetched_when_a_token_is_signed_with_it() {
    for era in ERAS {
        let notes = Notes::new();
        notes.hurry();
        let server = notes.connect(era).await.unwrap();
        notes.login.clear_faults();
        let old = notes.login.token(&Claims::new(URL).scopes(["notes:read"]));
        notes.login.rotate_key();
        notes.asked();
        assert_eq!(server.call_tool("read", ()).await.unwrap().text(), "read for alice");
        assert_eq!(
            notes.asked(),
            [
                "POST /token (refresh_token): 200",
                "GET /.well-known/oauth-authorization-server: 200",
                "GET /jwks: 200"
            ],
            "{era}"
        );
        // And what the old one signed is worth nothing any more.
        let http = notes.http().bearer(&old).unwrap();
        let error = notes.connect_by(http, STATELESS).await.unwrap_err().to_string();
        assert_eq!(error, not_accepted("it is signed with a key that its issuer does not have"));
    }
}

#[tokio::test]
async fn a_key_that_the_issuer_never_had_is_looked_for_once_per_token_and_a_few_times_at_most() {
    let notes = Notes::new();
    notes.connect(STATELESS).await.unwrap();
    notes.asked();
    notes.ran();
    for _ in 0..20 {
        notes.login.fault_times(1, Fault::UnknownKey);
        let forged = notes.login.token(&Claims::new(URL).scopes(["notes:read"]));
        let http = notes.http().bearer(&forged).unwrap();
        let error = notes.connect_by(http, STATELESS).await.unwrap_err().to_string();
        assert_eq!(error, not_accepted("it is signed with a key that its issuer does not have"));
    }
    assert!(notes.ran().is_empty());
    let asked = notes.asked();
    assert_eq!(count(&asked, "GET /jwks: 200"), 5, "{asked:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_get_the_keys_says_to_come_back_later() {
    let notes = Notes::new();
    let error = notes.refused(Fault::CutOff(Endpoint::Keys)).await;
    let text = "the token cannot be checked at the moment; try again later";
    assert_eq!(error, answered(503, text, "try again later"));
    let asked = notes.asked();
    assert!(count(&asked, "GET /jwks: cut off") >= 1, "{asked:#?}");
    tokio::time::advance(std::time::Duration::from_secs(6)).await;
    notes.connect(STATELESS).await.unwrap();
}
