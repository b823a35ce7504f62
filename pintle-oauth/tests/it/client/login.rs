use std::sync::Arc;

use pintle_oauth::{
    client::Registered,
    testing::{AuthorizationServer, Fault},
};
use serde_json::{Value, json};

use crate::support::world::World;

#[tokio::test]
async fn a_client_is_registered_logged_in_and_let_in() {
    let world = World::new();
    let server = world.connect(&world.login()).await.unwrap();
    server.call_tool("t", ()).await.unwrap();
    assert_eq!(
        world.log(),
        [
            "server/discover with nothing",
            "GET https://mcp.test/.well-known/oauth-protected-resource/mcp",
            "GET https://as.test/.well-known/oauth-authorization-server",
            "register at as.test as native",
            "login as.test/authorize client=client-1 scope=basic resource=https://mcp.test/mcp",
            "token at as.test by client-1: authorization_code",
            "server/discover with access-3",
            "tools/call with access-3",
        ]
    );
}

#[tokio::test]
async fn where_the_challenge_says_is_looked_first_and_then_where_it_should_be() {
    let world = World::new();
    world.change(|state| {
        state.challenge = r#"Bearer resource_metadata="https://mcp.test/elsewhere""#.into();
        state.resource["scopes_supported"] = json!(["read", "write"]);
        state.resource["resource"] = json!("https://MCP.test");
    });
    world.connect(&world.login()).await.unwrap();
    let log = world.log();
    assert_eq!(log[1], "GET https://mcp.test/elsewhere");
    assert_eq!(log[2], "GET https://mcp.test/.well-known/oauth-protected-resource/mcp");
    assert!(log[5].ends_with("scope=read write resource=https://MCP.test"), "{log:?}");
}

#[tokio::test]
async fn a_server_without_metadata_is_its_own_authorization_server() {
    let world = World::new();
    world.change(|state| {
        state.resource = Value::Null;
        state.challenge = "Bearer".into();
    });
    let own = AuthorizationServer::new("https://mcp.test");
    own.opaque();
    world.also(&own);
    world.connect(&world.login()).await.unwrap();
    let log = world.log();
    assert_eq!(
        log[3..],
        [
            "GET https://mcp.test/.well-known/oauth-authorization-server",
            "register at mcp.test as native",
            "login mcp.test/authorize client=client-1 scope=- resource=-",
            "token at mcp.test by client-1: authorization_code",
            "server/discover with access-3",
        ]
    );
}

#[tokio::test]
async fn a_server_that_passes_for_another_authorization_server_gets_nothing_meant_for_that() {
    let (issuer, authorize) =
        (("issuer", "https://as.test"), ("authorization_endpoint", "https://as.test/authorize"));
    // The first is a mix-up: an honest place to log in at, and the code goes elsewhere.
    for lies in
        [&[issuer, authorize][..], &[issuer], &[authorize], &[("token_endpoint", "https://as.test/token")]]
    {
        let world = World::new();
        world.change(|state| {
            state.resource = Value::Null;
            state.challenge = "Bearer".into();
        });
        let own = AuthorizationServer::new("https://mcp.test");
        own.opaque();
        for (member, value) in lies {
            own.say(*member, *value);
        }
        world.also(&own);
        world.connect(&world.login()).await.unwrap();
        let log = world.log();
        assert!(!log.iter().any(|line| line.contains("as.test")), "{lies:?}: {log:#?}");
        // The endpoints are those that the old revision has for servers that say nothing.
        assert_eq!(log[5], "login mcp.test/authorize client=client-1 scope=- resource=-", "{lies:?}");
    }
}

#[tokio::test]
async fn an_answer_of_a_server_without_metadata_is_from_its_origin() {
    let world = World::new();
    world.change(|state| {
        state.resource = Value::Null;
        state.challenge = "Bearer".into();
    });
    let own = AuthorizationServer::new("https://mcp.test");
    own.say("issuer", "https://as.test");
    own.fault(Fault::redirect("iss", "https://as.test"));
    world.also(&own);
    let error = world.connect(&world.login()).await.unwrap_err().to_string();
    assert!(error.contains("not from the authorization server `https://mcp.test`"), "{error}");
    assert!(error.contains("its `issuer` is `https://as.test`, which is not the server's origin"), "{error}");
    assert!(!world.log().iter().any(|line| line.starts_with("token")));
}

#[tokio::test]
async fn a_known_client_is_not_registered_and_one_with_a_document_neither() {
    let world = World::new();
    world.login.say("client_id_metadata_document_supported", true);
    world.login.add_client("known");
    let documented = world.login().document("https://app.test/client.json").unwrap();
    world.connect(&documented).await.unwrap();
    assert_eq!(world.log()[4], "token at as.test by https://app.test/client.json: authorization_code");
    let known = documented.registered(Registered::new("https://as.test", "known").secret("s3cret"));
    let again =
        world.connect(&world.login().registered(Registered::new("https://as.test", "known"))).await.unwrap();
    assert_eq!(world.log()[4], "token at as.test by known: authorization_code");
    again.close().await;
    assert_eq!(format!("{known:?}"), "OAuth(…)");
    for url in [
        "http://app.test/client.json",
        "https://app.test",
        "https://app.test/",
        "client.json",
        "https://me@app.test/client.json",
        "https://app.test/a/../client.json",
        "https://app.test/./client.json",
        "https://app.test/client.json#it",
    ] {
        assert!(world.login().document(url).is_err(), "{url}");
    }
}

#[tokio::test]
async fn ten_calls_at_once_are_one_login() {
    let world = World::new();
    let server = Arc::new(world.connect(&world.login()).await.unwrap());
    world.login.revoke_access();
    world.login.revoke_refresh();
    world.log();
    let calls: Vec<_> = (0..10)
        .map(|_| {
            let server = server.clone();
            tokio::spawn(async move { server.call_tool("t", ()).await.map(drop) })
        })
        .collect();
    for call in calls {
        call.await.unwrap().unwrap();
    }
    let log = world.log();
    assert_eq!(log.iter().filter(|line| line.starts_with("login")).count(), 1, "{log:#?}");
    assert_eq!(log.iter().filter(|line| line.contains(": refresh_token")).count(), 1, "{log:#?}");
}

#[tokio::test]
async fn another_server_never_sees_a_token() {
    let world = World::new();
    let oauth = world.login();
    world.connect(&oauth).await.unwrap();
    world.log();
    let error = world.connect_to("https://other.test/mcp", &oauth).await.unwrap_err().to_string();
    assert_eq!(world.log(), ["server/discover with nothing"]);
    assert!(error.contains("401"), "{error}");
}

#[tokio::test]
async fn a_server_that_moves_to_another_authorization_server_is_followed_with_nothing_of_the_old_one() {
    let world = World::new();
    let server = world.connect(&world.login()).await.unwrap();
    world.also(&AuthorizationServer::new("https://new.test"));
    world.change(|state| state.resource["authorization_servers"] = json!(["https://new.test"]));
    world.login.revoke_access();
    world.log();
    server.call_tool("t", ()).await.unwrap();
    let log = world.log();
    assert!(log.contains(&"register at new.test as native".to_owned()), "{log:#?}");
    assert!(log.contains(&"token at new.test by client-1: authorization_code".to_owned()), "{log:#?}");
    assert!(
        !log.iter().any(|line| line.contains("at as.test") || line.contains(": refresh_token")),
        "{log:#?}"
    );
}

#[tokio::test]
async fn a_client_registered_elsewhere_is_not_shown_to_a_new_authorization_server() {
    let world = World::new();
    world.login.add_client_with_secret("known", "s3cret");
    let oauth = world.login().registered(Registered::new("https://as.test", "known").secret("s3cret"));
    let server = world.connect(&oauth).await.unwrap();
    world.also(&AuthorizationServer::new("https://new.test"));
    world.change(|state| state.resource["authorization_servers"] = json!(["https://new.test"]));
    world.login.revoke_access();
    world.log();
    let error = server.call_tool("t", ()).await.unwrap_err().to_string();
    assert!(
        error
            .contains("registered with `https://as.test`, and the server wants tokens of `https://new.test`")
    );
    assert_eq!(
        world.log(),
        ["tools/call with access-2", "GET https://mcp.test/.well-known/oauth-protected-resource/mcp"]
    );
}

#[tokio::test]
async fn staying_logged_in_is_asked_for_where_the_authorization_server_knows_that() {
    let world = World::new();
    world.login.say("scopes_supported", json!(["offline_access"]));
    world.connect(&world.login().scopes(["mail"])).await.unwrap();
    let log = world.log();
    // Without a prompt an OpenID provider does as if that had not been asked for.
    let asked = "scope=basic mail offline_access resource=https://mcp.test/mcp prompt=consent";
    assert!(log[4].ends_with(asked), "{log:?}");
}
