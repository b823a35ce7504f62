use std::sync::{Arc, Mutex};

use pintle_oauth::client::{DeviceCode, OAuth};
use serde_json::json;

use crate::world::World;

#[tokio::test(start_paused = true)]
async fn a_user_logs_in_on_another_device_and_is_not_asked_too_often() {
    let world = World::new();
    world.change(|state| {
        state.metadata.get_mut("https://as.test").unwrap()["device_authorization_endpoint"] =
            json!("https://as.test/device");
        state.metadata.get_mut("https://as.test").unwrap()["scopes_supported"] = json!(["offline_access"]);
        state.pending = vec!["authorization_pending", "slow_down", "authorization_pending"];
    });
    let shown: Arc<Mutex<Vec<String>>> = Arc::default();
    let told = shown.clone();
    let show = move |device: &DeviceCode| {
        told.lock().unwrap().push(format!("{} {}", device.url(), device.code()));
        assert!(!format!("{device:?}").contains("d3vice"));
    };
    let start = tokio::time::Instant::now();
    let server = world.connect(&OAuth::device("App", show).web(world.clone())).await.unwrap();
    server.call_tool("t", ()).await.unwrap();
    assert_eq!(*shown.lock().unwrap(), ["https://as.test/go ABCD"]);
    // Twice after 5 seconds, and after being told to slow down twice after 10.
    assert_eq!(start.elapsed().as_secs(), 30);
    let log = world.log();
    assert_eq!(
        log[3..5],
        ["register at as.test as native", "device code for client-1@as.test scope=basic offline_access"]
    );
    assert_eq!(log.iter().filter(|line| line.ends_with(": device_code")).count(), 4, "{log:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_login_that_is_refused_or_that_nobody_finishes_ends() {
    let world = World::new();
    world.change(|state| {
        state.metadata.get_mut("https://as.test").unwrap()["device_authorization_endpoint"] =
            json!("https://as.test/device");
        state.pending = vec!["access_denied"];
    });
    let oauth = OAuth::device("App", |_: &DeviceCode| {}).web(world.clone());
    let error = world.connect(&oauth).await.unwrap_err().to_string();
    assert!(error.contains("gave no token: `access_denied`"), "{error}");
    world.change(|state| state.pending = vec!["authorization_pending"; 1000]);
    let error = world.connect(&oauth).await.unwrap_err().to_string();
    assert!(error.contains("nobody logged in on another device in time"), "{error}");
    world.change(|state| state.metadata.clear());
    let error = world.connect(&oauth).await.unwrap_err().to_string();
    assert!(error.contains("has no metadata"), "{error}");
}
