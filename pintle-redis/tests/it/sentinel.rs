//! A primary with a replica and a Sentinel: clients follow when the replica takes over.

use std::time::Duration;

use bytes::Bytes;
use pintle::{
    Server,
    server::http::nodes::{NodeEvent, Nodes as _},
};
use pintle_redis::{Redis, RedisOptions};
use tokio::time::timeout;

use crate::{
    faults::{INITIALIZE, PING, SESSION, post},
    kits,
    redis_folder::{RedisFolder, ask, until},
    redis_server::is_installed,
};

const SOON: Duration = Duration::from_secs(30);

struct SentinelRedis {
    folder: RedisFolder,
    primary: u16,
    replica: u16,
    sentinel: u16,
}

impl SentinelRedis {
    async fn start() -> Option<Self> {
        if !is_installed() {
            return None;
        }
        let mut folder = RedisFolder::new("sentinel");
        let [primary, replica, sentinel] = [(); 3].map(|()| RedisFolder::free_port());
        let memory = ["--save", "", "--appendonly", "no"];
        // Without the delay in which a primary waits for more replicas.
        let quick = ["--repl-diskless-sync-delay", "0"];
        folder.start(primary, &[&memory[..], &quick].concat()).await;
        let of = format!("127.0.0.1 {primary}");
        folder.start(replica, &[&memory[..], &quick, &["--replicaof", &of]].concat()).await;
        until("the replica has the data", async || {
            let info: String = ask(primary, "INFO replication").await.ok()?;
            info.contains("state=online").then_some(())
        })
        .await;
        let monitor = format!(
            "sentinel monitor main 127.0.0.1 {primary} 1\nsentinel down-after-milliseconds main 60000\n"
        );
        folder.write("sentinel.conf", &monitor);
        folder.start(sentinel, &["sentinel.conf", "--sentinel"]).await;
        Some(Self { folder, primary, replica, sentinel })
    }

    /// One Sentinel is there, the other one is not.
    fn url(&self) -> String {
        format!("redis+sentinel://127.0.0.1:1,127.0.0.1:{}/main/0", self.sentinel)
    }

    /// Makes the replica the primary.
    async fn fail_over(&self) {
        until("the Sentinel fails over", async || {
            ask::<()>(self.sentinel, "SENTINEL FAILOVER main").await.ok()
        })
        .await;
        until("the Sentinel names the replica", async || {
            let words = "SENTINEL GET-MASTER-ADDR-BY-NAME main";
            let (_, port): (String, u16) = ask(self.sentinel, words).await.ok()?;
            (port == self.replica).then_some(())
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_follow_when_a_replica_takes_over() {
    let Some(mut redis) = SentinelRedis::start().await else { return };
    kits::check_stores(&redis.url()).await;

    // The lease is longer than the time in which nobody is the primary.
    let options = RedisOptions::default().lease(4 * SOON);
    let url = redis.url();
    let connect = async || Redis::connect_with(&url, options.clone()).await.unwrap();
    let (a, b) = (connect().await, connect().await);
    let notes = Server::new("notes", "1");
    let http = notes.http().unwrap().shared(a);
    let opened = post(&http, None, INITIALIZE).await;
    let session = opened.headers()[SESSION].to_str().unwrap().to_owned();
    assert_eq!(post(&http, Some(&session), PING).await.status(), 200);
    until("the replica has the session", async || {
        let found: i64 = ask(redis.replica, &format!("EXISTS pintle:s:{{{session}}}")).await.ok()?;
        (found == 1).then_some(())
    })
    .await;

    redis.fail_over().await;
    // The old primary is a replica now, and takes no writes: then it is gone.
    let status = until("a process writes again", async || {
        let status = post(&http, Some(&session), PING).await.status();
        assert_ne!(status, 404, "the session is not lost");
        (status != 503).then_some(status)
    })
    .await;
    assert_eq!(status, 200);
    redis.folder.kill(redis.primary);
    assert_eq!(
        until("the other primary is used", async || {
            let status = post(&http, Some(&session), PING).await.status();
            (status != 503).then_some(status)
        })
        .await,
        200
    );

    // Messages go on, as those of processes that are new.
    let c = connect().await;
    until("a message is sent", async || {
        c.send_to(b.id(), Bytes::from_static(b"after")).await.ok()?.then_some(())
    })
    .await;
    let received = timeout(SOON, async {
        loop {
            if let NodeEvent::Message(message) = b.receive().await.unwrap() {
                break message;
            }
        }
    });
    assert_eq!(received.await.unwrap(), "after");
    kits::check_messages(&redis.url()).await;
}
