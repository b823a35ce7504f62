//! A client that has never been there logs in and is let in.

use std::{sync::Arc, time::Duration};

use pintle::client::http::Proxy;
use pintle_oauth::{
    client::{Network, OAuth, Paste, Registered, Visit as _},
    testing::{Endpoint, Fault, User},
};

use crate::support::notes::{ERAS, Notes, STATELESS, URL, answered, not_authorized};

/// All that is asked of the authorization server: by the client until it has a token, then by the server, which looks for
/// the keys.
const ASKED: [&str; 6] = [
    "GET /.well-known/oauth-authorization-server: 200",
    "POST /register: 201",
    "GET /authorize (notes:read): 302",
    "POST /token (authorization_code): 200",
    "GET /.well-known/oauth-authorization-server: 200",
    "GET /jwks: 200",
];

#[tokio::test]
async fn the_whole_conversation() {
    let notes = Notes::new();
    let server = notes.connect(STATELESS).await.unwrap();
    assert_eq!(server.call_tool("read", ()).await.unwrap().text(), "read for alice");
    assert_eq!(
        notes.hosts.log(),
        [
            "POST https://notes.test/mcp (server/discover): 401",
            "GET https://notes.test/.well-known/oauth-protected-resource/mcp: 200",
            "GET https://login.test/.well-known/oauth-authorization-server: 200",
            "POST https://login.test/register: 201",
            "GET https://login.test/authorize: 302",
            "POST https://login.test/token: 200",
            "GET https://login.test/.well-known/oauth-authorization-server: 200",
            "GET https://login.test/jwks: 200",
            "POST https://notes.test/mcp (server/discover): 200",
            "POST https://notes.test/mcp (tools/call): 200",
        ]
    );
    let asked = notes.login.log();
    assert_eq!(asked, ASKED);
    assert_eq!(asked[1].parameter("application_type"), Some("native"));
    for at in [2, 3] {
        assert_eq!(asked[at].parameter("resource"), Some(URL), "{}", asked[at]);
        assert_eq!(asked[at].client(), Some("client-1"));
    }
    assert_eq!(asked[2].parameter("code_challenge_method"), Some("S256"));
    assert_eq!(notes.ran(), ["read for alice"]);
}

#[tokio::test]
async fn in_both_eras_the_same_is_asked() {
    for era in ERAS {
        let notes = Notes::new();
        let server = notes.connect(era).await.unwrap();
        assert_eq!(server.revision().to_string(), era);
        assert_eq!(server.call_tool("read", ()).await.unwrap().text(), "read for alice");
        assert_eq!(notes.login.log(), ASKED, "{era}");
        assert_eq!(notes.ran(), ["read for alice"]);
    }
}

#[tokio::test]
async fn over_sockets_too() {
    for era in ERAS {
        let notes = Notes::listening().await;
        let server = notes.connect(era).await.unwrap();
        assert_eq!(server.call_tool("read", ()).await.unwrap().text(), "read for alice");
        assert_eq!(notes.login.log(), ASKED, "{era}");
        assert_eq!(notes.ran(), ["read for alice"]);
    }
}

#[tokio::test]
async fn a_server_that_asks_about_tokens_asks_about_each_call() {
    let notes = Notes::asking();
    let server = notes.connect(STATELESS).await.unwrap();
    server.call_tool("read", ()).await.unwrap();
    assert_eq!(
        notes.asked()[4..],
        [
            "GET /.well-known/oauth-authorization-server: 200",
            "POST /introspect: 200",
            "POST /introspect: 200"
        ]
    );
}

#[tokio::test]
async fn a_client_that_cannot_log_in_gets_that_as_the_reason() {
    let notes = Notes::new();
    let error = notes.connect_by(notes.http(), STATELESS).await.unwrap_err().to_string();
    let text = "this server requires a token; see `WWW-Authenticate`";
    assert_eq!(error, answered(401, text, "authorize with `Http::bearer` or `Http::auth`"));
    assert!(notes.login.log().is_empty());
    assert!(notes.ran().is_empty());
}

#[tokio::test]
async fn an_authorization_server_that_is_broken_at_one_address_is_found_at_the_next() {
    let notes = Notes::new();
    notes.login.fault_times(1, Fault::Status(Endpoint::Metadata, 502));
    notes.connect(STATELESS).await.unwrap();
    let asked = notes.asked();
    assert_eq!(asked[0], "GET /.well-known/oauth-authorization-server: 502");
    assert_eq!(asked[1], "GET /.well-known/openid-configuration: 200");
    assert_eq!(asked[2], "POST /register: 201");
}

#[tokio::test]
async fn an_authorization_server_that_is_broken_everywhere_is_not_taken_for_one_that_is_not_there() {
    let notes = Notes::new();
    notes.login.fault(Fault::Status(Endpoint::OpenidConfiguration, 404));
    let error = notes.refused(Fault::Status(Endpoint::Metadata, 503)).await;
    assert_eq!(
        error,
        not_authorized(
            "the connection failed: `https://login.test/.well-known/oauth-authorization-server` returned status 503; \
             try again later"
        )
    );
}

#[tokio::test(start_paused = true)]
async fn a_user_may_take_their_time() {
    for era in ERAS {
        let notes = Arc::new(Notes::new());
        let hold = notes.login.hold(Endpoint::Authorize);
        let connecting = tokio::spawn({
            let notes = notes.clone();
            async move { notes.connect(era).await.map(drop) }
        });
        hold.reached(1).await;
        tokio::time::advance(Duration::from_secs(3600)).await;
        hold.release();
        connecting.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_user_who_says_no_is_not_let_in() {
    let notes = Notes::new();
    let error = notes.refused(Fault::Denied).await;
    assert_eq!(error, not_authorized("the login was refused: `access_denied`: the user denied consent"));
    assert_eq!(notes.asked().last().unwrap(), "GET /authorize (notes:read): 302");
    // They are asked again when they try again.
    notes.connect(STATELESS).await.unwrap();
}

#[tokio::test]
async fn a_program_is_let_in_as_itself() {
    let notes = Notes::listening().await;
    notes.login.add_client_with_secret("bot", "s3cret");
    let bot = OAuth::machine(Registered::new(notes.login.issuer(), "bot").secret("s3cret"))
        .web(Network::with_proxy(Proxy::none()));
    let server = notes.connect_as(&bot, STATELESS).await.unwrap();
    assert_eq!(server.call_tool("read", ()).await.unwrap().text(), "read for bot");
    assert_eq!(notes.asked()[1], "POST /token (client_credentials): 200");
    let stranger = OAuth::machine(Registered::new(notes.login.issuer(), "bot").secret("guessed"))
        .web(Network::with_proxy(Proxy::none()));
    let error = notes.connect_as(&stranger, STATELESS).await.unwrap_err().to_string();
    assert!(
        error.ends_with("refused to issue a token: `invalid_client`: the client's secret is wrong"),
        "{error}"
    );
}

#[tokio::test]
async fn an_address_that_the_user_pastes_is_a_login() {
    let notes = Notes::new();
    let hosts = notes.hosts.clone();
    let browser = move |url: String| {
        let user = User::on(hosts.clone());
        async move { Ok(format!("  {}\n", user.ask(&url).await?)) }
    };
    let paste = Paste::new("http://127.0.0.1:7777/callback", browser);
    let oauth = OAuth::login("App", paste).web(notes.hosts.clone());
    let connection = notes.connect_as(&oauth, STATELESS).await.unwrap();
    connection.call_tool("read", ()).await.unwrap();

    let mistaken = Paste::new("http://127.0.0.1:7777/callback", |_| async { Ok("what now?".to_owned()) });
    let oauth = OAuth::login("App", mistaken).web(notes.hosts.clone());
    let error = notes.connect_as(&oauth, STATELESS).await.unwrap_err().to_string();
    assert!(error.contains("authoriz"), "{error}");
}
