//! Tasks through two relays in a row, of every pairing of eras, and those of a relay that was started again.

use std::{sync::atomic::Ordering, time::Duration};

use pintle::{Server, server::StateKeys};
use pintle_tasks::Tasks;
use serde_json::json;
use tokio::time::sleep;

use super::across_eras::{declares, follow, kitchen};
use crate::{
    support::durable::Durable,
    support::{
        drop_counter::DropCounter,
        eras::{Client, R4, R5},
        tasks::{polled, start},
    },
    world::{self, ERAS},
};

#[tokio::test(start_paused = true)]
async fn a_task_passes_two_relays_of_any_eras() {
    for (first, second) in [(0, 1), (1, 0), (0, 0), (1, 1)].map(|(one, two)| (ERAS[one], ERAS[two])) {
        let dropped = DropCounter::default();
        let behind = world::relay(&kitchen(&dropped), second).await;
        let mounted = Server::new("middle", "1").mount("m", behind.clone());
        for (middle, way) in [(behind.into_server(), "x_"), (mounted, "x_m_")] {
            let front = Server::new("front", "1").mount("x", world::relay(&middle, first).await);
            for era in ERAS {
                let mut client = Client::open(&front, era, declares()).await;
                let followed = follow(&mut client, &format!("{way}order")).await;
                assert_eq!(followed.result["content"][0]["text"], "tea", "{era} to {first} to {second}");
                let before = dropped.count();
                let id = start(&mut client, &format!("{way}sleep")).await;
                polled(&mut client, &id, "working").await;
                client.call("tasks/cancel", json!({"taskId": id})).await;
                polled(&mut client, &id, "cancelled").await;
                sleep(Duration::from_secs(5)).await;
                assert_eq!(dropped.count(), before + 1, "{era} to {first} to {second}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_durable_store_keeps_the_results_of_tasks_across_the_eras() {
    let store = Durable::default();
    // The first process gives no sign of life.
    store.is_mute.store(true, Ordering::SeqCst);
    let start_relay = async |store: Durable| {
        let relay = world::relay(&kitchen(&DropCounter::default()), R4).await;
        let tasks = Tasks::new().store(store).lease(Duration::from_secs(1));
        relay.tasks(tasks).into_server().state_keys(StateKeys::from([7; 32]))
    };
    let mut client = Client::open(&start_relay(store.clone()).await, R5, declares()).await;
    let done = start(&mut client, "now").await;
    polled(&mut client, &done, "completed").await;
    let running = start(&mut client, "sleep").await;

    let mut client = Client::open(&start_relay(store.another()).await, R5, declares()).await;
    let got = polled(&mut client, &done, "completed").await;
    assert_eq!(got["result"]["content"][0]["text"], "at once", "{got}");
    let ended = polled(&mut client, &running, "failed").await;
    let message = ended["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("the server ended while the task ran"), "{ended}");
}
