//! Several processes of one server that share a Redis, behind a balancer that sends each request to the next one.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::process::Process;

/// The number of processes that serve.
const NODES: usize = 3;
const START: Duration = Duration::from_secs(10);

/// The processes of a fleet. They end when it is dropped.
#[derive(Debug)]
pub(crate) struct Fleet {
    url: String,
    processes: Vec<Process>,
}

impl Fleet {
    /// Starts a Redis, processes of the program that serve at a port of their own, and haproxy in front of them. The program finds
    /// the address of the Redis in `PINTLE_REDIS`, and prints its URL.
    pub(crate) fn start(program: &Path, folder: &Path) -> io::Result<Self> {
        let redis = free_port()?;
        let mut processes = vec![start_redis(redis, folder)?];
        let mut addresses = Vec::new();
        let mut path = String::new();
        for node in 1..=NODES {
            let mut command = Command::new(program);
            command.env("PORT", "0").env("PINTLE_REDIS", format!("redis://127.0.0.1:{redis}/"));
            let log = folder.join(format!("server-{node}.log"));
            let (process, url) = Process::serve(command.current_dir(folder), &log, START)?;
            let (address, rest) =
                split(&url).ok_or_else(|| io::Error::other(format!("`{url}` is no URL")))?;
            addresses.push(address.to_owned());
            rest.clone_into(&mut path);
            processes.push(process);
        }
        let port = free_port()?;
        let file = folder.join("haproxy.cfg");
        fs::write(&file, configuration(port, &addresses))?;
        let mut balancer = Command::new("haproxy");
        balancer.arg("-db").arg("-f").arg(&file).current_dir(folder);
        processes.push(Process::start(&mut balancer, &folder.join("haproxy.log"))?);
        listens(port, "haproxy")?;
        Ok(Self { url: format!("http://127.0.0.1:{port}{path}"), processes })
    }

    /// The URL of the balancer.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn into_processes(self) -> Vec<Process> {
        self.processes
    }
}

fn start_redis(port: u16, folder: &Path) -> io::Result<Process> {
    let mut redis = Command::new("redis-server");
    redis.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--port", &port.to_string()]);
    let process = Process::start(redis.current_dir(folder), &folder.join("redis.log"))?;
    listens(port, "redis-server")?;
    Ok(process)
}

/// Returns a port that nobody listens on at the moment.
fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

fn listens(port: u16, name: &str) -> io::Result<()> {
    let start = Instant::now();
    while start.elapsed() < START {
        if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(20));
    }
    Err(io::Error::other(format!("`{name}` does not listen on port {port}")))
}

/// Splits a URL into its address and its path.
fn split(url: &str) -> Option<(&str, &str)> {
    let rest = url.strip_prefix("http://")?;
    Some(rest.split_at(rest.find('/').unwrap_or(rest.len())))
}

/// The configuration of haproxy: each request goes to the next process, and streams may be silent.
fn configuration(port: u16, addresses: &[String]) -> String {
    let mut text = format!(
        "global\n    maxconn 4096\ndefaults\n    mode http\n    timeout connect 5s\n    timeout client 1h\n    timeout server 1h\n\
         frontend entry\n    bind 127.0.0.1:{port}\n    default_backend nodes\n\
         backend nodes\n    balance roundrobin\n"
    );
    for (number, address) in addresses.iter().enumerate() {
        text.push_str(&format!("    server node{} {address}\n", number + 1));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_an_address_and_a_path() {
        assert_eq!(split("http://127.0.0.1:80/mcp"), Some(("127.0.0.1:80", "/mcp")));
        assert_eq!(split("http://127.0.0.1:80"), Some(("127.0.0.1:80", "")));
        assert_eq!(split("redis://127.0.0.1:80"), None);
    }

    #[test]
    fn every_process_gets_its_turn() {
        let text = configuration(8000, &["127.0.0.1:1".to_owned(), "127.0.0.1:2".to_owned()]);
        assert!(
            text.contains("balance roundrobin\n    server node1 127.0.0.1:1\n    server node2 127.0.0.1:2\n")
        );
    }
}
