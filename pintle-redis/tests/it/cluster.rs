//! A cluster of three: the contracts of all stores, slots that move, and a node that is down.

use std::{collections::HashSet, time::Duration};

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
    redis_server::{expiries, is_installed},
};

const SOON: Duration = Duration::from_secs(20);
const SLOTS: u16 = 16384;
const THIRD: u16 = SLOTS / 3 + 1;

/// Three nodes with a third of the slots each.
struct RedisCluster {
    folder: RedisFolder,
    ports: [u16; 3],
}

impl RedisCluster {
    async fn start(name: &str) -> Option<Self> {
        if !is_installed() {
            return None;
        }
        let mut folder = RedisFolder::new(name);
        let ports = [(); 3].map(|()| RedisFolder::free_port());
        for (port, epoch) in ports.into_iter().zip(1_u16..) {
            start_node(&mut folder, port).await;
            let slots: Vec<_> =
                (THIRD * (epoch - 1)..SLOTS.min(THIRD * epoch)).map(|slot| slot.to_string()).collect();
            ask::<()>(port, &format!("CLUSTER ADDSLOTS {}", slots.join(" "))).await.unwrap();
            ask::<()>(port, &format!("CLUSTER SET-CONFIG-EPOCH {epoch}")).await.unwrap();
            ask::<()>(ports[0], &format!("CLUSTER MEET 127.0.0.1 {port}")).await.unwrap();
        }
        let cluster = Self { folder, ports };
        cluster.is_whole().await;
        Some(cluster)
    }

    /// Waits until all nodes know all slots.
    async fn is_whole(&self) {
        for port in self.ports {
            until("the cluster is whole", async || {
                let info: String = ask(port, "CLUSTER INFO").await.ok()?;
                let is_whole = info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3");
                is_whole.then_some(())
            })
            .await;
        }
    }

    /// The address of the cluster. It is found by those nodes that are there.
    fn url(&self) -> String {
        format!("redis+cluster://127.0.0.1:{},127.0.0.1:1", self.ports[0])
    }

    async fn connect(&self, options: &RedisOptions) -> Redis {
        Redis::connect_with(&self.url(), options.clone()).await.unwrap()
    }

    /// Starts to move the slot of a key to the next node. Returns the slot, and the two nodes.
    async fn start_move(&self, key: &str) -> (u16, u16, u16) {
        let slot: u16 = ask(self.ports[0], &format!("CLUSTER KEYSLOT {key}")).await.unwrap();
        let owner = usize::from(slot / THIRD);
        let (from, to) = (self.ports[owner], self.ports[(owner + 1) % 3]);
        let (from_id, to_id) = (id_of(from).await, id_of(to).await);
        ask::<()>(to, &format!("CLUSTER SETSLOT {slot} IMPORTING {from_id}")).await.unwrap();
        ask::<()>(from, &format!("CLUSTER SETSLOT {slot} MIGRATING {to_id}")).await.unwrap();
        (slot, from, to)
    }

    /// Moves the keys of the slot, and tells the nodes of it.
    async fn finish_move(&self, (slot, from, to): (u16, u16, u16)) {
        let keys: Vec<String> = ask(from, &format!("CLUSTER GETKEYSINSLOT {slot} 100")).await.unwrap();
        for key in keys {
            ask::<()>(from, &format!("MIGRATE 127.0.0.1 {to} {key} 0 5000")).await.unwrap();
        }
        for port in [to, from] {
            ask::<()>(port, &format!("CLUSTER SETSLOT {slot} NODE {}", id_of(to).await)).await.unwrap();
        }
    }
}

/// Starts a node, which knows the cluster if it was part of it before. It has no keys.
async fn start_node(folder: &mut RedisFolder, port: u16) {
    let file = format!("nodes-{port}.conf");
    let arguments = ["--cluster-enabled", "yes", "--cluster-config-file", &file, "--save", ""];
    folder.start(port, &arguments).await;
}

async fn id_of(port: u16) -> String {
    ask(port, "CLUSTER MYID").await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_keeps_all_contracts() {
    let Some(cluster) = RedisCluster::start("cluster").await else { return };
    let url = cluster.url();
    kits::check_stores(&url).await;
    kits::check_event_logs(&url).await;
    kits::check_messages(&url).await;
    kits::check_tasks(&url).await;
    kits::check_services(&url).await;
    for port in cluster.ports {
        let (keys, lasting) = expiries(&format!("redis://127.0.0.1:{port}/")).await;
        assert!(keys > 0, "all keys are at other nodes");
        assert_eq!(lasting, Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slots_of_a_cluster_move_under_its_clients() {
    let Some(cluster) = RedisCluster::start("cluster-moves").await else { return };
    // The moves of a busy machine take their time.
    let options = RedisOptions::default().timeout(SOON).lease(SOON);
    let (a, b) = (cluster.connect(&options).await, cluster.connect(&options).await);
    let notes = Server::new("notes", "1");
    let http = notes.http().unwrap().shared(a.clone());
    let opened = post(&http, None, INITIALIZE).await;
    let session = opened.headers()[SESSION].to_str().unwrap().to_owned();

    // While a slot moves, a key that is not there is refused, and the command waits for the end.
    let nonce = [7; 32];
    let key = format!("pintle:n:{}", "07".repeat(32));
    let moving = cluster.start_move(&key).await;
    let used = tokio::spawn({
        let a = a.clone();
        async move { kits::first_use(&a, &nonce, u64::from(u32::MAX)).await }
    });
    until("a command is refused", async || {
        let errors: String = ask(moving.1, "INFO errorstats").await.ok()?;
        errors.contains("errorstat_ASK").then_some(())
    })
    .await;
    cluster.finish_move(moving).await;
    assert!(timeout(SOON, used).await.unwrap().unwrap().unwrap());
    assert!(
        !kits::first_use(&b, &nonce, u64::from(u32::MAX)).await.unwrap(),
        "it was written at the new place, once"
    );

    // Those that move with their keys are found where they are.
    for key in [format!("pintle:s:{{{session}}}"), "pintle:{nodes}:changes".to_owned()] {
        let moving = cluster.start_move(&key).await;
        cluster.finish_move(moving).await;
    }
    assert_eq!(post(&http, Some(&session), PING).await.status(), 200);
    b.publish(Bytes::from_static(b"change")).await.unwrap();
    // The lists that the service has published itself are not heard by it.
    let received = timeout(SOON, async {
        let c = cluster.connect(&options).await;
        assert!(c.send_to(b.id(), Bytes::from_static(b"message")).await.unwrap());
        loop {
            if let NodeEvent::Message(message) = b.receive().await.unwrap() {
                break message;
            }
        }
    });
    assert_eq!(received.await.unwrap(), "message");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_of_a_cluster_that_is_down_is_503_until_it_is_back() {
    let Some(mut cluster) = RedisCluster::start("cluster-down").await else { return };
    let options = RedisOptions::default().timeout(Duration::from_millis(500));
    let notes = Server::new("notes", "1");
    let http = notes.http().unwrap().shared(cluster.connect(&options).await);
    let opened = post(&http, None, INITIALIZE).await;
    let session = opened.headers()[SESSION].to_str().unwrap().to_owned();
    assert_eq!(post(&http, Some(&session), PING).await.status(), 200);
    let slot: u16 = ask(cluster.ports[0], &format!("CLUSTER KEYSLOT {session}")).await.unwrap();
    let port = cluster.ports[usize::from(slot / THIRD)];
    cluster.folder.kill(port);
    for _ in 0..3 {
        let refused = post(&http, Some(&session), PING).await;
        assert_eq!(refused.status(), 503);
        assert!(refused.headers().contains_key("retry-after"));
    }
    // What it had is lost, and all nodes serve again.
    start_node(&mut cluster.folder, port).await;
    cluster.is_whole().await;
    until("the session is known to be lost", async || {
        let lost = post(&http, Some(&session), PING).await.status();
        assert!(matches!(lost.as_u16(), 404 | 503), "{lost}");
        (lost == 404).then_some(())
    })
    .await;
    let mut nodes = HashSet::new();
    while nodes.len() < 3 {
        let opened = post(&http, None, INITIALIZE).await;
        assert_eq!(opened.status(), 200);
        let session = opened.headers()[SESSION].to_str().unwrap().to_owned();
        assert_eq!(post(&http, Some(&session), PING).await.status(), 200);
        let slot: u16 = ask(port, &format!("CLUSTER KEYSLOT {session}")).await.unwrap();
        nodes.insert(slot / THIRD);
    }
}
