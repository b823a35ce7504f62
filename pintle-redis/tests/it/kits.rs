//! The contracts of the stores, on a real Redis. `cluster.rs` and `sentinel.rs` have them checked too.

use std::sync::atomic::{AtomicUsize, Ordering};

use pintle::server::StateKeys;
use pintle_redis::{Redis, RedisOptions};
use pintle_testing::kits::{event_log, fleet, nodes, nonces, rates, replay, sessions, tasks};

use crate::redis_server::RedisServer;

/// With and without keys.
pub(crate) fn options() -> [RedisOptions; 2] {
    [RedisOptions::default(), RedisOptions::default().prefix("sealed").seal(StateKeys::from([7; 32]))]
}

async fn connect(url: &str, options: &RedisOptions) -> std::io::Result<Redis> {
    Redis::connect_with(url, options.clone()).await
}

pub(crate) async fn check_sessions(url: &str) {
    for options in options() {
        let open = async || Ok([connect(url, &options).await?, connect(url, &options).await?]);
        sessions::check(open).await.unwrap();
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

pub(crate) async fn check_replay_guards(url: &str) {
    for options in options() {
        replay::check(async || connect(url, &options).await).await.unwrap();
    }
}

pub(crate) async fn check_nonces(url: &str) {
    for options in options() {
        let open = async || Ok([connect(url, &options).await?, connect(url, &options).await?]);
        nonces::check(open).await.unwrap();
    }
}

pub(crate) async fn check_rates(url: &str) {
    for options in options() {
        let open = async || Ok([connect(url, &options).await?, connect(url, &options).await?]);
        rates::check(open).await.unwrap();
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
async fn sessions_keep_their_contract() {
    let Some(server) = RedisServer::start().await else { return };
    check_sessions(&server.url()).await;
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
async fn replay_guards_keep_their_contract() {
    let Some(server) = RedisServer::start().await else { return };
    check_replay_guards(&server.url()).await;
    assert_eq!(server.keys_without_expiry().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_that_are_used_once_keep_their_contract() {
    let Some(server) = RedisServer::start().await else { return };
    check_nonces(&server.url()).await;
    assert_eq!(server.keys_without_expiry().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rates_keep_their_contract() {
    let Some(server) = RedisServer::start().await else { return };
    check_rates(&server.url()).await;
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
