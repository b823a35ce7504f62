//! Three processes and one Redis, which are killed, paused, restarted and cut off, and 64 clients of all revisions that watch what they get.
//!
//! `cargo xtask chaos --fleet` runs it for longer, and repeats the faults of a seed.

mod link;
mod node;
mod random;
mod session_client;
mod session_tasks;
mod stateless_client;
mod stateless_tasks;
mod tally;
mod trace;
mod wire;
mod world;

use std::{collections::HashMap, fs, process::Command, sync::Arc, time::Duration};

use pintle::client::http::{Limits, Requests};
use tokio::{task::JoinSet, time::Instant};

use self::{
    random::Random,
    session_client::SessionClient,
    stateless_client::StatelessClient,
    tally::Tally,
    trace::Trace,
    world::{Store, World},
};

const CLIENTS: u64 = 64;
/// The seconds of a run in the tests.
const SHORT: u64 = 16;
/// The memory of a process, in kB, that it never needs.
const MEMORY: u64 = 300_000;

/// The revisions of the clients, in turn. The last one has no sessions.
const REVISIONS: [Option<&str>; 5] =
    [Some("2024-11-05"), Some("2025-03-26"), Some("2025-06-18"), Some("2025-11-25"), None];

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().unwrap_or_else(|_| panic!("{name}: {value}")))
}

/// What has to have happened at least once.
const NEEDED: [&str; 13] = [
    "echo: ok",
    "steps: ok",
    "ask: ok",
    "pay: ok",
    "order: ok",
    "watch: received",
    "listen: received",
    "end: ok",
    "cancel: ok",
    "stateless task: completed",
    "stateless task: cancelled",
    "task: completed",
    "task: cancelled",
];

/// How often clients go on without faults, because something has not happened yet on a busy machine.
const MORE: u64 = 20;

/// Starts the clients.
fn start_clients(world: &World, store: Store, (seed, round): (u64, u64), until: Instant) -> JoinSet<Tally> {
    let mut limits = Limits::default();
    limits.head_wait = wire::LIMIT;
    let requests = Arc::new(Requests::new().limits(limits));
    let mut clients = JoinSet::new();
    for number in 0..CLIENTS {
        let number = round * CLIENTS + number;
        let random = Random::new(seed, number + 10);
        let (requests, urls) = (requests.clone(), world.urls());
        let revision = REVISIONS[usize::try_from(number).unwrap() % REVISIONS.len()];
        let name = format!("client {number} of {}", revision.unwrap_or("2026-07-28"));
        match revision {
            Some(revision) => {
                clients.spawn(SessionClient::new(requests, urls, revision, random, store, name).run(until))
            }
            None => clients.spawn(StatelessClient::new(requests, urls, random, store, name).run(until)),
        };
    }
    clients
}

/// Returns what the clients saw, once they have ended.
async fn collect(mut clients: JoinSet<Tally>) -> Tally {
    let mut tally = Tally::default();
    while let Some(client) = clients.join_next().await {
        tally.add(client.unwrap());
    }
    tally
}

/// Runs the clients and the faults, and returns what the clients saw.
async fn run(world: &World, store: Store, seed: u64, seconds: u64) -> Tally {
    let start = Instant::now();
    // The last seconds are without faults.
    let (calm, until) = (start + Duration::from_secs(seconds * 4 / 5), start + Duration::from_secs(seconds));
    let clients = start_clients(world, store, (seed, 0), until);
    let (kills, breaks) = tokio::join!(
        world.kill_nodes(Random::new(seed, 1), calm),
        world.break_store(Random::new(seed, 2), calm)
    );
    eprintln!("chaos: {store:?}: {kills} processes killed, {breaks} faults of the store");
    let mut tally = collect(clients).await;
    for round in 1..=MORE {
        if NEEDED.iter().all(|what| tally.of(what) > 0) {
            break;
        }
        let until = Instant::now() + Duration::from_secs(5);
        tally.add(collect(start_clients(world, store, (seed, round), until)).await);
    }
    tally
}

/// Checks that no act was done twice, and returns the number of acts. A store that forgets the use of a state lets it be used again.
fn check_ledger(world: &World, store: Store, tally: &mut Tally) -> usize {
    let ledger = fs::read_to_string(world.ledger()).unwrap_or_default();
    let mut acts: HashMap<&str, usize> = HashMap::new();
    for key in ledger.lines() {
        *acts.entry(key).or_default() += 1;
    }
    for (key, count) in acts.iter().filter(|(_, count)| **count > 1) {
        match store {
            Store::Durable => {
                let what = format!("the act of the call `{key}` was done {count} times");
                tally.violate(what, &mut Trace::default());
            }
            // Nobody runs a task or a recorded call again that the store has forgotten.
            Store::Forgetful if key.starts_with("task") || key.starts_with("call") => {
                let what = format!("the act of `{key}` was done {count} times");
                tally.violate(what, &mut Trace::default());
            }
            Store::Forgetful => tally.count("act done again, because its state was forgotten"),
        }
    }
    acts.len()
}

async fn check_keys(world: &World, tally: &mut Tally) -> usize {
    let client = redis::Client::open(world.redis_url()).unwrap();
    let mut connection = crate::redis_server::connected(&client).await.unwrap();
    let keys: Vec<String> = redis::cmd("KEYS").arg("*").query_async(&mut connection).await.unwrap();
    for key in &keys {
        let left: i64 = redis::cmd("PTTL").arg(key).query_async(&mut connection).await.unwrap();
        if left == -1 {
            tally.violate(format!("the key `{key}` has no expiry"), &mut Trace::default());
        }
    }
    keys.len()
}

async fn chaos(store: Store) {
    let is_required = std::env::var_os("PINTLE_REQUIRE_REDIS").is_some();
    let length = variable("PINTLE_CHAOS_SECONDS").or(is_required.then_some(SHORT));
    let Some(seconds) = length else {
        return eprintln!("skipped: run `cargo xtask chaos --fleet`");
    };
    // One after the other: each has as many processes as the machine likes.
    static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    let _turn = TURN.lock().await;
    let missing = Command::new("redis-server").arg("--version").output().is_err();
    if missing {
        assert!(!is_required, "`redis-server` is missing");
        eprintln!("skipped: `redis-server` is not installed");
        return;
    }
    let now = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    // The short form is the same each time.
    let seed = variable("PINTLE_CHAOS_SEED").or(is_required.then_some(1)).unwrap_or_else(now);
    eprintln!(
        "chaos: {store:?}, {seconds} s, repeat it with `cargo xtask chaos --fleet --seed {seed} --seconds {seconds}`"
    );
    let world = World::start(store, seed).await;
    let mut tally = run(&world, store, seed, seconds).await;
    world.settle().await;
    let acts = check_ledger(&world, store, &mut tally);
    let keys = check_keys(&world, &mut tally).await;
    let memory = world.memory();
    tally.print();
    eprintln!("chaos: {store:?}: {acts} acts, {keys} keys, {memory} kB");
    for (violation, trace) in tally.violations.iter().take(10) {
        eprintln!("violated: {violation}\n{}", world.explain(trace.clone()));
    }
    for (violation, _) in tally.violations.iter().skip(10) {
        eprintln!("violated: {violation}");
    }
    if !tally.violations.is_empty() {
        eprintln!("faults:\n{}the logs of the processes are in `{}`", world.faults(), world.keep().display());
    }
    assert!(tally.violations.is_empty(), "seed {seed}: {} violations", tally.violations.len());
    assert!(memory < MEMORY, "a process has {memory} kB");
    for what in NEEDED {
        assert!(tally.of(what) > 0, "seed {seed}: nothing was `{what}`");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_call_has_one_answer_whatever_happens() {
    chaos(Store::Durable).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_store_that_forgets_clients_open_new_sessions_and_nothing_else_is_lost() {
    chaos(Store::Forgetful).await;
}
