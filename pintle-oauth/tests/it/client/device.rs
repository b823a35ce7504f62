use std::sync::{Arc, Mutex};

use pintle_oauth::{
    client::{DeviceCode, OAuth},
    testing::{Endpoint, Fault},
};
use serde_json::json;

use crate::support::world::World;

#[tokio::test(start_paused = true)]
async fn a_user_logs_in_on_another_device_and_is_not_asked_too_often() {
    let world = World::new();
    world.login.say("scopes_supported", json!(["offline_access"]));
    for error in ["authorization_pending", "slow_down", "authorization_pending"] {
        world.login.fault_times(1, Fault::refused(Endpoint::Token, error));
    }
    let shown: Arc<Mutex<Vec<String>>> = Arc::default();
    let notified = shown.clone();
    let show = move |device: &DeviceCode| {
        notified.lock().unwrap().push(format!("{} {}", device.url(), device.code()));
        assert_eq!(device.complete_url(), Some("https://as.test/go?code=ABCD-EFGH"));
        assert!(!format!("{device:?}").contains("device-2"));
    };
    let start = tokio::time::Instant::now();
    let server = world.connect(&OAuth::device("App", show).web(world.hosts.clone())).await.unwrap();
    server.call_tool("t", ()).await.unwrap();
    assert_eq!(*shown.lock().unwrap(), ["https://as.test/go ABCD-EFGH"]);
    // Twice after 5 seconds, and after being told to slow down twice after 10.
    assert_eq!(start.elapsed().as_secs(), 30);
    let log = world.log();
    assert_eq!(
        log[3..5],
        ["register at as.test as native", "device code for client-1 scope=basic offline_access"]
    );
    assert_eq!(log.iter().filter(|line| line.ends_with(": device_code")).count(), 4, "{log:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_login_that_is_refused_or_that_nobody_finishes_ends() {
    let world = World::new();
    world.login.fault(Fault::Denied);
    let oauth = OAuth::device("App", |_: &DeviceCode| {}).web(world.hosts.clone());
    let error = world.connect(&oauth).await.unwrap_err().to_string();
    assert!(error.contains("refused to issue a token: `access_denied`"), "{error}");
    world.login.clear_faults();
    world.login.fault(Fault::refused(Endpoint::Token, "authorization_pending"));
    for (expires_in, seconds) in [(json!(600), 600), (json!(86400), 1800), (json!(null), 1800)] {
        world.login.fault_times(1, Fault::answer(Endpoint::Device, "expires_in", expires_in));
        let start = tokio::time::Instant::now();
        let error = world.connect(&oauth).await.unwrap_err().to_string();
        assert!(error.contains("the login on another device was not completed in time"), "{error}");
        assert_eq!(start.elapsed().as_secs(), seconds);
    }
    for endpoint in [Endpoint::Metadata, Endpoint::OpenidConfiguration] {
        world.login.fault(Fault::Status(endpoint, 404));
    }
    let error = world.connect(&oauth).await.unwrap_err().to_string();
    assert!(error.contains("has no metadata"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_the_authorization_server_has_forgotten_is_registered_anew() {
    let world = World::new();
    let oauth = OAuth::device("App", |_: &DeviceCode| {}).web(world.hosts.clone());
    let server = world.connect(&oauth).await.unwrap();
    world.login.revoke_access();
    world.login.forget_clients();
    // A refresh does not tell.
    world.login.fault_times(1, Fault::refused(Endpoint::Token, "invalid_grant"));
    let error = server.call_tool("t", ()).await.unwrap_err().to_string();
    assert!(error.contains("refused to issue a token: `invalid_client`"), "{error}");
    world.log();
    server.call_tool("t", ()).await.unwrap();
    let log = world.log();
    assert!(log.contains(&"register at as.test as native".to_owned()), "{log:#?}");
}

#[tokio::test(start_paused = true)]
async fn an_authorization_server_that_fails_is_polled_less_and_less_often() {
    let world = World::new();
    world.login.fault_times(5, Fault::Status(Endpoint::Token, 503));
    let oauth = OAuth::device("App", |_: &DeviceCode| {}).web(world.hosts.clone());
    let start = tokio::time::Instant::now();
    world.connect(&oauth).await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 5 + 10 + 20 + 40 + 60 + 60);
}
