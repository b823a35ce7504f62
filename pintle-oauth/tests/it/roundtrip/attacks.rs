//! Somebody who lies: in metadata, in redirects, in tokens. Nothing of a server runs, and no secret gets to anyone.

use axum::Router;
use bytes::Bytes;
use http::{Request, StatusCode, header::LOCATION};
use pintle::client::http::Body;
use pintle_oauth::{
    client::Reach,
    server::Jwt,
    testing::{Claims, Endpoint, Fault},
};
use serde_json::{Value, json};
use tower_service::Service as _;

use crate::support::notes::{Notes, SESSION, STATELESS, URL, answered, count, not_accepted, not_authorized};

/// Whether anything was asked at this endpoint.
fn reached(asked: &[String], endpoint: Endpoint) -> bool {
    asked.iter().any(|line| line.contains(&format!(" {endpoint}")))
}

#[tokio::test]
async fn a_token_for_another_server_is_not_accepted() {
    let wanted = "it was not issued for `https://notes.test/mcp`: ask for one with that `resource`";
    for notes in [Notes::new(), Notes::asking()] {
        for audience in [
            json!("https://other.test/mcp"),
            json!(["https://notes.test"]),
            json!(format!("{URL}/")),
            Value::Null,
        ] {
            let error = notes.refused(Fault::claim("aud", audience.clone())).await;
            assert_eq!(error, not_accepted(wanted), "{audience}");
        }
        // Nor one that was stolen from another server.
        let stolen = notes.login.token(&Claims::new("https://other.test/mcp").scopes(["notes:read"]));
        let http = notes.http().bearer(stolen).unwrap();
        let error = notes.connect_by(http, STATELESS).await.unwrap_err().to_string();
        assert_eq!(error, not_accepted(wanted));
        assert!(notes.ran().is_empty());
    }
}

#[tokio::test]
async fn a_token_of_another_issuer_is_not_accepted() {
    for notes in [Notes::new(), Notes::asking()] {
        let error = notes.refused(Fault::claim("iss", "https://evil.test")).await;
        assert_eq!(error, not_accepted("it was not issued by `https://login.test`"));
    }
}

#[tokio::test]
async fn a_token_that_somebody_else_signed_is_not_accepted() {
    let notes = Notes::new();
    let error = notes.refused(Fault::Forged).await;
    assert_eq!(error, not_accepted("its signature is invalid"));
    let asked = notes.asked();
    assert_eq!(count(&asked, "GET /jwks: 200"), 1, "the key is known, so none is looked for: {asked:#?}");
}

#[tokio::test]
async fn metadata_of_another_issuer_is_not_used() {
    let notes = Notes::new();
    let error = notes.refused(Fault::metadata("issuer", "https://evil.test")).await;
    assert_eq!(
        error,
        not_authorized(
            "the metadata of the authorization server `https://login.test` is that of `https://evil.test` and was ignored"
        )
    );
    assert_eq!(
        notes.asked(),
        ["GET /.well-known/oauth-authorization-server: 200", "GET /.well-known/openid-configuration: 200"]
    );
}

#[tokio::test]
async fn a_login_that_leads_back_from_somebody_else_gives_its_code_to_nobody() {
    let notes = Notes::new();
    let error = notes.refused(Fault::redirect("iss", "https://evil.test")).await;
    assert_eq!(
        error,
        not_authorized(
            "the redirect of the login is not from the authorization server `https://login.test`; nothing was sent to either"
        )
    );
    let asked = notes.asked();
    assert!(reached(&asked, Endpoint::Authorize) && !reached(&asked, Endpoint::Token), "{asked:#?}");
    let error = notes.refused(Fault::redirect_without("iss")).await;
    assert_eq!(
        error,
        not_authorized(
            "the redirect of the login has no `iss`, which the metadata of the authorization server `https://login.test` promises"
        )
    );
    assert!(!reached(&notes.asked(), Endpoint::Token));
}

#[tokio::test]
async fn a_login_that_leads_back_with_another_state_is_somebody_elses() {
    let notes = Notes::new();
    for fault in [Fault::redirect("state", "guessed"), Fault::redirect_without("state")] {
        let error = notes.refused(fault).await;
        assert_eq!(
            error,
            not_authorized(
                "the redirect of the login has another `state` than the request; start the login again"
            )
        );
        assert!(!reached(&notes.asked(), Endpoint::Token));
    }
}

#[tokio::test]
async fn a_code_that_was_used_is_refused_and_ends_the_login_that_it_was_of() {
    let notes = Notes::asking();
    let victim = notes.connect(STATELESS).await.unwrap();
    victim.call_tool("read", ()).await.unwrap();
    assert_eq!(notes.ran(), ["read for alice"]);
    let code = notes.login.log().iter().find_map(|asked| asked.parameter("code").map(str::to_owned)).unwrap();

    let error = notes.refused(Fault::redirect("code", &code)).await;
    assert_eq!(
        error,
        not_authorized(
            "the authorization server `https://login.test` refused to issue a token: `invalid_grant`: the code was used before"
        )
    );
    assert_eq!(notes.asked().last().unwrap(), "POST /token (authorization_code): 400 invalid_grant");

    // What the code was good for is worth nothing any more, to whoever has it; its user logs in again.
    victim.call_tool("read", ()).await.unwrap();
    let asked = notes.asked();
    assert_eq!(count(&asked, "POST /token (refresh_token): 400 invalid_grant"), 1, "{asked:#?}");
    assert_eq!(count(&asked, "GET /authorize (notes:read): 302"), 1, "{asked:#?}");
}

#[tokio::test]
async fn a_code_that_somebody_else_asked_for_is_of_no_use() {
    let notes = Notes::new();
    // Somebody logs in, and never redeems the code.
    notes.refused(Fault::redirect("state", "guessed")).await;
    let error = notes.refused(Fault::redirect("code", "code-2")).await;
    assert!(
        error.ends_with("refused to issue a token: `invalid_grant`: the code was issued to another client"),
        "{error}"
    );
}

#[tokio::test]
async fn an_authorization_server_that_drops_pkce_is_not_logged_in_to() {
    let notes = Notes::new();
    for methods in [Value::Null, json!([]), json!(["plain"])] {
        let error = notes.refused(Fault::metadata("code_challenge_methods_supported", methods)).await;
        assert_eq!(
            error,
            not_authorized(
                "the authorization server `https://login.test` does not offer PKCE with `S256`: ask its operator to list it in `code_challenge_methods_supported`"
            )
        );
        assert_eq!(notes.asked(), ["GET /.well-known/oauth-authorization-server: 200"]);
    }
}

#[tokio::test]
async fn metadata_that_points_into_a_private_network_is_not_followed() {
    let table = [
        ("registration_endpoint", "https://10.0.0.1/register"),
        ("authorization_endpoint", "https://192.168.0.1/authorize"),
        ("token_endpoint", "https://169.254.169.254/token"),
        ("token_endpoint", "https://[fd00::1]/token"),
        ("token_endpoint", "https://localhost/token"),
    ];
    for (member, address) in table {
        let notes = Notes::new();
        let error = notes.refused(Fault::metadata(member, address)).await;
        assert_eq!(
            error,
            not_authorized(&format!(
                "requests to `{address}` are not allowed: it is in a private network that the server is not in"
            ))
        );
        let log = notes.hosts.log();
        assert!(log.iter().all(|asked| !asked.as_str().contains(address)), "{log:#?}");
        assert!(!reached(&notes.asked(), Endpoint::Authorize), "the user is not bothered");
    }
}

#[tokio::test]
async fn redirects_of_metadata_lead_neither_into_a_private_network_nor_in_circles() {
    for (location, text) in [
        ("https://10.0.0.1/metadata", "requests to `https://10.0.0.1/metadata` are not allowed"),
        ("//10.0.0.1/metadata", "//10.0.0.1/metadata"),
        ("/again", "more than 3 redirects, the last to `https://login.test/again`"),
    ] {
        let notes = Notes::new();
        let moved = move || async move { (StatusCode::FOUND, [(LOCATION, location)]) };
        drop(notes.hosts.clone().host("https://login.test", Router::new().fallback(moved)));
        let error = notes.connect(STATELESS).await.unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
        let log = notes.hosts.log();
        assert!(log.iter().all(|asked| !asked.as_str().contains("10.0.0.1")), "{log:#?}");
        assert!(log.len() < 10, "{log:#?}");
    }
}

#[tokio::test]
async fn a_name_that_leads_into_a_private_network_is_not_followed_from_outside() {
    let notes = Notes::new();
    drop(notes.hosts.clone().address("intern.test", [10, 0, 0, 7]));
    let error = notes.refused(Fault::metadata("token_endpoint", "https://intern.test/token")).await;
    let lost =
        "the connection failed: `https://intern.test/token` could not be reached: its address is not allowed";
    assert_eq!(error, not_authorized(lost));
    let log = notes.hosts.log();
    assert!(log.iter().all(|asked| !asked.as_str().contains("intern")), "{log:#?}");
    // Whoever is in that network may be sent there.
    drop(notes.hosts.clone().address("notes.test", [10, 0, 0, 1]).address("login.test", [10, 0, 0, 2]));
    notes.connect(STATELESS).await.unwrap();
}

#[tokio::test]
async fn a_name_that_leads_to_another_address_by_now_does_not_widen_a_reach_that_was_given() {
    let notes = Notes::new();
    drop(notes.hosts.clone().address("notes.test", [10, 0, 0, 1]).address("login.test", [10, 0, 0, 2]));
    let oauth = notes.oauth().reach(Reach::as_written(URL));
    let error = notes.connect_as(&oauth, STATELESS).await.unwrap_err().to_string();
    assert!(error.contains("its address is not allowed"), "{error}");
    assert!(!reached(&notes.asked(), Endpoint::Token), "{:#?}", notes.asked());
}

#[tokio::test]
async fn a_server_that_names_an_authorization_server_in_a_private_network_is_not_followed() {
    let notes = Notes::checking(|_, hosts| Jwt::new("https://10.0.0.1").unwrap().web(hosts));
    let error = notes.connect(STATELESS).await.unwrap_err().to_string();
    assert_eq!(
        error,
        not_authorized(
            "requests to `https://10.0.0.1/.well-known/oauth-authorization-server` are not allowed: it is in a private network that the server is not in"
        )
    );
    assert_eq!(notes.hosts.log().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn keys_in_a_private_network_are_not_fetched_by_the_server_either() {
    let notes = Notes::new();
    let error = notes.refused(Fault::metadata("jwks_uri", "https://169.254.169.254/keys")).await;
    let text = "the token cannot be checked at the moment; try again later";
    assert_eq!(error, answered(503, text, "try again later"));
    let log = notes.hosts.log();
    assert!(log.iter().all(|asked| !asked.as_str().contains("169.254")), "{log:#?}");
}

#[tokio::test]
async fn on_sockets_nobody_is_sent_into_another_network() {
    let notes = Notes::listening().await;
    for address in ["https://10.0.0.1/token", "http://10.0.0.1/token", "https://169.254.169.254/token"] {
        let error = notes.refused(Fault::metadata("token_endpoint", address)).await;
        assert!(error.contains(&format!("requests to `{address}` are not allowed: ")), "{error}");
    }
}

#[tokio::test]
async fn a_session_is_worth_nothing_to_somebody_else() {
    let notes = Notes::new();
    let token = |name: &str| notes.login.token(&Claims::new(URL).subject(name).scopes(["notes:read"]));
    let (alice, bob) = (token("alice"), token("bob"));
    let text = async |token: &str, session: Option<&str>, body: Value| {
        let request = Request::post(URL)
            .header("authorization", format!("Bearer {token}"))
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", SESSION);
        let request = session.into_iter().fold(request, |request, id| request.header("mcp-session-id", id));
        let request = request.body(Body::from(Bytes::from(body.to_string()))).unwrap();
        let answer = notes.hosts.clone().call(request).await.unwrap();
        let id = answer.headers().get("mcp-session-id").map(|id| id.to_str().unwrap().to_owned());
        (answer.status().as_u16(), id)
    };
    let open = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": SESSION,
        "capabilities": {}, "clientInfo": {"name": "raw", "version": "0"}}});
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "read"}});
    let (status, id) = text(&alice, None, open).await;
    assert_eq!(status, 200);
    assert_eq!(text(&bob, id.as_deref(), call.clone()).await.0, 404);
    assert_eq!(text("", id.as_deref(), call.clone()).await.0, 400);
    assert!(notes.ran().is_empty());
    assert_eq!(text(&alice, id.as_deref(), call).await.0, 200);
    assert_eq!(notes.ran(), ["read for alice"]);
}
