use std::{sync::Arc, time::Duration};

use pintle_oauth::{
    client::{MemoryStore, OAuth, Registered},
    testing::{Endpoint, Fault},
};
use serde_json::Value;

use crate::support::{
    token_file::TokenFolder,
    world::{SERVER, World},
};

#[tokio::test]
async fn the_next_run_needs_no_login() {
    let world = World::new();
    let store = Arc::new(MemoryStore::new());
    world.connect(&world.login().store(store.clone())).await.unwrap();
    world.log();
    world.connect(&world.login().store(store.clone())).await.unwrap();
    assert_eq!(
        world.log(),
        [
            "server/discover with nothing",
            "GET https://mcp.test/.well-known/oauth-protected-resource/mcp",
            "GET https://as.test/.well-known/oauth-authorization-server",
            "server/discover with access-3",
        ]
    );
}

#[tokio::test]
async fn the_next_run_refreshes_what_has_expired_meanwhile() {
    let world = World::new();
    let store = Arc::new(MemoryStore::new());
    world.login.fault(Fault::answer(Endpoint::Token, "expires_in", 0));
    world.connect(&world.login().store(store.clone())).await.unwrap();
    world.login.clear_faults();
    world.login.revoke_access();
    world.log();
    world.connect(&world.login().store(store)).await.unwrap();
    let log = world.log();
    assert_eq!(log[3], "token at as.test by client-1: refresh_token");
    // The first run has used it once itself, to get past its own first request.
    assert_eq!(log[4], "server/discover with access-7");
}

#[tokio::test]
async fn the_next_run_refreshes_what_was_revoked_meanwhile() {
    let world = World::new();
    let store = Arc::new(MemoryStore::new());
    world.connect(&world.login().store(store.clone())).await.unwrap();
    world.login.revoke_access();
    world.log();
    world.connect(&world.login().store(store)).await.unwrap();
    let log = world.log();
    assert_eq!(log.iter().filter(|line| line.contains(": refresh_token")).count(), 1, "{log:#?}");
    assert!(!log.iter().any(|line| line.starts_with("login")), "{log:#?}");
}

#[tokio::test]
async fn who_shares_a_store_shares_what_others_renewed() {
    let world = World::new();
    let store = Arc::new(MemoryStore::new());
    let one = world.connect(&world.login().store(store.clone())).await.unwrap();
    let other = world.connect(&world.login().store(store)).await.unwrap();
    world.login.revoke_access();
    one.call_tool("t", ()).await.unwrap();
    world.log();
    other.call_tool("t", ()).await.unwrap();
    let log = world.log();
    assert!(!log.iter().any(|line| line.starts_with("token")), "{log:#?}");
}

#[tokio::test(start_paused = true)]
async fn processes_that_share_a_file_refresh_once() {
    let world = World::new();
    let folder = TokenFolder::new();
    let one = world.connect(&world.login().store(folder.file())).await.unwrap();
    let other = world.connect(&world.login().store(folder.file())).await.unwrap();
    world.login.revoke_access();
    world.log();
    // Both have been refused before either has new ones.
    let hold = world.login.hold(Endpoint::Token);
    let calls =
        [one, other].map(|server| tokio::spawn(async move { server.call_tool("t", ()).await.map(drop) }));
    tokio::time::sleep(Duration::from_secs(5)).await;
    hold.release();
    for call in calls {
        call.await.unwrap().unwrap();
    }
    let log = world.log();
    assert_eq!(log.iter().filter(|line| line.contains(": refresh_token")).count(), 1, "{log:#?}");
    assert!(!log.iter().any(|line| line.starts_with("login")), "{log:#?}");
    assert_eq!(folder.files(), 1, "no lock is left behind");
}

#[tokio::test]
async fn what_others_renewed_long_ago_is_renewed_with_what_they_got() {
    let world = World::new();
    let folder = TokenFolder::new();
    let one = world.connect(&world.login().store(folder.file())).await.unwrap();
    let other = world.connect(&world.login().store(folder.file())).await.unwrap();
    // What this one gets is stale by the time that the other looks at it.
    world.login.revoke_access();
    world.login.fault(Fault::answer(Endpoint::Token, "expires_in", 0));
    one.call_tool("t", ()).await.unwrap();
    one.close().await;
    world.login.clear_faults();
    world.login.revoke_access();
    world.log();
    other.call_tool("t", ()).await.unwrap();
    let log = world.log();
    assert_eq!(log.iter().filter(|line| line.contains(": refresh_token")).count(), 1, "{log:#?}");
    assert!(!log.iter().any(|line| line.starts_with("login")), "{log:#?}");
}

#[tokio::test]
async fn what_others_renewed_is_refreshed_too_if_it_was_revoked_meanwhile() {
    let world = World::new();
    let store = Arc::new(MemoryStore::new());
    let one = world.connect(&world.login().store(store.clone())).await.unwrap();
    let other = world.connect(&world.login().store(store)).await.unwrap();
    world.login.revoke_access();
    one.call_tool("t", ()).await.unwrap();
    world.login.revoke_access();
    world.log();
    other.call_tool("t", ()).await.unwrap();
    let log = world.log();
    assert_eq!(log.iter().filter(|line| line.contains(": refresh_token")).count(), 1, "{log:#?}");
    assert!(!log.iter().any(|line| line.starts_with("login")), "{log:#?}");
}

#[tokio::test]
async fn a_client_is_registered_once() {
    let world = World::new();
    let store = Arc::new(MemoryStore::new());
    world.connect(&world.login().store(store.clone())).await.unwrap();
    world.login.revoke_access();
    world.login.revoke_refresh();
    world.log();
    world.connect(&world.login().store(store)).await.unwrap();
    let log = world.log();
    assert!(log.iter().any(|line| line.starts_with("login as.test/authorize client=client-1")), "{log:#?}");
    assert!(!log.iter().any(|line| line.starts_with("register")), "{log:#?}");
}

#[tokio::test]
async fn of_two_simultaneous_registrations_both_use_the_one_that_is_stored_first() {
    let world = World::new();
    let store = Arc::new(MemoryStore::new());
    let settings = [(); 2].map(|()| world.login().store(store.clone()));
    // Neither is registered before both have found that they are not.
    let hold = world.login.hold(Endpoint::Register);
    let open = async {
        hold.reached(2).await;
        hold.release();
    };
    let (one, other, ()) = tokio::join!(world.connect(&settings[0]), world.connect(&settings[1]), open);
    one.unwrap();
    other.unwrap();
    let log = world.log();
    let with = |start: &str| log.iter().filter(|line| line.starts_with(start)).collect::<Vec<_>>();
    assert_eq!(with("register").len(), 2, "{log:#?}");
    let logins = with("login as.test/authorize client=");
    assert_eq!(logins.len(), 2, "{log:#?}");
    assert_eq!(logins[0], logins[1]);
    let tokens = with("token at as.test by ");
    assert!(tokens.len() >= 2 && tokens.iter().all(|line| *line == tokens[0]), "{log:#?}");
}

#[tokio::test]
async fn another_client_does_not_use_what_this_one_was_given() {
    let world = World::new();
    let store = Arc::new(MemoryStore::new());
    world.connect(&world.login().store(store.clone())).await.unwrap();
    world.log();
    world.login.add_client_with_secret("bot", "s3cret");
    let bot = OAuth::machine(Registered::new("https://as.test", "bot").secret("s3cret"))
        .web(world.hosts.clone())
        .store(store.clone());
    world.connect(&bot).await.unwrap();
    assert_eq!(world.log()[3], "token at as.test by bot: client_credentials");
    world.connect(&world.login().store(store)).await.unwrap();
    assert!(world.log()[3].starts_with("login as.test/authorize client=client-1"));
}

#[tokio::test]
async fn a_client_that_the_authorization_server_has_forgotten_is_registered_anew() {
    let world = World::new();
    let store = Arc::new(MemoryStore::new());
    world.connect(&world.login().store(store.clone())).await.unwrap();
    world.login.revoke_access();
    world.login.forget_clients();
    world.log();
    // It says so to whoever refreshes.
    world.connect(&world.login().store(store.clone())).await.unwrap();
    let log = world.log();
    let at = |start: &str| log.iter().position(|line| line.starts_with(start)).unwrap();
    assert!(at("token at as.test by client-1: refresh_token") < at("register"), "{log:#?}");
    assert!(
        !log.iter().any(|line| line.starts_with("login") && line.contains("client=client-1 ")),
        "{log:#?}"
    );
}

#[tokio::test]
async fn a_login_that_nobody_came_back_from_is_not_tried_again_with_the_same_old_client() {
    let world = World::new();
    let store = Arc::new(MemoryStore::new());
    world.connect(&world.login().store(store.clone())).await.unwrap();
    world.login.revoke_access();
    world.login.forget_clients();
    // Nobody can tell by a refresh then.
    world.login.fault(Fault::refused(Endpoint::Token, "invalid_grant"));
    let error = world.connect(&world.login().store(store.clone())).await.unwrap_err().to_string();
    assert!(error.contains("the user was not redirected"), "{error}");
    world.login.clear_faults();
    world.log();
    world.connect(&world.login().store(store)).await.unwrap();
    let log = world.log();
    assert!(log.iter().any(|line| line.starts_with("register")), "{log:#?}");
}

#[tokio::test]
async fn a_stored_token_without_a_refresh_token_is_used_until_it_is_stale() {
    for (lifetime, logins) in [(3600, 0), (0, 1)] {
        let world = World::new();
        let store = Arc::new(MemoryStore::new());
        world.login.fault(Fault::answer(Endpoint::Token, "refresh_token", Value::Null));
        world.login.fault(Fault::answer(Endpoint::Token, "expires_in", lifetime));
        world.connect(&world.login().store(store.clone())).await.unwrap();
        world.log();
        world.connect(&world.login().store(store)).await.unwrap();
        let log = world.log();
        assert_eq!(log.iter().filter(|line| line.starts_with("login")).count(), logins, "{log:#?}");
    }
}

#[tokio::test]
async fn tokens_for_one_server_are_not_used_for_another_with_the_same_issuer() {
    let world = World::new();
    let store = Arc::new(MemoryStore::new());
    let other = "https://other.test/mcp";
    let resource = world.change(|state| state.resource.clone());
    let logins = async |url: &str| {
        world.change(|state| {
            state.resource = resource.clone();
            state.resource["resource"] = url.into();
        });
        world.connect_to(url, &world.login().store(store.clone())).await.unwrap();
        world.log().iter().filter(|line| line.starts_with("login")).count()
    };
    for (url, expected) in [(SERVER, 1), (other, 1), (SERVER, 0), (other, 0)] {
        assert_eq!(logins(url).await, expected, "{url}");
    }
}
