//! Ten backends of all kinds, many clients, and a file that changes all the time: no call is lost, no principal sees another's, and
//! nothing grows.
//!
//! The clients count their calls: a slow machine takes longer, and does the same. `cargo xtask chaos --gateway` has more clients and
//! rounds, or as many as begin within some seconds, and repeats a seed.

mod backends;
mod client;
mod usage;

use std::{
    fs,
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::json;
use tokio::sync::watch;

use self::{
    backends::{Backends, HONEST},
    client::{PRINCIPALS, SoakClient},
    usage::Usage,
};
use crate::{
    bridge::chaos::Random,
    support::{HttpServing, machine::Machine, pintle},
};

/// The changes of the file that the clients of a round see at least.
const MIN_CHANGES: usize = 2;
/// The limit of lists until all honest backends are in one.
const MAX_LISTS: usize = 20;
/// The resources that the last round may leave more than any of the first half: in memory, parts that are free and not given back;
/// connections to backends that are kept for the next call.
const MARGIN: Usage = Usage { memory: 16_000, descriptors: 30, programs: 4 };
/// The rounds that are added until one has left no more: the first ones that list everything at the same time need more than others, and
/// what leaks grows in each.
const MAX_MORE_ROUNDS: usize = 5;
/// The bytes that a call may leave, while nothing else changes: what is free and not given back. A leak of a kilobyte is more.
const MAX_BYTES_OF_CALL: usize = 250;
/// The clients that make calls while nothing else changes.
const STEADY_CLIENTS: usize = 10;

fn variable<T: std::str::FromStr>(name: &str, otherwise: T) -> T {
    std::env::var(name)
        .map_or(otherwise, |value| value.parse().ok().unwrap_or_else(|| panic!("{name}: {value}")))
}

#[expect(clippy::print_stdout, reason = "the figures of a run are read by people")]
fn note(text: &str) {
    println!("{text}");
}

/// What the clients of a round have done.
#[derive(Clone, Copy, Default)]
struct Progress {
    calls: usize,
    /// The clients that are still calling.
    clients: usize,
}

/// One of the clients that are counted in the progress, until this is dropped.
struct Counted(watch::Sender<Progress>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.send_modify(|progress| progress.clients -= 1);
    }
}

/// A gateway whose file changes.
struct Soak {
    seed: u64,
    clients: usize,
    /// The calls that each client of a round makes at least.
    calls: usize,
    random: Random,
    backends: Backends,
    machine: Machine,
    gateway: HttpServing,
    /// The names of tools of the hostile backend.
    hostile: Arc<[String]>,
    /// The number of times that the file has changed.
    changes: usize,
    kills: usize,
}

impl Soak {
    async fn start() -> Self {
        let seed: u64 = variable("PINTLE_CHAOS_SEED", u64::from(std::process::id()));
        let clients: usize = variable("PINTLE_SOAK_CLIENTS", 8);
        let calls: usize = variable("PINTLE_SOAK_CALLS", 10);
        note(&format!("PINTLE_CHAOS_SEED={seed}, {clients} clients with {calls} calls each"));
        let mut random = Random(seed);
        let backends = Backends::start().await;
        let machine = Machine::new("gateway-soak");
        machine.write("team.toml", &backends.file(0, &mut random));
        let mut command = pintle();
        command.args(["gateway", "team.toml", "--http", "127.0.0.1:0"]).current_dir(machine.path(""));
        for principal in PRINCIPALS {
            command.args(["--bearer-env", principal]).env(principal, principal.to_lowercase());
        }
        // Memory that is free is given back, so that what stays is used.
        command.env("MALLOC_ARENA_MAX", "1");
        command.env("MALLOC_TRIM_THRESHOLD_", "65536").env("MALLOC_MMAP_THRESHOLD_", "65536");
        let gateway = HttpServing::of(command);
        let hostile = [].into();
        Self { seed, clients, calls, random, backends, machine, gateway, hostile, changes: 0, kills: 0 }
    }

    /// Waits until the honest backends are listed, and notes the names of the hostile one.
    async fn list(&mut self, client: &SoakClient) {
        let is_listed = |names: &[String], backend: &str| {
            names.iter().any(|name| name.starts_with(&format!("{backend}_")))
        };
        let are_listed = |names: &[String]| HONEST.iter().all(|backend| is_listed(names, backend));
        let mut names = super::names(&client.connection, are_listed).await;
        // A backend that is too slow for a list is left out of it, and nobody is notified.
        for _ in 0..MAX_LISTS {
            if are_listed(&names) {
                break;
            }
            names = client.connection.tools().await.unwrap().into_iter().map(|tool| tool.name).collect();
        }
        assert!(are_listed(&names), "{names:?}");
        // Its list may be left out, and then nobody has a name for its tools.
        let hostile = names.into_iter().filter(|name| name.starts_with("hostile_")).take(100);
        self.hostile = hostile.chain(["hostile_1".to_owned()]).collect();
    }

    /// Changes the file, and waits until it is in use.
    async fn change(&mut self) {
        self.changes += 1;
        let file = self.backends.file(self.changes, &mut self.random);
        self.machine.write("next.toml", &file);
        fs::rename(self.machine.path("next.toml"), self.machine.path("team.toml")).unwrap();
        self.gateway.printed_times("has changed, and is in use now", self.changes).await;
    }

    /// Has a new set of clients make their calls while the file changes and programs crash. Returns what the gateway keeps.
    async fn round(&mut self, round: usize) -> Usage {
        let (progress, mut seen) = watch::channel(Progress { calls: 0, clients: self.clients });
        let (changes, _) = watch::channel(0);
        let mut clients = tokio::task::JoinSet::new();
        for number in 0..self.clients {
            let counted = Counted(progress.clone());
            let (url, hostile, calls) = (self.gateway.url.clone(), self.hostile.clone(), self.calls);
            let mut random = Random(self.seed ^ (number as u64) << 32 ^ (round as u64) << 48);
            let changes = changes.subscribe();
            clients.spawn(async move {
                let client = SoakClient::connect(number, &url, hostile).await;
                let mut made = 0;
                while made < calls || *changes.borrow() < MIN_CHANGES {
                    client.call(&mut random).await;
                    made += 1;
                    counted.0.send_modify(|progress| progress.calls += 1);
                }
                client.connection.close().await;
            });
        }
        loop {
            // From a few calls after a change on to the next.
            let next = seen.borrow().calls + usize::try_from(self.random.below(40)).unwrap();
            let is_next = |progress: &Progress| progress.calls >= next || progress.clients == 0;
            if seen.wait_for(is_next).await.unwrap().clients == 0 {
                break;
            }
            self.change().await;
            self.kills += self.backends.crash();
            changes.send_modify(|changes| *changes += 1);
        }
        while let Some(ended) = clients.join_next().await {
            ended.unwrap();
        }
        let (usage, made) = (Usage::idle(self.gateway.id()).await, seen.borrow().calls);
        let Self { changes, kills, .. } = self;
        note(&format!(
            "round {round}: {made} calls; {changes} changes, {kills} programs killed until now; {usage:?}"
        ));
        usage
    }
}

/// Has clients of a gateway make calls while nothing else changes. Returns the kilobytes that it keeps then.
async fn steady(soak: &Soak, clients: &[Arc<SoakClient>], calls: usize) -> usize {
    let mut calling = tokio::task::JoinSet::new();
    for client in clients {
        let (client, calls) = (client.clone(), calls / clients.len());
        calling.spawn(async move {
            for number in 0..calls {
                client.call_quick(number).await;
            }
        });
    }
    while let Some(ended) = calling.join_next().await {
        ended.unwrap();
    }
    Usage::idle(soak.gateway.id()).await.memory
}

/// Makes calls until it is certain whether each leaves something: what the first ones need is not counted.
async fn no_call_leaves_anything(soak: &Soak, calls: usize) {
    let mut clients = Vec::new();
    for number in 0..STEADY_CLIENTS {
        clients.push(Arc::new(SoakClient::connect(number, &soak.gateway.url, [].into()).await));
    }
    let before = steady(soak, &clients, calls.div_ceil(4)).await;
    let after = steady(soak, &clients, calls).await;
    let bytes = after.saturating_sub(before) * 1000 / calls;
    note(&format!(
        "{calls} calls while nothing else changes: {before} to {after} kB, {bytes} bytes for each"
    ));
    assert!(bytes <= MAX_BYTES_OF_CALL, "each call leaves {bytes} bytes");
}

#[tokio::test]
async fn many_clients_of_ten_backends_lose_nothing_while_the_file_changes() {
    let rounds: usize = variable("PINTLE_SOAK_ROUNDS", 3);
    let length = Duration::from_secs(variable("PINTLE_SOAK_SECONDS", 0));
    let start = Instant::now();
    let mut soak = Soak::start().await;
    let first = SoakClient::connect(0, &soak.gateway.url, [].into()).await;
    soak.list(&first).await;
    // First, because what rounds have freed would hide what is not.
    let calls: usize = variable("PINTLE_SOAK_STEADY_CALLS", 0);
    if calls > 0 {
        no_call_leaves_anything(&soak, calls).await;
    }
    let (mut usages, mut more) = (Vec::new(), 0);
    loop {
        usages.push(soak.round(usages.len() + 1).await);
        if usages.len() < rounds.max(2) || start.elapsed() < length {
            continue;
        }
        let (first, last) = (Usage::most(&usages[..usages.len().div_ceil(2)]), usages[usages.len() - 1]);
        if last.is_within(first, MARGIN) {
            break;
        }
        assert!(more < MAX_MORE_ROUNDS, "each round leaves more: {usages:#?}");
        more += 1;
    }
    // The file that is written last is in use, and everybody is still served.
    assert_eq!(
        first.connection.call_tool("modern_echo", json!({"text": "end"})).await.unwrap().text(),
        "end"
    );
}
