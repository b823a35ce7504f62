//! What a request of a session costs Redis: round trips, commands and bytes.

use std::time::Duration;

use pintle::{Server, server::StateKeys};
use pintle_redis::RedisOptions;

use crate::{
    faults::{INITIALIZE, PING, SESSION, post},
    redis_folder::ask,
    redis_server::RedisServer,
};

const PINGS: u64 = 200;

/// Returns a counter of Redis, and 0 if it is not there yet.
async fn counter(server: &RedisServer, section: &str, name: &str) -> u64 {
    let info: String = ask(server.port(), &format!("INFO {section}")).await.unwrap();
    let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let value =
        line.map(|line| line.trim().trim_start_matches("calls=").split(',').next().unwrap_or_default());
    value.map_or(0, |value| value.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_of_a_session_is_one_round_trip_without_a_script() {
    let Some(server) = RedisServer::start().await else { return };
    let options = RedisOptions::default().seal(StateKeys::from([7; 32])).lease(Duration::from_secs(600));
    let notes = Server::new("notes", "1");
    let http = notes.http().unwrap().shared(server.connect(&options).await.unwrap());
    let opened = post(&http, None, INITIALIZE).await;
    let session = opened.headers()[SESSION].to_str().unwrap().to_owned();
    let scripts = counter(&server, "commandstats", "cmdstat_eval").await;
    let read = counter(&server, "commandstats", "cmdstat_getex").await;
    let renewals = counter(&server, "commandstats", "cmdstat_pexpire").await;
    let reads = counter(&server, "stats", "total_reads_processed").await;
    for _ in 0..PINGS {
        assert_eq!(post(&http, Some(&session), PING).await.status(), 200);
    }
    let reads = counter(&server, "stats", "total_reads_processed").await - reads;
    // The process also waits for messages, with a command every two seconds.
    assert!((PINGS..PINGS * 3 / 2).contains(&reads), "{reads} round trips of {PINGS} requests");
    assert_eq!(counter(&server, "commandstats", "cmdstat_getex").await - read, PINGS);
    assert_eq!(counter(&server, "commandstats", "cmdstat_eval").await, scripts);
    // The command that reads a session also extends its expiry.
    assert_eq!(counter(&server, "commandstats", "cmdstat_pexpire").await, renewals);
    let bytes: u64 = ask(server.port(), &format!("MEMORY USAGE pintle:s:{{{session}}}")).await.unwrap();
    assert!(bytes < 1024, "{bytes} bytes of a sealed session");
}
