//! A Redis for one test.

use std::{
    net::TcpListener,
    process::{Child, Command, Stdio},
    time::Duration,
};

use pintle_redis::{Redis, RedisOptions};

/// A `redis-server` on a port of its own, which ends with the test.
pub(crate) struct RedisServer {
    child: Option<Child>,
    port: u16,
}

impl RedisServer {
    /// Starts a server. Returns `None`, and says so, if it is not installed; with `PINTLE_REQUIRE_REDIS` that is a failure.
    pub(crate) async fn start() -> Option<Self> {
        let found = Command::new("redis-server").arg("--version").stdout(Stdio::null()).status();
        if found.is_err() {
            assert!(
                std::env::var_os("PINTLE_REQUIRE_REDIS").is_none(),
                "`redis-server` is missing: install Debian's package redis-server"
            );
            eprintln!("skipped: `redis-server` is not installed");
            return None;
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut server = Self { child: None, port };
        server.restart().await;
        Some(server)
    }

    /// Starts the server again, without what it had.
    pub(crate) async fn restart(&mut self) {
        self.stop();
        let port = self.port.to_string();
        let arguments = ["--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"];
        let child = Command::new("redis-server").args(arguments).stdout(Stdio::null()).spawn();
        self.child = Some(child.unwrap());
        for _ in 0..200 {
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

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    pub(crate) async fn connect(&self, options: &RedisOptions) -> std::io::Result<Redis> {
        Redis::connect_with(&self.url(), options.clone()).await
    }

    /// Removes a key.
    pub(crate) async fn delete(&self, key: &str) {
        let client = redis::Client::open(self.url()).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        let removed: i64 = redis::cmd("DEL").arg(key).query_async(&mut connection).await.unwrap();
        assert_eq!(removed, 1, "there is no `{key}`");
    }

    /// Returns the keys without an expiry.
    pub(crate) async fn keys_without_expiry(&self) -> Vec<String> {
        let client = redis::Client::open(self.url()).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        let keys: Vec<String> = redis::cmd("KEYS").arg("*").query_async(&mut connection).await.unwrap();
        assert!(!keys.is_empty());
        let mut lasting = Vec::new();
        for key in keys {
            let left: i64 = redis::cmd("PTTL").arg(&key).query_async(&mut connection).await.unwrap();
            if left == -1 {
                lasting.push(key);
            }
        }
        lasting
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.stop();
    }
}
