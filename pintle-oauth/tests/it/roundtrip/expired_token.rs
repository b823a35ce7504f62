//! Tokens that are not good any more, whether the client knows that or not.

use std::{sync::Arc, time::Duration};

use pintle::Connection;
use pintle_oauth::{
    client::MemoryStore,
    testing::{Endpoint, Fault},
};

use crate::support::notes::{ERAS, Notes, STATELESS, count, not_accepted, not_authorized};

const REFRESH: &str = "POST /token (refresh_token): 200";
const REFUSED: &str = "POST /token (refresh_token): 400 invalid_grant";
const HOURS: Duration = Duration::from_secs(2 * 3600);

async fn ten_calls(server: &Arc<Connection>) -> Vec<String> {
    let call = |_| {
        let server = server.clone();
        tokio::spawn(async move { server.call_tool("read", ()).await })
    };
    let mut answers = Vec::new();
    for call in (0..10).map(call).collect::<Vec<_>>() {
        answers.push(match call.await.unwrap() {
            Ok(done) => done.text(),
            Err(error) => error.to_string(),
        });
    }
    answers
}

#[tokio::test]
async fn ten_calls_at_once_with_an_expired_token_are_one_refresh() {
    for era in ERAS {
        let notes = Notes::new();
        notes.hurry();
        let server = Arc::new(notes.connect(era).await.unwrap());
        notes.login.clear_faults();
        notes.asked();
        // All ten have come by the time that the first of them gets anywhere.
        let hold = notes.login.hold(Endpoint::Token);
        let calls = tokio::spawn(async move { ten_calls(&server).await });
        hold.reached(1).await;
        hold.release();
        assert_eq!(calls.await.unwrap(), ["read for alice"; 10]);
        assert_eq!(notes.asked(), [REFRESH], "{era}");
        assert_eq!(notes.ran().len(), 10);
    }
}

#[tokio::test]
async fn ten_calls_whose_token_the_server_refuses_are_one_refresh() {
    for era in ERAS {
        let notes = Notes::asking();
        notes.login.lifetime(Duration::from_secs(30));
        let server = Arc::new(notes.connect(era).await.unwrap());
        notes.login.advance(Duration::from_secs(31));
        notes.asked();
        assert_eq!(ten_calls(&server).await, ["read for alice"; 10]);
        let asked = notes.asked();
        assert_eq!(count(&asked, REFRESH), 1, "{era}: {asked:#?}");
        assert!(!asked.iter().any(|line| line.contains("/authorize")), "{asked:#?}");
        assert_eq!(notes.ran().len(), 10);
    }
}

#[tokio::test]
async fn a_token_that_was_good_in_the_last_run_is_replaced_in_this_one() {
    let notes = Notes::new();
    let store = Arc::new(MemoryStore::new());
    // To everyone else, what is given out now has expired an hour ago.
    notes.login.set_back(HOURS);
    let oauth = || notes.oauth().store(store.clone());
    let error = notes.connect_as(&oauth(), STATELESS).await.unwrap_err().to_string();
    assert_eq!(error, not_accepted("it has expired"));
    assert!(notes.ran().is_empty());
    notes.login.advance(HOURS);
    notes.asked();
    let server = notes.connect_as(&oauth(), STATELESS).await.unwrap();
    server.call_tool("read", ()).await.unwrap();
    let asked = notes.asked();
    assert_eq!(count(&asked, REFRESH), 1, "{asked:#?}");
    assert!(!asked.iter().any(|line| line.contains("/authorize")), "{asked:#?}");
}

#[tokio::test]
async fn each_refresh_token_is_used_once_and_the_next_one_is_kept() {
    let notes = Notes::asking();
    let server = notes.connect(STATELESS).await.unwrap();
    for _ in 0..3 {
        notes.login.revoke_access();
        server.call_tool("read", ()).await.unwrap();
    }
    let used: Vec<_> = notes
        .login
        .log()
        .iter()
        .filter_map(|asked| asked.parameter("refresh_token").map(str::to_owned))
        .collect();
    let mut different = used.clone();
    different.dedup();
    assert_eq!((used.len(), different.len()), (3, 3), "{used:?}");
}

#[tokio::test]
async fn a_revoked_refresh_token_is_a_new_login_without_a_new_registration() {
    for era in ERAS {
        let notes = Notes::asking();
        let server = notes.connect(era).await.unwrap();
        notes.login.revoke_access();
        notes.login.revoke_refresh();
        notes.asked();
        assert_eq!(server.call_tool("read", ()).await.unwrap().text(), "read for alice");
        let asked = notes.asked();
        assert_eq!(count(&asked, REFUSED), 1, "{era}: {asked:#?}");
        assert_eq!(count(&asked, "GET /authorize (notes:read): 302"), 1, "{asked:#?}");
        assert!(!asked.iter().any(|line| line.contains("/register")), "{asked:#?}");
        assert_eq!(notes.ran(), ["read for alice"]);
    }
}

#[tokio::test]
async fn a_client_that_the_authorization_server_has_forgotten_is_registered_again() {
    let notes = Notes::asking();
    let server = notes.connect(STATELESS).await.unwrap();
    notes.login.revoke_access();
    notes.login.forget_clients();
    notes.login.add_client_with_secret("notes", "s3cret");
    notes.asked();
    assert_eq!(server.call_tool("read", ()).await.unwrap().text(), "read for alice");
    let asked = notes.asked();
    assert_eq!(count(&asked, "POST /token (refresh_token): 401 invalid_client"), 1, "{asked:#?}");
    assert_eq!(count(&asked, "POST /register: 201"), 1, "{asked:#?}");
    assert_eq!(count(&asked, "GET /authorize (notes:read): 302"), 1, "{asked:#?}");
}

#[tokio::test]
async fn whoever_logs_in_next_is_who_is_served_and_gets_no_session_of_somebody_else() {
    for era in ERAS {
        let notes = Notes::asking();
        let server = notes.connect(era).await.unwrap();
        assert_eq!(server.call_tool("read", ()).await.unwrap().text(), "read for alice");
        notes.login.revoke_access();
        notes.login.revoke_refresh();
        notes.login.subject("bob");
        assert_eq!(server.call_tool("read", ()).await.unwrap().text(), "read for bob", "{era}");
        assert_eq!(notes.ran(), ["read for alice", "read for bob"]);
    }
}

#[tokio::test]
async fn a_user_who_does_not_log_in_again_gets_the_reason_and_nothing_runs() {
    let notes = Notes::asking();
    let server = notes.connect(STATELESS).await.unwrap();
    notes.login.revoke_access();
    notes.login.revoke_refresh();
    notes.login.fault(Fault::Denied);
    let error = server.call_tool("read", ()).await.unwrap_err().to_string();
    assert_eq!(error, not_authorized("the login was refused: `access_denied`: the user denied consent"));
    assert!(notes.ran().is_empty());
    notes.login.clear_faults();
    server.call_tool("read", ()).await.unwrap();
}

#[tokio::test]
async fn a_refresh_that_gets_lost_is_not_a_new_login() {
    let notes = Notes::asking();
    let server = notes.connect(STATELESS).await.unwrap();
    notes.login.revoke_access();
    notes.login.fault(Fault::CutOff(Endpoint::Token));
    notes.asked();
    let error = server.call_tool("read", ()).await.unwrap_err().to_string();
    let lost =
        "the connection failed: `https://login.test/token` could not be reached: the connection was closed";
    assert_eq!(error, not_authorized(lost));
    let asked = notes.asked();
    assert_eq!(count(&asked, "POST /token (refresh_token): cut off"), 1, "{asked:#?}");
    assert!(!asked.iter().any(|line| line.contains("/authorize")), "{asked:#?}");
    assert!(notes.ran().is_empty());
}
