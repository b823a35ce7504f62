//! The processes of the fleet, their Redis, and what happens to them.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::time::{Instant, sleep, sleep_until};

use super::{link::Link, node, random::Random, trace::Trace};
use crate::redis_server::free_port;

/// The number of processes that serve.
pub(super) const NODES: usize = 3;

/// What Redis keeps.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Store {
    /// It acknowledges nothing that it can lose in a restart.
    Durable,
    /// It is empty after a restart.
    Forgetful,
}

/// The processes of a fleet, and their Redis. They end when it is dropped.
pub(super) struct World {
    store: Store,
    folder: PathBuf,
    redis_port: u16,
    redis: Mutex<Option<Child>>,
    ports: [u16; NODES],
    nodes: [Mutex<Option<Child>>; NODES],
    links: [Link; NODES],
    faults: Mutex<Trace>,
    is_kept: AtomicBool,
}

async fn listens(port: u16) {
    for _ in 0..1500 {
        if tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
            return;
        }
        sleep(Duration::from_millis(20)).await;
    }
    panic!("nothing listens on port {port}");
}

fn end(process: &Mutex<Option<Child>>) {
    if let Some(mut child) = process.lock().unwrap().take() {
        let _ = child.kill();
        let _ = child.wait();
    }
}

impl World {
    pub(super) async fn start(store: Store, seed: u64) -> Self {
        let folder =
            std::env::temp_dir().join(format!("pintle-chaos-{}-{seed}-{store:?}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let redis_port = free_port();
        let world = Self {
            store,
            folder,
            redis_port,
            redis: Mutex::default(),
            ports: std::array::from_fn(|_| free_port()),
            nodes: Default::default(),
            links: [Link::new(redis_port).await, Link::new(redis_port).await, Link::new(redis_port).await],
            faults: Mutex::default(),
            is_kept: AtomicBool::new(false),
        };
        world.start_redis().await;
        for node in 0..NODES {
            world.start_node(node);
        }
        for port in world.ports {
            listens(port).await;
        }
        world
    }

    async fn start_redis(&self) {
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--save", "", "--port", &self.redis_port.to_string()]);
        match self.store {
            Store::Durable => command.args(["--appendonly", "yes", "--appendfsync", "always"]),
            Store::Forgetful => command.args(["--appendonly", "no"]),
        };
        command.current_dir(&self.folder).stdout(Stdio::null());
        *self.redis.lock().unwrap() = Some(command.spawn().unwrap());
        self.redis_serves().await;
        let ended = self.redis.lock().unwrap().as_mut().and_then(|redis| redis.try_wait().unwrap());
        assert_eq!(ended, None, "`redis-server` has ended");
    }

    /// Waits until Redis has read its data: a fault is not longer than it is meant to be.
    async fn redis_serves(&self) {
        listens(self.redis_port).await;
        let client = redis::Client::open(self.redis_url()).unwrap();
        for _ in 0..1500 {
            if let Ok(mut connection) = crate::redis_server::connected(&client).await
                && redis::cmd("PING").query_async::<String>(&mut connection).await.is_ok()
            {
                return;
            }
            sleep(Duration::from_millis(20)).await;
        }
        panic!("Redis does not serve");
    }

    fn start_node(&self, node: usize) {
        let port = self.ports[node];
        let child = node::start(port, &self.links[node].url(), &self.ledger(), &self.log(port));
        self.note(format_args!("{} is started", self.ports[node]));
        *self.nodes[node].lock().unwrap() = Some(child);
    }

    fn note(&self, what: impl std::fmt::Display) {
        self.faults.lock().unwrap().add(what);
    }

    /// Returns the faults so far, a line each.
    pub(super) fn faults(&self) -> String {
        self.faults.lock().unwrap().to_string()
    }

    /// Returns the trace of a client, with the faults and with what the processes logged in that time.
    pub(super) fn explain(&self, mut trace: Trace) -> Trace {
        for port in self.ports {
            let log = std::fs::read(self.log(port)).unwrap_or_default();
            trace.add_log(&port.to_string(), &String::from_utf8_lossy(&log));
        }
        trace.add_last(20, &self.faults.lock().unwrap());
        trace
    }

    fn log(&self, port: u16) -> PathBuf {
        self.folder.join(format!("{port}.log"))
    }

    /// Keeps the files of the processes, and returns where they are.
    pub(super) fn keep(&self) -> &Path {
        self.is_kept.store(true, Ordering::Relaxed);
        &self.folder
    }

    pub(super) fn ledger(&self) -> PathBuf {
        self.folder.join("ledger")
    }

    /// The URLs of the processes.
    pub(super) fn urls(&self) -> Vec<String> {
        self.ports.iter().map(|port| format!("http://127.0.0.1:{port}/mcp")).collect()
    }

    pub(super) fn redis_url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.redis_port)
    }

    /// Stops Redis without ending it, or continues it.
    fn signal_redis(&self, signal: &str) {
        let id = self.redis.lock().unwrap().as_ref().map(Child::id);
        if let Some(id) = id {
            let _ = Command::new("kill").args([signal, &id.to_string()]).status();
        }
    }

    /// Kills processes and starts them again.
    pub(super) async fn kill_nodes(&self, mut random: Random, until: Instant) -> usize {
        let mut faults = 0;
        loop {
            let pause = Duration::from_millis(1_000 + random.below(4_000));
            if Instant::now() + pause > until {
                return faults;
            }
            sleep(pause).await;
            let node = usize::try_from(random.below(NODES as u64)).unwrap();
            self.note(format_args!("{} is killed", self.ports[node]));
            end(&self.nodes[node]);
            sleep(Duration::from_millis(random.below(1_500))).await;
            self.start_node(node);
            faults += 1;
        }
    }

    /// Pauses Redis, restarts it, and cuts processes off.
    pub(super) async fn break_store(&self, mut random: Random, until: Instant) -> usize {
        let mut faults = 0;
        loop {
            let pause = Duration::from_millis(2_000 + random.below(4_000));
            if Instant::now() + pause > until {
                return faults;
            }
            sleep(pause).await;
            // Some are longer than the lease of a process.
            let long = random.below(6) == 0;
            let length = if long {
                node::LEASE + Duration::from_secs(2)
            } else {
                Duration::from_millis(200 + random.below(2_000))
            };
            let kind = random.below(4);
            let node = usize::try_from(random.below(NODES as u64)).unwrap();
            let port = self.ports[node];
            match kind {
                0 => {
                    self.note(format_args!("Redis is paused for {length:?}"));
                    self.signal_redis("-STOP");
                    sleep(length).await;
                    self.signal_redis("-CONT");
                }
                1 => {
                    self.note(format_args!("Redis is ended for {length:?}"));
                    end(&self.redis);
                    sleep(length).await;
                    self.start_redis().await;
                }
                _ => {
                    self.note(format_args!("{port} is cut off for {length:?}"));
                    self.links[node].set_cut(true);
                    sleep(length).await;
                    self.links[node].set_cut(false);
                }
            }
            faults += 1;
        }
    }

    /// Waits until all processes serve.
    pub(super) async fn settle(&self) {
        for port in self.ports {
            listens(port).await;
        }
        // They connect to Redis again within this time.
        sleep_until(Instant::now() + Duration::from_secs(3)).await;
    }

    /// Returns the memory of the largest process, in kB.
    pub(super) fn memory(&self) -> u64 {
        let of = |node: &Mutex<Option<Child>>| {
            let id = node.lock().unwrap().as_ref().map(Child::id)?;
            let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
            let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
            line.trim().trim_end_matches(" kB").parse::<u64>().ok()
        };
        self.nodes.iter().filter_map(of).max().unwrap_or_default()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.signal_redis("-CONT");
        self.nodes.iter().chain([&self.redis]).for_each(end);
        if !self.is_kept.load(Ordering::Relaxed) {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}
