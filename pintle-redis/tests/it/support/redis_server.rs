//! A Redis for one test.

use std::{
    net::TcpListener,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU16, Ordering},
    time::Duration,
};

use pintle_redis::{Redis, RedisOptions};

/// Returns whether `redis-server` is installed, and says so if it is not; with `PINTLE_REQUIRE_REDIS` that is a failure.
pub(crate) fn is_installed() -> bool {
    let found = Command::new("redis-server").arg("--version").stdout(Stdio::null()).status().is_ok();
    if !found {
        assert!(
            std::env::var_os("PINTLE_REQUIRE_REDIS").is_none(),
            "`redis-server` is missing: install Debian's package redis-server"
        );
        eprintln!("skipped: `redis-server` is not installed");
    }
    found
}

/// Returns a port that is free. It is below those that the system gives to connections, so that none takes it before a program has it, or
/// while one is restarted, and a connection to it does not meet itself.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    loop {
        let next = std::process::id() * 61 + u32::from(NEXT.fetch_add(7, Ordering::Relaxed));
        let port = u16::try_from(10_000 + next % 11_000).unwrap();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Opens a connection for the commands of a test. Those of the library have half a second by default, which is short on a busy machine.
pub(crate) async fn connected(
    client: &redis::Client,
) -> redis::RedisResult<redis::aio::MultiplexedConnection> {
    let limit = Some(Duration::from_secs(60));
    let config =
        redis::AsyncConnectionConfig::new().set_connection_timeout(limit).set_response_timeout(limit);
    client.get_multiplexed_async_connection_with_config(&config).await
}

/// A `redis-server` on a port of its own, which ends with the test.
pub(crate) struct RedisServer {
    child: Option<Child>,
    port: u16,
    /// The folder of its data, if it keeps them.
    folder: Option<PathBuf>,
}

impl RedisServer {
    /// Starts a server. Returns `None`, and says so, if it is not installed; with `PINTLE_REQUIRE_REDIS` that is a failure.
    pub(crate) async fn start() -> Option<Self> {
        if !is_installed() {
            return None;
        }
        let port = free_port();
        let mut server = Self { child: None, port, folder: None };
        server.restart().await;
        Some(server)
    }

    /// Has the server acknowledge only what is on the disk from now on.
    pub(crate) async fn keep_data(&mut self) {
        let folder = std::env::temp_dir().join(format!("pintle-redis-{}-{}", std::process::id(), self.port));
        std::fs::create_dir_all(&folder).unwrap();
        self.folder = Some(folder);
        self.restart().await;
    }

    /// Stops the process, or lets it go on, without closing its connections.
    pub(crate) fn set_paused(&self, paused: bool) {
        let signal = if paused { "-STOP" } else { "-CONT" };
        let id = self.child.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    /// Starts the server again: without what it had, unless it [keeps](Self::keep_data) it.
    pub(crate) async fn restart(&mut self) {
        self.stop();
        let port = self.port.to_string();
        let mut command = Command::new("redis-server");
        command.args(["--port", &port, "--bind", "127.0.0.1", "--save", ""]);
        match &self.folder {
            Some(folder) => {
                command.args(["--appendonly", "yes", "--appendfsync", "always"]).current_dir(folder)
            }
            // A replica writes what it is sent to a file of its folder.
            None => command.args(["--appendonly", "no"]).current_dir(std::env::temp_dir()),
        };
        self.child = Some(command.stdout(Stdio::null()).spawn().unwrap());
        for _ in 0..3_000 {
            if tokio::net::TcpStream::connect(("127.0.0.1", self.port)).await.is_ok() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("`redis-server` does not listen");
    }

    pub(crate) fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    pub(crate) async fn connect(&self, options: &RedisOptions) -> std::io::Result<Redis> {
        Redis::connect_with(&self.url(), options.clone()).await
    }

    /// Changes the value of a key. It expires as before.
    pub(crate) async fn change(&self, key: &str, change: impl FnOnce(Vec<u8>) -> Vec<u8>) {
        let client = redis::Client::open(self.url()).unwrap();
        let mut connection = connected(&client).await.unwrap();
        let value: Vec<u8> = redis::cmd("GET").arg(key).query_async(&mut connection).await.unwrap();
        let set = redis::cmd("SET").arg(key).arg(change(value)).arg("KEEPTTL").to_owned();
        let done: String = set.query_async(&mut connection).await.unwrap();
        assert_eq!(done, "OK");
    }

    /// Removes a key.
    pub(crate) async fn delete(&self, key: &str) {
        let client = redis::Client::open(self.url()).unwrap();
        let mut connection = connected(&client).await.unwrap();
        let removed: i64 = redis::cmd("DEL").arg(key).query_async(&mut connection).await.unwrap();
        assert_eq!(removed, 1, "there is no `{key}`");
    }

    /// Closes the connections of all others.
    pub(crate) async fn disconnect_all(&self) {
        let client = redis::Client::open(self.url()).unwrap();
        let mut connection = connected(&client).await.unwrap();
        let kill = redis::cmd("CLIENT").arg("KILL").arg("TYPE").arg("normal").to_owned();
        kill.query_async::<i64>(&mut connection).await.unwrap();
    }

    async fn ask<T: redis::FromRedisValue>(&self, command: &redis::Cmd) -> T {
        let client = redis::Client::open(self.url()).unwrap();
        let mut connection = connected(&client).await.unwrap();
        command.query_async(&mut connection).await.unwrap()
    }

    /// Makes the server a replica of another one.
    pub(crate) async fn follow(&self, primary: &Self) {
        let port = primary.port;
        self.ask::<String>(redis::cmd("REPLICAOF").arg("127.0.0.1").arg(port)).await;
        for _ in 0..1_500 {
            let role: Vec<redis::Value> = primary.ask(&redis::cmd("ROLE")).await;
            if matches!(role.get(2), Some(redis::Value::Array(replicas)) if !replicas.is_empty()) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("the replica does not follow");
    }

    /// Waits until the replica has all that was written.
    pub(crate) async fn replicated(&self) {
        let client = redis::Client::open(self.url()).unwrap();
        let mut connection = connected(&client).await.unwrap();
        let mut commands = redis::pipe();
        // Waits for the writes of its own connection.
        commands.cmd("SET").arg("replicated").arg(1).arg("EX").arg(600).ignore();
        commands.cmd("WAIT").arg(1).arg(10_000);
        let (replicas,): (i64,) = commands.query_async(&mut connection).await.unwrap();
        assert_eq!(replicas, 1);
    }

    /// Ends the replication, so that the server takes writes.
    pub(crate) async fn lead(&self) {
        self.ask::<String>(redis::cmd("REPLICAOF").arg("NO").arg("ONE")).await;
    }

    /// Waits until a change is published.
    pub(crate) async fn has_changes(&self) {
        for _ in 0..1_500 {
            let changes: i64 = self.ask(redis::cmd("XLEN").arg("pintle:{nodes}:changes")).await;
            if changes > 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("no change is published");
    }

    /// Returns the bytes of all keys.
    pub(crate) async fn memory(&self) -> usize {
        let client = redis::Client::open(self.url()).unwrap();
        let mut connection = connected(&client).await.unwrap();
        let keys: Vec<String> = redis::cmd("KEYS").arg("*").query_async(&mut connection).await.unwrap();
        let mut bytes = 0;
        for key in keys {
            let usage = redis::cmd("MEMORY").arg("USAGE").arg(key).query_async(&mut connection).await;
            bytes += usage.unwrap_or(Some(0)).unwrap_or(0);
        }
        bytes
    }

    /// Returns the keys without an expiry.
    pub(crate) async fn keys_without_expiry(&self) -> Vec<String> {
        let (keys, lasting) = expiries(&self.url()).await;
        assert!(keys > 0);
        lasting
    }
}

/// Returns the milliseconds until a key expires.
pub(crate) async fn remaining(server: &RedisServer, key: &str) -> u64 {
    let client = redis::Client::open(server.url()).unwrap();
    let mut connection = connected(&client).await.unwrap();
    let left: i64 = redis::cmd("PTTL").arg(key).query_async(&mut connection).await.unwrap();
    u64::try_from(left).unwrap_or_else(|_| panic!("`{key}` does not expire, or is not there: {left}"))
}

/// Returns the number of keys of a Redis, and those without an expiry.
pub(crate) async fn expiries(url: &str) -> (usize, Vec<String>) {
    let client = redis::Client::open(url).unwrap();
    let mut connection = connected(&client).await.unwrap();
    let keys: Vec<String> = redis::cmd("KEYS").arg("*").query_async(&mut connection).await.unwrap();
    let mut lasting = Vec::new();
    for key in &keys {
        let left: i64 = redis::cmd("PTTL").arg(key).query_async(&mut connection).await.unwrap();
        if left == -1 {
            lasting.push(key.clone());
        }
    }
    (keys.len(), lasting)
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.stop();
        if let Some(folder) = &self.folder {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}
