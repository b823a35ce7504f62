//! A tool that needs more than was granted: the user is asked for that too, before anything of the tool has run.

use crate::support::notes::{ERAS, Notes, STATELESS, count};

/// A client that has logged in and calls what it may not yet.
async fn steps_up(notes: &Notes, era: &str) {
    let server = notes.connect(era).await.unwrap();
    server.call_tool("read", ()).await.unwrap();
    assert_eq!(notes.ran(), ["read for alice"]);
    notes.asked();
    assert_eq!(server.call_tool("write", ()).await.unwrap().text(), "write for alice");
    let asked = notes.asked();
    // The union of what was asked for before and what the tool needs, and the client is the same.
    assert_eq!(count(&asked, "GET /authorize (notes:read notes:write): 302"), 1, "{asked:#?}");
    assert_eq!(count(&asked, "POST /token (authorization_code): 200"), 1, "{asked:#?}");
    assert!(!asked.iter().any(|line| line.contains("/register")), "{asked:#?}");
    assert_eq!(notes.ran(), ["write for alice"], "once: it did not run until all was granted");
    // That was it: nothing more is asked for either of them.
    server.call_tool("write", ()).await.unwrap();
    server.call_tool("read", ()).await.unwrap();
    assert_eq!(notes.asked(), [""; 0]);
    // What was agreed to before is not lost by the next question, whatever the server names.
    server.call_tool("share", ()).await.unwrap();
    let asked = notes.asked();
    assert_eq!(count(&asked, "GET /authorize (notes:read notes:write notes:share): 302"), 1, "{asked:#?}");
    server.call_tool("write", ()).await.unwrap();
    assert_eq!(notes.asked(), [""; 0]);
}

#[tokio::test]
async fn a_user_is_asked_for_more_in_both_eras() {
    for era in ERAS {
        steps_up(&Notes::new(), era).await;
    }
}

#[tokio::test]
async fn over_sockets_too() {
    for era in ERAS {
        steps_up(&Notes::listening().await, era).await;
    }
}

#[tokio::test]
async fn what_the_server_says_and_what_the_client_does_about_it() {
    let notes = Notes::new();
    let server = notes.connect(STATELESS).await.unwrap();
    notes.hosts.log();
    server.call_tool("write", ()).await.unwrap();
    assert_eq!(
        notes.hosts.log(),
        [
            "POST https://notes.test/mcp (tools/call): 403",
            "GET https://notes.test/.well-known/oauth-protected-resource/mcp: 200",
            "GET https://login.test/.well-known/oauth-authorization-server: 200",
            "GET https://login.test/authorize: 302",
            "POST https://login.test/token: 200",
            "POST https://notes.test/mcp (tools/call): 200",
        ]
    );
}

#[tokio::test]
async fn a_user_who_does_not_agree_is_not_asked_again_and_again() {
    let notes = Notes::new();
    notes.login.agree_to(["notes:read"]);
    let server = notes.connect(STATELESS).await.unwrap();
    notes.asked();
    for _ in 0..3 {
        let error = server.call_tool("write", ()).await.unwrap_err().to_string();
        assert_eq!(
            error,
            "the peer returned an error: `write` needs more than the caller may: `notes:write` is required (-32600)"
        );
    }
    let asked = notes.asked();
    assert_eq!(count(&asked, "GET /authorize (notes:read notes:write): 302"), 1, "{asked:#?}");
    assert!(notes.ran().is_empty());
    // What they agreed to is good all the same.
    server.call_tool("read", ()).await.unwrap();
}

#[tokio::test]
async fn ten_calls_that_need_the_same_are_one_question_to_the_user() {
    let notes = Notes::new();
    let server = std::sync::Arc::new(notes.connect(STATELESS).await.unwrap());
    notes.asked();
    let call = |_| {
        let server = server.clone();
        tokio::spawn(async move { server.call_tool("write", ()).await.map(|done| done.text()) })
    };
    for call in (0..10).map(call).collect::<Vec<_>>() {
        assert_eq!(call.await.unwrap().unwrap(), "write for alice");
    }
    let asked = notes.asked();
    assert_eq!(count(&asked, "GET /authorize (notes:read notes:write): 302"), 1, "{asked:#?}");
    assert_eq!(notes.ran().len(), 10);
}
