//! Nodes of a cluster that name others which nobody has.

use std::{
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use pintle_redis::{Redis, RedisOptions};

use crate::{scripted_redis::ScriptedRedis, subscriber::set_subscriber};

/// An address of nobody, which is not private.
const FOREIGN: &str = "203.0.113.9";

/// The table of a cluster whose slots are all at one node.
fn slots(host: &str, port: u16) -> String {
    format!("*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n${}\r\n{host}\r\n:{port}\r\n", host.len())
}

/// Uses a cluster that is found by a node, with a password. Returns what went wrong.
async fn use_cluster(port: u16) -> io::Result<bool> {
    let url = format!("redis+cluster://:sesame@127.0.0.1:{port}");
    let options = RedisOptions::default().timeout(Duration::from_secs(2));
    let redis = Redis::connect_with(&url, options).await?;
    crate::kits::first_use(&redis, &[7; 32], u64::from(u32::MAX)).await
}

/// The lines of a log.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Lines {
    fn taken(&self) -> String {
        String::from_utf8(std::mem::take(&mut self.0.lock().unwrap())).unwrap()
    }
}

/// The password goes to the nodes that a node names, and not into another network.
#[tokio::test]
async fn a_password_in_clear_text_is_not_sent_into_another_network() {
    let lines = Lines::default();
    let written = lines.clone();
    let log = tracing_subscriber::fmt().with_max_level(tracing::Level::WARN).with_ansi(false);
    let _log = set_subscriber(log.with_writer(move || written.clone()).finish());

    let named = ScriptedRedis::start(|_, _| None).await;
    let other = named.port;
    let table = move |_: u16, command: &str| (command == "CLUSTER SLOTS").then(|| slots("127.0.0.1", other));
    let honest = ScriptedRedis::start(table).await;
    let _ = use_cluster(honest.port).await;
    assert!(named.got().iter().any(|command| command.contains("sesame")), "{:?}", named.got());
    assert!(!lines.taken().contains("private network"));

    let table = |_: u16, command: &str| (command == "CLUSTER SLOTS").then(|| slots(FOREIGN, 6379));
    let hostile = ScriptedRedis::start(table).await;
    use_cluster(hostile.port).await.unwrap_err();
    let text = lines.taken();
    assert!(text.contains(FOREIGN) && text.contains("private network"), "{text}");
    assert!(!text.contains("sesame"), "{text}");
}

/// A number before a reply is not believed: what it announces is taken when it arrives.
#[tokio::test]
async fn the_announced_length_of_a_reply_takes_no_memory() {
    for reply in ["*9223372036854775807\r\n", "*1000000000000\r\n", "$9223372036854775000\r\n", "*-5\r\n"] {
        let peer =
            ScriptedRedis::start(move |_, command| command.starts_with("CONFIG").then(|| reply.to_owned()));
        let options = RedisOptions::default().timeout(Duration::from_millis(200));
        let url = format!("redis://127.0.0.1:{}", peer.await.port);
        assert!(Redis::connect_with(&url, options).await.is_err(), "{reply:?}");
    }
}
