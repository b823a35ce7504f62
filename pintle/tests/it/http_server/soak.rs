//! One endpoint, one process, clients of every revision at once: each sees its own, and only that.
//!
//! `PINTLE_SOAK_SECONDS=60` goes on for so long instead of a number of rounds.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use pintle::{
    Connection,
    client::{Change, Changes, Event},
    server::tool,
};
use serde_json::json;
use tokio::sync::oneshot;

use crate::support::{
    eras::{ALL, R1},
    http_server::{World, connect, marked, soon},
};

const CLIENTS: usize = 64;
const ROUNDS: u64 = 5;

/// When it is enough.
#[derive(Clone, Copy)]
enum Until {
    Round(u64),
    Time(Instant),
}

impl Until {
    fn chosen() -> Self {
        let seconds = std::env::var("PINTLE_SOAK_SECONDS").ok().and_then(|text| text.parse().ok());
        seconds
            .map_or(Self::Round(ROUNDS), |seconds| Self::Time(Instant::now() + Duration::from_secs(seconds)))
    }

    fn is_over(self, round: u64) -> bool {
        match self {
            Self::Round(last) => round >= last,
            Self::Time(last) => Instant::now() >= last,
        }
    }
}

#[derive(Default)]
struct Figures {
    rounds: AtomicU64,
    calls: AtomicU64,
    by_revision: [AtomicU64; 5],
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn clients_of_every_revision_see_only_their_own() {
    let world = World::new();
    let serving = world.serve().await;
    let address = serving.address();
    let (until, start) = (Until::chosen(), Instant::now());
    let figures = Arc::new(Figures::default());
    let clients: Vec<_> = (0..CLIENTS)
        .map(|n| {
            let (figures, server) = (figures.clone(), world.server.clone());
            tokio::spawn(async move {
                let (revision, name) = (ALL[n % ALL.len()], format!("client-{n}-"));
                let connection = connect(revision, &name, address).await;
                let mut changes = soon(connection.changes()).await.unwrap();
                soon(connection.subscribe(format!("note://{name}"))).await.unwrap();
                let mut round = 0;
                while !until.is_over(round) {
                    one_round(&connection, &mut changes, &name, round).await;
                    if n < ALL.len() {
                        // Everybody is told of this.
                        server.add_tool(tool(name.clone(), || async { "" })).unwrap();
                        server.remove_tool(&name);
                    }
                    figures.calls.fetch_add(5, Ordering::Relaxed);
                    figures.by_revision[n % ALL.len()].fetch_add(1, Ordering::Relaxed);
                    round += 1;
                }
                figures.rounds.fetch_add(round, Ordering::Relaxed);
                drop(changes);
                soon(connection.close()).await;
            })
        })
        .collect();
    for client in clients {
        client.await.unwrap();
    }
    let (rounds, calls) = (figures.rounds.load(Ordering::Relaxed), figures.calls.load(Ordering::Relaxed));
    let sockets = world.sockets.load(Ordering::Relaxed);
    let by_revision: Vec<_> = figures.by_revision.iter().map(|n| n.load(Ordering::Relaxed)).collect();
    eprintln!(
        "{rounds} rounds ({by_revision:?} by revision), {calls} calls over {sockets} sockets in {:?}",
        start.elapsed()
    );
    world.empty().await;
    let shutdown = serving.shutdown(Duration::from_secs(20)).await;
    assert_eq!(shutdown.aborted, 0);
}

async fn one_round(connection: &Connection, changes: &mut Changes, name: &str, round: u64) {
    let mark = format!("{name}{round}");
    assert_eq!(soon(marked(connection, "echo", &mark)).await.unwrap(), mark);

    let received = Arc::new(Mutex::new(Vec::new()));
    let steps = {
        let received = received.clone();
        connection.call("steps").args(json!({"mark": mark, "steps": 4})).on_progress(move |progress| {
            received.lock().unwrap().push((progress.progress, progress.message.unwrap_or_default()));
        })
    };
    soon(steps.send()).await.unwrap();
    // The oldest revision has no words for progress.
    let words = if connection.revision().to_string() == R1 { String::new() } else { mark.clone() };
    let expected: Vec<_> = (1..=4).map(|step| (f64::from(step), words.clone())).collect();
    assert_eq!(*received.lock().unwrap(), expected);

    let answer = soon(marked(connection, "ask", &mark)).await.unwrap();
    assert_eq!(answer, format!("{mark}: {name} heard {mark}"));

    let (began, begun) = oneshot::channel();
    let mut began = Some(began);
    let waits =
        connection.call("wait").args(json!({ "mark": mark })).timeout(Duration::from_secs(600)).on_progress(
            move |progress| {
                assert_eq!(progress.message.unwrap_or_default(), words);
                began.take().map(|began| began.send(()));
            },
        );
    soon(async {
        tokio::select! {
            ended = waits.send() => panic!("{ended:?}"),
            begun = begun => begun.unwrap(),
        }
    })
    .await;

    assert_eq!(soon(marked(connection, "touch", name)).await.unwrap(), name);
    loop {
        match soon(changes.next()).await.expect("the connection goes on") {
            Event::Changed(Change::Tools) => {}
            Event::Changed(Change::Resource(uri)) => {
                assert_eq!(*uri, *format!("note://{name}"));
                break;
            }
            other => panic!("{other:?}"),
        }
    }
}
