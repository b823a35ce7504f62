use std::{sync::Arc, time::Duration};

use pintle_oauth::testing::{Endpoint, Fault};

use crate::support::world::World;

fn refreshes(log: &[String]) -> usize {
    log.iter().filter(|line| line.contains(": refresh_token")).count()
}

#[tokio::test]
async fn ten_calls_at_once_with_an_expired_token_are_one_refresh() {
    let world = World::new();
    // The first one is stale from the start.
    world.login.fault(Fault::answer(Endpoint::Token, "expires_in", 0));
    let server = Arc::new(world.connect(&world.login()).await.unwrap());
    world.login.clear_faults();
    world.log();
    let call = |_| {
        let server = server.clone();
        tokio::spawn(async move { server.call_tool("t", ()).await.map(drop) })
    };
    for call in (0..10).map(call).collect::<Vec<_>>() {
        call.await.unwrap().unwrap();
    }
    let log = world.log();
    assert_eq!(refreshes(&log), 1, "{log:#?}");
    assert_eq!(log.iter().filter(|line| line.starts_with("tools/call")).count(), 10, "{log:#?}");
    assert!(!log.iter().any(|line| line.starts_with("login")), "{log:#?}");
}

#[tokio::test]
async fn ten_calls_whose_token_was_revoked_are_one_refresh() {
    let world = World::new();
    let server = Arc::new(world.connect(&world.login()).await.unwrap());
    world.login.revoke_access();
    world.log();
    let call = |_| {
        let server = server.clone();
        tokio::spawn(async move { server.call_tool("t", ()).await.map(drop) })
    };
    for call in (0..10).map(call).collect::<Vec<_>>() {
        call.await.unwrap().unwrap();
    }
    let log = world.log();
    assert_eq!(refreshes(&log), 1, "{log:#?}");
    assert!(!log.iter().any(|line| line.starts_with("login")), "{log:#?}");
}

#[tokio::test]
async fn each_refresh_token_is_used_once() {
    let world = World::new();
    let server = world.connect(&world.login()).await.unwrap();
    for _ in 0..3 {
        world.login.revoke_access();
        server.call_tool("t", ()).await.unwrap();
    }
    let log = world.log();
    assert_eq!(refreshes(&log), 3, "{log:#?}");
}

#[tokio::test]
async fn a_refresh_token_that_is_worth_nothing_any_more_means_a_new_login() {
    let world = World::new();
    let server = world.connect(&world.login()).await.unwrap();
    world.login.revoke_access();
    world.login.revoke_refresh();
    world.log();
    server.call_tool("t", ()).await.unwrap();
    let log = world.log();
    assert_eq!(refreshes(&log), 1, "{log:#?}");
    assert_eq!(log.iter().filter(|line| line.starts_with("login")).count(), 1, "{log:#?}");
    assert!(!log.iter().any(|line| line.starts_with("register")), "{log:#?}");
}

#[tokio::test]
async fn a_token_that_cannot_be_renewed_now_is_used_as_long_as_it_is_good() {
    let world = World::new();
    world.login.fault(Fault::answer(Endpoint::Token, "expires_in", 0));
    let server = world.connect(&world.login()).await.unwrap();
    world.login.fault(Fault::Status(Endpoint::Token, 503));
    world.log();
    for _ in 0..3 {
        server.call_tool("t", ()).await.unwrap();
    }
    let log = world.log();
    assert_eq!(refreshes(&log), 1, "{log:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_given_up_does_not_lose_the_refresh_that_it_waited_for() {
    let world = World::new();
    world.login.fault(Fault::answer(Endpoint::Token, "expires_in", 0));
    let server = world.connect(&world.login()).await.unwrap();
    world.login.clear_faults();
    let hold = world.login.hold(Endpoint::Token);
    world.log();
    let given_up = tokio::time::timeout(Duration::from_secs(1), server.call_tool("t", ())).await;
    assert!(given_up.is_err());
    hold.release();
    server.call_tool("t", ()).await.unwrap();
    let log = world.log();
    assert_eq!(refreshes(&log), 1, "{log:#?}");
    assert!(!log.iter().any(|line| line.starts_with("login")), "{log:#?}");
}

#[tokio::test]
async fn a_user_is_not_asked_to_log_in_again_because_the_authorization_server_is_down() {
    let world = World::new();
    let server = world.connect(&world.login()).await.unwrap();
    world.login.revoke_access();
    world.login.fault(Fault::Status(Endpoint::Token, 503));
    world.log();
    for _ in 0..3 {
        let error = server.call_tool("t", ()).await.unwrap_err().to_string();
        assert!(error.contains("`https://as.test/token` returned status 503"), "{error}");
    }
    let log = world.log();
    assert_eq!(refreshes(&log), 1, "{log:#?}");
    assert!(!log.iter().any(|line| line.starts_with("login")), "{log:#?}");
}

#[tokio::test]
async fn whatever_an_authorization_server_has_against_a_refresh_means_a_new_login() {
    for fault in ["interaction_required", "unsupported_grant_type", "invalid_target", "invalid_scope"] {
        let world = World::new();
        let server = world.connect(&world.login()).await.unwrap();
        world.login.revoke_access();
        world.login.fault_times(1, Fault::refused(Endpoint::Token, fault));
        world.log();
        server.call_tool("t", ()).await.unwrap();
        let log = world.log();
        assert_eq!(refreshes(&log), 1, "{fault}: {log:#?}");
        assert_eq!(log.iter().filter(|line| line.starts_with("login")).count(), 1, "{fault}: {log:#?}");
    }
}

#[tokio::test]
async fn an_authorization_server_that_has_too_much_to_do_is_not_refusing() {
    for (status, fault) in [(429, "slow_down"), (400, "temporarily_unavailable"), (503, "invalid_grant")] {
        let world = World::new();
        let server = world.connect(&world.login()).await.unwrap();
        world.login.revoke_access();
        world.login.fault(Fault::Status(Endpoint::Token, status));
        world.login.fault(Fault::answer(Endpoint::Token, "error", fault));
        world.log();
        server.call_tool("t", ()).await.unwrap_err();
        let log = world.log();
        assert_eq!(refreshes(&log), 1, "{fault}: {log:#?}");
        assert!(!log.iter().any(|line| line.starts_with("login")), "{fault}: {log:#?}");
    }
}

#[tokio::test]
async fn a_refreshed_token_that_is_refused_too_means_a_new_login() {
    let world = World::new();
    let server = world.connect(&world.login()).await.unwrap();
    world.login.revoke_access();
    world.login.fault_times(1, Fault::answer(Endpoint::Token, "access_token", "unknown"));
    world.log();
    server.call_tool("t", ()).await.unwrap();
    let log = world.log();
    assert_eq!(refreshes(&log), 1, "{log:#?}");
    assert_eq!(log.iter().filter(|line| line.starts_with("login")).count(), 1, "{log:#?}");
}

#[tokio::test]
async fn a_refused_refresh_token_is_not_taken_from_the_store_again() {
    let world = World::new();
    world.login.fault(Fault::answer(Endpoint::Token, "expires_in", 0));
    let server = world.connect(&world.login()).await.unwrap();
    world.login.clear_faults();
    world.login.revoke_access();
    world.login.revoke_refresh();
    world.log();
    server.call_tool("t", ()).await.unwrap();
    let log = world.log();
    assert_eq!(refreshes(&log), 1, "{log:#?}");
    assert_eq!(log.iter().filter(|line| line.starts_with("login")).count(), 1, "{log:#?}");
}
