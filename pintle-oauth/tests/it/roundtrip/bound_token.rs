//! Tokens that are bound to a key of the client: whoever steals one has nothing.

use pintle_oauth::server::Jwt;

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
