//! The contracts of the stores, on a real Redis.

use pintle::server::{
    StateKeys,
    http::{fleet_kit, log, nodes, store},
    replay_kit,
};
use pintle_redis::RedisOptions;

use crate::redis_server::RedisServer;

/// With and without keys.
fn options() -> [RedisOptions; 2] {
    [RedisOptions::default(), RedisOptions::default().prefix("sealed").seal(StateKeys::from([7; 32]))]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_keep_their_contract() {
    let Some(server) = RedisServer::start().await else { return };
    for options in options() {
        let open = async || Ok((server.connect(&options).await?, server.connect(&options).await?));
        store::kit::check_pairs(open).await.unwrap();
    }
    assert_eq!(server.keys_without_expiry().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn event_logs_keep_their_contract() {
    let Some(server) = RedisServer::start().await else { return };
    for options in options() {
        let open = async || Ok((server.connect(&options).await?, server.connect(&options).await?));
        log::kit::check_pairs(open).await.unwrap();
    }
    assert_eq!(server.keys_without_expiry().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_between_processes_keep_their_contract() {
    let Some(server) = RedisServer::start().await else { return };
    for options in options() {
        let open = async || {
            let connect = || server.connect(&options);
            Ok([connect().await?, connect().await?, connect().await?])
        };
        nodes::kit::check(open).await.unwrap();
    }
    assert_eq!(server.keys_without_expiry().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replay_guards_keep_their_contract() {
    let Some(server) = RedisServer::start().await else { return };
    for options in options() {
        replay_kit::check(|| server.connect(&options)).await.unwrap();
    }
    assert_eq!(server.keys_without_expiry().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_of_one_redis_serve_their_clients_as_one() {
    let Some(server) = RedisServer::start().await else { return };
    for options in options() {
        let open = async || Ok([server.connect(&options).await?, server.connect(&options).await?]);
        fleet_kit::check(open).await.unwrap();
    }
    assert_eq!(server.keys_without_expiry().await, Vec::<String>::new());
}
