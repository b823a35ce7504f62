//! Tasks through two relays in a row, of every pairing of eras.

use std::time::Duration;

use pintle::Server;
use serde_json::json;
use tokio::time::sleep;

use super::across_eras::{declares, follow, kitchen};
use crate::{
    relay::world::{self, ERAS},
    support::{
        drop_counter::DropCounter,
        eras::Client,
        tasks::{polled, start},
    },
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
