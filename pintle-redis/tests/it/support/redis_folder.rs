//! Several `redis-server` processes in one folder, for a cluster or a primary with its replica and a Sentinel.

use std::{
    fs,
    net::TcpListener,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use redis::{FromRedisValue, RedisResult};

use crate::redis_server::{self, connected};

/// A folder for the files of processes, which end with the test.
pub(crate) struct RedisFolder {
    folder: PathBuf,
    children: Vec<(u16, Child)>,
}

impl RedisFolder {
    pub(crate) fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("pintle-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self { folder, children: Vec::new() }
    }

    /// Returns a port that is free, and the one of its bus.
    pub(crate) fn free_port() -> u16 {
        loop {
            let port = redis_server::free_port();
            if TcpListener::bind(("127.0.0.1", port + 10_000)).is_ok() {
                return port;
            }
        }
    }

    pub(crate) fn write(&self, file: &str, text: &str) {
        fs::write(self.folder.join(file), text).unwrap();
    }

    /// Starts a process in the folder, and waits until it responds.
    pub(crate) async fn start(&mut self, port: u16, arguments: &[&str]) {
        let mut command = Command::new("redis-server");
        command.args(arguments).args(["--port", &port.to_string(), "--bind", "127.0.0.1"]);
        command.current_dir(&self.folder).stdout(Stdio::null());
        self.children.push((port, command.spawn().unwrap()));
        until("`redis-server` listens", async || {
            tokio::net::TcpStream::connect(("127.0.0.1", port)).await.ok()
        })
        .await;
    }

    /// Kills the process with this port.
    pub(crate) fn kill(&mut self, port: u16) {
        for (_, child) in self.children.iter_mut().filter(|(own, _)| *own == port) {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        self.children.retain(|(own, _)| *own != port);
    }
}

impl Drop for RedisFolder {
    fn drop(&mut self) {
        for (_, child) in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Sends a command, whose words are between spaces, to the process with this port.
pub(crate) async fn ask<T: FromRedisValue>(port: u16, words: &str) -> RedisResult<T> {
    let client = redis::Client::open(format!("redis://127.0.0.1:{port}/"))?;
    let mut connection = connected(&client).await?;
    let mut words = words.split(' ');
    let mut command = redis::cmd(words.next().unwrap_or_default());
    words.for_each(|word| {
        command.arg(word);
    });
    command.query_async(&mut connection).await
}

/// Waits until something is there.
pub(crate) async fn until<T>(what: &str, look: impl AsyncFn() -> Option<T>) -> T {
    for _ in 0..1200 {
        if let Some(found) = look().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("a minute has passed before {what}");
}
