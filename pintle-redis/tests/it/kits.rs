//! The contracts of the stores, on a real Redis. `cluster.rs` and `sentinel.rs` have them checked too.

use std::sync::atomic::{AtomicUsize, Ordering};

use pintle::server::{
    StateKeys,
    store::{Expected, Key, Life, Put, Space, Store},
};
use pintle_redis::{Redis, RedisOptions};
use pintle_testing::kits::{event_log, fleet, nodes, store, tasks};

use crate::redis_server::RedisServer;

/// With and without keys.
pub(crate) fn options() -> [RedisOptions; 2] {
    [RedisOptions::default(), RedisOptions::default().prefix("sealed").seal(StateKeys::from([7; 32]))]
}

async fn connect(url: &str, options: &RedisOptions) -> std::io::Result<Redis> {
    Redis::connect_with(url, options.clone()).await
}

/// Notes the use of a value that is used once, and that expires at this second.
pub(crate) async fn first_use(store: &impl Store, nonce: &[u8; 32], expires: u64) -> std::io::Result<bool> {
    let id: String = nonce.iter().map(|byte| format!("{byte:02x}")).collect();
    let life = Life::Until(expires.saturating_mul(1000).saturating_add(120_000));
    let put = store.put(Key::new(Space::Nonce, &id), Expected::Absent, b"", life).await?;
    Ok(matches!(put, Put::Done(_)))
}

pub(crate) async fn check_stores(url: &str) {
    for options in options() {
        let open = async || Ok([connect(url, &options).await?, connect(url, &options).await?]);
        store::check(open).await.unwrap();
    }
}

pub(crate) async fn check_event_logs(url: &str) {
    for options in options() {
        let open = async || Ok([connect(url, &options).await?, connect(url, &options).await?]);
        event_log::check(open).await.unwrap();
    }
}

pub(crate) async fn check_messages(url: &str) {
    for options in options() {
        let open = async || {
            let open = || connect(url, &options);
            Ok([open().await?, open().await?, open().await?])
        };
        nodes::check(open).await.unwrap();
    }
}

pub(crate) async fn check_tasks(url: &str) {
    let opened = AtomicUsize::new(0);
    let open = async || {
        // An empty store for each property.
        let options = RedisOptions::default().prefix(format!("p{}", opened.fetch_add(1, Ordering::Relaxed)));
        Ok([connect(url, &options).await?.tasks(), connect(url, &options).await?.tasks()])
    };
    tasks::check(open).await.unwrap();
}

pub(crate) async fn check_services(url: &str) {
    for options in options() {
        let open = async || Ok([connect(url, &options).await?, connect(url, &options).await?]);
        fleet::check(open).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stored_values_keep_their_contract() {
    let Some(server) = RedisServer::start().await else { return };
    check_stores(&server.url()).await;
    assert_eq!(server.keys_without_expiry().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn event_logs_keep_their_contract() {
    let Some(server) = RedisServer::start().await else { return };
    check_event_logs(&server.url()).await;
    assert_eq!(server.keys_without_expiry().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_between_processes_keep_their_contract() {
    let Some(server) = RedisServer::start().await else { return };
    check_messages(&server.url()).await;
    assert_eq!(server.keys_without_expiry().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_keep_their_contract() {
    let Some(server) = RedisServer::start().await else { return };
    check_tasks(&server.url()).await;
    assert_eq!(server.keys_without_expiry().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_of_one_redis_serve_their_clients_as_one() {
    let Some(server) = RedisServer::start().await else { return };
    check_services(&server.url()).await;
    assert_eq!(server.keys_without_expiry().await, Vec::<String>::new());
}
