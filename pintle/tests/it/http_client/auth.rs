//! Authorization: a challenge in, headers out.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use http::{HeaderMap, HeaderValue, header::AUTHORIZATION};
use pintle::{
    Error, Result,
    client::http::{Auth, Challenge, Outgoing},
};

use crate::support::scripted_http::{client, script};

/// Hands out token 0, 1, 2 …: the next one whenever it is challenged.
#[derive(Clone, Default)]
struct Tokens {
    current: Arc<Mutex<u32>>,
    challenges: Arc<Mutex<Vec<String>>>,
    /// How long a user takes to log in.
    login: Duration,
}

impl Auth for Tokens {
    async fn authorize(&self, request: Outgoing<'_>) -> Result<HeaderMap> {
        assert_eq!(request.url, "http://server.test/mcp");
        assert!(request.body.is_empty() || request.body.starts_with(b"{"), "it sees what is said");
        let token = *self.current.lock().unwrap();
        let value = HeaderValue::from_str(&format!("Bearer token-{token}")).unwrap();
        Ok([(AUTHORIZATION, value)].into_iter().collect())
    }

    async fn challenged(&self, challenge: Challenge<'_>) -> Result<bool> {
        let wanted: Vec<_> = challenge.wanted().collect();
        let sent = challenge.sent[AUTHORIZATION].to_str().unwrap();
        assert!(sent.starts_with("Bearer token-"), "it is told what was refused: {sent}");
        let (method, url, status, tries) =
            (challenge.method, challenge.url, challenge.status, challenge.tries);
        self.challenges
            .lock()
            .unwrap()
            .push(format!("{method} {url} {status} {tries} {}", wanted.join("; ")));
        tokio::time::sleep(self.login).await;
        *self.current.lock().unwrap() += 1;
        Ok(true)
    }
}

struct Gone;

impl Auth for Gone {
    async fn authorize(&self, _: Outgoing<'_>) -> Result<HeaderMap> {
        Ok(HeaderMap::new())
    }

    async fn challenged(&self, _: Challenge<'_>) -> Result<bool> {
        Err(Error::Refused("the user said no".into()))
    }
}

const CHALLENGE: (&str, &str) = (
    "www-authenticate",
    r#"Bearer resource_metadata="http://server.test/.well-known/oauth-protected-resource""#,
);

#[tokio::test(start_paused = true)]
async fn a_challenge_is_met_however_long_it_takes() {
    let (mut server, http) = script();
    let tokens = Tokens { login: Duration::from_secs(300), ..Tokens::default() };
    let opening = {
        let http = http.auth(tokens.clone());
        tokio::spawn(async move { client().connect(http).await })
    };
    let asked = server.receives("server/discover").await;
    assert_eq!(asked.header("authorization"), Some("Bearer token-0"));
    asked.answer(401, &[CHALLENGE], "");
    let asked = server.receives("server/discover").await;
    assert_eq!(asked.header("authorization"), Some("Bearer token-1"));
    assert_eq!(asked.message()["id"], 1, "it is the same request");
    asked.result(r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"public"}"#);
    let connection = opening.await.unwrap().unwrap();
    assert_eq!(
        *tokens.challenges.lock().unwrap(),
        [
            r#"POST http://server.test/mcp 401 1 Bearer resource_metadata="http://server.test/.well-known/oauth-protected-resource""#
        ]
    );

    // A call, whose own time is shorter than that of a user; then 403 with a challenge, which asks for more.
    let call = connection.call("t").timeout(Duration::from_secs(5)).send();
    let (called, ()) = tokio::join!(call, async {
        server.receives("tools/call").await.answer(
            403,
            &[("www-authenticate", "Bearer error=\"insufficient_scope\"")],
            "",
        );
        let asked = server.receives("tools/call").await;
        assert_eq!(asked.header("authorization"), Some("Bearer token-2"));
        asked.result(r#"{"resultType":"complete","content":[]}"#);
    });
    called.unwrap();
}

#[tokio::test(start_paused = true)]
async fn challenges_are_not_met_for_ever() {
    let (mut server, http) = script();
    let tokens = Tokens::default();
    let connection = server.opens(client(), http.auth(tokens.clone())).await;
    let (called, ()) = tokio::join!(connection.call_tool("t", ()), async {
        for token in 0..4 {
            let asked = server.receives("tools/call").await;
            assert_eq!(asked.header("authorization"), Some(format!("Bearer token-{token}").as_str()));
            asked.answer(401, &[CHALLENGE], "");
        }
    });
    let Err(Error::Failed(failed)) = called else { panic!() };
    assert_eq!(failed.status, Some(401));
    assert!(
        failed.message.ends_with("with status 401; what it was authorized with was not accepted"),
        "{failed}"
    );
    assert_eq!(tokens.challenges.lock().unwrap().len(), 3);
    // A plain 403 is no challenge.
    let (called, ()) = tokio::join!(connection.call_tool("t", ()), async {
        server.receives("tools/call").await.status(403);
    });
    assert!(matches!(called, Err(Error::Failed(failed)) if failed.status == Some(403)));
    assert_eq!(tokens.challenges.lock().unwrap().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_failed_authorization_is_the_error() {
    let (mut server, http) = script();
    let opening = {
        let http = http.auth(Gone);
        tokio::spawn(async move { client().connect(http).await })
    };
    let asked = server.receives("server/discover").await;
    assert_eq!(asked.header("authorization"), None);
    asked.status(401);
    let error = opening.await.unwrap().unwrap_err().to_string();
    assert_eq!(error, "`http://server.test/mcp` could not be authorized for: the user said no");
}

/// Does not think that anybody would be challenged.
struct Hasty;

impl Auth for Hasty {
    async fn authorize(&self, _: Outgoing<'_>) -> Result<HeaderMap> {
        Ok(HeaderMap::new())
    }

    async fn challenged(&self, _: Challenge<'_>) -> Result<bool> {
        panic!("not thought of")
    }
}

#[tokio::test(start_paused = true)]
async fn an_authorization_that_panics_fails_its_call_and_no_other() {
    let (mut server, http) = script();
    let connection = server.opens(client(), http.auth(Hasty)).await;
    let (called, ()) = tokio::join!(connection.call_tool("t", ()), async {
        server.receives("tools/call").await.answer(401, &[CHALLENGE], "");
    });
    assert_eq!(called.unwrap_err().to_string(), "what authorizes or sends requests panicked");
    let (called, ()) = tokio::join!(connection.call_tool("t", ()), async {
        server.receives("tools/call").await.status(403);
    });
    assert!(matches!(called, Err(Error::Failed(failed)) if failed.status == Some(403)));
}

#[tokio::test(start_paused = true)]
async fn a_token_is_sent_with_everything_and_shown_to_nobody() {
    let (mut server, http) = script();
    let http = http.bearer("s3cret").unwrap();
    assert!(!format!("{http:?}").contains("s3cret"));
    let connection = server.shakes("2025-11-25", client(), http).await;
    let listening = server.line("GET http://server.test/mcp").await;
    assert_eq!(listening.header("authorization"), Some("Bearer s3cret"));
    assert!(listening.head.headers["authorization"].is_sensitive());
    listening.status(405);
    let ((), ()) = tokio::join!(connection.close(), async {
        let goodbye = server.line("DELETE http://server.test/mcp").await;
        assert_eq!(goodbye.header("authorization"), Some("Bearer s3cret"));
        goodbye.status(200);
    });
    let (_, http) = script();
    let error = http.bearer("s3cret\n").unwrap_err().to_string();
    assert!(error.contains("trim it") && !error.contains("s3cret"), "{error}");
}
